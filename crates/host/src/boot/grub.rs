//! Which kernel GRUB boots: environment block, menu, default entry.
//!
//! Manual: <https://www.gnu.org/software/grub/manual/grub/html_node/Simple-configuration.html>; what the default entry
//! may be: <https://www.gnu.org/software/grub/manual/grub/html_node/default.html>.

use std::collections::BTreeMap;

use fastpath_knowledge::Release;

use crate::mask::{disguise, is_disguised, mask_ids};
use crate::tree::{FileKind, ReadError};
use crate::witness::Evidence;

use super::script::{
    self, Child, Config, Image, Node, Nowhere, Place, Surroundings, keep_grub_cfg,
};
use super::{
    Found, Host, Sign, Unknown, bls, installed_as, mentioned, not_here, numbered, read_text,
    release_of_image, shown,
};

const DIRECTORIES: [&str; 2] = ["/boot/grub", "/boot/grub2"];
const VENDORS: &str = "/boot/efi/EFI";
const ENTRIES: &str = "/boot/loader/entries";
const DEFAULTS: &str = "/etc/default/grub";
const SNIPPETS: &str = "/etc/default/grub.d";

const CFG_LIMIT: usize = 4 << 20;
const SMALL: usize = 64 << 10;

/// An environment block has 1024 bytes.
const ENV_LIMIT: usize = 8 << 10;

/// More files than any `/etc/default/grub.d` has.
const MAX_SNIPPETS: usize = 64;

/// Whether GRUB is in use here.
pub(super) fn sign(host: Host<'_>) -> Sign {
    let configured = |directory: &str| {
        ["grub.cfg", "grubenv"].into_iter().any(|name| {
            match host.tree.kind(&format!("{directory}/{name}")) {
                Ok(_) => true,
                Err(error) => error.is_permission(),
            }
        })
    };
    let own = vendors(host).unwrap_or_default().into_iter().filter(|vendor| vendor.own);
    if own.into_iter().any(|vendor| configured(&vendor.path)) {
        return Sign::Strong;
    }
    let mut sign = Sign::None;
    for directory in DIRECTORIES {
        match host.tree.kind(directory) {
            Ok(_) if configured(directory) => return Sign::Strong,
            Ok(_) => sign = Sign::Weak,
            Err(error) if error.is_permission() && sign == Sign::None => {
                sign = Sign::Hidden(directory, error);
            }
            Err(_) => {}
        }
    }
    if host.tree.kind(DEFAULTS).is_ok() { Sign::Weak } else { sign }
}

/// A vendor's directory on the EFI system partition.
struct Vendor {
    path: String,
    /// It is the one of the operating system in the root; others are of systems installed beside it.
    own: bool,
}

/// Vendors' directories, the own one first.
fn vendors(host: Host<'_>) -> Result<Vec<Vendor>, ReadError> {
    let rank = |name: &str| {
        let name = name.to_ascii_lowercase();
        let is = |id: &str| {
            !id.is_empty()
                && (id == name
                    || id.strip_prefix(&name).is_some_and(|rest| rest.starts_with('-'))
                    || (name == "redhat" && matches!(id, "rhel" | "ol")))
        };
        match host.os.like.first() {
            _ if is(&host.os.id) => 0,
            Some(like) if is(like) => 1,
            _ => 2,
        }
    };
    let mut found: Vec<(u8, String)> = host
        .tree
        .list(VENDORS)?
        .into_iter()
        .filter(|entry| matches!(entry.kind, FileKind::Directory))
        .map(|entry| (rank(&entry.name), entry.name))
        .collect();
    found.sort();
    found.truncate(MAX_SNIPPETS);
    let best = found.first().map(|(rank, _)| *rank);
    Ok(found
        .into_iter()
        .map(|(rank, name)| Vendor {
            path: format!("{VENDORS}/{name}"),
            own: rank < 2 && Some(rank) == best,
        })
        .collect())
}

/// What became of the search for `grub.cfg`.
enum Cfg {
    /// The one with the menu, as filtered, and its directory.
    Read { directory: String, text: String },
    /// It may be there, but could not be read.
    Refused { directory: String, path: String, error: ReadError },
    /// There is none.
    Absent,
}

