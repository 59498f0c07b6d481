//! `fastpath cp`, and AMD's `aiscp`: a copy that goes through a GPU's memory.

use std::fs::{File, OpenOptions, Permissions};
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::os::unix::fs::{
    FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use hipfile::{Buffer, DeviceMemory};
use rustix::fs::{AtFlags, CWD, OFlags, linkat};

use super::moving;
use crate::args::{AiscpArgs, CpArgs};
use crate::output;

/// Bytes of one request, and of the GPU's memory.
const PIECE: usize = 16 << 20;
/// Direct requests are whole blocks.
const BLOCK: usize = 4096;
/// Copies below this are over before a bar is seen.
const LONG: u64 = 256 << 20;

pub(crate) fn run(args: &CpArgs) -> anyhow::Result<u8> {
    let path = |path: &Path| path.display().to_string();
    let source = File::open(&args.source).with_context(|| path(&args.source))?;
    let about = source.metadata().with_context(|| path(&args.source))?;
    let is_device = about.file_type().is_block_device();
    if !about.is_file() && !is_device {
        bail!("{}: neither a regular file nor a block device", path(&args.source));
    }
    let size = if is_device { device_size(&source)? } else { about.len() };
    let name = place(args)?;
    let existing = name.metadata().ok();
    if existing.as_ref().is_some_and(|one| (one.dev(), one.ino()) == (about.dev(), about.ino())) {
        bail!("{} and {} are the same file", path(&args.source), path(&name));
    }
    // A device cannot be replaced by a file.
    let in_place = args.in_place || existing.is_some_and(|one| !one.is_file());
    let target = if in_place { Target::open(name)? } else { Target::create(name)? };
    let said = copy(args, &source, size, &target).with_context(|| path(&target.name))?;
    let permissions = Permissions::from_mode(about.mode() & 0o777);
    target.finish(size, (!is_device).then_some(permissions))?;
    if !args.quiet {
        output::note(&format!("copied {size} bytes{said}"));
    }
    Ok(0)
}

/// Under the name `aiscp`: as silent, and with the exit codes of AMD's.
pub(crate) fn run_aiscp(args: &AiscpArgs) -> anyhow::Result<u8> {
    run(&CpArgs {
        source: args.source.clone(),
        destination: args.destination.clone(),
        in_place: false,
        quiet: true,
        runtime: args.runtime.clone(),
    })
}

fn device_size(device: &File) -> anyhow::Result<u64> {
    use std::io::{Seek as _, SeekFrom};
    let mut device = device;
    device.seek(SeekFrom::End(0)).context("the device's size")
}

/// The name the copy gets: in a folder that of the source, and what a link leads to instead of the link.
fn place(args: &CpArgs) -> anyhow::Result<PathBuf> {
    let mut name = args.destination.clone();
    if name.is_dir() {
        let last = args.source.file_name().context("the source has no name")?;
        name.push(last);
    }
    Ok(name.canonicalize().unwrap_or(name))
}

/// Where the bytes go, and where they end up.
struct Target {
    file: File,
    name: PathBuf,
    /// Still to be given its name.
    is_new: bool,
    /// A name of its own that must not stay behind.
    temporary: Option<PathBuf>,
}

impl Target {
    fn open(name: PathBuf) -> anyhow::Result<Self> {
        let mut options = OpenOptions::new();
        let file =
            options.read(true).write(true).create(true).truncate(false).mode(0o644).open(&name);
        let file = file.with_context(|| name.display().to_string())?;
        Ok(Self { file, name, is_new: false, temporary: None })
    }

    /// A file without a name, so that it is gone if the program ends early; with one where the file system has no such files.
    fn create(name: PathBuf) -> anyhow::Result<Self> {
        let folder = match name.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let mut options = OpenOptions::new();
        options.read(true).write(true).mode(0o600);
        let unnamed =
            options.clone().custom_flags(OFlags::TMPFILE.bits().cast_signed()).open(folder);
        if let Ok(file) = unnamed {
            return Ok(Self { file, name, is_new: true, temporary: None });
        }
        let temporary = beside(&name);
        let file = options.create_new(true).open(&temporary);
        let file = file.with_context(|| temporary.display().to_string())?;
        Ok(Self { file, name, is_new: true, temporary: Some(temporary) })
    }

    fn finish(mut self, size: u64, permissions: Option<Permissions>) -> anyhow::Result<()> {
        let name = self.name.display().to_string();
        if self.file.metadata().with_context(|| name.clone())?.is_file() {
            self.file.set_len(size).with_context(|| format!("{name}: set the length to {size}"))?;
            if let Some(permissions) = permissions {
                self.file.set_permissions(permissions).with_context(|| name.clone())?;
            }
        }
        self.file.sync_all().with_context(|| name.clone())?;
        if !self.is_new {
            return Ok(());
        }
        let temporary = if let Some(temporary) = &self.temporary {
            temporary.clone()
        } else {
            let temporary = beside(&self.name);
            let own = format!("/proc/self/fd/{}", self.file.as_fd().as_raw_fd());
            linkat(CWD, own.as_str(), CWD, &temporary, AtFlags::SYMLINK_FOLLOW)
                .with_context(|| temporary.display().to_string())?;
            self.temporary = Some(temporary.clone());
            temporary
        };
        std::fs::rename(&temporary, &self.name).with_context(|| name)?;
        self.temporary = None;
        Ok(())
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            let _ = std::fs::remove_file(temporary);
        }
    }
}

