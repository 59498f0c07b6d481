//! The mount table, `/proc/self/mountinfo`.
//!
//! Format: <https://man7.org/linux/man-pages/man5/proc_pid_mountinfo.5.html>.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::Flaws;
use super::journal::Journal;
use crate::mask::id_length;
use crate::os::keep_runtime;
use crate::tree::{ReadError, Tree, Unread, Want};

/// The table of the process that reads.
pub const MOUNTINFO: &str = "/proc/self/mountinfo";

/// As many as the kernel allows in one mount namespace unless told otherwise (`fs.mount-max`).
pub const MAX_MOUNTS: usize = 100_000;

/// A table of [`MAX_MOUNTS`] lines of usual length.
const TABLE_LIMIT: usize = 32 << 20;

/// An overlay has at most 500 layers, `OVL_MAX_STACK`.
const MAX_LAYERS: usize = 512;

/// The longest text that is kept of an option's value other than a path: no real one is as long.
const MAX_WORD: usize = 32;

const TABLE: Want = Want {
    limit: TABLE_LIMIT,
    lines: None,
    // Without snapshots, in the runtime library, that code is left out.
    redact: if cfg!(feature = "snapshot") { Some(redact) } else { None },
    extract: None,
};

/// File systems that AMD's `ais-check` does not list either: they hold no files on a device, or none that matter.
const PSEUDO: &[&str] = &[
    "autofs",
    "binfmt_misc",
    "bpf",
    "cgroup",
    "cgroup2",
    "configfs",
    "debugfs",
    "devpts",
    "devtmpfs",
    "efivarfs",
    "fuse.gvfsd-fuse",
    "fusectl",
    "hugetlbfs",
    "mqueue",
    "nsfs",
    "proc",
    "pstore",
    "ramfs",
    "rpc_pipefs",
    "securityfs",
    "selinuxfs",
    "squashfs",
    "sysfs",
    "tmpfs",
    "tracefs",
];

/// File systems whose files are on other machines.
const NETWORK: &[&str] = &[
    "9p",
    "afs",
    "beegfs",
    "ceph",
    "cifs",
    "fuse.ceph",
    "fuse.glusterfs",
    "fuse.sshfs",
    "gpfs",
    "lustre",
    "nfs",
    "nfs4",
    "orangefs",
    "smb3",
    "wekafs",
];

/// One mounted file system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Mount {
    /// The mount's number.
    pub id: u64,
    /// The number of the mount it is mounted on.
    pub parent: u64,
    /// Major and minor number of the file system; major 0 if it is on no single block device.
    pub device: (u32, u32),
    /// What of the file system is mounted: `/`, or the directory of a bind mount or btrfs subvolume.
    pub root: String,
    /// Where.
    pub mount_point: String,
    /// The mount point is not UTF-8; what cannot be shown of it is replaced.
    pub lossy: bool,
    /// The type, `ext4`.
    pub fstype: String,
    /// What is mounted, if it names nobody: a kernel's own device name such as `/dev/nvme0n1p1`, or a word such as `overlay`.
    /// Names of volume groups, pools, shares and servers are not kept.
    pub source: Option<String>,
    /// What sort of source it is, kept or not.
    pub source_kind: SourceKind,
    /// The `data=` option.
    pub data: Option<String>,
    /// The `proto=` option of NFS is `rdma`.
    pub rdma: bool,
    /// The mounts that hold the layers of an overlay, the upper one first, by index; each once.
    pub layers: Vec<usize>,
    /// One file is mounted, no directory, as containers' `/etc/hostname`: no place for other files.
    pub single_file: bool,
    /// Another mount hides it: no path leads to it.
    pub hidden: bool,
    /// The block device it is on, by index.
    pub block: Option<usize>,
    /// The journal mode, for an ext4.
    pub journal: Option<Journal>,
    /// Whether a file on it could be opened for direct I/O, where that was tried.
    #[serde(default)]
    pub direct_io: Option<bool>,
    /// 1-based line in the table.
    pub line: u32,
}

