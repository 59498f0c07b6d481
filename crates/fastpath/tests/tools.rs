//! The commands that move bytes, each as a whole program with the simulated HIP runtime where a loader finds the real one.

use std::fs;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

/// A program beside a simulated GPU, on a host whose kernel says nothing, so that the driver decides.
struct Host {
    sim: TempDir,
    root: TempDir,
    data: TempDir,
}

impl Host {
    fn new() -> Self {
        let folder = || tempfile::tempdir().expect("a folder");
        let host = Self { sim: folder(), root: folder(), data: folder() };
        hip_sim::layout::lay_out(host.sim.path()).expect("a layout");
        host
    }

    fn path(&self, name: &str) -> PathBuf {
        self.data.path().join(name)
    }

    fn program(&self, program: &Path, command: &str) -> Command {
        let mut it = Command::new(program);
        for (name, _) in std::env::vars_os() {
            if name
                .to_str()
                .is_some_and(|name| name.starts_with("HIPFILE_") || name.starts_with("HIPSIM_"))
            {
                it.env_remove(name);
            }
        }
        it.env("LD_LIBRARY_PATH", self.sim.path())
            .env("HIPSIM_QUIET", "1")
            .env("HIPFILE_UNSUPPORTED_FILE_SYSTEMS", "true")
            .env("NO_COLOR", "1");
        if !command.is_empty() {
            it.arg(command);
        }
        it
    }

    fn command(&self, command: &str) -> Command {
        let mut it = self.program(Path::new(env!("CARGO_BIN_EXE_fastpath")), command);
        it.arg("--root").arg(self.root.path());
        it
    }
}

