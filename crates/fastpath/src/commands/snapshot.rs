//! `fastpath snapshot`.

use std::collections::BTreeMap;
use std::path::Path;

use fastpath_host::snapshot::{
    Existing, Meta, Recorder, Replay, WriteError, same_facts, write, write_file,
};
use fastpath_host::{Asked, DirTree, Facts, Scope, Tree, gather_layers};

use crate::args::SnapshotArgs;
use crate::error::Hinted;
use crate::output;

/// What the archive is called when nobody says.
const DEFAULT_NAME: &str = "fastpath-snapshot.tar.zst";

pub(crate) fn run(args: &SnapshotArgs) -> anyhow::Result<u8> {
    let path = args.output.as_deref().unwrap_or(Path::new(DEFAULT_NAME));
    let to_stdout = path == Path::new("-");
    if path.is_dir() {
        anyhow::bail!("{}: a directory; expected a file name for the archive", path.display());
    }
    // Now and not only after all the reading.
    if !to_stdout && !args.force && path.symlink_metadata().is_ok() {
        return Err(explained(WriteError::Exists(path.to_owned())));
    }
    if to_stdout && is_closed() {
        anyhow::bail!("standard output: closed, or nobody reads what is written there");
    }
    let root = args.root.as_deref().unwrap_or(Path::new("/"));
    let tree = DirTree::open(root)?;
    let now = jiff::Timestamp::from_second(jiff::Timestamp::now().as_second())?;
    let meta = Meta::new(env!("CARGO_PKG_VERSION"), &now.to_string());
    let meta = if args.root.is_none() { meta.with_uname() } else { meta };
    // The environment of whoever takes the snapshot names folders of theirs, and is not that of the program asked about.
    let variables = BTreeMap::new();
    let (facts, archive) = record(&tree, &meta, &variables)?;
    // A snapshot that does not give the same facts back is worth nothing; better to know now.
    let replayed = all(&Replay::from_bytes(archive.clone())?, &variables);
    anyhow::ensure!(
        same_facts(&facts, &replayed),
        "the snapshot does not give the same facts as this root"
    );
    if to_stdout {
        output::bytes(&archive)?;
    } else {
        let existing = if args.force { Existing::Replace } else { Existing::Keep };
        write_file(&archive, path, existing).map_err(explained)?;
        output::note(&format!("wrote {}, {} bytes", path.display(), archive.len()));
    }
    let unread = unread(&facts);
    if !unread.is_empty() {
        let line = format!("warning: could not be read: {}", unread.join("; "));
        output::note(&line);
        output::note("hint: run as root for a snapshot with everything in it");
    }
    Ok(0)
}

/// Every layer: a snapshot answers whatever may be asked.
fn all(tree: &dyn Tree, variables: &BTreeMap<String, String>) -> Facts {
    gather_layers(tree, &Asked::Running, Scope::ALL, variables)
}

/// The facts of a host and the archive of what they were found in. What was read is in memory no longer than this.
fn record(
    tree: &DirTree,
    meta: &Meta,
    variables: &BTreeMap<String, String>,
) -> anyhow::Result<(Facts, Vec<u8>)> {
    let recorder = Recorder::new(tree);
    let facts = all(&recorder, variables);
    let mut archive = Vec::new();
    write(&recorder, meta, &mut archive)?;
    Ok((facts, archive))
}

/// The error, with what to do if there is something.
fn explained(error: WriteError) -> anyhow::Error {
    let hint = match error {
        WriteError::Exists(_) => "`--force` replaces it",
        WriteError::Dangling(_) => "name the file it should lead to, or remove the link",
        other => return other.into(),
    };
    Hinted { message: error.to_string(), hint: hint.to_owned() }.into()
}

/// Whether standard output was closed when this program started. Rust's runtime opens `/dev/null` for reading and writing
/// in its place then, which takes everything and keeps nothing; who wants that opens it for writing.
fn is_closed() -> bool {
    let stdout = std::io::stdout();
    let null = rustix::fs::stat("/dev/null").ok().map(|stat| stat.st_rdev);
    let found = rustix::fs::fstat(&stdout).ok();
    let is_null = found.is_some_and(|stat| {
        rustix::fs::FileType::from_raw_mode(stat.st_mode).is_char_device()
            && Some(stat.st_rdev) == null
    });
    let both = rustix::fs::fcntl_getfl(&stdout)
        .is_ok_and(|flags| flags & rustix::fs::OFlags::RWMODE == rustix::fs::OFlags::RDWR);
    is_null && both
}

/// What more privilege might have read.
fn unread(facts: &Facts) -> Vec<String> {
    let kernel = &facts.kernel;
    let installed = kernel.installed.iter().flat_map(|one| one.witnesses.iter());
    let files = kernel.witnesses.iter().chain(installed).filter(|witness| witness.permission);
    let mut unread: Vec<String> = files.map(|witness| witness.path.clone()).collect();
    unread.extend(kernel.unlisted.iter().map(|(path, _)| path.clone()));
    if kernel.next_boot.permission {
        unread.push("the boot loader's files".to_owned());
    }
    unread.sort();
    unread.dedup();
    unread
}
