//! What AMD's driver makes of the block devices below a file system.

use std::cell::RefCell;
use std::collections::HashMap;

use fastpath_host::pci::Address;
use fastpath_host::volume::{Controller, Device, DeviceKind, DmRole, Transport};

use super::{Answer, Driver};
use crate::words::{Reason, Verdict};

/// Block devices that name each other by index, and the driver that judges them.
pub(super) struct Stack<'a> {
    devices: &'a [Device],
    driver: &'a Driver<'a>,
    /// Answers by device and level, so that one that many others stand on is judged once.
    known: RefCell<HashMap<(usize, usize), Answer>>,
}

impl<'a> Stack<'a> {
    pub(super) fn new(devices: &'a [Device], driver: &'a Driver<'a>) -> Self {
        Self { devices, driver, known: RefCell::default() }
    }

    /// What the driver makes of each device as the one below a file system.
    pub(super) fn answers(&self) -> Vec<Answer> {
        (0..self.devices.len()).map(|index| self.judge(index, 1)).collect()
    }

    fn get(&self, index: Option<usize>) -> Option<&'a Device> {
        index.and_then(|index| self.devices.get(index))
    }

    /// The disk that a partition is part of, else the device itself.
    fn disk(&self, mut device: &'a Device) -> &'a Device {
        while device.kind == DeviceKind::Partition
            && let Some(disk) = self.get(device.below.first().copied())
        {
            device = disk;
        }
        device
    }

    /// What the driver makes of a device and of all below it. `level`: how many device-mapper devices there are so far, with
    /// this one if it is one.
    pub(super) fn judge(&self, index: usize, level: usize) -> Answer {
        let Some(device) = self.devices.get(index) else {
            return Answer::unknown(Reason::VolumeUnreadable);
        };
        if let Some(answer) = self.known.borrow().get(&(index, level)) {
            return *answer;
        }
        let answer = self.device(device, level);
        self.known.borrow_mut().insert((index, level), answer);
        answer
    }

    fn device(&self, device: &'a Device, level: usize) -> Answer {
        let disk = self.disk(device);
        match &disk.kind {
            DeviceKind::Nvme { .. } => Answer::OK,
            DeviceKind::NvmeFabric { transport } => self.fabric(*transport),
            DeviceKind::NvmeMultipath { controllers } => self.multipath(controllers),
            DeviceKind::Dm { role } => self.mapper(disk, *role, level),
            DeviceKind::Md { .. } => self.driver.treats(|rule| rule.md, Reason::Md),
            DeviceKind::Loop => self.driver.treats(|rule| rule.loop_device, Reason::Loop),
            DeviceKind::Zram => Answer::no(Reason::Zram),
            DeviceKind::Bcache => Answer::no(Reason::Bcache),
            DeviceKind::Network => Answer::no(Reason::Network),
            DeviceKind::Virtio => Answer::no(Reason::Virtio),
            DeviceKind::Scsi => Answer::no(Reason::Scsi),
            DeviceKind::Mmc | DeviceKind::Other => Answer::no(Reason::NotNvme),
            // A partition without a disk was cut off from it.
            DeviceKind::Unknown | DeviceKind::Partition => {
                Answer::unknown(Reason::VolumeUnreadable)
            }
        }
    }

    /// A controller that is on no PCI function. For RDMA the driver asks the network card, about which nothing is known here.
    fn fabric(&self, transport: Option<Transport>) -> Answer {
        match transport {
            Some(Transport::Tcp) => Answer::no(Reason::NvmeTcp),
            Some(Transport::Rdma) => {
                match self.driver.treats(|rule| rule.nvme_rdma, Reason::NvmeRdma) {
                    answer if answer.is_ok() => Answer::unknown(Reason::NvmeRdma),
                    answer => answer,
                }
            }
            Some(Transport::Fc | Transport::Loop | Transport::Other) => {
                Answer::no(Reason::NvmeFabrics)
            }
            // It says PCI, and sysfs shows no function of it.
            Some(Transport::Pcie) => Answer::unknown(Reason::VolumeUnreadable),
            None => Answer::unknown(Reason::NvmeFabrics),
        }
    }

    /// The head of a multipath namespace has no PCI parent, whatever its controllers are. Where all of them are on one fabric,
    /// switching multipath off would not help, so that fabric is the reason.
    fn multipath(&self, controllers: &[Controller]) -> Answer {
        let all = |transport| {
            !controllers.is_empty()
                && controllers.iter().all(|controller| controller.transport == Some(transport))
        };
        for transport in [Transport::Tcp, Transport::Rdma, Transport::Fc, Transport::Loop] {
            if all(transport) {
                return self.fabric(Some(transport));
            }
        }
        Answer::no(Reason::NvmeMultipath)
    }

    fn mapper(&self, device: &'a Device, role: DmRole, level: usize) -> Answer {
        match role {
            DmRole::Lvm => self.lvm(device, level),
            DmRole::Crypt => self.driver.treats(|rule| rule.dm_crypt, Reason::DmCrypt),
            DmRole::Mpath => self.driver.treats(|rule| rule.dm_multipath, Reason::DmMultipath),
            // A partition of a multipath device, mostly.
            DmRole::Part => match device.below.as_slice() {
                [one] => match self.judge(*one, level + 1) {
                    answer if answer.is_ok() => self.driver.treats(|rule| rule.dm, Reason::Dm),
                    answer => answer,
                },
                _ => self.driver.treats(|rule| rule.dm, Reason::Dm),
            },
            DmRole::Other => self.driver.treats(|rule| rule.dm, Reason::Dm),
            DmRole::Unknown => Answer::unknown(Reason::VolumeUnreadable),
        }
    }

    /// Every member must do. Linear, striped and RAID volumes are the same to the driver: what counts is what they stand on.
    fn lvm(&self, device: &'a Device, level: usize) -> Answer {
        let treated = self.driver.treats(|rule| rule.lvm, Reason::Lvm);
        if treated == Answer::no(Reason::Lvm) {
            return treated;
        }
        if device.unread.is_some() || device.below.is_empty() {
            return Answer::unknown(Reason::VolumeUnreadable);
        }
        let most = self.driver.rule.map_or((0, 0), |rule| (rule.members, rule.levels));
        if device.cut || device.below.len() > most.0 || level > most.1 {
            return Answer::no(Reason::Lvm);
        }
        let mut doubt = treated;
        for &member in &device.below {
            let answer = self.member(member, level);
            match answer.verdict {
                Verdict::Unknown if doubt.is_ok() => doubt = answer,
                Verdict::Supported | Verdict::Unknown => {}
                Verdict::Unsupported | Verdict::Blocked => return answer,
            }
        }
        doubt
    }

    /// A member of a logical volume. The driver looks for its PCI parent and at nothing else, so no fabric will do.
    fn member(&self, member: usize, level: usize) -> Answer {
        let answer = self.judge(member, level + 1);
        match answer.reason {
            Reason::Scsi
            | Reason::Virtio
            | Reason::NotNvme
            | Reason::NvmeRdma
            | Reason::NvmeFabrics
            | Reason::Network
            | Reason::Zram
            | Reason::Loop
            | Reason::Bcache => Answer::no(Reason::LvmMemberNotNvme),
            _ => answer,
        }
    }

    /// The NVMe functions below a device.
    pub(super) fn leaves(&self, top: Option<usize>) -> Vec<Address> {
        let mut leaves = Vec::new();
        let mut seen = vec![false; self.devices.len()];
        let mut todo: Vec<usize> = top.into_iter().collect();
        while let Some(index) = todo.pop() {
            let Some(device) = self.devices.get(index) else { continue };
            if std::mem::replace(&mut seen[index], true) {
                continue;
            }
            match &device.kind {
                DeviceKind::Nvme { address } => leaves.push(address.clone()),
                DeviceKind::NvmeMultipath { controllers } => {
                    leaves.extend(controllers.iter().filter_map(|one| one.address.clone()));
                }
                _ => todo.extend(&device.below),
            }
        }
        leaves.sort();
        leaves.dedup();
        leaves
    }

    /// The word of `ais-check` for a device.
    pub(super) fn backing(&self, top: Option<usize>) -> String {
        let Some(device) = self.get(top) else { return "?".to_owned() };
        let word = match &self.disk(device).kind {
            DeviceKind::Nvme { .. }
            | DeviceKind::NvmeFabric { .. }
            | DeviceKind::NvmeMultipath { .. } => "nvme",
            DeviceKind::Dm { role: DmRole::Lvm } => "lvm",
            DeviceKind::Dm { role: DmRole::Crypt } => "crypt",
            DeviceKind::Dm { role: DmRole::Mpath } => "mpath",
            DeviceKind::Dm { .. } => "dm",
            DeviceKind::Md { .. } => "md",
            DeviceKind::Virtio => "virtio",
            DeviceKind::Scsi => "scsi",
            DeviceKind::Loop => "loop",
            DeviceKind::Unknown => "?",
            _ => &device.name,
        };
        word.to_owned()
    }
}
