//! The rules of judgement for one kernel.

use fastpath_host::{Kind, State, Witness, config_witness};
use fastpath_knowledge::{Effect, Knowledge, Release};
use fastpath_verdict::{Judgement, Reason, Verdict, judge, judge_release};

const BOOT: &str = "/boot/config-R";
const BUILD: &str = "/lib/modules/R/build/.config";
const END: &str = "CONFIG_ZONE_DEVICE=y\nCONFIG_PCI=y\nCONFIG_MAGIC_SYSRQ=y\n";

fn knowledge() -> Knowledge {
    Knowledge::embedded().expect("embedded knowledge parses")
}

fn release(text: &str) -> Release {
    Release::new(text).expect("a release")
}

fn config(path: &str, kind: Kind, text: &str) -> Witness {
    config_witness(path, kind, text.as_bytes(), Some(&release("6.8.0-142-generic")))
}

fn judged(release_text: &str, witnesses: &[Witness]) -> Judgement {
    judge(Some(&release(release_text)), witnesses, false, &knowledge())
}

fn one(text: &str) -> Judgement {
    judged("6.8.0-142-generic", &[config(BOOT, Kind::BootConfig, text)])
}

#[test]
fn each_value_gives_its_verdict_and_reason() {
    let cases = [
        (format!("CONFIG_PCI_P2PDMA=y\n{END}"), Verdict::Supported, Reason::OptionY),
        (
            format!("# CONFIG_PCI_P2PDMA is not set\n{END}"),
            Verdict::Unsupported,
            Reason::OptionNotSet,
        ),
        (format!("CONFIG_PCI_P2PDMA=n\n{END}"), Verdict::Unsupported, Reason::OptionN),
        (format!("CONFIG_PCI_P2PDMA=m\n{END}"), Verdict::Unsupported, Reason::OptionMInvalid),
        (END.to_owned(), Verdict::Unsupported, Reason::OptionAbsent),
        ("CONFIG_PCI=y\n".to_owned(), Verdict::Unknown, Reason::WitnessTruncated),
        (String::new(), Verdict::Unknown, Reason::WitnessEmpty),
        (format!("CONFIG_PCI_P2PDMA=yes\n{END}"), Verdict::Unknown, Reason::WitnessMalformed),
        (
            format!("# Linux/x86 6.9.1 Kernel Configuration\nCONFIG_PCI_P2PDMA=y\n{END}"),
            Verdict::Unknown,
            Reason::NoWitnessForThisKernel,
        ),
    ];
    for (text, verdict, reason) in cases {
        let judgement = one(&text);
        assert_eq!((judgement.verdict, judgement.reason), (verdict, reason), "{text}");
    }
}

#[test]
fn an_explicit_value_counts_in_a_cut_text_and_an_absence_does_not() {
    assert_eq!(one("CONFIG_PCI_P2PDMA=y\n").verdict, Verdict::Supported);
    assert_eq!(one("# CONFIG_PCI_P2PDMA is not set\n").verdict, Verdict::Unsupported);
    assert_eq!(one("CONFIG_PCI=y\nCONFIG_ZONE_DEVICE=y\n").verdict, Verdict::Unknown);
}

#[test]
fn the_highest_sound_witness_decides_and_a_lower_one_conflicts() {
    let cut = config("/proc/config.gz", Kind::ProcConfigGz, "CONFIG_PCI=y\n");
    let boot = config(BOOT, Kind::BootConfig, &format!("# CONFIG_PCI_P2PDMA is not set\n{END}"));
    let build = config(BUILD, Kind::BuildConfig, &format!("CONFIG_PCI_P2PDMA=y\n{END}"));
    let same = config("/x", Kind::BuildConfig, END);
    let judgement = judged("6.8.0-142-generic", &[cut, boot, build, same]);
    assert_eq!((judgement.verdict, judgement.decides), (Verdict::Unsupported, Some(1)));
    assert_eq!(judgement.conflicts, [2], "absent and not set both mean no");
}

