//! What the program does beyond its transcripts: pipes, standard input, knowledge files, hostile input, and what it
//! must never do.

#![allow(clippy::print_stdout, reason = "a skipped test says so")]

#[path = "../../artifact/tests/server/mod.rs"]
mod server;

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Output, Stdio};

const WHOLE: &str = "CONFIG_PCI=y\nCONFIG_ZONE_DEVICE=y\nCONFIG_MAGIC_SYSRQ=y\n";

fn fastpath() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fastpath"));
    command
        .env_remove("HIPFILE_KNOWLEDGE")
        .env("NO_COLOR", "1")
        .env("XDG_DATA_HOME", "/nonexistent");
    command
}

fn output(command: &mut Command) -> (i32, String, String) {
    let Output { status, stdout, stderr } = command.output().expect("the program starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("output is UTF-8");
    (status.code().expect("it ends by itself"), text(stdout), text(stderr))
}

/// A root whose running kernel is `release`, with `config` as its configuration in `/boot`.
fn root(release: &str, config: &str) -> tempfile::TempDir {
    let root = tempfile::tempdir().expect("a temporary directory");
    write(root.path(), "proc/sys/kernel/osrelease", format!("{release}\n").as_bytes());
    write(root.path(), &format!("boot/config-{release}"), config.as_bytes());
    root
}

fn write(root: &Path, path: &str, bytes: &[u8]) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
    fs::write(path, bytes).expect("a file");
}

/// The kernel layer: these roots hold nothing else.
fn check(root: &Path) -> Command {
    let mut command = fastpath();
    command.args(["check", "--layer", "kernel", "--root"]).arg(root);
    command
}

