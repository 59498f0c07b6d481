//! What AMD's driver does with storage that is more than a partition of an NVMe drive.

use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

/// The rules of one range of builds of AMD's driver.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StorageRule {
    /// The first build number they hold for.
    pub from: u64,
    /// The driver, in words.
    pub driver: String,
    /// Whether it is published that they hold from that build on.
    pub confirmed: bool,
    /// Whether offsets and lengths must be multiples of a page whatever the file itself asks for.
    pub page_aligned: bool,
    /// Logical volumes of LVM.
    pub lvm: Treatment,
    /// dm-crypt, as LUKS.
    #[serde(rename = "dm-crypt")]
    pub dm_crypt: Treatment,
    /// dm-multipath.
    #[serde(rename = "dm-multipath")]
    pub dm_multipath: Treatment,
    /// Other device-mapper devices.
    pub dm: Treatment,
    /// Linux software RAID.
    pub md: Treatment,
    /// Loop devices.
    #[serde(rename = "loop")]
    pub loop_device: Treatment,
    /// NVMe over RDMA.
    #[serde(rename = "nvme-rdma")]
    pub nvme_rdma: Treatment,
    /// NFS over RDMA.
    #[serde(rename = "nfs-rdma")]
    pub nfs_rdma: Treatment,
    /// The most members that one device-mapper device may have.
    pub members: usize,
    /// The most device-mapper devices that may stand on each other.
    pub levels: usize,
    /// When this was read, `YYYY-MM-DD`.
    pub date: String,
    /// How it is known.
    pub source: String,
    /// Where.
    pub url: String,
}

/// What a driver does with a kind of storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Treatment {
    /// The fastpath goes through it.
    Yes,
    /// It does not.
    No,
    /// Nobody has said or shown.
    Unconfirmed,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    storage: Vec<StorageRule>,
}

/// The embedded rules, parsed when they are first asked for.
pub fn storage() -> &'static [StorageRule] {
    static STORAGE: OnceLock<Vec<StorageRule>> = OnceLock::new();
    STORAGE.get_or_init(|| {
        // A test parses the embedded file, so the default is never taken.
        toml::from_str::<File>(include_str!("../data/storage.toml"))
            .map(|file| file.storage)
            .unwrap_or_default()
    })
}
