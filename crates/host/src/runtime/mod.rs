//! The HIP runtime and hipFile's library on a host: which ones there are, which one a program gets, and whether the runtime has
//! what the fastpath is called by. Files are read, never loaded.

mod cache;
#[cfg(all(test, feature = "runtime"))]
mod counted;
mod elf;
mod mark;
mod search;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::driver::Small;
use crate::tree::Tree;
use crate::tree::Unread;
use crate::witness::Evidence;

pub use elf::Image;
pub use mark::MARK;
#[cfg(feature = "runtime")]
pub use mark::is_ours;
pub use search::{Asked, Library, Place};

/// The runtime layer of a host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuntimeFacts {
    /// Every `libamdhip64`, each file once, in the order in which a program that names no path finds them.
    pub libraries: Vec<Library>,
    /// Every `libhipfile`, in the same way.
    pub hipfile: Vec<Library>,
    /// Installations of ROCm.
    pub installations: Vec<Installation>,
    /// What may have told something and could not be read.
    pub unread: Vec<Unread>,
    /// There were more directories or libraries than are looked at.
    pub cut: bool,
    /// Whether there is a place in which a loader looks: the loader's cache or one of its directories. Without one this is no
    /// system with programs.
    #[serde(default)]
    pub has_loader: bool,
}

/// One installation of ROCm.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Installation {
    /// Its directory, links resolved.
    pub path: String,
    /// What `.info/version` says, `7.2.0-43`.
    pub version: Option<Evidence>,
}

/// The names of functions that are looked for in libraries.
pub mod exports {
    /// Reads from a file into GPU memory; since ROCm 7.2.
    pub const AIS_READ: &str = "hipAmdFileRead";
    /// Writes from GPU memory to a file; since ROCm 7.2.
    pub const AIS_WRITE: &str = "hipAmdFileWrite";
    /// hipFile's own, in every version.
    pub const HIPFILE_READ: &str = "hipFileRead";
    /// hipFile's statistics, since 0.5.
    pub const HIPFILE_STATS: &str = "hipFileGetStatsL1";

    /// All of them.
    pub const ALL: [&str; 4] = [AIS_READ, AIS_WRITE, HIPFILE_READ, HIPFILE_STATS];
}

/// Reads the runtime layer. `environment` are the variables of the program that is asked about; of a host that is read from
/// another machine nothing is known of them, and it is empty.
pub fn read(tree: &dyn Tree, environment: &BTreeMap<String, String>) -> RuntimeFacts {
    let mut search = search::Search::new(Small::new(tree), environment);
    let [libraries, hipfile] = search::STEMS.map(|stem| search.libraries(stem));
    let installations = search.installations();
    let has_loader = search.has_loader();
    let (unread, cut) = search.finish();
    RuntimeFacts { libraries, hipfile, installations, unread, cut, has_loader }
}

/// The runtimes that are worth loading to ask them, in order: libraries of this machine's kind that could be read.
pub fn libraries_to_ask(facts: &RuntimeFacts) -> Vec<&str> {
    let is_library = |library: &&Library| matches!(library.image, Image::Library { .. });
    facts.libraries.iter().filter(is_library).map(|library| library.file.as_str()).collect()
}
