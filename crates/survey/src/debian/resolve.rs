//! From a metapackage to the smallest package that holds the configuration of the kernel it means.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::sync::Arc;

use fastpath_artifact::http::{Meter, join, shown};

use super::packages::Package;
use super::{DebianError, Loaded, Pocket, Repositories, Standing};
use crate::trust::{Digest, Fingerprint, Signer};

/// The longest way from a metapackage to a kernel; Ubuntu's has two steps.
const LONGEST_WAY: usize = 8;

/// How a family packs its kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Follow {
    /// Debian, only from the image itself: `linux-image-amd64` names `linux-image-R`.
    Image,
    /// Debian: as [`Follow::Image`], with the configuration taken from `linux-headers-R` if that is smaller, or from
    /// `linux-base-R` where packages are split ([`Follow::Split`]); whichever there is.
    ImageHeaders,
    /// Debian since 7.x: the image is empty, the configuration is in `linux-base-R`.
    Split,
    /// Ubuntu: `linux-generic` names `linux-image-generic`, that names `linux-image-R`; the configuration is in
    /// `linux-modules-R` and `linux-headers-R`.
    UbuntuModules,
    /// Proxmox: `proxmox-default-kernel` names `proxmox-kernel-X.Y`, that names `proxmox-kernel-R-signed`.
    Proxmox,
}

impl FromStr for Follow {
    type Err = String;

    /// From its name in the catalogue.
    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "deb-image" => Ok(Self::Image),
            "deb-image-headers" => Ok(Self::ImageHeaders),
            "deb-split" => Ok(Self::Split),
            "ubuntu-modules" => Ok(Self::UbuntuModules),
            "proxmox" => Ok(Self::Proxmox),
            other => Err(format!(
                "expected deb-image, deb-image-headers, deb-split, ubuntu-modules or proxmox, found `{other}`"
            )),
        }
    }
}

/// Which kernel is meant.
#[derive(Clone, Debug)]
pub struct Query {
    /// The pockets, all of which are looked at.
    pub pockets: Vec<Pocket>,
    /// The metapackage to start from.
    pub package: String,
    /// How to go on.
    pub follow: Follow,
    /// The keys that may sign.
    pub pins: Vec<Fingerprint>,
}

/// A kernel, and the package to read its configuration from.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// The kernel's release, `6.1.0-57-amd64`.
    pub release: String,
    /// The package.
    pub package: String,
    /// Its version.
    pub version: String,
    /// Its address.
    pub url: String,
    /// Its size in bytes.
    pub size: u64,
    /// Its digest, as the index has it.
    pub digest: Digest,
    /// The repository's base, without credentials.
    pub repository: String,
    /// The suite it was found in.
    pub suite: String,
    /// How far the indexes can be trusted: stale if any that was looked at is.
    pub standing: Standing,
    /// Who signed the index it was found in.
    pub signers: Vec<Signer>,
    /// How many bytes were transferred to find it: none if the indexes were read before or are kept.
    pub index_bytes: u64,
    /// Where in the package the configuration can be, likeliest first.
    pub config_paths: Vec<String>,
}

/// Finds the kernel that a metapackage means today: the highest version over all pockets.
///
/// # Errors
///
/// A [`DebianError`]; also if one of several pockets cannot be read, for then a newer kernel might be missed.
pub fn resolve(repositories: &Repositories<'_>, query: &Query) -> Result<Resolved, DebianError> {
    let pool = Pool::load(repositories, query)?;
    let (release, wanted) = pool.kernel(&query.package, query.follow)?;
    pool.smallest(&release, wanted.as_deref(), query.follow)
}

/// Finds every kernel in the pockets, whatever metapackages say, in the order of their releases; of one that is there in
/// several versions the highest. Debug symbols and unsigned duplicates are left out. A kernel whose configuration is in no
/// package is an error in the list, and does not stop the others.
///
/// # Errors
///
/// A [`DebianError`] if a pocket cannot be read.
pub fn all_kernels(
    repositories: &Repositories<'_>,
    query: &Query,
) -> Result<Vec<Result<Resolved, DebianError>>, DebianError> {
    let pool = Pool::load(repositories, query)?;
    let mut kernels: BTreeMap<String, &Package> = BTreeMap::new();
    for (_, package) in pool.packages() {
        let Some(release) = kernel_release(&package.name, query.follow) else { continue };
        if names_kernel(package, query.follow) {
            continue;
        }
        let known = kernels.entry(release.to_owned()).or_insert(package);
        if known.version < package.version {
            *known = package;
        }
    }
    let smallest = |(release, package): (String, &Package)| {
        pool.smallest(&release, Some(&package.version.to_string()), query.follow)
    };
    Ok(kernels.into_iter().map(smallest).collect())
}