/// Sorts of source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SourceKind {
    /// A device node, below `/dev`.
    Device,
    /// Another machine.
    Network,
    /// A word.
    Other,
    /// Nothing is said.
    Empty,
}

impl Mount {
    /// Whether somebody may ask about the files on it: it is on a block device, on other mounts, or on another machine.
    pub fn matters(&self) -> bool {
        !PSEUDO.contains(&self.fstype.as_str())
            && (self.device.0 != 0
                || self.source_kind == SourceKind::Device
                || self.is_network()
                || matches!(self.fstype.as_str(), "overlay" | "btrfs" | "zfs" | "bcachefs"))
    }

    /// Whether only a part of the file system is mounted, at a place that a snapshot names as it is.
    pub(super) fn is_part(&self) -> bool {
        self.root != "/"
            && self.fstype != "btrfs"
            && id_runs(self.mount_point.as_bytes()).is_empty()
    }

    /// Whether its files are on another machine.
    pub fn is_network(&self) -> bool {
        NETWORK.contains(&self.fstype.as_str())
    }
}

/// The fields of one line, as they stand there.
struct Line<'a> {
    id: u64,
    parent: u64,
    device: (u32, u32),
    root: &'a [u8],
    point: &'a [u8],
    fstype: &'a [u8],
    source: &'a [u8],
    /// Those of the mount and those of the file system, separated by a comma.
    options: [&'a [u8]; 2],
}

impl<'a> Line<'a> {
    /// Single blanks separate the fields, so one that is empty is seen; blanks in a field are escaped.
    fn parse(line: &'a [u8]) -> Option<Self> {
        let mut fields = line.split(|&byte| byte == b' ');
        let mut number = || std::str::from_utf8(fields.next()?).ok()?.parse::<u64>().ok();
        let (id, parent) = (number()?, number()?);
        let (major, minor) = std::str::from_utf8(fields.next()?).ok()?.split_once(':')?;
        let device = (major.parse().ok()?, minor.parse().ok()?);
        let (root, point, own) = (fields.next()?, fields.next()?, fields.next()?);
        // Optional fields, none or more, end with a hyphen.
        fields.by_ref().find(|field| *field == b"-")?;
        let fstype = fields.next().filter(|fstype| !fstype.is_empty())?;
        let (source, options) = (fields.next()?, fields.next().unwrap_or_default());
        point.starts_with(b"/").then_some(Self {
            id,
            parent,
            device,
            root,
            point,
            fstype,
            source,
            options: [own, options],
        })
    }

