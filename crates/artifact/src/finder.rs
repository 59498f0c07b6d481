//! The search itself: what a stream is, what is in it, and which kernel that belongs to.

mod layout;
mod volumes;

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::hash::{BuildHasher as _, RandomState};
use std::io::{Read, SeekFrom};
use std::path::Path;

use fastpath_kconfig::{Defect, Text};
use fastpath_knowledge::Release;

use crate::container::{ar, cpio, rpm, tar};
use crate::decompress::{Compression, Tail, is_lzop, open};
use crate::disk;
use crate::error::Error;
use crate::fail::{FATAL, Failure, Place, printable};
use crate::found::{Evidence, Found};
use crate::image::{self, Image};
use crate::limits::Limits;
use crate::names::{self, Candidate, Kind};
use crate::source::{
    Base, Counted, Input, Member, Peeked, Shared, Source, len_u64, len_usize, read_full, read_up_to,
};
use crate::symbols::{self, List};
use crate::{ReadSeek, text};

/// How much of a member is looked at to tell what it is.
const HEAD: usize = 4096;

/// How much of the input: the mark of an optical disc is after 32 KiB.
const INPUT_HEAD: usize = 36 << 10;

/// How many kernels one input may hold.
const MAX_KERNELS: usize = 4096;

/// How many bytes of configurations without a release are kept. Real ones have 300 kB.
const MAX_NAMELESS: usize = 8 << 20;

/// How many packages of kernels that a package depends on are kept.
const MAX_DEPENDS: usize = 8;

/// How many errors are kept.
const MAX_ERRORS: usize = 64;

/// Finds kernels in anything.
#[derive(Clone, Copy, Debug)]
pub struct Finder {
    limits: Limits,
    first: bool,
}

/// What a search did.
#[derive(Debug, Default)]
pub struct Summary {
    /// How many bytes of the input were read. What was left out is not counted.
    pub bytes_read: u64,
    /// How many members of containers were seen.
    pub members: u64,
    /// How many kernels were found.
    pub found: u64,
    /// Packages of kernels that a Debian package depends on, by name: what to look into if it holds none itself.
    pub depends: Vec<String>,
    /// What went wrong in parts and did not stop the rest, the first 64 of it.
    pub errors: Vec<Error>,
    /// How many more errors there were.
    pub more_errors: u64,
}

impl Finder {
    /// A finder that keeps to `limits`; with `first` it stops at the first configuration.
    pub const fn new(limits: Limits, first: bool) -> Self {
        Self { limits, first }
    }

    /// Finds the kernels in `input`, whose own name, `name`, is used in errors and may say which kernel it is. Each is
    /// given to `sink` as soon as it is found; weaker evidence, which a configuration further on would replace, and a
    /// configuration without a release, a copy of which may have one, at the end.
    ///
    /// A package that says which kernel it holds is read up to that kernel's configuration and no further. Any other
    /// input is read to its end. Two members with the same content and release are given
    /// once, and one without a release only if no copy has one.
    ///
    /// # Errors
    ///
    /// An [`Error`] when the input as a whole gives nothing more: it cannot be read, is none of the known formats, is
    /// damaged itself, or goes over a bound. Kernels may have been given before. What goes wrong in a part of it is in
    /// the [`Summary`].
    pub fn find(
        &mut self,
        input: &mut dyn ReadSeek,
        name: &str,
        sink: &mut dyn FnMut(Found),
    ) -> Result<Summary, Error> {
        // Files of /proc have no length, pipes no position: they are read as they come.
        let length = input
            .seek(SeekFrom::End(0))
            .and_then(|length| input.seek(SeekFrom::Start(0)).map(|_| length))
            .unwrap_or(0);
        if length == 0 {
            return self.find_in_stream(input, name, sink);
        }
        let shared = Shared::new(self.limits);
        let place = Place::root(name);
        let mut search = self.search(&shared, sink);
        let result = search.file(&place, input, length, &Hint::of_input(name, true));
        search.end(result)
    }

    /// As [`find`](Self::find), in an input that cannot be rewound.
    ///
    /// # Errors
    ///
    /// As [`find`](Self::find).
    pub fn find_in_stream(
        &mut self,
        input: &mut dyn Read,
        name: &str,
        sink: &mut dyn FnMut(Found),
    ) -> Result<Summary, Error> {
        let shared = Shared::new(self.limits);
        let place = Place::root(name);
        let mut search = self.search(&shared, sink);
        let mut base = Base::new(Input::Stream(input), place, &shared);
        let result = search.visit(&place, &mut base, &Hint::of_input(name, false));
        search.end(result)
    }

