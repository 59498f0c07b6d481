//! `cargo xtask dist DIR`: the C library as it is installed.

use std::path::Path;

use anyhow::{Context as _, bail};

use crate::ci::cargo_command;

#[path = "../../crates/hipfile-capi/layout.rs"]
#[allow(dead_code, reason = "tests use the rest")]
mod layout;

/// Builds the library and lays it out in `root`.
pub(crate) fn run(repository: &Path, root: &Path) -> anyhow::Result<bool> {
    const BUILD: &str = "build --release --locked --package fastpath-hipfile-capi --message-format json-render-diagnostics";
    let mut build = cargo_command(repository, BUILD);
    let output = build.stderr(std::process::Stdio::inherit()).output().context("cargo")?;
    if !output.status.success() {
        bail!("cargo {BUILD}: {}", output.status);
    }
    let library = library(&output.stdout).context("cargo named no C library")?;
    layout::install(root, Path::new(&library))?;
    println!("{}", root.display());
    Ok(true)
}

/// The path of the C library among cargo's messages, one JSON record in each line.
fn library(messages: &[u8]) -> Option<String> {
    let messages = messages.split(|byte| *byte == b'\n');
    let records =
        messages.filter_map(|line| serde_json::from_slice::<serde_json::Value>(line).ok());
    let mut files = records.flat_map(|record| match record.get("filenames") {
        Some(serde_json::Value::Array(names)) => names.clone(),
        _ => Vec::new(),
    });
    files.find_map(|name| {
        name.as_str().filter(|name| name.ends_with("/libhipfile_capi.so")).map(str::to_owned)
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
        assert_eq!(library(messages).as_deref(), Some("/t/libhipfile_capi.so"));
        assert_eq!(library(b"{\"reason\":\"build-finished\"}\n"), None);
    }
}
