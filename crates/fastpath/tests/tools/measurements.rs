//! `bench`: what it measures, and how it shows it.

use std::fs;

use serde_json::Value;

use super::{Host, SIMULATION, browser, output};

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
    let report: Value = serde_json::from_str(&out).expect("JSON");
    assert_fits(&report, include_str!("../../../../docs/schema/bench.schema.json"));
    assert_eq!(report["schema"], "fastpath.bench/1");
    assert_eq!(report["simulation"], true);
    assert_eq!(report["no_fastpath"], Value::Null);
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
        out.contains(">no fastpath: the HIP runtime has no hipAmdFileRead and</text>"),
        "{out}"
    );
    assert!(out.contains(">hipAmdFileWrite</text>"), "{out}");
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

/// Holds an answer against its published schema.
pub(crate) fn assert_fits(value: &Value, schema: &str) {
    let schema: Value = serde_json::from_str(schema).expect("a schema");
    let mut wrong = Vec::new();
    fit(value, &schema, &schema, "$", &mut wrong);
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// As much of JSON Schema as ours have; another keyword is a mistake here. A name that no schema has is one too: ours list all.
fn fit(value: &Value, schema: &Value, root: &Value, at: &str, wrong: &mut Vec<String>) {
    for (keyword, wanted) in schema.as_object().expect("a schema is an object") {
        let list = || wanted.as_array().expect("a list").iter();
        let holds = match keyword.as_str() {
            "$schema" | "$defs" | "title" | "description" | "format" => true,
            "$ref" => {
                let pointer = wanted.as_str().and_then(|text| text.strip_prefix('#'));
                let target = root.pointer(pointer.expect("a local reference"));
                fit(value, target.expect("it is there"), root, at, wrong);
                true
            }
            "anyOf" => list().any(|one| {
                let mut inner = Vec::new();
                fit(value, one, root, at, &mut inner);
                inner.is_empty()
            }),
            "type" if wanted.is_array() => list().any(|one| is(value, one)),
            "type" => is(value, wanted),
            "minimum" => value.as_f64() >= wanted.as_f64(),
            "required" => list().all(|name| value.get(name.as_str().expect("a name")).is_some()),
            "items" => {
                for (number, item) in value.as_array().into_iter().flatten().enumerate() {
                    fit(item, wanted, root, &format!("{at}[{number}]"), wrong);
                }
                true
            }
            "properties" => value.as_object().into_iter().flatten().all(|(name, inner)| {
                let known = wanted.get(name);
                if let Some(known) = known {
                    fit(inner, known, root, &format!("{at}.{name}"), wrong);
                }
                known.is_some()
            }),
            other => panic!("{at}: the keyword {other} is not known here"),
        };
        if !holds {
            wrong.push(format!("{at}: expected {keyword} {wanted}, found {value}"));
        }
    }
}

fn is(value: &Value, name: &Value) -> bool {
    match name.as_str().expect("a type's name") {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "null" => value.is_null(),
        other => panic!("there is no type {other}"),
    }
}

#[test]
fn a_schema_is_held_against_all_of_an_answer() {
    let schema = include_str!("../../../../docs/schema/stats.schema.json");
    let schema: Value = serde_json::from_str(schema).expect("a schema");
    let wrong = |answer: &str| {
        let mut wrong = Vec::new();
        fit(&serde_json::from_str(answer).expect("JSON"), &schema, &schema, "$", &mut wrong);
        wrong
    };
    let answer = |level: &str, gpu: &str| {
        format!(
            "{{\"schema\":\"s\",\"level\":{level},\"bytes_only\":false,\"files\":0,\"buffers\":0,\"refused\":0,\"reasons\":[],\
             \"totals\":[],\"gpus\":[{gpu}]}}"
        )
    };
    assert_eq!(wrong(&answer("1", "")), [""; 0]);
    assert_eq!(wrong(&answer("-1", "")), ["$.level: expected minimum 0, found -1"]);
    assert_eq!(wrong(&answer("1", "{\"index\":0}")).len(), 1);
    assert_eq!(wrong(&answer("1", "{\"index\":0,\"ways\":[],\"way\":1}")).len(), 1);
    // Of a wrong type, and without what is required.
    assert_eq!(wrong("[]").len(), 2);
}

/// Every line of a table has its columns where the first has them.
#[test]
fn the_columns_of_benchs_tables_line_up() {
    let host = Host::new();
    let mut command = host.command("bench");
    command.arg(host.data.path());
    // Below and above a thousand microseconds.
    command.args(["--quick", "--threads", "1,4", "--block", "4K,1M,16M"]);
    let (code, out, _) = output(&mut command);
    assert_eq!(code, 0);
    let tables: Vec<&str> = out.split("\n\n").filter(|part| part.contains("floor us")).collect();
    assert_eq!(tables.len(), 4, "{out}");
    for table in tables {
        let lines: Vec<&str> = table.lines().skip(1).collect();
        assert_eq!(lines.len(), 4, "{out}");
        // A column of ours ends where its head ends: they are set to the right.
        let ends = |line: &str| {
            let mut ends: Vec<usize> = Vec::new();
            let spaced = format!("{line}  ");
            for (at, _) in spaced.match_indices("  ") {
                if at > 0 && !spaced[..at].ends_with(' ') {
                    ends.push(at);
                }
            }
            ends
        };
        for line in &lines {
            assert_eq!(ends(line), ends(lines[0]), "{out}");
        }
        assert_eq!(ends(lines[0]).len(), 13, "{out}");
    }
}

/// Looks at every text of the picture after it has been laid out.
const LOOK: &str = r#"<script>
"use strict";
(() => {
  const failures = [];
  const texts = [...document.querySelectorAll("svg text")];
  const boxes = texts.map((text) => text.getBoundingClientRect());
  boxes.forEach((box, at) => {
    const name = texts[at].textContent;
    if (box.left < 0 || box.right > innerWidth) failures.push(`${name}: ${box.left} to ${box.right} of ${innerWidth}`);
    if (box.height < 10) failures.push(`${name}: ${box.height} high`);
    boxes.slice(0, at).forEach((other, before) => {
      const apart = box.left >= other.right || box.right <= other.left || box.top >= other.bottom || box.bottom <= other.top;
      if (!apart) failures.push(`${name} is over ${texts[before].textContent}`);
    });
  });
  const svg = document.querySelector("svg").getBoundingClientRect();
  boxes.forEach((box, at) => {
    if (box.bottom > svg.bottom) failures.push(`${texts[at].textContent}: below the picture`);
  });
  if (document.documentElement.scrollWidth > innerWidth) failures.push("wider than the window");
  const brightness = (colour) => colour.match(/\d+/g).slice(0, 3).reduce((sum, part) => sum + Number(part), 0) / 765;
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  if (dark !== DARK) failures.push(`dark: ${dark}`);
  const page = brightness(getComputedStyle(document.querySelector(".page")).fill);
  for (const text of texts) {
    const contrast = Math.abs(page - brightness(getComputedStyle(text).fill));
    if (contrast < 0.35 || page < 0.5 !== dark) failures.push(`${text.textContent}: ${contrast} on ${page}`);
  }
  const answer = document.createElement("output");
  answer.id = "answer";
  answer.textContent = texts.length < 40 ? `${texts.length} texts` : failures.length ? failures.join("; ") : "fine";
  document.body.append(answer);
})();
</script>"#;

#[test]
fn the_labels_of_the_plot_are_legible_at_any_width() {
    let Some(browser) = browser::find() else { return };
    let host = Host::new();
    let deep = host.path("a-directory-with-a-very-long-name/and-another-one-below-it");
    fs::create_dir_all(&deep).expect("folders");
    let many = "4K,8K,16K,32K,64K,128K,256K,512K,1M,2M,4M,8M,16M";
    let steps = "4K,16K,64K,256K,1M,2M,4M,8M";
    // With every curve, and with a reason why some are missing.
    for (at, (blocks, driver)) in
        [(many, "new"), (steps, "new"), (steps, "absent")].into_iter().enumerate()
    {
        let mut command = host.command("bench");
        command.arg(&deep).args(["--quick", "--threads", "1,2", "--block", blocks]);
        let (code, svg, _) = output(command.args(["--format", "svg"]).env("HIPSIM_AIS", driver));
        assert_eq!(code, 0);
        for dark in [false, true] {
            let look = LOOK.replace("DARK", if dark { "true" } else { "false" });
            let page = format!(
                "<!doctype html><meta charset=utf-8><body style=\"margin:0\">{svg}{look}</body>"
            );
            let file = host.path(&format!("page-{at}-{dark}.html"));
            fs::write(&file, page).expect("the page is written");
            for width in [1200, 800, 400] {
                browser::exercise(browser, &file, width, dark, host.sim.path());
            }
        }
    }
}
