//! Everything of one process: what the environment wants, the GPUs' runtime, and what is registered.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use fastpath_gpu::{Gpu, Hip, LoadError};
use fastpath_host::{Content, DirTree, Entry, FileKind, ReadError, Stat, Tree, Want};

use crate::batch::Batch;
use crate::bounce::Lanes;
use crate::buffer::Buffer;
use crate::choose::Reason;
use crate::config::Config;
use crate::driver::Driver;
use crate::error::Error;
use crate::file::File;
use crate::filesystem::FileSystems;
use crate::gate::Gate;
use crate::log::{Level, Log, Sink};
use crate::parameters::Parameters;
use crate::queue::Workers;
use crate::registry::{Handles, Registry};
use crate::signal::Signals;
use crate::stats::Stats;
use crate::stream::Turns;

/// How the runtime of GPUs is had; asked once, when it is first needed.
type Loader = Box<dyn Fn() -> Result<Arc<dyn Gpu>, LoadError> + Send + Sync>;

/// What a runtime stands on. [`Options::of_process`] is this process and its host; tests exchange parts.
pub struct Options {
    /// The environment's wishes.
    pub config: Config,
    /// The host, as its kernel layer and its mounts are read.
    pub tree: Box<dyn Tree + Send + Sync>,
    /// What the running kernel calls itself, whatever the tree says.
    pub uname: Option<String>,
    /// Where knowledge is added from instead of `/etc/fastpath/knowledge.d`.
    pub knowledge_directory: Option<PathBuf>,
    /// The GPUs.
    pub gpu: Loader,
    /// Where log lines go instead of standard error.
    pub log: Option<Sink>,
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options")
            .field("config", &self.config)
            .field("uname", &self.uname)
            .finish_non_exhaustive()
    }
}

/// This host, opened anew for each question: a descriptor that is kept is one that the program may close and use for
/// something else.
struct Here;

impl Here {
    fn ask<T>(question: impl FnOnce(&DirTree) -> Result<T, ReadError>) -> Result<T, ReadError> {
        question(&DirTree::open(Path::new("/")).map_err(|_| ReadError::Missing)?)
    }
}

impl Tree for Here {
    fn read(&self, path: &str, want: &Want) -> Result<Content, ReadError> {
        Self::ask(|tree| tree.read(path, want))
    }

    fn list(&self, path: &str) -> Result<Vec<Entry>, ReadError> {
        Self::ask(|tree| tree.list(path))
    }

    fn kind(&self, path: &str) -> Result<FileKind, ReadError> {
        Self::ask(|tree| tree.kind(path))
    }

    fn link(&self, path: &str) -> Result<String, ReadError> {
        Self::ask(|tree| tree.link(path))
    }

    fn stat(&self, path: &str) -> Result<Stat, ReadError> {
        Self::ask(|tree| tree.stat(path))
    }
}

impl Options {
    /// This process, its environment and its host.
    pub fn of_process() -> Self {
        Self::with_environment(fastpath_gpu::variable)
    }

    /// This host with another environment.
    pub fn with_environment(get: impl Fn(&str) -> Option<OsString>) -> Self {
        Self {
            config: Config::read(get),
            tree: Box::new(Here),
            uname: rustix::system::uname().release().to_str().ok().map(str::to_owned),
            knowledge_directory: None,
            gpu: Box::new(|| Hip::load().map(|hip| Arc::new(hip) as Arc<dyn Gpu>)),
            log: None,
        }
    }
}

/// See the module.
pub struct Runtime {
    pub(crate) config: Config,
    pub(crate) log: Log,
    pub(crate) driver: Driver<File, Buffer>,
    pub(crate) lanes: Lanes,
    pub(crate) workers: Workers,
    /// Flags of registered streams, by handle.
    pub(crate) stream_flags: Registry<u32>,
    pub(crate) turns: Turns,
    pub(crate) signals: Signals,
    /// Asynchronous operations that are not over, and calls that submit one.
    pub(crate) asynchronous: AtomicUsize,
    pub(crate) batches: Registry<Batch>,
    pub(crate) batch_handles: Handles,
    pub(crate) stats: Stats,
    pub(crate) parameters: Parameters,
    tree: Box<dyn Tree + Send + Sync>,
    uname: Option<String>,
    knowledge_directory: Option<PathBuf>,
    loader: Loader,
    gpu: OnceLock<Result<Arc<dyn Gpu>, LoadError>>,
    gate: OnceLock<Gate>,
    file_systems: FileSystems,
    /// Whether the driver said that it does not know direct storage.
    no_driver: AtomicBool,
    warned: AtomicBool,
}

impl std::fmt::Debug for Runtime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Runtime")
            .field("config", &self.config)
            .field("gate", &self.gate)
            .finish_non_exhaustive()
    }
}