#[test]
fn a_closed_pipe_is_no_error() {
    let mut child = fastpath()
        .args(["matrix", "--format", "json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    drop(child.stdout.take());
    let mut stderr = String::new();
    child.stderr.take().expect("a pipe").read_to_string(&mut stderr).expect("stderr is UTF-8");
    assert_eq!((child.wait().expect("it ends").code(), stderr.as_str()), (Some(0), ""));
}

#[test]
fn quiet_prints_nothing_and_the_exit_code_tells() {
    let yes = root("6.8.0-142-generic", &format!("CONFIG_PCI_P2PDMA=y\n{WHOLE}"));
    let no = root("6.8.0-142-generic", &format!("# CONFIG_PCI_P2PDMA is not set\n{WHOLE}"));
    let nothing = root("6.8.0-142-generic", "");
    for (root, code) in [(&yes, 0), (&no, 1), (&nothing, 2)] {
        let printed = output(check(root.path()).arg("-q"));
        assert_eq!(printed, (code, String::new(), String::new()));
    }
}

#[test]
fn verbose_never_changes_the_verdict() {
    for value in ["CONFIG_PCI_P2PDMA=y", "# CONFIG_PCI_P2PDMA is not set", ""] {
        let root = root("6.8.0-142-generic", &format!("{value}\n{WHOLE}"));
        let (code, plain, _) = output(&mut check(root.path()));
        let (verbose_code, verbose, _) = output(check(root.path()).arg("-v"));
        assert_eq!((code, plain.lines().next()), (verbose_code, verbose.lines().next()));
    }
}

#[test]
fn standard_input_is_inspected() {
    let mut child = fastpath()
        .args(["inspect", "-", "--format", "json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin
        .write_all(b"# Linux/x86 6.8.12 Kernel Configuration\nCONFIG_PCI_P2PDMA=y\n")
        .expect("writing");
    drop(stdin);
    let output = child.wait_with_output().expect("it ends");
    let answer: serde_json::Value =
        serde_json::from_slice(&output.stdout).expect("one JSON object");
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(answer["schema"], "fastpath.inspect/1");
    assert_eq!(answer["input"], "-");
    assert_eq!(answer["header_version"], "6.8.12");
    assert_eq!(answer["release"], serde_json::Value::Null, "a base version is no release");
    assert_eq!((&answer["value"], &answer["line"]), (&"y".into(), &2.into()));
    assert_eq!(answer["bytes_read"], 60);
}

#[test]
fn what_was_read_ahead_of_a_url_counts_as_read() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    // Behind the first 64 KiB, which are asked for alone; the next request is for 128 KiB.
    let config = format!("{WHOLE}CONFIG_PCI_P2PDMA=y\n");
    let members = ["padding", "boot/config-6.8.12-generic", "more"];
    write(folder.path(), members[0], &vec![0; 100 << 10]);
    write(folder.path(), members[1], config.as_bytes());
    write(folder.path(), members[2], &vec![0; 1 << 20]);
    let mut tar = Command::new("tar");
    tar.current_dir(&folder).args(["--format=ustar", "-cf", "image.tar"]).args(members);
    assert!(tar.status().expect("tar starts").success());
    let server = server::Server::start(folder.path());
    let mut inspect = fastpath();
    inspect.args(["inspect", "--first", "--format", "json", &server.url("image.tar")]);
    let (code, stdout, stderr) = output(&mut inspect);
    assert_eq!(code, 0, "{stderr}");
    let answer: serde_json::Value = serde_json::from_str(&stdout).expect("one JSON object");
    let asked: Vec<String> =
        server.seen().iter().map(|seen| seen.headers["range"].clone()).collect();
    assert_eq!(asked, ["bytes=0-65535", "bytes=65536-196607"]);
    assert_eq!(answer["bytes_read"], 192 << 10);
}

#[test]
fn inspect_takes_the_release_from_the_name_then_from_the_header() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let header =
        "# Linux/x86_64 5.14.0-687.49.1.el9_8.x86_64 Kernel Configuration\nCONFIG_PCI_P2PDMA=y\n";
    write(directory.path(), "config-5.14.0-687.49.1.el9_8.x86_64", b"CONFIG_PCI_P2PDMA=y\n");
    write(directory.path(), "kernel-config-x86_64-6.1.0-gentoo", b"CONFIG_PCI_P2PDMA=y\n");
    write(directory.path(), "dot-config", header.as_bytes());
    // Either string may bring an advisory: the name is someone's choice, the header the build's own.
    write(directory.path(), "config-6.8.0-142-generic", header.as_bytes());
    let cases = [
        ("config-5.14.0-687.49.1.el9_8.x86_64", Some("5.14.0-687.49.1.el9_8.x86_64"), "blocked"),
        ("kernel-config-x86_64-6.1.0-gentoo", Some("6.1.0-gentoo"), "supported"),
        ("dot-config", Some("5.14.0-687.49.1.el9_8.x86_64"), "blocked"),
        ("config-6.8.0-142-generic", Some("6.8.0-142-generic"), "blocked"),
    ];
    for (name, release, verdict) in cases {
        let (_, stdout, _) = output(
            fastpath().args(["inspect", "--format", "json"]).arg(directory.path().join(name)),
        );
        let answer: serde_json::Value = serde_json::from_str(&stdout).expect("one JSON object");
        assert_eq!(answer["release"].as_str(), release, "{name}");
        assert_eq!(answer["verdict"], verdict, "{name}");
    }
}

#[test]
fn several_inputs_give_one_when_any_is_no_else_two_when_any_is_unknown() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = |name: &str, text: &str| {
        write(directory.path(), name, text.as_bytes());
        directory.path().join(name)
    };
    let yes = file("yes", "CONFIG_PCI_P2PDMA=y\n");
    let no = file("no", "# CONFIG_PCI_P2PDMA is not set\n");
    let cut = file("cut", "CONFIG_PCI=y\n");
    let missing = directory.path().join("missing");
    let code = |files: &[&Path]| output(fastpath().arg("inspect").args(files)).0;
    assert_eq!(code(&[&yes, &yes]), 0);
    assert_eq!(code(&[&yes, &no]), 1);
    assert_eq!(code(&[&yes, &cut]), 2);
    assert_eq!(code(&[&yes, &missing]), 2);
    assert_eq!(code(&[&cut, &no, &missing]), 1);
}

#[test]
fn a_gzip_bomb_stops_at_the_limit_with_one_line() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let plain = directory.path().join("zeros");
    fs::File::create(&plain).and_then(|file| file.set_len(100 << 20)).expect("a sparse file");
    let packed = Command::new("gzip").arg("-9").arg(&plain).status().expect("gzip runs");
    assert!(packed.success());
    let (code, stdout, stderr) =
        output(fastpath().arg("inspect").arg(directory.path().join("zeros.gz")));
    assert_eq!((code, stderr.as_str()), (2, ""));
    assert!(stdout.contains("larger than 67108864 bytes"), "{stdout}");
}

