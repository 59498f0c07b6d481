//! Copies from and to what is not an ordinary file, and copies that cannot be finished.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};

use super::{Host, SIMULATION, bytes, link, names, output, wait_until};

/// The words to run a program with as somebody who may do little; the folders of the host are opened for them.
fn as_nobody(host: &Host) -> Option<Vec<&'static str>> {
    let words = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
    let mut probe = Command::new(words[0]);
    probe.args(&words[1..]).args(["test", "-x", env!("CARGO_BIN_EXE_fastpath")]);
    let probe = probe.output();
    if !probe.is_ok_and(|output| output.status.success()) {
        println!("skipped, because nobody else's rights can be had here");
        return None;
    }
    for folder in [&host.sim, &host.root, &host.data] {
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("a mode");
    }
    Some(words.to_vec())
}

/// `fastpath cp -q`, or what else the words before it make of it.
fn cp(host: &Host, before: &[&str]) -> Command {
    let mut words = before.iter().copied().chain([env!("CARGO_BIN_EXE_fastpath"), "cp", "-q"]);
    let mut command = host.program(Path::new(words.next().expect("a program")), "");
    command.args(words).arg("--root").arg(host.root.path());
    command
}

#[test]
fn cp_copies_whole_files_of_any_size_with_their_mode_and_says_the_way() {
    use std::os::unix::fs::PermissionsExt as _;
    let host = Host::new();
    for length in [1, 4095, 4096, 4097, (16 << 20) + 1] {
        let (source, copy) = (host.path("source"), host.path("copy"));
        fs::write(&source, bytes(length)).expect("a file");
        fs::set_permissions(&source, fs::Permissions::from_mode(0o751)).expect("a mode");
        let (code, out, error) = output(host.command("cp").arg(&source).arg(&copy));
        let said = format!("{SIMULATION}copied {length} bytes: read and written by the fastpath\n");
        assert_eq!((code, out.as_str(), error), (0, "", said));
        assert!(fs::read(&copy).expect("the copy") == bytes(length), "{length}");
        assert_eq!(fs::metadata(&copy).expect("the copy").permissions().mode() & 0o7777, 0o751);
        // Over a longer one, and into it.
        fs::write(&copy, bytes(length + 10_000)).expect("a file");
        let (code, _, error) =
            output(host.command("cp").args(["-q", "--in-place"]).arg(&source).arg(&copy));
        assert_eq!((code, error.as_str()), (0, ""));
        assert!(fs::read(&copy).expect("the copy") == bytes(length), "{length}");
        assert_eq!(names(host.data.path()), ["copy", "source"]);
    }
    let (_, _, error) = output(
        host.command("cp")
            .arg(host.path("source"))
            .arg(host.path("copy"))
            .env("HIPFILE_FORCE_COMPAT_MODE", "1"),
    );
    let why = "the fallback (HIPFILE_FORCE_COMPAT_MODE is set)";
    let said = format!("{SIMULATION}copied 16777217 bytes: read and written by {why}\n");
    assert_eq!(error, said);
}

#[test]
fn cp_into_a_folder_and_over_a_link_and_never_over_itself() {
    let host = Host::new();
    let (source, folder, real) = (host.path("source"), host.path("folder"), host.path("real"));
    fs::write(&source, bytes(5000)).expect("a file");
    fs::create_dir(&folder).expect("a folder");
    fs::write(&real, b"old").expect("a file");
    std::os::unix::fs::symlink(&real, host.path("link")).expect("a link");
    let cp = |to: &Path| output(host.command("cp").arg("-q").arg(&source).arg(to));
    assert_eq!(cp(&folder).0, 0);
    assert!(fs::read(folder.join("source")).expect("the copy") == bytes(5000));
    assert_eq!(cp(&host.path("link")).0, 0);
    assert!(fs::symlink_metadata(host.path("link")).expect("it").is_symlink());
    assert!(fs::read(&real).expect("the copy") == bytes(5000));
    let (code, _, error) = cp(&source);
    let name = source.display();
    assert_eq!((code, error), (2, format!("error: {name} and {name} are the same file\n")));
    assert!(fs::read(&source).expect("the source") == bytes(5000));
}

