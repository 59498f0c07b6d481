//! What is found.

use fastpath_knowledge::Release;

/// One kernel, or one word about one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Where inside the input, parts separated by `!`: `data.tar.xz!boot/config-6.1.0-57-amd64`. `None` if the input is
    /// the configuration itself.
    pub member: Option<String>,
    /// The kernel's release, from the name of the member or of the package, or from the kernel's own version string;
    /// `None` if nothing tells.
    pub release: Option<Release>,
    /// What it says.
    pub evidence: Evidence,
    /// How many bytes of the input had been read when this was found.
    pub bytes_read: u64,
}

/// What says something about a kernel, strongest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// The text of a configuration, decompressed.
    Config(Vec<u8>),
    /// Exported or linked symbols (`System.map`, `Module.symvers`): whether the option's own are among them. `None` if
    /// the list has no PCI symbols or is cut, so that it tells nothing. An image without a configuration that exports
    /// them gives `Some(true)`; it never gives `Some(false)`, since a build can leave out unused exports.
    Symbols(Option<bool>),
    /// A kernel image that carries no configuration; its version string if it has one.
    NoConfig {
        /// `6.12.0-124.29.1.el10_1.x86_64`, from the image's own header.
        version: Option<String>,
    },
}
