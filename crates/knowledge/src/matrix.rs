//! The support matrix: targets, and what was published about their default kernels.

use serde::Deserialize;

use crate::release::Release;

/// An operating system of ROCm's compatibility matrix, and the release that stands in for it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// The name as published, `rhel-9.8`.
    pub name: String,
    /// The name in the survey's catalogue, accepted as well.
    pub id: String,
    /// `ID` of the system's `os-release`.
    pub os_id: String,
    /// `VERSION_ID` of the system's `os-release`.
    pub os_version: String,
}

/// A published table of rows.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// Who published it.
    pub origin: String,
    /// Where.
    pub url: String,
    /// When it was read, `YYYY-MM-DD`.
    pub date: String,
    /// How the values were found, in words.
    pub method: String,
    /// The rows, in published order.
    pub row: Vec<Row>,
}

/// One row: a target and its default kernel.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// The target's name.
    pub target: String,
    /// The operating system that was inspected.
    pub os: String,
    /// Its default kernel.
    pub kernel: Release,
    /// Whether that kernel's configuration has the option.
    pub p2pdma: bool,
}
