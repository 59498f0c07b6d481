//! The little of GRUB's script language that `grub.cfg` needs: menus, conditions and the default entry.
//!
//! Grammar: <https://www.gnu.org/software/grub/manual/grub/html_node/Shell_002dlike-scripting.html>.

use std::collections::BTreeMap;

use crate::mask::disguise;
use crate::witness::Evidence;

use super::Unknown;

/// Variables of GRUB's environment block that conditions and the default entry may speak of. Ubuntu boots `prev_entry`
/// again after a boot that failed without an initial RAM disk.
pub(super) const VARIABLES: [&str; 6] =
    ["next_entry", "saved_entry", "boot_counter", "boot_success", "prev_entry", "initrdfail"];

/// Files beside `grub.cfg` that it reads if they are there. What they hold counts as if it stood in their place.
pub(super) const BESIDE: [&str; 4] = ["custom.cfg", "user.cfg", "console.cfg", "bootuuid.cfg"];

/// Generated files that do nothing but add entries where they are read, and what they add starts no other kernel first.
const ADDING: [&str; 2] = ["grub-btrfs.cfg", "grub-snapshot.cfg"];

/// A file that is there for the first boot only, and holds nothing but settings of the network.
const FIRST_BOOT: &str = "ignition.firstboot";

/// Files read from others; generated ones have two.
const MAX_LOADS: usize = 16;

/// Blocks and conditions inside each other; generated files have five.
const MAX_DEPTH: usize = 64;

/// Entries and submenus. A host with a hundred kernels has three hundred.
const MAX_NODES: usize = 4096;

/// Bytes of a line; longer ones are nobody's menu and are dropped.
const MAX_LINE: usize = 16 << 10;

/// Bytes of a value after its variables are put in.
const MAX_VALUE: usize = 16 << 10;

/// Characters of a line that is pointed at.
const MAX_SHOWN: usize = 512;

/// A word, as written and with its quotes undone. Variables stay as they are.
#[derive(Debug)]
pub(super) struct Word<'a> {
    pub(super) raw: &'a str,
    pub(super) value: String,
}

/// What a line is made of.
#[derive(Debug)]
enum Item<'a> {
    Open,
    Close,
    Statement(Vec<Word<'a>>),
}

/// Splits a line into statements and braces. `then`, `else` and `do` are statements of their own.
fn items(line: &str) -> Vec<Item<'_>> {
    let mut items = Vec::new();
    let mut words = Vec::new();
    let mut rest = line;
    loop {
        rest = rest.trim_start_matches([' ', '\t', '\r']);
        let brace = match rest.as_bytes().first() {
            None | Some(b'#') => break,
            Some(b';' | b'&' | b'|' | b'<' | b'>') => None,
            Some(b'{') => Some(Item::Open),
            Some(b'}') => Some(Item::Close),
            Some(_) => {
                let (word, after) = word(rest);
                rest = after;
                let keyword = words.is_empty() && matches!(word.raw, "then" | "else" | "do");
                words.push(word);
                if keyword {
                    items.extend(statement(&mut words));
                }
                continue;
            }
        };
        items.extend(statement(&mut words));
        items.extend(brace);
        rest = &rest[1..];
    }
    items.extend(statement(&mut words));
    items
}

/// The statement that the words so far make.
fn statement<'a>(words: &mut Vec<Word<'a>>) -> Option<Item<'a>> {
    let words = std::mem::take(words);
    (!words.is_empty()).then_some(Item::Statement(words))
}

/// The statements of a line, as in a file of shell assignments.
pub(super) fn statements(line: &str) -> impl Iterator<Item = Vec<Word<'_>>> {
    items(line).into_iter().filter_map(|item| match item {
        Item::Statement(words) => Some(words),
        Item::Open | Item::Close => None,
    })
}

/// The first word of `text`, which starts with one, and what follows it. An open quote ends with the line.
fn word(text: &str) -> (Word<'_>, &str) {
    let mut value = String::new();
    let mut chars = text.char_indices().peekable();
    let mut quote = None;
    let end = loop {
        let Some((at, c)) = chars.next() else { break text.len() };
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (None, '\'' | '"') => quote = Some(c),
            (None | Some('"'), '\\') => {
                let special = |c: char| quote.is_none() || matches!(c, '"' | '\\' | '$');
                match chars.next_if(|&(_, c)| special(c)) {
                    Some((_, escaped)) => value.push(escaped),
                    None if quote.is_some() => value.push('\\'),
                    None => {}
                }
            }
            (None | Some('"'), '$') => {
                value.push('$');
                if chars.peek().is_some_and(|&(_, c)| c == '{') {
                    for (_, c) in chars.by_ref() {
                        value.push(c);
                        if c == '}' {
                            break;
                        }
                    }
                }
            }
            (None, ' ' | '\t' | '\r' | ';' | '&' | '|' | '<' | '>' | '{' | '}') => break at,
            _ => value.push(c),
        }
    };
    (Word { raw: &text[..end], value }, &text[end..])
}