/// Finds the `grub.cfg` that has the menu; files that only load another `grub.cfg` do not.
fn find_cfg(host: Host<'_>) -> Cfg {
    let mut refused = None;
    let mut directories: Vec<String> = DIRECTORIES.map(str::to_owned).into();
    match vendors(host) {
        Ok(vendors) => {
            let own = vendors.iter().any(|vendor| vendor.own);
            let wanted = vendors.into_iter().filter(|vendor| vendor.own || !own);
            directories.extend(wanted.map(|vendor| vendor.path));
        }
        Err(error) if error.is_permission() => {
            refused = Some((VENDORS.to_owned(), VENDORS.to_owned(), error));
        }
        Err(_) => {}
    }
    let mut first_refused = None;
    for directory in directories {
        let path = format!("{directory}/grub.cfg");
        match read_text(host.tree, &path, CFG_LIMIT, keep_grub_cfg) {
            Ok(text) => {
                // What the environment block holds does not matter for whether there is a menu.
                let config = Config::parse(&path, &text, &Nowhere);
                if !config.top.is_empty() || config.leaves || config.too_much {
                    return Cfg::Read { directory, text };
                }
            }
            Err(ReadError::Missing | ReadError::NotRecorded) => {}
            Err(error) => {
                first_refused.get_or_insert((directory, path, error));
            }
        }
    }
    match first_refused.or(refused) {
        Some((directory, path, error)) => Cfg::Refused { directory, path, error },
        None => Cfg::Absent,
    }
}

/// GRUB's environment block.
#[derive(Default)]
struct Env {
    variables: BTreeMap<&'static str, (String, Place)>,
    /// The values are in a place outside the file system (openSUSE on btrfs).
    elsewhere: bool,
}

const SIGNATURE: &str = "# GRUB Environment Block";
const ELSEWHERE: &str = "env_block";

/// Line filter for `grubenv`.
fn keep_env(line: &[u8], out: &mut Vec<u8>) {
    let line = String::from_utf8_lossy(line);
    if line == SIGNATURE {
        out.extend_from_slice(line.as_bytes());
    }
    let Some((key, value)) = line.split_once('=') else { return };
    if KNOWN.contains(&key) || key == ELSEWHERE {
        out.extend_from_slice(format!("{key}={}", disguise(value)).as_bytes());
    }
}

/// Variables that are used. GRUB takes every one from the block, so the default entry itself may stand there.
const KNOWN: [&str; 7] = {
    let [a, b, c, d, e, f] = script::VARIABLES;
    [a, b, c, d, e, f, DEFAULT]
};

const DEFAULT: &str = "default";

impl Env {
    /// Reads the block beside `grub.cfg`, else the first there is.
    fn find(host: Host<'_>, beside: Option<&str>) -> Result<Self, Unknown> {
        let mut directories: Vec<String> = beside.into_iter().map(str::to_owned).collect();
        directories.extend(DIRECTORIES.map(str::to_owned));
        // Refused: then the one beside decides, or there is none.
        let vendors = vendors(host).unwrap_or_default();
        directories.extend(vendors.into_iter().filter(|v| v.own).map(|vendor| vendor.path));
        for directory in directories {
            let path = format!("{directory}/grubenv");
            match read_text(host.tree, &path, ENV_LIMIT, keep_env) {
                Ok(text) => return Ok(Self::parse(&path, &text)),
                Err(ReadError::Missing | ReadError::NotRecorded) => {}
                Err(error) => return Err(Unknown::refused(&path, error)),
            }
        }
        Ok(Self::default())
    }

    fn parse(path: &str, text: &str) -> Self {
        let mut env = Self::default();
        let path = mask_ids(path);
        // GRUB ignores a block without its signature.
        if text.lines().next() != Some(SIGNATURE) {
            return env;
        }
        for (line, number) in numbered(text) {
            let Some((key, value)) = line.split_once('=') else { continue };
            env.elsewhere |= key == ELSEWHERE && !value.is_empty();
            let Some(key) = KNOWN.into_iter().find(|name| *name == key) else { continue };
            let place = Place::new(&path, number, line);
            env.variables.insert(key, (unescape(value), place));
        }
        env
    }

    /// A variable's value, empty if it is not set; `None` if that cannot be told. That no one-shot entry waits
    /// elsewhere is taken for granted, else nothing could ever be told there.
    fn value(&self, name: &str) -> Option<String> {
        match self.variables.get(name) {
            _ if self.elsewhere && name == "saved_entry" => None,
            Some((value, _)) => Some(value.clone()),
            None => Some(String::new()),
        }
    }

    fn evidence(&self, name: &str) -> Option<Evidence> {
        let (_, place) = self.variables.get(name)?;
        Some(place.evidence())
    }
}

