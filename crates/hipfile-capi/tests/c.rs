//! hipFile's contract, as C programs.

#![allow(clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "they are tests")]

mod common;

use std::path::Path;

use common::{
    LANGUAGES, Program, ThreadSanitizer, assert_passes, compilers, direct_folder, fast_runner,
    is_there, masking_runner,
};

#[test]
fn layout() {
    for compiler in compilers() {
        for language in [["-x", "c", "-std=c11"], ["-x", "c++", "-std=c++17"]] {
            let program = Program::build(compiler, "layout.c", &language);
            assert_passes(&program.name, &mut program.command(&[]));
        }
    }
}

#[test]
fn registration() {
    for program in Program::each("registration.c") {
        assert_passes(&program.name, program.command(&[]).arg(program.install.root()));
    }
}

/// In every folder that stands for a kind of file system, both ways.
#[test]
fn transfers() {
    for program in Program::each("transfer.c") {
        let on_disk = direct_folder();
        let folders = [on_disk.path(), Path::new("/dev/shm")];
        for folder in folders.into_iter().filter(|folder| folder.is_dir()) {
            let folder = tempfile::tempdir_in(folder).expect("a folder");
            let run = |runner: &[&str], way: &str, variables: &[(&str, &str)]| {
                let mut command = program.command(runner);
                command.arg(folder.path()).args([way, "small"]).envs(variables.iter().copied());
                assert_passes(&format!("{way}, {}", folder.path().display()), &mut command);
            };
            run(&[], "slow", &[("HIPFILE_FORCE_COMPAT_MODE", "true")]);
            run(&[], "slow", &[("HIPSIM_AIS", "absent")]);
            if let Some(runner) = fast_runner() {
                let any = ("HIPFILE_UNSUPPORTED_FILE_SYSTEMS", "true");
                run(runner, "fast", &[any]);
                run(runner, "fast", &[any, ("HIPSIM_AIS", "old")]);
            }
        }
    }
}

#[test]
fn batches() {
    for program in Program::each("batch.c") {
        let folder = direct_folder();
        let run = |runner: &[&str]| {
            let mut command = program.command(runner);
            command.arg(folder.path()).env("HIPSIM_COPY_LATENCY_US", "20000");
            assert_passes("batch", &mut command);
        };
        run(&[]);
        if let Some(runner) = fast_runner() {
            run(runner);
        }
    }
}

#[test]
fn streams() {
    for program in Program::each("stream.c") {
        let folder = direct_folder();
        let run = |runner: &[&str], wait_value| {
            let mut command = program.command(runner);
            command.arg(folder.path());
            command.envs([("HIPSIM_DEVICES", "2"), ("HIPSIM_WAIT_VALUE", wait_value)]);
            assert_passes("stream", &mut command);
        };
        for wait_value in ["0", "1"] {
            run(&[], wait_value);
            if let Some(runner) = fast_runner() {
                run(runner, wait_value);
            }
        }
    }
}

#[test]
fn parameters() {
    for program in Program::each("parameters.c") {
        assert_passes(&program.name, &mut program.command(&[]));
    }
}

/// Sanitizers and Valgrind have memory of their own: it is not among the calls below.
#[test]
fn memory_stays_small_with_many_threads() {
    let program = Program::new("resident.c");
    let folder = direct_folder();
    let mut command = program.command(&[]);
    assert_passes("memory", command.arg(folder.path()).env("HIPFILE_FORCE_COMPAT_MODE", "true"));
}

#[test]
fn limits_that_are_set_act() {
    for program in Program::each("limits.c") {
        let folder = direct_folder();
        for (way, runner) in [("slow", Some(&[][..])), ("fast", fast_runner())] {
            let Some(runner) = runner else { continue };
            let mut command = program.command(runner);
            command.arg(folder.path()).arg(way).env("HIPFILE_UNSUPPORTED_FILE_SYSTEMS", "true");
            if way == "slow" {
                command.env("HIPFILE_FORCE_COMPAT_MODE", "true");
            }
            assert_passes(way, &mut command);
        }
    }
}