impl Runtime {
    /// A runtime in which nothing is registered. It looks at nothing before it is used.
    pub fn new(options: Options) -> Self {
        let log = Log::new(options.config.log, options.log);
        Self {
            log,
            driver: Driver::new(),
            lanes: Lanes::default(),
            workers: Workers::default(),
            stream_flags: Registry::new(),
            turns: Turns::default(),
            signals: Signals::default(),
            asynchronous: AtomicUsize::new(0),
            batches: Registry::new(),
            batch_handles: Handles::new(2),
            stats: Stats::new(options.config.stats_level),
            parameters: Parameters::default(),
            tree: options.tree,
            uname: options.uname,
            knowledge_directory: options.knowledge_directory,
            loader: options.gpu,
            gpu: OnceLock::new(),
            gate: OnceLock::new(),
            file_systems: FileSystems::default(),
            no_driver: AtomicBool::new(false),
            warned: AtomicBool::new(false),
            config: options.config,
        }
    }

    /// What the environment wants.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The GPUs, or why there are none.
    pub(crate) fn gpu(&self) -> Result<&Arc<dyn Gpu>, Error> {
        self.gpu
            .get_or_init(|| (self.loader)())
            .as_ref()
            .map_err(|error| Error::NoHip(error.clone()))
    }

    /// What the kernel allows; judged when the driver is first opened.
    pub fn gate(&self) -> &Gate {
        self.gate.get_or_init(|| {
            for warning in &self.config.warnings {
                self.log.say(Level::Warn, || warning.clone());
            }
            let directory = self.knowledge_directory.as_deref();
            Gate::evaluate(
                self.tree.as_ref(),
                self.uname.as_deref(),
                directory,
                &self.config,
                &self.log,
            )
        })
    }

    /// What must hold before the driver opens, explicitly or not: done without any lock.
    pub(crate) fn ready(&self) -> Result<(), Error> {
        self.config.check()?;
        self.gate();
        self.stats.start(&self.log);
        Ok(())
    }

    /// Looks at a file to be registered.
    pub(crate) fn open_file(&self, number: i32) -> Result<File, Error> {
        File::open(number, self.tree.as_ref(), &self.file_systems, self.config.any_file_system)
    }

    /// Why nothing at all takes the fastpath.
    pub(crate) fn closed(&self, gpu: &dyn Gpu) -> Option<Reason> {
        if self.config.forces_fallback() {
            Some(Reason::Forced)
        } else if !self.parameters.uses_p2pdma() {
            Some(Reason::Parameter)
        } else if let Some(reason) = self.gate().closed {
            Some(reason)
        } else if !gpu.has_direct_storage() {
            Some(Reason::NoInterface)
        } else if self.no_driver.load(Ordering::Relaxed) {
            Some(Reason::NoDriver)
        } else {
            None
        }
    }

    /// Why the driver finds no way between a drive and a GPU. That the GPU is a virtual function shows only on the machine that has
    /// the physical one; in a guest it is one of the things that cannot be told apart.
    #[cold]
    pub(crate) fn unreachable(&self, gpu: &dyn Gpu, device: i32) -> Reason {
        let physical = gpu
            .pci_address(device)
            .and_then(|pci| self.tree.link(&format!("/sys/bus/pci/devices/{pci}/physfn")).ok());
        if physical.is_some() { Reason::VirtualFunction } else { Reason::Unreachable }
    }

    /// The driver does not know direct storage: that does not change while it is loaded.
    pub(crate) fn driver_is_without(&self) {
        self.no_driver.store(true, Ordering::Relaxed);
    }

    /// Gives up everything that does not depend on a registration, after the last close.
    pub(crate) fn rest(&self) {
        self.stream_flags.drain();
        // Nobody can find them any more to wait for them.
        for batch in self.batches.drain() {
            batch.end();
        }
        self.free();
    }

    /// Gives back to HIP what nobody uses. That waits for GPUs, whose streams may wait for an operation of ours.
    fn free(&self) {
        if self.asynchronous.load(Ordering::Acquire) == 0
            && let Some(Ok(gpu)) = self.gpu.get()
        {
            self.lanes.free();
            self.signals.free(gpu.as_ref());
        }
    }

    /// The same, and gives back to HIP what nobody uses.
    pub(crate) fn unload(&self) {
        self.stop();
        self.free();
    }

    /// Ends the threads and closes what is registered.
    pub(crate) fn stop(&self) {
        drop(self.driver.end());
        self.file_systems.forget();
        self.workers.stop();
        self.stats.stop();
    }

    /// True once.
    pub(crate) fn is_first_warning(&self) -> bool {
        !self.warned.swap(true, Ordering::Relaxed)
    }
}
