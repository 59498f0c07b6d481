//! rpm packages and repositories, made with `rpmbuild` and `createrepo_c`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::run;

/// A package that is to be built.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spec<'a> {
    pub(crate) name: &'a str,
    pub(crate) epoch: u32,
    pub(crate) version: &'a str,
    pub(crate) release: &'a str,
    pub(crate) arch: &'a str,
    pub(crate) payload: &'a str,
    /// The path of the configuration in it.
    pub(crate) member: &'a str,
    pub(crate) config: &'a str,
    /// Bytes behind the configuration that do not compress.
    pub(crate) noise: usize,
}

impl Spec<'_> {
    /// The name of the package's file.
    pub(crate) fn file(&self) -> String {
        format!("{}-{}-{}.{}.rpm", self.name, self.version, self.release, self.arch)
    }
}

/// Builds a package into `folder`; gives its path.
pub(crate) fn rpmbuild(folder: &Path, spec: &Spec<'_>) -> PathBuf {
    let work = tempfile::tempdir().unwrap();
    let Spec { name, epoch, version, release, arch, payload, member, config, noise } = spec;
    let text = format!(
        "Name: {name}\nEpoch: {epoch}\nVersion: {version}\nRelease: {release}\nSummary: A & B <test>\n\
         License: none\n%description\nA kernel.\n%install\nmkdir -p %{{buildroot}}{folder}\n\
         cp {work}/config %{{buildroot}}{member}\ncp {work}/noise %{{buildroot}}{folder}/vmlinuz\n\
         %files\n{member}\n{folder}/vmlinuz\n",
        folder = member.rsplit_once('/').unwrap().0,
        work = work.path().display(),
    );
    let path = work.path().join("package.spec");
    fs::write(&path, text).unwrap();
    fs::write(work.path().join("config"), config).unwrap();
    fs::write(work.path().join("noise"), super::noise(*noise)).unwrap();
    let define = |name: &str, value: &str| format!("{name} {value}");
    let top = work.path().display().to_string();
    run(Command::new("rpmbuild")
        .args(["-bb", "--quiet", "--target", arch])
        .args(["--define", &define("_topdir", &top), "--define", &define("_rpmdir", &top)])
        .args(["--define", &define("_binary_payload", payload)])
        .args(["--define", "__os_install_post %{nil}", "--define", "_build_id_links none"])
        .args(["--define", "_rpmfilename %%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm"])
        .arg(&path));
    fs::create_dir_all(folder).unwrap();
    fs::copy(work.path().join(spec.file()), folder.join(spec.file())).unwrap();
    folder.join(spec.file())
}

pub(crate) fn createrepo(folder: &Path, options: &[&str]) {
    run(Command::new("createrepo_c").arg("--quiet").args(options).arg(folder));
}