#[test]
fn faults() {
    let Some(runner) = fast_runner() else { return };
    for program in Program::each("faults.c") {
        let folder = direct_folder();
        let mut command = program.command(runner);
        command.arg(folder.path()).env("HIPFILE_UNSUPPORTED_FILE_SYSTEMS", "true");
        assert_passes("faults", &mut command);
    }
}

/// Compiled against the header, and not linked with the library.
#[test]
fn loaded_by_name() {
    for program in Program::each("load.c") {
        let folder = direct_folder();
        assert_passes("load", program.command(&[]).arg(folder.path()));
    }
}

#[test]
fn a_library_with_operations_in_streams_stays_after_dlclose() {
    for program in Program::each("pending.c") {
        let folder = direct_folder();
        for wait_value in ["0", "1"] {
            let mut command = program.command(&[]);
            command.env("HIPSIM_COPY_LATENCY_US", "100000").env("HIPSIM_WAIT_VALUE", wait_value);
            assert_passes("pending", command.arg(folder.path()));
        }
    }
}

#[test]
fn the_process_ends_or_forks_during_io() {
    for program in Program::each("ending.c") {
        let folder = direct_folder();
        for way in ["exit", "return", "quick", "fork", "fork-exec"] {
            for round in 0..4 {
                let runner = if round % 2 == 0 { Some(&[][..]) } else { fast_runner() };
                let Some(runner) = runner else { continue };
                let mut command = program.command(runner);
                assert_passes(way, command.arg(folder.path()).arg(way));
            }
        }
    }
}

/// What programs do to a library inside them.
mod hostile {
    use super::*;

    fn run(name: &str) {
        for program in Program::each("hostile.c") {
            let folder = direct_folder();
            let mut command = program.command(&[]);
            assert_passes(name, command.arg(folder.path()).arg(name));
        }
    }

    #[test]
    fn a_thread_that_is_cancelled_inside_does_not_end_the_process() {
        run("cancel");
    }

    #[test]
    fn a_handle_of_the_parent_is_no_file_of_the_child() {
        run("child");
    }

    #[test]
    fn a_line_that_nobody_reads_is_no_signal() {
        run("unread");
    }

    #[test]
    fn no_file_of_ours_is_standard_output() {
        run("closed");
    }

    #[test]
    fn a_limit_on_files_does_not_end_a_reader() {
        run("limited");
    }

    #[test]
    fn nobody_spins_where_nobody_can_be_let_in() {
        run("forbidden");
    }

    #[test]
    fn a_file_that_cannot_be_opened_again_is_registered_all_the_same() {
        run("given");
    }

    #[test]
    fn a_registration_does_not_wait_for_a_lease() {
        run("leased");
    }

    /// Whoever starts a program with more rights than his own chooses no library for it.
    #[test]
    fn the_environment_chooses_no_library_for_a_program_with_more_rights() {
        let program = Program::new("secure.c");
        // The effective user is another than the real one.
        let other = ["setpriv", "--ruid", "65534"];
        if !std::process::Command::new(other[0])
            .args(&other[1..])
            .arg("true")
            .output()
            .is_ok_and(|output| output.status.success())
        {
            println!("skipped, because setpriv cannot change the user here");
            return;
        }
        let said = |runner: &[&str]| {
            let mut command = program.command(runner);
            command.env_remove("LD_LIBRARY_PATH").env("ROCM_PATH", program.install.root());
            let output =
                common::run("secure", command.arg(program.install.lib().join("libhipfile.so")));
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8_lossy(&output.stdout).trim().to_owned()
        };
        if Path::new("/opt/rocm/lib/libamdhip64.so").exists() {
            println!("skipped, because ROCm is installed");
            return;
        }
        // Memory that HIP does not know; and no HIP.
        assert_eq!(said(&[]), "5013");
        assert_eq!(said(&other), "5007");
    }
}

#[test]
fn many_threads_and_files() {
    for program in Program::each("many.c") {
        let folder = direct_folder();
        for runner in [Some(&[][..]), fast_runner()].into_iter().flatten() {
            let mut command = program.command(runner);
            command.arg(folder.path()).arg("1000").env("HIPFILE_LOG", "off");
            assert_passes("many", &mut command);
        }
    }
}

