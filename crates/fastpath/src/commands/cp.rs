//! `fastpath cp`, and AMD's `aiscp`: a copy that goes through a GPU's memory.

use std::fs::{File, Metadata, OpenOptions, Permissions};
use std::io::ErrorKind;
use std::ops::Range;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::os::unix::fs::{
    FileExt as _, FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use hipfile::{Buffer, DeviceMemory};
use rustix::fs::{Access, AtFlags, CWD, OFlags, SeekFrom, access, linkat, seek};
use rustix::io::Errno;

use super::moving;
use crate::args::{AiscpArgs, CpArgs};
use crate::{ending, output};

/// Bytes of one request, and of the GPU's memory.
const PIECE: usize = 16 << 20;
/// Direct requests are whole blocks.
const BLOCK: usize = 4096;
/// Copies below this are over before a bar is seen.
const LONG: u64 = 256 << 20;

/// What is done where a folder takes no new files but the file in it may be written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Otherwise {
    Fail,
    InPlace,
}

pub(crate) fn run(args: &CpArgs) -> anyhow::Result<u8> {
    transfer(args, Otherwise::Fail)
}

/// Under the name `aiscp`: as silent, and with the exit codes of AMD's. That writes into the file that is there, so it may be used
/// where this is all that can be done.
pub(crate) fn run_aiscp(args: &AiscpArgs) -> anyhow::Result<u8> {
    let args = CpArgs {
        source: args.source.clone(),
        destination: args.destination.clone(),
        in_place: false,
        quiet: true,
        runtime: args.runtime.clone(),
    };
    transfer(&args, Otherwise::InPlace)
}

