//! `bench`: what it measures, and how it shows it.

use std::fs;

use super::{Host, SIMULATION, output};

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