/// Spec: an empty source left the destination as it was.
#[test]
fn spec_10_20_an_empty_source_makes_an_empty_copy_without_a_gpu() {
    let host = Host::new();
    let (source, copy) = (host.path("source"), host.path("copy"));
    fs::write(&source, b"").expect("a file");
    for more in [&[][..], &["--in-place"]] {
        fs::write(&copy, b"old").expect("a file");
        let mut command = host.command("cp");
        command.args(more).arg(&source).arg(&copy).env_remove("LD_LIBRARY_PATH");
        assert_eq!(output(&mut command), (0, String::new(), "copied 0 bytes\n".to_owned()));
        assert_eq!(fs::read(&copy).expect("the copy"), b"");
    }
}

#[test]
fn a_copy_that_fails_leaves_what_was_there() {
    let host = Host::new();
    let (source, copy) = (host.path("source"), host.path("copy"));
    fs::write(&source, bytes(40 << 20)).expect("a file");
    fs::write(&copy, b"old").expect("a file");
    let mut command = host.command("cp");
    command.arg(&source).arg(&copy).env("HIPSIM_FAULT", "hipAmdFileWrite:2=errno:5");
    let (code, out, error) = output(&mut command);
    let expected = format!(
        "{SIMULATION}error: {}: write: hipAmdFileRead/Write: Input/output error (os error 5)\n",
        copy.display()
    );
    assert_eq!((code, out.as_str(), error), (2, "", expected));
    assert_eq!(fs::read(&copy).expect("the old one"), b"old");
    // What fails names what failed: the source, or no file at all.
    let (_, _, error) = output(command.env("HIPSIM_FAULT", "hipAmdFileRead:2=errno:5"));
    let begin = format!("{SIMULATION}error: {}: read: hipAmdFileRead/Write: ", source.display());
    assert!(error.starts_with(&begin), "{error}");
    let (_, _, error) = output(command.env_remove("HIPSIM_FAULT").env("HIPSIM_DEVICES", "0"));
    assert!(error.starts_with(&format!("{SIMULATION}error: hipMalloc: ")), "{error}");
    assert_eq!(fs::read(&copy).expect("the old one"), b"old");
    assert_eq!(names(host.data.path()), ["copy", "source"]);
}

/// Spec: success was reported although the length could not be set.
#[test]
fn aiscp_takes_two_arguments_and_fails_with_1() {
    let host = Host::new();
    let aiscp = link(&host, "aiscp");
    let (source, copy) = (host.path("source"), host.path("copy"));
    fs::write(&source, bytes(12_345)).expect("a file");
    let mut command = host.program(&aiscp, "");
    assert_eq!(output(command.arg(&source).arg(&copy)), (0, String::new(), String::new()));
    assert!(fs::read(&copy).expect("the copy") == bytes(12_345));
    let (code, out, error) = output(host.program(&aiscp, "").arg(&source));
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(error.contains("Usage: aiscp <SOURCE> <DEST>\n"), "{error}");
    let (code, out, error) = output(host.program(&aiscp, "").arg("--help"));
    assert_eq!((code, error.as_str()), (0, ""));
    assert!(
        out.contains("Usage: aiscp <SOURCE> <DEST>\n") && out.contains("Example:\n  aiscp "),
        "{out}"
    );
    let (code, _, error) = output(host.program(&aiscp, "").arg(host.path("none")).arg(&copy));
    let expected =
        format!("error: {}: No such file or directory (os error 2)\n", host.path("none").display());
    assert_eq!((code, error), (1, expected));
    let (code, _, _) = output(host.program(&aiscp, "").args(["a", "b", "c"]));
    assert_eq!(code, 1);
}