#[test]
fn knowledge_adds_advisories_and_never_removes_a_block() {
    let blocked = root("5.14.0-687.49.1.el9_8.x86_64", "CONFIG_PCI_P2PDMA=y\n");
    let fine = root("6.9.3-lab", "CONFIG_PCI_P2PDMA=y\n");
    let entry = |id: &str, effect: &str, version: &str| {
        format!(
            "[[advisory]]\nid = \"{id}\"\neffect = \"{effect}\"\nsummary = \"s\"\ndetail = \"d\"\n\
             date = \"2026-11-30\"\nlifted_by = \"l\"\n[advisory.source]\ntitle = \"t\"\n\
             [[advisory.match]]\nversion = \"{version}\"\n"
        )
    };
    write(fine.path(), "block.toml", entry("local-block", "block", "= 6.9.3").as_bytes());
    let weaker = entry("el9_8-memory-corruption", "warn", "= 5.14.0");
    write(blocked.path(), "weaker.toml", weaker.as_bytes());
    write(fine.path(), "broken.toml", b"[[advisory]]\nid = 7\n");

    let local = fine.path().join("block.toml");
    assert_eq!(output(check(fine.path()).arg("-q")).0, 0);
    assert_eq!(output(check(fine.path()).arg("-q").arg("--knowledge").arg(&local)).0, 1);
    assert_eq!(output(check(fine.path()).arg("-q").env("HIPFILE_KNOWLEDGE", &local)).0, 1);
    let weaker = blocked.path().join("weaker.toml");
    let (code, stdout, _) = output(check(blocked.path()).arg("--knowledge").arg(&weaker));
    assert_eq!((code, stdout.starts_with("blocked:")), (1, true), "{stdout}");

    let broken = fine.path().join("broken.toml");
    let (code, stdout, stderr) = output(check(fine.path()).arg("--knowledge").arg(&broken));
    assert_eq!((code, stdout.as_str()), (2, ""));
    assert!(stderr.contains("broken.toml: line 2: "), "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
}

#[test]
fn terminal_control_in_foreign_text_is_shown_and_not_sent() {
    let root = root("6.8.0-142-generic", "CONFIG_PCI_P2PDMA=y\u{1b}[31m\u{7}\n");
    write(
        root.path(),
        "etc/os-release",
        "ID=x\nPRETTY_NAME=\"a\u{1b}]0;title\u{7}b\u{202e}c\"\n".as_bytes(),
    );
    for arguments in [&[][..], &["-v"]] {
        let (_, stdout, _) = output(check(root.path()).args(arguments));
        let control = stdout.chars().find(|&c| c != '\n' && (c.is_control() || c == '\u{202e}'));
        assert_eq!(control, None, "{stdout:?}");
    }
}

#[test]
fn a_snapshot_is_never_written_over_unasked() {
    let root = root("6.8.0-142-generic", &format!("CONFIG_PCI_P2PDMA=y\n{WHOLE}"));
    let archive = root.path().join("s.tar.zst");
    let snapshot = || {
        let mut command = fastpath();
        command.arg("snapshot").arg("--root").arg(root.path()).arg("-o").arg(&archive);
        command
    };
    assert_eq!(output(&mut snapshot()).0, 0);
    let first = fs::read(&archive).expect("the archive");
    let (code, _, stderr) = output(&mut snapshot());
    assert_eq!(code, 2);
    assert!(stderr.contains("exists already") && stderr.contains("hint: "), "{stderr}");
    assert_eq!(fs::read(&archive).expect("the archive"), first);
    assert_eq!(output(snapshot().arg("--force")).0, 0);
    let (code, stdout, stderr) =
        output(fastpath().args(["check", "--layer", "kernel", "--snapshot"]).arg(&archive));
    let (live_code, live, _) = output(&mut check(root.path()));
    assert_eq!((code, &stdout), (live_code, &live));
    assert!(stderr.starts_with("note: snapshot taken ") && stderr.lines().count() == 1, "{stderr}");
    let file = fs::File::open(&archive).expect("the archive");
    let piped =
        output(fastpath().args(["check", "--layer", "kernel", "--snapshot", "-"]).stdin(file));
    assert_eq!(piped.1, live);
}

#[test]
fn every_input_gets_its_json_object_even_one_that_fails() {
    let (code, stdout, stderr) =
        output(fastpath().args(["inspect", "--format", "json", "no-such-file", "."]));
    assert_eq!((code, stderr.lines().count()), (2, 2));
    let answers: Vec<serde_json::Value> =
        stdout.lines().map(|line| serde_json::from_str(line).expect("a JSON object")).collect();
    let inputs: Vec<_> = answers.iter().filter_map(|answer| answer["input"].as_str()).collect();
    assert_eq!(inputs, ["no-such-file", "."]);
    assert!(answers.iter().all(|answer| answer["verdict"] == "unknown"));
    assert!(answers.iter().all(|answer| answer["detail"].is_string()));
}

#[test]
fn another_kernel_than_the_running_one_is_not_answered_with_a_reboot_into_the_running_one() {
    let root = root("6.8.0-142-generic", &format!("CONFIG_PCI_P2PDMA=y\n{WHOLE}"));
    write(root.path(), "boot/vmlinuz-6.8.0-142-generic", b"");
    write(root.path(), "boot/config-5.15.0-194-generic", b"# CONFIG_PCI_P2PDMA is not set\n");
    let (code, stdout, _) = output(check(root.path()).args(["--kernel", "5.15.0-194-generic"]));
    assert_eq!(code, 1);
    assert!(stdout.contains("6.8.0-142-generic, which runs, has the option"), "{stdout}");
    assert!(!stdout.contains("reboot"), "{stdout}");
}

#[test]
fn the_running_kernel_is_judged_by_its_own_witnesses_whichever_kernel_is_asked_about() {
    let root = root("6.8.0-1-generic", "CONFIG_PCI_P2PDMA=y\n");
    write(root.path(), "boot/vmlinuz-6.8.0-1-generic", b"");
    write(root.path(), "boot/config-5.15.0-1-generic", b"# CONFIG_PCI_P2PDMA is not set\n");
    // The file in /boot is stale: the kernel that runs was built without the option.
    write(root.path(), "proc/config.gz", b"# CONFIG_PCI_P2PDMA is not set\n");
    let (_, stdout, _) =
        output(check(root.path()).args(["--kernel", "5.15.0-1-generic", "--format", "json"]));
    let answer: serde_json::Value = serde_json::from_str(&stdout).expect("JSON");
    assert_eq!(answer["kernel"]["installed"][0]["verdict"], "unsupported", "{stdout}");
    assert!(!stdout.contains("has the option"), "{stdout}");
}

#[test]
fn the_driver_of_another_kernel_is_not_the_one_that_runs() {
    let judged = |host: &str, release: &str| {
        let root = format!("{}/../../tests/hosts/{host}/root", env!("CARGO_MANIFEST_DIR"));
        let mut command = fastpath();
        command.args(["check", "--root", &root, "--kernel", release, "--layer", "driver"]);
        let (code, stdout, _) = output(command.args(["--format", "json"]));
        let answer: serde_json::Value = serde_json::from_str(&stdout).expect("JSON");
        let driver = &answer["driver"];
        (code, format!("{} {}", driver["verdict"], driver["reason"]).replace('"', ""))
    };
    for (host, release, code, expected) in [
        ("driver-dkms-ais", "6.8.0-142-generic", 0, "supported ais-ready"),
        // Only the kernel that runs has AMD's driver.
        ("driver-dkms-ais", "6.8.0-138-generic", 1, "unsupported driver-in-tree"),
        ("driver-dkms-ais", "6.8.0-1-generic", 2, "unknown driver-not-running"),
        // Only the kernel that does not run has it.
        ("driver-dkms-other-kernel", "6.8.0-142-generic", 1, "unsupported driver-in-tree"),
        ("driver-dkms-other-kernel", "6.8.0-138-generic", 2, "unknown driver-not-running"),
    ] {
        assert_eq!(judged(host, release), (code, expected.to_owned()), "{host} {release}");
    }
}

#[test]
fn a_link_to_an_image_that_is_gone_is_no_installed_kernel() {
    let root = root("5.15.0-194-generic", "# CONFIG_PCI_P2PDMA is not set\n");
    write(root.path(), "etc/os-release", b"ID=ubuntu\nVERSION_ID=22.04\n");
    write(root.path(), "boot/config-6.8.0-138-generic", b"CONFIG_PCI_P2PDMA=y\n");
    std::os::unix::fs::symlink("/nowhere", root.path().join("boot/vmlinuz-6.8.0-138-generic"))
        .expect("a link");
    let (_, stdout, _) = output(&mut check(root.path()));
    assert!(stdout.contains("ubuntu-22.04-hwe") && !stdout.contains("is installed"), "{stdout}");
}

#[test]
fn a_container_gets_no_remedy_of_its_images_system() {
    let root = root("6.1.0-53-amd64", "# CONFIG_PCI_P2PDMA is not set\n");
    write(root.path(), "etc/os-release", b"ID=debian\nVERSION_ID=13\n");
    write(root.path(), ".dockerenv", b"");
    let (_, stdout, _) = output(&mut check(root.path()));
    assert!(!stdout.contains("backports") && stdout.contains("ask on the host"), "{stdout}");
}

#[test]
fn a_remedy_for_another_architecture_is_none() {
    for (release, os) in [
        ("5.14.0-687.49.1.el9_8.aarch64", "ID=rocky\nVERSION_ID=9.8\n"),
        ("6.12.107+deb13-arm64", "ID=debian\nVERSION_ID=13\n"),
    ] {
        let root = root(release, "# CONFIG_PCI_P2PDMA is not set\n");
        write(root.path(), "etc/os-release", os.as_bytes());
        let (_, stdout, _) = output(&mut check(root.path()));
        assert!(!stdout.contains("x86_64") && !stdout.contains("amd64"), "{stdout}");
    }
}

#[test]
fn an_endless_line_is_not_printed_whole() {
    let config = format!("CONFIG_PCI_P2PDMA=y{}\n", "x".repeat(8 << 20));
    let root = root("6.8.0-142-generic", &config);
    for arguments in [&[][..], &["--format", "json"], &["-v"]] {
        let (code, stdout, _) = output(check(root.path()).args(arguments));
        assert_eq!(code, 2);
        assert!(stdout.len() < 20_000, "{} bytes", stdout.len());
    }
}

#[test]
fn wsl2_is_no_place_for_the_fastpath_whatever_its_kernel_says() {
    let release = "6.12.20.1-microsoft-standard-WSL2";
    let root = root(release, &format!("CONFIG_PCI_P2PDMA=y\n{WHOLE}"));
    let (code, stdout, _) = output(fastpath().args(["check", "--root"]).arg(root.path()));
    assert_eq!(
        (code, stdout.lines().next()),
        (
            1,
            Some(
                "unsupported: this is WSL2: it has no KFD, so the fastpath is out of reach whatever the kernel says"
            )
        )
    );
    let (code, _, _) = output(&mut check(root.path()));
    assert_eq!(code, 0, "the kernel alone is fine");
}

#[test]
fn a_kernel_that_a_snapshot_does_not_know_is_no_damaged_one() {
    let root = root("6.8.0-142-generic", &format!("CONFIG_PCI_P2PDMA=y\n{WHOLE}"));
    let archive = root.path().join("s.tar.zst");
    assert_eq!(
        output(fastpath().arg("snapshot").arg("--root").arg(root.path()).arg("-o").arg(&archive)).0,
        0
    );
    let (code, stdout, _) = output(
        fastpath()
            .args(["check", "--layer", "kernel", "--snapshot"])
            .arg(&archive)
            .args(["--kernel", "6.9.0-1-x"]),
    );
    assert_eq!(
        (code, stdout.lines().next()),
        (2, Some("unknown: the snapshot says nothing about 6.9.0-1-x"))
    );
    assert!(!stdout.contains("warn"), "{stdout}");
}

#[test]
fn check_starts_no_program_opens_no_connection_and_writes_nothing() {
    if Command::new("strace").arg("-V").output().is_err() {
        println!("skipped, because strace is not installed");
        return;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let trace = directory.path().join("trace");
    let program = env!("CARGO_BIN_EXE_fastpath");
    let traced = Command::new("strace")
        .args(["-f", "-o"])
        .arg(&trace)
        .args(["-e", "trace=process,network,desc,file", program, "check", "-q"])
        .output()
        .expect("strace runs");
    let trace = fs::read_to_string(&trace).unwrap_or_default();
    if !trace.contains("execve(") {
        println!(
            "skipped, because strace cannot trace here: {}",
            String::from_utf8_lossy(&traced.stderr)
        );
        return;
    }
    let calls =
        |name: &str| trace.lines().filter(|line| line.contains(&format!(" {name}("))).count();
    assert_eq!(calls("execve"), 1, "only the program itself");
    for name in
        ["socket", "connect", "fork", "vfork", "unlink", "rename", "mkdir", "write", "pwrite64"]
    {
        assert_eq!(calls(name), 0, "{name}");
    }
    for flag in ["O_WRONLY", "O_RDWR", "O_CREAT"] {
        assert!(!trace.contains(flag), "{flag}");
    }
}

#[test]
fn one_file_is_asked_about_by_name() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("model.bin");
    fs::write(&file, "x").expect("a file");
    let (_, stdout, stderr) = output(
        fastpath().args(["check", "--layer", "volume", "--format", "json", "--path"]).arg(&file),
    );
    assert_eq!(stderr, "");
    let answer: serde_json::Value = serde_json::from_str(&stdout).expect("JSON");
    let volumes = answer["volumes"].as_array().expect("a list");
    assert_eq!(volumes.len(), 1, "{stdout}");
    assert_eq!(volumes[0]["mount"], file.to_str().expect("UTF-8"), "{stdout}");
    assert_eq!(volumes[0]["verdict"], answer["verdict"], "{stdout}");
    // A name that is mistyped is no file on the folder's volume.
    let none = directory.path().join("none");
    let (code, stdout, stderr) = output(fastpath().args(["check", "--path"]).arg(&none));
    assert_eq!((code, stdout.as_str()), (2, ""));
    assert!(stderr.contains("No such file") && stderr.lines().count() == 1, "{stderr}");
}

#[test]
fn one_gpu_is_asked_about_by_its_address() {
    let (code, stdout, stderr) = output(fastpath().args(["check", "--gpu", "card0"]));
    assert_eq!((code, stdout.as_str()), (2, ""));
    assert!(stderr.starts_with("error: `card0` is no PCI address"), "{stderr}");
    let host = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/hosts/path-intel-client/root");
    let (code, stdout, stderr) =
        output(fastpath().args(["check", "--root", host, "--gpu", "0000:7f:00.0"]));
    assert_eq!((code, stdout.as_str()), (2, ""));
    assert!(stderr.contains("0000:7f:00.0 is no AMD GPU of this host"), "{stderr}");
}

#[test]
fn a_running_process_is_asked_about() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("open.bin");
    fs::write(&path, "x").expect("a file");
    let mut child = Command::new("sleep")
        .arg("60")
        .env("HIPFILE_FORCE_COMPAT_MODE", "true")
        .stdin(fs::File::open(&path).expect("a file"))
        .spawn()
        .expect("sleep runs");
    let pid = child.id().to_string();
    let (code, stdout, stderr) =
        output(fastpath().args(["check", "--format", "json", "--", pid.as_str()]));
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    assert_eq!((code, stderr.as_str()), (1, ""));
    let answer: serde_json::Value = serde_json::from_str(&stdout).expect("JSON");
    let process = &answer["process"];
    assert_eq!(process["name"], "sleep");
    assert_eq!(process["reason"], "hipfile-not-loaded");
    assert_eq!(process["variables"]["HIPFILE_FORCE_COMPAT_MODE"], "true");
    assert_eq!(process["other_mounts"], false);
    let files = process["files"].as_array().expect("a list");
    let open = files.iter().find(|file| file["fd"] == 0).expect("standard input");
    assert_eq!(open["path"], path.to_str().expect("UTF-8"));
    let (code, _, stderr) = output(fastpath().args(["check", "--", "4194305"]));
    assert_eq!(code, 2);
    assert!(stderr.contains("there is no process 4194305"), "{stderr}");
}