    /// As [`find`](Self::find), in a file. The name is the path's last part.
    ///
    /// # Errors
    ///
    /// As [`find`](Self::find).
    pub fn find_in_file(
        &mut self,
        path: &Path,
        sink: &mut dyn FnMut(Found),
    ) -> Result<Summary, Error> {
        let name = printable(&path.file_name().unwrap_or(path.as_os_str()).to_string_lossy());
        let io = |source| Error::Io { member: name.clone(), source };
        let mut file = File::open(path).map_err(io)?;
        self.find(&mut file, &name, sink)
    }

    /// As [`find`](Self::find), in a folder in OCI layout: each blob is a member.
    ///
    /// # Errors
    ///
    /// As [`find`](Self::find).
    pub fn find_in_layout(
        &mut self,
        folder: &Path,
        name: &str,
        sink: &mut dyn FnMut(Found),
    ) -> Result<Summary, Error> {
        let shared = Shared::new(self.limits);
        let place = Place::root(name);
        let mut search = self.search(&shared, sink);
        let result = search.layout(&place, folder);
        search.end(result)
    }

    fn search<'s>(self, shared: &'s Shared, sink: &'s mut dyn FnMut(Found)) -> Search<'s> {
        Search {
            shared,
            first: self.first,
            sink,
            seen: Vec::new(),
            hasher: RandomState::new(),
            pending: BTreeMap::new(),
            nameless: VecDeque::new(),
            kept: 0,
            summary: Summary::default(),
        }
    }
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flow {
    Next,
    /// The package around this place has given its kernel.
    PackageDone,
    /// Nothing more is wanted.
    Stop,
    /// It is nothing that is read forwards: a disk, perhaps.
    NotAStream,
}

/// The one kernel a package says it holds.
#[derive(Clone, Debug)]
struct Package {
    /// Its release, if the package says it whole.
    release: Option<Release>,
    /// What the release begins with.
    base: String,
}

impl Package {
    /// Whether a configuration with this release in its name is the package's; one without any is.
    fn holds(&self, release: Option<&Release>) -> bool {
        let Some(release) = release else { return true };
        if self.release.as_ref() == Some(release) {
            return true;
        }
        let rest = release.as_str().strip_prefix(self.base.as_str());
        !self.base.is_empty()
            && rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_digit()))
    }
}

/// What is known about a stream from outside.
#[derive(Clone, Debug, Default)]
struct Hint {
    /// What a member is by its name.
    kind: Option<Kind>,
    release: Option<Release>,
    package: Option<Package>,
    /// Whether it is the input itself, which is looked at whatever its name, and not a member.
    is_input: bool,
    /// Whether it can be read anywhere, so that what is not known may be tried as a disk.
    is_file: bool,
}

impl Hint {
    fn of_input(name: &str, is_file: bool) -> Self {
        let release = names::release_of_file(name.rsplit('/').next().unwrap_or(name));
        Self { release, is_input: true, is_file, ..Self::default() }
    }

    fn release(&self) -> Option<&Release> {
        self.release.as_ref().or_else(|| self.package.as_ref()?.release.as_ref())
    }
}

/// A configuration that was given already.
struct Seen {
    release: Option<Release>,
    hash: u64,
}

struct Search<'s> {
    shared: &'s Shared,
    first: bool,
    sink: &'s mut dyn FnMut(Found),
    seen: Vec<Seen>,
    hasher: RandomState,
    /// Weaker evidence by release, with its number in the order of what is kept.
    pending: BTreeMap<Option<Release>, (usize, Found)>,
    /// Configurations that nothing names, oldest first: a copy with a name may follow.
    nameless: VecDeque<Nameless>,
    /// How many were kept so far, of both.
    kept: usize,
    summary: Summary,
}

/// A configuration without a release, with its number in the order of what is kept.
struct Nameless {
    order: usize,
    hash: u64,
    found: Found,
}