/// Undoes the backslashes of an environment block.
fn unescape(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => out.extend(chars.next()),
            _ => out.push(c),
        }
    }
    out
}

/// Where the choice of the default entry comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Chooser {
    OneShot,
    Saved,
    /// It is written down as it is.
    Literal,
    /// Nothing names an entry.
    Nothing,
}

/// The entry asked for.
struct Choice {
    value: String,
    chooser: Chooser,
    evidence: Option<Evidence>,
}

impl Choice {
    /// From a default as written, with variables put in.
    fn new(raw: &str, value: String, written: Option<Evidence>, env: &Env) -> Self {
        let (chooser, evidence) = if raw.contains("next_entry") {
            (Chooser::OneShot, env.evidence("next_entry").or(written))
        } else if raw.contains("saved_entry") {
            (Chooser::Saved, env.evidence("saved_entry").or(written))
        } else {
            (Chooser::Literal, written)
        };
        let chooser = if value.is_empty() && chooser == Chooser::Literal {
            Chooser::Nothing
        } else {
            chooser
        };
        Self { value, chooser, evidence }
    }

    fn why(&self, matched: bool) -> &'static str {
        match (self.chooser, matched) {
            (Chooser::OneShot, true) => "one-shot entry of GRUB",
            (Chooser::Saved, true) => "GRUB's saved entry",
            (Chooser::Literal, true) if self.value.trim() != "0" => {
                "the default entry of GRUB's menu"
            }
            (Chooser::Literal, true) | (Chooser::Nothing, _) => "first entry of GRUB's menu",
            (Chooser::OneShot, false) => {
                "first entry of GRUB's menu, as its one-shot entry is not there"
            }
            (Chooser::Saved, false) if self.value.is_empty() => {
                "first entry of GRUB's menu, as no entry is saved"
            }
            (Chooser::Saved, false) => {
                "first entry of GRUB's menu, as its saved entry is not there"
            }
            (Chooser::Literal, false) => {
                "first entry of GRUB's menu, as its default entry is not there"
            }
        }
    }
}

/// The kernel GRUB boots next.
pub(super) fn next(host: Host<'_>) -> Result<Found, Unknown> {
    match find_cfg(host) {
        Cfg::Read { directory, text } => from_cfg(host, &directory, &text),
        Cfg::Refused { directory, path, error } => {
            let refused = Unknown::refused(&path, error);
            from_defaults(host, Some(&directory), Some(refused))
        }
        Cfg::Absent => from_defaults(host, None, None),
    }
}

/// What stands around a `grub.cfg`.
struct Around<'a> {
    host: Host<'a>,
    directory: &'a str,
    env: &'a Env,
}

impl Surroundings for Around<'_> {
    fn variable(&self, name: &str) -> Option<String> {
        self.env.value(name)
    }

    fn exists(&self, name: &str) -> Option<bool> {
        match self.host.tree.kind(&format!("{}/{name}", self.directory)) {
            Ok(_) => Some(true),
            Err(ReadError::Missing | ReadError::NotRecorded) => Some(false),
            Err(_) => None,
        }
    }

    fn load(&self, name: &str) -> Result<Option<(String, String)>, Unknown> {
        read_beside(self.host, self.directory, name)
    }
}

/// The path and the filtered text of a file beside `grub.cfg`.
fn read_beside(
    host: Host<'_>,
    directory: &str,
    name: &str,
) -> Result<Option<(String, String)>, Unknown> {
    let path = format!("{directory}/{name}");
    match read_text(host.tree, &path, CFG_LIMIT, keep_grub_cfg) {
        Ok(text) => Ok(Some((mask_ids(&path), text))),
        Err(ReadError::Missing | ReadError::NotRecorded) => Ok(None),
        Err(error) => Err(Unknown::refused(&path, error)),
    }
}

