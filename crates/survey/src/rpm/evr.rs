//! Epoch, version and release of a package, in rpm's order.

use std::cmp::Ordering;
use std::fmt;

/// Epoch, version and release. Ordered as rpm orders: the epoch as a number, then version and release by `rpmvercmp`, with
/// `~` below and `^` above the end of the string.
///
/// Rules: <https://rpm-software-management.github.io/rpm/manual/dependencies.html>.
#[derive(Clone, Debug)]
pub struct Evr {
    /// The epoch; 0 where none is given.
    pub epoch: u32,
    /// The version: upstream's number.
    pub version: String,
    /// The release: the distribution's build.
    pub release: String,
}

impl Evr {
    /// Version and release as they stand in a package's file name.
    pub fn version_release(&self) -> String {
        format!("{}-{}", self.version, self.release)
    }
}

/// `[epoch:]version-release`, the epoch only if it is not 0.
impl fmt::Display for Evr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.epoch != 0 {
            write!(f, "{}:", self.epoch)?;
        }
        write!(f, "{}-{}", self.version, self.release)
    }
}

impl Ord for Evr {
    fn cmp(&self, other: &Self) -> Ordering {
        self.epoch.cmp(&other.epoch).then_with(|| {
            // Through the same crate as all other comparisons of the workspace; its epochs are left empty.
            let [a, b] = [self, other]
                .map(|evr| rpm_version::Evr::new("", evr.version.as_str(), evr.release.as_str()));
            a.cmp(&b)
        })
    }
}

impl PartialOrd for Evr {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Evr {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Evr {}

#[cfg(test)]
mod tests {
    use super::*;

    fn evr(text: &str) -> Evr {
        let (epoch, rest) = text.split_once(':').unwrap_or(("0", text));
        let (version, release) = rest.rsplit_once('-').unwrap();
        Evr { epoch: epoch.parse().unwrap(), version: version.into(), release: release.into() }
    }

    #[test]
    fn order() {
        // Each lower than the next.
        let ascending = [
            "5.14.0~rc1-1.el9",
            "5.14.0-1.el9",
            "5.14.0-70.el9",
            "5.14.0-427.42.1.el9_4",
            "5.14.0-570.9.1.el9_6",
            "5.14.0-570.58.1.el9_6",
            "5.14.0-687.49.1.el9_8",
            "5.14.0^20260101-1.el9",
            "5.14.1-1.el9",
            "6.12.0-109.67.6.el10uek",
            "1:4.18.0-1.el8",
            "2:3.0-1",
            "10:1-1",
        ];
        for (at, low) in ascending.iter().enumerate() {
            for high in &ascending[at + 1..] {
                assert!(evr(low) < evr(high), "{low} < {high}");
                assert!(evr(high) > evr(low), "{high} > {low}");
            }
        }
        assert_eq!(evr("0:1.0-1"), evr("1.0-1"));
        assert_eq!(evr("1.05-1"), evr("1.5-1"));
    }

    /// The vectors of rpm's own `tests/rpmvercmp.at`, those with an order that surprises.
    #[test]
    fn vectors_of_rpm() {
        for (a, b, expected) in [
            ("2_0", "2_0", 0),
            ("2.0", "2_0", 0),
            ("a", "a+", 0),
            ("+", "_", 0),
            ("xyz10", "xyz10.1", -1),
            ("xyz.4", "8", -1),
            ("8", "xyz.4", 1),
            ("5.5p2", "5.6p1", -1),
            ("5.6p1", "6.5p1", -1),
            ("6.0.rc1", "6.0", 1),
            ("10b2", "10a1", 1),
            ("1.0aa", "1.0a", 1),
            ("10.0001", "10.0039", -1),
            ("4.999.9", "5.0", -1),
            ("20101121", "20101122", -1),
            ("1.0~rc1", "1.0", -1),
            ("1.0~rc1", "1.0~rc2", -1),
            ("1.0~rc1~git123", "1.0~rc1", -1),
            ("1.0^", "1.0", 1),
            ("1.0^git1", "1.0", 1),
            ("1.0^git1", "1.0^git2", -1),
            ("1.0^git1", "1.01", -1),
            ("1.0^20160101", "1.0.1", -1),
            ("1.0^20160102", "1.0^20160101^git1", 1),
            ("1.0~rc1^git1", "1.0~rc1", 1),
            ("1.0^git1~pre", "1.0^git1", -1),
        ] {
            let of = |version: &str| Evr { epoch: 0, version: version.into(), release: "1".into() };
            let found = match of(a).cmp(&of(b)) {
                Ordering::Less => -1,
                Ordering::Equal => 0,
                Ordering::Greater => 1,
            };
            assert_eq!(found, expected, "{a} {b}");
        }
    }
}