impl Search<'_> {
    /// Searches a file.
    fn file(
        &mut self,
        place: &Place<'_>,
        input: &mut dyn ReadSeek,
        length: u64,
        hint: &Hint,
    ) -> Result<Flow, Failure> {
        let mut base = Base::new(Input::File(&mut *input, length), *place, self.shared);
        match self.visit(place, &mut base, hint)? {
            Flow::NotAStream => {}
            flow => return Ok(flow),
        }
        let mut counted = Counted::new(&mut *input, *place, self.shared);
        if let Some(flow) = self.disk(place, &mut counted)? {
            return Ok(flow);
        }
        // Anything may have a kernel's marks in it.
        if let Err(error) = input.seek(SeekFrom::Start(0)) {
            return Err(place.failure(error));
        }
        let mut base = Base::new(Input::File(input, length), *place, self.shared);
        let mut base = Peeked::new(&mut base, HEAD).map_err(|error| place.failure(error))?;
        self.image(place, None, &mut base, hint)
    }

    /// Ends a search: gives what was kept, and says what was done.
    fn end(mut self, result: Result<Flow, Failure>) -> Result<Summary, Error> {
        if !matches!(result, Ok(Flow::Stop)) {
            self.give_pending();
        }
        let mut summary = self.summary;
        summary.bytes_read = self.shared.bytes_read();
        summary.members = self.shared.members();
        result.map(|_| summary).map_err(|failure| failure.error)
    }

    /// Tells what a stream is and looks inside.
    fn visit(
        &mut self,
        place: &Place<'_>,
        source: &mut dyn Source,
        hint: &Hint,
    ) -> Result<Flow, Failure> {
        if place.level > self.shared.limits.depth {
            return Err(place.too_much("levels", u64::from(self.shared.limits.depth)));
        }
        let count = if hint.is_input { INPUT_HEAD } else { HEAD };
        let mut source = Peeked::new(source, count).map_err(|error| place.failure(error))?;
        let head = source.head();
        match image::Kind::sniff(head) {
            // Discs that boot on EFI too begin like a program.
            Some(image::Kind::Pe) if hint.is_file && volumes::is_image(head) => {
                return Ok(Flow::NotAStream);
            }
            Some(kind) => return self.image(place, Some(kind), &mut source, hint),
            None => {}
        }
        if let Some(compression) = Compression::sniff(head) {
            let inner = place.unpacked();
            let mut inside = open(compression, Tail::Streams, &mut source, *place, self.shared)?;
            let hint = Hint { is_file: false, ..hint.clone() };
            return self.visit(&inner, &mut inside, &hint);
        }
        if is_lzop(head) {
            return Err(place.unsupported("the compression", "lzop"));
        }
        // Some of them begin with text.
        if let Some(name) = disk::unread(head) {
            return Err(place.unsupported(name, "convert it to qcow2 or raw"));
        }
        if head.starts_with(ar::MAGIC) {
            return self.ar(place, &mut source);
        }
        if head.starts_with(&rpm::MAGIC) {
            return self.rpm(place, &mut source);
        }
        if cpio::is_header(head) {
            return self.cpio(place, &mut source, hint, &[]);
        }
        if tar::is_header(head) {
            return self.tar(place, &mut source, hint);
        }
        if text::is_text(head) {
            return self.text(place, &mut source, hint);
        }
        if hint.is_file {
            return Ok(Flow::NotAStream);
        }
        if volumes::is_image(head) {
            let what = "a disk or file system in a stream";
            return Err(place.unsupported(what, "it has to be a file of its own"));
        }
        if hint.is_input || hint.kind == Some(Kind::Image) {
            return self.image(place, None, &mut source, hint);
        }
        Self::unsound(place, hint, head)
    }

    fn unknown(place: &Place<'_>, is_empty: bool) -> Failure {
        let (what, detail) = if is_empty {
            (Error::EMPTY, "expected a kernel or something that holds one")
        } else {
            (Error::UNKNOWN, "neither a kernel nor a known container")
        };
        place.unsupported(what, detail)
    }

    fn text(
        &mut self,
        place: &Place<'_>,
        source: &mut Peeked<'_>,
        hint: &Hint,
    ) -> Result<Flow, Failure> {
        if let Some(list) = List::sniff(source.head()) {
            let own = symbols::read(list, source, place)?;
            self.weak(place, hint.release().cloned(), Evidence::Symbols(own))?;
            return Ok(Flow::Next);
        }
        let limit = self.shared.limits.config;
        let bytes = read_up_to(source, limit + 1).map_err(|error| place.failure(error))?;
        if bytes.len() > limit {
            return Err(place.too_much("bytes in a configuration", len_u64(limit)));
        }
        // A file someone asks about, or one named after its kernel, need not be long.
        let few = hint.is_input || hint.release.is_some();
        if text::is_config(&bytes, few) {
            return self.config(place, hint.release.clone(), bytes, hint);
        }
        if hint.is_input {
            return Err(Self::unknown(place, bytes.is_empty()));
        }
        Self::unsound(place, hint, &bytes)
    }

    /// What is named after a kernel as its configuration has to be one, so a defect is worth a word.
    fn unsound(place: &Place<'_>, hint: &Hint, bytes: &[u8]) -> Result<Flow, Failure> {
        let named = hint.kind == Some(Kind::Config) && hint.release.is_some();
        match Text::new(bytes).check() {
            Err(defect) if named => {
                let offset = if let Defect::Nul { offset } = defect { len_u64(offset) } else { 0 };
                Err(place.damaged("configuration", offset, defect.to_string()))
            }
            _ => Ok(Flow::Next),
        }
    }

    fn image(
        &mut self,
        place: &Place<'_>,
        kind: Option<image::Kind>,
        source: &mut Peeked<'_>,
        hint: &Hint,
    ) -> Result<Flow, Failure> {
        let empty = source.head().is_empty();
        let wanted = hint.release().is_none();
        let found = image::search(kind, source, place, self.shared, wanted)?;
        let Some(Image { config, version, own_symbols }) = found else {
            return if hint.is_input { Err(Self::unknown(place, empty)) } else { Ok(Flow::Next) };
        };
        let release = hint.release.clone().or_else(|| version.as_deref().and_then(names::release));
        if let Some(config) = config {
            return self.config(place, release, config, hint);
        }
        let release = release.or_else(|| hint.release().cloned());
        let evidence = if own_symbols {
            Evidence::Symbols(Some(true))
        } else {
            Evidence::NoConfig { version }
        };
        self.weak(place, release, evidence)?;
        Ok(Flow::Next)
    }

    /// Gives a configuration, unless it was given already.
    fn config(
        &mut self,
        place: &Place<'_>,
        release: Option<Release>,
        text: Vec<u8>,
        hint: &Hint,
    ) -> Result<Flow, Failure> {
        let is_package =
            hint.package.as_ref().is_some_and(|package| package.holds(release.as_ref()));
        let release = release.or_else(|| hint.package.as_ref()?.release.clone());
        let hash = self.hasher.hash_one(&text);
        // Two releases are two kernels even with one content; a copy without a release is any of those with one.
        let known = self
            .seen
            .iter()
            .any(|seen| seen.hash == hash && (release.is_none() || seen.release == release));
        if !known {
            self.count_kernel(place)?;
            self.pending.remove(&release);
            self.seen.push(Seen { release: release.clone(), hash });
            let is_last = self.first || hint.is_input;
            let found = self.found(place, release, Evidence::Config(text));
            if found.release.is_some() || is_last {
                self.nameless.retain(|nameless| nameless.hash != hash);
                self.give(found);
            } else {
                self.keep_nameless(hash, found);
            }
        }
        Ok(if self.first {
            Flow::Stop
        } else if is_package {
            Flow::PackageDone
        } else {
            Flow::Next
        })
    }

    /// Keeps a configuration without a release until it is known that no copy has one. Only so much is kept: what no longer
    /// fits is given.
    fn keep_nameless(&mut self, hash: u64, found: Found) {
        self.kept += 1;
        self.nameless.push_back(Nameless { order: self.kept, hash, found });
        let size = |nameless: &Nameless| match &nameless.found.evidence {
            Evidence::Config(text) => text.len(),
            _ => 0,
        };
        let mut total: usize = self.nameless.iter().map(size).sum();
        while total > MAX_NAMELESS
            && let Some(oldest) = self.nameless.pop_front()
        {
            total -= size(&oldest);
            self.give(oldest.found);
        }
    }

    /// Keeps weaker evidence until the end, if it is better than what there is.
    fn weak(
        &mut self,
        place: &Place<'_>,
        release: Option<Release>,
        evidence: Evidence,
    ) -> Result<(), Failure> {
        const fn strength(evidence: &Evidence) -> u8 {
            match evidence {
                Evidence::Config(_) => 3,
                Evidence::Symbols(Some(_)) => 2,
                Evidence::Symbols(None) => 1,
                Evidence::NoConfig { .. } => 0,
            }
        }
        if self.seen.iter().any(|seen| seen.release == release) {
            return Ok(());
        }
        let old = self.pending.get(&release);
        let better = old.is_none_or(|(_, old)| strength(&evidence) > strength(&old.evidence));
        if better {
            let order = if let Some((order, _)) = old {
                *order
            } else {
                self.count_kernel(place)?;
                self.kept += 1;
                self.kept
            };
            let found = self.found(place, release.clone(), evidence);
            self.pending.insert(release, (order, found));
        }
        Ok(())
    }

    fn count_kernel(&self, place: &Place<'_>) -> Result<(), Failure> {
        if self.seen.len() + self.pending.len() < MAX_KERNELS {
            return Ok(());
        }
        Err(place.exhausted("kernels", len_u64(MAX_KERNELS)))
    }

    fn found(&self, place: &Place<'_>, release: Option<Release>, evidence: Evidence) -> Found {
        Found { member: place.member(), release, evidence, bytes_read: self.shared.bytes_read() }
    }

    fn give(&mut self, found: Found) {
        self.summary.found += 1;
        (self.sink)(found);
    }

    fn give_pending(&mut self) {
        let weak = std::mem::take(&mut self.pending).into_values();
        let nameless = std::mem::take(&mut self.nameless).into_iter();
        let mut kept: Vec<_> = nameless.map(|it| (it.order, it.found)).chain(weak).collect();
        kept.sort_by_key(|(order, _)| *order);
        for (_, found) in kept {
            self.give(found);
        }
    }

    /// Keeps the error of a part, unless it is one of this layer or of one around it.
    fn survive(&mut self, failure: Failure, level: u32) -> Result<(), Failure> {
        if failure.level == FATAL || failure.level <= level {
            return Err(failure);
        }
        if self.summary.errors.len() < MAX_ERRORS {
            self.summary.errors.push(failure.error);
        } else {
            self.summary.more_errors += 1;
        }
        Ok(())
    }

    /// Looks into a member of a container, and goes to its end.
    fn member(
        &mut self,
        place: &Place<'_>,
        format: &'static str,
        source: &mut dyn Source,
        (name, offset, size): (&str, u64, u64),
        hint: &Hint,
    ) -> Result<Flow, Failure> {
        let mut member = Member::new(source, size, offset, *place, format);
        let inner = place.inside(name);
        let flow = match self.visit(&inner, &mut member, hint) {
            Ok(Flow::Next) => Flow::Next,
            Ok(flow) => return Ok(flow),
            Err(failure) => {
                self.survive(failure, place.level)?;
                Flow::Next
            }
        };
        member.finish().map_err(|error| place.failure(error))?;
        Ok(flow)
    }

    fn leave_out(
        place: &Place<'_>,
        format: &'static str,
        source: &mut dyn Source,
        (offset, size): (u64, u64),
    ) -> Result<(), Failure> {
        let member = Member::new(source, size, offset, *place, format);
        member.finish().map_err(|error| place.failure(error))
    }

    /// A member worth a look, with its normalised name. One whose name climbs is refused with an error.
    fn candidate(
        &mut self,
        place: &Place<'_>,
        name: &str,
    ) -> Result<Option<(String, Candidate)>, Failure> {
        let Some(path) = names::normalise(name) else {
            let inner = place.inside(name);
            if names::candidate(name).is_some() {
                self.survive(inner.unsupported("a name with `..`", "refused"), place.level)?;
            }
            return Ok(None);
        };
        Ok(names::candidate(&path).map(|candidate| (path, candidate)))
    }

    /// Whether the member can still tell something new.
    fn is_wanted(&self, candidate: &Candidate) -> bool {
        let weak = matches!(candidate.kind, Kind::Image | Kind::Symbols);
        let known = candidate.release.is_some()
            && self.seen.iter().any(|seen| seen.release == candidate.release);
        !(weak && known)
    }

    /// `ar`: a Debian package if it has the members of one.
    fn ar(&mut self, place: &Place<'_>, source: &mut dyn Source) -> Result<Flow, Failure> {
        let mut reader = ar::Reader::new(source, place)?;
        let mut package = None;
        while let Some(entry) = reader.next(source, place)? {
            self.shared.member(place)?;
            if entry.name.starts_with("control.tar") {
                let mut member = Member::new(source, entry.size, entry.offset, *place, "ar");
                let inner = place.inside(&entry.name);
                match self.deb_package(&inner, &mut member) {
                    Ok(Some(control)) => {
                        package = control.package.and_then(|name| names::release_of_deb(&name));
                        let room = MAX_DEPENDS.saturating_sub(self.summary.depends.len());
                        self.summary.depends.extend(control.kernels.into_iter().take(room));
                    }
                    Ok(None) => {}
                    Err(failure) => self.survive(failure, place.level)?,
                }
                member.finish().map_err(|error| place.failure(error))?;
                continue;
            }
            let range = (entry.name.as_str(), entry.offset, entry.size);
            let package = package
                .clone()
                .map(|release| Package { release: Some(release), base: String::new() });
            let inside = Hint { package, ..Hint::default() };
            if entry.name.starts_with("data.tar") {
                match self.member(place, "ar", source, range, &inside)? {
                    Flow::Next => {}
                    Flow::PackageDone => return Ok(Flow::Next),
                    flow => return Ok(flow),
                }
            } else {
                Self::leave_out(place, "ar", source, (entry.offset, entry.size))?;
            }
        }
        Ok(Flow::Next)
    }

    /// What the control file of a Debian package says.
    fn deb_package(
        &mut self,
        place: &Place<'_>,
        source: &mut dyn Source,
    ) -> Result<Option<Control>, Failure> {
        let mut source = Peeked::new(source, HEAD).map_err(|error| place.failure(error))?;
        if let Some(compression) = Compression::sniff(source.head()) {
            let inner = place.unpacked();
            let mut inside = open(compression, Tail::Streams, &mut source, *place, self.shared)?;
            return self.deb_control(&inner, &mut inside);
        }
        self.deb_control(place, &mut source)
    }

    fn deb_control(
        &mut self,
        place: &Place<'_>,
        source: &mut dyn Source,
    ) -> Result<Option<Control>, Failure> {
        /// Real ones have a few kB.
        const MAX_CONTROL: u64 = 1 << 20;
        let mut reader = tar::Reader::default();
        while let Some(entry) = reader.next(source, place)? {
            self.shared.member(place)?;
            let is_control = names::normalise(&entry.name).as_deref() == Some("control");
            if !(is_control && entry.is_file) {
                Self::leave_out(place, "tar", source, (entry.offset, entry.size))?;
                continue;
            }
            let mut control = vec![0; len_usize(entry.size.min(MAX_CONTROL), usize::MAX)];
            let count = read_full(source, &mut control).map_err(|error| place.failure(error))?;
            return Ok(Some(Control::new(&control[..count])));
        }
        Ok(None)
    }

    fn tar(
        &mut self,
        place: &Place<'_>,
        source: &mut dyn Source,
        hint: &Hint,
    ) -> Result<Flow, Failure> {
        let mut inside = Hint { package: hint.package.clone(), ..Hint::default() };
        let mut own_package = false;
        let mut reader = tar::Reader::default();
        while let Some(entry) = reader.next(source, place)? {
            self.shared.member(place)?;
            let range = (entry.offset, entry.size);
            if entry.is_file && entry.name == ".PKGINFO" && entry.size <= 1 << 20 {
                let mut info = vec![0; len_usize(entry.size, usize::MAX)];
                let count = read_full(source, &mut info).map_err(|error| place.failure(error))?;
                if len_u64(count) < entry.size {
                    return Err(place.truncated("tar", entry.offset + len_u64(count)));
                }
                if let Some(package) = arch_package(&info) {
                    (inside.package, own_package) = (Some(package), true);
                }
                continue;
            }
            let candidate = if entry.is_file { self.candidate(place, &entry.name)? } else { None };
            let Some((path, candidate)) = candidate.filter(|(_, found)| self.is_wanted(found))
            else {
                Self::leave_out(place, "tar", source, range)?;
                continue;
            };
            (inside.kind, inside.release) = (Some(candidate.kind), candidate.release);
            match self.member(place, "tar", source, (&path, range.0, range.1), &inside)? {
                Flow::Next => {}
                Flow::PackageDone if own_package => return Ok(Flow::Next),
                flow => return Ok(flow),
            }
        }
        Ok(Flow::Next)
    }

    fn cpio(
        &mut self,
        place: &Place<'_>,
        source: &mut dyn Source,
        hint: &Hint,
        files: &[cpio::File],
    ) -> Result<Flow, Failure> {
        let mut inside = Hint { package: hint.package.clone(), ..Hint::default() };
        let mut reader = cpio::Reader::default();
        while let Some(entry) = reader.next(source, place, files)? {
            self.shared.member(place)?;
            let candidate = if entry.is_file && entry.size > 0 {
                self.candidate(place, &entry.name)?
            } else {
                None
            };
            let Some((path, candidate)) = candidate.filter(|(_, found)| self.is_wanted(found))
            else {
                Self::leave_out(place, "cpio", source, (entry.offset, entry.size))?;
                continue;
            };
            (inside.kind, inside.release) = (Some(candidate.kind), candidate.release);
            let range = (path.as_str(), entry.offset, entry.size);
            match self.member(place, "cpio", source, range, &inside)? {
                Flow::Next => {}
                flow => return Ok(flow),
            }
        }
        Ok(Flow::Next)
    }

    fn rpm(&mut self, place: &Place<'_>, source: &mut dyn Source) -> Result<Flow, Failure> {
        let header = rpm::read_header(source, place, self.shared)?;
        if let Some(format) = header.other_payload() {
            return Err(place.unsupported("an rpm payload", format));
        }
        let is_kernel = header.name.starts_with("kernel") && !header.is_source;
        let package = is_kernel.then(|| Package {
            release: names::release(&format!(
                "{}-{}.{}",
                header.version, header.release, header.arch
            )),
            base: header.version.clone(),
        });
        let hint = Hint { package, ..Hint::default() };
        let inner = place.unpacked();
        let mut payload = Peeked::new(source, HEAD).map_err(|error| place.failure(error))?;
        let flow = match Compression::sniff(payload.head()) {
            Some(compression) => {
                let mut inside =
                    open(compression, Tail::Anything, &mut payload, *place, self.shared)?;
                self.rpm_payload(&inner, &mut inside, &hint, &header)?
            }
            None => self.rpm_payload(&inner, &mut payload, &hint, &header)?,
        };
        Ok(if flow == Flow::PackageDone { Flow::Next } else { flow })
    }

    fn rpm_payload(
        &mut self,
        place: &Place<'_>,
        source: &mut dyn Source,
        hint: &Hint,
        header: &rpm::Header,
    ) -> Result<Flow, Failure> {
        let mut source = Peeked::new(source, 6).map_err(|error| place.failure(error))?;
        if source.head().is_empty() {
            return Ok(Flow::Next);
        }
        let files = if source.head() == b"07070X" { header.files() } else { Some(Vec::new()) };
        let Some(files) = files else {
            return Err(place.damaged("rpm", header.payload, "a payload without a list of files"));
        };
        self.cpio(place, &mut source, hint, &files)
    }
}