fn from_cfg(host: Host<'_>, directory: &str, text: &str) -> Result<Found, Unknown> {
    let path = mask_ids(&format!("{directory}/grub.cfg"));
    let env = Env::find(host, Some(directory))?;
    let config = Config::parse(&path, text, &Around { host, directory, env: &env });
    if config.too_much {
        return Err(Unknown::new(format!("{path} is longer or deeper than a menu can be")));
    }
    let Config { nodes, top, default, uncertain, open, uses_bls, .. } = config;
    if let Some(unknown) = open {
        return Err(unknown);
    }
    if let Some(place) = &uncertain {
        let why = "grub.cfg sets its default entry under a condition that cannot be told";
        return Err(Unknown::new(why).at(place.evidence()));
    }
    let choice = match &default {
        None => {
            let (value, evidence) = (env.value(DEFAULT), env.evidence(DEFAULT));
            Choice::new("", value.unwrap_or_default(), evidence, &env)
        }
        Some(default) => {
            let written = default.place.evidence();
            match &default.value {
                Some(value) => Choice::new(&default.raw, value.clone(), Some(written), &env),
                None if env.elsewhere => return Err(elsewhere()),
                None => {
                    let why =
                        format!("GRUB's default entry `{}` cannot be told", shown(&default.raw));
                    return Err(Unknown::new(why).at(written));
                }
            }
        }
    };
    let entries = if uses_bls { entries(host)? } else { Vec::new() };
    choose(host, &Menu { nodes, top, entries, red_hat: uses_bls }, &choice)
}

fn elsewhere() -> Unknown {
    Unknown::new(
        "GRUB's environment block, which holds the saved entry, is outside the file system",
    )
}

/// The entries `blscfg` lists, in its order.
fn entries(host: Host<'_>) -> Result<Vec<bls::Entry>, Unknown> {
    let mut entries = bls::read(host.tree, ENTRIES)?;
    entries.retain(|entry| entry.linux.is_some());
    entries.sort_by(bls::grub_order);
    Ok(entries)
}

/// A whole menu.
struct Menu {
    nodes: Vec<Node>,
    top: Vec<Child>,
    entries: Vec<bls::Entry>,
    /// It is the GRUB of Fedora and its relatives, which reads the choice of an entry in its own way.
    red_hat: bool,
}

/// One line of a menu.
#[derive(Clone, Copy)]
enum Line<'a> {
    Node(&'a Node),
    Bls {
        entry: &'a bls::Entry,
        certain: bool,
    },
    /// Any number of lines that are not known.
    Open,
}

impl<'a> Line<'a> {
    /// Whether it is one line and surely there.
    fn is_certain(self) -> bool {
        match self {
            Self::Node(node) => node.certain,
            Self::Bls { certain, .. } => certain,
            Self::Open => false,
        }
    }

    fn is(self, name: &str) -> bool {
        match self {
            Self::Node(node) => node.title == name || node.id.as_deref() == Some(name),
            Self::Bls { entry, .. } => entry.title == name || entry.id == name,
            Self::Open => false,
        }
    }

    /// Whether it may have any name: it is not known, or has a variable in it.
    fn may_be_any(self) -> bool {
        match self {
            Self::Node(node) => [Some(&node.title), node.id.as_ref()]
                .into_iter()
                .flatten()
                .any(|name| name.contains('$')),
            Self::Bls { .. } => false,
            Self::Open => true,
        }
    }

    /// The image it starts.
    fn image(self) -> Option<&'a str> {
        match self {
            Self::Node(Node { image: Image::Path(path), .. }) => Some(path),
            Self::Bls { entry, .. } => entry.linux.as_ref().map(|(path, _)| path.as_str()),
            Self::Node(_) | Self::Open => None,
        }
    }

    fn evidence(self) -> Option<Evidence> {
        match self {
            Self::Node(node) => Some(node.place.evidence()),
            Self::Bls { entry, .. } => entry.linux.as_ref().map(|(_, place)| place.clone()),
            Self::Open => None,
        }
    }
}

impl Menu {
    /// Whether entries differ by nothing but their machine ids: those come first in GRUB's order, and are masked.
    fn has_twins(&self) -> bool {
        self.entries.windows(2).any(|pair| pair[0].stem == pair[1].stem)
    }

    fn lines(&self, children: &[Child]) -> Vec<Line<'_>> {
        let mut lines = Vec::new();
        for child in children {
            match *child {
                Child::Node(index) => lines.extend(self.nodes.get(index).map(Line::Node)),
                Child::Bls { certain } => {
                    lines.extend(self.entries.iter().map(|entry| Line::Bls { entry, certain }));
                }
                Child::Open => lines.push(Line::Open),
            }
        }
        lines
    }
}

/// What a part of a choice asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    /// The line in this place.
    Number(usize),
    /// The line with this name.
    Name,
    /// A name that starts with a number, which releases of GRUB understand in different ways.
    Unclear,
}