#[test]
fn a_word_that_only_one_library_knows_counts_for_the_one_that_is_loaded() {
    let directory = tempfile::tempdir().expect("a directory");
    let note = r#"__asm__(".section .note.fastpath,\"a\",@note\n.long 9, 0, 1\n.string \"fastpath\"\n.balign 4\n.previous");"#;
    for (code, reason) in [(note, "forced-fallback"), ("int f;", "hipfile-loaded")] {
        let source = directory.path().join("library.c");
        fs::write(&source, code).expect("a file");
        let library = directory.path().join("libhipfile.so.0");
        let built =
            Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).status();
        if !built.is_ok_and(|status| status.success()) {
            #[allow(clippy::print_stderr, reason = "a test that is skipped says so")]
            {
                eprintln!("skipped, because there is no C compiler");
            }
            return;
        }
        let mut child = Command::new("sleep")
            .arg("60")
            .env("HIPFILE_FORCE_COMPAT_MODE", "1")
            .env("LD_PRELOAD", &library)
            .spawn()
            .expect("sleep runs");
        let maps = format!("/proc/{}/maps", child.id());
        let loaded = || fs::read_to_string(&maps).is_ok_and(|maps| maps.contains("libhipfile"));
        for _ in 0..1000 {
            if loaded() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let pid = child.id().to_string();
        let (_, stdout, _) =
            output(fastpath().args(["check", "--format", "json", "--", pid.as_str()]));
        child.kill().expect("it runs");
        child.wait().expect("it ends");
        let answer: serde_json::Value = serde_json::from_str(&stdout).expect("JSON");
        assert_eq!(answer["process"]["reason"], reason, "{stdout}");
    }
}