/// Line filter for `grub.cfg`: menus, image paths, the default entry, and the conditions around them. Command lines,
/// passwords, users and the places of files and disks are dropped.
pub(super) fn keep_grub_cfg(line: &[u8], out: &mut Vec<u8>) {
    if line.len() > MAX_LINE {
        return;
    }
    let line = String::from_utf8_lossy(line);
    let mut kept = String::new();
    // Whether the next statement needs a separator.
    let mut open = false;
    for item in items(&line) {
        let (text, opens) = match item {
            Item::Open => ("{".to_owned(), false),
            Item::Close => ("}".to_owned(), true),
            Item::Statement(words) => match kept_statement(&words) {
                Some(text) => {
                    let opens = !matches!(text.as_str(), "then" | "else" | "do");
                    if open {
                        kept.push(';');
                    }
                    (text, opens)
                }
                None => continue,
            },
        };
        if !kept.is_empty() {
            kept.push(' ');
        }
        kept.push_str(&text);
        open = opens;
    }
    // What is kept must pass again.
    if kept.len() <= MAX_LINE {
        out.extend_from_slice(kept.as_bytes());
    }
}

/// A word in disguise, quoted as it was if that means the same.
pub(super) fn kept_word(written: &Word<'_>) -> String {
    let (raw, value) = (disguise(written.raw), disguise(&written.value));
    let same = !raw.is_empty() && {
        let (again, after) = word(&raw);
        after.is_empty() && again.value == value
    };
    if same { raw } else { quoted(&value) }
}

fn quoted(value: &str) -> String {
    format!("'{}'", value.replace('\'', r"'\''"))
}

