//! Packages of a real kernel: the newest of the machine's own repositories, and an rpm of its files.

use std::path::{Path, PathBuf};

use super::{make, missing, sh};

/// A kernel as packages.
pub(crate) struct Kernel {
    /// `6.12.117+deb12-amd64`.
    pub(crate) release: String,
    /// Debian's version of the package.
    pub(crate) version: String,
    /// Debian's own image package.
    pub(crate) deb: PathBuf,
}

impl Kernel {
    /// The newest kernel that apt offers, of its images the largest: fetched once, then kept in `folder`. `Err` says why
    /// there is none.
    pub(crate) fn fetch(folder: &Path) -> Result<Self, String> {
        if let Some(tool) = missing(&["apt-cache", "apt-get", "dpkg-deb"]) {
            return Err(format!("{tool} is not installed"));
        }
        let newest = sh(
            folder,
            "apt-cache search --names-only '^linux-image-[0-9][0-9.]*[-+]' | cut -d' ' -f1 | grep -v -e -unsigned -e -dbg | \
             xargs -r apt-cache show --no-all-versions | awk '/^Package:/ {p=$2} /^Version:/ {v=$2} /^Size:/ {s=$2} \
             /^$/ {print v, s, p}' | sort -V | tail -n 50 | awk '{print $2, $1, $3}' > found; \
             version=$(tail -n 1 found | cut -d' ' -f2); awk -v v=\"$version\" '$2 == v' found | sort -n | tail -n 1",
        )?;
        let mut words = newest.split_whitespace().skip(1);
        let (Some(version), Some(package)) = (words.next(), words.next()) else {
            return Err("apt offers no linux-image package".to_owned());
        };
        let deb = make(
            folder,
            &format!("{package}.deb"),
            &format!(
                "mkdir -p get && (cd get && apt-get -qq download {package}={version}) && mv get/{package}_*.deb \"$new\""
            ),
        )?;
        let release = package.trim_start_matches("linux-image-").to_owned();
        Ok(Self { release, version: version.to_owned(), deb })
    }

    /// The package's files, below `folder/tree`.
    pub(crate) fn tree(&self, folder: &Path) -> Result<PathBuf, String> {
        let deb = self.deb.display();
        make(folder, &format!("tree-{}", self.release), &format!("dpkg-deb -x '{deb}' \"$new\""))
    }

    /// An rpm as `kernel-core` is: the image, the configuration and the modules most systems need, about a quarter of all,
    /// below `/lib/modules/RELEASE`. `payload` is rpm's own word for how it is compressed.
    pub(crate) fn rpm(&self, folder: &Path, payload: &str) -> Result<PathBuf, String> {
        if let Some(tool) = missing(&["rpmbuild", "rpm2cpio", "cpio"]) {
            return Err(format!("{tool} is not installed"));
        }
        let Self { release, .. } = self;
        let tree = self.tree(folder)?;
        let script = format!(
            "cat > kernel.spec <<'END'
Name: kernel-core
Version: {version}
Release: 1
Summary: A kernel
License: GPL-2.0-only
BuildArch: x86_64
AutoReqProv: no
%global debug_package %{{nil}}
%global __os_install_post %{{nil}}
%description
A kernel.
%install
to=%{{buildroot}}/lib/modules/{release}
mkdir -p $to/kernel/drivers
cp {tree}/boot/config-{release} $to/config
cp {tree}/boot/System.map-{release} $to/System.map
cp {tree}/boot/vmlinuz-{release} $to/vmlinuz
cd {tree}/lib/modules/{release}/kernel || cd {tree}/usr/lib/modules/{release}/kernel
for part in arch block crypto fs lib mm net; do test ! -d $part || cp -r $part $to/kernel/; done
cp -r drivers/ata drivers/block drivers/md drivers/nvme drivers/scsi drivers/virtio $to/kernel/drivers/
%files
/lib/modules
END
rpmbuild --quiet -bb --target x86_64 --define '_binary_payload {payload}' --define \"_topdir $PWD/rpmbuild\" --define \"_rpmdir $PWD/rpm\" kernel.spec
rm -r rpmbuild
mv rpm/x86_64/kernel-core-*.rpm \"$new\"",
            version = release.split(['+', '-']).next().unwrap_or(release),
            tree = tree.display(),
        );
        make(folder, &format!("kernel-core-{release}.{payload}.rpm"), &script)
    }
}