#[test]
fn a_runtime_that_crashes_when_it_is_loaded_takes_nobody_with_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let source = directory.path().join("crash.c");
    fs::write(&source, "__attribute__((constructor)) void f(void) { *(volatile int *)0 = 1; }\n")
        .expect("a file");
    let library = directory.path().join("libamdhip64.so.7");
    let built =
        Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).status();
    if !built.is_ok_and(|status| status.success()) {
        #[allow(clippy::print_stderr, reason = "a test that is skipped says so")]
        {
            eprintln!("skipped, because there is no C compiler");
        }
        return;
    }
    let (code, stdout, stderr) = output(
        fastpath()
            .args(["check", "--layer", "runtime", "--load-runtime"])
            .env("LD_LIBRARY_PATH", directory.path()),
    );
    assert_eq!((code, stderr.as_str()), (2, ""));
    assert!(stdout.starts_with("unknown: ") && stdout.contains("SIGSEGV"), "{stdout}");
}

#[test]
fn a_container_host_with_many_mounts_is_still_a_container() {
    let root = root("6.8.0-142-generic", "");
    let root_mount = "30 1 0:50 / / rw - overlay overlay rw,lowerdir=/var/lib/docker/overlay2/l/A";
    let pod = |at| format!("{} 30 0:{at} / /run/pods/{at} rw - tmpfs tmpfs rw", 100 + at);
    let lines = std::iter::once(root_mount.to_owned()).chain((0..2000).map(pod));
    let table = lines.collect::<Vec<_>>().join("\n");
    write(root.path(), "proc/self/mountinfo", table.as_bytes());
    let (_, stdout, _) = output(&mut check(root.path()));
    assert!(stdout.contains("kernel-container"), "{stdout}");
}