/// The packages of all pockets together.
struct Pool {
    pockets: Vec<Arc<Loaded>>,
    bytes: u64,
}

impl Pool {
    fn load(repositories: &Repositories<'_>, query: &Query) -> Result<Self, DebianError> {
        let meter = Meter::default();
        let pockets = query
            .pockets
            .iter()
            .map(|pocket| repositories.load(pocket, &query.pins, &meter))
            .collect::<Result<_, _>>()?;
        Ok(Self { pockets, bytes: meter.total() })
    }

    fn packages(&self) -> impl Iterator<Item = (&Loaded, &Package)> {
        self.pockets.iter().flat_map(|pocket| {
            pocket.index.packages.iter().map(move |package| (&**pocket, package))
        })
    }

    /// The highest version of a package; only the one wanted, if there is one.
    fn find(&self, name: &str, version: Option<&str>) -> Option<(&Loaded, &Package)> {
        let wanted: Option<debversion::Version> = version.and_then(|version| version.parse().ok());
        self.packages()
            .filter(|(_, package)| package.name == name)
            .filter(|(_, package)| wanted.as_ref().is_none_or(|wanted| package.version == *wanted))
            // Of equal ones the first, which is in the pocket named first.
            .fold(None, |best: Option<(&Loaded, &Package)>, next| match best {
                Some(best) if best.1.version >= next.1.version => Some(best),
                _ => Some(next),
            })
    }

    fn need(&self, name: &str, version: Option<&str>) -> Result<(&Loaded, &Package), DebianError> {
        self.find(name, version).ok_or_else(|| DebianError::NoPackage {
            repository: self.repository(),
            package: version.map_or_else(|| name.to_owned(), |version| format!("{name} {version}")),
            suites: self.pockets.iter().map(|p| p.suite.as_str()).collect::<Vec<_>>().join(", "),
        })
    }

    fn repository(&self) -> String {
        self.pockets.first().map_or_else(String::new, |pocket| shown(&pocket.base))
    }

    /// Follows dependencies from a metapackage to a kernel: its release, and the version wanted of it.
    fn kernel(&self, meta: &str, follow: Follow) -> Result<(String, Option<String>), DebianError> {
        let mut name = meta.to_owned();
        let mut version = None;
        for _ in 0..LONGEST_WAY {
            let (_, package) = self.need(&name, version.as_deref())?;
            let depends = parse_depends(&package.depends);
            let kernel = depends.iter().flatten().find_map(|dependency| {
                let release = kernel_release(&dependency.name, follow)?;
                let found = self.find(&dependency.name, dependency.version.as_deref());
                // Debian 12 has `linux-image-6.12-amd64`, which names a line of kernels.
                let meta = found.is_some_and(|(_, package)| names_kernel(package, follow));
                (!meta).then(|| (release, dependency.version.clone()))
            });
            if let Some((release, version)) = kernel {
                return Ok((release.to_owned(), version));
            }
            let next = depends.into_iter().flatten().find(|dependency| {
                is_meta(&dependency.name, follow)
                    && self.find(&dependency.name, dependency.version.as_deref()).is_some()
            });
            let Some(next) = next else {
                return Err(DebianError::NoKernel {
                    repository: self.repository(),
                    package: name,
                    version: package.version.to_string(),
                    depends: package.depends.chars().take(200).collect(),
                });
            };
            (name, version) = (next.name, next.version);
        }
        Err(DebianError::NoKernel {
            repository: self.repository(),
            package: meta.to_owned(),
            version: String::new(),
            depends: format!("more than {LONGEST_WAY} packages that name one another"),
        })
    }

