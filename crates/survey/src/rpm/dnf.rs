//! The repositories that a machine's own dnf configuration names.
//!
//! `/etc/yum.repos.d/*.repo` (and where `reposdir` of `/etc/dnf/dnf.conf` points instead) with the variables of dnf.
//! Format: <https://dnf.readthedocs.io/en/latest/conf_ref.html>.

use std::collections::{BTreeMap, HashMap};

use fastpath_artifact::http::{Proxies, shown};
use fastpath_host::{FileKind, OsRelease, ReadError, Tree, Want};

const CONFIGURATION: &str = "/etc/dnf/dnf.conf";
/// dnf's defaults; dnf 5 reads the second and third as well.
const REPOSITORY_FOLDERS: [&str; 3] =
    ["/etc/yum.repos.d", "/etc/distro.repos.d", "/usr/share/dnf5/repos.d"];
/// Later ones win.
const VARIABLE_FOLDERS: [&str; 3] = ["/usr/share/dnf5/vars.d", "/etc/yum/vars", "/etc/dnf/vars"];

const MAX_FILE: usize = 1 << 20;
const MAX_FILES: usize = 1000;

/// What a machine's dnf configuration says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Configuration {
    /// Enabled repositories with an address or a list of them, in the order of the files' names.
    pub repositories: Vec<Repository>,
    /// The proxy for all of them, if one is set.
    pub proxies: Option<Proxies>,
    /// What was left out and why, one line each.
    pub notes: Vec<String>,
}

/// One enabled repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repository {
    /// The name of its section, `baseos`.
    pub id: String,
    /// Its addresses, variables replaced. They stand for each other. May hold credentials.
    pub bases: Vec<String>,
    /// Where more of them are listed: dnf's `metalink` or `mirrorlist`.
    pub mirror_list: Option<String>,
    /// Whether dnf wants its index signed.
    pub index_signed: bool,
    /// Whether dnf wants its packages signed.
    pub packages_signed: bool,
    /// Where its keys are: addresses, most often `file:///etc/pki/rpm-gpg/...`, seen from the root that was read. They say
    /// where a key may be found; which one is right is pinned by fingerprint.
    pub keys: Vec<String>,
    /// Its own proxy: `Some(None)` for none at all, `None` to go by [`Configuration::proxies`].
    pub proxy: Option<Option<String>>,
    /// The file it stands in.
    pub path: String,
    /// The line its section begins, 1-based.
    pub line: usize,
}

/// Reads the configuration in `tree` as dnf would for `arch` (`x86_64`).
///
/// `$releasever` is `/etc/dnf/vars/releasever`, else what the distribution's `os-release` says: the whole `VERSION_ID`, in EL
/// and its rebuilds the number before the dot. dnf itself asks the rpm database, which is not read here.
pub fn read(tree: &dyn Tree, arch: &str) -> Configuration {
    let mut reader = Reader { tree, out: Configuration::default() };
    let main = reader.sections(CONFIGURATION);
    let os = OsRelease::read(tree);
    let option = |name: &str| {
        let main = main.iter().find(|section| section.id == "main")?;
        main.options.get(name).map(String::as_str).filter(|value| !value.is_empty())
    };
    let list = |name: &str, usual: &[&str]| match option(name) {
        Some(value) => words(value).map(str::to_owned).collect(),
        None => usual.iter().map(|&path| path.to_owned()).collect::<Vec<_>>(),
    };
    let variables = reader.variables(&list("varsdir", &VARIABLE_FOLDERS), arch, &os);
    let mut sections = Vec::new();
    for folder in list("reposdir", &REPOSITORY_FOLDERS) {
        for path in reader.files(&folder, ".repo") {
            sections.extend(reader.sections(&path));
        }
    }
    let main_option = |name: &str| option(name).map(str::to_owned);
    let proxy = main_option("proxy").filter(|proxy| proxy != "_none_");
    let credentials = (main_option("proxy_username"), main_option("proxy_password"));
    let defaults = (main_option("gpgcheck"), main_option("repo_gpgcheck"));
    reader.out.proxies = proxy.map(|proxy| Proxies {
        all: Some(with_credentials(&proxy, credentials.0.as_deref(), credentials.1.as_deref())),
        ..Proxies::default()
    });
    sections.extend(main.into_iter().filter(|section| section.id != "main"));
    for section in sections {
        reader.repository(section, &variables, &defaults);
    }
    reader.out
}

/// One section of an INI file.
#[derive(Debug, Default)]
struct Section {
    id: String,
    path: String,
    line: usize,
    options: BTreeMap<String, String>,
}

struct Reader<'a> {
    tree: &'a dyn Tree,
    out: Configuration,
}

