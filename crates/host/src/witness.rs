//! Witnesses: the places that say something about the option, and what each one says.

use fastpath_kconfig::{Defect, SYMBOLS, Scan, Symbol, Text, Value, gzip};
use fastpath_knowledge::Release;
use memchr::memmem;
use serde::{Deserialize, Serialize};

use crate::tree::{FileId, FileKind, ReadError, Tree, Want};

/// The kinds of witness, highest rank first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// `/proc/config.gz`: the running kernel's own copy.
    ProcConfigGz,
    /// `/proc/kallsyms`: the running kernel's symbols.
    Kallsyms,
    /// `/boot/config-R`.
    BootConfig,
    /// `config` in the kernel's modules directory.
    ModulesConfig,
    /// Places only some distributions use; the release is in the name.
    VendorConfig,
    /// The configuration of a build tree or of installed headers.
    BuildConfig,
    /// `/usr/src/linux/.config`: no release in its name, never deciding.
    SourceConfig,
}

impl Kind {
    /// The name used in output, `boot-config`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ProcConfigGz => "proc-config-gz",
            Self::Kallsyms => "kallsyms",
            Self::BootConfig => "boot-config",
            Self::ModulesConfig => "modules-config",
            Self::VendorConfig => "vendor-config",
            Self::BuildConfig => "build-config",
            Self::SourceConfig => "source-config",
        }
    }

    /// Whether a sound witness of this kind may decide.
    pub const fn may_decide(self) -> bool {
        !matches!(self, Self::SourceConfig)
    }
}

/// What a witness says: an option value if it is sound, else what is wrong with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum State {
    /// `CONFIG_PCI_P2PDMA=y`, or the symbols are there.
    #[serde(rename = "y")]
    Y,
    /// `=m`, which kconfig cannot write for this option.
    #[serde(rename = "m")]
    M,
    /// `=n`.
    #[serde(rename = "n")]
    N,
    /// `# CONFIG_PCI_P2PDMA is not set`.
    #[serde(rename = "not set")]
    NotSet,
    /// A whole text without a line for the option, or symbols without the option's own.
    #[serde(rename = "absent")]
    Absent,
    /// There is no such file.
    #[serde(rename = "missing")]
    Missing,
    /// It could not be read.
    #[serde(rename = "unreadable")]
    Unreadable,
    /// It has no content.
    #[serde(rename = "empty")]
    Empty,
    /// It ends before its end.
    #[serde(rename = "truncated")]
    Truncated,
    /// It is not what its name says.
    #[serde(rename = "malformed")]
    Malformed,
    /// It is about a kernel of another version.
    #[serde(rename = "other-kernel")]
    OtherKernel,
}

impl State {
    /// The word used in output.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Y => "y",
            Self::M => "m",
            Self::N => "n",
            Self::NotSet => "not set",
            Self::Absent => "absent",
            Self::Missing => "missing",
            Self::Unreadable => "unreadable",
            Self::Empty => "empty",
            Self::Truncated => "truncated",
            Self::Malformed => "malformed",
            Self::OtherKernel => "other-kernel",
        }
    }

    /// Whether this is an option value, so that the witness is sound.
    pub const fn is_value(self) -> bool {
        matches!(self, Self::Y | Self::M | Self::N | Self::NotSet | Self::Absent)
    }
}

/// A place in a file, with the text that stands there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// The file, as on the host, from `/`.
    pub path: String,
    /// 1-based line.
    pub line: Option<u32>,
    /// The line as it stands there, invalid UTF-8 replaced.
    pub text: Option<String>,
}

/// One source that says something about the option.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Witness {
    /// The file, as on the host, from `/`.
    pub path: String,
    /// What kind of place it is.
    pub kind: Kind,
    /// What it says.
    pub state: State,
    /// 1-based line of the option, the last one if there are several.
    pub line: Option<u32>,
    /// That line as it stands there.
    pub text: Option<String>,
    /// What is wrong, or how an absence was seen: one clause.
    pub detail: Option<String>,
    /// The version in the header of a configuration.
    pub header_version: Option<String>,
    /// How many lines set the option.
    pub lines: u32,
    /// Whether those lines give different values.
    pub differs: bool,
    /// Values of the companion options, `CONFIG_` left out; empty if no sound configuration was read.
    pub companions: Vec<(String, Value)>,
    /// More privilege might help.
    pub permission: bool,
    /// The host is read from a snapshot that says nothing about this file.
    #[serde(default)]
    pub not_recorded: bool,
    /// Other names of the same file.
    pub also: Vec<String>,
    /// What the symbols say of the driver amdgpu; `None` if they name nothing of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub symbols: Option<Symbols>,
}