    /// The smallest package with the configuration of a kernel.
    fn smallest(
        &self,
        release: &str,
        version: Option<&str>,
        follow: Follow,
    ) -> Result<Resolved, DebianError> {
        let image = image_names(release, follow);
        let found = image.iter().find_map(|name| self.find(name, version));
        // The image is what the other packages must fit; a split one has no content, but is there all the same.
        let (_, kernel) = match found {
            Some(found) => found,
            None => self.need(&image[0], version)?,
        };
        let same = kernel.version.to_string();
        let headers = match follow {
            Follow::Proxmox => {
                vec![format!("proxmox-headers-{release}"), format!("pve-headers-{release}")]
            }
            _ => vec![format!("linux-headers-{release}")],
        };
        let base = format!("linux-base-{release}");
        let modules = format!("linux-modules-{release}");
        let kind = |name: &str| match name {
            name if headers.iter().any(|header| header == name) => Holder::Headers,
            name if name == base => Holder::Base,
            _ => Holder::Image,
        };
        let find = |name: &String| self.find(name, Some(&same));
        let candidates: Vec<(&Loaded, &Package)> = match follow {
            Follow::Image => Vec::from_iter(found),
            Follow::ImageHeaders | Follow::Split => match find(&base) {
                // Where there is one, the image is an empty package.
                Some(base) => find(&headers[0]).into_iter().chain([base]).collect(),
                None => find(&headers[0]).into_iter().chain(found).collect(),
            },
            // The image is signed as a source of its own, whose version may differ; the release says what belongs together.
            Follow::UbuntuModules => [&headers[0], &modules]
                .into_iter()
                .filter_map(|name| find(name).or_else(|| self.find(name, None)))
                .collect(),
            Follow::Proxmox => headers.iter().filter_map(find).chain(found).collect(),
        };
        let smallest = candidates.into_iter().min_by_key(|(_, package)| package.size);
        let (pocket, package) = match smallest {
            Some(smallest) => smallest,
            // Only Ubuntu's image without its modules comes here.
            None => self.need(&modules, None)?,
        };
        let stale = self.pockets.iter().find(|pocket| pocket.standing != Standing::Signed);
        Ok(Resolved {
            release: release.to_owned(),
            package: package.name.clone(),
            version: package.version.to_string(),
            url: join(&pocket.base, &package.filename),
            size: package.size,
            digest: package.digest.clone(),
            repository: shown(&pocket.base),
            suite: pocket.suite.clone(),
            standing: stale.map_or(Standing::Signed, |pocket| pocket.standing.clone()),
            signers: pocket.signers.clone(),
            index_bytes: self.bytes,
            config_paths: kind(&package.name).paths(release),
        })
    }
}

/// What kind of package holds the configuration.
enum Holder {
    Headers,
    Base,
    Image,
}

impl Holder {
    fn paths(&self, release: &str) -> Vec<String> {
        match self {
            Self::Headers => vec![format!("usr/src/linux-headers-{release}/.config")],
            Self::Base => {
                vec![format!("usr/lib/modules/{release}/config"), format!("boot/config-{release}")]
            }
            Self::Image => vec![
                format!("boot/config-{release}"),
                format!("usr/lib/modules/{release}/config"),
                format!("lib/modules/{release}/config"),
            ],
        }
    }
}

/// The release in the name of an image package.
fn kernel_release(package: &str, follow: Follow) -> Option<&str> {
    let release = if follow == Follow::Proxmox {
        let rest = package
            .strip_prefix("proxmox-kernel-")
            .or_else(|| package.strip_prefix("pve-kernel-"))?;
        let rest = rest.strip_suffix("-signed").unwrap_or(rest);
        // `proxmox-kernel-6.14` names a line of kernels, not one.
        rest.strip_suffix("-pve").map(|_| rest)?
    } else {
        package.strip_prefix("linux-image-")?
    };
    let unfit = ["-dbg", "-dbgsym", "-unsigned", "-signed-template"];
    let sound = release.starts_with(|c: char| c.is_ascii_digit())
        && release.split(['-', '+']).next().is_some_and(|base| base.contains('.'))
        && unfit.iter().all(|end| !release.ends_with(end));
    sound.then_some(release)
}

/// Whether a package named like an image only names another one.
fn names_kernel(package: &Package, follow: Follow) -> bool {
    let depends = parse_depends(&package.depends);
    depends.iter().flatten().any(|dependency| kernel_release(&dependency.name, follow).is_some())
}