/// Words in disguise, each with a space in front.
fn kept_words(words: &[Word<'_>]) -> String {
    words.iter().flat_map(|word| [" ".to_owned(), kept_word(word)]).collect()
}

/// What is used of a statement.
fn kept_statement(words: &[Word<'_>]) -> Option<String> {
    let (command, arguments) = words.split_first()?;
    let kept = match command.raw {
        "then" | "else" | "fi" | "do" | "done" => command.raw.to_owned(),
        "blscfg" if arguments.is_empty() => command.raw.to_owned(),
        "blscfg" => "blscfg :".to_owned(),
        "if" | "elif" => match evaluate(arguments, &Anything) {
            Some(_) => format!("{}{}", command.raw, kept_words(arguments)),
            None => format!("{} :", command.raw),
        },
        "while" | "until" | "for" => "while :".to_owned(),
        "function" => "function f".to_owned(),
        "menuentry" | "submenu" => {
            let heading = Heading::of(arguments);
            let title = heading.title.map(std::slice::from_ref).unwrap_or_default();
            format!("{}{}{}", command.raw, kept_words(title), kept_words(heading.id))
        }
        raw if loads_image(raw) => {
            let path = image(arguments).map(|path| format!(" {path}")).unwrap_or_default();
            format!("{raw}{path}")
        }
        raw if loads_other(raw) => "chainloader".to_owned(),
        raw => {
            if let Some(load) = Load::of(raw, arguments) {
                return load.kept();
            }
            let assignment = Assignment::of(words)?;
            let command = if assignment.value.is_none() { "unset" } else { "set" };
            format!("{command} {}", kept_word(assignment.word))
        }
    };
    Some(kept)
}

/// Commands that name the image of a kernel.
fn loads_image(command: &str) -> bool {
    matches!(command, "linux" | "linux16" | "linuxefi") || is_module(command)
}

/// Xen boots Linux as its first module.
fn is_module(command: &str) -> bool {
    matches!(command, "module" | "module2" | "xen_module")
}

/// Commands after which no Linux kernel is loaded, unless it is a module.
fn loads_other(command: &str) -> bool {
    matches!(command, "multiboot" | "multiboot2" | "xen_hypervisor" | "chainloader")
}

/// Commands that run what stands elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Load {
    /// A file beside `grub.cfg`.
    Beside(&'static str),
    /// A file that adds entries, no more.
    Adding(&'static str),
    /// Another file, by the last part of its path, in disguise.
    File(String),
    /// What the script works out.
    Computed,
    Nothing,
}

impl Load {
    fn of(command: &str, arguments: &[Word<'_>]) -> Option<Self> {
        let reads = match command {
            "source" | "." => true,
            "eval" | "extract_entries_source" => return Some(Self::Computed),
            "configfile"
            | "extract_entries_configfile"
            | "normal"
            | "legacy_source"
            | "legacy_configfile"
            | "syslinux_source"
            | "syslinux_configfile"
            | "blsuki" => false,
            _ => return None,
        };
        let Some(path) = arguments.iter().find(|word| !word.raw.starts_with('-')) else {
            return Some(Self::Computed);
        };
        let name = path.value.rsplit('/').next().unwrap_or_default();
        let listed = |names: &[&'static str]| names.iter().copied().find(|known| *known == name);
        Some(match beside(&path.value) {
            Some(known) if reads => Self::Beside(known),
            _ if reads && name == FIRST_BOOT => Self::Nothing,
            _ => match listed(&ADDING).filter(|_| reads) {
                Some(known) => Self::Adding(known),
                // With a slash, lest it become one that is beside.
                None => Self::File(disguise(name)),
            },
        })
    }

    fn kept(&self) -> Option<String> {
        match self {
            Self::Beside(name) => Some(format!("source {name}")),
            Self::Adding(name) => Some(format!("source /{name}")),
            Self::File(name) => Some(format!("configfile {}", quoted(&format!("/{name}")))),
            Self::Computed => Some("eval".to_owned()),
            Self::Nothing => None,
        }
    }
}

/// The name of a file beside `grub.cfg`, if it is one of those that are read.
fn beside(path: &str) -> Option<&'static str> {
    const DIRECTORIES: [&str; 4] =
        ["$prefix/", "${prefix}/", "$config_directory/", "${config_directory}/"];
    let name = DIRECTORIES.iter().find_map(|directory| path.strip_prefix(directory));
    let name = name.unwrap_or(path);
    BESIDE.into_iter().find(|known| *known == name)
}

/// An assignment to a variable that is used, with or without `set`, or its end.
struct Assignment<'w, 'a> {
    word: &'w Word<'a>,
    name: &'static str,
    /// `None` takes the variable away.
    value: Option<&'w str>,
}

impl<'w, 'a> Assignment<'w, 'a> {
    fn of(words: &'w [Word<'a>]) -> Option<Self> {
        let used = |name: &str| {
            VARIABLES.into_iter().chain(["default"]).find(|variable| *variable == name)
        };
        let first = words.first()?;
        let word = if matches!(first.raw, "set" | "unset") { words.get(1)? } else { first };
        if first.raw == "unset" {
            return Some(Self { word, name: used(&word.value)?, value: None });
        }
        let (name, value) = word.value.split_once('=')?;
        Some(Self { word, name: used(name)?, value: Some(value) })
    }
}

/// The title and the words that give the id in a `menuentry` or `submenu`.
struct Heading<'w, 'a> {
    title: Option<&'w Word<'a>>,
    id: &'w [Word<'a>],
}

impl<'w, 'a> Heading<'w, 'a> {
    fn of(arguments: &'w [Word<'a>]) -> Self {
        let mut heading = Self { title: None, id: &[] };
        let mut rest = arguments;
        while let Some(word) = rest.first() {
            let taken = match word.raw {
                "--id" | "$menuentry_id_option" | "${menuentry_id_option}" => {
                    heading.id = &rest[..rest.len().min(2)];
                    2
                }
                "--class" | "--users" | "--hotkey" | "--source" => 2,
                raw if raw.starts_with("--id=") => {
                    heading.id = &rest[..1];
                    1
                }
                raw if raw.starts_with('-') => 1,
                _ => {
                    heading.title.get_or_insert(word);
                    1
                }
            };
            rest = rest.get(taken..).unwrap_or_default();
        }
        heading
    }

    fn id(&self) -> Option<String> {
        match self.id {
            [_, id] => Some(id.value.clone()),
            [word] => word.value.strip_prefix("--id=").map(str::to_owned),
            _ => None,
        }
    }
}

/// The path of an image, as [`image_path`] has it.
fn image(arguments: &[Word<'_>]) -> Option<String> {
    let word = arguments.iter().find(|word| !word.raw.starts_with("--"))?;
    image_path(&word.value)
}

/// What stands in front of the path of an image that is not on a disk of this host.
const REMOTE: &str = "(net)";

/// What stands in front of the path of an image that is inside another file.
const INSIDE: &str = "(loop)";

/// What is used of the path of an image, in disguise: its name, the directory of one whose name alone tells nothing,
/// and whether it is on a disk. The name of the disk or the server is not used.
pub(super) fn image_path(value: &str) -> Option<String> {
    let (device, path) = match value.strip_prefix('(') {
        Some(rest) => rest.split_once(')')?,
        None => value.split_once("://").unwrap_or(("", value)),
    };
    let kind = device.split([',', ':']).next().unwrap_or_default();
    let protocol = kind.trim_end_matches(|c: char| c.is_ascii_digit());
    let marker = match protocol {
        "http" | "https" | "tftp" | "ftp" | "nfs" | "pxe" | "net" | "efinet" => REMOTE,
        "loop" => INSIDE,
        _ => "",
    };
    let plain = |c: &char| c.is_ascii_alphanumeric() || "/._+~@:,^%$=-".contains(*c);
    let path: String = path.chars().filter(plain).collect();
    let mut components = path.rsplit('/');
    let name = components.next().filter(|name| !name.is_empty())?;
    let directory = components.next().filter(|name| !name.is_empty());
    let directory = directory.filter(|_| super::is_bare(name));
    let directory = directory.map(|name| format!("/{name}")).unwrap_or_default();
    Some(format!("{marker}{}", disguise(&format!("{directory}/{name}"))))
}

/// Why the image at a path, as [`image_path`] has it, is none of the installed kernels.
pub(super) fn elsewhere(path: &str) -> Option<&'static str> {
    if path.starts_with(REMOTE) {
        Some("the boot entry's image is on a server")
    } else if path.starts_with(INSIDE) {
        Some("the boot entry's image is inside another file")
    } else if path.contains('$') {
        Some("the name of the boot entry's image is worked out when it boots")
    } else {
        None
    }
}

/// What a script can ask about.
pub(super) trait Surroundings {
    /// The value of one of [`VARIABLES`], empty if it is not set; `None` if it cannot be told.
    fn variable(&self, name: &str) -> Option<String>;

    /// Whether a file is beside this one; `None` if it cannot be told.
    fn exists(&self, name: &str) -> Option<bool>;

    /// The path and the filtered text of a file beside this one; `None` if it is not there.
    fn load(&self, name: &str) -> Result<Option<(String, String)>, Unknown>;
}

/// Surroundings for which only matters what is asked.
struct Anything;

impl Surroundings for Anything {
    fn variable(&self, _: &str) -> Option<String> {
        Some(String::new())
    }

    fn exists(&self, _: &str) -> Option<bool> {
        Some(true)
    }

    fn load(&self, _: &str) -> Result<Option<(String, String)>, Unknown> {
        Ok(None)
    }
}

/// Surroundings of which nothing is known.
pub(super) struct Nowhere;

impl Surroundings for Nowhere {
    fn variable(&self, _: &str) -> Option<String> {
        None
    }

    fn exists(&self, _: &str) -> Option<bool> {
        None
    }

    fn load(&self, _: &str) -> Result<Option<(String, String)>, Unknown> {
        Ok(None)
    }
}

/// Tells whether a condition `[ ... ]` holds; `None` if it asks for more than the surroundings tell.
fn evaluate(words: &[Word<'_>], world: &dyn Surroundings) -> Option<bool> {
    let inner = match words {
        [first, inner @ .., last] if first.raw == "[" && last.raw == "]" => inner,
        [first, inner @ ..] if first.raw == "test" => inner,
        _ => return None,
    };
    let mut any = false;
    // `-a` binds closer than `-o`.
    for alternative in inner.split(|word| word.raw == "-o") {
        let mut all = true;
        for term in alternative.split(|word| word.raw == "-a") {
            let (negated, term) = match term {
                [not, term @ ..] if not.raw == "!" => (true, term),
                _ => (false, term),
            };
            let value = |word: &Word<'_>| expand(&word.value, world);
            let holds = match term {
                [operand] => !value(operand)?.is_empty(),
                [operator, operand] if operator.raw == "-n" => !value(operand)?.is_empty(),
                [operator, operand] if operator.raw == "-z" => value(operand)?.is_empty(),
                [operator, operand] if matches!(operator.raw, "-f" | "-e") => {
                    world.exists(beside(&operand.value)?)?
                }
                [left, operator, right] if matches!(operator.raw, "=" | "==") => {
                    value(left)? == value(right)?
                }
                [left, operator, right] if operator.raw == "!=" => value(left)? != value(right)?,
                _ => return None,
            };
            all &= holds != negated;
        }
        any |= all;
    }
    Some(any)
}

/// Puts in the values of variables; `None` if one is not known.
fn expand(text: &str, world: &dyn Surroundings) -> Option<String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        out.push_str(before);
        let (name, after) = match after.strip_prefix('{') {
            Some(braced) => braced.split_once('}')?,
            None => after.split_at(
                after.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(after.len()),
            ),
        };
        if !VARIABLES.contains(&name) {
            return None;
        }
        out.push_str(&world.variable(name)?);
        if out.len() > MAX_VALUE {
            return None;
        }
        rest = after;
    }
    out.push_str(rest);
    Some(out)
}

