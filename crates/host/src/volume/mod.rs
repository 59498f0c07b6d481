//! To come.

use serde::{Deserialize, Serialize};

use crate::tree::Tree;

/// The volume layer of a host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VolumeFacts {}

/// Reads the volume layer.
pub fn read(tree: &dyn Tree) -> VolumeFacts {
    let _ = tree;
    VolumeFacts::default()
}
