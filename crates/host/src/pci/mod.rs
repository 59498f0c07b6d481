//! The PCI devices of a host: which they are, which bridges stand above them, and what the kernel's P2P decision rests on.

use serde::{Deserialize, Serialize};

use crate::tree::Tree;

/// The address of a PCI function, `0000:02:00.0`, as sysfs spells it. Domains have four digits or more.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Address(String);

impl Address {
    /// The address in a text, if it is one: `DDDD:BB:DD.F` in lower-case hexadecimal.
    pub fn new(text: &str) -> Option<Self> {
        let (domain, rest) = text.split_once(':')?;
        let (bus, rest) = rest.split_once(':')?;
        let (device, function) = rest.split_once('.')?;
        let hex = |text: &str, least: usize, most: usize| {
            (least..=most).contains(&text.len())
                && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        };
        let sound = hex(domain, 4, 8)
            && hex(bus, 2, 2)
            && hex(device, 2, 2)
            && matches!(function.as_bytes(), [b'0'..=b'7']);
        sound.then(|| Self(text.to_owned()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&self.0)
    }
}

/// The PCI layer of a host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PciFacts {}

/// Reads the PCI layer.
pub fn read(tree: &dyn Tree) -> PciFacts {
    let _ = tree;
    PciFacts::default()
}