#[test]
fn what_has_no_offsets_is_neither_source_nor_copy() {
    let host = Host::new();
    let (source, pipe) = (host.path("source"), host.path("pipe"));
    fs::write(&source, bytes(10)).expect("a file");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo runs").success());
    let refused = |path: &Path| {
        let what = "neither a regular file nor a block device";
        (2, String::new(), format!("error: {}: {what}\n", path.display()))
    };
    for odd in [&pipe, Path::new("/dev/null"), host.data.path()] {
        assert_eq!(output(cp(&host, &[]).arg(odd).arg(host.path("copy"))), refused(odd));
    }
    for odd in [&pipe, Path::new("/dev/null")] {
        assert_eq!(output(cp(&host, &[]).arg(&source).arg(odd)), refused(odd));
    }
    // In the folder there is a folder of that name.
    let (folder, inner) = (host.path("folder"), host.path("folder/source"));
    fs::create_dir_all(&inner).expect("folders");
    assert_eq!(output(cp(&host, &[]).arg(&source).arg(&folder)), refused(&inner));
    let aiscp = link(&host, "aiscp");
    let (code, _, error) = output(host.program(&aiscp, "").arg(&source).arg(&pipe));
    assert_eq!((code, error), (1, refused(&pipe).2));
}

#[test]
fn what_cannot_be_copied_to_or_from_is_known_before_a_byte_is_moved() {
    let host = Host::new();
    let (source, link) = (host.path("source"), host.path("link"));
    fs::write(&source, bytes(10)).expect("a file");
    std::os::unix::fs::symlink("nowhere", &link).expect("a link");
    let error = |from: &Path, to: &Path| {
        let mut command = cp(&host, &[]);
        // Whatever needs a GPU would say that there is none.
        let (code, out, error) = output(command.arg(from).arg(to).env_remove("LD_LIBRARY_PATH"));
        assert_eq!((code, out.as_str()), (2, ""));
        error
    };
    let folder = host.path("folder");
    let absent = format!("error: {}: No such file or directory (os error 2)\n", folder.display());
    assert_eq!(error(&source, &folder.join("copy")), absent);
    let slash = host.path("folder/");
    assert_eq!(
        error(&source, &slash),
        format!("error: {}: there is no such folder\n", slash.display())
    );
    assert_eq!(
        error(&source, &link),
        format!("error: {}: a link that leads nowhere\n", link.display())
    );
    let said = "error: /proc/version: expected no bytes, as its size says, but there are some\n";
    assert_eq!(error(Path::new("/proc/version"), &host.path("copy")), said);
    assert_eq!(names(host.data.path()), ["link", "source"]);
}

/// Spec: success was reported although the length could not be set.
#[test]
fn a_length_that_cannot_be_set_is_an_error() {
    let host = Host::new();
    let source = host.path("source");
    fs::write(&source, bytes(100)).expect("a file");
    let memory = File::from(memfd_create("copy", MemfdFlags::ALLOW_SEALING).expect("memory"));
    memory.write_all_at(&[7; 8192], 0).expect("it is written");
    fcntl_add_seals(&memory, SealFlags::SHRINK).expect("a seal");
    let copy = format!("/proc/{}/fd/{}", std::process::id(), memory.as_raw_fd());
    let (code, out, error) = output(cp(&host, &[]).arg("--in-place").arg(&source).arg(&copy));
    let said =
        format!("error: {copy}: set the length to 100: Operation not permitted (os error 1)\n");
    assert_eq!((code, out.as_str(), error), (2, "", said));
}

