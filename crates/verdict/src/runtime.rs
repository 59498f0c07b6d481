//! The verdict on the HIP runtime.

use fastpath_host::Evidence;
use fastpath_host::runtime::{Asked, Image, Library, Place, RuntimeFacts, exports};
use fastpath_knowledge::{Feature, Knowledge};
use serde::{Deserialize, Serialize};

use crate::hint::{Hint, hints};
use crate::words::{Finding, Layer, Reason, Status, Verdict, finding};

/// The runtime layer, judged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuntimeVerdict {
    /// That of the library a program gets.
    pub verdict: Verdict,
    /// Why.
    pub reason: Reason,
    /// Every `libamdhip64`, in the order a program finds them.
    pub libraries: Vec<LibraryVerdict>,
    /// What was found.
    pub findings: Vec<Finding>,
}

/// One `libamdhip64`, judged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LibraryVerdict {
    /// Where it was found.
    pub path: String,
    /// By what.
    pub place: Place,
    /// The version in its name.
    pub version: Option<String>,
    /// It is the one that a program gets that names no path of its own.
    pub first: bool,
    /// Whether it has what the fastpath is called by.
    pub verdict: Verdict,
    /// Why.
    pub reason: Reason,
}

/// Judges the runtime layer: hipFile calls `hipAmdFileRead` and `hipAmdFileWrite` of the runtime that the program has loaded, and
/// takes its fallback for good if one of them is not there. What counts is the library a program gets, not the best one.
pub fn judge(facts: &RuntimeFacts, _knowledge: &Knowledge) -> RuntimeVerdict {
    let first = facts.libraries.iter().position(|library| library.image != Image::OtherMachine);
    let libraries: Vec<LibraryVerdict> = facts
        .libraries
        .iter()
        .enumerate()
        .map(|(index, library)| {
            let (verdict, reason) = of_library(library);
            LibraryVerdict {
                path: library.path.clone(),
                place: library.place,
                version: library.version.clone(),
                first: Some(index) == first,
                verdict,
                reason,
            }
        })
        .collect();
    let (verdict, reason) = match first {
        Some(first) => (libraries[first].verdict, libraries[first].reason),
        None if facts.unread.is_empty() && !facts.cut && facts.has_loader => {
            (Verdict::Unsupported, Reason::RuntimeMissing)
        }
        None => (Verdict::Unknown, Reason::RuntimeUnreadable),
    };
    let case =
        Case { facts, first: first.map(|index| &facts.libraries[index]), libraries: &libraries };
    let findings = case.findings(reason);
    RuntimeVerdict { verdict, reason, libraries, findings }
}

fn of_library(library: &Library) -> (Verdict, Reason) {
    match &library.asked {
        Some(Asked::Answer { direct_storage: true, .. }) => {
            return (Verdict::Supported, Reason::RuntimeReady);
        }
        Some(Asked::Answer { .. }) => return (Verdict::Unsupported, Reason::RuntimeWithoutAis),
        Some(Asked::Failed(_)) => return (Verdict::Unknown, Reason::RuntimeUnreadable),
        None => {}
    }
    let image = &library.image;
    match (image.has(exports::AIS_READ), image.has(exports::AIS_WRITE)) {
        (Some(true), Some(true)) => (Verdict::Supported, Reason::RuntimeReady),
        (Some(_), Some(_)) => (Verdict::Unsupported, Reason::RuntimeWithoutAis),
        _ if *image == Image::OtherMachine => (Verdict::Unsupported, Reason::RuntimeOtherMachine),
        _ => (Verdict::Unknown, Reason::RuntimeUnreadable),
    }
}

struct Case<'a> {
    facts: &'a RuntimeFacts,
    /// The library a program gets.
    first: Option<&'a Library>,
    libraries: &'a [LibraryVerdict],
}

