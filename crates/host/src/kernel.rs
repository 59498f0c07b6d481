//! Everything the kernel layer of a check needs to know about a host.

use std::collections::BTreeMap;

use fastpath_knowledge::Release;
use serde::{Deserialize, Serialize};

use crate::boot::{self, NextBoot};
use crate::driver::{self, DriverFacts};
use crate::installed::{Installed, installed, other_configs, unlisted};
use crate::os::{Environment, OsRelease};
use crate::pci::{self, PciFacts};
use crate::runtime::{self, RuntimeFacts};
use crate::tree::{Tree, Want};
use crate::volume::{self, VolumeFacts};
use crate::witness::{Budget, Evidence, Witness, witnesses};

/// The kernel a question is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// The one that runs.
    Running,
    /// This one, whichever runs.
    Release(Release),
}

/// The facts of one host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// The operating system in the root.
    pub os: OsRelease,
    /// What kind of place it is.
    pub environment: Environment,
    /// The kernel layer.
    pub kernel: KernelFacts,
    /// The PCI devices, if they were asked for.
    #[serde(default)]
    pub pci: Option<PciFacts>,
    /// The driver layer, if it was asked for.
    #[serde(default)]
    pub driver: Option<DriverFacts>,
    /// The runtime layer, if it was asked for.
    #[serde(default)]
    pub runtime: Option<RuntimeFacts>,
    /// The volume layer, if it was asked for.
    #[serde(default)]
    pub volume: Option<VolumeFacts>,
}

/// What to read besides the kernel layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "each is a layer of its own")]
pub struct Scope {
    /// The driver layer.
    pub driver: bool,
    /// The runtime layer.
    pub runtime: bool,
    /// The path layer.
    pub path: bool,
    /// The volume layer.
    pub volume: bool,
}

impl Scope {
    /// Every layer.
    pub const ALL: Self = Self { driver: true, runtime: true, path: true, volume: true };
}

/// Facts about the kernel asked about and those installed beside it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelFacts {
    /// The release asked about; `None` if the root does not tell which kernel runs.
    pub release: Option<Release>,
    /// The release that runs, if the root tells.
    pub running: Option<Release>,
    /// Where that was read.
    pub running_source: Option<Evidence>,
    /// Every place looked at for the release asked about, in order of rank, missing ones included.
    pub witnesses: Vec<Witness>,
    /// Configurations of other releases, by path.
    pub other_configs: Vec<String>,
    /// Kernels with an image, newest first.
    pub installed: Vec<Installed>,
    /// Directories that may hold kernels and could not be listed, with the reason.
    pub unlisted: Vec<(String, String)>,
    /// The kernel that boots next.
    pub next_boot: NextBoot,
}

/// Reads all facts of the kernel layer.
pub fn gather(tree: &dyn Tree, asked: &Asked) -> Facts {
    let os = OsRelease::read(tree);
    let (running, running_source) = running(tree).unzip();
    let environment = Environment::read(tree, running.as_ref());
    let release = match asked {
        Asked::Running => running.clone(),
        Asked::Release(release) => Some(release.clone()),
    };
    let mut budget = Budget::default();
    let found = release
        .as_ref()
        .map(|release| witnesses(tree, release, running.as_ref() == Some(release), &mut budget));
    let witnesses = found.unwrap_or_default();
    let known = release.as_ref().map(|release| (release, witnesses.as_slice()));
    let installed = installed(tree, running.as_ref(), known, &mut budget);
    let releases: Vec<Release> = installed.iter().map(|kernel| kernel.release.clone()).collect();
    let kernel = KernelFacts {
        next_boot: boot::next_boot(tree, &os, environment, &releases),
        other_configs: release
            .as_ref()
            .map(|release| other_configs(tree, release))
            .unwrap_or_default(),
        unlisted: unlisted(tree),
        witnesses,
        release,
        running,
        running_source,
        installed,
    };
    Facts { os, environment, kernel, pci: None, driver: None, runtime: None, volume: None }
}

/// Reads the kernel layer and those in `scope`. `variables` are the environment of the program that is asked about: it may name
/// places of libraries.
pub fn gather_layers(
    tree: &dyn Tree,
    asked: &Asked,
    scope: Scope,
    variables: &BTreeMap<String, String>,
) -> Facts {
    let mut facts = gather(tree, asked);
    let pci = (scope.path || scope.driver).then(|| pci::read(tree));
    let kernel = &facts.kernel;
    facts.driver = pci.as_ref().filter(|_| scope.driver).map(|pci| {
        match kernel.release.as_ref().filter(|_| kernel.release != kernel.running) {
            Some(release) => driver::read_for(tree, pci, kernel.running.as_ref(), release),
            None => driver::read(tree, pci, kernel.running.as_ref(), &kernel.witnesses),
        }
    });
    facts.runtime = scope.runtime.then(|| runtime::read(tree, variables));
    facts.volume = scope.volume.then(|| volume::read(tree));
    facts.pci = pci;
    facts
}

/// The running kernel's release and where it stands.
fn running(tree: &dyn Tree) -> Option<(Release, Evidence)> {
    const OSRELEASE: &str = "/proc/sys/kernel/osrelease";
    const VERSION: &str = "/proc/version";
    const LIMIT: usize = 4096;
    let read = |path: &str, want: &Want| {
        let content = tree.read(path, want).ok()?;
        Some(String::from_utf8_lossy(&content.bytes).lines().next()?.to_owned())
    };
    let evidence = |path: &str, line: &str| Evidence {
        path: path.to_owned(),
        line: Some(1),
        text: Some(line.to_owned()),
    };
    if let Some(line) = read(OSRELEASE, &Want::whole(LIMIT))
        && let Some(release) = Release::new(&line)
    {
        return Some((release, evidence(OSRELEASE, &line)));
    }
    let line = read(VERSION, &Want::lines(LIMIT, keep_version))?;
    let release = Release::new(line.strip_prefix("Linux version ")?)?;
    Some((release, evidence(VERSION, &line)))
}

/// Keeps `Linux version R`: what follows names who built the kernel, and where.
fn keep_version(line: &[u8], out: &mut Vec<u8>) {
    let words: Vec<&[u8]> = line.split(|&byte| byte == b' ').take(3).collect();
    out.extend_from_slice(&words.join(&b' '));
}
