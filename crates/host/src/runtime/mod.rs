//! To come.

use serde::{Deserialize, Serialize};

use crate::tree::Tree;

/// The runtime layer of a host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuntimeFacts {}

/// Reads the runtime layer.
pub fn read(tree: &dyn Tree) -> RuntimeFacts {
    let _ = tree;
    RuntimeFacts::default()
}