    /// The values of an option, the first one first.
    fn option(&self, name: &'static [u8]) -> impl Iterator<Item = &'a [u8]> {
        let all = self.options.into_iter().flat_map(|options| options.split(|&byte| byte == b','));
        all.filter_map(move |option| option.strip_prefix(name))
    }

    /// A short word that an option is set to.
    fn word(&self, name: &'static [u8]) -> Option<String> {
        let value = self.option(name).last().filter(|value| value.len() <= MAX_WORD)?;
        let plain = value.iter().all(u8::is_ascii_alphanumeric);
        plain.then(|| String::from_utf8_lossy(value).into_owned())
    }

    fn is(&self, fstypes: &[&str]) -> bool {
        fstypes.iter().any(|fstype| fstype.as_bytes() == self.fstype)
    }

    fn data(&self) -> Option<String> {
        self.is(&["ext4"]).then(|| self.word(b"data=")).flatten()
    }

    fn is_rdma(&self) -> bool {
        self.is(&["nfs", "nfs4"])
            && self.word(b"proto=").is_some_and(|word| word.starts_with("rdma"))
    }

    /// The directories of an overlay's layers, the upper one first, escapes undone.
    fn layers(&self) -> Vec<Vec<u8>> {
        if !self.is(&["overlay"]) {
            return Vec::new();
        }
        let upper = self.option(b"upperdir=");
        // Since Linux 6.5 each layer may stand in an option of its own.
        let lower = self.option(b"lowerdir=").chain(self.option(b"lowerdir+="));
        let directories =
            upper.map(unescape).chain(lower.flat_map(|lower| split_layers(&unescape(lower))));
        directories.take(MAX_LAYERS).collect()
    }

    /// The sort of source, and its name if it names nobody.
    fn source(&self) -> (SourceKind, Option<String>) {
        let name = unescape(self.source);
        let text = std::str::from_utf8(&name).unwrap_or_default();
        if name.is_empty() || text == "none" {
            return (SourceKind::Empty, None);
        }
        if name.starts_with(b"/dev/") {
            return (
                SourceKind::Device,
                is_kernel_name(&text[5.min(text.len())..]).then(|| text.to_owned()),
            );
        }
        if self.is(NETWORK) {
            return (SourceKind::Network, None);
        }
        let harmless = name == self.fstype || matches!(text, "overlay" | "tmpfs" | "udev" | "shm");
        (SourceKind::Other, harmless.then(|| text.to_owned()))
    }
}

/// Whether a name below `/dev` is one that the kernel gives by itself, so that it names nobody: a driver's letters, then which of
/// its disks, in letters or numbers, then the part of it.
fn is_kernel_name(name: &str) -> bool {
    const LETTERED: [&str; 5] = ["sd", "hd", "vd", "xvd", "dasd"];
    const NUMBERED: [&str; 20] = [
        "bcache", "dm-", "drbd", "fd", "loop", "md", "mmcblk", "mtdblock", "nbd", "nullb", "nvme",
        "pmem", "ram", "rbd", "rnbd", "sr", "ubiblock", "ublkb", "zd", "zram",
    ];
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let lettered = |rest: &str| {
        let end = rest.find(|c: char| !c.is_ascii_lowercase()).unwrap_or(rest.len());
        (1..=3).contains(&end) && digits(&rest[end..])
    };
    let numbered = |rest: &str| {
        let mut numbers = rest.split(['n', 'c', 'p']);
        numbers.all(|number| !number.is_empty() && digits(number))
    };
    name == "root"
        || LETTERED.iter().filter_map(|driver| name.strip_prefix(driver)).any(lettered)
        || NUMBERED.iter().filter_map(|driver| name.strip_prefix(driver)).any(numbered)
}

/// Undoes the escapes of the kernel: `\` and three octal digits for blanks, tabs, line feeds and backslashes.
fn unescape(field: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&first, after)) = rest.split_first() {
        let octal = |byte: &u8| matches!(byte, b'0'..=b'7').then(|| u32::from(byte - b'0'));
        let code = match after {
            [a, b, c, ..] if first == b'\\' => octal(a)
                .zip(octal(b))
                .zip(octal(c))
                .and_then(|((a, b), c)| u8::try_from(a * 64 + b * 8 + c).ok()),
            _ => None,
        };
        out.push(code.unwrap_or(first));
        rest = if code.is_some() { &after[3..] } else { after };
    }
    out
}

/// Splits `lowerdir` at its colons; a double colon stands before layers that hold data only, a backslash before a colon that is
/// part of a name. Source: <https://docs.kernel.org/filesystems/overlayfs.html>.
fn split_layers(list: &[u8]) -> Vec<Vec<u8>> {
    let mut layers = vec![Vec::new()];
    let mut bytes = list.iter().copied();
    while let Some(byte) = bytes.next() {
        match (byte, layers.last_mut()) {
            (b':', _) => layers.push(Vec::new()),
            (b'\\', Some(layer)) => layer.extend(bytes.next()),
            (_, Some(layer)) => layer.push(byte),
            (_, None) => {}
        }
    }
    layers.retain(|layer| !layer.is_empty());
    layers
}

