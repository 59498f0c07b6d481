//! From a target to its row.

use std::fs;

use serde_json::Value;

use crate::common::repository::{Deb, TOOLS};
use crate::world::{World, config};

const RPM: [&str; 3] = ["gpg", "rpmbuild", "createrepo_c"];

#[test]
fn a_debian_target_from_index_to_row_to_difference() {
    let Some(world) = World::new(&TOOLS) else { return };
    let kernel = |release: &str, version: &str, yes: bool| {
        let config = config("6.1.9", yes);
        world.repository.suite(
            "test",
            &[
                Deb::new("linux-image-amd64", version).depends(&format!("linux-image-{release}")),
                Deb::new(&format!("linux-image-{release}"), version)
                    .content(&format!("boot/config-{release}"), config.clone())
                    .file("boot/vmlinuz", 9000),
                Deb::new(&format!("linux-headers-{release}"), version)
                    .content(&format!("usr/src/linux-headers-{release}/.config"), config),
            ],
        );
    };
    let machine = world.machine();
    // A folder in place of a server.
    let base = format!("file://{}", world.folder("debian").display());
    let mirror = [("test-deb", base.as_str())];
    kernel("6.1.0-9-amd64", "6.1.9-1", false);
    let answer = machine.survey(&mirror, &["test-deb"]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let row = answer.row();
    assert_eq!(
        (&row["release"], &row["value"], &row["line"]),
        (&"6.1.0-9-amd64".into(), &"not set".into(), &3.into())
    );
    assert_eq!((&row["verdict"], &row["trust"]), (&"unsupported".into(), &"partial".into()));
    assert_eq!(
        row["package"], "linux-headers-6.1.0-9-amd64",
        "the smaller of the two that have it"
    );
    assert_eq!(row["schema"], "fastpath.survey/1");
    assert!(row["hash"].as_str().is_some_and(|hash| hash.starts_with("sha256:")), "{row}");

    // A newer kernel that has the option: the history shows that the value flipped.
    std::thread::sleep(std::time::Duration::from_millis(1100));
    kernel("6.12.0-1-amd64", "6.12.9-1", true);
    let answer = machine.survey(&mirror, &["test-deb", "--verify"]);
    let row = answer.row();
    assert_eq!(
        (answer.code, &row["value"], &row["trust"]),
        (0, &"y".into(), &"verified".into()),
        "{}",
        answer.stderr
    );
    let diff = machine.fastpath(&["survey", "--diff"]);
    assert_eq!(diff.code, 1, "{}", diff.stdout);
    let text = &diff.stdout;
    assert!(text.contains("test-deb: new kernel: 6.1.0-9-amd64 -> 6.12.0-1-amd64"), "{text}");
    assert!(text.contains("test-deb: P2PDMA flipped: No -> Yes"), "{text}");
    let matrix = machine.fastpath(&["matrix", "--target", "test-deb"]);
    assert_eq!(matrix.code, 0);
    assert!(matrix.stdout.contains("trust      verified"), "{}", matrix.stdout);

    // Every kernel of the repository, the default one first.
    let releases: Vec<Value> = machine
        .survey(&mirror, &["--all-kernels", "test-deb"])
        .rows()
        .into_iter()
        .map(|mut row| row["release"].take())
        .collect();
    assert_eq!(releases, ["6.12.0-1-amd64", "6.1.0-9-amd64"]);
}

#[test]
fn an_rpm_target_from_index_to_row() {
    let Some(world) = World::new(&RPM) else { return };
    world.rpm_kernel("6.12.0", "211.1.el10_2", true);
    world.rpm_kernel("6.12.0", "55.1.el10_0", false);
    let machine = world.machine();
    let base = format!("file://{}", world.folder("rpm").display());
    let mirror = [("test-rpm", base.as_str())];
    let answer = machine.survey(&mirror, &["test-rpm"]);
    let row = answer.row();
    assert_eq!(answer.code, 0, "{} {row}", answer.stderr);
    assert_eq!(row["release"], "6.12.0-211.1.el10_2.x86_64", "the highest build");
    assert_eq!(
        (&row["value"], &row["verdict"]),
        (&"y".into(), &"blocked".into()),
        "an advisory marks it"
    );
    assert_eq!(
        (&row["trust"], &row["advisories"][0]),
        (&"partial".into(), &"el10_2-memory-corruption".into())
    );
    let releases: Vec<Value> = machine
        .survey(&mirror, &["--all-kernels", "test-rpm"])
        .rows()
        .into_iter()
        .map(|mut row| row["release"].take())
        .collect();
    assert_eq!(releases, ["6.12.0-211.1.el10_2.x86_64", "6.12.0-55.1.el10_0.x86_64"]);
    fs::remove_file(world.folder("rpm/repodata/repomd.xml.asc")).expect("the signature");
    let answer = machine.survey(&mirror, &["test-rpm"]);
    assert_eq!(
        (answer.code, &answer.row()["value"]),
        (2, &Value::Null),
        "an unsigned index where a signed one is due"
    );
}