/// A line that is pointed at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    path: String,
    line: u32,
    text: String,
}

impl Place {
    pub(super) fn new(path: &str, line: u32, text: &str) -> Self {
        let text = text.trim().chars().take(MAX_SHOWN).collect();
        Self { path: path.to_owned(), line, text }
    }

    pub(super) fn evidence(&self) -> Evidence {
        Evidence { path: self.path.clone(), line: Some(self.line), text: Some(self.text.clone()) }
    }
}

/// What an entry starts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Image {
    /// No Linux kernel.
    #[default]
    None,
    /// The image at this path, as [`image_path`] has it.
    Path(String),
    /// That depends on a condition that cannot be told.
    Unclear,
}

/// One entry or submenu.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) title: String,
    pub(super) id: Option<String>,
    pub(super) submenu: bool,
    /// Whether it is there: not if a condition that cannot be told decides.
    pub(super) certain: bool,
    pub(super) place: Place,
    pub(super) image: Image,
    pub(super) children: Vec<Child>,
    /// A submenu that sets the default entry anew.
    pub(super) redirects: bool,
}

/// What a menu lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Child {
    /// `Config::nodes[_]`.
    Node(usize),
    /// The entries of the boot loader specification, here, if it is certain that they are.
    Bls { certain: bool },
    /// Entries that are not known, or none.
    Open,
}