/// What the control file of a Debian package says.
struct Control {
    package: Option<String>,
    /// Packages of kernels it depends on.
    kernels: Vec<String>,
}

impl Control {
    fn new(text: &[u8]) -> Self {
        let depends = field(text, "Depends:").unwrap_or_default();
        let words = depends.split([',', '|']).filter_map(|one| one.split_whitespace().next());
        let kernels = words.filter(|name: &&str| {
            names::release_of_deb(name).is_some() && !name.starts_with("linux-headers-")
        });
        let kernels = kernels.take(MAX_DEPENDS).map(printable).collect();
        Self { package: field(text, "Package:"), kernels }
    }
}

/// The value of a field at the start of a line.
fn field(text: &[u8], name: &str) -> Option<String> {
    let text = std::str::from_utf8(text).ok()?;
    text.lines().find_map(|line| line.strip_prefix(name)).map(|value| value.trim().to_owned())
}

/// The kernel an Arch package holds: its release is not written in the package's information, only its version.
fn arch_package(info: &[u8]) -> Option<Package> {
    let name = field(info, "pkgname = ")?;
    if name != "linux" && !name.starts_with("linux-") {
        return None;
    }
    let version = field(info, "pkgver = ")?;
    let end = version.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(version.len());
    let base = version[..end].trim_end_matches('.').to_owned();
    (!base.is_empty()).then_some(Package { release: None, base })
}
