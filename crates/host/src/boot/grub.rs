//! Which kernel GRUB boots: environment block, menu, default entry.
//!
//! Manual: <https://www.gnu.org/software/grub/manual/grub/html_node/Simple-configuration.html>; what the default entry
//! may be: <https://www.gnu.org/software/grub/manual/grub/html_node/default.html>.

use std::collections::BTreeMap;

use fastpath_knowledge::Release;

use crate::mask::mask_ids;
use crate::tree::{FileKind, ReadError, Want};
use crate::witness::Evidence;

use super::script::{self, Child, Config, Node, Place, keep_grub_cfg};
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

/// Finds the `grub.cfg` that has the menu; files that only load another one do not.
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
        match read_text(host.tree, &path, Want::lines(CFG_LIMIT, keep_grub_cfg)) {
            Ok(text) => {
                // What the environment block holds does not matter for whether there is a menu.
                let config = Config::parse(&text, &|_| None);
                if !config.top.is_empty() || config.too_much {
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
    path: String,
    variables: BTreeMap<&'static str, (String, Place)>,
    /// The values are in a place outside the file system (openSUSE on btrfs).
    elsewhere: bool,
}

const SIGNATURE: &str = "# GRUB Environment Block";
const ELSEWHERE: &str = "env_block";

/// Line filter for `grubenv`.
fn keep_env(line: &[u8], out: &mut Vec<u8>) {
    let line = String::from_utf8_lossy(line);
    let key = line.split_once('=').map(|(key, _)| key);
    let used = key.is_some_and(|key| script::VARIABLES.contains(&key) || key == ELSEWHERE);
    if used || line == SIGNATURE {
        out.extend_from_slice(mask_ids(&line).as_bytes());
    }
}

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
            match read_text(host.tree, &path, Want::lines(ENV_LIMIT, keep_env)) {
                Ok(text) => return Ok(Self::parse(&path, &text)),
                Err(ReadError::Missing | ReadError::NotRecorded) => {}
                Err(error) => return Err(Unknown::refused(&path, error)),
            }
        }
        Ok(Self::default())
    }

    fn parse(path: &str, text: &str) -> Self {
        let mut env = Self { path: mask_ids(path), ..Self::default() };
        // GRUB ignores a block without its signature.
        if text.lines().next() != Some(SIGNATURE) {
            return env;
        }
        for (line, number) in numbered(text) {
            let Some((key, value)) = line.split_once('=') else { continue };
            env.elsewhere |= key == ELSEWHERE && !value.is_empty();
            let Some(key) = script::VARIABLES.into_iter().find(|name| *name == key) else {
                continue;
            };
            let place = Place::new(number, line);
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
        Some(evidence(&self.path, place))
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

fn evidence(path: &str, place: &Place) -> Evidence {
    Evidence { path: path.to_owned(), line: Some(place.line), text: Some(place.text.clone()) }
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

fn from_cfg(host: Host<'_>, directory: &str, text: &str) -> Result<Found, Unknown> {
    let path = format!("{directory}/grub.cfg");
    let env = Env::find(host, Some(directory))?;
    let config = Config::parse(text, &|name| env.value(name));
    let path = mask_ids(&path);
    if config.too_much {
        return Err(Unknown::new(format!("{path} is longer or deeper than a menu can be")));
    }
    if let Some(place) = &config.uncertain {
        let why = "grub.cfg sets its default entry under a condition that cannot be told";
        return Err(Unknown::new(why).at(evidence(&path, place)));
    }
    let choice = match &config.default {
        None => Choice { value: String::new(), chooser: Chooser::Nothing, evidence: None },
        Some(default) => {
            let written = evidence(&path, &default.place);
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
    let entries = if config.uses_bls { entries(host)? } else { Vec::new() };
    choose(host, &Menu { path, config, entries }, &choice)
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
    /// The `grub.cfg` it is from.
    path: String,
    config: Config,
    entries: Vec<bls::Entry>,
}

/// One line of a menu.
#[derive(Clone, Copy)]
enum Line<'a> {
    Node(&'a Node),
    Bls(&'a bls::Entry),
}

impl Line<'_> {
    fn is(&self, name: &str) -> bool {
        match self {
            Self::Node(node) => node.title == name || node.id.as_deref() == Some(name),
            Self::Bls(entry) => entry.title == name || entry.stem == name,
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
            match child {
                Child::Node(index) => lines.extend(self.config.nodes.get(*index).map(Line::Node)),
                Child::Bls => lines.extend(self.entries.iter().map(Line::Bls)),
            }
        }
        lines
    }
}

/// Follows the choice through the menu as GRUB does: a part that names nothing is the first line.
fn choose(host: Host<'_>, menu: &Menu, choice: &Choice) -> Result<Found, Unknown> {
    let parts = parts(&choice.value);
    let mut parts = parts.iter();
    let mut matched = true;
    let mut children = menu.config.top.as_slice();
    // Ends: every step goes down to nodes that were read later.
    loop {
        let lines = menu.lines(children);
        // Whether the place in the menu decides, and not a name.
        let mut by_order = true;
        let line = match parts.next() {
            // A submenu without more to say gives its first line.
            None => lines.first(),
            Some(part) => {
                let found = match part.trim().parse::<usize>() {
                    Ok(number) => lines.get(number),
                    Err(_) if part.trim().is_empty() => None,
                    Err(_) => lines.iter().find(|line| line.is(part)),
                };
                by_order = found.is_none() || part.trim().parse::<usize>().is_ok();
                matched &= found.is_some();
                found.or_else(|| lines.first())
            }
        };
        let Some(line) = line else {
            return Err(Unknown::new("GRUB's menu has no entries"));
        };
        let (image, place) = match line {
            Line::Node(node) if node.submenu => {
                children = &node.children;
                continue;
            }
            Line::Node(node) => {
                let place = evidence(&menu.path, &node.place);
                let Some(image) = &node.image else {
                    let why =
                        format!("the boot entry `{}` starts no Linux kernel", shown(&node.title));
                    return Err(Unknown::new(why).at(place));
                };
                (image, place)
            }
            Line::Bls(_) if by_order && menu.has_twins() => {
                let why =
                    "boot entries of several machine ids are there, whose order cannot be told";
                return Err(Unknown::new(why));
            }
            Line::Bls(entry) => match &entry.linux {
                Some((image, place)) => (image, place.clone()),
                None => return Err(Unknown::new("GRUB's menu has no entries")),
            },
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
    /// Something changes the order of the menu.
    reordered: Option<&'static str>,
    /// A value is worked out by the shell.
    computed: bool,
}

const KEYS: [&str; 4] =
    ["GRUB_DEFAULT", "GRUB_ENABLE_BLSCFG", "GRUB_FLAVOUR_ORDER", "GRUB_TOP_LEVEL"];

/// Line filter for `/etc/default/grub`.
fn keep_defaults(line: &[u8], out: &mut Vec<u8>) {
    let line = String::from_utf8_lossy(line);
    let words = script::words(&line);
    let words: Vec<&script::Word<'_>> =
        words.iter().skip_while(|word| word.raw == "export").collect();
    let Some(word) = words.first() else { return };
    if word.raw.split_once('=').is_some_and(|(key, _)| KEYS.contains(&key)) {
        out.extend_from_slice(mask_ids(word.raw).as_bytes());
    }
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
            match read_text(host.tree, &path, Want::lines(SMALL, keep_defaults)) {
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
        for (line, number) in numbered(text) {
            for word in script::words(line) {
                let Some((key, value)) = word.value.split_once('=') else { continue };
                self.computed |= value.contains(['$', '`']);
                let set = !value.is_empty();
                match key {
                    "GRUB_DEFAULT" => {
                        let place = Place::new(number, line);
                        self.default = Some((value.to_owned(), evidence(path, &place)));
                    }
                    "GRUB_ENABLE_BLSCFG" => self.blscfg = value == "true",
                    "GRUB_FLAVOUR_ORDER" if set => self.reordered = Some("GRUB_FLAVOUR_ORDER"),
                    "GRUB_TOP_LEVEL" if set => self.reordered = Some("GRUB_TOP_LEVEL"),
                    _ => {}
                }
            }
        }
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
    let config = Config { top: vec![Child::Bls], ..Config::default() };
    choose(host, &Menu { path: String::new(), config, entries }, choice)
}

/// Without a menu: the names that the generator gives to entries, and the order it puts them in.
fn guess(host: Host<'_>, defaults: &Defaults, choice: &Choice) -> Result<Found, Unknown> {
    let parts = parts(&choice.value);
    let last = parts.last().map(String::as_str).unwrap_or_default().trim();
    if let Some(release) = named(host, last)? {
        let why = choice.why(true).to_owned();
        return Ok(Found { release: release.clone(), evidence: choice.evidence.clone(), why });
    }
    let single = parts.len() == 1;
    let first = single
        && (matches!(last, "" | "0")
            || last.starts_with("gnulinux-simple-")
            || last.starts_with("gnulinux-advanced-"));
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
    let debian = host.os.id == "debian"
        || host.os.id == "ubuntu"
        || host.os.like.iter().any(|id| id == "debian" || id == "ubuntu");
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