/// The first mount of the device with this number, if the table has it. Nothing that takes the other mounts is filled in.
pub(super) fn first_on(tree: &dyn Tree, path: &str, device: (u32, u32)) -> Option<Mount> {
    let content = tree.read(path, &TABLE).ok()?;
    let lines = content.bytes.split(|&byte| byte == b'\n').zip(1_u32..);
    let mut lines = lines.filter_map(|(line, number)| Some((Line::parse(line)?, number)));
    let (line, number) = lines.find(|(line, _)| line.device == device)?;
    Some(mount(&line, number))
}

/// Reads a table.
pub(super) fn read(tree: &dyn Tree, path: &str) -> Result<(Vec<Mount>, Flaws), Unread> {
    let content = tree.read(path, &TABLE).map_err(|error| Unread::new(path, error))?;
    let (mounts, flaws) = parse(&content.bytes);
    if mounts.is_empty() {
        // A process that runs has a root, so this is the table of none.
        return Err(Unread {
            reason: "no line of it is a mount".to_owned(),
            ..Unread::new(path, ReadError::NotRecorded)
        });
    }
    Ok((mounts, flaws))
}

fn parse(bytes: &[u8]) -> (Vec<Mount>, Flaws) {
    let mut mounts = Vec::new();
    let mut layers: Vec<(usize, Vec<Vec<u8>>)> = Vec::new();
    let mut flaws = Flaws::default();
    for (line, number) in bytes.split(|&byte| byte == b'\n').zip(1_u32..) {
        if line.is_empty() {
            continue;
        }
        let Some(line) = Line::parse(line) else {
            flaws.malformed += 1;
            flaws.first.get_or_insert(number);
            continue;
        };
        if mounts.len() == MAX_MOUNTS {
            flaws.cut = true;
            break;
        }
        let directories = line.layers();
        if !directories.is_empty() {
            layers.push((mounts.len(), directories));
        }
        mounts.push(mount(&line, number));
    }
    hide(&mut mounts);
    if !layers.is_empty() {
        let places = Places::new(&mounts);
        let found: Vec<(usize, Vec<usize>)> = layers
            .into_iter()
            .map(|(index, directories)| (index, places.of_all(&directories)))
            .collect();
        for (index, layers) in found {
            // A layer below the overlay's own mount point was there before it.
            mounts[index].layers = layers.into_iter().filter(|&layer| layer != index).collect();
        }
    }
    (mounts, flaws)
}

fn mount(line: &Line, number: u32) -> Mount {
    let text = |field: &[u8]| String::from_utf8_lossy(&unescape(field)).into_owned();
    let (source_kind, source) = line.source();
    Mount {
        id: line.id,
        parent: line.parent,
        device: line.device,
        root: text(line.root),
        mount_point: text(line.point),
        lossy: std::str::from_utf8(&unescape(line.point)).is_err(),
        fstype: text(line.fstype),
        source,
        source_kind,
        data: line.data(),
        rdma: line.is_rdma(),
        layers: Vec::new(),
        single_file: false,
        hidden: false,
        block: None,
        journal: None,
        direct_io: None,
        line: number,
    }
}

/// The mounts by their mount points.
pub(super) struct Places<'a> {
    seen: HashMap<&'a str, usize>,
}

impl<'a> Places<'a> {
    /// Of several mounts on one point, the one that a path leads to.
    pub(super) fn new(mounts: &'a [Mount]) -> Self {
        let seen = mounts.iter().enumerate().filter(|(_, mount)| !mount.hidden);
        Self { seen: seen.map(|(index, mount)| (mount.mount_point.as_str(), index)).collect() }
    }

    /// The mount that holds an absolute path without links: the one with the longest mount point on the way to it.
    pub(super) fn of(&self, path: &str) -> Option<usize> {
        ancestors(path).find_map(|place| self.seen.get(place).copied())
    }