/// What a kernel's symbols say of the driver amdgpu, whose own are among them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Symbols {
    /// Where `kfd_ais_rw_file` stands, which moves data between a file and a GPU; `None`: it is not among them.
    pub ais: Option<Evidence>,
}

/// The most a configuration file may hold, compressed or not.
const CONFIG_LIMIT: usize = gzip::OUTPUT_LIMIT;

/// `/proc/kallsyms` is 5 to 20 MB on real kernels.
const KALLSYMS_LIMIT: usize = 48 << 20;

/// The symbols that only `p2pdma.c` defines.
const SYMBOL_NAMES: [&[u8]; 2] = [b"pci_p2pdma_add_resource", b"pci_p2pdma_distance_many"];

const CONFIG: Want =
    Want { limit: CONFIG_LIMIT, lines: None, redact: Some(crate::redact::config), extract: None };

impl Witness {
    fn new(path: &str, kind: Kind, state: State) -> Self {
        Self {
            path: path.to_owned(),
            kind,
            state,
            line: None,
            text: None,
            detail: None,
            header_version: None,
            lines: 0,
            differs: false,
            companions: Vec::new(),
            permission: false,
            not_recorded: false,
            also: Vec::new(),
            symbols: None,
        }
    }

    /// What a list of a kernel's symbols says (`System.map`, `Module.symvers`): whether the option's own are among them;
    /// `None` if it tells nothing.
    pub fn of_symbols(path: &str, has_option: Option<bool>) -> Self {
        let state = match has_option {
            Some(true) => State::Y,
            Some(false) => State::Absent,
            None => State::Empty,
        };
        let detail = match has_option {
            Some(true) => "the option's symbols are among the kernel's",
            Some(false) => "the option's symbols are not among the kernel's",
            None => "no PCI symbols",
        };
        Self { detail: Some(detail.to_owned()), ..Self::new(path, Kind::Kallsyms, state) }
    }

    fn failed(path: &str, kind: Kind, error: ReadError) -> Self {
        let state = match error {
            ReadError::Missing | ReadError::NotRecorded => State::Missing,
            ReadError::WrongKind(_) | ReadError::TooLarge(_) => State::Malformed,
            ReadError::Os(_) => State::Unreadable,
        };
        let detail = (state != State::Missing).then(|| error.to_string());
        let not_recorded = error == ReadError::NotRecorded;
        let permission = error.is_permission();
        Self { detail, permission, not_recorded, ..Self::new(path, kind, state) }
    }

    /// Whether this witness is sound and of a kind that may decide.
    pub const fn can_decide(&self) -> bool {
        self.state.is_value() && self.kind.may_decide()
    }

    /// Where it says what it says.
    pub fn evidence(&self) -> Evidence {
        Evidence { path: self.path.clone(), line: self.line, text: self.text.clone() }
    }

    /// The value of a companion option.
    pub fn companion(&self, symbol: Symbol) -> Option<Value> {
        self.companions.iter().find(|(name, _)| name == symbol.name()).map(|(_, value)| *value)
    }
}

/// What a configuration, plain or gzip, says about the option. `release` is the kernel it is asked about, if known: a
/// header that names another major or minor version makes it [`State::OtherKernel`].
///
/// Header versions: the build's `KERNELVERSION`, <https://docs.kernel.org/kbuild/kconfig.html>.
pub fn config_witness(path: &str, kind: Kind, bytes: &[u8], release: Option<&Release>) -> Witness {
    examine(path, kind, bytes, release).0
}

/// How much text of configurations is looked at for one host, in bytes: far more than 128 kernels have, and a second's
/// work, whatever compressed files claim to be.
pub(crate) struct Budget {
    left: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Self { left: 192 << 20 }
    }
}

/// As [`config_witness`], with the length of the text that was looked at.
fn examine(path: &str, kind: Kind, bytes: &[u8], release: Option<&Release>) -> (Witness, usize) {
    let mut length = bytes.len();
    let witness = config_witness_of(path, kind, bytes, release, &mut length);
    (witness, length)
}