#[test]
fn a_limit_of_the_files_size_is_said_and_the_old_copy_stays() {
    let host = Host::new();
    let (source, copy) = (host.path("source"), host.path("copy"));
    // A byte behind the limit of 80 MiB, which the simulated GPU's memory has to stay below too.
    let file = File::create(&source).expect("a file");
    file.write_all_at(&bytes(10_000), 200 << 20).expect("it is written");
    fs::write(&copy, b"old").expect("a file");
    let limited = ["sh", "-c", "ulimit -f 163840; exec \"$@\"", "sh"];
    for in_fallback in ["false", "true"] {
        let mut command = cp(&host, &limited);
        command
            .arg(&source)
            .arg(&copy)
            .env("HIPFILE_FORCE_COMPAT_MODE", in_fallback)
            .env("HIPSIM_VRAM_MIB", "32");
        let (code, out, error) = output(&mut command);
        assert_eq!((code, out.as_str()), (2, ""), "{error}");
        let begin = format!("error: {}: write", copy.display());
        assert!(
            error.starts_with(&begin) && error.ends_with("File too large (os error 27)\n"),
            "{error}"
        );
        assert_eq!(error.lines().count(), 1, "{error}");
        assert_eq!(fs::read(&copy).expect("the old one"), b"old");
        assert_eq!(names(host.data.path()), ["copy", "source"]);
    }
}

#[test]
fn a_full_file_system_is_said_and_the_old_copy_stays() {
    let host = Host::new();
    let (source, mount) = (host.path("source"), host.path("mount"));
    fs::create_dir(&mount).expect("a folder");
    fs::write(&source, bytes(40 << 20)).expect("a file");
    // Mounted in a namespace of the script's own, which ends with it.
    let script = "mount -t tmpfs -o size=20m tmpfs \"$1\" || exit 77; cd \"$1\"; shift; printf old > copy; \"$@\" copy; \
                  echo \"$? $(cat copy) $(ls -A)\"";
    let mut command = cp(
        &host,
        &["unshare", "--mount", "sh", "-c", script, "sh", mount.to_str().expect("UTF-8")],
    );
    let (code, out, error) = output(command.arg(&source).env("HIPSIM_AIS", "old"));
    if code != 0 {
        println!("skipped, because mounts cannot be made here: {error}");
        return;
    }
    assert_eq!(out, "2 old copy\n");
    let copy = mount.join("copy");
    let full = "write: hipAmdFileRead/Write: No space left on device (os error 28)";
    assert_eq!(error, format!("error: {}: {full}\n", copy.display()));
}

#[test]
fn bench_and_verify_say_what_they_have_no_room_for() {
    let host = Host::new();
    let mount = host.path("mount");
    fs::create_dir(&mount).expect("a folder");
    let script =
        "mount -t tmpfs -o size=20m tmpfs \"$1\" || exit 77; exec \"$2\" $3 --root \"$4\" \"$1\"";
    let run = |what: &str| {
        let mut command = host.program(Path::new("unshare"), "");
        command.args(["--mount", "sh", "-c", script, "sh"]).arg(&mount);
        let command = command.arg(env!("CARGO_BIN_EXE_fastpath")).arg(what).arg(host.root.path());
        output(command)
    };
    let (code, _, error) = run("bench --block 64M");
    if code != 2 {
        println!("skipped, because mounts cannot be made here: {error}");
        return;
    }
    let full = "No space left on device (os error 28)";
    let said = format!("{SIMULATION}error: {}: a file of 64 MiB: {full}\n", mount.display());
    assert_eq!(error, said);
    let (code, _, error) = run("verify --fallback-only");
    let said = format!(
        "{SIMULATION}error: write by the fallback at offset 0: expected 25165824 bytes, 20971520 were moved: {full}\n"
    );
    assert_eq!((code, error), (2, said));
}

/// Starts a slow copy into a file that is there, and waits for its first bytes.
fn begun(host: &Host, quiet: bool) -> std::process::Child {
    let (source, copy) = (host.path("source"), host.path("copy"));
    fs::write(&source, bytes(40 << 20)).expect("a file");
    fs::write(&copy, b"").expect("a file");
    let mut command = host.command("cp");
    command.args(quiet.then_some("-q")).arg("--in-place").arg(&source).arg(&copy);
    let command =
        command.env("HIPSIM_AIS_GBPS", "0.05").stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().expect("it starts");
    wait_until("a byte is copied", || fs::metadata(&copy).expect("the copy").len() > 0);
    child
}