#[test]
fn a_source_tree_never_decides_nor_conflicts() {
    let source = config("/usr/src/linux/.config", Kind::SourceConfig, "CONFIG_PCI_P2PDMA=y\n");
    let alone = judged("6.8.0-142-generic", std::slice::from_ref(&source));
    assert_eq!((alone.verdict, alone.reason), (Verdict::Unknown, Reason::NoWitnessForThisKernel));
    let boot = config(BOOT, Kind::BootConfig, &format!("# CONFIG_PCI_P2PDMA is not set\n{END}"));
    let both = judged("6.8.0-142-generic", &[boot, source]);
    assert_eq!(both.verdict, Verdict::Unsupported);
    assert!(both.conflicts.is_empty());
}

#[test]
fn an_unknown_value_never_lifts_a_block_and_a_no_does() {
    let blocked = "5.14.0-687.49.1.el9_8.x86_64";
    let yes =
        config_witness(BOOT, Kind::BootConfig, b"CONFIG_PCI_P2PDMA=y\n", Some(&release(blocked)));
    let no = config_witness(
        BOOT,
        Kind::BootConfig,
        b"# CONFIG_PCI_P2PDMA is not set\n",
        Some(&release(blocked)),
    );
    let cut = config_witness(BOOT, Kind::BootConfig, b"CONFIG_PCI=y\n", Some(&release(blocked)));
    assert_eq!(judged(blocked, &[yes]).verdict, Verdict::Blocked);
    assert_eq!(judged(blocked, &[cut]).reason, Reason::Advisory);
    assert_eq!(judged(blocked, &[]).verdict, Verdict::Blocked);
    let judgement = judged(blocked, &[no]);
    assert_eq!((judgement.verdict, judgement.reason), (Verdict::Unsupported, Reason::OptionNotSet));
    assert!(!judgement.advisories.is_empty(), "the advisory is still shown");
}

#[test]
fn symbols_that_tell_nothing_are_no_witness() {
    let mut symbols = config(BOOT, Kind::Kallsyms, END);
    symbols.state = State::Empty;
    let judgement = judged("6.8.0-142-generic", &[symbols.clone()]);
    assert_eq!(judgement.reason, Reason::NoWitness);
    symbols.state = State::Absent;
    let judgement = judged("6.8.0-142-generic", &[symbols.clone()]);
    assert_eq!(
        (judgement.verdict, judgement.reason),
        (Verdict::Unsupported, Reason::SymbolsAbsent)
    );
    symbols.state = State::Y;
    let judgement = judged("6.8.0-142-generic", &[symbols]);
    assert_eq!((judgement.verdict, judgement.reason), (Verdict::Supported, Reason::SymbolsPresent));
}

#[test]
fn an_absence_says_why_when_it_can() {
    let because = |text: &str, of: &str| {
        let witness = config_witness(BOOT, Kind::BootConfig, text.as_bytes(), Some(&release(of)));
        judged(of, &[witness]).absent_because
    };
    let off = "CONFIG_PCI=y\n# CONFIG_ZONE_DEVICE is not set\nCONFIG_MAGIC_SYSRQ=y\n";
    assert!(because(off, "6.12.9-custom").is_some_and(|why| why.contains("ZONE_DEVICE")));
    assert!(because(END, "4.14.35-2047.el7uek.x86_64").is_some_and(|why| why.contains("4.20")));
    assert_eq!(because(END, "6.12.9-custom"), None);
    let written = "# Linux/x86 4.14.35 Kernel Configuration\n";
    assert!(
        because(&format!("{written}{off}"), "4.14.35-x").is_some_and(|why| why.contains("4.20"))
    );
}

#[test]
fn without_a_release_the_answer_is_release_unknown() {
    let judgement = judge(None, &[], true, &knowledge());
    assert_eq!((judgement.verdict, judgement.reason), (Verdict::Unknown, Reason::ReleaseUnknown));
}

#[test]
fn an_advisory_with_needs_only_warns_by_the_release() {
    let release = release("7.0.0-34-generic");
    let knowledge = knowledge();
    let effects: Vec<_> = knowledge
        .advisories_for(&release)
        .map(|advisory| (advisory.effect, advisory.effect_on_release()))
        .collect();
    assert_eq!(effects, [(Effect::Block, Effect::Warn); 2]);
    assert_eq!(judge_release(&release, Some(true), &knowledge), Verdict::Supported);
}