fn transfer(args: &CpArgs, otherwise: Otherwise) -> anyhow::Result<u8> {
    let source = Source::open(&args.source)?;
    let name = place(args)?;
    let existing = match name.metadata() {
        Ok(about) => Some(about),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(error).with_context(|| shown(&name)),
    };
    if let Some(about) = &existing {
        must_be_storage(&name, about)?;
        if source.is(about) {
            bail!("{} and {} are the same file", shown(&args.source), shown(&name));
        }
    }
    // A device cannot be replaced by a file.
    let is_device = existing.as_ref().is_some_and(|one| one.file_type().is_block_device());
    let in_place = args.in_place
        || is_device
        || otherwise == Otherwise::InPlace
            && existing.is_some()
            && access(folder(&name), Access::WRITE_OK).is_err();
    ending::prepare(match (in_place, &existing) {
        (true, _) => format!("{} may be half a copy", shown(&name)),
        (false, Some(_)) => format!("{} is as it was", shown(&name)),
        (false, None) => format!("{} was not made", shown(&name)),
    })?;
    let target = if in_place { Target::open(name, is_device)? } else { Target::create(name)? };
    let size = source.size;
    if is_device {
        let room = device_size(&target.file)?;
        if room < size {
            bail!("{}: expected room for {size} bytes, found {room}", shown(&target.name));
        }
    }
    let said = copy(args, &source, &target)?;
    // A file that was there keeps what it had.
    let permissions = if in_place && existing.is_some() { None } else { source.permissions() };
    target.finish(size, permissions)?;
    if !args.quiet {
        output::note(&format!("copied {size} bytes{said}"));
        let now = source.size_now()?;
        if now > size {
            let name = shown(&args.source);
            output::note(&format!("warning: {name} has grown to {now} bytes meanwhile"));
        }
    }
    Ok(0)
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// Pipes, terminals and the like have no offsets, and opening them may wait for somebody.
fn must_be_storage(path: &Path, about: &Metadata) -> anyhow::Result<()> {
    if !about.is_file() && !about.file_type().is_block_device() {
        bail!("{}: neither a regular file nor a block device", shown(path));
    }
    Ok(())
}

fn device_size(device: &File) -> anyhow::Result<u64> {
    seek(device, SeekFrom::End(0)).context("the device's size")
}

/// The name the copy gets: in a folder that of the source, and what a link leads to instead of the link.
fn place(args: &CpArgs) -> anyhow::Result<PathBuf> {
    let mut name = args.destination.clone();
    if name.is_dir() {
        let last = args.source.file_name().context("the source has no name")?;
        name.push(last);
    } else if name.as_os_str().as_encoded_bytes().ends_with(b"/") {
        bail!("{}: there is no such folder", shown(&name));
    }
    if name.is_symlink() && !name.exists() {
        bail!("{}: a link that leads nowhere", shown(&name));
    }
    Ok(name.canonicalize().unwrap_or(name))
}

fn folder(name: &Path) -> &Path {
    name.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// What is copied: as many bytes as it had when it was opened.
struct Source {
    file: File,
    about: Metadata,
    size: u64,
}

impl Source {
    fn open(path: &Path) -> anyhow::Result<Self> {
        must_be_storage(path, &path.metadata().with_context(|| shown(path))?)?;
        let file = File::open(path).with_context(|| shown(path))?;
        let about = file.metadata().with_context(|| shown(path))?;
        let mut source = Self { file, about, size: 0 };
        source.size = source.size_now()?;
        // Files of the kernel's own that are made when they are read.
        if source.size == 0 && source.file.read_at(&mut [0], 0).with_context(|| shown(path))? > 0 {
            bail!("{}: expected no bytes, as its size says, but there are some", shown(path));
        }
        Ok(source)
    }

    fn is_device(&self) -> bool {
        self.about.file_type().is_block_device()
    }

    fn size_now(&self) -> anyhow::Result<u64> {
        if self.is_device() {
            return device_size(&self.file);
        }
        Ok(self.file.metadata().context("the source")?.len())
    }

    /// A device may have several names, a file too.
    fn is(&self, other: &Metadata) -> bool {
        if self.is_device() {
            return other.file_type().is_block_device() && other.rdev() == self.about.rdev();
        }
        (other.dev(), other.ino()) == (self.about.dev(), self.about.ino())
    }

    /// What a copy of a file gets; a device's are about who may use the device.
    fn permissions(&self) -> Option<Permissions> {
        (!self.is_device()).then(|| Permissions::from_mode(self.about.mode() & 0o777))
    }

    /// The next bytes from `from` on that are not a hole, in whole blocks but for the end; none up to the end.
    fn data(&self, from: u64) -> anyhow::Result<Option<Range<u64>>> {
        const WHOLE: u64 = BLOCK as u64;
        if from >= self.size {
            return Ok(None);
        }
        let start = match seek(&self.file, SeekFrom::Data(from)) {
            Ok(start) => start,
            Err(Errno::NXIO) => return Ok(None),
            // A file system that does not say.
            Err(Errno::INVAL | Errno::OPNOTSUPP) => return Ok(Some(from..self.size)),
            Err(errno) => return Err(errno).context("look for holes"),
        };
        let end = match seek(&self.file, SeekFrom::Hole(start)) {
            Ok(end) => end.next_multiple_of(WHOLE).min(self.size),
            Err(_) => self.size,
        };
        Ok((start < self.size).then_some((start / WHOLE * WHOLE).max(from)..end))
    }
}

/// Where the bytes go, and where they end up.
struct Target {
    file: File,
    name: PathBuf,
    /// Still to be given its name, and without a byte in it.
    is_new: bool,
    /// Already under a name that must not stay behind.
    is_named: bool,
}

impl Target {
    fn open(name: PathBuf, is_device: bool) -> anyhow::Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(!is_device).truncate(false).mode(0o644);
        if is_device {
            // Not one that is mounted or used otherwise.
            options.custom_flags(OFlags::EXCL.bits().cast_signed());
        }
        let file = options.open(&name).with_context(|| shown(&name))?;
        Ok(Self { file, name, is_new: false, is_named: false })
    }

    /// A file without a name where the file system has such, so that even a kill leaves nothing.
    fn create(name: PathBuf) -> anyhow::Result<Self> {
        let (file, is_named) = moving::temporary(folder(&name))?;
        Ok(Self { file, name, is_new: true, is_named })
    }

    fn finish(self, size: u64, permissions: Option<Permissions>) -> anyhow::Result<()> {
        let name = || shown(&self.name);
        if self.file.metadata().with_context(name)?.is_file() {
            let what = || format!("{}: set the length to {size}", shown(&self.name));
            self.file.set_len(size).with_context(what)?;
            if let Some(permissions) = permissions {
                self.file.set_permissions(permissions).with_context(name)?;
            }
        }
        self.file.sync_all().with_context(name)?;
        if !self.is_new {
            return Ok(());
        }
        if !self.is_named {
            let own = format!("/proc/self/fd/{}", self.file.as_fd().as_raw_fd());
            ending::make(folder(&self.name), |path| {
                Ok(linkat(CWD, own.as_str(), CWD, path, AtFlags::SYMLINK_FOLLOW)?)
            })?;
        }
        ending::rename(&self.name)
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        let _ = ending::remove();
    }
}

/// Moves the bytes, and says which way.
fn copy(args: &CpArgs, source: &Source, target: &Target) -> anyhow::Result<String> {
    let size = source.size;
    if size == 0 {
        return Ok(String::new());
    }
    let driver = moving::driver(&args.runtime, &[])?;
    if driver.is_simulation()? && !args.quiet {
        moving::warn_of_simulation(&driver)?;
    }
    let reads_from = || format!("{}: read", shown(&args.source));
    let writes_to = || format!("{}: write", shown(&target.name));
    let from = driver.register(source.file.try_clone()?).with_context(reads_from)?;
    let to = driver.register(target.file.try_clone()?).with_context(writes_to)?;
    let length = usize::try_from(size).unwrap_or(PIECE).min(PIECE).next_multiple_of(BLOCK);
    let mut memory = DeviceMemory::allocate(&driver, length)?;
    let mut buffer = Buffer::new(&driver, &mut memory)?;
    // What stands behind the end of a file is cut off afterwards; of a device it is somebody's.
    let may_exceed = target.file.metadata().with_context(writes_to)?.is_file();
    // A new file is a hole, whatever else is not.
    let is_sparse = target.is_new && !source.is_device();
    let template = "{bar:30} {bytes}/{total_bytes} {bytes_per_sec} {eta}";
    let bar = moving::Bar::new(size, args.quiet || size < LONG, template);
    let (mut offset, mut reads, mut writes) = (0, 0, 0);
    loop {
        let run = if is_sparse {
            source.data(offset).with_context(reads_from)?
        } else {
            Some(offset..size)
        };
        let Some(run) = run.filter(|run| !run.is_empty()) else { break };
        offset = run.start;
        let wanted = usize::try_from(run.end - offset).unwrap_or(length).min(length);
        // Whole blocks, also at the end, so that the fastpath takes them.
        let whole = wanted.next_multiple_of(BLOCK);
        let read =
            from.read_at(&mut buffer, 0..whole, offset).with_context(reads_from)?.min(wanted);
        reads += 1;
        if read == 0 {
            return Err(shrunk(&args.source, offset, size));
        }
        let mut done = 0;
        while done < read {
            let end = if may_exceed { read.next_multiple_of(BLOCK) } else { read };
            let wrote =
                to.write_at(&buffer, done..end, offset + done as u64).with_context(writes_to)?;
            writes += 1;
            if wrote == 0 {
                let at = offset + done as u64;
                bail!("{}: the file takes no more at {at}", shown(&target.name));
            }
            done += wrote;
        }
        offset += read as u64;
        bar.set_position(offset);
    }
    drop(bar);
    // Behind the end it looks like a hole.
    let now = source.size_now()?;
    if now < size {
        return Err(shrunk(&args.source, now, size));
    }
    if reads == 0 {
        return Ok(": all of it a hole".to_owned());
    }
    let (read, written) = (way(&from, reads), way(&to, writes));
    if read == written {
        return Ok(format!(": read and written by {read}"));
    }
    Ok(format!(": read by {read}; written by {written}"))
}

fn shrunk(source: &Path, at: u64, size: u64) -> anyhow::Error {
    anyhow::anyhow!("{}: ended at {at}, expected {size} bytes", shown(source))
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
