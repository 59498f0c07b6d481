//! What follows for one running process: whether the library it has loaded takes the fastpath, and for which of its files.

use fastpath_host::Evidence;
use fastpath_host::process::{OpenFile, ProcessFacts};

use crate::setting::{FORCE_COMPAT_MODE as FORCE, Reader, boolean};
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

/// Judges a process. Files that are no regular ones are left out.
pub fn judge(facts: ProcessFacts, files: Vec<(OpenFile, FileVerdict)>) -> ProcessVerdict {
    let files: Vec<_> =
        files.into_iter().filter(|(_, verdict)| verdict.reason != Reason::FileType).collect();
    let name = facts.name.as_deref().unwrap_or("the process");
    // A library that cannot be told is read as the stricter one.
    let reader = if facts.ours == Some(true) { Reader::Ours } else { Reader::Amd };
    let value = facts.variables.get(FORCE).map(String::as_str).unwrap_or_default();
    let forced = boolean(value, reader) == Some(true);
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
            format!("{name} was started with {FORCE}={value}, so it always takes the fallback");
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
    if !forced && !facts.hipfile.is_empty() && boolean(value, Reader::Ours) == Some(true) {
        let whose =
            if facts.ours.is_some() { "the library it has loaded" } else { "AMD's library" };
        let summary = format!("{name} was started with {FORCE}={value}, which {whose} ignores");
        let explanation = "AMD's library knows true and false only; with 1, on or yes it is as if nothing was set. To keep the \
                           process off the fastpath start it anew with true.";
        let finding = new(finding::PROCESS_ENVIRONMENT, Status::Warn, summary, explanation);
        findings.push(Finding { evidence: vec![evidence("environ")], ..finding });
    }
    if facts.other_mounts == Some(true) {
        let summary =
            format!("{name} has mounts of its own: volumes and files are as it sees them");
        let explanation = "It runs in another mount namespace, as in a container.";
        let finding = new(finding::PROCESS_MOUNTS, Status::Info, summary, explanation);
        findings.push(Finding { evidence: vec![evidence("mountinfo")], ..finding });
    }
    ProcessVerdict { facts, verdict, reason, files, findings }
}
