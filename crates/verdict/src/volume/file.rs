//! Whether the fastpath is taken for one named file.

use fastpath_host::volume::{Located, VolumeFacts};
use fastpath_host::{Evidence, FileKind};
use fastpath_knowledge::Knowledge;
use serde::{Deserialize, Serialize};

use super::stack::Stack;
use super::{Answer, Rules, fstype};
use crate::words::{Reason, Verdict};

/// One file, judged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileVerdict {
    /// The path that was asked about.
    pub path: String,
    /// The mount that holds it, by index into the facts.
    pub index: Option<usize>,
    /// Its mount point.
    pub mount: Option<String>,
    /// Its type, as in [`VolumeVerdict`](super::VolumeVerdict).
    pub fstype: Option<String>,
    /// The answer.
    pub verdict: Verdict,
    /// The first rule that stops it.
    pub reason: Reason,
    /// The same in a clause.
    pub detail: String,
    /// What every memory address must be a multiple of, in bytes.
    pub memory_alignment: Option<u32>,
    /// What every offset and length must be a multiple of, in bytes; other requests take the fallback.
    pub offset_alignment: Option<u32>,
    /// It rests on something that was not read.
    pub assumed: bool,
    /// Where it was seen.
    pub evidence: Vec<Evidence>,
}

/// A page of memory on the machines that this is about.
const PAGE: u32 = 4096;

/// Judges one file as hipFile and the driver do, in their order: what it is, the file system, the journal mode, direct I/O, then
/// the device. `build` as in [`judge`](super::judge).
///
/// Source: hipFile's fastpath asks for direct I/O alignments with `statx`, and takes 4096 bytes where the kernel tells none.
pub fn judge_file(
    located: &Located,
    facts: &VolumeFacts,
    build: Option<u64>,
    knowledge: &Knowledge,
) -> FileVerdict {
    let rules = Rules::new(facts, build, knowledge);
    let mount = located.mount.and_then(|index| facts.mounts.get(index));
    let (answer, detail) = answer(&rules, located);
    let page_aligned = build.is_none() || rules.driver.rule.is_none_or(|rule| rule.page_aligned);
    let (memory, offset) = located.direct_io.unwrap_or((PAGE, PAGE));
    // Only a file that is read and written directly has an alignment to keep.
    let aligned = memory > 0 && offset > 0;
    FileVerdict {
        path: located.path.clone(),
        index: located.mount,
        mount: mount.map(|mount| mount.mount_point.clone()),
        fstype: mount.map(fstype),
        verdict: answer.verdict,
        reason: answer.reason,
        detail,
        memory_alignment: aligned.then_some(memory),
        offset_alignment: aligned.then_some(if page_aligned { offset.max(PAGE) } else { offset }),
        assumed: answer.assumed,
        evidence: mount.map(|mount| rules.evidence(mount)).unwrap_or_default(),
    }
}

fn answer(rules: &Rules, located: &Located) -> (Answer, String) {
    let unknown = |detail: String| (Answer::unknown(Reason::VolumeUnreadable), detail);
    let direct = match located.direct_io {
        Some((memory, offset)) => memory > 0 && offset > 0,
        None => true,
    };
    let no_direct_io = || {
        let detail = "the kernel says that direct I/O is not done on this file".to_owned();
        (Answer::no(Reason::NoDirectIo), detail)
    };
    match located.kind {
        Some(FileKind::BlockDevice) if located.devices.is_empty() => {
            return unknown("which block device it is could not be read".to_owned());
        }
        Some(FileKind::BlockDevice) if !direct => return no_direct_io(),
        Some(FileKind::BlockDevice) => {
            let stack = Stack::new(&located.devices, &rules.driver);
            return (stack.judge(0, 1), format!("a block device: {}", stack.backing(Some(0))));
        }
        // Of a directory: the files that are made in it.
        Some(FileKind::File | FileKind::Directory) => {}
        Some(kind) => {
            return (Answer::no(Reason::FileType), format!("it is {}", kind.describe()));
        }
        None => {
            let why = located.unread.as_ref().map_or("", |unread| unread.reason.as_str());
            return unknown(format!("what it is could not be read: {why}"));
        }
    }
    if let Some(doubt) = &located.doubt {
        return unknown(doubt.clone());
    }
    let Some(mount) = located.mount.and_then(|index| rules.facts.mounts.get(index)) else {
        return unknown("no mount in the table holds it".to_owned());
    };
    let file_system = rules.file_system(mount);
    let on = format!("on {} at {}", fstype(mount), mount.mount_point);
    if !file_system.is_ok() {
        return (file_system, on);
    }
    if !direct {
        return no_direct_io();
    }
    let answer = rules.mount(mount);
    // Without the kernel's word hipFile takes a usual alignment, which may not be this file's.
    let assumed = answer.assumed | located.direct_io.is_none();
    (Answer { assumed, ..answer }, format!("{on}, {}", rules.backing(mount)))
}
