//! The little of GRUB's script language that `grub.cfg` needs: menus, conditions and the default entry.
//!
//! Grammar: <https://www.gnu.org/software/grub/manual/grub/html_node/Shell_002dlike-scripting.html>.

use std::fmt::Write as _;

use crate::mask::mask_ids;

/// Variables of GRUB's environment block that conditions and the default entry may speak of.
pub(super) const VARIABLES: [&str; 4] =
    ["next_entry", "saved_entry", "boot_counter", "boot_success"];

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

/// The words of a line that is one statement, as in a file of shell assignments.
pub(super) fn words(line: &str) -> Vec<Word<'_>> {
    items(line)
        .into_iter()
        .find_map(|item| match item {
            Item::Statement(words) => Some(words),
            Item::Open | Item::Close => None,
        })
        .unwrap_or_default()
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
        out.extend_from_slice(mask_ids(&kept).as_bytes());
    }
}

/// What is used of a statement.
fn kept_statement(words: &[Word<'_>]) -> Option<String> {
    let (command, arguments) = words.split_first()?;
    match command.raw {
        "then" | "else" | "fi" | "do" | "done" | "blscfg" => Some(command.raw.to_owned()),
        "if" | "elif" => {
            let told = evaluate(arguments, &|_| Some(String::new())).is_some();
            let mut text = command.raw.to_owned();
            if told {
                for word in arguments {
                    let _ = write!(text, " {}", word.raw);
                }
            } else {
                text.push_str(" :");
            }
            Some(text)
        }
        "while" | "until" | "for" => Some("while :".to_owned()),
        "function" => Some("function f".to_owned()),
        "menuentry" | "submenu" => {
            let heading = Heading::of(arguments);
            let mut text = command.raw.to_owned();
            for word in heading.title.into_iter().chain(heading.id) {
                let _ = write!(text, " {}", word.raw);
            }
            Some(text)
        }
        _ if is_image_command(command.raw) => Some(match image(arguments) {
            Some(path) => format!("{} {path}", command.raw),
            None => command.raw.to_owned(),
        }),
        _ => default_word(words).map(|word| match command.raw {
            "set" => format!("set {}", word.raw),
            _ => word.raw.to_owned(),
        }),
    }
}

/// Commands that name the image of a kernel. Xen boots Linux as its first module.
fn is_image_command(command: &str) -> bool {
    matches!(command, "linux" | "linux16" | "linuxefi" | "module" | "module2")
}

/// The word `default=...` of an assignment, with or without `set`.
fn default_word<'w, 'a>(words: &'w [Word<'a>]) -> Option<&'w Word<'a>> {
    let word = words.first()?;
    let word = if word.raw == "set" { words.get(1)? } else { word };
    word.raw.starts_with("default=").then_some(word)
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

/// The path of an image without the disk or server in front of it.
fn image(arguments: &[Word<'_>]) -> Option<String> {
    let word = arguments.iter().find(|word| !word.raw.starts_with("--"))?;
    let path = match word.value.strip_prefix('(') {
        Some(rest) => rest.split_once(')')?.1,
        None => &word.value,
    };
    let plain = |c: &char| c.is_ascii_alphanumeric() || "/._+~@:,^%$=-".contains(*c);
    let path: String = path.chars().filter(plain).collect();
    (!path.is_empty() && !path.starts_with('-')).then_some(path)
}

/// Tells whether a condition `[ ... ]` holds; `None` if it asks for more than the environment block has.
fn evaluate(words: &[Word<'_>], variable: &dyn Fn(&str) -> Option<String>) -> Option<bool> {
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
            let value = |word: &Word<'_>| expand(&word.value, variable);
            let holds = match term {
                [operand] => !value(operand)?.is_empty(),
                [operator, operand] if operator.raw == "-n" => !value(operand)?.is_empty(),
                [operator, operand] if operator.raw == "-z" => value(operand)?.is_empty(),
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
fn expand(text: &str, variable: &dyn Fn(&str) -> Option<String>) -> Option<String> {
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
        out.push_str(&variable(name)?);
        if out.len() > MAX_VALUE {
            return None;
        }
        rest = after;
    }
    out.push_str(rest);
    Some(out)
}

/// A line of `grub.cfg` that is pointed at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) line: u32,
    pub(super) text: String,
}

impl Place {
    pub(super) fn new(line: u32, text: &str) -> Self {
        Self { line, text: text.trim().chars().take(MAX_SHOWN).collect() }
    }
}

/// One entry or submenu.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) title: String,
    pub(super) id: Option<String>,
    pub(super) submenu: bool,
    pub(super) place: Place,
    /// The path of the kernel's image.
    pub(super) image: Option<String>,
    pub(super) children: Vec<Child>,
}

/// What a menu lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Child {
    /// `Config::nodes[_]`.
    Node(usize),
    /// The entries of the boot loader specification, here.
    Bls,
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
#[derive(Debug, Default)]
pub(super) struct Config {
    pub(super) nodes: Vec<Node>,
    /// The top level of the menu.
    pub(super) top: Vec<Child>,
    pub(super) default: Option<Default>,
    /// A later assignment under a condition that could not be told.
    pub(super) uncertain: Option<Place>,
    /// Some menu lists the entries of the boot loader specification.
    pub(super) uses_bls: bool,
    /// Deeper or longer than any real menu; the rest was not read.
    pub(super) too_much: bool,
}

/// An open block or condition.
enum Frame {
    Node(usize),
    Body,
    If { taken: Option<bool>, now: Option<bool> },
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
    /// Reads what [`keep_grub_cfg`] left of a file. `variable` gives the environment block.
    pub(super) fn parse(text: &str, variable: &dyn Fn(&str) -> Option<String>) -> Self {
        let mut config = Self::default();
        let mut stack: Vec<Frame> = Vec::new();
        for (line, number) in text.lines().zip(1_u32..) {
            // The entry or submenu whose brace comes next.
            let mut pending = None;
            for item in items(line) {
                if stack.len() > MAX_DEPTH || config.nodes.len() > MAX_NODES {
                    config.too_much = true;
                    return config;
                }
                match item {
                    Item::Open => stack.push(pending.take().map_or(Frame::Body, Frame::Node)),
                    Item::Close => {
                        // An unfinished condition ends with its block.
                        let block =
                            stack.iter().rposition(|frame| !matches!(frame, Frame::If { .. }));
                        if let Some(block) = block {
                            stack.truncate(block);
                        }
                    }
                    Item::Statement(words) => {
                        let place = || Place::new(number, line);
                        config.statement(&words, &place, &mut stack, &mut pending, variable);
                    }
                }
            }
        }
        config
    }

    fn statement(
        &mut self,
        words: &[Word<'_>],
        place: &dyn Fn() -> Place,
        stack: &mut Vec<Frame>,
        pending: &mut Option<usize>,
        variable: &dyn Fn(&str) -> Option<String>,
    ) {
        let Some((command, arguments)) = words.split_first() else { return };
        match command.raw {
            "if" => {
                let now = evaluate(arguments, variable);
                stack.push(Frame::If { taken: now, now });
            }
            "while" => stack.push(Frame::If { taken: None, now: None }),
            "elif" | "else" => {
                let holds = match command.raw {
                    "elif" => evaluate(arguments, variable),
                    _ => Some(true),
                };
                if let Some(Frame::If { taken, now }) = stack.last_mut() {
                    *now = and(not(*taken), holds);
                    *taken = not(and(not(*taken), not(holds)));
                }
            }
            "fi" | "done" => {
                if matches!(stack.last(), Some(Frame::If { .. })) {
                    stack.pop();
                }
            }
            "menuentry" | "submenu" => {
                let heading = Heading::of(arguments);
                let node = Node {
                    title: heading.title.map(|word| word.value.clone()).unwrap_or_default(),
                    id: heading.id(),
                    submenu: command.raw == "submenu",
                    place: place(),
                    image: None,
                    children: Vec::new(),
                };
                let index = self.nodes.len();
                if let Some(menu) = self.menu(stack) {
                    menu.push(Child::Node(index));
                }
                self.nodes.push(node);
                *pending = Some(index);
            }
            "blscfg" => {
                let listed = self.uses_bls;
                if let Some(menu) = self.menu(stack).filter(|_| !listed) {
                    menu.push(Child::Bls);
                    self.uses_bls = true;
                }
            }
            raw if is_image_command(raw) => {
                let inside = stack.iter().rev().find_map(|frame| match frame {
                    Frame::Node(index) => Some(*index),
                    Frame::Body | Frame::If { .. } => None,
                });
                let node = inside.and_then(|index| self.nodes.get_mut(index));
                if let Some(node) = node.filter(|node| node.image.is_none()) {
                    node.image = image(arguments);
                }
            }
            _ => {
                // Inside an entry or a function it is not run before the choice is made.
                let top = stack.iter().try_fold(Some(true), |all, frame| match frame {
                    Frame::If { now, .. } => Some(and(all, *now)),
                    Frame::Node(_) | Frame::Body => None,
                });
                if let (Some(word), Some(runs)) = (default_word(words), top) {
                    self.set_default(word, place(), runs, variable);
                }
            }
        }
    }

    /// The menu that a new entry joins: none inside a function.
    fn menu(&mut self, stack: &[Frame]) -> Option<&mut Vec<Child>> {
        let block = stack.iter().rev().find(|frame| !matches!(frame, Frame::If { .. }));
        match block {
            None => Some(&mut self.top),
            Some(Frame::Node(index)) => {
                let node = self.nodes.get_mut(*index)?;
                node.submenu.then_some(&mut node.children)
            }
            Some(_) => None,
        }
    }

    fn set_default(
        &mut self,
        word: &Word<'_>,
        place: Place,
        runs: Option<bool>,
        variable: &dyn Fn(&str) -> Option<String>,
    ) {
        let raw = word.value.strip_prefix("default=").unwrap_or_default().to_owned();
        let value = expand(&raw, variable);
        match runs {
            Some(false) => {}
            Some(true) => {
                self.uncertain = None;
                self.default = Some(Default { value, raw, place });
            }
            None => {
                let same = self.default.as_ref().is_some_and(|default| default.value == value);
                if !same {
                    self.uncertain = Some(place);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

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
                "linux /boot/vmlinuz-6.8.0-142-generic",
            ),
            ("linux (http,10.0.0.1)/vmlinuz-6.1.0 ip=10.0.0.2", "linux /vmlinuz-6.1.0"),
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
            let variable = move |name: &str| {
                Some(if name == "boot_counter" { counter } else { "0" }.to_owned())
            };
            Config::parse(text, &variable).default.and_then(|default| default.value)
        };
        assert_eq!(default("0").as_deref(), Some("1"));
        assert_eq!(default("3").as_deref(), None);
        assert_eq!(default("").as_deref(), Some("2"));
    }

    #[test]
    fn hostile_menus_end_the_reading() {
        let text = "submenu 'x' {\n".repeat(10_000);
        assert!(Config::parse(&text, &|_| None).too_much);
        let text = "menuentry 'x' { }\n".repeat(10_000);
        assert!(Config::parse(&text, &|_| None).too_much);
        // Short as written, longer than a line may be as kept.
        assert_eq!(kept(&"if;".repeat(5_000)), "");
        let text = format!("set default=\"{}\"\n", "${saved_entry}".repeat(1_000));
        let config = Config::parse(&text, &|_| Some("x".repeat(1_000)));
        assert_eq!(config.default.and_then(|default| default.value), None);
    }

    proptest! {
        /// A snapshot holds filtered lines, and filters them again.
        #[test]
        fn filtering_twice_changes_nothing(
            line in "((if|elif|then|else|fi|menuentry|submenu|set|default=|linux|--id|\\[|\\]|\\$\\{next_entry\\}|-n|=|a|0123456789abcdef0123456789abcdef|[ '\"{};\\\\$()#<-])[ ]?){0,16}"
        ) {
            let once = kept(&line);
            prop_assert_eq!(kept(&once), once);
        }

        #[test]
        fn nothing_panics(text in ".*\n.*") {
            let _ = Config::parse(&text, &|_| Some(String::new()));
            let _ = kept(&text);
        }
    }
}