/// Reads a part of a choice as GRUB's `strtoul` does: blanks, then a number that is hexadecimal after `0x` and octal
/// after `0`. What follows the number is passed over, but not by the GRUB of Fedora, which takes such a part for a name.
fn asked(part: &str, red_hat: bool) -> Asked {
    const BLANKS: [char; 4] = [' ', '\t', '\r', '\n'];
    let text = part.trim_start_matches(BLANKS);
    let octal =
        |text: &str| text.starts_with('0') && text[1..].starts_with(|c| ('0'..='7').contains(&c));
    let (base, text) = match text.strip_prefix("0x") {
        Some(rest) => (16, rest),
        None if octal(text) => (8, text),
        None => (10, text),
    };
    let end = text.find(|c: char| !c.is_digit(base)).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    if digits.is_empty() {
        Asked::Name
    } else if rest.trim_start_matches(BLANKS).is_empty() {
        // A number too large is in no menu.
        Asked::Number(usize::from_str_radix(digits, base).unwrap_or(usize::MAX))
    } else if red_hat {
        Asked::Name
    } else {
        Asked::Unclear
    }
}

/// A line that was chosen.
struct Chosen<'a> {
    line: Line<'a>,
    /// It is what was asked for, and not the first line in its stead.
    matched: bool,
    /// The place in the menu decided, and not a name.
    by_order: bool,
}

/// The line that a part of a choice asks for, or the first one.
fn pick<'a>(lines: &[Line<'a>], part: Option<&str>, red_hat: bool) -> Result<Chosen<'a>, Unknown> {
    let settled = lines.iter().take_while(|line| line.is_certain()).count();
    let unsettled = || {
        let why = "an entry of GRUB's menu is under a condition that cannot be told";
        let evidence = lines.get(settled).and_then(|line| line.evidence());
        Unknown { evidence, ..Unknown::new(why) }
    };
    let asked = part.map(|part| (part, asked(part, red_hat)));
    match asked {
        Some((_, Asked::Number(number))) => {
            if let Some(&line) = lines[..settled].get(number) {
                return Ok(Chosen { line, matched: true, by_order: true });
            }
            let open = lines.iter().any(|line| matches!(line, Line::Open));
            if open || number < lines.len() {
                return Err(unsettled());
            }
        }
        Some((part, Asked::Name)) if !part.trim().is_empty() => {
            let fits = |line: &&Line<'a>| line.is(part) || line.may_be_any();
            let mut found = lines.iter().filter(fits).copied();
            if let Some(line) = found.next() {
                // An entry that starts nothing gives no kernel, whether or not it is there.
                let idle =
                    matches!(line, Line::Node(Node { image: Image::None, submenu: false, .. }));
                if line.may_be_any() || !(line.is_certain() || idle) {
                    let evidence = line.evidence();
                    return Err(Unknown { evidence, ..unsettled() });
                }
                if is_disguised(part) && found.any(|other| other.image() != line.image()) {
                    let why = "several boot entries have the name that GRUB is asked for";
                    let evidence = line.evidence();
                    return Err(Unknown { evidence, ..Unknown::new(why) });
                }
                return Ok(Chosen { line, matched: true, by_order: false });
            }
        }
        Some((part, Asked::Unclear)) => {
            let why =
                format!("GRUB is asked for `{}`, which can be a number or a name", shown(part));
            return Err(Unknown::new(why));
        }
        Some((_, Asked::Name)) | None => {}
    }
    match lines.first() {
        None => Err(Unknown::new("GRUB's menu has no entries")),
        Some(_) if settled == 0 => Err(unsettled()),
        // A submenu without more to say gives its first line.
        Some(&line) => Ok(Chosen { line, matched: part.is_none(), by_order: true }),
    }
}