    fn of_all(&self, directories: &[Vec<u8>]) -> Vec<usize> {
        let mut found = Vec::new();
        for directory in directories {
            // A layer may be given relative to where the mounting program stood, which nobody knows any more.
            if !directory.starts_with(b"/") {
                continue;
            }
            if let Some(index) = self.of(&String::from_utf8_lossy(directory))
                && !found.contains(&index)
            {
                found.push(index);
            }
        }
        found
    }
}

/// The path and every directory above it, the longest first.
fn ancestors(path: &str) -> impl Iterator<Item = &str> {
    let longest = match path.trim_end_matches('/') {
        "" => "/",
        path => path,
    };
    std::iter::successors(Some(longest), |path| match path.rfind('/') {
        _ if *path == "/" => None,
        Some(0) => Some("/"),
        Some(end) => Some(&path[..end]),
        None => None,
    })
}

/// Marks the mounts that no path leads to: others were mounted over them, or over a directory above them.
fn hide(mounts: &mut [Mount]) {
    let mut on: HashMap<&str, Vec<usize>> = HashMap::with_capacity(mounts.len());
    for (index, mount) in mounts.iter().enumerate() {
        on.entry(&mount.mount_point).or_default().push(index);
    }
    let ids: HashMap<u64, usize> =
        mounts.iter().enumerate().map(|(index, mount)| (mount.id, index)).collect();
    // The last one is seen, unless another one of the same point is mounted on it.
    let mut tops: HashMap<&str, usize> = HashMap::with_capacity(on.len());
    for (point, group) in &on {
        let parents: HashSet<u64> = group
            .iter()
            .map(|&index| &mounts[index])
            .filter(|mount| mount.parent != mount.id)
            .map(|mount| mount.parent)
            .collect();
        let top = group.iter().rev().find(|&&index| !parents.contains(&mounts[index].id));
        if let Some(&top) = top.or(group.last()) {
            tops.insert(*point, top);
        }
    }
    let is_hidden = |index: usize, mount: &Mount| {
        let top = tops.get(mount.mount_point.as_str());
        if top != Some(&index) {
            return true;
        }
        // Mounted on something that a later mount, on a directory above, has covered.
        let above = ancestors(&mount.mount_point).skip(1).find_map(|place| tops.get(place));
        above.is_some_and(|&above| {
            above > index && ids.contains_key(&mount.parent) && mounts[above].id != mount.parent
        })
    };
    let mut hidden: Vec<bool> =
        mounts.iter().enumerate().map(|(index, mount)| is_hidden(index, mount)).collect();
    // What is mounted on a hidden one is hidden too, but for what covers it on the same point.
    let mut order: Vec<usize> = (0..mounts.len()).collect();
    order.sort_by_key(|&index| mounts[index].mount_point.len());
    for index in order {
        let mount = &mounts[index];
        let parent = ids.get(&mount.parent).copied().filter(|&parent| parent != index);
        hidden[index] |= parent.is_some_and(|parent| {
            hidden[parent] && mounts[parent].mount_point.len() < mount.mount_point.len()
        });
    }
    for (mount, hidden) in mounts.iter_mut().zip(hidden) {
        mount.hidden = hidden;
    }
}

/// What a snapshot keeps of the table: the fields that are used, ids in paths exchanged for others. It is a table again.
fn redact(bytes: &[u8]) -> Vec<u8> {
    let mut ids = Ids::default();
    let mut out = Vec::with_capacity(bytes.len() / 2);
    for (at, line) in bytes.split(|&byte| byte == b'\n').enumerate() {
        if at > 0 {
            out.push(b'\n');
        }
        match Line::parse(line) {
            Some(fields) => keep(line, &fields, &mut ids, &mut out),
            None if line.is_empty() => {}
            None => out.push(b'?'),
        }
    }
    out
}

