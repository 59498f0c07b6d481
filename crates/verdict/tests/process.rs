//! What the environment of a process means to the library that it has loaded.

use std::collections::BTreeMap;

use fastpath_host::process::ProcessFacts;
use fastpath_verdict::process::judge;
use fastpath_verdict::{Reason, Status, Verdict, finding};

fn facts(value: Option<&str>, ours: Option<bool>) -> ProcessFacts {
    let variable = |value: &str| ("HIPFILE_FORCE_COMPAT_MODE".to_owned(), value.to_owned());
    ProcessFacts {
        pid: 7,
        name: Some("train".to_owned()),
        hipfile: vec!["/opt/rocm/lib/libhipfile.so.0".to_owned()],
        ours,
        variables: value.map(variable).into_iter().collect::<BTreeMap<_, _>>(),
        ..ProcessFacts::default()
    }
}

#[test]
fn a_forced_fallback_is_what_the_loaded_library_takes_for_one() {
    let (forced, free) = (
        (Verdict::Unsupported, Reason::ForcedFallback),
        (Verdict::Supported, Reason::HipfileLoaded),
    );
    for (value, ours, expected, ignored) in [
        (None, None, free, false),
        (Some("true"), None, forced, false),
        (Some("True"), Some(false), forced, false),
        (Some("1"), Some(true), forced, false),
        (Some("yes"), Some(true), forced, false),
        (Some("1"), Some(false), free, true),
        (Some("on"), None, free, true),
        (Some("0"), None, free, false),
        (Some("maybe"), Some(true), free, false),
    ] {
        let judged = judge(facts(value, ours), Vec::new());
        assert_eq!((judged.verdict, judged.reason), expected, "{value:?} {ours:?}");
        let warned = judged.findings.iter().find(|it| it.status == Status::Warn);
        assert_eq!(warned.is_some(), ignored, "{value:?} {ours:?}");
    }
}

#[test]
fn the_ignored_word_is_named() {
    let judged = judge(facts(Some("1"), None), Vec::new());
    let warned = &judged.findings[1];
    assert_eq!(warned.id, finding::PROCESS_ENVIRONMENT);
    let line = "train was started with HIPFILE_FORCE_COMPAT_MODE=1, which AMD's library ignores";
    assert_eq!(warned.summary, line);
    let judged = judge(facts(Some("1"), Some(true)), Vec::new());
    let line =
        "train was started with HIPFILE_FORCE_COMPAT_MODE=1, so it always takes the fallback";
    assert_eq!(judged.findings[0].summary, line);
}