/// How the default entry is set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Default {
    /// The value; `None` if it could not be worked out.
    pub(super) value: Option<String>,
    /// The value as written.
    pub(super) raw: String,
    pub(super) place: Place,
}

/// What a `grub.cfg` says.
#[derive(Default)]
pub(super) struct Config {
    pub(super) nodes: Vec<Node>,
    /// The top level of the menu.
    pub(super) top: Vec<Child>,
    pub(super) default: Option<Default>,
    /// A later assignment under a condition that could not be told.
    pub(super) uncertain: Option<Place>,
    /// Something that may set any default entry, and whose end is not known.
    pub(super) open: Option<Unknown>,
    /// It loads another file, which is no `grub.cfg`.
    pub(super) leaves: bool,
    /// Some menu lists the entries of the boot loader specification.
    pub(super) uses_bls: bool,
    /// Deeper or longer than any real menu; the rest was not read.
    pub(super) too_much: bool,
}

/// An open block or condition.
enum Frame {
    Node(usize),
    /// A function, or what is not understood.
    Body,
    /// What never runs.
    Dead,
    If {
        taken: Option<bool>,
        now: Option<bool>,
    },
}

/// The block that a statement is in.
enum Block {
    Top,
    Entry(usize),
    Submenu(usize),
    Body,
}

fn and(a: Option<bool>, b: Option<bool>) -> Option<bool> {
    match (a, b) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    }
}

fn not(a: Option<bool>) -> Option<bool> {
    a.map(|a| !a)
}

impl Config {
    /// Reads what [`keep_grub_cfg`] left of a file.
    pub(super) fn parse(path: &str, text: &str, world: &dyn Surroundings) -> Self {
        let mut reader =
            Reader { config: Self::default(), world, assigned: BTreeMap::new(), loads: 0 };
        reader.file(path, text, Vec::new());
        reader.config
    }
}

/// A script that is being followed.
struct Reader<'a> {
    config: Config,
    world: &'a dyn Surroundings,
    /// Variables that the script itself has set; `None` if it cannot be told to what.
    assigned: BTreeMap<&'static str, Option<String>>,
    /// How many files were read from others.
    loads: usize,
}

impl Surroundings for Reader<'_> {
    fn variable(&self, name: &str) -> Option<String> {
        match self.assigned.get(name) {
            Some(value) => value.clone(),
            None => self.world.variable(name),
        }
    }

    fn exists(&self, name: &str) -> Option<bool> {
        self.world.exists(name)
    }

    fn load(&self, name: &str) -> Result<Option<(String, String)>, Unknown> {
        self.world.load(name)
    }
}

