//! The manifest: what a snapshot says about itself and about each path.

use std::fmt;

use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::{MAX_QUESTIONS, Op, time};
use crate::tree::{Entry, FileKind};

/// What a snapshot says about itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meta {
    /// The version of the program that wrote it.
    pub tool: String,
    /// When, RFC 3339 in UTC: `2026-11-30T17:20:58Z`.
    pub time: String,
    /// The effective user it was read as; 0 is root.
    pub euid: u32,
    /// The kernel it was read on; `None` if a directory was read, for that is about another host.
    pub uname: Option<Uname>,
}

/// What `uname` says, without the host's name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Uname {
    /// `Linux`.
    pub sysname: String,
    /// The running kernel.
    pub release: String,
    /// `x86_64`.
    pub machine: String,
}

impl Meta {
    /// For a snapshot that this process takes of a directory; see [`Meta::with_uname`] for this host itself.
    pub fn new(tool: &str, time: &str) -> Self {
        Self {
            tool: tool.to_owned(),
            time: time.to_owned(),
            euid: rustix::process::geteuid().as_raw(),
            uname: None,
        }
    }

    /// Adds this machine's `uname`: only right when the root is `/`.
    #[must_use]
    pub fn with_uname(self) -> Self {
        let uname = rustix::system::uname();
        let uname = Uname {
            sysname: uname.sysname().to_string_lossy().into_owned(),
            release: uname.release().to_string_lossy().into_owned(),
            machine: uname.machine().to_string_lossy().into_owned(),
        };
        Self { uname: Some(uname), ..self }
    }

    /// Whether it can be shown: these texts go to terminals.
    pub(super) fn is_sound(&self) -> bool {
        let uname = self.uname.as_ref();
        let texts = uname.map(|uname| [&uname.sysname, &uname.release, &uname.machine]);
        let sound = |text: &String| text.len() <= 256 && !text.chars().any(char::is_control);
        time::unix_seconds(&self.time).is_some()
            && sound(&self.tool)
            && texts.into_iter().flatten().all(sound)
    }
}

/// The version of a manifest, read before anything else of it.
#[derive(Deserialize)]
pub(super) struct Version {
    pub(super) schema: String,
}

/// The whole of a manifest.
#[derive(Serialize, Deserialize)]
pub(super) struct Manifest {
    pub(super) schema: String,
    pub(super) tool: String,
    pub(super) time: String,
    pub(super) euid: u32,
    pub(super) uname: Option<Uname>,
    #[serde(deserialize_with = "questions")]
    pub(super) paths: Vec<Question>,
}

/// Not more questions than a snapshot has, for each takes a hundred times the memory of its shortest text.
fn questions<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Question>, D::Error> {
    struct Questions;
    impl<'de> Visitor<'de> for Questions {
        type Value = Vec<Question>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list of questions")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
            let mut questions = Vec::new();
            while let Some(question) = seq.next_element()? {
                if questions.len() == MAX_QUESTIONS {
                    return Err(A::Error::custom(format!("more than {MAX_QUESTIONS} questions")));
                }
                questions.push(question);
            }
            Ok(questions)
        }
    }
    deserializer.deserialize_seq(Questions)
}

/// What there is at a path, or why that is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum State {
    File,
    Directory,
    Kind,
    Link,
    Missing,
    WrongKind,
    TooLarge,
    Errno,
}

/// One question and its answer. Flat, with the fields of every state: serde would hold a tagged form in memory twice.
#[derive(Serialize, Deserialize)]
pub(super) struct Question {
    pub(super) path: String,
    pub(super) op: Op,
    pub(super) state: State,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) length: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) original: Option<u64>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) filtered: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) lines: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) same_as: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) member: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) entries: Option<Vec<Entry>>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) masked: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) kind: Option<FileKind>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) target: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) limit: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) errno: Option<String>,
}

impl Question {
    pub(super) fn new(path: String, op: Op, state: State) -> Self {
        Self {
            path,
            op,
            state,
            id: None,
            length: None,
            original: None,
            filtered: false,
            lines: None,
            same_as: None,
            member: None,
            entries: None,
            masked: false,
            kind: None,
            target: None,
            limit: None,
            errno: None,
        }
    }
}
