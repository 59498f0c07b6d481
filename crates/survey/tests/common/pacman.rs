//! pacman databases as `repo-add` writes them, made by hand with tar.

use std::fs;
use std::path::Path;
use std::process::Command;

use fastpath_survey::trust::{Digest, DigestKind};

use super::run;

/// The `desc` of a package whose file has these bytes.
pub(crate) fn desc(name: &str, version: &str, bytes: &[u8], more: &str) -> String {
    format!(
        "%FILENAME%\n{name}-{version}-x86_64.pkg.tar.zst\n\n%NAME%\n{name}\n\n%BASE%\n{name}\n\n%VERSION%\n{version}\n\n\
         %DESC%\nA package\n\n%CSIZE%\n{}\n\n%ISIZE%\n1000\n\n%SHA256SUM%\n{}\n\n{more}%ARCH%\nx86_64\n\n\
         %DEPENDS%\ncoreutils\nkmod\n\n",
        bytes.len(),
        Digest::of(DigestKind::Sha256, bytes).hex(),
    )
}

/// Writes the database of these descs to `file`.
pub(crate) fn database(file: &Path, descs: &[String], compression: &str) {
    let work = tempfile::tempdir().unwrap();
    for (at, desc) in descs.iter().enumerate() {
        let package = work.path().join(format!("package-{at}"));
        fs::create_dir(&package).unwrap();
        fs::write(package.join("desc"), desc).unwrap();
        fs::write(package.join("files"), "%FILES%\nusr/\n").unwrap();
    }
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    tar(work.path(), file, compression);
}

/// Packs everything below `folder`.
pub(crate) fn tar(folder: &Path, file: &Path, compression: &str) {
    let mut command = Command::new("tar");
    command.arg("-C").arg(folder).arg(format!("--{compression}")).arg("-cf").arg(file);
    run(command.arg("."));
}