/// What the kernel has taken stays, whenever the process is killed: each block is of one generation.
#[test]
fn a_killed_writer_leaves_whole_blocks() {
    for program in Program::each("crash.c") {
        let folder = direct_folder();
        for runner in [Some(&[][..]), fast_runner()].into_iter().flatten() {
            for (way, direct) in [("sync", "buffered"), ("sync", "direct"), ("async", "buffered")] {
                let file = folder.path().join(format!("{way}-{direct}"));
                let mut newest = 0;
                for pause in [3, 17, 41, 60] {
                    newest =
                        newest.max(kill_and_check(&program, runner, &file, way, direct, pause));
                }
                assert!(newest > 1, "{way}, {direct}: nothing was written over");
            }
        }
    }
}

fn kill_and_check(
    program: &Program,
    runner: &[&str],
    file: &Path,
    way: &str,
    direct: &str,
    pause: u64,
) -> u64 {
    use std::io::{BufRead as _, BufReader};
    let mut command = program.command(runner);
    command.arg(file).args([way, direct]).env("HIPFILE_LOG", "off");
    command.stdout(std::process::Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let mut line = String::new();
    let stdout = child.stdout.take().expect("piped");
    BufReader::new(stdout).read_line(&mut line).expect("readable");
    assert_eq!(line, "go\n", "{way}, {direct}");
    std::thread::sleep(std::time::Duration::from_millis(pause));
    child.kill().expect("it is a child");
    child.wait().expect("it is a child");
    let mut check = program.command(&[]);
    let output = common::run("check", check.arg(file).args(["check", "-"]));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{way}, {direct}, killed after {pause} ms: {stderr}");
    String::from_utf8_lossy(&output.stdout).trim().parse().expect("a number")
}

/// The report has the lines and their order as `ais-stats` has them.
#[test]
fn statistics_of_another_process() {
    for program in Program::each("stats.c") {
        let folder = direct_folder();
        let mut command = program.command(&[]);
        command.arg(folder.path()).env("HIPFILE_FORCE_COMPAT_MODE", "true");
        let output = common::run("stats", &mut command);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{stderr}");
        let text = String::from_utf8_lossy(&output.stdout);
        let begin = "AIS-STATS Version: 1\nHipFile Stats Level: 1\nFile Handle Registrations: 1\n\
                     Buffer Registrations: 1\nFastpath Rejections: 2\n\nTotal Fastpath Read Size (B): 0\n";
        assert!(text.starts_with(begin), "{text}");
        for line in [
            "Total Fallback Read Size (B): 1048576",
            "Total Fallback Write Size (B): 5000",
            "Total Fallback Write Errors: 0",
            "GPU 0:",
            "IO Size Histogram",
            "Fallback Read Unaligned Count: 0",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}: {text}");
        }
        // Programs read AMD's text: nothing is added to it.
        assert!(text.ends_with("Fallback Write Unaligned Count: 0\n"), "{text}");
        let column = |line: &str, index: usize| {
            line.split_whitespace().nth(index).map(str::to_owned).unwrap_or_default()
        };
        let row = |range: &str| {
            text.lines().find(|line| line.starts_with(range)).expect("a row").to_owned()
        };
        assert_eq!(column(&row("1024-2048 "), 3), "1048576");
        assert_eq!(column(&row("4-8 "), 4), "5000");
        assert_eq!(row("65536-... ").len(), 16 + 4 * 34);
    }
}

/// A program that calls as fio's engine does.
#[test]
fn calls_as_fio_does() {
    for program in Program::each("fio.c") {
        let folder = direct_folder();
        for runner in [Some(&[][..]), fast_runner()].into_iter().flatten() {
            for jobs in ["threads", "processes"] {
                let mut command = program.command(runner);
                command.arg(folder.path()).arg(jobs).env("HIPSIM_DEVICES", "2");
                assert_passes(jobs, &mut command);
            }
        }
    }
}