/// A name in the same folder that nobody else has.
fn beside(name: &Path) -> PathBuf {
    let mut last = std::ffi::OsString::from(".");
    last.push(name.file_name().unwrap_or_default());
    last.push(format!(".fastpath-{}", std::process::id()));
    name.with_file_name(last)
}

/// Moves the bytes, and says which way.
fn copy(args: &CpArgs, source: &File, size: u64, target: &Target) -> anyhow::Result<String> {
    if size == 0 {
        return Ok(String::new());
    }
    let driver = moving::driver(&args.runtime, &[])?;
    if driver.is_simulation()? && !args.quiet {
        moving::warn_of_simulation(&driver)?;
    }
    let from = driver.register(source.try_clone()?)?;
    let to = driver.register(target.file.try_clone()?)?;
    let length = usize::try_from(size).unwrap_or(PIECE).min(PIECE).next_multiple_of(BLOCK);
    let mut memory = DeviceMemory::allocate(&driver, length)?;
    let mut buffer = Buffer::new(&driver, &mut memory)?;
    // What stands behind the end of a file is cut off afterwards; of a device it is somebody's.
    let may_exceed = target.file.metadata()?.is_file();
    let template = "{bar:30} {bytes}/{total_bytes} {bytes_per_sec} {eta}";
    let bar = moving::bar(size, args.quiet || size < LONG, template);
    let (mut offset, mut reads, mut writes) = (0, 0, 0);
    while offset < size {
        // Whole blocks, also at the end, so that the fastpath takes them.
        let read = from.read_at(&mut buffer, 0..length, offset).context("read")?;
        reads += 1;
        let rest = usize::try_from(size - offset).unwrap_or(length);
        let read = read.min(rest);
        if read == 0 {
            bail!("the source ended at {offset}, expected {size} bytes");
        }
        let mut done = 0;
        while done < read {
            let end = if may_exceed { read.next_multiple_of(BLOCK) } else { read };
            let wrote = to.write_at(&buffer, done..end, offset + done as u64).context("write")?;
            writes += 1;
            if wrote == 0 {
                bail!("the file takes no more at {}", offset + done as u64);
            }
            done += wrote;
        }
        offset += read as u64;
        bar.inc(read as u64);
    }
    bar.finish_and_clear();
    Ok(format!(": read by {}; written by {}", way(&from, reads), way(&to, writes)))
}

/// Which way requests on a file went, and why not the fastpath.
fn way(file: &hipfile::File, requests: u64) -> String {
    let reasons = file.reasons();
    let refused: u64 = reasons.iter().map(|(_, count)| count).sum();
    let why: Vec<&str> = reasons.iter().map(|(reason, _)| reason.text()).collect();
    let why = why.join(", ");
    match refused {
        0 => "the fastpath".to_owned(),
        refused if refused >= requests => format!("the fallback ({why})"),
        refused => {
            format!("the fastpath, {refused} of {requests} requests by the fallback ({why})")
        }
    }
}