/// Follows the choice through the menu as GRUB does: a part that names nothing is the first line.
fn choose(host: Host<'_>, menu: &Menu, choice: &Choice) -> Result<Found, Unknown> {
    let parts = parts(&choice.value);
    let at = |unknown: Unknown| match (&unknown.evidence, &choice.evidence) {
        (None, Some(evidence)) => unknown.at(evidence.clone()),
        _ => unknown,
    };
    if menu.red_hat && parts.len() > 1 && parts.iter().any(|part| asked(part, true) != Asked::Name)
    {
        // It takes no number that something follows.
        return Err(at(Unknown::new("GRUB is asked for the place of an entry in a submenu")));
    }
    let mut parts = parts.iter();
    let mut matched = true;
    let mut children = menu.top.as_slice();
    // Ends: every step goes down to nodes that were read later.
    loop {
        let lines = menu.lines(children);
        let part = parts.next().map(String::as_str);
        let chosen = pick(&lines, part, menu.red_hat).map_err(at)?;
        matched &= chosen.matched;
        let (image, place) = match chosen.line {
            Line::Node(node) if node.submenu => {
                if node.redirects {
                    let why = "a submenu of grub.cfg sets its own default entry";
                    return Err(Unknown::new(why).at(node.place.evidence()));
                }
                children = &node.children;
                continue;
            }
            Line::Node(node) => (started(node)?, node.place.evidence()),
            Line::Bls { .. } if chosen.by_order && menu.has_twins() => {
                let why =
                    "boot entries of several machine ids are there, whose order cannot be told";
                return Err(Unknown::new(why));
            }
            Line::Bls { entry, .. } => match &entry.linux {
                Some((image, place)) => (image.as_str(), place.clone()),
                None => return Err(Unknown::new("GRUB's menu has no entries")),
            },
            // Never chosen.
            Line::Open => return Err(Unknown::new("GRUB's menu could not be read")),
        };
        return match release_of_image(host, image) {
            Ok(release) => {
                // Without a match it is the first entry itself that decides.
                let evidence = choice.evidence.clone().filter(|_| matched).or(Some(place));
                Ok(Found { release, evidence, why: choice.why(matched).to_owned() })
            }
            Err(unknown) => Err(unknown.at(place)),
        };
    }
}

/// The image that an entry starts.
fn started(node: &Node) -> Result<&str, Unknown> {
    let title = shown(&node.title);
    let why = match &node.image {
        // What `os-prober` found is another system, whatever its kernel is called.
        _ if node.id.as_deref().is_some_and(|id| id.starts_with("osprober-")) => {
            format!("the boot entry `{title}` starts another system")
        }
        Image::Path(path) => return Ok(path),
        Image::None => format!("the boot entry `{title}` starts no Linux kernel"),
        Image::Unclear => {
            format!("what the boot entry `{title}` starts depends on what cannot be told")
        }
    };
    Err(Unknown::new(why).at(node.place.evidence()))
}

/// The parts of `submenu>entry`; a doubled `>` stands for itself.
fn parts(value: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut chars = value.chars().peekable();
    while let Some(c) = chars.next() {
        if c == '>' && chars.next_if_eq(&'>').is_none() {
            parts.push(String::new());
        } else if let Some(part) = parts.last_mut() {
            part.push(c);
        }
    }
    parts
}

/// What is used of `/etc/default/grub` and the files that add to it.
#[derive(Default)]
struct Defaults {
    /// `GRUB_DEFAULT` and where it stands.
    default: Option<(String, Evidence)>,
    blscfg: bool,
    /// There is one menu and nothing below it.
    flat: bool,
    /// Something changes the order of the menu.
    reordered: Option<&'static str>,
    /// A value is worked out by the shell.
    computed: bool,
}

const KEYS: [&str; 5] = [
    "GRUB_DEFAULT",
    "GRUB_ENABLE_BLSCFG",
    "GRUB_FLAVOUR_ORDER",
    "GRUB_TOP_LEVEL",
    "GRUB_DISABLE_SUBMENU",
];

/// Commands of the shell after which an assignment may not count, or another one may.
const CONTROL: [&str; 11] =
    ["if", "case", "for", "while", "until", "[", "[[", "test", ".", "source", "eval"];

/// Line filter for `/etc/default/grub`.
fn keep_defaults(line: &[u8], out: &mut Vec<u8>) {
    let line = String::from_utf8_lossy(line);
    let mut kept = Vec::new();
    for words in script::statements(&line) {
        let mut words = words.iter().skip_while(|word| word.raw == "export");
        let Some(word) = words.next() else { continue };
        if CONTROL.contains(&word.raw) {
            kept.push(word.raw.to_owned());
        } else if word.value.split_once('=').is_some_and(|(key, _)| KEYS.contains(&key)) {
            kept.push(script::kept_word(word));
        }
    }
    out.extend_from_slice(kept.join("; ").as_bytes());
}

impl Defaults {
    fn read(host: Host<'_>) -> Result<Self, Unknown> {
        let mut paths = vec![DEFAULTS.to_owned()];
        match host.tree.list(SNIPPETS) {
            Ok(entries) => {
                let names = entries.into_iter().map(|entry| entry.name);
                let names =
                    names.filter(|name| name.rsplit('.').next() == Some("cfg")).take(MAX_SNIPPETS);
                paths.extend(names.map(|name| format!("{SNIPPETS}/{name}")));
            }
            Err(error) if error.is_permission() => return Err(Unknown::refused(SNIPPETS, error)),
            Err(_) => {}
        }
        let mut defaults = Self::default();
        let mut any = false;
        for path in paths {
            match read_text(host.tree, &path, SMALL, keep_defaults) {
                Ok(text) => {
                    any |= path == DEFAULTS;
                    defaults.add(&mask_ids(&path), &text);
                }
                Err(ReadError::Missing | ReadError::NotRecorded) => {}
                Err(error) => return Err(Unknown::refused(&path, error)),
            }
        }
        if any {
            Ok(defaults)
        } else {
            Err(Unknown::new("GRUB is there, but neither its menu nor /etc/default/grub"))
        }
    }