impl Reader<'_> {
    fn note(&mut self, note: String) {
        self.out.notes.push(note);
    }

    fn text(&mut self, path: &str) -> Option<String> {
        match self.tree.read(path, &Want::whole(MAX_FILE)) {
            Ok(content) => Some(String::from_utf8_lossy(&content.bytes).into_owned()),
            Err(ReadError::Missing) => None,
            Err(error) => {
                self.note(format!("{path}: {error}"));
                None
            }
        }
    }

    /// Files in a folder by the end of their names, sorted.
    fn files(&mut self, folder: &str, end: &str) -> Vec<String> {
        let entries = match self.tree.list(folder) {
            Ok(entries) => entries,
            Err(ReadError::Missing) => return Vec::new(),
            Err(error) => {
                self.note(format!("{folder}: {error}"));
                return Vec::new();
            }
        };
        if entries.len() > MAX_FILES {
            self.note(format!("{folder}: only the first {MAX_FILES} names are looked at"));
        }
        entries
            .into_iter()
            .take(MAX_FILES)
            .filter(|entry| matches!(entry.kind, FileKind::File | FileKind::Link))
            .filter(|entry| entry.name.ends_with(end) && !entry.name.starts_with('.'))
            .map(|entry| format!("{}/{}", folder.trim_end_matches('/'), entry.name))
            .collect()
    }

    fn sections(&mut self, path: &str) -> Vec<Section> {
        let Some(text) = self.text(path) else { return Vec::new() };
        let mut sections: Vec<Section> = Vec::new();
        let mut open: Option<String> = None;
        for (at, raw) in text.lines().enumerate() {
            let line = raw.trim();
            if line.is_empty() || line.starts_with(['#', ';']) {
                continue;
            }
            // A line that begins with a blank goes on with the value before it.
            if raw.starts_with([' ', '\t']) {
                if let (Some(key), Some(section)) = (&open, sections.last_mut())
                    && let Some(value) = section.options.get_mut(key)
                {
                    value.push(' ');
                    value.push_str(line);
                }
                continue;
            }
            if let Some(id) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
                open = None;
                let (id, path) = (id.trim().to_owned(), path.to_owned());
                sections.push(Section { id, path, line: at + 1, ..Section::default() });
            } else if let (Some((key, value)), Some(section)) =
                (line.split_once('='), sections.last_mut())
            {
                let key = key.trim().to_ascii_lowercase();
                section.options.insert(key.clone(), value.trim().to_owned());
                open = Some(key);
            } else {
                self.out.notes.push(format!("{path}: line {}: neither section nor option", at + 1));
            }
        }
        sections
    }

    fn variables(
        &mut self,
        folders: &[String],
        arch: &str,
        os: &OsRelease,
    ) -> HashMap<String, String> {
        let version = os.version.as_str();
        let (major, minor) = version.split_once('.').unwrap_or((version, ""));
        // EL and its rebuilds by their names in os-release, a trait of the family and of no version. Oracle's is like Fedora only.
        let enterprise = os.is_of(&["rhel", "rocky", "almalinux", "ol", "centos"]);
        let base = match arch {
            "i386" | "i486" | "i586" | "i686" => "i386",
            other => other,
        };
        let mut variables: HashMap<String, String> = [
            ("arch", arch),
            ("basearch", base),
            ("releasever", if enterprise { major } else { version }),
            ("releasever_major", major),
            ("releasever_minor", minor),
        ]
        .into_iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
        for folder in folders {
            for path in self.files(folder, "") {
                let Some(text) = self.text(&path) else { continue };
                let name = path.rsplit('/').next().unwrap_or_default().to_owned();
                // The first line is the value.
                let value = text.lines().next().unwrap_or_default().trim().to_owned();
                variables.insert(name, value);
            }
        }
        variables
    }

    fn repository(
        &mut self,
        section: Section,
        variables: &HashMap<String, String>,
        (packages_signed, index_signed): &(Option<String>, Option<String>),
    ) {
        let Section { id, path, line, options } = section;
        let option =
            |name: &str| options.get(name).map(String::as_str).filter(|value| !value.is_empty());
        if !option("enabled").is_none_or(is_true) {
            return;
        }
        let mut notes = Vec::new();
        let mut note =
            |text: String| notes.push(format!("{path}: line {line}: repository `{id}`: {text}"));
        let mut bases = Vec::new();
        for raw in option("baseurl").into_iter().flat_map(words) {
            let base = match replace(raw, variables) {
                Ok(base) => base,
                Err(name) => {
                    note(format!(
                        "variable `{name}` has no value here; `{}` is not read",
                        shown(raw)
                    ));
                    continue;
                }
            };
            let known =
                ["http://", "https://", "file://"].iter().any(|scheme| base.starts_with(scheme));
            if known {
                bases.push(with_credentials(&base, option("username"), option("password")));
            } else {
                note(format!("`{}` is neither http, https nor file; it is not read", shown(&base)));
            }
        }
        let list = option("metalink").or_else(|| option("mirrorlist"));
        let mirror_list = list.and_then(|raw| match replace(raw, variables) {
            Ok(list) => Some(list),
            Err(name) => {
                note(format!("variable `{name}` has no value here; `{}` is not read", shown(raw)));
                None
            }
        });
        if option("sslclientcert").is_some() {
            note("it asks for a client certificate, which is not sent".to_owned());
        }
        let keys = option("gpgkey").into_iter().flat_map(words);
        let keys = keys.filter_map(|key| replace(key, variables).ok()).collect();
        let signed = |name, default: &Option<String>| {
            option(name).or(default.as_deref()).is_some_and(is_true)
        };
        let proxy = option("proxy").map(|proxy| {
            (proxy != "_none_").then(|| {
                with_credentials(proxy, option("proxy_username"), option("proxy_password"))
            })
        });
        let repository = Repository {
            index_signed: signed("repo_gpgcheck", index_signed),
            packages_signed: signed("gpgcheck", packages_signed),
            keys,
            proxy,
            bases,
            mirror_list,
            id: id.clone(),
            path: path.clone(),
            line,
        };
        self.out.notes.extend(notes);
        if !repository.bases.is_empty() || repository.mirror_list.is_some() {
            self.out.repositories.push(repository);
        }
    }
}

