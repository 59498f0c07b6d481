//! Distributions to default kernels to rows.
//!
//! For each target: the distribution's signed repository index, the default kernel in it, the smallest package that
//! holds that kernel's configuration, the configuration read out of it, a [`Record`] in the data set.
//!
//! It does not judge a configuration and does not render: see `verdict` and `report`.

mod dataset;
mod diff;
mod kept;
mod read;
mod record;
mod refresh;
mod resolved;

pub mod apt;
pub mod debian;
pub mod pacman;
pub mod rpm;
pub mod trust;

pub use dataset::{Dataset, DatasetError, SCHEMA};
pub use diff::{Change, Look, diff, flipped};
pub use read::{PackageReading, ReadError, Reader};
pub use record::{Record, Trust};
pub use refresh::{refresh_path, refreshes, write_refreshes};
pub use resolved::{Kind, Resolved};