    fn add(&mut self, path: &str, text: &str) {
        let (mut controlled, mut assigned) = (false, false);
        for (line, number) in numbered(text) {
            for words in script::statements(line) {
                let Some(word) = words.first() else { continue };
                controlled |= CONTROL.contains(&word.raw);
                // What another file sets is not known.
                self.computed |= matches!(word.raw, "." | "source" | "eval");
                let Some((key, value)) = word.value.split_once('=') else { continue };
                assigned = true;
                self.computed |= value.contains(['$', '`']);
                let set = !value.is_empty();
                match key {
                    "GRUB_DEFAULT" => {
                        let place = Place::new(path, number, line);
                        self.default = Some((value.to_owned(), place.evidence()));
                    }
                    "GRUB_ENABLE_BLSCFG" => self.blscfg = value == "true",
                    "GRUB_DISABLE_SUBMENU" => self.flat = matches!(value, "true" | "y"),
                    "GRUB_FLAVOUR_ORDER" if set => self.reordered = Some("GRUB_FLAVOUR_ORDER"),
                    "GRUB_TOP_LEVEL" if set => self.reordered = Some("GRUB_TOP_LEVEL"),
                    _ => {}
                }
            }
        }
        self.computed |= controlled && assigned;
    }
}

/// Works the next kernel out from what `grub.cfg` is generated from. `refused` says that `grub.cfg` may be there.
fn from_defaults(
    host: Host<'_>,
    directory: Option<&str>,
    refused: Option<Unknown>,
) -> Result<Found, Unknown> {
    let answer = Defaults::read(host).and_then(|defaults| {
        let env = Env::find(host, directory)?;
        if defaults.computed {
            return Err(Unknown::new("/etc/default/grub works its values out when it is read"));
        }
        nothing_beside(host, directory)?;
        let choice = choice(&defaults, &env)?;
        if defaults.blscfg {
            return from_entries(host, &choice);
        }
        guess(host, &defaults, &choice)
    });
    answer.map_err(|unknown| match refused {
        // More privilege would open the menu itself, so that is the thing to say.
        Some(refused) if refused.permission && !unknown.permission => refused,
        Some(_) | None => unknown,
    })
}

/// Makes sure that no file is there that the menu would read too: it may ask for another entry.
fn nothing_beside(host: Host<'_>, directory: Option<&str>) -> Result<(), Unknown> {
    let directories =
        directory.map_or(DIRECTORIES.as_slice().to_vec(), |directory| vec![directory]);
    for directory in directories {
        for name in script::BESIDE {
            if let Some((path, text)) = read_beside(host, directory, name)?
                && !text.trim().is_empty()
            {
                return Err(Unknown::new(format!("{path} may change the default entry of GRUB")));
            }
        }
    }
    Ok(())
}

/// The entry that the generated menu would ask for.
fn choice(defaults: &Defaults, env: &Env) -> Result<Choice, Unknown> {
    let (setting, place) = defaults.default.clone().unzip();
    let one_shot = env.value("next_entry").filter(|value| !value.is_empty());
    Ok(match (one_shot, setting.as_deref().unwrap_or_default()) {
        (Some(value), _) => Choice::new("${next_entry}", value, None, env),
        (None, "saved") => {
            let value = env.value("saved_entry").ok_or_else(elsewhere)?;
            Choice::new("${saved_entry}", value, place, env)
        }
        (None, setting) => Choice::new("", setting.to_owned(), place, env),
    })
}

/// A menu that is nothing but the entries of the boot loader specification.
fn from_entries(host: Host<'_>, choice: &Choice) -> Result<Found, Unknown> {
    let entries = entries(host)?;
    if entries.is_empty() {
        return Err(Unknown::new(format!("there are no boot entries in {ENTRIES}")));
    }
    let top = vec![Child::Bls { certain: true }];
    choose(host, &Menu { nodes: Vec::new(), top, entries, red_hat: true }, choice)
}