fn config_witness_of(
    path: &str,
    kind: Kind,
    bytes: &[u8],
    release: Option<&Release>,
    length: &mut usize,
) -> Witness {
    let fail =
        |state, detail: String| Witness { detail: Some(detail), ..Witness::new(path, kind, state) };
    let inflated;
    let text = if gzip::is_gzip(bytes) {
        inflated = gzip::inflate(bytes, gzip::OUTPUT_LIMIT);
        *length = inflated.text.len();
        if let Err(error) = &inflated.end {
            let state = match error {
                gzip::Error::Truncated { .. } => State::Truncated,
                gzip::Error::Malformed { .. } | gzip::Error::TooLarge { .. } => State::Malformed,
            };
            return fail(state, error.to_string());
        }
        Text::new(&inflated.text)
    } else {
        Text::new(bytes)
    };
    match text.check() {
        Ok(()) => {}
        Err(Defect::Empty) => return Witness::new(path, kind, State::Empty),
        Err(defect) => return fail(State::Malformed, defect.to_string()),
    }
    let header_version = text.header().map(|header| header.version.to_owned());
    let scan = text.scan();
    let mut witness = Witness {
        header_version,
        companions: companions(&scan),
        ..Witness::new(path, kind, State::Y)
    };
    let other_version = witness.header_version.as_deref().filter(|version| {
        let asked = release.and_then(Release::major_minor);
        let header = Release::new(version).and_then(|version| version.major_minor());
        asked.is_some() && header.is_some() && asked != header
    });
    if let Some(version) = other_version {
        witness.detail = Some(format!("its header names version {version}"));
        witness.state = State::OtherKernel;
        return witness;
    }
    let option = scan.get(Symbol::PciP2pdma);
    if option.lines > 0 {
        witness.line = Some(text.line_number(option.offset));
        witness.text = Some(shown(text.line_at(option.offset)));
        (witness.lines, witness.differs) = (option.lines, option.differs);
    }
    witness.state = match option.value {
        Value::Y => State::Y,
        Value::M => State::M,
        Value::N => State::N,
        Value::NotSet => State::NotSet,
        Value::Absent if text.is_whole() => State::Absent,
        Value::Absent => {
            witness.detail = Some(format!(
                "no line for the option, and the text ends at offset {} without the last menu",
                text.bytes().len()
            ));
            State::Truncated
        }
        Value::Other => {
            let cut = option.offset + text.line_at(option.offset).len() == text.bytes().len();
            let offset = option.offset;
            if cut {
                witness.detail = Some(format!(
                    "the text ends at offset {} inside the option's line",
                    text.bytes().len()
                ));
                State::Truncated
            } else {
                witness.detail = Some(format!("offset {offset}: the value is none of y, m and n"));
                State::Malformed
            }
        }
    };
    witness
}

/// A line as it stands there, as far as a report shows it.
fn shown(line: &[u8]) -> String {
    const LONGEST: usize = 200;
    let start = String::from_utf8_lossy(&line[..line.len().min(LONGEST)]).into_owned();
    if line.len() > LONGEST { start + "..." } else { start }
}

fn companions(scan: &Scan) -> Vec<(String, Value)> {
    let companions = SYMBOLS.iter().filter(|&&symbol| symbol != Symbol::PciP2pdma);
    companions.map(|&symbol| (symbol.name().to_owned(), scan.get(symbol).value)).collect()
}

/// Every place that may hold the configuration of the kernel `release`, in order of rank; the running kernel's own
/// files only if `running`.
pub(crate) fn witnesses(
    tree: &dyn Tree,
    release: &Release,
    running: bool,
    budget: &mut Budget,
) -> Vec<Witness> {
    let mut seen: Vec<(FileId, usize)> = Vec::new();
    let mut found: Vec<Witness> = Vec::new();
    let mut read = |found: &mut Vec<Witness>, kind: Kind, path: &str| match (budget.left > 0)
        .then(|| tree.read(path, &CONFIG))
        // Nothing more is read once too much was: only whether it is there.
        .map_or_else(|| tree.kind(path).map(|_| None), |read| read.map(Some))
    {
        Ok(None) => {
            let detail = "not read: the configurations on this host are too large together";
            let state = State::Unreadable;
            found.push(Witness {
                detail: Some(detail.to_owned()),
                ..Witness::new(path, kind, state)
            });
        }
        Ok(Some(content)) => {
            if let Some(&(_, first)) = seen.iter().find(|(id, _)| *id == content.id) {
                found[first].also.push(path.to_owned());
                return;
            }
            seen.push((content.id, found.len()));
            let (witness, cost) = examine(path, kind, &content.bytes, Some(release));
            budget.left = budget.left.saturating_sub(cost);
            found.push(witness);
        }
        Err(error) => {
            let failed = Witness::failed(path, kind, error);
            // A file that cannot be read has no identity to compare; after the usr-merge both names are one.
            let merged = |other: &&mut Witness| {
                Some(other.path.as_str()) == path.strip_prefix("/usr")
                    && other.state != State::Missing
                    && (other.state, &other.detail) == (failed.state, &failed.detail)
            };
            match found.iter_mut().find(merged) {
                Some(other) => other.also.push(path.to_owned()),
                None => found.push(failed),
            }
        }
    };
    if running {
        read(&mut found, Kind::ProcConfigGz, "/proc/config.gz");
        if !found.iter().any(Witness::can_decide) {
            found.push(kallsyms(tree));
        }
    }
    for (kind, path) in config_paths(tree, release) {
        read(&mut found, kind, &path);
    }
    // It has no release in its name and never decides, so it is only shown beside the kernel that runs.
    if running {
        read(&mut found, Kind::SourceConfig, "/usr/src/linux/.config");
    }
    found
}