#[test]
fn spec_10_21_under_the_name_of_ais_check_it_answers_as_that_does() {
    let directory = tempfile::tempdir().expect("a directory");
    let link = directory.path().join("ais-check");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_fastpath"), &link).expect("a link");
    let run = |arguments: &[&str]| output(Command::new(&link).args(arguments));
    let (code, stdout, _) = run(&[]);
    // Nowhere that this runs is there a GPU.
    assert_eq!(code, 1, "{stdout}");
    let lines: Vec<&str> = stdout.lines().collect();
    assert!(stdout.starts_with("\nLinux "), "{stdout}");
    let end = ["AIS support in:", "\tKernel P2PDMA support   : ", "\tHIP runtime             : "];
    let from = lines.len() - 5;
    for (line, start) in lines[from..].iter().zip(end) {
        assert!(line.starts_with(start), "{stdout}");
    }
    assert_eq!(lines[lines.len() - 2], "\tamdgpu                  : False");
    assert_eq!(run(&["-q"]), (1, String::new(), String::new()));
    assert_eq!(run(&["-q", "-v"]).0, 2);
    assert_eq!(run(&["--help"]).0, 0);
}

#[test]
fn a_damaged_file_of_the_survey_stops_no_check() {
    let host = root("6.9.3-lab", &format!("CONFIG_PCI_P2PDMA=y\n{WHOLE}"));
    let data = tempfile::tempdir().expect("a directory");
    write(data.path(), "fastpath/remedies.toml", b"gar[bage");
    let (code, stdout, stderr) = output(check(host.path()).env("XDG_DATA_HOME", data.path()));
    assert_eq!(code, 0, "{stdout}{stderr}");
    assert!(
        stderr.starts_with("warning: ") && stderr.contains("remedies.toml: line 1"),
        "{stderr}"
    );
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
}

