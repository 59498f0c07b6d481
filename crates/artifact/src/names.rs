//! What names of members and packages say: which members are worth a look, and which kernel they belong to.

use fastpath_knowledge::Release;

/// What a member may be, by its name alone. Its content decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Config,
    Image,
    Symbols,
    Archive,
}

/// A member worth a look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub(crate) kind: Kind,
    pub(crate) release: Option<Release>,
}

/// A member's name without `./`, leading slashes and empty parts; `None` if it climbs with `..`.
pub(crate) fn normalise(name: &str) -> Option<String> {
    let mut parts = Vec::new();
    for part in name.split('/') {
        match part {
            "" | "." => {}
            ".." => return None,
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// Judges a normalised path.
pub(crate) fn candidate(path: &str) -> Option<Candidate> {
    let mut parts = path.rsplit('/');
    let whole = parts.next()?;
    let parents: Vec<&str> = parts.take(8).collect();
    let base = uncompressed(whole);
    let found = |kind, release| Some(Candidate { kind, release });
    let of_directory = || parents.first().and_then(|_| release_of_directory(&parents));

    if base == "config" || base == ".config" {
        return found(Kind::Config, of_directory());
    }
    if let Some(rest) = base.strip_prefix("kernel-config-") {
        return found(Kind::Config, rest.split_once('-').and_then(|(_, rest)| release(rest)));
    }
    if let Some(rest) = base.strip_prefix("config-") {
        return found(Kind::Config, release(rest));
    }
    // Debian's `linux-config-X.Y`: `config.amd64_none_cloud-amd64.xz`.
    if base.starts_with("config.") && base.contains('_') {
        return found(Kind::Config, None);
    }
    if let Some(rest) = suffix(base, &["System.map", "Module.symvers", "symvers", "kallsyms"]) {
        return found(Kind::Symbols, release(rest).or_else(of_directory));
    }
    if [".hmac", ".sig", ".p7s"].iter().any(|ending| whole.ends_with(ending)) {
        return None;
    }
    if base == "configs.ko" {
        return found(Kind::Image, of_directory());
    }
    if let Some(rest) = suffix(base, &["vmlinuz", "vmlinux", "bzImage", "zImage", "Image"]) {
        return found(Kind::Image, release(rest).or_else(of_directory));
    }
    // genkernel's and systemd-boot's names for the kernel; an installation medium's.
    let in_boot = parents.first().is_some_and(|parent| *parent == "boot" || *parent == "loader");
    if in_boot && let Some(rest) = suffix(base, &["kernel", "linux"]) {
        return found(Kind::Image, release(rest));
    }
    if let Some((stem, "efi")) = base.rsplit_once('.')
        && parents.first().is_some_and(|parent| parent.eq_ignore_ascii_case("linux"))
    {
        return found(Kind::Image, release_at_end(stem));
    }
    is_archive(whole, &parents).then_some(Candidate { kind: Kind::Archive, release: None })
}

fn is_archive(name: &str, parents: &[&str]) -> bool {
    const ENDINGS: [&str; 12] = [
        ".deb", ".rpm", ".tar", ".tgz", ".txz", ".tbz2", ".tzst", ".cpio", ".tar.gz", ".tar.xz",
        ".tar.zst", ".tar.bz2",
    ];
    let blob = parents.starts_with(&["sha256", "blobs"]) && name.len() == 64;
    blob || ENDINGS.iter().any(|ending| name.ends_with(ending))
        || [".tar.lz4", ".tar.lzma", ".cpio.gz", ".cpio.xz", ".cpio.zst"]
            .iter()
            .any(|ending| name.ends_with(ending))
}

/// The name without one ending of a compression.
fn uncompressed(name: &str) -> &str {
    const ENDINGS: [&str; 7] = [".gz", ".xz", ".zst", ".bz2", ".lz4", ".lzma", ".lzo"];
    ENDINGS.iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(name)
}

/// What follows one of the stems and a hyphen; empty if nothing does.
fn suffix<'n>(name: &'n str, stems: &[&str]) -> Option<&'n str> {
    stems.iter().find_map(|stem| {
        let rest = name.strip_prefix(stem)?;
        if rest.is_empty() { Some("") } else { rest.strip_prefix(['-', '.']) }
    })
}

/// The release a configuration or image of one kernel lies in a directory of: `modules/R`, `modules/R/build`,
/// `linux-headers-R`, `kernels/R`, `linux-V-obj/ARCH/FLAVOUR`. `parents` go from the innermost outwards.
fn release_of_directory(parents: &[&str]) -> Option<Release> {
    let mut pairs = parents.windows(2);
    let of_modules = pairs.find_map(|pair| match pair {
        [version, "modules" | "kernels" | "linux"] => release(version),
        _ => None,
    });
    of_modules.or_else(|| match parents {
        [flavour, _, obj, ..] if obj.starts_with("linux-") && obj.ends_with("-obj") => {
            let version = obj.strip_prefix("linux-")?.strip_suffix("-obj")?;
            release(&format!("{version}-{flavour}"))
        }
        [directory, ..] => {
            let rest = directory.strip_prefix("linux-headers-");
            release(rest.or_else(|| directory.strip_prefix("linux-"))?)
        }
        [] => None,
    })
}

/// A release in a name: it starts with its version. ostree appends a checksum to it.
pub(crate) fn release(text: &str) -> Option<Release> {
    let text = match text.rsplit_once('-') {
        Some((rest, sum))
            if sum.len() == 64 && sum.bytes().all(|byte| byte.is_ascii_hexdigit()) =>
        {
            rest
        }
        _ => text,
    };
    Release::new(text).filter(|release| release.major_minor().is_some())
}

/// A release at the end of a name, as in `<machine-id>-6.12.0-1.x86_64`.
fn release_at_end(stem: &str) -> Option<Release> {
    let mut rest = stem;
    loop {
        if let Some(release) = release(rest) {
            return Some(release);
        }
        rest = rest.split_once('-')?.1;
    }
}

/// The release in the name of a file: `config-6.8.0-138-generic.gz`, `vmlinuz-6.12.0`.
pub(crate) fn release_of_file(name: &str) -> Option<Release> {
    let path = normalise(name).unwrap_or_default();
    candidate(&path)?.release
}

/// The kernel of a Debian package, by the package's name.
pub(crate) fn release_of_deb(package: &str) -> Option<Release> {
    const PREFIXES: [&str; 13] = [
        "linux-image-unsigned-",
        "linux-image-uc-",
        "linux-image-",
        "linux-modules-extra-",
        "linux-modules-",
        "linux-headers-",
        "linux-base-",
        "linux-binary-",
        "linux-buildinfo-",
        "proxmox-kernel-",
        "proxmox-headers-",
        "pve-kernel-",
        "pve-headers-",
    ];
    let rest = PREFIXES.iter().find_map(|prefix| package.strip_prefix(prefix))?;
    let endings = ["-unsigned", "-signed", "-dbgsym", "-dbg"];
    let rest = endings.iter().find_map(|ending| rest.strip_suffix(ending)).unwrap_or(rest);
    release(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(path: &str) -> Option<(Kind, Option<String>)> {
        candidate(path).map(|found| (found.kind, found.release.map(|r| r.as_str().to_owned())))
    }

    #[test]
    fn names_of_configurations_give_their_kernel() {
        for (path, release) in [
            ("boot/config-6.1.0-57-amd64", Some("6.1.0-57-amd64")),
            ("lib/modules/6.12.0-1.el10.x86_64/config", Some("6.12.0-1.el10.x86_64")),
            ("usr/lib/modules/7.3.4+deb13-amd64/config", Some("7.3.4+deb13-amd64")),
            ("usr/src/linux-headers-6.1.0-57-amd64/.config", Some("6.1.0-57-amd64")),
            ("usr/src/kernels/5.14.0-570.el9.x86_64/.config", Some("5.14.0-570.el9.x86_64")),
            ("usr/lib/modules/6.18.7-arch1-1/build/.config", Some("6.18.7-arch1-1")),
            (
                "usr/src/linux-6.12.0-160000.8-obj/x86_64/default/.config",
                Some("6.12.0-160000.8-default"),
            ),
            ("usr/src/linux-6.1/.config", Some("6.1")),
            ("usr/src/linux/.config", None),
            ("usr/lib/kernel/config-6.1.1", Some("6.1.1")),
            ("usr/src/linux-config-6.1/config.amd64_none_amd64.xz", None),
            ("usr/lib/linux/6.8.0-31-generic/config", Some("6.8.0-31-generic")),
            ("proc/config.gz", None),
            (
                "usr/lib/ostree-boot/config-5.0.1-300.fc30.x86_64-0000000000000000000000000000000000000000000000000000000000000000",
                Some("5.0.1-300.fc30.x86_64"),
            ),
            ("etc/kernels/kernel-config-x86_64-6.1.0-gentoo", Some("6.1.0-gentoo")),
        ] {
            assert_eq!(of(path), Some((Kind::Config, release.map(str::to_owned))), "{path}");
        }
    }

    #[test]
    fn names_of_images_and_symbols_give_their_kernel() {
        let release = Some("6.1.0-57-amd64".to_owned());
        for (path, kind) in [
            ("boot/vmlinuz-6.1.0-57-amd64", Kind::Image),
            ("lib/modules/6.1.0-57-amd64/vmlinuz", Kind::Image),
            ("usr/lib/debug/boot/vmlinux-6.1.0-57-amd64", Kind::Image),
            ("boot/EFI/Linux/0123abcd-6.1.0-57-amd64.efi", Kind::Image),
            ("boot/System.map-6.1.0-57-amd64", Kind::Symbols),
            ("lib/modules/6.1.0-57-amd64/symvers.xz", Kind::Symbols),
            ("boot/symvers-6.1.0-57-amd64.gz", Kind::Symbols),
            ("usr/src/linux-headers-6.1.0-57-amd64/Module.symvers", Kind::Symbols),
        ] {
            assert_eq!(of(path), Some((kind, release.clone())), "{path}");
        }
        let configs = "lib/modules/6.1.0-57-amd64/kernel/kernel/configs.ko.xz";
        assert_eq!(of(configs), Some((Kind::Image, release)));
    }

    #[test]
    fn other_names_are_left_alone() {
        for path in [
            "lib/modules/6.1.0/kernel/drivers/nvme.ko",
            "boot/.vmlinuz-6.1.0.hmac",
            "boot/vmlinuz-6.1.0.sig",
            "usr/share/doc/configuration",
            "usr/bin/configs",
            "",
        ] {
            assert_eq!(of(path), None, "{path}");
        }
    }

    #[test]
    fn climbing_names_are_refused_and_others_brought_into_one_form() {
        assert_eq!(normalise("./boot//config-6.1"), Some("boot/config-6.1".to_owned()));
        assert_eq!(normalise("/boot/./config-6.1"), Some("boot/config-6.1".to_owned()));
        assert_eq!(normalise("../boot/config-6.1"), None);
        assert_eq!(normalise("boot/../../config-6.1"), None);
    }

    #[test]
    fn debian_packages_say_their_kernel() {
        let of = |package| release_of_deb(package).map(|release| release.as_str().to_owned());
        assert_eq!(of("linux-image-6.1.0-57-amd64"), Some("6.1.0-57-amd64".to_owned()));
        assert_eq!(
            of("linux-image-unsigned-6.8.0-31-generic"),
            Some("6.8.0-31-generic".to_owned())
        );
        assert_eq!(of("linux-image-6.1.0-57-amd64-unsigned"), Some("6.1.0-57-amd64".to_owned()));
        assert_eq!(of("linux-base-7.3.4+deb13-amd64"), Some("7.3.4+deb13-amd64".to_owned()));
        assert_eq!(of("proxmox-kernel-6.8.12-4-pve-signed"), Some("6.8.12-4-pve".to_owned()));
        assert_eq!(of("linux-image-amd64"), None);
        assert_eq!(of("linux-config-6.1"), None);
        assert_eq!(of("linux-base"), None);
    }
}