/// Names an image package of the release can have.
fn image_names(release: &str, follow: Follow) -> Vec<String> {
    match follow {
        Follow::Proxmox => vec![
            format!("proxmox-kernel-{release}-signed"),
            format!("proxmox-kernel-{release}"),
            format!("pve-kernel-{release}"),
        ],
        _ => vec![format!("linux-image-{release}")],
    }
}

/// Whether a dependency may lead on to a kernel.
fn is_meta(name: &str, follow: Follow) -> bool {
    match follow {
        Follow::Proxmox => name.starts_with("proxmox-kernel-") || name.starts_with("pve-kernel-"),
        _ => name.starts_with("linux-image-"),
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Dependency {
    name: String,
    /// The version, where exactly one is wanted.
    version: Option<String>,
}

/// `a (= 1) | b, c:any (>= 2) [amd64]`: alternatives of each.
fn parse_depends(text: &str) -> Vec<Vec<Dependency>> {
    let one = |text: &str| {
        let text = text.trim();
        let end = text
            .find(|c: char| c.is_whitespace() || matches!(c, '(' | ':' | '['))
            .unwrap_or(text.len());
        let version = text.split_once('(').and_then(|(_, rest)| rest.split_once(')'));
        let version = version.and_then(|(inside, _)| inside.trim().strip_prefix('='));
        Dependency {
            name: text[..end].to_owned(),
            version: version.map(|version| version.trim().to_owned()),
        }
    };
    text.split(',')
        .filter(|group| !group.trim().is_empty())
        .map(|group| group.split('|').map(one).collect())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies() {
        let parsed = parse_depends("a (= 1:2~3) | b, c:any (>= 2) [amd64],, d");
        let flat: Vec<(&str, Option<&str>)> =
            parsed.iter().flatten().map(|d| (d.name.as_str(), d.version.as_deref())).collect();
        assert_eq!(flat, [("a", Some("1:2~3")), ("b", None), ("c", None), ("d", None)]);
        assert_eq!(parsed.len(), 3);
    }

    #[test]
    fn releases_in_package_names() {
        for (name, follow, expected) in [
            ("linux-image-6.1.0-57-amd64", Follow::ImageHeaders, Some("6.1.0-57-amd64")),
            ("linux-image-6.1.0-57-amd64-unsigned", Follow::ImageHeaders, None),
            ("linux-image-6.1.0-57-amd64-dbg", Follow::ImageHeaders, None),
            ("linux-image-amd64", Follow::ImageHeaders, None),
            ("linux-image-7.3.4+deb13-amd64", Follow::Split, Some("7.3.4+deb13-amd64")),
            ("linux-image-6.8.0-142-generic", Follow::UbuntuModules, Some("6.8.0-142-generic")),
            ("linux-image-unsigned-6.8.0-142-generic", Follow::UbuntuModules, None),
            ("linux-image-generic-hwe-24.04", Follow::UbuntuModules, None),
            ("proxmox-kernel-6.14", Follow::Proxmox, None),
            ("proxmox-kernel-7.0.14-14-pve-signed", Follow::Proxmox, Some("7.0.14-14-pve")),
            ("proxmox-kernel-7.0.14-14-pve", Follow::Proxmox, Some("7.0.14-14-pve")),
            ("pve-kernel-5.15.158-1-pve", Follow::Proxmox, Some("5.15.158-1-pve")),
            ("proxmox-default-kernel", Follow::Proxmox, None),
        ] {
            assert_eq!(kernel_release(name, follow), expected, "{name}");
        }
    }

    #[test]
    fn names_in_the_catalogue() {
        assert_eq!("deb-split".parse(), Ok(Follow::Split));
        assert!("rpm-highest".parse::<Follow>().unwrap_err().contains("found `rpm-highest`"));
    }

    proptest::proptest! {
        #[test]
        fn never_panics(text: String) {
            parse_depends(&text);
            for follow in [Follow::ImageHeaders, Follow::Proxmox] {
                kernel_release(&format!("linux-image-{text}"), follow);
                kernel_release(&format!("proxmox-kernel-{text}-pve"), follow);
            }
        }
    }
}
