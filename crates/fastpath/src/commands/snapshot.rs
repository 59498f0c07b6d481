//! `fastpath snapshot`.

use std::path::Path;

use fastpath_host::snapshot::{Meta, Recorder, Replay, same_facts, write, write_file};
use fastpath_host::{Asked, DirTree, Facts, gather};

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
    if !to_stdout && !args.force && path.symlink_metadata().is_ok() {
        let message = format!("{}: exists already", path.display());
        return Err(Hinted { message, hint: "`--force` replaces it".to_owned() }.into());
    }
    let root = args.root.as_deref().unwrap_or(Path::new("/"));
    let tree = DirTree::open(root)?;
    let recorder = Recorder::new(&tree);
    let facts = gather(&recorder, &Asked::Running);
    let now = jiff::Timestamp::from_second(jiff::Timestamp::now().as_second())?;
    let meta = Meta::new(env!("CARGO_PKG_VERSION"), &now.to_string());
    let meta = if args.root.is_none() { meta.with_uname() } else { meta };
    // A snapshot that does not give the same facts back is worth nothing; better to know now.
    let mut archive = Vec::new();
    write(&recorder, &meta, &mut archive)?;
    let replayed = gather(&Replay::from_bytes(archive.clone())?, &Asked::Running);
    anyhow::ensure!(
        same_facts(&facts, &replayed),
        "the snapshot does not give the same facts as this root"
    );
    if to_stdout {
        output::bytes(&archive)?;
    } else {
        write_file(&recorder, &meta, path)?;
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
