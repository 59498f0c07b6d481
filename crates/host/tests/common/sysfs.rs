//! Builds trees of `/sys`, `/proc` files and PCI configuration space for tests.
#![allow(dead_code, reason = "each test uses a part")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use fastpath_host::DirTree;
use tempfile::TempDir;

/// What PCI Express calls a function.
pub(crate) const ENDPOINT: u16 = 0;
pub(crate) const ROOT_PORT: u16 = 4;
pub(crate) const UPSTREAM: u16 = 5;
pub(crate) const DOWNSTREAM: u16 = 6;
/// A part of the root complex.
pub(crate) const INTEGRATED: u16 = 9;

/// ACS control as Linux sets it when an IOMMU is in use, and without redirection.
pub(crate) const REDIRECT: u16 = 0x1d;
pub(crate) const NO_REDIRECT: u16 = 0x01;

/// A directory to build a host in.
pub(crate) struct Sysfs {
    root: PathBuf,
    _temporary: Option<TempDir>,
}

/// One PCI function.
#[derive(Clone, Debug)]
pub(crate) struct Device {
    pub(crate) vendor: u16,
    pub(crate) product: u16,
    pub(crate) class: u32,
    /// Port type, `None` without PCI Express.
    pub(crate) port: Option<u16>,
    /// ACS control word, `None` without the capability.
    pub(crate) acs: Option<u16>,
    /// Length of `config`, `None` without the file.
    pub(crate) config: Option<usize>,
    pub(crate) group: Option<u32>,
    pub(crate) files: Vec<(&'static str, String)>,
}

impl Device {
    pub(crate) fn new(vendor: u16, device: u16, class: u32) -> Self {
        let config = Some(4096);
        let port = Some(ENDPOINT);
        Self {
            vendor,
            product: device,
            class,
            port,
            acs: None,
            config,
            group: None,
            files: Vec::new(),
        }
    }

    pub(crate) fn gpu() -> Self {
        Self::new(0x1002, 0x74a1, 0x12_0000)
    }

    pub(crate) fn nvme() -> Self {
        Self::new(0x144d, 0xa80a, 0x01_0802)
    }

    pub(crate) fn port(vendor: u16, device: u16, kind: u16) -> Self {
        let acs = matches!(kind, ROOT_PORT | DOWNSTREAM).then_some(NO_REDIRECT);
        Self { port: Some(kind), acs, ..Self::new(vendor, device, 0x06_0400) }
    }

    /// What stands first on most root buses.
    pub(crate) fn host_bridge(vendor: u16, device: u16) -> Self {
        Self { port: None, config: Some(256), ..Self::new(vendor, device, 0x06_0000) }
    }

    pub(crate) fn acs(self, control: u16) -> Self {
        Self { acs: Some(control), ..self }
    }

    pub(crate) fn config(self, length: usize) -> Self {
        Self { config: Some(length), ..self }
    }

    pub(crate) fn without_config(self) -> Self {
        Self { config: None, ..self }
    }

    pub(crate) fn group(self, number: u32) -> Self {
        Self { group: Some(number), ..self }
    }

    pub(crate) fn file(mut self, name: &'static str, text: impl Into<String>) -> Self {
        self.files.push((name, text.into()));
        self
    }

    /// Its configuration space: PCI Express at 0x40, ACS behind a serial number.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; 4096];
        bytes[0..2].copy_from_slice(&self.vendor.to_le_bytes());
        bytes[2..4].copy_from_slice(&self.product.to_le_bytes());
        bytes[9..12].copy_from_slice(&self.class.to_le_bytes()[..3]);
        bytes[0x0e] = u8::from(self.class >> 8 == 0x0604);
        if let Some(kind) = self.port {
            bytes[0x06] = 0x10;
            bytes[0x34] = 0x40;
            bytes[0x40] = 0x10;
            bytes[0x42..0x44].copy_from_slice(&(2 | (kind << 4)).to_le_bytes());
            bytes[0x100..0x104].copy_from_slice(&0x0001_0003_u32.to_le_bytes());
            bytes[0x104..0x10c].copy_from_slice(SERIAL);
        }
        if let Some(control) = self.acs {
            bytes[0x100..0x104].copy_from_slice(&0x1501_0003_u32.to_le_bytes());
            bytes[0x150..0x154].copy_from_slice(&0x0001_000d_u32.to_le_bytes());
            bytes[0x156..0x158].copy_from_slice(&control.to_le_bytes());
        }
        bytes.truncate(self.config.unwrap_or(0));
        bytes
    }
}

/// What stands in the serial number of every device.
pub(crate) const SERIAL: &[u8; 8] = b"SECRET12";

impl Sysfs {
    pub(crate) fn new() -> Self {
        let temporary = TempDir::new().unwrap();
        Self { root: temporary.path().to_owned(), _temporary: Some(temporary) }
    }

    /// Builds below a directory that stays.
    pub(crate) fn at(root: &Path) -> Self {
        Self { root: root.to_owned(), _temporary: None }
    }

    pub(crate) fn tree(&self) -> DirTree {
        DirTree::open(&self.root).unwrap()
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        let path = self.root.join(path.trim_start_matches('/'));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        path
    }

    pub(crate) fn file(&self, path: &str, bytes: impl AsRef<[u8]>) -> &Self {
        fs::write(self.path(path), bytes).unwrap();
        self
    }

    pub(crate) fn link(&self, path: &str, target: &str) -> &Self {
        symlink(target, self.path(path)).unwrap();
        self
    }

    /// A function at its place below `/sys/devices`: `pci0000:00/0000:00:01.0/0000:01:00.0`.
    pub(crate) fn device(&self, place: &str, device: &Device) -> &Self {
        let (parent, address) = place.rsplit_once('/').unwrap();
        assert!(parent.starts_with("pci"), "{place}");
        let at = format!("sys/devices/{place}");
        let hex = |digits: usize, number: u32| format!("0x{number:0digits$x}\n");
        self.file(&format!("{at}/vendor"), hex(4, device.vendor.into()));
        self.file(&format!("{at}/device"), hex(4, device.product.into()));
        self.file(&format!("{at}/class"), hex(6, device.class));
        if device.config.is_some() {
            self.file(&format!("{at}/config"), device.bytes());
        }
        if let Some(group) = device.group {
            let up = "../".repeat(place.split('/').count() + 1);
            self.link(&format!("{at}/iommu_group"), &format!("{up}kernel/iommu_groups/{group}"));
        }
        for (name, text) in &device.files {
            self.file(&format!("{at}/{name}"), text);
        }
        self.link(&format!("sys/bus/pci/devices/{address}"), &format!("../../../devices/{place}"))
    }

    pub(crate) fn group(&self, number: u32, kind: &str) -> &Self {
        self.file(&format!("sys/kernel/iommu_groups/{number}/type"), format!("{kind}\n"))
    }

    pub(crate) fn cpu(&self, vendor: &str, family: u32) -> &Self {
        let one = |number: u32| {
            format!(
                "processor\t: {number}\nvendor_id\t: {vendor}\ncpu family\t: {family}\nmodel\t\t: 17\n\n"
            )
        };
        self.file("proc/cpuinfo", format!("{}{}", one(0), one(1)))
    }

    pub(crate) fn zen(&self) -> &Self {
        self.cpu("AuthenticAMD", 25)
    }

    pub(crate) fn intel(&self) -> &Self {
        self.cpu("GenuineIntel", 6)
    }

    pub(crate) fn command_line(&self, text: &str) -> &Self {
        self.file("proc/cmdline", format!("{text}\n"))
    }
}