/// The configuration files that may exist for a release, in order of rank.
fn config_paths(tree: &dyn Tree, release: &Release) -> Vec<(Kind, String)> {
    let mut paths = vec![
        (Kind::BootConfig, format!("/boot/config-{release}")),
        (Kind::ModulesConfig, format!("/lib/modules/{release}/config")),
        (Kind::ModulesConfig, format!("/usr/lib/modules/{release}/config")),
        (Kind::VendorConfig, format!("/usr/lib/kernel/config-{release}")),
        (Kind::VendorConfig, format!("/lib/kernel/config-{release}")),
        (Kind::VendorConfig, format!("/usr/boot/config-{release}")),
    ];
    paths.extend(ostree_configs(tree, release).into_iter().map(|path| (Kind::VendorConfig, path)));
    paths.extend(
        genkernel_configs(tree, release).into_iter().map(|path| (Kind::VendorConfig, path)),
    );
    let nixos = "/run/booted-system/kernel-modules/lib/modules";
    paths.extend([
        (Kind::BuildConfig, format!("/lib/modules/{release}/build/.config")),
        (Kind::BuildConfig, format!("/usr/lib/modules/{release}/build/.config")),
        (Kind::BuildConfig, format!("/usr/src/linux-headers-{release}/.config")),
        (Kind::BuildConfig, format!("/usr/src/linux-{release}/.config")),
        (Kind::BuildConfig, format!("{nixos}/{release}/build/.config")),
    ]);
    paths
}

const OSTREE: &str = "/usr/lib/ostree-boot";