impl Case<'_> {
    fn findings(&self, reason: Reason) -> Vec<Finding> {
        let mut findings = vec![self.library(reason)];
        findings.extend(self.others());
        findings.extend(self.not_of_loader());
        findings.push(self.hipfile());
        findings
    }

    /// The requirement itself.
    fn library(&self, reason: Reason) -> Finding {
        let name = self.first.map_or_else(String::new, named);
        let (status, summary, explanation): (Status, String, &str) = match reason {
            Reason::RuntimeReady => (
                Status::Pass,
                format!("{name} has hipAmdFileRead and hipAmdFileWrite"),
                "hipFile calls the fastpath by these two functions of the HIP runtime.",
            ),
            Reason::RuntimeWithoutAis => (
                Status::Fail,
                format!("{name} lacks {}", self.missing().join(" and ")),
                &format!(
                    "hipFile calls the fastpath by hipAmdFileRead and hipAmdFileWrite, which the HIP runtime has since ROCm {}. \
                     Without them every transfer takes the fallback.",
                    Feature::RuntimeWithAis.since()
                ),
            ),
            Reason::RuntimeMissing => (
                Status::Fail,
                "there is no HIP runtime (libamdhip64) here".to_owned(),
                "It was looked for where the loader and hipFile look. A program may bring its own, in a place of its own: \
                 name its directory in LD_LIBRARY_PATH to have that one judged.",
            ),
            _ => (
                Status::Unknown,
                self.unreadable(),
                "Whether the HIP runtime can do the fastpath depends on that file.",
            ),
        };
        let evidence = self.first.map(|library| Evidence {
            path: library.file.clone(),
            line: None,
            text: None,
        });
        let evidence = evidence.into_iter().chain(self.versions()).collect();
        let hint = self.hint(reason);
        Finding {
            evidence,
            ..Finding::new(
                finding::RUNTIME_LIBRARY,
                Layer::Runtime,
                status,
                summary,
                explanation,
                hint,
            )
        }
    }

    /// The functions that the first library lacks.
    fn missing(&self) -> Vec<&'static str> {
        let has = |name| self.first.and_then(|library| library.image.has(name)) == Some(true);
        [exports::AIS_READ, exports::AIS_WRITE].into_iter().filter(|name| !has(name)).collect()
    }

    fn unreadable(&self) -> String {
        match self.first {
            Some(library) => {
                let what = match (&library.asked, &library.image) {
                    (Some(Asked::Failed(why)), _) | (_, Image::Unread(why)) => why,
                    (_, Image::NotElf) => "not a shared library",
                    _ => "damaged, or without a table of its functions",
                };
                format!("{}: {what}", library.path)
            }
            None if !self.facts.has_loader => {
                "this root has no place where a loader looks for libraries".to_owned()
            }
            None => match self.facts.unread.first() {
                Some(unread) => format!("{}: {}", unread.path, unread.reason),
                None => "there are more directories and libraries than are looked at".to_owned(),
            },
        }
    }

    fn versions(&self) -> impl Iterator<Item = Evidence> {
        let file = self.first.map(|library| library.file.as_str()).unwrap_or_default();
        let holds =
            move |path: &str| file.strip_prefix(path).is_some_and(|rest| rest.starts_with('/'));
        let installations = self.facts.installations.iter();
        installations.filter(move |one| holds(&one.path)).filter_map(|one| one.version.clone())
    }

    /// The best of the other libraries, if it would do.
    fn better(&self) -> Option<&LibraryVerdict> {
        self.libraries.iter().find(|one| !one.first && one.verdict == Verdict::Supported)
    }

    fn hint(&self, reason: Reason) -> Option<Hint> {
        match reason {
            Reason::RuntimeWithoutAis | Reason::RuntimeUnreadable if self.better().is_some() => {
                let better = self.better()?;
                let (directory, _) = better.path.rsplit_once('/')?;
                let text = format!("let programs take {} first", better.path);
                let command = format!(
                    "export LD_LIBRARY_PATH=\"{directory}${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}\""
                );
                Some(Hint::new(hints::OTHER_RUNTIME, text, vec![command]))
            }
            Reason::RuntimeWithoutAis | Reason::RuntimeMissing => {
                let text = format!(
                    "install ROCm {} or newer: https://rocm.docs.amd.com/projects/install-on-linux/en/latest/",
                    Feature::RuntimeWithAis.since()
                );
                Some(Hint::new(hints::INSTALL_ROCM, text, Vec::new()))
            }
            Reason::RuntimeUnreadable
                if self.facts.unread.iter().any(|unread| unread.permission) =>
            {
                let text = "run as root: a file that may tell could not be read";
                Some(Hint::as_root(text))
            }
            _ => None,
        }
    }

    /// Several runtimes that do not all have the same answer.
    fn others(&self) -> Option<Finding> {
        let first = self.libraries.iter().find(|one| one.first)?;
        let differs = |one: &&LibraryVerdict| {
            one.verdict != first.verdict && one.reason != Reason::RuntimeOtherMachine
        };
        let other = self.libraries.iter().find(differs)?;
        let word = |one: &LibraryVerdict| match one.verdict {
            Verdict::Supported => "has AIS",
            Verdict::Unknown => "cannot be read",
            _ => "lacks AIS",
        };
        let summary = format!(
            "{} {}, {} {}: a program that names no path gets the first one",
            first.path,
            word(first),
            other.path,
            word(other)
        );
        let explanation = "Several HIP runtimes are installed. A program that was linked with a path, or looks in a place of \
                           its own, may get another one.";
        let evidence = self.facts.libraries.iter().map(|library| Evidence {
            path: library.path.clone(),
            line: None,
            text: Some(format!("found by {}", library.place.describe())),
        });
        Some(Finding {
            evidence: evidence.collect(),
            ..Finding::new(
                finding::RUNTIME_SEVERAL,
                Layer::Runtime,
                Status::Warn,
                summary,
                explanation,
                None,
            )
        })
    }

    /// A runtime that the loader does not find by itself.
    fn not_of_loader(&self) -> Option<Finding> {
        let first = self.libraries.iter().find(|one| one.first)?;
        (!first.place.is_of_loader()).then(|| {
            let summary = format!("the loader finds {} only for programs that name its directory", first.path);
            let explanation = "It is neither in /etc/ld.so.cache nor below LD_LIBRARY_PATH. Programs built with ROCm's tools name \
                               the directory; for others write it to a file in /etc/ld.so.conf.d and run ldconfig.";
            Finding::new(finding::RUNTIME_LOADER, Layer::Runtime, Status::Info, summary, explanation, None)
        })
    }

    /// hipFile's own library: worth knowing, but a program may bring it.
    fn hipfile(&self) -> Finding {
        let is_it = |library: &&Library| library.image.has(exports::HIPFILE_READ) == Some(true);
        let found = self.facts.hipfile.iter().find(is_it);
        let summary = match found {
            Some(library) => {
                let stats = library.image.has(exports::HIPFILE_STATS) == Some(true);
                let stats = if stats { ", with statistics" } else { "" };
                format!("programs get {}{stats}", named(library))
            }
            None => "hipFile's library (libhipfile) is not installed".to_owned(),
        };
        let explanation = "Programs are linked to libhipfile.so.0 or load libhipfile.so. One that brings its own does not need it here.";
        let evidence =
            found.map(|library| Evidence { path: library.file.clone(), line: None, text: None });
        Finding {
            evidence: evidence.into_iter().collect(),
            ..Finding::new(
                finding::RUNTIME_HIPFILE,
                Layer::Runtime,
                Status::Info,
                summary,
                explanation,
                None,
            )
        }
    }
}

/// A library with the version in the name of its file, if that is another name.
fn named(library: &Library) -> String {
    let shown = |version: &&String| !library.path.ends_with(version.as_str());
    match library.version.as_ref().filter(shown) {
        Some(version) => format!("{} ({version})", library.path),
        None => library.path.clone(),
    }
}
