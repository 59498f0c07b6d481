//! What the kernel's P2PDMA code lets through a host bridge, by kernel release.

use std::cmp::Ordering;
use std::sync::OnceLock;

use serde::Deserialize;

use crate::advisory::{Condition, Origin};
use crate::knowledge::Knowledge;
use crate::release::Release;
use crate::version::compare;

/// A host bridge, or several, that the kernel's list names.
///
/// The kernel knows a host bridge by the first device on its root bus, not by a bridge function of its own.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostBridge {
    /// What it is, in words.
    pub name: String,
    /// Vendor id.
    pub vendor: Id,
    /// Device ids; empty means any.
    #[serde(default)]
    pub devices: Vec<Id>,
    /// It forwards only between its own root ports, not from and to another host bridge.
    #[serde(default)]
    pub same_host_bridge: bool,
    /// The first release that lists it.
    pub since: String,
    /// The newest release line that was read without it.
    pub absent: Option<String>,
    /// The first release that no longer lists it.
    pub until: Option<String>,
    /// When the source was read, `YYYY-MM-DD`.
    pub date: String,
    /// Where that is known from.
    pub source: Origin,
}

/// A 16-bit id, written as four hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Id(pub u16);

impl TryFrom<String> for Id {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let digits = text.len() == 4 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = u16::from_str_radix(&text, 16).ok().filter(|_| digits);
        number.map(Self).ok_or_else(|| format!("id `{text}`: expected four hexadecimal digits"))
    }
}

/// Something the P2PDMA code does since some release.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct P2pdmaRule {
    /// What it does.
    pub rule: Rule,
    /// One line.
    pub summary: String,
    /// The first release that does.
    pub since: String,
    /// The newest release line that was read without it.
    pub absent: Option<String>,
    /// When the source was read, `YYYY-MM-DD`.
    pub date: String,
    /// Where that is known from.
    pub source: Origin,
}

/// What the P2PDMA code does since some release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// Listed host bridges may forward at all.
    HostBridge,
    /// They may forward what ACS redirects as well, and no IOMMU is in the way.
    BehindAcs,
    /// Every host bridge of a Zen processor may forward.
    AmdZen,
    /// A root port that is the first device of its bus stands for the host bridge.
    RootPortFirst,
}

/// Kernels whose P2PDMA code is that of another release than their own.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct P2pdmaBackport {
    /// That release.
    pub level: String,
    /// The kernels: any condition may match.
    #[serde(rename = "match")]
    pub conditions: Vec<Condition>,
    /// When the source was read, `YYYY-MM-DD`.
    pub date: String,
    /// Where that is known from.
    pub source: Origin,
}

/// Whether something is in a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// It is.
    Yes,
    /// It is not.
    No,
    /// Nobody has confirmed either.
    Unconfirmed,
}

/// Everything that is known about host bridges.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HostBridges {
    /// The list.
    pub host_bridge: Vec<HostBridge>,
    /// What the code does.
    pub p2pdma_rule: Vec<P2pdmaRule>,
    /// Kernels with the code of another release.
    pub p2pdma_backport: Vec<P2pdmaBackport>,
}

/// The embedded data, parsed when it is first asked for.
pub fn host_bridges() -> &'static HostBridges {
    static DATA: OnceLock<HostBridges> = OnceLock::new();
    DATA.get_or_init(|| {
        // A test parses the embedded file, so the default is never taken.
        toml::from_str(include_str!("../data/host_bridges.toml")).unwrap_or_default()
    })
}

/// How far a kernel's P2PDMA code is: which upstream release it is, and whether it can be more.
///
/// An upstream release is exactly what it is, and so is a backport that was read. Any other kernel was built by somebody who may
/// have taken entries of later releases over, as stable updates themselves do (7.1.3 took ids of 7.2): adding an id is a change
/// of one line, and nothing on the host shows the list. So "not yet in that release" is only a no for the former.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct P2pdmaLevel {
    release: String,
    exact: bool,
}