#[test]
fn the_targets_are_listed() {
    let (code, stdout, _) = output(fastpath().args(["survey", "--list"]));
    assert_eq!(code, 0);
    for name in ["debian-13-backports", "rhel-9.8", "ubuntu-2204-hwe", "arch"] {
        assert!(stdout.contains(name), "{stdout}");
    }
    let (code, _, stderr) = output(fastpath().args(["survey", "nosuch"]));
    assert_eq!(code, 2);
    assert!(stderr.contains("survey --list"), "{stderr}");
}

fn mkfifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().expect("mkfifo starts").success());
}

#[test]
fn a_pipe_is_read_once_and_answers_like_a_file() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let pipe = folder.path().join("pipe");
    mkfifo(&pipe);
    for (text, code, expected) in [
        (
            "hello\n",
            2,
            "unknown: malformed, not a kernel configuration: no CONFIG_ line in 6 bytes",
        ),
        ("CONFIG_PCI_P2PDMA=y\n", 0, "supported: line 1: CONFIG_PCI_P2PDMA=y"),
        ("", 2, "unknown: empty"),
    ] {
        let to = pipe.clone();
        let writer = std::thread::spawn(move || fs::write(to, text));
        let (found, stdout, stderr) = output(fastpath().arg("inspect").arg(&pipe));
        writer.join().expect("it does not panic").expect("the pipe is read to its end");
        assert_eq!((found, stderr.as_str()), (code, ""));
        assert_eq!(stdout, format!("{}: {expected}\n", pipe.display()));
    }
}

#[test]
fn a_device_is_refused_and_not_read() {
    let (code, stdout, stderr) = output(fastpath().args(["inspect", "/dev/zero", "/dev/tty"]));
    let detail = "a character device or socket; expected a file";
    let expected = format!("error: /dev/zero: {detail}\nerror: /dev/tty: {detail}\n");
    assert_eq!((code, stdout.as_str(), stderr), (2, "", expected));
}

#[test]
fn an_error_names_its_input_once_and_as_it_was_named() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let at = |name: &str| folder.path().join(name).display().to_string();
    fs::write(at("junk"), [0_u8, 1, 2, 3]).expect("writing");
    write(folder.path(), "boot/config-6.1.0-a", b"");
    let mut tar = Command::new("tar");
    tar.current_dir(&folder).args(["-cf", "e.tar", "boot"]);
    assert!(tar.status().expect("tar starts").success());
    let (_, _, stderr) =
        output(fastpath().args(["inspect", &at("junk"), &at("e.tar"), "ftp://h/x"]));
    let expected = [
        format!(
            "error: {}: the content cannot be read: neither a kernel nor a known container",
            at("junk")
        ),
        format!(
            "warning: {}!boot/config-6.1.0-a: damaged configuration at offset 0: empty",
            at("e.tar")
        ),
        format!("error: {}: no kernel was found in it, 10240 bytes were read", at("e.tar")),
        "error: ftp://h/x: expected http, https, file or a path, found `ftp`".to_owned(),
    ];
    assert_eq!(stderr.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn the_words_for_nesting_and_for_disk_images_are_not_those_for_configurations() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let at = |name: &str| folder.path().join(name).display().to_string();
    fs::write(at("deep"), b"CONFIG_PCI_P2PDMA=y\n").expect("writing");
    for _ in 0..9 {
        let packed = Command::new("gzip").args(["-c", &at("deep")]).output().expect("gzip runs");
        fs::write(at("deep"), packed.stdout).expect("writing");
    }
    fs::write(at("x.vhdx"), [&b"vhdxfileQ\0E\0"[..], &[0; 4096]].concat()).expect("writing");
    let (code, stdout, stderr) = output(fastpath().args(["inspect", &at("deep"), &at("x.vhdx")]));
    assert_eq!((code, stdout.as_str()), (2, ""));
    let deep = format!("error: {}: more than 8 levels", at("deep"));
    let vhdx = "a VHDX image cannot be read: convert it to qcow2 or raw";
    let vhdx = format!("error: {}: {vhdx}", at("x.vhdx"));
    assert_eq!(stderr.lines().collect::<Vec<_>>(), [deep, vhdx]);
}

