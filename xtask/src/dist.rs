//! `cargo xtask dist DIR`: the C library as it is installed.

use std::path::Path;

use anyhow::{Context as _, bail};

use crate::ci::cargo_command;

#[path = "../../crates/hipfile-capi/layout.rs"]
#[allow(dead_code, reason = "tests use the rest")]
mod layout;

/// Builds the library with a profile of cargo's and lays it out in `root`.
pub(crate) fn run(repository: &Path, root: &Path, profile: &str) -> anyhow::Result<bool> {
    const BUILD: &str =
        "build --locked --package fastpath-hipfile-capi --message-format json-render-diagnostics";
    let mut build = cargo_command(repository, BUILD);
    build.args(["--profile", profile]).stderr(std::process::Stdio::inherit());
    let output = build.output().context("cargo")?;
    if !output.status.success() {
        bail!("cargo {BUILD} --profile {profile}: {}", output.status);
    }
    let library =
        artifact(&output.stdout, "libhipfile_capi.so").context("cargo named no C library")?;
    layout::install(root, Path::new(&library))?;
    println!("{}", root.display());
    Ok(true)
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