impl Reader<'_> {
    /// Follows a file, which runs as `stack` says.
    fn file(&mut self, path: &str, text: &str, mut stack: Vec<Frame>) {
        for (line, number) in text.lines().zip(1_u32..) {
            // What the brace that comes next opens.
            let mut pending = None;
            for item in items(line) {
                if stack.len() > MAX_DEPTH || self.config.nodes.len() > MAX_NODES {
                    self.config.too_much = true;
                }
                if self.config.too_much {
                    return;
                }
                match item {
                    Item::Open => stack.push(pending.take().unwrap_or(Frame::Body)),
                    Item::Close => {
                        // An unfinished condition ends with its block.
                        let block =
                            stack.iter().rposition(|frame| !matches!(frame, Frame::If { .. }));
                        if let Some(block) = block {
                            stack.truncate(block);
                        }
                    }
                    Item::Statement(words) => {
                        let place = || Place::new(path, number, line);
                        self.statement(&words, &place, &mut stack, &mut pending);
                    }
                }
            }
        }
    }

    fn statement(
        &mut self,
        words: &[Word<'_>],
        place: &dyn Fn() -> Place,
        stack: &mut Vec<Frame>,
        pending: &mut Option<Frame>,
    ) {
        let Some((command, arguments)) = words.split_first() else { return };
        match command.raw {
            "if" => {
                let now = evaluate(arguments, self);
                stack.push(Frame::If { taken: now, now });
                return;
            }
            "while" => {
                stack.push(Frame::If { taken: None, now: None });
                return;
            }
            "elif" | "else" => {
                let holds = match command.raw {
                    "elif" => evaluate(arguments, self),
                    _ => Some(true),
                };
                if let Some(Frame::If { taken, now }) = stack.last_mut() {
                    *now = and(not(*taken), holds);
                    *taken = not(and(not(*taken), not(holds)));
                }
                return;
            }
            "fi" | "done" => {
                if matches!(stack.last(), Some(Frame::If { .. })) {
                    stack.pop();
                }
                return;
            }
            _ => {}
        }
        // What never runs can open a block all the same.
        let Some((block, runs)) = self.block(stack).filter(|(_, runs)| *runs != Some(false)) else {
            *pending = Some(Frame::Dead);
            return;
        };
        let certain = runs == Some(true);
        match command.raw {
            "function" => *pending = Some(Frame::Body),
            "menuentry" | "submenu" => {
                let heading = Heading::of(arguments);
                let node = Node {
                    title: heading.title.map(|word| word.value.clone()).unwrap_or_default(),
                    id: heading.id(),
                    submenu: command.raw == "submenu",
                    certain,
                    place: place(),
                    image: Image::None,
                    children: Vec::new(),
                    redirects: false,
                };
                let index = self.config.nodes.len();
                self.config.nodes.push(node);
                self.list(&block, Child::Node(index), place);
                *pending = Some(Frame::Node(index));
            }
            "blscfg" => {
                if !arguments.is_empty() {
                    self.list(&block, Child::Open, place);
                } else if !self.config.uses_bls {
                    self.list(&block, Child::Bls { certain }, place);
                }
                self.config.uses_bls = true;
            }
            raw if loads_image(raw) || loads_other(raw) => {
                self.image(raw, arguments, &block, certain);
            }
            raw => match (Load::of(raw, arguments), Assignment::of(words)) {
                (Some(load), _) => self.load_file(&load, &block, certain, place),
                (None, Some(assignment)) => self.assign(&assignment, &block, certain, place),
                (None, None) => {}
            },
        }
    }

    /// The block a statement is in and whether it runs there, or `None` if it never does.
    fn block(&self, stack: &[Frame]) -> Option<(Block, Option<bool>)> {
        let mut runs = Some(true);
        for frame in stack.iter().rev() {
            let block = match frame {
                Frame::If { now, .. } => {
                    runs = and(runs, *now);
                    continue;
                }
                Frame::Dead => return None,
                Frame::Body => Block::Body,
                Frame::Node(index) if self.config.nodes.get(*index)?.submenu => {
                    Block::Submenu(*index)
                }
                Frame::Node(index) => Block::Entry(*index),
            };
            return Some((block, runs));
        }
        Some((Block::Top, runs))
    }

    /// Something keeps the default entry from being told, whatever comes later. The first such thing is told.
    fn open(&mut self, why: impl Into<String>, place: &dyn Fn() -> Place) {
        if self.config.open.is_none() {
            self.config.open = Some(Unknown::new(why).at(place().evidence()));
        }
    }

    /// Puts something into the menu of a block.
    fn list(&mut self, block: &Block, child: Child, place: &dyn Fn() -> Place) {
        match block {
            Block::Top => self.config.top.push(child),
            Block::Submenu(index) => {
                if let Some(node) = self.config.nodes.get_mut(*index) {
                    node.children.push(child);
                }
            }
            // An entry inside an entry is never shown.
            Block::Entry(_) => {}
            Block::Body => self.open("a function of grub.cfg adds entries to its menu", place),
        }
    }

    fn image(&mut self, command: &str, arguments: &[Word<'_>], block: &Block, certain: bool) {
        let Block::Entry(index) = block else { return };
        let Some(node) = self.config.nodes.get_mut(*index) else { return };
        let new = match image(arguments).filter(|_| loads_image(command)) {
            // Later modules are the initial RAM disk and the like, also beside Linux itself.
            Some(_) if is_module(command) && node.image != Image::None => return,
            Some(path) => Image::Path(path),
            None if is_module(command) => return,
            None => Image::None,
        };
        // The last one loaded is the one that starts.
        node.image = match &node.image {
            _ if certain => new,
            Image::None => new,
            old if *old == new => new,
            _ => Image::Unclear,
        };
    }

    fn load_file(&mut self, load: &Load, block: &Block, certain: bool, place: &dyn Fn() -> Place) {
        if let Block::Entry(index) | Block::Submenu(index) = block {
            // It runs only once the entry is chosen.
            match self.config.nodes.get_mut(*index) {
                _ if *load == Load::Nothing => {}
                Some(node) if node.submenu => node.children.push(Child::Open),
                Some(node) => node.image = Image::Unclear,
                None => {}
            }
            return;
        }
        match load {
            Load::Nothing => {}
            Load::Computed => {
                self.open("grub.cfg works out commands when it is read", place);
            }
            Load::Adding(_) => self.list(block, Child::Open, place),
            Load::File(name) => {
                self.config.leaves |= name != "grub.cfg";
                self.open(format!("grub.cfg loads another file, `{}`", super::shown(name)), place);
            }
            Load::Beside(name) if matches!(block, Block::Body) => {
                self.open(format!("a function of grub.cfg loads `{name}`"), place);
            }
            Load::Beside(name) => {
                self.config.leaves |= certain;
                self.loads += 1;
                if self.loads > MAX_LOADS {
                    self.config.too_much = true;
                    return;
                }
                match self.world.load(name) {
                    Ok(None) => {}
                    Ok(Some((path, text))) => {
                        let now = certain.then_some(true);
                        self.file(&path, &text, vec![Frame::If { taken: now, now }]);
                    }
                    Err(unknown) => {
                        self.config.open.get_or_insert(unknown);
                    }
                }
            }
        }
    }

    fn assign(
        &mut self,
        assignment: &Assignment<'_, '_>,
        block: &Block,
        certain: bool,
        place: &dyn Fn() -> Place,
    ) {
        let name = assignment.name;
        match block {
            Block::Top if name == "default" => self.set_default(assignment, place(), certain),
            Block::Top => {
                let value = match assignment.value {
                    Some(value) => expand(value, self),
                    None => Some(String::new()),
                };
                // Under a condition that cannot be told it may be either.
                let value =
                    value.filter(|new| certain || self.variable(name).as_ref() == Some(new));
                self.assigned.insert(name, value);
            }
            Block::Body if name == "default" => {
                self.open("a function of grub.cfg sets its default entry", place);
            }
            Block::Submenu(index) if name == "default" => {
                if let Some(node) = self.config.nodes.get_mut(*index) {
                    node.redirects = true;
                }
            }
            // Inside an entry nothing is run before the choice is made, and functions save it.
            Block::Submenu(_) | Block::Entry(_) | Block::Body => {}
        }
    }

    fn set_default(&mut self, assignment: &Assignment<'_, '_>, place: Place, certain: bool) {
        let raw = assignment.value.unwrap_or_default().to_owned();
        let value = expand(&raw, self);
        let default = &mut self.config.default;
        if certain {
            self.config.uncertain = None;
            *default = Some(Default { value, raw, place });
        } else if default.as_ref().is_none_or(|default| default.value != value) {
            self.config.uncertain = Some(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// An environment block, and no files.
    struct World<F>(F);

    impl<F: Fn(&str) -> Option<String>> Surroundings for World<F> {
        fn variable(&self, name: &str) -> Option<String> {
            (self.0)(name)
        }

        fn exists(&self, _: &str) -> Option<bool> {
            Some(false)
        }

        fn load(&self, _: &str) -> Result<Option<(String, String)>, Unknown> {
            Ok(None)
        }
    }

    fn kept(line: &str) -> String {
        let mut out = Vec::new();
        keep_grub_cfg(line.as_bytes(), &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_filter_drops_what_is_not_used() {
        let cases = [
            (
                "\tlinux\t/boot/vmlinuz-6.8.0-142-generic root=UUID=x ro token=s",
                "linux /vmlinuz-6.8.0-142-generic",
            ),
            ("linux (http,10.0.0.1)/vmlinuz-6.1.0 ip=10.0.0.2", "linux (net)/vmlinuz-6.1.0"),
            ("linux http://alice.example.com/a/vmlinuz", "linux (net)/a/vmlinuz"),
            ("linux (lvm/alicepc--vg-root)/boot/vmlinuz-6.1.0", "linux /vmlinuz-6.1.0"),
            ("linuxefi (loop)/live/vmlinuz", "linuxefi (loop)/live/vmlinuz"),
            (
                "if [ -f  ${config_directory}/custom.cfg ]; then",
                "if [ -f ${config_directory}/custom.cfg ]; then",
            ),
            ("  source ${config_directory}/custom.cfg", "source custom.cfg"),
            ("configfile (hd0,gpt2)/alicepc/grub.cfg", "configfile '/grub.cfg'"),
            ("set alicepc=1; set saved_entry=3", "set saved_entry=3"),
            ("set superusers=\"root\"", ""),
            ("password_pbkdf2 root grub.pbkdf2.sha512.10000.AB", ""),
            ("  search --no-floppy --fs-uuid --set=root 3e01b6a4-6d1c-4f5c-9b8e-0a3a4b5c6d7e", ""),
            (
                "menuentry 'A' --class x --users \"bob\" --unrestricted --id 'i' {",
                "menuentry 'A' --id 'i' {",
            ),
            ("if [ x$feature_default_font_path = xy ] ; then", "if :; then"),
            ("if [ \"${next_entry}\" ] ; then", "if [ \"${next_entry}\" ]; then"),
            ("   set default=\"0\"", "set default=\"0\""),
            (
                "menuentry 'B' --id b-3e01b6a4-6d1c-4f5c-9b8e-0a3a4b5c6d7e { linux /vmlinuz-6.1.0 quiet; initrd /i }",
                "menuentry 'B' --id b-00000000-0000-0000-0000-000000000000 { linux /vmlinuz-6.1.0 }",
            ),
        ];
        for (line, expected) in cases {
            assert_eq!(kept(line), expected, "{line}");
        }
    }

    #[test]
    fn conditions_are_told_from_the_environment_block() {
        let text = "if [ -n \"${boot_counter}\" -a \"${boot_success}\" = \"0\" ]; then\n\
                    if [ \"${boot_counter}\" = \"0\" -o \"${boot_counter}\" = \"-1\" ]; then\n\
                    set default=1\nfi\nelse\nset default=2\nfi\n";
        let default = |counter: &'static str| {
            let world = World(move |name: &str| {
                Some(if name == "boot_counter" { counter } else { "0" }.to_owned())
            });
            Config::parse("", text, &world).default.and_then(|default| default.value)
        };
        assert_eq!(default("0").as_deref(), Some("1"));
        assert_eq!(default("3").as_deref(), None);
        assert_eq!(default("").as_deref(), Some("2"));
    }

    #[test]
    fn hostile_menus_end_the_reading() {
        let text = "submenu 'x' {\n".repeat(10_000);
        assert!(Config::parse("", &text, &Nowhere).too_much);
        let text = "menuentry 'x' { }\n".repeat(10_000);
        assert!(Config::parse("", &text, &Nowhere).too_much);
        // Short as written, longer than a line may be as kept.
        assert_eq!(kept(&"if;".repeat(5_000)), "");
        let text = format!("set default=\"{}\"\n", "${saved_entry}".repeat(1_000));
        let config = Config::parse("", &text, &World(|_: &str| Some("x".repeat(1_000))));
        assert_eq!(config.default.and_then(|default| default.value), None);
    }

    proptest! {
        /// A snapshot holds filtered lines, and filters them again.
        #[test]
        fn filtering_twice_changes_nothing(
            line in "((if|elif|then|source|configfile|eval|unset|custom\\.cfg|\\$prefix/|-f|alice|\\(http,a\\)|else|fi|menuentry|submenu|set|default=|linux|--id|\\[|\\]|\\$\\{next_entry\\}|-n|=|a|0123456789abcdef0123456789abcdef|[ '\"{};\\\\$()#<-])[ ]?){0,16}"
        ) {
            let once = kept(&line);
            prop_assert_eq!(kept(&once), once);
        }

        #[test]
        fn nothing_panics(text in ".*\n.*") {
            let _ = Config::parse("", &text, &Anything);
            let _ = kept(&text);
        }
    }
}