#[test]
fn blobs_of_a_layout_are_regular_files_inside_of_it_and_damaged_ones_are_told() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let layout = folder.path().join("layout");
    write(&layout, "oci-layout", b"{}");
    write(
        &layout,
        "index.json",
        br#"{"manifests": [{"digest": "sha256:0"}, {"digest": "sha256:../../x"}]}"#,
    );
    write(
        &layout,
        "blobs/sha256/0",
        br#"{"layers": [{"digest": "sha256:1"}, {"digest": "sha256:9"}]}"#,
    );
    write(&layout, "blobs/sha256/1", &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0xff, 0xff]);
    mkfifo(&layout.join("blobs/sha256/2"));
    let link = |to: &Path, name: &str| {
        std::os::unix::fs::symlink(to, layout.join("blobs/sha256").join(name)).expect("a link");
    };
    link(Path::new("/dev/zero"), "3");
    write(folder.path(), "outside", b"CONFIG_PCI_P2PDMA=y\n");
    link(&folder.path().join("outside"), "4");
    let (code, stdout, stderr) = output(fastpath().arg("inspect").arg(&layout));
    assert_eq!((code, stdout.as_str()), (2, ""));
    let shown = layout.display();
    let outside = "a blob outside of the folder cannot be read: refused";
    let expected = [
        format!("warning: {shown}: it has no blob `sha256:../../x`"),
        format!("warning: {shown}: it has no blob `sha256:9`"),
        format!(
            "warning: {shown}!blobs/sha256/1: damaged gzip at offset 11: corrupt deflate stream"
        ),
        format!("warning: {shown}!blobs/sha256/2: expected a regular file"),
        format!("warning: {shown}!blobs/sha256/3: {outside}"),
        format!("warning: {shown}!blobs/sha256/4: {outside}"),
    ];
    let lines: Vec<&str> = stderr.lines().collect();
    assert_eq!(lines[..6], expected);
    assert!(lines[6].contains("no kernel was found in it"), "{stderr}");
    assert_eq!(lines.len(), 7);
}

#[test]
fn one_undecided_kernel_leaves_its_input_undecided() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    write(folder.path(), "boot/config-6.1.0-a", b"# CONFIG_PCI_P2PDMA is not set\n");
    write(folder.path(), "boot/config-6.1.0-b", b"CONFIG_X=y\n");
    let mut tar = Command::new("tar");
    tar.current_dir(&folder).args(["-cf", "e.tar", "boot"]);
    assert!(tar.status().expect("tar starts").success());
    let (code, stdout, _) = output(fastpath().arg("inspect").arg(folder.path().join("e.tar")));
    assert_eq!((code, stdout.matches(": unsupported: ").count()), (2, 1), "{stdout}");
}

#[test]
fn the_release_in_an_address_ends_before_the_query() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let server = server::Server::start(folder.path());
    let content = server::Fault::Content(b"CONFIG_PCI_P2PDMA=y\n".to_vec());
    server.fault("config-6.8.0-x?a=b/c", content);
    let (code, stdout, stderr) =
        output(fastpath().arg("inspect").arg(server.url("config-6.8.0-x?a=b/c")));
    assert_eq!((code, stderr.as_str()), (0, ""));
    assert!(stdout.ends_with("\n  kernel    6.8.0-x\n"), "{stdout}");
}

#[test]
fn the_newest_row_of_each_target_is_compared_with_the_published_one() {
    let row = |run: &str, target: &str, release: &str, value: &str| {
        let supported = if value == "y" { "supported" } else { "unsupported" };
        serde_json::json!({
            "schema": "fastpath.survey/1", "run": run, "target": target, "id": target, "distribution": "D",
            "distribution_version": "1", "flavour": "default", "release": release, "value": value,
            "verdict": supported, "companions": {}, "advisories": [], "method": "m", "time": run, "tool": "t",
            "bytes_read": 0, "index_bytes": 0
        })
        .to_string()
    };
    let directory = tempfile::tempdir().expect("a directory");
    let data = directory.path().join("survey.jsonl");
    let rows = [
        row("2026-01-01T00:00:00Z", "debian-13", "6.12.200+deb13-amd64", "y"),
        row("2026-01-02T00:00:00Z", "debian-12", "6.1.0-53-amd64", "not set"),
    ];
    fs::write(&data, rows.join("\n") + "\n").expect("a file");
    let (code, stdout, stderr) =
        output(fastpath().args(["survey", "--diff", "published", "--data"]).arg(&data));
    assert_eq!(code, 1, "{stdout}{stderr}");
    assert!(stdout.contains("debian-13: P2PDMA flipped: No -> Yes"), "{stdout}");
    assert!(!stdout.contains("debian-12"), "nothing changed there: {stdout}");
}
