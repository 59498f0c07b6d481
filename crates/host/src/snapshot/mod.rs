//! Snapshots: what was asked about a host, and what the answers were, in one file.
//!
//! A [`Recorder`] stands between the readers and a root and remembers every question with its answer; [`write`] puts
//! them into an archive; a [`Replay`] over that archive answers the same questions on another machine, so that the same
//! readers give the same facts there.
//!
//! # The format, `fastpath.snapshot/1`
//!
//! A tar archive of regular files, compressed with zstd (plain tar is read as well). The first member is
//! `manifest.json`, an object with
//!
//! | field | |
//! | --- | --- |
//! | `schema` | `"fastpath.snapshot/1"` |
//! | `tool` | version of the program that wrote it |
//! | `time` | when, RFC 3339 in UTC |
//! | `euid` | effective user it was read as |
//! | `uname` | `sysname`, `release`, `machine` of the kernel it was read on, or null if a directory was read |
//! | `paths` | the questions, sorted by path |
//!
//! Each question has `path` (absolute, as on the host), `op` (`read`, `list`, `kind`) and `state`:
//!
//! | state | more fields |
//! | --- | --- |
//! | `file` | `id`: small integer, the same for two names of one file; `length` of what is kept; `original`: length before strings were taken out, if another; `filtered` and `lines` if only parts of its lines were read; `same_as`: the path that keeps the bytes of this one; `member`: where the bytes are, if not under `root` |
//! | `directory` | `entries`: `name` and `kind` of each; `masked` if there are names among them that stand for others |
//! | `kind` | `kind` |
//! | `missing` | |
//! | `wrong-kind` | `kind` |
//! | `too-large` | `limit` |
//! | `errno` | `errno`: its symbol, `EACCES` |
//!
//! The bytes of a file follow as member `root/<path>`. Machine ids and UUIDs in names are masked with
//! [`mask_ids`](crate::mask::mask_ids); names that would become one are numbered in their last digits. A listed name that
//! no reader looks for and nobody asked about becomes `masked name 1`, `masked name 2` and so on. Fields may be added; a
//! reader ignores those it does not know.
//!
//! A snapshot may come from anyone: reading one is bounded in memory, writes nothing, and follows no name out of it. The
//! bounds are those of this module's constants. With them, a reader that takes a copy of the largest file and inflates it
//! stays below 150 MiB; no real snapshot comes near them, for 128 kernels have 40 MB of configurations.

mod archive;
mod errno;
mod manifest;
mod names;
mod record;
mod replay;
mod time;

pub use archive::{Existing, WriteError, write, write_file};
pub use manifest::{Meta, Uname};
pub use record::Recorder;
pub use replay::{Replay, SnapshotError};

use crate::kernel::Facts;
use crate::lines::Filtered;
use crate::mask::mask_ids;
use crate::tree::LineFilter;

/// The schema of the manifest.
pub const SCHEMA: &str = "fastpath.snapshot/1";

/// The name of the first member.
const MANIFEST: &str = "manifest.json";

/// More members than this is no snapshot.
pub const MAX_MEMBERS: usize = 10_000;

/// More questions than this is no snapshot.
pub const MAX_QUESTIONS: usize = 16_384;

/// The most answers to one question: a file may be read through several filters.
const MAX_ANSWERS: usize = 16;

/// The most bytes of an archive once decompressed.
pub const MAX_BYTES: usize = 64 << 20;

/// The most bytes of a compressed archive.
pub const MAX_PACKED: usize = 32 << 20;

/// The most bytes of a manifest.
pub const MAX_MANIFEST: usize = 4 << 20;

/// The longest name of a member, and the most bytes of what may stand in front of one to say it.
const MAX_NAME: usize = 16 << 10;

/// The largest zstd window, what RFC 8878 asks every decoder for and what `zstd -19` uses.
pub const MAX_WINDOW: u64 = 8 << 20;

/// Whether the facts of a host and those of its snapshot are the same but for the names that are masked in it.
pub fn same_facts(host: &Facts, snapshot: &Facts) -> bool {
    // Facts are plain records: they cannot fail to become text.
    let text = |facts: &Facts| serde_json::to_string(facts).map(|text| mask_ids(&text));
    host == snapshot || matches!((text(host), text(snapshot)), (Ok(a), Ok(b)) if a == b)
}

/// The kinds of question.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "lowercase")]
enum Op {
    Read,
    List,
    Kind,
    Link,
}

/// One spelling for each path: from `/`, without empty and `.` components. A slash at the end stays, for it asks for a
/// directory; `..` stays, for what it means depends on links.
fn normal(path: &str) -> String {
    let mut out = String::with_capacity(path.len() + 1);
    for component in components(path) {
        out.push('/');
        out.push_str(component);
    }
    if out.is_empty() || path.ends_with('/') || path.ends_with("/.") {
        out.push('/');
    }
    out
}

fn filtered(bytes: &[u8], filter: LineFilter) -> Vec<u8> {
    let mut lines = Filtered::new(filter);
    lines.push(bytes);
    lines.finish()
}

fn components(path: &str) -> impl DoubleEndedIterator<Item = &str> {
    path.split('/').filter(|component| !matches!(*component, "" | "."))
}

#[cfg(test)]
mod tests {
    use super::normal;

    #[test]
    fn one_spelling_for_each_path() {
        for (path, expected) in [
            ("", "/"),
            ("/", "/"),
            (".", "/"),
            ("//a/./b", "/a/b"),
            ("a/b/", "/a/b/"),
            ("/a/.", "/a/"),
            ("/a/../b", "/a/../b"),
            ("/a.", "/a."),
        ] {
            assert_eq!(normal(path), expected, "{path}");
            assert_eq!(normal(expected), expected, "{path} twice");
        }
    }
}