/// What AMD's library does and this one does not, as far as a C program sees it; the numbers are those of the specification's
/// list. Points 3, 8 to 10, 15, 16 and 18 are tests of `hipfile`, 20 and 21 of the tools, 22 of what the library exports.
mod points {
    use super::*;

    fn point(number: u32, variables: &[(&str, &str)]) -> Vec<String> {
        let folder = direct_folder();
        let said = Program::each("points.c").map(|program| {
            let mut command = program.command(&[]);
            command.arg(folder.path()).arg(number.to_string()).envs(variables.iter().copied());
            assert_passes(&format!("point {number}, {}", program.name), &mut command)
        });
        said.collect()
    }

    #[test]
    fn spec_10_01_hip_errors_are_not_the_systems() {
        point(1, &[]);
    }

    #[test]
    fn spec_10_02_causes_have_numbers_of_their_own() {
        point(2, &[]);
    }

    #[test]
    fn spec_10_03_no_fallback_is_silent() {
        let said = point(17, &[("HIPFILE_FORCE_COMPAT_MODE", "1"), ("HIPSIM_DEVICES", "2")]);
        assert!(said.iter().all(String::is_empty), "{said:?}");
        let info = point(
            17,
            &[("HIPFILE_FORCE_COMPAT_MODE", "1"), ("HIPFILE_LOG", "info"), ("HIPSIM_DEVICES", "2")],
        );
        for info in info {
            assert_eq!(info.matches("is not direct: HIPFILE_FORCE_COMPAT_MODE is set").count(), 1);
        }
    }

    #[test]
    fn spec_10_04_properties_and_parameters_are_real() {
        super::parameters();
    }

    #[test]
    fn spec_10_05_contradicting_variables_are_told_at_open() {
        for (yes, no) in [("true", "false"), ("1", "0"), ("on", "OFF")] {
            point(5, &[("HIPFILE_FORCE_COMPAT_MODE", yes), ("HIPFILE_ALLOW_COMPAT_MODE", no)]);
        }
        for garbage in point(13, &[("HIPFILE_FORCE_COMPAT_MODE", "maybe")]) {
            assert!(garbage.contains("HIPFILE_FORCE_COMPAT_MODE: `maybe` is neither"), "{garbage}");
        }
    }

    #[test]
    fn spec_10_06_bounds_are_checked_before_the_size_is_limited() {
        point(6, &[]);
    }

    #[test]
    fn spec_10_07_progress_is_told() {
        point(7, &[("HIPFILE_FORCE_COMPAT_MODE", "true")]);
    }

    #[test]
    fn spec_10_11_a_number_used_again_is_another_file() {
        point(11, &[]);
    }

    #[test]
    fn spec_10_12_a_file_is_let_go_during_io() {
        point(12, &[("HIPSIM_COPY_LATENCY_US", "200000")]);
    }

    #[test]
    fn spec_10_13_a_failed_registration_opens_the_driver() {
        point(13, &[]);
    }

    #[test]
    fn spec_10_14_stream_registrations_end_with_the_last_close() {
        point(14, &[]);
    }

    #[test]
    fn spec_10_17_io_counts_for_the_gpu_of_its_buffer() {
        point(17, &[("HIPSIM_DEVICES", "2")]);
    }

    /// HIP is not linked, and is not there.
    #[test]
    fn spec_10_19_what_needs_no_hip_works_without() {
        let compiler = compilers().into_iter().next().expect("one");
        let program = Program::link(compiler, "without.c", &LANGUAGES[0], &["-lhipfile"]);
        for name in hip_sim::layout::NAMES {
            std::fs::remove_file(program.install.lib().join(name)).expect("it was there");
        }
        let mut command = program.command(&[]);
        command.env("ROCM_PATH", "/nowhere").env("HIPFILE_LOG", "debug");
        if Path::new("/opt/rocm/lib/libamdhip64.so").exists() {
            println!("skipped, because ROCm is installed");
            return;
        }
        let said = assert_passes("without HIP", &mut command);
        assert!(
            said.contains("hipFileRead: no HIP runtime: libamdhip64.so cannot be loaded"),
            "{said}"
        );
    }
}