#[test]
fn a_source_that_shrinks_is_an_error_and_one_that_grows_is_said() {
    let host = Host::new();
    let source = host.path("source");
    let child = begun(&host, true);
    File::options()
        .write(true)
        .open(&source)
        .and_then(|file| file.set_len(20 << 20))
        .expect("it shrinks");
    let ended = child.wait_with_output().expect("it ends");
    let said = format!("error: {}: ended at 20971520, expected 41943040 bytes\n", source.display());
    assert_eq!(
        (ended.status.code(), String::from_utf8_lossy(&ended.stderr).as_ref()),
        (Some(2), said.as_str())
    );

    let child = begun(&host, false);
    File::options()
        .append(true)
        .open(&source)
        .and_then(|mut file| file.write_all(b"more"))
        .expect("it grows");
    let ended = child.wait_with_output().expect("it ends");
    let said = format!(
        "{SIMULATION}copied 41943040 bytes: read and written by the fastpath\n\
         warning: {} has grown to 41943044 bytes meanwhile\n",
        source.display()
    );
    assert_eq!(
        (ended.status.code(), String::from_utf8_lossy(&ended.stderr).as_ref()),
        (Some(0), said.as_str())
    );
    assert!(fs::read(host.path("copy")).expect("the copy") == bytes(40 << 20));
}

#[test]
fn a_source_that_may_not_be_read_is_said_and_nothing_is_made() {
    let host = Host::new();
    let source = host.path("source");
    fs::write(&source, bytes(100)).expect("a file");
    let Some(nobody) = as_nobody(&host) else { return };
    fs::set_permissions(host.data.path(), fs::Permissions::from_mode(0o777)).expect("a mode");
    fs::set_permissions(&source, fs::Permissions::from_mode(0o600)).expect("a mode");
    let (code, out, error) = output(cp(&host, &nobody).arg(&source).arg(host.path("copy")));
    let said = format!("error: {}: Permission denied (os error 13)\n", source.display());
    assert_eq!((code, out.as_str(), error), (2, "", said));
    assert_eq!(names(host.data.path()), ["source"]);
}

/// Offsets beyond 4 GiB, with bytes only around them; what is a hole stays one.
#[test]
fn a_sparse_file_beyond_4_gib_stays_sparse() {
    let host = Host::new();
    let (source, copy) = (host.path("source"), host.path("copy"));
    let at = [0, (1 << 32) - 3, (5 << 30) + 1];
    let file = File::create(&source).expect("a file");
    for offset in at {
        file.write_all_at(&bytes(10_000), offset).expect("it is written");
    }
    file.set_len((6 << 30) + 1).expect("a length");
    if file.metadata().expect("it").blocks() > 1000 {
        println!("skipped, because this file system has no holes");
        return;
    }
    let (code, _, error) = output(host.command("cp").arg(&source).arg(&copy));
    let said = format!("{SIMULATION}copied 6442450945 bytes: read and written by the fastpath\n");
    assert_eq!((code, error), (0, said));
    let made = File::open(&copy).expect("the copy");
    assert_eq!(made.metadata().expect("it").len(), (6 << 30) + 1);
    assert!(made.metadata().expect("it").blocks() < 1000, "it is no longer sparse");
    for offset in at {
        let mut found = vec![0; 10_000 + 8192];
        let begin = u64::max(offset, 4096) - 4096;
        made.read_exact_at(&mut found, begin).expect("it is as long");
        let before = usize::try_from(offset - begin).expect("a page at most");
        assert!(found[..before].iter().all(|byte| *byte == 0), "{offset}");
        assert!(found[before..before + 10_000] == bytes(10_000), "{offset}");
        assert!(found[before + 10_000..].iter().all(|byte| *byte == 0), "{offset}");
    }
    // Into a file that is there, holes are written.
    let (source, copy) = (host.path("hole"), host.path("old"));
    File::create(&source).and_then(|file| file.set_len(100_000)).expect("a hole");
    fs::write(&copy, bytes(200_000)).expect("a file");
    assert_eq!(output(cp(&host, &[]).arg("--in-place").arg(&source).arg(&copy)).0, 0);
    assert!(fs::read(&copy).expect("the copy") == vec![0; 100_000]);
    let (_, _, error) = output(host.command("cp").arg(&source).arg(&copy));
    assert_eq!(error, format!("{SIMULATION}copied 100000 bytes: all of it a hole\n"));
    assert!(fs::read(&copy).expect("the copy") == vec![0; 100_000]);
}

