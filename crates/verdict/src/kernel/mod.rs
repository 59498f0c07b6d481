//! The verdict on one kernel: which witness decides, which disagree, which advisories mark it.

mod findings;
mod installed;

use fastpath_host::{Kind, State, Witness};
use fastpath_kconfig::{Symbol, Value};
use fastpath_knowledge::{Advisory, Effect, Knowledge, Release};

use crate::words::{Reason, Verdict};

pub(crate) use findings::Case;
pub use installed::InstalledVerdict;
pub(crate) use installed::judge_installed;

/// The verdict on one kernel, with indices into the witnesses it was made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// The answer.
    pub verdict: Verdict,
    /// Why.
    pub reason: Reason,
    /// The option's value; `None` if no sound witness was found.
    pub value: Option<State>,
    /// The witness that decides.
    pub decides: Option<usize>,
    /// Sound witnesses that disagree with it.
    pub conflicts: Vec<usize>,
    /// Advisories that mark the release, by index into the knowledge.
    pub advisories: Vec<usize>,
    /// Why the option is absent, if that can be told.
    pub absent_because: Option<String>,
}

/// Judges a kernel by its release and the witnesses found for it, in order of rank. `elsewhere` tells that there are
/// configurations of other kernels, so that "nothing for this one" can be told from "nothing at all".
///
/// The highest-ranked sound witness decides. A blocking advisory makes a `y`, and a value that could not be read,
/// `blocked`: an unknown value never lifts a block.
pub fn judge(
    release: Option<&Release>,
    witnesses: &[Witness],
    elsewhere: bool,
    knowledge: &Knowledge,
) -> Judgement {
    let decides = witnesses.iter().position(Witness::can_decide);
    let value = decides.map(|index| witnesses[index].state);
    let conflicts = witnesses
        .iter()
        .enumerate()
        .filter(|(index, witness)| {
            Some(*index) != decides
                && witness.can_decide()
                && value.is_some_and(|value| (value == State::Y) != (witness.state == State::Y))
        })
        .map(|(index, _)| index)
        .collect();
    let advisories: Vec<usize> = release
        .map(|release| {
            let marks = |(_, advisory): &(usize, &Advisory)| advisory.matches(release);
            knowledge.advisories.iter().enumerate().filter(marks).map(|(index, _)| index).collect()
        })
        .unwrap_or_default();
    let blocked = advisories
        .iter()
        .any(|&index| knowledge.advisories[index].effect_on_release() == Effect::Block);
    let (verdict, reason) = match decides.map(|index| &witnesses[index]) {
        Some(witness) => match (witness.state, witness.kind) {
            (State::Y, _) if blocked => (Verdict::Blocked, Reason::Advisory),
            (State::Y, Kind::Kallsyms) => (Verdict::Supported, Reason::SymbolsPresent),
            (State::Y, _) => (Verdict::Supported, Reason::OptionY),
            (State::Absent, Kind::Kallsyms) => (Verdict::Unsupported, Reason::SymbolsAbsent),
            (State::M, _) => (Verdict::Unsupported, Reason::OptionMInvalid),
            (State::N, _) => (Verdict::Unsupported, Reason::OptionN),
            (State::NotSet, _) => (Verdict::Unsupported, Reason::OptionNotSet),
            (_, _) => (Verdict::Unsupported, Reason::OptionAbsent),
        },
        None if blocked => (Verdict::Blocked, Reason::Advisory),
        None if release.is_none() => (Verdict::Unknown, Reason::ReleaseUnknown),
        None => (Verdict::Unknown, undecided(witnesses, elsewhere)),
    };
    let absent_because = decides
        .map(|index| &witnesses[index])
        .filter(|witness| witness.state == State::Absent)
        .and_then(|witness| absent_because(witness, release));
    Judgement { verdict, reason, value, decides, conflicts, advisories, absent_because }
}

/// Judges a kernel of which only the release and whether it has the option are known, as in a row of the matrix; `None`
/// is an option that could not be read.
pub fn judge_release(
    release: &Release,
    has_option: Option<bool>,
    knowledge: &Knowledge,
) -> Verdict {
    let blocked = knowledge
        .advisories_for(release)
        .any(|advisory| advisory.effect_on_release() == Effect::Block);
    match (has_option, blocked) {
        (Some(false), _) => Verdict::Unsupported,
        (_, true) => Verdict::Blocked,
        (Some(true), false) => Verdict::Supported,
        (None, false) => Verdict::Unknown,
    }
}

/// Why nothing decides: what is wrong with the highest-ranked witness that exists.
fn undecided(witnesses: &[Witness], elsewhere: bool) -> Reason {
    // Symbols that tell nothing are no witness, and a file without a release in its name never was one.
    let counts = |witness: &&Witness| {
        witness.kind.may_decide()
            && witness.state != State::Missing
            && !(witness.kind == Kind::Kallsyms && witness.state == State::Empty)
    };
    let source_tree =
        witnesses.iter().any(|one| !one.kind.may_decide() && one.state != State::Missing);
    match witnesses.iter().find(counts).map(|witness| witness.state) {
        Some(State::Unreadable) => Reason::WitnessUnreadable,
        Some(State::Empty) => Reason::WitnessEmpty,
        Some(State::Truncated) => Reason::WitnessTruncated,
        Some(State::Malformed) => Reason::WitnessMalformed,
        Some(_) => Reason::NoWitnessForThisKernel,
        None if elsewhere || source_tree => Reason::NoWitnessForThisKernel,
        None => Reason::NoWitness,
    }
}

/// Why a whole configuration has no line for the option: the kernel is older than the option, or what it depends on is
/// off.
fn absent_because(witness: &Witness, release: Option<&Release>) -> Option<String> {
    const FIRST: (u32, u32) = (4, 20);
    let header = witness.header_version.as_deref().and_then(Release::new);
    let version = header.as_ref().or(release)?.major_minor()?;
    if version < FIRST {
        return Some(format!(
            "the option came with Linux {}.{}, this is {}.{}",
            FIRST.0, FIRST.1, version.0, version.1
        ));
    }
    match witness.companion(Symbol::ZoneDevice)? {
        Value::NotSet | Value::Absent | Value::N => {
            Some("CONFIG_ZONE_DEVICE, which it depends on, is off".to_owned())
        }
        _ => None,
    }
}
