//! What follows for one running process: whether the library it has loaded takes the fastpath, and for which of its files.

use fastpath_host::Evidence;
use fastpath_host::process::{OpenFile, ProcessFacts};

use crate::volume::FileVerdict;
use crate::words::{Finding, Layer, Reason, Status, Verdict, finding};

/// One process, judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessVerdict {
    /// What is known of it.
    pub facts: ProcessFacts,
    /// Whether it can take the fastpath, as far as its own settings go.
    pub verdict: Verdict,
    /// Why.
    pub reason: Reason,
    /// Its open files, each judged.
    pub files: Vec<(OpenFile, FileVerdict)>,
    /// Findings, the main one first.
    pub findings: Vec<Finding>,
}

/// The setting that keeps hipFile from the fastpath, and the one that keeps it from its fallback.
const FORCE: &str = "HIPFILE_FORCE_COMPAT_MODE";

/// Judges a process. Files that are no regular ones are left out.
pub fn judge(facts: ProcessFacts, files: Vec<(OpenFile, FileVerdict)>) -> ProcessVerdict {
    let files: Vec<_> =
        files.into_iter().filter(|(_, verdict)| verdict.reason != Reason::FileType).collect();
    let name = facts.name.as_deref().unwrap_or("the process");
    let forced = facts.variables.get(FORCE).is_some_and(|value| value.eq_ignore_ascii_case("true"));
    let unread = facts.unread.iter().find(|(path, _)| path.ends_with("/maps"));
    let new = |id, status, summary: String, explanation: &str| {
        Finding::new(id, Layer::Runtime, status, summary, explanation.to_owned(), None)
    };
    let (verdict, reason, main) = if let Some((path, why)) = unread {
        let summary = format!("which libraries {name} has loaded cannot be told: {path}: {why}");
        let explanation = "Run as root, or as the user whose process it is.";
        let main = new(finding::PROCESS_LIBRARIES, Status::Unknown, summary, explanation);
        (Verdict::Unknown, Reason::ProcessUnreadable, main)
    } else if facts.hipfile.is_empty() {
        let summary = format!("{name} has not loaded hipFile's library");
        let explanation =
            "It does no I/O through hipFile now. A program may load the library later.";
        let main = new(finding::PROCESS_LIBRARIES, Status::Fail, summary, explanation);
        (Verdict::Unsupported, Reason::HipfileNotLoaded, main)
    } else if forced {
        let summary =
            format!("{name} was started with {FORCE}=true, so it always takes the fallback");
        let explanation = "The variable is read once, when the process does its first I/O: it must be started anew without it.";
        let main = new(finding::PROCESS_ENVIRONMENT, Status::Fail, summary, explanation);
        (Verdict::Unsupported, Reason::ForcedFallback, main)
    } else {
        let summary = format!("{name} has loaded {}", facts.hipfile.join(" and "));
        let explanation = "Its own settings allow the fastpath.";
        let main = new(finding::PROCESS_LIBRARIES, Status::Pass, summary, explanation);
        (Verdict::Supported, Reason::HipfileLoaded, main)
    };
    let evidence = |file: &str| Evidence {
        path: format!("/proc/{}/{file}", facts.pid),
        line: None,
        text: None,
    };
    let file = if main.id == finding::PROCESS_ENVIRONMENT { "environ" } else { "maps" };
    let main = Finding { evidence: vec![evidence(file)], ..main };
    let mut findings = vec![main];
    if facts.other_mounts == Some(true) {
        let summary =
            format!("{name} has mounts of its own: volumes and files are as it sees them");
        let explanation = "It runs in another mount namespace, as in a container.";
        let finding = new(finding::PROCESS_MOUNTS, Status::Info, summary, explanation);
        findings.push(Finding { evidence: vec![evidence("mountinfo")], ..finding });
    }
    ProcessVerdict { facts, verdict, reason, files, findings }
}