/// `config-R`, also with the checksum ostree appends, anywhere below `/usr/lib/ostree-boot`.
fn ostree_configs(tree: &dyn Tree, release: &Release) -> Vec<String> {
    const MAX_DEPTH: usize = 4;
    const MAX_DIRECTORIES: usize = 64;
    let mut found = Vec::new();
    let mut todo = vec![(OSTREE.to_owned(), 0)];
    let mut looked_at = 0;
    while let Some((directory, depth)) = todo.pop() {
        looked_at += 1;
        if looked_at > MAX_DIRECTORIES {
            break;
        }
        for entry in tree.list(&directory).unwrap_or_default() {
            let path = format!("{directory}/{}", entry.name);
            if entry.kind == FileKind::Directory && depth < MAX_DEPTH {
                todo.push((path, depth + 1));
            } else if entry
                .name
                .strip_prefix("config-")
                .is_some_and(|name| is_ostree_name(name, release))
            {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Whether `name` is the release, alone or followed by a checksum. `6.8.0-1` is no name for `6.8.0-138`.
fn is_ostree_name(name: &str, release: &Release) -> bool {
    match name.strip_prefix(release.as_str()) {
        Some("") => true,
        Some(rest) => rest.strip_prefix('-').is_some_and(|checksum| {
            checksum.len() >= 40 && checksum.bytes().all(|byte| byte.is_ascii_hexdigit())
        }),
        None => false,
    }
}

/// `/etc/kernels/kernel-config-<arch>-R`, as genkernel writes it.
fn genkernel_configs(tree: &dyn Tree, release: &Release) -> Vec<String> {
    const DIRECTORY: &str = "/etc/kernels";
    let named = |name: &str| {
        let rest = name.strip_prefix("kernel-config-")?;
        let (_arch, of) = rest.split_once('-')?;
        (of == release.as_str()).then(|| format!("{DIRECTORY}/{name}"))
    };
    let entries = tree.list(DIRECTORY).unwrap_or_default();
    entries.iter().filter_map(|entry| named(&entry.name)).collect()
}

/// Where the running kernel's symbols are.
pub(crate) const KALLSYMS: &str = "/proc/kallsyms";

/// What the running kernel's own symbols say. Both names are exported from `p2pdma.c` and from nowhere else.
///
/// Source: <https://git.kernel.org/pub/scm/linux/kernel/git/torvalds/linux.git/tree/drivers/pci/p2pdma.c>.
pub(crate) fn kallsyms(tree: &dyn Tree) -> Witness {
    let content = match tree.read(KALLSYMS, &Want::lines(KALLSYMS_LIMIT, keep_symbol)) {
        Ok(content) => content,
        // Masked with a device node, as container runtimes do: as good as not there.
        Err(ReadError::WrongKind(_)) => {
            let detail = Some("masked".to_owned());
            return Witness { detail, ..Witness::new(KALLSYMS, Kind::Kallsyms, State::Empty) };
        }
        Err(error) => return Witness::failed(KALLSYMS, Kind::Kallsyms, error),
    };
    let mut names = 0_u32;
    let mut other_pci = false;
    let (mut option, mut symbols) = (None, None);
    for line in content.bytes.split_inclusive(|&byte| byte == b'\n') {
        names = names.saturating_add(1);
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        match Named::of(line) {
            Some(Named::Pci(name)) if SYMBOL_NAMES.contains(&name) => {
                option = option.or(Some((names, line)));
            }
            Some(Named::Pci(_)) => other_pci = true,
            Some(Named::Amdgpu { name, .. }) => {
                let symbols = symbols.get_or_insert(Symbols { ais: None });
                if is_ais(name) && symbols.ais.is_none() {
                    let text = Some(shown(line).replace('\t', " "));
                    symbols.ais =
                        Some(Evidence { path: KALLSYMS.to_owned(), line: Some(names), text });
                }
            }
            None => {}
        }
    }
    if let Some((number, line)) = option {
        return Witness {
            line: Some(number),
            text: Some(String::from_utf8_lossy(line).into_owned()),
            lines: 1,
            symbols,
            ..Witness::new(KALLSYMS, Kind::Kallsyms, State::Y)
        };
    }
    let (state, detail) = if other_pci {
        (
            State::Absent,
            format!(
                "{names} symbols, none of pci_p2pdma_add_resource and pci_p2pdma_distance_many"
            ),
        )
    } else {
        (State::Empty, "no PCI symbols".to_owned())
    };
    Witness { detail: Some(detail), symbols, ..Witness::new(KALLSYMS, Kind::Kallsyms, state) }
}

/// A symbol that is looked at.
#[derive(Clone, Copy)]
enum Named<'a> {
    /// One of the kernel image with the prefix `pci_`.
    Pci(&'a [u8]),
    /// One of the interface between amdgpu and its compute part, or the one that AIS is made of.
    Amdgpu { name: &'a [u8], module: bool },
}

impl<'a> Named<'a> {
    fn of(line: &'a [u8]) -> Option<Self> {
        let mut fields = line.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty());
        let (_address, _type, name) = (fields.next()?, fields.next()?, fields.next()?);
        let module = fields.next();
        if module.is_none() && name.starts_with(b"pci_") {
            return Some(Self::Pci(name));
        }
        let amdgpu = module.is_none_or(|module| module == b"[amdgpu]") && fields.next().is_none();
        let known = name.starts_with(b"kgd2kfd_") || is_ais(name);
        (amdgpu && known).then_some(Self::Amdgpu { name, module: module.is_some() })
    }
}

/// Whether a symbol is the function, or the part of it that a compiler has split off.
fn is_ais(name: &[u8]) -> bool {
    name.strip_prefix(b"kfd_ais_rw_file").is_some_and(|rest| rest.is_empty() || rest[0] == b'.')
}

/// Keeps the names the verdicts look at, addresses zeroed.
fn keep_symbol(line: &[u8], out: &mut Vec<u8>) {
    if memmem::find(line, b" pci_").is_none() && memmem::find(line, b"kfd").is_none() {
        return;
    }
    let Some(named) = Named::of(line) else { return };
    let (name, module): (_, &[u8]) = match named {
        Named::Amdgpu { name, module: true } => (name, b"\t[amdgpu]"),
        Named::Pci(name) | Named::Amdgpu { name, .. } => (name, b""),
    };
    out.extend_from_slice(b"0000000000000000 T ");
    out.extend_from_slice(name);
    out.extend_from_slice(module);
}