fn keep(raw: &[u8], line: &Line, ids: &mut Ids, out: &mut Vec<u8>) {
    let (major, minor) = line.device;
    out.extend_from_slice(format!("{} {} {major}:{minor} ", line.id, line.parent).as_bytes());
    out.extend_from_slice(&ids.path(line.root));
    out.push(b' ');
    out.extend_from_slice(&ids.path(line.point));
    out.extend_from_slice(b" ? - ");
    out.extend_from_slice(line.fstype);
    out.push(b' ');
    match line.source() {
        (_, Some(name)) => out.extend_from_slice(&escape(name.as_bytes())),
        (SourceKind::Device, None) => out.extend_from_slice(b"/dev/?"),
        (SourceKind::Empty, None) => {}
        (SourceKind::Network | SourceKind::Other, None) => out.push(b'?'),
    }
    out.push(b' ');
    let mut options = Vec::new();
    options.extend(line.data().map(|word| format!("data={word}").into_bytes()));
    options.extend(line.is_rdma().then(|| b"proto=rdma".to_vec()));
    if line.is(&["overlay"]) {
        for name in [&b"upperdir="[..], b"lowerdir=", b"lowerdir+="] {
            let values = line.option(name);
            options.extend(values.map(|value| [name, ids.path(value).as_ref()].concat()));
        }
    }
    if line.point == b"/" {
        // The reader of the environment looks for it anywhere in this line.
        let mut runtime = Vec::new();
        keep_runtime(raw, &mut runtime);
        options.extend((!runtime.is_empty()).then_some(runtime));
    }
    out.extend_from_slice(&options.join(&b','));
}

/// Writes the escapes that [`unescape`] undoes.
fn escape(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for &byte in text {
        match byte {
            b' ' | b'\t' | b'\n' | b'\\' => {
                out.extend_from_slice(format!("\\{byte:03o}").as_bytes());
            }
            byte => out.push(byte),
        }
    }
    out
}

/// Exchanges ids in paths: machine ids, UUIDs, and the long ones of containers. Different ids stay different and equal ones
/// equal, so that paths lead where they led.
#[derive(Default)]
struct Ids {
    /// What became of each component with an id in it.
    new: HashMap<Vec<u8>, Vec<u8>>,
    /// How many there are of each form.
    taken: HashMap<Vec<u8>, usize>,
}

impl Ids {
    fn path<'a>(&mut self, path: &'a [u8]) -> Cow<'a, [u8]> {
        // No id is shorter.
        if path.len() < 32 {
            return Cow::Borrowed(path);
        }
        let mut out = Vec::with_capacity(path.len());
        for (at, component) in path.split(|byte| matches!(byte, b'/' | b':')).enumerate() {
            if at > 0 {
                out.push(path[out.len()]);
            }
            out.extend_from_slice(&self.component(component));
        }
        Cow::Owned(out)
    }

    fn component(&mut self, component: &[u8]) -> Vec<u8> {
        let runs = id_runs(component);
        let Some(last) = runs.last().map(|run| run.end) else { return component.to_vec() };
        if let Some(new) = self.new.get(component) {
            return new.clone();
        }
        let mut new = component.to_vec();
        for digit in runs.into_iter().flatten() {
            if new[digit].is_ascii_hexdigit() {
                new[digit] = b'0';
            }
        }
        let count = self.taken.entry(new.clone()).or_default();
        // A UUID ends in twelve digits, more than there are mounts.
        let number = format!("{count:x}");
        new[last - number.len()..last].copy_from_slice(number.as_bytes());
        *count += 1;
        self.new.insert(component.to_vec(), new.clone());
        new
    }
}

