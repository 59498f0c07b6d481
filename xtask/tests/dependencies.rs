//! What the runtime library may link: it is loaded into other people's programs, so the crates below it are few and
//! known by name. None reads archives, none opens connections.

use std::collections::BTreeSet;
use std::process::Command;

/// The crates linked into `package` with these of its features, build-time crates and macros included.
fn linked(package: &str, features: &str) -> BTreeSet<String> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--locked", "--offline", "--edges", "normal", "--no-default-features"])
        .args(["--features", features])
        .args(["--prefix", "none", "--format", "{lib}", "--no-dedupe", "--package", package])
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let names = String::from_utf8(output.stdout).expect("crate names are UTF-8");
    names.lines().map(str::to_owned).collect()
}

/// Compares exactly, so that a crate that comes or goes is seen in review.
fn assert_linked(package: &str, features: &str, expected: &str) {
    let found = linked(package, features);
    let expected: BTreeSet<String> = expected.split_whitespace().map(str::to_owned).collect();
    let came: Vec<_> = found.difference(&expected).collect();
    let went: Vec<_> = expected.difference(&found).collect();
    assert!(
        came.is_empty() && went.is_empty(),
        "{package}: came: {came:?}; went: {went:?}; if that is meant, change the list here"
    );
}

#[test]
fn kconfig() {
    assert_linked(
        "fastpath-kconfig",
        "",
        "aho_corasick fastpath_kconfig flate2 memchr proc_macro2 quote serde \
         serde_core serde_derive syn thiserror thiserror_impl unicode_ident zlib_rs",
    );
}

#[test]
fn knowledge() {
    assert_linked(
        "fastpath-knowledge",
        "",
        "fastpath_knowledge proc_macro2 quote rpm_version serde serde_core serde_derive serde_spanned syn thiserror \
         thiserror_impl toml toml_datetime toml_parser unicode_ident winnow",
    );
}

const HOST: &str = "aho_corasick bitflags fastpath_host fastpath_kconfig fastpath_knowledge \
                    flate2 linux_raw_sys memchr proc_macro2 quote rpm_version rustix serde serde_core \
                    serde_derive serde_spanned syn thiserror thiserror_impl toml toml_datetime \
                    toml_parser unicode_ident winnow zlib_rs";

#[test]
fn host_without_snapshots() {
    assert_linked("fastpath-host", "", HOST);
}

/// Reading what a library exports brings one crate, and none that unpacks anything.
#[test]
fn host_with_the_reader_of_libraries() {
    assert_linked("fastpath-host", "runtime", &format!("{HOST} object"));
}

#[test]
fn verdict() {
    assert_linked("fastpath-verdict", "", &format!("{HOST} fastpath_verdict"));
}

/// Not linked into the product, but loaded into clients as HIP would be.
#[test]
fn hip_sim() {
    assert_linked("fastpath-hip-sim", "", "hip_sim libc");
}

#[test]
fn hipfile() {
    let more = "cfg_if fastpath_gpu fastpath_verdict hipfile libc libloading";
    assert_linked("hipfile", "", &format!("{HOST} {more}"));
}

/// Loaded into programs that were built for AMD's library.
#[test]
fn hipfile_capi() {
    let more = "cfg_if fastpath_gpu fastpath_verdict hipfile hipfile_capi libc libloading";
    assert_linked("fastpath-hipfile-capi", "", &format!("{HOST} {more}"));
}

/// The list above is worth something only if the feature it leaves out would be seen.
#[test]
fn snapshots_would_be_seen() {
    let archive_crates = ["ruzstd", "tar"].map(str::to_owned);
    assert!(linked("fastpath", "").is_superset(&BTreeSet::from(archive_crates)));
}
