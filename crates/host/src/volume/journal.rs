//! The journal mode of an ext4, as it is and not only as it was asked for.

use serde::{Deserialize, Serialize};

use super::table::Mount;
use crate::tree::{Tree, Want};
use crate::witness::Evidence;

/// What ext4 writes into its journal. Source: <https://docs.kernel.org/admin-guide/ext4.html>, `data=`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JournalMode {
    /// Metadata, after the data it speaks of is on the disk: the default.
    Ordered,
    /// Metadata only.
    Writeback,
    /// Data too; direct I/O is then done through the page cache.
    Journal,
    /// There is no journal.
    None,
    /// A word that is none of these.
    Other,
}

impl JournalMode {
    /// The word used in output.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ordered => "ordered",
            Self::Writeback => "writeback",
            Self::Journal => "journal",
            Self::None => "no journal",
            Self::Other => "unknown mode",
        }
    }

    fn named(word: &str) -> Self {
        match word {
            "ordered" => Self::Ordered,
            "writeback" => Self::Writeback,
            "journal" => Self::Journal,
            _ => Self::Other,
        }
    }
}

/// How a journal mode is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum JournalSource {
    /// `/proc/fs/ext4/DEVICE/options`: the mode in effect.
    Effective,
    /// The `data=` option of the mount.
    MountOption,
    /// Nothing says it. The default of ext4 is `ordered`, but `tune2fs -o` may have set another one, which the mount table does
    /// not show.
    Assumed,
}

/// The journal mode of one mounted ext4.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Journal {
    /// The mode.
    pub mode: JournalMode,
    /// How it is known.
    pub source: JournalSource,
    /// Where it was read.
    pub evidence: Evidence,
}

/// A few hundred bytes on real kernels.
const OPTIONS_LIMIT: usize = 64 << 10;

/// The name of the block device that a mounted ext4 is on: as sysfs has it, else as the table does.
pub(super) fn device<'a>(block: Option<&'a str>, mount: &'a Mount) -> &'a str {
    let source = || mount.source.as_deref().and_then(|source| source.strip_prefix("/dev/"));
    block.filter(|name| !name.is_empty()).or_else(source).unwrap_or_default()
}

/// The mode in effect of the ext4 on the block device `name`.
pub(super) fn effective(tree: &dyn Tree, name: &str) -> Option<Journal> {
    if name.is_empty() {
        return None;
    }
    let path = format!("/proc/fs/ext4/{name}/options");
    let content = tree.read(&path, &Want::lines(OPTIONS_LIMIT, keep_option)).ok()?;
    let text = String::from_utf8_lossy(&content.bytes).into_owned();
    // Every such file begins with `rw` or `ro`; one that holds nothing says nothing, not that there is no journal.
    text.lines().find(|line| !line.is_empty())?;
    let found = text.lines().zip(1_u32..).find(|(line, _)| line.starts_with("data="));
    let (mode, line, text) = match found {
        Some((text, line)) => {
            (JournalMode::named(&text["data=".len()..]), Some(line), Some(text.to_owned()))
        }
        // Without a journal ext4 shows no mode at all.
        None => (JournalMode::None, None, None),
    };
    let evidence = Evidence { path, line, text };
    Some(Journal { mode, source: JournalSource::Effective, evidence })
}

fn keep_option(line: &[u8], out: &mut Vec<u8>) {
    if line == b"rw" || line == b"ro" || line.starts_with(b"data=") {
        out.extend_from_slice(line);
    }
}

/// The mode of a mounted ext4, from what was read of its device and from the mount's own options in the table.
pub(super) fn of(effective: Option<&Journal>, mount: &Mount, table: &str) -> Journal {
    if let Some(journal) = effective {
        return journal.clone();
    }
    let (mode, source) = match mount.data.as_deref() {
        Some(word) => (JournalMode::named(word), JournalSource::MountOption),
        None => (JournalMode::Ordered, JournalSource::Assumed),
    };
    let text = mount.data.as_ref().map(|word| format!("data={word}"));
    let evidence = Evidence { path: table.to_owned(), line: Some(mount.line), text };
    Journal { mode, source, evidence }
}