/// AMD's writes into the file that is there; scripts may use it where that is all that may be done.
#[test]
fn aiscp_writes_into_a_file_whose_folder_takes_no_new_ones() {
    let host = Host::new();
    let aiscp = link(&host, "aiscp");
    let (source, copy) = (host.path("source"), host.path("copy"));
    fs::write(&source, bytes(5000)).expect("a file");
    fs::write(&copy, bytes(10_000)).expect("a file");
    let Some(nobody) = as_nobody(&host) else { return };
    for (path, mode) in [(&source, 0o644), (&copy, 0o666)] {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("a mode");
    }
    let inode = fs::metadata(&copy).expect("the copy").ino();
    let mut command = host.program(Path::new(nobody[0]), "");
    command.args(&nobody[1..]).arg(&aiscp).arg(&source).arg(&copy);
    assert_eq!(output(&mut command), (0, String::new(), String::new()));
    assert!(fs::read(&copy).expect("the copy") == bytes(5000));
    assert_eq!(fs::metadata(&copy).expect("the copy").ino(), inode);
    let (code, _, error) = output(cp(&host, &nobody).arg(&source).arg(&copy));
    assert!(code == 2 && error.contains("Permission denied"), "{error}");
}

/// A loop device over a file, as long as the value lives.
struct Loop(String);

impl Loop {
    fn new(image: &Path) -> Option<Self> {
        let made = Command::new("losetup").args(["--find", "--show"]).arg(image).output().ok()?;
        made.status.success().then(|| Self(String::from_utf8_lossy(&made.stdout).trim().to_owned()))
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["--detach", &self.0]).status();
    }
}

#[test]
fn block_devices_are_copied_from_and_to_and_keep_what_stands_behind() {
    let host = Host::new();
    let (source, image, copy) = (host.path("source"), host.path("image"), host.path("copy"));
    fs::write(&source, bytes(10_000)).expect("a file");
    fs::write(&image, vec![9; 1 << 20]).expect("an image");
    let Some(device) = Loop::new(&image) else {
        println!("skipped, because there are no loop devices here");
        return;
    };
    let path = Path::new(&device.0);
    assert_eq!(output(cp(&host, &[]).arg(&source).arg(path)), (0, String::new(), String::new()));
    assert_eq!(output(cp(&host, &[]).arg(path).arg(&copy)), (0, String::new(), String::new()));
    let found = fs::read(&copy).expect("the copy");
    assert_eq!(found.len(), 1 << 20);
    assert!(found[..10_000] == bytes(10_000) && found[10_000..].iter().all(|byte| *byte == 9));
    // Who may use the device is nobody's business there.
    assert_eq!(fs::metadata(&copy).expect("the copy").permissions().mode() & 0o7777, 0o600);

    fs::write(&source, bytes((1 << 20) + 1)).expect("a file");
    let said = format!("error: {}: expected room for 1048577 bytes, found 1048576\n", device.0);
    assert_eq!(output(cp(&host, &[]).arg(&source).arg(path)), (2, String::new(), said));
    let other = host.path("other");
    assert!(
        Command::new("cp").arg("-a").arg(path).arg(&other).status().expect("cp runs").success()
    );
    let said = format!("error: {} and {} are the same file\n", device.0, other.display());
    assert_eq!(output(cp(&host, &[]).arg(path).arg(&other)), (2, String::new(), said));
}
