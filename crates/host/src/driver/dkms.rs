//! What DKMS has built of amdgpu.
//!
//! Its tree: `/var/lib/dkms/<module>/<version>/<kernel>/<arch>`.
//! Source: <https://github.com/dell/dkms/blob/main/dkms.8.in>.

use fastpath_knowledge::Release;
use serde::{Deserialize, Serialize};

use super::Small;
use crate::tree::FileKind;

const TREE: &str = "/var/lib/dkms/amdgpu";

/// More versions than anyone keeps.
const MAX_VERSIONS: usize = 32;

/// More kernels than a version is built for.
const MAX_KERNELS: usize = 128;

/// One build of amdgpu by DKMS.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DkmsBuild {
    /// Its directory, as on the host, from `/`.
    pub path: String,
    /// The version as DKMS has it, `6.16.13-2278356.24.04`.
    pub version: String,
    /// The number of the build: the digits after the first `-`.
    pub number: Option<u64>,
    /// The kernel it is for.
    pub release: Release,
    /// Whether that is the one that runs.
    pub running: bool,
}

impl DkmsBuild {
    /// Whether this is what a loaded module that gives `version` was built from.
    pub fn is_of(&self, version: &str) -> bool {
        self.version.split_once('-').map_or(self.version.as_str(), |(base, _)| base) == version
            || self.version == version
    }
}

/// The number of a build: the digits after the first `-` of its version.
fn number(version: &str) -> Option<u64> {
    let (_, rest) = version.split_once('-')?;
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest[..end].parse().ok()
}

pub(super) fn builds(small: &mut Small<'_>, running: Option<&Release>) -> Vec<DkmsBuild> {
    let directories = |small: &mut Small<'_>, path: &str| {
        let entries = small.list(path);
        entries
            .into_iter()
            .filter(|entry| matches!(entry.kind, FileKind::Directory | FileKind::Unknown))
            .map(|entry| entry.name)
    };
    let mut found = Vec::new();
    for version in directories(small, TREE).take(MAX_VERSIONS) {
        for name in directories(small, &format!("{TREE}/{version}")).take(MAX_KERNELS) {
            // `build` and `source` stand beside the kernels.
            let Some(release) = Release::new(&name).filter(|it| it.as_str() == name) else {
                continue;
            };
            let kernel = format!("{TREE}/{version}/{name}");
            // A build that failed or was taken away leaves the directory without one for an architecture.
            let Some(arch) = directories(small, &kernel).next() else { continue };
            let path = format!("{kernel}/{arch}");
            // Asked about, so that a snapshot keeps the name.
            let kind = small.tree.kind(&path);
            if small.ask(&path, kind).is_none() {
                continue;
            }
            found.push(DkmsBuild {
                path,
                number: number(&version),
                running: running == Some(&release),
                version: version.clone(),
                release,
            });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn the_build_number_is_what_follows_the_first_dash() {
        for (version, expected) in [
            ("6.16.13-2278356.24.04", Some(2_278_356)),
            ("6.16.13-2278356", Some(2_278_356)),
            ("6.16.13-2278356-1.el9", Some(2_278_356)),
            ("6.16.13", None),
            ("6.16.13-", None),
            ("6.16.13-x2278356", None),
            ("6.16.13-99999999999999999999999", None),
        ] {
            assert_eq!(number(version), expected, "{version}");
        }
    }
}
