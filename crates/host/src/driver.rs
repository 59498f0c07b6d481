//! To come.

use serde::{Deserialize, Serialize};

use crate::tree::Tree;

/// The driver layer of a host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DriverFacts {}

/// Reads the driver layer.
pub fn read(tree: &dyn Tree) -> DriverFacts {
    let _ = tree;
    DriverFacts::default()
}
