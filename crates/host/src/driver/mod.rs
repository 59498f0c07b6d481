//! AMD's GPU driver on a host: which one is loaded, what it says of each GPU, and what was built by DKMS.
//!
//! Only AMD's out-of-tree driver registers a GPU's memory for peer-to-peer DMA, so where a driver comes from matters as much
//! as that it is there.

mod dkms;
mod gpu;
mod kfd;
mod module;
mod other;
mod small;

use std::borrow::Cow;

use fastpath_knowledge::Release;
use serde::{Deserialize, Serialize};

use crate::pci::{Address, PciFacts, Role};
use crate::tree::{FileKind, Tree, Unread};
use crate::witness::{Evidence, Symbols, Witness};

pub use dkms::DkmsBuild;
pub use gpu::Gpu;
pub use kfd::Node;
pub use module::{AmdgpuModule, Loaded};
pub use other::OtherKernel;
pub(crate) use small::Small;

/// The driver layer of a host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DriverFacts {
    /// The release that runs, if the root tells: a build for another kernel is none.
    pub running: Option<Release>,
    /// The module `amdgpu`.
    pub module: AmdgpuModule,
    /// What DKMS has built of it, for whichever kernel.
    pub builds: Vec<DkmsBuild>,
    /// What the running kernel's symbols say of it; `None` if they tell nothing or the module is not loaded.
    pub symbols: Option<Symbols>,
    /// Whether `/dev/kfd` is there; `None` if the root holds no devices at all.
    pub kfd: Option<bool>,
    /// The nodes of KFD's topology, by number.
    pub nodes: Vec<Node>,
    /// What the driver says of each GPU of the PCI layer.
    pub gpus: Vec<Gpu>,
    /// What may have told something and could not be read.
    pub unread: Vec<Unread>,
    /// The kernel that is asked about, if it is not the one that runs: what is loaded now then says nothing.
    #[serde(default)]
    pub other: Option<OtherKernel>,
}

/// Reads the driver layer for the GPUs of the PCI layer. `witnesses` are those of the kernel that runs, if they were
/// read before: the list of its symbols is long, and is read once.
pub fn read(
    tree: &dyn Tree,
    pci: &PciFacts,
    running: Option<&Release>,
    witnesses: &[Witness],
) -> DriverFacts {
    gather(tree, pci, running, Some(witnesses))
}

/// Reads the driver layer for a kernel that does not run.
pub fn read_for(
    tree: &dyn Tree,
    pci: &PciFacts,
    running: Option<&Release>,
    release: &Release,
) -> DriverFacts {
    DriverFacts { other: Some(other::read(tree, release)), ..gather(tree, pci, running, None) }
}

/// Without witnesses the symbols of the kernel that runs are of no use.
fn gather(
    tree: &dyn Tree,
    pci: &PciFacts,
    running: Option<&Release>,
    witnesses: Option<&[Witness]>,
) -> DriverFacts {
    let mut small = Small::new(tree);
    let nodes = kfd::nodes(&mut small);
    let module = module::read(&mut small, running, nodes.iter().any(Node::is_gpu));
    let symbols = witnesses
        .filter(|_| matches!(module.loaded, Loaded::Module | Loaded::BuiltIn))
        .and_then(|witnesses| symbols(&mut small, witnesses));
    let builds = dkms::builds(&mut small, running);
    let gpus = pci.with_role(Role::Gpu).map(|gpu| gpu::read(&mut small, &gpu.address)).collect();
    let is_there = |path| tree.kind(path) == Ok(FileKind::CharacterDevice);
    let kfd = is_there("/dev/null").then(|| is_there("/dev/kfd"));
    DriverFacts {
        running: running.cloned(),
        module,
        builds,
        symbols,
        kfd,
        nodes,
        gpus,
        unread: small.unread,
        other: None,
    }
}

/// What the symbols say of amdgpu, from the witness that has them or else from the file.
fn symbols(small: &mut Small<'_>, witnesses: &[Witness]) -> Option<Symbols> {
    let is_kallsyms = |witness: &&Witness| witness.path == crate::witness::KALLSYMS;
    let witness = match witnesses.iter().find(is_kallsyms) {
        Some(witness) => Cow::Borrowed(witness),
        None => Cow::Owned(crate::witness::kallsyms(small.tree)),
    };
    if let Some(detail) = witness.detail.as_ref().filter(|_| witness.symbols.is_none()) {
        small.unread.push(Unread {
            path: witness.path.clone(),
            reason: detail.clone(),
            permission: witness.permission,
            not_recorded: witness.not_recorded,
        });
    }
    witness.symbols.clone()
}

impl DriverFacts {
    /// The nodes of one GPU: several if it is partitioned.
    pub fn nodes_of<'a>(&'a self, gpu: &'a Address) -> impl Iterator<Item = &'a Node> + 'a {
        self.nodes.iter().filter(move |node| node.is_gpu() && node.address.as_ref() == Some(gpu))
    }
}

/// A line of a file, as evidence.
fn evidence(path: String, line: u32, text: &str) -> Evidence {
    Evidence { path, line: Some(line), text: Some(text.to_owned()) }
}