impl P2pdmaLevel {
    /// Whether something that came with `since` is in this code. `absent` is the newest release line read without it, `until`
    /// the first release without it again.
    pub fn has(&self, since: &str, absent: Option<&str>, until: Option<&str>) -> Known {
        let reached = |bound: &str| compare(&self.release, bound) != Ordering::Less;
        let absent = absent.is_none_or(|line| !reached(line) || self.is_of_line(line));
        if until.is_some_and(reached) {
            Known::No
        } else if reached(since) {
            Known::Yes
        } else if absent && self.exact {
            Known::No
        } else {
            Known::Unconfirmed
        }
    }

    /// Whether the release is of that line: `5.10.262` is of `5.10`.
    fn is_of_line(&self, line: &str) -> bool {
        self.release.strip_prefix(line).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    }
}

impl HostBridge {
    /// Whether the entry names this device.
    pub fn names(&self, vendor: u16, device: u16) -> bool {
        self.vendor.0 == vendor && (self.devices.is_empty() || self.devices.contains(&Id(device)))
    }

    /// Whether code of this level has the entry.
    pub fn is_in(&self, level: &P2pdmaLevel) -> Known {
        level.has(&self.since, self.absent.as_deref(), self.until.as_deref())
    }
}

impl Knowledge {
    /// Every entry for a host bridge, those of user's files last.
    pub fn host_bridges_for(&self, vendor: u16, device: u16) -> impl Iterator<Item = &HostBridge> {
        let all = host_bridges().host_bridge.iter().chain(&self.more_host_bridges.host_bridge);
        all.filter(move |one| one.names(vendor, device))
    }

    /// How far the P2PDMA code of a kernel is.
    pub fn p2pdma_level(&self, release: &Release) -> P2pdmaLevel {
        let more = &self.more_host_bridges;
        let mut backports = more.p2pdma_backport.iter().chain(&host_bridges().p2pdma_backport);
        let backport =
            backports.find(|one| one.conditions.iter().any(|condition| condition.matches(release)));
        match backport {
            Some(backport) => P2pdmaLevel { release: backport.level.clone(), exact: true },
            None => {
                P2pdmaLevel { release: release.base().to_owned(), exact: release.is_upstream() }
            }
        }
    }

    /// Whether code of this level follows a rule; `No` if no data names the rule.
    pub fn p2pdma_follows(&self, level: &P2pdmaLevel, rule: Rule) -> Known {
        let rules = &host_bridges().p2pdma_rule;
        let found = rules.iter().find(|one| one.rule == rule);
        found.map_or(Known::No, |one| level.has(&one.since, one.absent.as_deref(), None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn between_what_was_read_without_and_with_it_nobody_knows() {
        let at = |release: &str, exact| {
            let level = P2pdmaLevel { release: release.to_owned(), exact };
            level.has("6.1", Some("5.10"), None)
        };
        let cases = [
            ("5.4", Known::No),
            ("5.10", Known::No),
            ("5.10.262", Known::No),
            ("5.11", Known::Unconfirmed),
            ("5.15.194", Known::Unconfirmed),
            ("6.0.19", Known::Unconfirmed),
            ("6.1", Known::Yes),
            ("6.1.192", Known::Yes),
            ("6.12.0", Known::Yes),
        ];
        for (release, expected) in cases {
            assert_eq!(at(release, true), expected, "{release}");
        }
        assert_eq!(at("5.10.0", false), Known::Unconfirmed, "may have been taken over");
        assert_eq!(at("6.8.0", false), Known::Yes);
    }

    #[test]
    fn what_is_gone_is_gone() {
        let level = P2pdmaLevel { release: "6.8.0".to_owned(), exact: false };
        assert_eq!(level.has("5.2", None, Some("5.9")), Known::No);
        let level = P2pdmaLevel { release: "5.6".to_owned(), exact: true };
        assert_eq!(level.has("5.9", Some("5.4"), Some("5.9")), Known::Unconfirmed);
        assert_eq!(level.has("5.2", None, Some("5.9")), Known::Yes);
    }
}
