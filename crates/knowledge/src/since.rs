//! From which version on something is there.

use std::sync::OnceLock;

use serde::Deserialize;

/// What came with a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Feature {
    /// AMD's driver can do AIS.
    DriverWithAis,
    /// AMD's driver finds the drives below logical volumes.
    DriverThroughLvm,
    /// AMD's driver can use NFS over RDMA.
    DriverWithNfsRdma,
    /// The HIP runtime has the functions that the fastpath is called by.
    RuntimeWithAis,
    /// The kernel can map every GPU's memory with randomised addresses on x86.
    KernelMapsAllWithKaslr,
}

impl Feature {
    /// All of them, in the order of the data.
    pub const ALL: [Self; 5] = [
        Self::DriverWithAis,
        Self::DriverThroughLvm,
        Self::DriverWithNfsRdma,
        Self::RuntimeWithAis,
        Self::KernelMapsAllWithKaslr,
    ];

    /// The first version that has it, `30.20.1`.
    pub fn since(self) -> &'static str {
        // A test looks for each of them.
        table().iter().find(|one| one.what == self).map_or("?", |one| one.version.as_str())
    }
}

/// The first version with something.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Since {
    /// What.
    pub what: Feature,
    /// Whose version it is.
    pub product: String,
    /// It.
    pub version: String,
    /// How it is known.
    pub source: String,
    /// Where.
    pub url: String,
    /// When that was read, `YYYY-MM-DD`.
    pub date: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    since: Vec<Since>,
}

/// The embedded table, parsed when it is first asked for.
fn table() -> &'static [Since] {
    static TABLE: OnceLock<Vec<Since>> = OnceLock::new();
    TABLE.get_or_init(|| {
        // A test parses the embedded file, so the default is never taken.
        toml::from_str::<File>(include_str!("../data/since.toml"))
            .map(|file| file.since)
            .unwrap_or_default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_one_entry_with_a_version() {
        let features: Vec<Feature> = table().iter().map(|one| one.what).collect();
        assert_eq!(features, Feature::ALL);
        for feature in Feature::ALL {
            let numbers = feature.since().split('.').all(|part| part.parse::<u32>().is_ok());
            assert!(numbers, "{feature:?}: {}", feature.since());
        }
    }
}