/// dnf separates by commas, blanks or both.
fn words(value: &str) -> impl Iterator<Item = &str> {
    value.split(|c: char| c == ',' || c.is_whitespace()).filter(|word| !word.is_empty())
}

fn is_true(value: &str) -> bool {
    ["1", "yes", "true", "on"].iter().any(|word| value.eq_ignore_ascii_case(word))
}

/// Puts a user's name and password into an address that has none.
fn with_credentials(url: &str, user: Option<&str>, password: Option<&str>) -> String {
    let (Some(user), Some((scheme, rest))) = (user, url.split_once("://")) else {
        return url.to_owned();
    };
    let authority = &rest[..rest.find('/').unwrap_or(rest.len())];
    if authority.contains('@') || scheme == "file" {
        return url.to_owned();
    }
    let password = password.unwrap_or_default();
    format!("{scheme}://{}:{}@{rest}", escape(user), escape(password))
}

fn escape(text: &str) -> String {
    use std::fmt::Write;
    text.bytes().fold(String::new(), |mut out, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
        out
    })
}

/// Replaces `$name`, `${name}`, `${name:-otherwise}` and `${name:+if set}`; gives the name of a variable without a value.
/// What replaces is not looked at again.
fn replace(text: &str, variables: &HashMap<String, String>) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let (inner, braced) = match rest.strip_prefix('{') {
            Some(inner) => (inner, true),
            None => (rest, false),
        };
        let end =
            inner.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(inner.len());
        let (name, behind) = inner.split_at(end);
        if name.is_empty() {
            out.push('$');
            continue;
        }
        let value = variables.get(name).filter(|value| !value.is_empty());
        if !braced {
            out.push_str(value.ok_or_else(|| name.to_owned())?);
            rest = behind;
            continue;
        }
        let Some((word, behind)) = behind.split_once('}') else {
            return Err(name.to_owned());
        };
        match (word.get(..2), value) {
            (Some(":-"), None) | (Some(":+"), Some(_)) => out.push_str(&word[2..]),
            (Some(":+"), None) => {}
            (_, Some(value)) => out.push_str(value),
            (_, None) => return Err(name.to_owned()),
        }
        rest = behind;
    }
    out.push_str(rest);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_replaced() {
        let variables = [("releasever", "9"), ("empty", "")];
        let variables: HashMap<String, String> =
            variables.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        for (text, expected) in [
            ("http://h/$releasever/os", Ok("http://h/9/os")),
            ("a${releasever}b", Ok("a9b")),
            ("$releasever$releasever", Ok("99")),
            ("${none:-x/y}", Ok("x/y")),
            ("${empty:-x}", Ok("x")),
            ("${releasever:+x}${none:+y}", Ok("x")),
            ("$none/x", Err("none")),
            ("${none}", Err("none")),
            ("${releasever", Err("releasever")),
            ("a$/b$", Ok("a$/b$")),
        ] {
            let found = replace(text, &variables);
            assert_eq!(found.as_deref().map_err(String::as_str), expected, "{text}");
        }
    }

    #[test]
    fn credentials_go_into_the_address() {
        assert_eq!(with_credentials("http://h/a", Some("u"), Some("p@:")), "http://u:p%40%3A@h/a");
        assert_eq!(with_credentials("http://v@h/a", Some("u"), None), "http://v@h/a");
        assert_eq!(with_credentials("file:///a", Some("u"), None), "file:///a");
    }
}
