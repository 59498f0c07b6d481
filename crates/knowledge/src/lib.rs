//! Data that ages: advisories, remedies, kernel families, targets and the published matrix.
//!
//! Everything that changes without the code changing lives in `data/*.toml`, embedded at build time. A user's file of
//! the same form adds to it ([`Knowledge::extend`]); nothing can remove or weaken an entry that is embedded, so a
//! block stays a block.
//!
//! This crate also holds what is needed to apply the data: the parts of a kernel release ([`Release`]), version
//! constraints ([`Constraint`]) and glob patterns.
//!
//! It reads no files and does not judge: it says which entries apply to a release.

mod advisory;
mod amdgpu;
mod explain;
mod host_bridge;
mod keys;
mod knowledge;
mod matrix;
mod pattern;
mod release;
mod remedy;
mod since;
mod storage;
mod version;

pub use advisory::{Advisory, Condition, Effect, IommuGroupType, MapType, Needs, Origin};
pub use amdgpu::{AisDriver, Amdgpu, Capability, DriverInstall, VirtualDevice, VirtualGpu};
pub use explain::{Explanation, explanations};
pub use host_bridge::{
    HostBridge, HostBridges, Id, Known, P2pdmaBackport, P2pdmaLevel, P2pdmaRule, Rule, host_bridges,
};
pub use keys::{PinnedKey, keys};
pub use knowledge::{Error, Knowledge};
pub use matrix::{Follow, Published, RepositoryFamily, Row, Signed, Source, Target, catalogue};
pub use pattern::Pattern;
pub use release::{ElTag, Release};
pub use remedy::{
    BadVerdict, Driver, DriverBuild, Family, Reboot, Refresh, Remedy, RemedyKernel, RemedyKind,
    When,
};
pub use since::{Feature, Since};
pub use storage::{StorageRule, Treatment, storage};
pub use version::{Constraint, compare};