fn output(command: &mut Command) -> (i32, String, String) {
    let Output { status, stdout, stderr } = command.output().expect("the program starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("output is UTF-8");
    (status.code().expect("it ends by itself"), text(stdout), text(stderr))
}

const SIMULATION: &str =
    "SIMULATION: the HIP runtime is a simulation; this says nothing about any GPU\n";

#[test]
fn bench_measures_every_way_and_leaves_nothing() {
    let host = Host::new();
    let mut command = host.command("bench");
    command.arg(host.data.path()).args([
        "--quick",
        "--threads",
        "1,2",
        "--block",
        "4K,64K",
        "--format",
        "json",
    ]);
    let (code, out, error) = output(&mut command);
    assert_eq!((code, error.as_str()), (0, SIMULATION));
    let report: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(report["schema"], "fastpath.bench/1");
    assert_eq!(report["simulation"], true);
    assert_eq!(report["no_fastpath"], serde_json::Value::Null);
    let cells = report["cells"].as_array().expect("cells");
    let head: Vec<String> = cells
        .iter()
        .map(|cell| {
            format!(
                "{} {} {}",
                cell["direction"].as_str().expect("a word"),
                cell["threads"],
                cell["block"]
            )
        })
        .collect();
    let expected = [
        "read 1 4096",
        "read 1 65536",
        "read 2 4096",
        "read 2 65536",
        "write 1 4096",
        "write 1 65536",
        "write 2 4096",
        "write 2 65536",
    ];
    assert_eq!(head, expected);
    for cell in cells {
        for way in ["floor", "fallback", "fastpath", "bare"] {
            let median = cell[way]["median_us"].as_f64().expect("a number");
            assert!(
                median > 0.0 && median <= cell[way]["p99_us"].as_f64().expect("a number"),
                "{cell}"
            );
        }
        assert!(cell["fallback_to_floor"].as_f64().expect("a number") > 0.0);
    }
    assert_eq!(fs::read_dir(host.data.path()).expect("a folder").count(), 0);
}

#[test]
fn bench_says_why_there_is_no_fastpath_and_draws_without_it() {
    let host = Host::new();
    let bench = |format: &str| {
        let mut command = host.command("bench");
        command.arg(host.data.path()).args([
            "--quick",
            "--threads",
            "1",
            "--block",
            "4K",
            "--format",
            format,
        ]);
        output(command.env("HIPSIM_AIS", "absent"))
    };
    let (code, out, _) = bench("text");
    assert_eq!(code, 0);
    let why = "The fastpath is not taken here: the HIP runtime has no hipAmdFileRead and hipAmdFileWrite\n";
    assert!(
        out.contains(why) && out.contains("SIMULATION: there is no GPU behind these numbers\n"),
        "{out}"
    );
    assert!(out.contains("\nread, 1 thread\n") && !out.contains("bare"), "{out}");
    let (code, out, _) = bench("svg");
    assert_eq!(code, 0);
    assert!(out.starts_with("<svg ") && out.ends_with("</svg>\n"), "{out}");
    assert!(out.contains("SIMULATION") && out.contains("prefers-color-scheme:dark"));
    assert!(
        out.contains("<circle class=\"dot fallback\"")
            && !out.contains("<circle class=\"dot fastpath\"")
    );
}

#[test]
fn bench_gives_up_with_the_first_error_of_any_thread() {
    let host = Host::new();
    let mut command = host.command("bench");
    command.arg(host.data.path()).args(["--quick", "--threads", "4", "--block", "1M"]);
    let (code, out, error) = output(command.env("HIPSIM_FAULT", "hipMemcpyWithStream:9=error:719"));
    assert_eq!((code, out.as_str()), (2, ""), "{error}");
    let expected = format!("{SIMULATION}error: hipMemcpyWithStream: HIP error 719\n");
    assert_eq!(error, expected);
    assert_eq!(fs::read_dir(host.data.path()).expect("a folder").count(), 0);
}

#[test]
fn without_hip_the_tools_say_what_is_missing() {
    let host = Host::new();
    let mut command = host.command("bench");
    command.arg(host.data.path()).env_remove("LD_LIBRARY_PATH");
    let (code, out, error) = output(&mut command);
    assert_eq!((code, out.as_str()), (2, ""));
    assert!(error.starts_with("error: no HIP runtime: libamdhip64.so was not found"), "{error}");
}

fn verify(host: &Host) -> Command {
    let mut command = host.command("verify");
    command.args(["--seed", "7"]).arg(host.data.path());
    command
}

#[test]
fn verify_compares_both_ways_and_plain_reads() {
    let host = Host::new();
    let (code, out, error) = output(&mut verify(&host));
    assert_eq!((code, error.as_str()), (0, SIMULATION));
    assert_eq!(out, "equal: 25 writes, 279 MiB compared, fastpath and fallback (seed 7)\n");
    assert_eq!(fs::read_dir(host.data.path()).expect("a folder").count(), 0);
}

#[test]
fn verify_finds_a_byte_that_the_fastpath_writes_wrongly() {
    let host = Host::new();
    let (code, out, _) = output(verify(&host).env("HIPSIM_FAULT", "hipAmdFileWrite:2=flip:9"));
    let expected = "MISMATCH at offset 9: expected 0x00, found 0x01 in a block that says offset 0, seed 265; written by the fastpath, \
                    read by the fallback (seed 9)\n";
    assert_eq!((code, out.as_str()), (1, expected));
}

#[test]
fn verify_finds_a_byte_that_the_fastpath_reads_wrongly() {
    let host = Host::new();
    let (code, out, _) = output(verify(&host).env("HIPSIM_FAULT", "hipAmdFileRead:1=flip:4096"));
    let expected = "MISMATCH at offset 4096: expected 0x00, found 0x01 in a block that says offset 4097, seed 8; written by the fallback, \
                    read by the fastpath (seed 8)\n";
    assert_eq!((code, out.as_str()), (1, expected));
    let (code, out, _) =
        output(verify(&host).arg("-q").env("HIPSIM_FAULT", "hipAmdFileRead:1=flip:4096"));
    assert_eq!((code, out.as_str()), (1, ""));
}

#[test]
fn verify_proves_nothing_where_the_fastpath_is_not_taken() {
    let host = Host::new();
    let not_taken = |why: &str| {
        format!(
            "error: the fastpath was not taken, so nothing is proven: {why} (--fallback-only checks the fallback alone)\n"
        )
    };
    let (code, out, error) = output(verify(&host).env("HIPSIM_AIS", "enotty"));
    let why = "the amdgpu driver does not know direct storage requests (ENOTTY)";
    assert_eq!((code, out.as_str(), error), (2, "", format!("{SIMULATION}{}", not_taken(why))));
    let (code, _, error) = output(verify(&host).env("HIPFILE_FORCE_COMPAT_MODE", "true"));
    assert_eq!(
        (code, error),
        (2, format!("{SIMULATION}{}", not_taken("HIPFILE_FORCE_COMPAT_MODE is set")))
    );
    let (code, out, _) = output(verify(&host).arg("--fallback-only").env("HIPSIM_AIS", "enotty"));
    let expected = "equal: 16 writes, 144 MiB compared, the fallback; the fastpath was left out, nothing is proven of it (seed 7)\n";
    assert_eq!((code, out.as_str()), (0, expected));
}

#[test]
fn verify_goes_past_an_advisory_only_if_it_is_told_to() {
    let host = Host::new();
    let release = "5.14.0-700.1.el9_8.x86_64";
    let put = |path: &str, text: &str| {
        let path = host.root.path().join(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("folders");
        fs::write(path, text).expect("a file");
    };
    put("proc/sys/kernel/osrelease", &format!("{release}\n"));
    put(&format!("boot/config-{release}"), "CONFIG_PCI_P2PDMA=y\n");
    let (code, out, error) = output(&mut verify(&host));
    let expected = "error: the kernel is blocked (advisory el9_8-memory-corruption): its fastpath may corrupt memory; --force tries it \
                    all the same\n";
    assert_eq!((code, out.as_str(), error.as_str()), (2, "", expected));
    let (code, out, _) = output(verify(&host).arg("--force"));
    assert!(code == 0 && out.starts_with("equal: 25 writes"), "{out}");
}

/// Bytes that repeat nowhere near.
fn bytes(length: usize) -> Vec<u8> {
    (0..length as u64).map(|at| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder");
    let mut names: Vec<_> = entries
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"))
        .collect();
    names.sort();
    names
}

/// The program under another tool's name.
fn link(host: &Host, name: &str) -> PathBuf {
    let link = host.sim.path().join(name);
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_fastpath"), &link).expect("a link");
    link
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
        let said = format!(
            "{SIMULATION}copied {length} bytes: read by the fastpath; written by the fastpath\n"
        );
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
    let said = format!("{SIMULATION}copied 16777217 bytes: read by {why}; written by {why}\n");
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
fn an_empty_source_makes_an_empty_copy_without_a_gpu() {
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
    assert!(error.contains("Usage: "), "{error}");
    let (code, _, error) = output(host.program(&aiscp, "").arg(host.path("none")).arg(&copy));
    let expected =
        format!("error: {}: No such file or directory (os error 2)\n", host.path("none").display());
    assert_eq!((code, error), (1, expected));
    let (code, _, _) = output(host.program(&aiscp, "").args(["a", "b", "c"]));
    assert_eq!(code, 1);
}

/// A program that does I/O for long enough to be looked at.
fn busy(host: &Host, before: &[&str]) -> Vec<String> {
    let source = host.path("source");
    fs::write(&source, bytes(96 << 20)).expect("a file");
    let mut words: Vec<String> = before.iter().map(|word| (*word).to_owned()).collect();
    words.push(env!("CARGO_BIN_EXE_fastpath").to_owned());
    words.extend(["cp", "-q", "--root"].map(str::to_owned));
    for path in [host.root.path(), &source, &host.path("copy")] {
        words.push(path.to_str().expect("UTF-8").to_owned());
    }
    words
}

#[test]
fn stats_shows_a_programs_io_and_why_it_was_not_direct() {
    let host = Host::new();
    let program = Path::new(env!("CARGO_BIN_EXE_fastpath"));
    let mut command = host.program(program, "stats");
    command
        .args(["--format", "json"])
        .args(busy(&host, &["--"]))
        .env("HIPFILE_FORCE_COMPAT_MODE", "true");
    let (code, out, error) = output(&mut command);
    assert_eq!((code, error.as_str()), (0, ""));
    let report: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!((&report["schema"], &report["level"]), (&"fastpath.stats/1".into(), &1.into()));
    assert_eq!(
        (&report["files"], &report["buffers"], &report["refused"]),
        (&2.into(), &1.into(), &12.into())
    );
    let reasons = serde_json::json!([{"reason": "forced", "text": "HIPFILE_FORCE_COMPAT_MODE is set", "count": 12}]);
    assert_eq!(report["reasons"], reasons);
    let total = |at: usize| {
        (report["totals"][at]["bytes"].as_u64(), report["totals"][at]["requests"].as_u64())
    };
    let all = (Some(96 << 20), Some(6));
    assert_eq!([0, 1, 2, 3].map(total), [(Some(0), Some(0)), (Some(0), Some(0)), all, all]);
    // Size 13: from 16 MiB on.
    assert_eq!(report["gpus"][0]["ways"][2]["requests"][13], 6);
}

#[test]
fn stats_passes_the_exit_status_on() {
    let host = Host::new();
    let program = Path::new(env!("CARGO_BIN_EXE_fastpath"));
    let stats =
        |script: &str| output(host.program(program, "stats").args(["--", "/bin/sh", "-c", script]));
    let note =
        "note: no statistics: the program did not use hipFile, or HIPFILE_STATS_LEVEL is 0\n";
    assert_eq!(stats("exit 7"), (7, String::new(), note.to_owned()));
    assert_eq!(stats("kill -9 $$").0, 128 + 9);
    let (code, _, error) = output(host.program(program, "stats").args(["--", "/nonexistent"]));
    assert_eq!(
        (code, error.as_str()),
        (2, "error: /nonexistent: No such file or directory (os error 2)\n")
    );
    let own = std::process::id().to_string();
    let (code, _, error) = output(host.program(program, "stats").arg(&own));
    let expected = format!(
        "error: process {own} shows no statistics: the program did not use hipFile, or HIPFILE_STATS_LEVEL is 0, or it is in another \
         network namespace\n"
    );
    assert_eq!((code, error), (2, expected));
}

#[test]
fn ais_stats_reports_as_amds_does_and_keeps_its_exit_codes() {
    let host = Host::new();
    let ais_stats = link(&host, "ais-stats");
    let (code, out, error) = output(host.program(&ais_stats, "").args(busy(&host, &[])));
    assert_eq!((code, error.as_str()), (0, ""));
    let lines: Vec<&str> = out.lines().collect();
    let head = [
        "AIS-STATS Version: 1",
        "HipFile Stats Level: 1",
        "File Handle Registrations: 2",
        "Buffer Registrations: 1",
        "Fastpath Rejections: 0",
        "",
        "Total Fastpath Read Size (B): 100663296",
    ];
    assert_eq!(lines[..7], head);
    assert!(lines[7].starts_with("Average Fastpath Read Bandwidth (GiB/s): "), "{out}");
    assert!(lines[8].starts_with("Average Fastpath Read Latency (us): "), "{out}");
    assert_eq!(
        lines[9..12],
        ["Total Fastpath Read Errors: 0", "Total Fastpath Read Unaligned: 0", ""]
    );
    let idle = [
        "Total Fallback Write Size (B): 0",
        "Average Fallback Write Bandwidth (GiB/s): 0.000",
        "Average Fallback Write Latency (us): 0.0",
        "Total Fallback Write Errors: 0",
        "Total Fallback Write Unaligned: 0",
        "",
        "GPU 0:",
        "IO Size Histogram",
    ];
    assert_eq!(lines[24..32], idle);
    let columns = [
        "Fastpath Read Size (B)",
        "Fastpath Write Size (B)",
        "Fallback Read Size (B)",
        "Fallback Write Size (B)",
    ];
    let row = |first: &str, cells: [&str; 4]| {
        cells.iter().fold(format!("{first:<16}"), |line, cell| format!("{line}{cell:>34}"))
    };
    assert_eq!(lines[32], row("IO Size (KiB)", columns));
    assert_eq!(lines[33], row("0-4", ["0"; 4]));
    assert_eq!(lines[34], row("4-8", ["0"; 4]));
    assert_eq!(lines[46], row("16384-32768", ["100663296", "100663296", "0", "0"]));
    assert_eq!(lines[48], row("65536-...", ["0"; 4]));
    assert_eq!(lines[49], "Bandwidth Histogram");
    assert_eq!(lines[67], "Latency Histogram");
    assert_eq!(lines[85], "Errors Histogram");
    let end = [
        "Fastpath Read Unaligned Count: 0",
        "Fastpath Write Unaligned Count: 0",
        "Fallback Read Unaligned Count: 0",
        "Fallback Write Unaligned Count: 0",
    ];
    assert_eq!(lines[103..], end);

    let (code, out, error) = output(&mut host.program(&ais_stats, ""));
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(error.starts_with("usage: ais-stats <program> [args...]\n"), "{error}");
    assert_eq!(output(host.program(&ais_stats, "").arg("-p")).0, 1);
    let (code, out, error) = output(host.program(&ais_stats, "").arg("/bin/true"));
    assert_eq!(
        (code, out.as_str(), error.as_str()),
        (
            1,
            "",
            "error: cannot connect: the program did not use hipFile, or HIPFILE_STATS_LEVEL is 0\n"
        )
    );
}

/// A process whose statistics have the layout of AMD's first releases, by their size.
#[test]
fn stats_of_amds_first_layout_are_told_by_their_size() {
    use rustix::net::{
        AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix,
        SocketType, accept, bind, listen, sendmsg, socket,
    };
    use std::os::fd::AsFd as _;
    let host = Host::new();
    let pid = std::process::id();
    let mut name = format!("AISSTATS{pid:08x}").into_bytes();
    name.resize(107, 0);
    let listener = socket(AddressFamily::UNIX, SocketType::STREAM, None).expect("a socket");
    bind(&listener, &SocketAddrUnix::new_abstract_name(&name).expect("a name"))
        .expect("it is free");
    listen(&listener, 4).expect("a server");
    let memory = fs::File::from(
        rustix::fs::memfd_create("AISSTATS", rustix::fs::MemfdFlags::CLOEXEC).expect("memory"),
    );
    memory.set_len(66 * 8).expect("a length");
    for (at, word) in [2_u64, 1, 10, 20, 30, 40].into_iter().enumerate() {
        memory.write_all_at(&word.to_ne_bytes(), at as u64 * 8).expect("a word");
    }
    let server = std::thread::spawn(move || {
        let client = accept(&listener).expect("a client");
        let fds = [memory.as_fd()];
        let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        assert!(control.push(SendAncillaryMessage::ScmRights(&fds)));
        let number = 1_i32.to_ne_bytes();
        sendmsg(&client, &[std::io::IoSlice::new(&number)], &mut control, SendFlags::empty())
            .expect("it takes it");
    });
    let program = Path::new(env!("CARGO_BIN_EXE_fastpath"));
    let (code, out, error) = output(host.program(program, "stats").arg(pid.to_string()));
    server.join().expect("it was asked");
    let expected = "AIS-STATS Version: 1\nHipFile Stats Level: 2\nTotal fast path reads (B): 10\nTotal fast path writes (B): 20\n\
                    Total fallback path reads (B): 30\nTotal fallback path writes (B): 40\n";
    assert_eq!((code, out.as_str(), error.as_str()), (0, expected, ""));
}
