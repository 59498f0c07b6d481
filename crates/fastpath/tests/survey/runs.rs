//! What a survey leaves for later: the cache, the data set, and what they are used for.

use std::fs;

use serde_json::{Value, json};

use crate::server::Fault;
use crate::world::{Answer, Machine, World};

const TOOLS: [&str; 6] = ["gpg", "dpkg-deb", "apt-ftparchive", "xz", "rpmbuild", "createrepo_c"];

fn world() -> Option<World> {
    let world = World::new(&TOOLS)?;
    world.debian_kernel("6.1.0-9-amd64", "6.1.9-1", false);
    world.rpm_kernel("5.14.0", "570.58.1.el9_6", true);
    Some(world)
}

fn survey(world: &World, machine: &Machine<'_>, more: &[&str]) -> Answer {
    let (debian, rpm) = (world.server.url("debian"), world.server.url("rpm"));
    machine.survey(&[("test-deb", &debian), ("test-rpm", &rpm)], more)
}

/// Runs are named after the second they start in.
fn next_second() {
    std::thread::sleep(std::time::Duration::from_millis(1100));
}

#[test]
fn offline_answers_are_those_of_the_last_time() {
    let Some(world) = world() else { return };
    let (machine, targets) = (world.machine(), ["test-deb", "test-rpm"]);
    let offline = |more: &[&str]| {
        let asked = world.server.seen().len();
        let answer = survey(&world, &machine, &[&["--offline"], more, &targets].concat());
        assert_eq!(world.server.seen().len(), asked, "the network was used");
        answer
    };
    let answer = offline(&[]);
    let not_there = |target: &str, path: &str| {
        let url = world.server.url(path);
        format!("{target}: {url}: not in the cache, and the network is not used")
    };
    assert_eq!(answer.code, 2);
    assert_eq!(
        answer.errors(),
        [
            not_there("test-deb", "debian/dists/test/InRelease"),
            not_there("test-rpm", "rpm/repodata/repomd.xml")
        ]
    );

    let online = survey(&world, &machine, &targets);
    assert_eq!(online.code, 0, "{}", online.stderr);
    let answer = offline(&[]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    for (then, now) in online.rows().iter().zip(answer.rows()) {
        assert_eq!((&now["bytes_read"], &now["index_bytes"]), (&json!(0), &json!(0)));
        for (field, value) in now.as_object().expect("a record") {
            let differs = ["run", "time", "bytes_read", "index_bytes"].contains(&field.as_str());
            assert!(differs || *value == then[field], "{field}: {value}, then {}", then[field]);
        }
    }

    // What was not read whole then cannot be verified now.
    let answer = offline(&["--verify"]);
    let deb = "debian/pool/test/linux-image-6.1.0-9-amd64_6.1.9-1_amd64.deb";
    let rpm = "rpm/kernel-core-5.14.0-570.58.1.el9_6.x86_64.rpm";
    let offline_error = |target: &str, path: &str| not_there(target, path);
    assert_eq!(
        (answer.code, answer.errors()),
        (2, vec![offline_error("test-deb", deb).as_str(), offline_error("test-rpm", rpm).as_str()])
    );
    assert_eq!(survey(&world, &machine, &["--verify", "test-deb", "test-rpm"]).code, 0);
    let answer = offline(&["--verify"]);
    let trust: Vec<Value> = answer.rows().iter().map(|row| row["trust"].clone()).collect();
    assert_eq!((answer.code, trust), (0, vec![json!("verified"), json!("verified")]));
}

#[test]
fn differences_between_runs() {
    let Some(world) = world() else { return };
    let machine = world.machine();
    let diff = |more: &[&str]| machine.fastpath(&[&["survey", "--diff"], more].concat());
    let nothing = diff(&[]);
    assert_eq!((nothing.code, nothing.stdout.as_str()), (2, ""));
    let data = machine.data().display().to_string();
    assert_eq!(nothing.errors(), [format!("{data}: no survey has been run yet")]);

    let run = |row: &Value| row["run"].as_str().expect("a run").to_owned();
    let targets = ["test-deb", "test-rpm"];
    let first = run(&survey(&world, &machine, &targets).rows()[0]);
    next_second();
    let second = run(&survey(&world, &machine, &targets).rows()[0]);
    let same = diff(&[]);
    assert_eq!((same.code, same.stdout), (0, format!("from {first} to {second}\nno change\n")));

    // A new kernel with the option for one, a server in trouble for the other.
    next_second();
    world.debian_kernel("6.12.0-1-amd64", "6.12.9-1", true);
    world.server.fault("rpm/repodata/repomd.xml", Fault::Status(404, "", 99));
    let failed = survey(&world, &machine, &targets);
    assert_eq!(failed.code, 2);
    let third = run(&failed.rows()[0]);
    let error = failed.errors()[0].to_owned();
    let expected = json!({
        "schema": "fastpath.survey-diff/1", "from": second, "to": third, "flipped": true,
        "changes": {
            "test-deb": [
                {"change": "new-kernel", "from": "6.1.0-9-amd64", "to": "6.12.0-1-amd64"},
                {"change": "flipped", "from": false, "to": true},
            ],
            "test-rpm": [{"change": "failed", "error": error}],
        },
    });
    for more in [&["--format", "json"][..], &[&second, &third, "--format", "json"]] {
        let answer = diff(more);
        let found: Value = serde_json::from_str(&answer.stdout).expect("JSON");
        assert_eq!((answer.code, found), (1, expected.clone()), "{}", answer.stderr);
    }
    // What failed does not take the place of what was read.
    let matrix = machine.fastpath(&["matrix", "--target", "test-rpm"]);
    assert!(matrix.stdout.contains("5.14.0-570.58.1.el9_6.x86_64"), "{}", matrix.stdout);
    // Back again: a kernel that loses the option is a flip as well.
    let back = diff(&[&third, &first]);
    assert_eq!(back.code, 1);
    assert!(back.stdout.contains("test-deb: P2PDMA flipped: Yes -> No"), "{}", back.stdout);
    let unknown = diff(&["2020-01-01T00:00:00Z"]);
    assert_eq!(unknown.code, 2);
    assert_eq!(
        unknown.errors(),
        [format!(
            "there is no run `2020-01-01T00:00:00Z`; there are {first}, {second}, {third}, `published` and `newest`"
        )]
    );
}

#[test]
fn every_kernel_of_the_repositories_and_one_that_cannot_be_read() {
    let Some(world) = world() else { return };
    world.rpm_kernel("5.14.0", "427.42.1.el9_4", true);
    world.rpm_kernel("5.14.0", "362.8.1.el9_3", false);
    let missing = "rpm/kernel-core-5.14.0-427.42.1.el9_4.x86_64.rpm";
    world.server.fault(missing, Fault::Status(404, "", 99));
    let machine = world.machine();
    let answer = survey(&world, &machine, &["--all-kernels", "test-rpm"]);
    assert_eq!(answer.code, 2);
    let url = world.server.url(missing);
    assert_eq!(
        answer.errors(),
        [format!("test-rpm: {url}: offset 0: expected content, found status 404")]
    );
    let rows = answer.rows();
    let found: Vec<_> = rows.iter().map(|row| (&row["release"], &row["value"])).collect();
    assert_eq!(
        found,
        [
            (&json!("5.14.0-570.58.1.el9_6.x86_64"), &json!("y")),
            (&Value::Null, &Value::Null),
            (&json!("5.14.0-362.8.1.el9_3.x86_64"), &json!("not set")),
        ]
    );
    // The matrix and the differences are about the default kernel.
    let matrix = machine.fastpath(&["matrix", "--target", "test-rpm"]);
    assert!(matrix.stdout.contains("5.14.0-570.58.1.el9_6.x86_64"), "{}", matrix.stdout);
}

#[test]
fn flavours() {
    let Some(world) = world() else { return };
    let machine = world.machine();
    let ids = |more: &[&str]| -> Vec<String> {
        let answer = survey(&world, &machine, &[more, &["test-deb", "test-rpm"]].concat());
        assert_eq!(answer.code, 0, "{}", answer.stderr);
        answer.rows().iter().map(|row| row["id"].as_str().expect("an id").to_owned()).collect()
    };
    assert_eq!(ids(&["--flavour", "rt"]), ["test-rpm"]);
    assert_eq!(ids(&["--flavour", "rt,default"]), ["test-deb", "test-rpm"]);
    let before = fs::read(machine.data()).expect("the data set");
    let there_are = "backports, cloud, default, hwe, lowlatency, rhck, rt, uek";
    for (flavour, error) in [
        ("hwe", "none of the targets named has the flavour `hwe`".to_owned()),
        ("hwe,rt,x", format!("there is no flavour `x`; there are {there_are}")),
    ] {
        let answer = survey(&world, &machine, &["--flavour", flavour, "test-deb"]);
        assert_eq!((answer.code, answer.errors()), (2, vec![error.as_str()]));
        assert_eq!(answer.stdout, "");
    }
    assert_eq!(fs::read(machine.data()).expect("the data set"), before);
}

#[test]
fn what_is_printed() {
    let Some(world) = world() else { return };
    let machine = world.machine();
    let answer = survey(&world, &machine, &["test-deb", "test-rpm"]);
    let data = fs::read_to_string(machine.data()).expect("the data set");
    assert_eq!(answer.stdout, data, "JSON is the lines of the data set");
    let bytes =
        |field: &str| answer.rows().iter().filter_map(|row| row[field].as_u64()).sum::<u64>();
    let (packages, indexes) = (bytes("bytes_read"), bytes("index_bytes"));
    assert!(packages > 0 && indexes > 0);
    assert_eq!(
        answer.stderr,
        format!("{packages} bytes of packages and {indexes} bytes of indexes were read\n")
    );

    let text = survey(&world, &machine, &["--format", "text", "test-deb", "test-rpm"]);
    assert_eq!(
        text.stdout,
        "TARGET    SYSTEM  KERNEL                        P2PDMA  VERDICT      TRUST    ADVISORIES\n\
         test-deb  Test 1  6.1.0-9-amd64                 No      unsupported  partial\n\
         test-rpm  Test 1  5.14.0-570.58.1.el9_6.x86_64  Yes     supported    partial\n"
    );
    let quiet = survey(&world, &machine, &["--quiet", "test-deb", "test-rpm"]);
    assert_eq!((quiet.code, quiet.stdout, quiet.stderr), (0, String::new(), String::new()));
    let data = fs::read_to_string(machine.data()).expect("the data set");
    assert_eq!(data.lines().count(), 6, "all of them were kept");
}

/// Surveys at once share a cache and a data set: none loses another's lines.
#[test]
fn surveys_at_once() {
    let Some(world) = world() else { return };
    let machine = world.machine();
    let first = survey(&world, &machine, &["test-deb"]).stdout;
    let outputs: Vec<String> = std::thread::scope(|scope| {
        let runs: Vec<_> = (0..6)
            .map(|number| {
                let target = if number % 2 == 0 { "test-deb" } else { "test-rpm" };
                let (world, machine) = (&world, &machine);
                scope.spawn(move || {
                    let answer = survey(world, machine, &[target]);
                    assert_eq!(answer.code, 0, "{}", answer.stderr);
                    answer.stdout
                })
            })
            .collect();
        runs.into_iter().map(|run| run.join().expect("a survey")).collect()
    });
    let data = fs::read_to_string(machine.data()).expect("the data set");
    let added = data.strip_prefix(&first).expect("what was there is there");
    let sorted = |text: &str| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(sorted(added), sorted(&outputs.concat()));
    let folder = fs::read_dir(machine.data().parent().expect("a folder")).expect("the folder");
    let mut names: Vec<_> = folder.map(|file| file.expect("a file").file_name()).collect();
    names.sort();
    assert_eq!(names, ["survey.jsonl", "survey.jsonl.lock"], "nothing else is left");
}
