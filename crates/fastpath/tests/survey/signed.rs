//! Packages that are signed themselves, by the right key and otherwise.

use std::fs;
use std::path::Path;

use crate::server::{Fault, Server};
use crate::world::World;

#[test]
fn rpm_packages() {
    let Some(world) = World::new(&["gpg", "rpmbuild", "rpmsign", "createrepo_c"]) else { return };
    let gpg = &world.repository.gpg;
    let stranger = gpg.key("Stranger <s@t.invalid>", "rsa2048", "sign", "never");
    let build = |name: &str| world.rpm_package(name, "5.14.0", "570.58.1.el9_6", true);
    build("unsigned");
    gpg.sign_package(&build("other"), &stranger);
    let package = build("sound");
    gpg.sign_package(&package, &world.repository.key);
    for name in ["unsigned", "other", "sound"] {
        world.rpm_index(name);
        // Where packages are signed the index is not.
        fs::remove_file(world.folder(name).join("repodata/repomd.xml.asc")).expect("the signature");
    }
    let file = "kernel-core-5.14.0-570.58.1.el9_6.x86_64.rpm";
    let mut changed = fs::read(&package).expect("the package");
    // One bit of the header: of the summary.
    let at = changed.windows(5).position(|bytes| bytes == b"A & B").expect("the summary");
    changed[at] ^= 1;

    let key = &world.repository.key;
    for (repository, content, error) in [
        ("unsigned", None, "expected a signed package, found no signature over its header"),
        ("other", None, &format!("expected a signature by {key}, found one by {stranger}")),
        ("sound", Some(changed), &format!("bad signature: {key} did not sign this content")),
    ] {
        let server = Server::start(world.repository.root());
        if let Some(content) = content {
            server.fault(&format!("{repository}/{file}"), Fault::Content(content));
        }
        let base = server.url(repository);
        let answer = world.machine().survey(&[("test-signed", &base)], &["test-signed"]);
        assert_eq!(answer.code, 2, "{}", answer.stdout);
        assert_eq!(answer.errors(), [format!("test-signed: {base}/{file}: {error}")]);
        let row = answer.row();
        assert!(row["value"].is_null() && row["verdict"] == "unknown", "{row}");
    }
    let base = world.server.url("sound");
    for (more, trust) in
        [(&["test-signed"][..], "partial"), (&["test-signed", "--verify"], "verified")]
    {
        let answer = world.machine().survey(&[("test-signed", &base)], more);
        let row = answer.row();
        assert_eq!((&row["value"], &row["trust"]), (&"y".into(), &trust.into()), "{row}");
    }
}

/// Arch's signature covers the whole package, so it counts where the package is read whole.
#[test]
fn pacman_packages() {
    let Some(world) = World::new(&["gpg", "tar", "zstd"]) else { return };
    let gpg = &world.repository.gpg;
    let (key, stranger) =
        (&world.repository.key, gpg.key("Stranger <s@t.invalid>", "ed25519", "sign", "never"));
    let package = world.arch_kernel("7.1.3.arch1-2", "7.1.3-arch1-2", true);
    let sign = |by: &str, file: &Path| {
        let signature = format!("{}.sig", package.display());
        let file = file.to_str().expect("a path");
        gpg.run(&["-u", by, "--detach-sign", "--output", &signature, file]);
    };
    let base = world.server.url("arch/core/os/x86_64");
    let url = format!("{base}/linux-headers-7.1.3.arch1-2-x86_64.pkg.tar.zst");
    let survey = |more: &[&str]| world.machine().survey(&[("test-pacman", &base)], more);
    let fails = |error: &str| {
        let answer = survey(&["test-pacman", "--verify"]);
        assert_eq!((answer.code, answer.errors()), (2, vec![error]), "{}", answer.stdout);
        assert!(answer.row()["value"].is_null(), "{}", answer.stdout);
    };
    fs::remove_file(format!("{}.sig", package.display())).expect("the signature");
    fails(&format!("test-pacman: {url}: expected a signed package, found no .sig beside it"));
    sign(stranger.as_str(), &package);
    fails(&format!("test-pacman: {url}: expected a signature by {key}, found one by {stranger}"));
    sign(key.as_str(), &world.folder("knowledge.toml"));
    fails(&format!("test-pacman: {url}: bad signature: {key} did not sign this content"));
    sign(key.as_str(), &package);
    for (more, trust) in
        [(&["test-pacman"][..], "unsigned"), (&["test-pacman", "--verify"], "verified")]
    {
        let row = survey(more).row();
        assert_eq!((&row["value"], &row["trust"]), (&"y".into(), &trust.into()), "{row}");
    }
}