/// Where ids are in a component: machine ids, UUIDs, and longer runs of hexadecimal digits.
fn id_runs(component: &[u8]) -> Vec<Range<usize>> {
    let mut runs = Vec::new();
    let mut at = 0;
    while at < component.len() {
        let boundary = at == 0 || !component[at - 1].is_ascii_alphanumeric();
        let rest = &component[at..];
        let digits = rest.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
        let length = if digits >= 32 { Some(digits) } else { id_length(rest) };
        match length.filter(|_| boundary) {
            Some(length) => {
                runs.push(at..at + length);
                at += length;
            }
            None => at += digits.max(1),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn redacted(table: &str) -> String {
        String::from_utf8(redact(table.as_bytes())).unwrap()
    }

    #[test]
    fn a_snapshot_keeps_the_fields_that_are_used() {
        for (line, kept) in [
            (
                "36 35 253:0 / /data rw,noatime shared:1 - ext4 /dev/mapper/alicepc-root rw,data=journal,x=secret",
                "36 35 253:0 / /data ? - ext4 /dev/? data=journal",
            ),
            (
                "36 35 0:40 / /n rw - nfs4 secret:/export rw,proto=rdma,addr=10.0.0.1",
                "36 35 0:40 / /n ? - nfs4 ? proto=rdma",
            ),
            ("36 35 0:40 / /t rw - tmpfs  rw,size=1k", "36 35 0:40 / /t ? - tmpfs  "),
            (
                "36 35 0:40 / / rw master:2 - overlay overlay rw,lowerdir=/l/docker/A:/B,upperdir=/u,workdir=/w",
                "36 35 0:40 / / ? - overlay overlay upperdir=/u,lowerdir=/l/docker/A:/B,docker",
            ),
            ("some other text", "?"),
            ("", ""),
        ] {
            assert_eq!(redacted(line), kept);
            assert_eq!(redacted(kept), kept);
        }
    }

    #[test]
    fn ids_in_paths_are_exchanged_and_stay_apart() {
        let (a, b) = ("0123456789abcdef".repeat(4), "fedcba9876543210".repeat(4));
        let uuid = "01234567-89ab-4def-8123-456789abcdef";
        let table = format!(
            "1 0 1:1 / /c/{a}/m rw - xfs a rw\n2 0 1:1 /{b} /c/{b}/m rw - xfs a rw\n\
             3 0 1:1 / /pods/{uuid}/{a} rw - xfs a rw\n4 0 0:9 / /o rw - overlay overlay rw,lowerdir=/c/{b}/d\n"
        );
        let out = redacted(&table);
        let (zero, one) = ("0".repeat(64), format!("{}1", "0".repeat(63)));
        let expected = format!(
            "1 0 1:1 / /c/{zero}/m ? - xfs ? \n2 0 1:1 /{one} /c/{one}/m ? - xfs ? \n\
             3 0 1:1 / /pods/00000000-0000-0000-0000-000000000000/{zero} ? - xfs ? \n\
             4 0 0:9 / /o ? - overlay overlay lowerdir=/c/{one}/d\n"
        );
        assert_eq!(out, expected);
        assert_eq!(redacted(&out), out);
    }

    proptest! {
        #[test]
        fn what_is_kept_says_the_same_and_is_kept_again(
            lines in proptest::collection::vec(
                "[0-9]{1,2} [0-9]{1,2} (0|8|259):[0-9]{1,2} (/|/a) (/|/a|/a/b|/a\\\\040b|/[0-9a-f]{32}) rw (shared:1 )?- \
                 (ext4|xfs|overlay|nfs4|tmpfs) (|/dev/sda1|/dev/x|none|overlay|s:/x) rw(,data=journal|,proto=rdma|,lowerdir=/a:/a/b)?",
                0..6,
            )
        ) {
            let table = lines.join("\n");
            let once = redact(table.as_bytes());
            prop_assert_eq!(redact(&once), once.clone());
            let hexless = |mut mounts: Vec<Mount>| {
                for mount in &mut mounts {
                    if mount.mount_point.len() > 32 {
                        mount.mount_point = "/id".to_owned();
                    }
                }
                mounts
            };
            let ((before, flaws), (after, same_flaws)) = (parse(table.as_bytes()), parse(&once));
            prop_assert_eq!(flaws, same_flaws);
            prop_assert_eq!(hexless(before), hexless(after));
        }

        #[test]
        fn any_bytes_can_be_a_table(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            parse(&bytes);
            let once = redact(&bytes);
            prop_assert_eq!(redact(&once), once);
        }
    }
}