/// Without a menu: the names that the generator gives to entries, and the order it puts them in.
fn guess(host: Host<'_>, defaults: &Defaults, choice: &Choice) -> Result<Found, Unknown> {
    let parts = parts(&choice.value);
    let last = parts.last().map(String::as_str).unwrap_or_default().trim();
    let number = asked(last, false);
    let single = parts.len() == 1;
    let first = single
        && (last.is_empty()
            || number == Asked::Number(0)
            || last.starts_with("gnulinux-simple-")
            || last.starts_with("gnulinux-advanced-"));
    let release = if number == Asked::Name && !first { named(host, last)? } else { None };
    if let Some(release) = release {
        // An entry of the submenu is not found by its own name alone: then the first one boots.
        if single && !defaults.flat && host.installed.len() > 1 {
            let why = format!(
                "GRUB's menu could not be read, and `{}` may be in a submenu of it",
                shown(&choice.value)
            );
            return Err(at(Unknown::new(why), choice));
        }
        let why = choice.why(true).to_owned();
        return Ok(Found { release: release.clone(), evidence: choice.evidence.clone(), why });
    }
    if !first {
        let why = format!(
            "GRUB's menu could not be read, and `{}` names no kernel",
            shown(&choice.value)
        );
        return Err(at(Unknown::new(why), choice));
    }
    if let Some(key) = defaults.reordered {
        return Err(at(Unknown::new(format!("{key} changes the order of GRUB's menu")), choice));
    }
    let setting = match choice.chooser {
        Chooser::OneShot => "as GRUB's one-shot entry asks".to_owned(),
        Chooser::Saved if choice.value.is_empty() => {
            "GRUB_DEFAULT=saved and no entry is saved".to_owned()
        }
        Chooser::Saved => "GRUB_DEFAULT=saved and the first entry is saved".to_owned(),
        Chooser::Literal => format!("GRUB_DEFAULT={}", shown(&choice.value)),
        Chooser::Nothing => "GRUB_DEFAULT unset".to_owned(),
    };
    // Theirs puts the newest kernel first: a trait of the family, and of no version.
    let debian = host.os.is_of(&["debian", "ubuntu"]);
    match host.installed {
        [] => Err(Unknown::new("no installed kernel was found")),
        [newest, rest @ ..] if debian || rest.is_empty() => Ok(Found {
            release: newest.clone(),
            evidence: choice.evidence.clone(),
            why: format!("newest installed kernel, {setting}"),
        }),
        _ => Err(at(Unknown::new("the order of GRUB's menu could not be read"), choice)),
    }
}

fn at(unknown: Unknown, choice: &Choice) -> Unknown {
    match choice.evidence.clone() {
        Some(evidence) => unknown.at(evidence),
        None => unknown,
    }
}

/// The kernel that an entry's generated id (`gnulinux-R-advanced-...`) or title (`..., with Linux R`) names.
fn named<'a>(host: Host<'a>, name: &str) -> Result<Option<&'a Release>, Unknown> {
    let id = name.strip_prefix("gnulinux-").and_then(|rest| {
        ["-advanced-", "-recovery-"].into_iter().find_map(|kind| Some(rest.split_once(kind)?.0))
    });
    let title = || {
        let (_, rest) = name.split_once(", with Linux ")?;
        rest.split_whitespace().next()
    };
    match id.or_else(title) {
        Some(release) => installed_as(host, release).map(Some).ok_or_else(|| not_here(release)),
        None => Ok(mentioned(host, name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_of_variables_are_kept() {
        for name in KEYS.into_iter().chain(KNOWN).chain([ELSEWHERE]).chain(script::BESIDE) {
            assert_eq!(disguise(name), name);
        }
    }

    #[test]
    fn numbers_are_those_of_strtoul() {
        let cases = [
            ("0", Asked::Number(0)),
            (" 12 ", Asked::Number(12)),
            ("0x1F", Asked::Number(31)),
            ("017", Asked::Number(15)),
            ("08", Asked::Number(8)),
            ("0x", Asked::Name),
            ("-1", Asked::Name),
            ("99999999999999999999999", Asked::Number(usize::MAX)),
            ("018", Asked::Unclear),
            ("6.8.0", Asked::Unclear),
            ("Ubuntu", Asked::Name),
            ("", Asked::Name),
        ];
        for (text, expected) in cases {
            assert_eq!(asked(text, false), expected, "{text}");
        }
        assert_eq!(asked("6.8.0", true), Asked::Name);
    }
}
