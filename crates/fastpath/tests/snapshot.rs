//! `fastpath snapshot`, as a program among others: where it writes, and what is left when it may not.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

const CONFIG: &str = "CONFIG_PCI=y\nCONFIG_PCI_P2PDMA=y\nCONFIG_DEBUG_KERNEL=y\n";

fn root() -> TempDir {
    let root = TempDir::new().unwrap();
    for (path, text) in [
        ("proc/sys/kernel/osrelease", "6.8.0-142-generic\n"),
        ("etc/os-release", "ID=ubuntu\n"),
        ("boot/config-6.8.0-142-generic", CONFIG),
    ] {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    root
}

fn snapshot(root: &Path, output: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fastpath"));
    command.arg("snapshot").arg("--root").arg(root).arg("-o").arg(output);
    command
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_closed_standard_output_is_an_error() {
    let root = root();
    let mut shell = Command::new("sh");
    shell.args(["-c", "exec \"$0\" snapshot --root \"$1\" -o - >&-"]);
    let output = shell.arg(env!("CARGO_BIN_EXE_fastpath")).arg(root.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).starts_with("error: standard output: closed"), "{}", stderr(&output));
    let piped = snapshot(root.path(), Path::new("-")).output().unwrap();
    assert_eq!(piped.status.code(), Some(0), "{}", stderr(&piped));
    assert!(piped.stdout.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]));
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = snapshot(root.path(), Path::new("-")).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    let unasked = snapshot(root.path(), Path::new("-")).stdout(Stdio::null()).output().unwrap();
    assert_eq!(unasked.status.code(), Some(0), "who wants it lost says so");
}

#[test]
fn a_link_to_nowhere_is_refused_in_one_line() {
    let (root, out) = (root(), TempDir::new().unwrap());
    let link = out.path().join("link");
    symlink("nowhere", &link).unwrap();
    let output = snapshot(root.path(), &link).arg("-f").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let text = stderr(&output);
    assert!(text.contains("a link to what is not there") && text.lines().count() == 2, "{text}");
    assert!(link.is_symlink());
    assert_eq!(names(out.path()), ["link"]);
}

#[test]
fn an_archive_is_only_its_owners() {
    let (root, out) = (root(), TempDir::new().unwrap());
    let path = out.path().join("s.tar.zst");
    for force in [&[][..], &["-f"]] {
        let output = snapshot(root.path(), &path).args(force).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o600);
        assert_eq!(names(out.path()), ["s.tar.zst"]);
    }
}
