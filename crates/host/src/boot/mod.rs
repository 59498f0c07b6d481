//! Which kernel boots next, as the boot loader's own files tell.
//!
//! Each loader's files are followed as the loader itself follows them: one-shot choice, saved choice, configured
//! default, order of the menu. Where a file that would decide cannot be read the answer is that it is not known.
//!
//! Every name, title and choice is compared in its [disguise](crate::mask::disguise), because a snapshot holds nothing
//! else.

mod bls;
mod grub;
mod script;
mod systemd_boot;

use fastpath_knowledge::Release;
use serde::{Deserialize, Serialize};

use crate::mask::{disguise, mask_ids};
use crate::os::{Environment, OsRelease};
use crate::tree::{LineFilter, ReadError, Tree, Want};
use crate::witness::Evidence;

/// A boot loader whose files are understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Loader {
    /// GRUB 2.
    Grub,
    /// systemd-boot.
    SystemdBoot,
}

impl Loader {
    /// The name used in data and output.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Grub => "grub",
            Self::SystemdBoot => "systemd-boot",
        }
    }
}

/// What is known about the next boot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NextBoot {
    /// The kernel that boots next; `None` if it cannot be told.
    pub release: Option<Release>,
    /// The boot loader, if it could be told.
    pub loader: Option<Loader>,
    /// Where that stands.
    pub evidence: Option<Evidence>,
    /// How it was found, or why it cannot be told: one clause.
    pub why: String,
    /// More privilege might help.
    pub permission: bool,
}

/// What the readers of both loaders are asked about.
#[derive(Clone, Copy)]
struct Host<'a> {
    tree: &'a dyn Tree,
    os: &'a OsRelease,
    installed: &'a [Release],
}

/// The kernel that boots next.
struct Found {
    release: Release,
    evidence: Option<Evidence>,
    why: String,
}

/// Why it cannot be told.
#[derive(Debug)]
struct Unknown {
    why: String,
    evidence: Option<Evidence>,
    permission: bool,
}

impl Unknown {
    fn new(why: impl Into<String>) -> Self {
        Self { why: why.into(), evidence: None, permission: false }
    }

    /// A file that would decide could not be read.
    fn refused(path: &str, error: ReadError) -> Self {
        Self {
            why: format!("{}: {error}", shown(&mask_ids(path))),
            evidence: None,
            permission: error.is_permission(),
        }
    }

    fn at(self, evidence: Evidence) -> Self {
        Self { evidence: Some(evidence), ..self }
    }
}

/// Proxmox keeps kernels and entries on EFI system partitions that are not mounted.
const PROXMOX: &str = "/etc/kernel/proxmox-boot-uuids";

const NO_FILES: &str = "no boot loader files were found";

/// Tells which of the `installed` kernels boots next.
pub fn next_boot(
    tree: &dyn Tree,
    os: &OsRelease,
    environment: Environment,
    installed: &[Release],
) -> NextBoot {
    let host = Host { tree, os, installed };
    let (loader, answer) = match place_without_choice(tree, environment) {
        Some(why) => (None, Err(Unknown::new(why))),
        None => match loader(host) {
            Ok(Loader::Grub) => (Some(Loader::Grub), grub::next(host)),
            Ok(Loader::SystemdBoot) => (Some(Loader::SystemdBoot), systemd_boot::next(host)),
            Err(unknown) => (None, Err(unknown)),
        },
    };
    match answer {
        Ok(Found { release, evidence, why }) => {
            NextBoot { release: Some(release), loader, evidence, why, permission: false }
        }
        Err(Unknown { why, evidence, permission }) => {
            NextBoot { release: None, loader, evidence, why, permission }
        }
    }
}

/// Why no file in the root decides which kernel boots.
fn place_without_choice(tree: &dyn Tree, environment: Environment) -> Option<&'static str> {
    if environment.wsl2 {
        Some("Windows decides which kernel WSL2 boots")
    } else if environment.container {
        Some("this is a container: its host decides which kernel boots")
    } else if tree.kind(PROXMOX).is_ok() {
        Some(
            "proxmox-boot-tool keeps the boot files on an EFI system partition that is not visible",
        )
    } else {
        None
    }
}

/// How surely a loader is in use.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Sign {
    /// Its own configuration is there.
    Strong,
    /// Something of it is there, as a package that is installed but not used leaves it.
    Weak,
    /// Its configuration may be there, but looking at this path was refused.
    Hidden(&'static str, ReadError),
    /// Nothing.
    None,
}

/// The loader in use: the one that started this boot says so itself, else the one that has its files.
fn loader(host: Host<'_>) -> Result<Loader, Unknown> {
    let info = systemd_boot::variable(host.tree, "LoaderInfo");
    if let Ok(Some(info)) = &info {
        return if info.text.starts_with("systemd-boot") {
            Ok(Loader::SystemdBoot)
        } else if info.text.starts_with("GRUB") {
            Ok(Loader::Grub)
        } else {
            let why = format!("the boot loader `{}` is not understood", shown(&info.text));
            Err(Unknown::new(why).at(info.evidence()))
        };
    }
    match (systemd_boot::sign(host.tree), grub::sign(host)) {
        (Sign::Strong, Sign::Strong) => Err(Unknown {
            permission: info.is_err_and(|unknown| unknown.permission),
            ..Unknown::new(
                "GRUB and systemd-boot both have their files, and nothing tells which is used",
            )
        }),
        (Sign::Strong, _) => Ok(Loader::SystemdBoot),
        (_, Sign::Strong | Sign::Weak) => Ok(Loader::Grub),
        (Sign::Hidden(path, error), _) | (_, Sign::Hidden(path, error)) => {
            Err(Unknown::refused(path, error))
        }
        _ => Err(Unknown::new(NO_FILES)),
    }
}