#[test]
fn the_reported_version_can_be_another() {
    let program = Program::new("hello.c");
    let version = |variable: Option<&str>| {
        let mut command = program.command(&[]);
        command.envs(variable.map(|value| ("HIPFILE_REPORT_VERSION", value)));
        let output = common::run("hello", &mut command);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        (
            String::from_utf8_lossy(&output.stdout).into_owned(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    };
    assert_eq!(version(None).0, "0.5.0\n");
    assert_eq!(version(Some("0.4.0")), ("0.4.0\n".to_owned(), String::new()));
    let (stdout, stderr) = version(Some("4"));
    assert_eq!(stdout, "0.5.0\n");
    assert!(stderr.contains("HIPFILE_REPORT_VERSION: `4` is no version like 0.4.0"), "{stderr}");
}

/// On RHEL 9.8, also where nothing of its kernel can be read but the release.
#[test]
fn a_blocked_kernel_keeps_io_off_the_fastpath() {
    let Some(runner) = masking_runner() else { return };
    let release = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/hosts/rhel-9.8/root/proc/sys/kernel/osrelease");
    let program = Program::new("transfer.c");
    let folder = direct_folder();
    let run = |way: &str, variables: &[(&str, &str)]| {
        let mut command = program.command(runner);
        command.arg(folder.path()).args([way, "small"]).env("RELEASE_FILE", &release);
        command.env("HIPFILE_UNSUPPORTED_FILE_SYSTEMS", "true").envs(variables.iter().copied());
        assert_passes(way, &mut command)
    };
    let said = run("slow", &[]);
    assert_eq!(said.matches("the fastpath is off, advisory el9_8-memory-corruption").count(), 1);
    let said = run("fast", &[("HIPFILE_ACCEPT_ADVISORY", "el9_8-memory-corruption")]);
    assert_eq!(said.matches("data may be corrupted").count(), 1, "{said}");
}

type Call = (&'static str, &'static [&'static str]);

/// Programs that make every kind of call, and what comes after the folder on their command lines; `WAY` is which way their I/O goes.
const CALLS: [Call; 9] = [
    ("registration.c", &[]),
    ("parameters.c", &[]),
    ("batch.c", &[]),
    ("stream.c", &[]),
    ("many.c", &["100"]),
    ("transfer.c", &["WAY", "small"]),
    ("limits.c", &["WAY"]),
    ("fio.c", &["threads"]),
    ("load.c", &[]),
];

/// Has them run, both ways if `fast` says how.
fn make_calls(
    calls: &[Call],
    build: impl Fn(&str) -> Program,
    runner: &[&str],
    fast: Option<&[&str]>,
    variables: &[(&str, &str)],
) {
    for &(source, arguments) in calls {
        let program = build(source);
        for (way, runner) in [("slow", Some(runner)), ("fast", fast)] {
            let Some(runner) = runner else { continue };
            let folder = direct_folder();
            let mut command = program.command(runner);
            if source != "parameters.c" {
                let way = |word| if word == "WAY" { way } else { word };
                command.arg(folder.path()).args(arguments.iter().copied().map(way));
            }
            command.env("HIPFILE_UNSUPPORTED_FILE_SYSTEMS", "true").env("HIPFILE_LOG", "off");
            command.env("HIPSIM_DEVICES", "2");
            if source == "batch.c" {
                // So that operations are under way when they are cancelled.
                command.env("HIPSIM_COPY_LATENCY_US", "20000");
            }
            if way == "slow" {
                command.env("HIPFILE_FORCE_COMPAT_MODE", "true");
            }
            command.envs(variables.iter().copied());
            assert_passes(&format!("{}, {source}, {way}", program.name), &mut command);
        }
    }
}

/// The programs' own memory under `AddressSanitizer`, and that it is really there.
#[test]
fn address_sanitizer_finds_nothing() {
    let compiler = compilers().into_iter().next().expect("one");
    let arguments = ["-std=gnu11", "-fsanitize=address", "-fno-omit-frame-pointer"];
    let build = |source: &str| Program::build(compiler, source, &arguments);
    // The device's memory is mapped without access, which the leak check would read.
    make_calls(&CALLS, build, &[], None, &[("ASAN_OPTIONS", "detect_leaks=0")]);
    let output = common::run("overrun", &mut build("overrun.c").command(&[]));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("AddressSanitizer: heap-buffer-overflow"), "{stderr}");
}

#[test]
fn valgrind_finds_nothing() {
    if !is_there("valgrind") {
        println!("skipped, because valgrind is not installed");
        return;
    }
    let runner = [
        "valgrind",
        "--quiet",
        "--error-exitcode=9",
        "--leak-check=full",
        "--errors-for-leak-kinds=definite",
    ];
    // Under it the others take a minute each, and of what belongs to a library that was unloaded it knows no names.
    let (calls, _) = CALLS.split_at(5);
    make_calls(calls, Program::new, &runner, None, &[("HIPSIM_VRAM_MIB", "16")]);
}

/// What the threads of programs, library and simulation share, and that a race between a program and the library is seen. A stream
/// that waits for a number is not among it: atomic maxima are beyond `ThreadSanitizer`.
#[test]
fn thread_sanitizer_finds_nothing() {
    let Some(sanitizer) = ThreadSanitizer::built() else { return };
    let variables = [("HIPSIM_WAIT_VALUE", "0"), ("TSAN_OPTIONS", "exitcode=66")];
    make_calls(&CALLS, |source| sanitizer.build(source), &[], fast_runner(), &variables);
    let (program, folder) = (sanitizer.build("race.c"), direct_folder());
    let output = common::run("race", program.command(&[]).arg(folder.path()));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("ThreadSanitizer: data race"), "{stderr}");
    assert!(stderr.contains("<hipfile::stream::Operation>::end"), "{stderr}");
}

/// On file systems that this machine can make. The page cache takes what the simulated drive would.
#[test]
fn transfers_on_xfs_and_ext4() {
    let program = Program::new("transfer.c");
    for kind in ["xfs", "ext4"] {
        let make = format!("mkfs.{kind}");
        let folder = direct_folder();
        let (image, mount) = (folder.path().join("image"), folder.path().join("mount"));
        std::fs::create_dir(&mount).expect("made");
        let file = std::fs::File::create(&image).expect("made");
        file.set_len(if kind == "xfs" { 1 << 30 } else { 256 << 20 }).expect("sized");
        if !std::process::Command::new(&make)
            .arg(&image)
            .output()
            .is_ok_and(|output| output.status.success())
        {
            println!("skipped {kind}, because {make} is not installed");
            continue;
        }
        let Some(masked) = masking_runner() else { continue };
        // Mounted in the namespace of the runner only, which ends with the program.
        let script = "mount -o loop \"$1\" \"$2\" || exit 77; shift 2; exec \"$@\"";
        let mut runner = masked.to_vec();
        let (image, mount) = (image.display().to_string(), mount.display().to_string());
        runner.extend(["sh", "-c", script, "sh", &image, &mount]);
        let mut command = program.command(&runner);
        command.arg(&mount).args(["fast", "small"]);
        let output = common::run(kind, &mut command);
        let stderr = String::from_utf8_lossy(&output.stderr);
        if output.status.code() == Some(77) {
            println!("skipped {kind}, because it cannot be mounted here: {}", stderr.trim());
            continue;
        }
        assert!(output.status.success(), "{kind}: {}: {stderr}", output.status);
    }
}

/// More than 2 GiB at once.
#[test]
fn one_call_moves_what_linux_moves_in_one() {
    let available = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| {
        let line = text.lines().find(|line| line.starts_with("MemAvailable:"))?.to_owned();
        line.split_whitespace().nth(1)?.parse::<u64>().ok()
    });
    if available.is_none_or(|kib| kib < 6 << 20) {
        println!("skipped, because there are not 6 GiB of memory to spare");
        return;
    }
    let program = Program::new("transfer.c");
    let folder = direct_folder();
    let mut command = program.command(&[]);
    command.arg(folder.path()).args(["slow", "large"]).env("HIPSIM_VRAM_MIB", "2100");
    assert_passes("large", command.env("HIPFILE_FORCE_COMPAT_MODE", "true"));
}
