//! Container images in a folder.
//!
//! Source: <https://github.com/opencontainers/image-spec/blob/main/image-layout.md>.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::bail;
use fastpath_artifact::{Finder, Found, Summary};
use serde_json::Value;

use crate::output;

/// The most bytes of an index or a manifest, as container tools have it.
const LARGEST: u64 = 4 << 20;

/// The most indexes and manifests that are read.
const MOST: usize = 1000;

/// Looks into all blobs of a folder, and says which of those the image is made of are not there.
pub(super) fn find(
    folder: &Path,
    mut finder: Finder,
    name: &str,
    sink: &mut dyn FnMut(Found),
) -> anyhow::Result<Summary> {
    if !folder.join("oci-layout").is_file() {
        bail!("a directory; expected a file or a folder in OCI layout");
    }
    let summary = finder.find_in_layout(folder, name, sink)?;
    let shown = folder.display();
    match json(folder, &folder.join("index.json")) {
        Some(index) => {
            for digest in missing(folder, index) {
                output::note(&format!("warning: {shown}: it has no blob `{digest}`"));
            }
        }
        None => output::note(&format!("warning: {shown}: it has no readable index.json")),
    }
    Ok(summary)
}

/// Digests that the index and what it leads to name, and that no file in the folder has.
fn missing(folder: &Path, index: Value) -> BTreeSet<String> {
    let (mut missing, mut seen) = (BTreeSet::new(), BTreeSet::new());
    let mut queue = vec![index];
    while let Some(document) = queue.pop().filter(|_| seen.len() < MOST) {
        for list in ["manifests", "layers"] {
            let entries = document.get(list).and_then(Value::as_array);
            for digest in entries.into_iter().flatten().filter_map(|entry| entry["digest"].as_str())
            {
                match blob(folder, digest) {
                    None => drop(missing.insert(digest.to_owned())),
                    Some(path) if list == "manifests" && seen.insert(digest.to_owned()) => {
                        queue.extend(json(folder, &path));
                    }
                    Some(_) => {}
                }
            }
        }
    }
    missing
}

/// The file a digest names; `None` if there is none in the folder.
fn blob(folder: &Path, digest: &str) -> Option<PathBuf> {
    let (algorithm, sum) = digest.split_once(':')?;
    let sound = |text: &str| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '_' | '-');
        !text.is_empty() && text.chars().all(is_plain)
    };
    let path = folder.join("blobs").join(algorithm).join(sum);
    (sound(algorithm) && sound(sum) && path.is_file()).then_some(path)
}

/// A document inside the folder.
fn json(folder: &Path, path: &Path) -> Option<Value> {
    let path = path.canonicalize().ok()?;
    // Whatever is no regular file would be waited for.
    if !(path.is_file() && path.starts_with(folder.canonicalize().ok()?)) {
        return None;
    }
    let mut text = Vec::new();
    File::open(path).ok()?.take(LARGEST).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}