/// Reads what a line filter leaves of a text.
fn read_text(
    tree: &dyn Tree,
    path: &str,
    limit: usize,
    filter: LineFilter,
) -> Result<String, ReadError> {
    let content = tree.read(path, &Want::lines(limit, filter))?;
    Ok(String::from_utf8_lossy(&content.bytes).into_owned())
}

/// Lines with their numbers.
fn numbered(text: &str) -> impl Iterator<Item = (&str, u32)> {
    text.lines().zip(1_u32..)
}

/// Foreign text for a clause: printable and short.
fn shown(text: &str) -> String {
    const LONGEST: usize = 80;
    let mut out: String = text.chars().take(LONGEST).flat_map(char::escape_debug).collect();
    if text.chars().nth(LONGEST).is_some() {
        out.push('…');
    }
    out
}

/// The installed kernel with this release, which is in disguise.
fn installed_as<'a>(host: Host<'a>, release: &str) -> Option<&'a Release> {
    host.installed.iter().find(|installed| disguise(installed.as_str()) == release)
}

/// Whether a text looks like a release: `0-rescue-...` does not.
fn looks_like_release(text: &str) -> bool {
    Release::new(text).is_some_and(|release| release.major_minor().is_some())
}

fn not_here(release: &str) -> Unknown {
    Unknown::new(format!("the boot entry names {}, which has no image here", shown(release)))
}

/// The installed kernel whose release stands in a title or a name, which is in disguise, as a word of its own.
fn mentioned<'a>(host: Host<'a>, text: &str) -> Option<&'a Release> {
    let part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '+' | '~');
    host.installed
        .iter()
        .filter(|release| {
            let release = disguise(release.as_str());
            text.match_indices(&release).any(|(at, _)| {
                let (before, after) = (&text[..at], &text[at + release.len()..]);
                // `6.6.1` is not in `6.6.1-custom`, but it is in `name-6.6.1`.
                !before.ends_with(part) && !after.starts_with(part) && !after.starts_with('-')
            })
        })
        .max_by_key(|release| release.as_str().len())
}

/// Whether the name of an image is one that many have.
fn is_bare(name: &str) -> bool {
    const BARE: [&str; 7] =
        ["vmlinuz", "vmlinux", "kernel", "Image", "bzImage", "linux", "linux.efi"];
    BARE.contains(&name)
}

/// The installed kernel that an image's path names, as [`script::image_path`] has it.
fn release_of_image(host: Host<'_>, path: &str) -> Result<Release, Unknown> {
    const PREFIXES: [&str; 5] = ["vmlinuz-", "vmlinux-", "kernel-", "Image-", "bzImage-"];
    if let Some(why) = script::elsewhere(path) {
        return Err(Unknown::new(why));
    }
    let mut components = path.rsplit('/');
    let name = components.next().unwrap_or_default();
    let directory = components.next().unwrap_or_default();
    let suffix = PREFIXES.iter().find_map(|prefix| name.strip_prefix(prefix)).map(|suffix| {
        let plain = suffix.strip_prefix("x86_64-").or_else(|| suffix.strip_prefix("aarch64-"));
        plain.unwrap_or(suffix)
    });
    let bare = is_bare(name);
    // kernel-install's layout: `/<machine id>/<release>/linux`.
    let named = suffix.or_else(|| bare.then_some(directory));
    if let Some(named) = named {
        if let Some(release) = installed_as(host, named) {
            return Ok(release.clone());
        }
        if looks_like_release(named) {
            return Err(not_here(named));
        }
    }
    let nameless = || {
        Err(Unknown::new(format!(
            "the name of the boot entry's image, `{}`, tells no release",
            shown(name)
        )))
    };
    let rescue = suffix.is_some_and(|suffix| suffix.starts_with("0-rescue"));
    let versioned = suffix.is_some_and(|suffix| suffix.starts_with(|c: char| c.is_ascii_digit()));
    let backup = suffix.is_some_and(|suffix| suffix.contains('.'));
    if rescue || versioned || backup || !(bare || suffix.is_some()) {
        return nameless();
    }
    match the_only_fit(host, suffix) {
        Some(release) => Ok(release.clone()),
        None => nameless(),
    }
}

/// The one installed kernel that an image without a release in its name can be. On Arch Linux the name is that of the
/// package (`vmlinuz-linux-lts`), which the modules directory repeats.
fn the_only_fit<'a>(host: Host<'a>, package: Option<&str>) -> Option<&'a Release> {
    let mut fits = host.installed.iter().filter(|release| {
        let owner = package_of(host.tree, release);
        match (package, owner) {
            (Some(package), Some(owner)) => package == owner,
            _ => host.installed.len() == 1,
        }
    });
    let first = fits.next()?;
    fits.next().is_none().then_some(first)
}

/// The package a kernel is from, in disguise, where the modules directory tells.
fn package_of(tree: &dyn Tree, release: &Release) -> Option<String> {
    let path = format!("/usr/lib/modules/{release}/pkgbase");
    let text = read_text(tree, &path, 4096, keep_disguised).ok()?;
    Some(text.lines().next()?.trim().to_owned())
}

/// Line filter that keeps whole lines, in disguise.
fn keep_disguised(line: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(disguise(&String::from_utf8_lossy(line)).as_bytes());
}
