//! `cargo xtask dist DIR`: the C library as it is installed.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, bail};

use crate::ci::{Outcome, cargo_command, execute, installed};

#[path = "../../crates/hipfile-capi/layout.rs"]
#[allow(dead_code, reason = "tests use the rest")]
mod layout;

/// Builds the library with a profile of cargo's and lays it out in `root`.
pub(crate) fn run(repository: &Path, root: &Path, profile: &str) -> anyhow::Result<bool> {
    let library = build(repository, "fastpath-hipfile-capi", "libhipfile_capi.so", profile)?;
    // What only a debugger needs is nine tenths of it.
    let folder = tempfile::tempdir()?;
    let stripped = folder.path().join("library");
    let mut strip = Command::new("strip");
    strip.args(["--strip-unneeded", "-o"]).arg(&stripped).arg(&library);
    let library = if installed("strip") && execute(&mut strip)? == Outcome::Passed {
        stripped
    } else {
        eprintln!("not stripped, because strip is not installed or failed");
        library.into()
    };
    layout::install(root, &library)?;
    println!("{}", root.display());
    Ok(true)
}

/// Builds a package with a profile of cargo's, and gives the path of the C library that comes of it.
pub(crate) fn build(
    repository: &Path,
    package: &str,
    library: &str,
    profile: &str,
) -> anyhow::Result<String> {
    let words = format!(
        "build --locked --package {package} --profile {profile} --message-format json-render-diagnostics"
    );
    let mut build = cargo_command(repository, &words);
    let output = build.stderr(std::process::Stdio::inherit()).output().context("cargo")?;
    if !output.status.success() {
        bail!("cargo {words}: {}", output.status);
    }
    artifact(&output.stdout, library).with_context(|| format!("cargo named no {library}"))
}

/// The path of a file that cargo made, among its messages: one JSON record in each line.
pub(crate) fn artifact(messages: &[u8], name: &str) -> Option<String> {
    let messages = messages.split(|byte| *byte == b'\n');
    let records =
        messages.filter_map(|line| serde_json::from_slice::<serde_json::Value>(line).ok());
    let mut files = records.flat_map(|record| match record.get("filenames") {
        Some(serde_json::Value::Array(names)) => names.clone(),
        _ => Vec::new(),
    });
    files.find_map(|path| {
        let path = path.as_str()?;
        (Path::new(path).file_name()? == name).then(|| path.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_is_found_among_cargos_messages() {
        let messages = br#"{"reason":"compiler-artifact","filenames":["/t/libhipfile.rlib"]}
{"reason":"compiler-artifact","filenames":["/t/libhipfile_capi.rlib","/t/libhipfile_capi.so"]}
{"reason":"build-finished","success":true}
"#;
        let found = |name| artifact(messages, name);
        assert_eq!(found("libhipfile_capi.so").as_deref(), Some("/t/libhipfile_capi.so"));
        assert_eq!(found("libhipfile.so"), None);
    }
}
