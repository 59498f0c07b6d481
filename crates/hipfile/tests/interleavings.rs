//! Registrations and the queue under every interleaving of a few threads: the modules as they are, on modelled locks and counters.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unnecessary_wraps,
    dead_code
)]

#[path = "../src/driver.rs"]
mod driver;
#[path = "../src/queue.rs"]
mod queue;
#[path = "../src/registry.rs"]
mod registry;

mod sync {
    pub(crate) use loom::sync::atomic::{AtomicI64, AtomicU64, Ordering};
    pub(crate) use loom::sync::{Arc, Condvar, Mutex, MutexGuard, RwLock};
    use loom::sync::{RwLockReadGuard, RwLockWriteGuard};

    pub(crate) const SHARDS: usize = 2;
    pub(crate) const GROUPS: usize = 2;

    loom::thread_local! {
        static GROUP: usize = {
            // Threads of a model begin one after the other, the first one first.
            usize::from(format!("{:?}", loom::thread::current().id()).contains('1'))
        };
    }

    pub(crate) fn group() -> usize {
        GROUP.with(|group| *group)
    }

    pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        mutex.lock().unwrap()
    }

    pub(crate) fn wait<'a, T>(changed: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        changed.wait(guard).unwrap()
    }

    /// Time does not pass in a model.
    pub(crate) fn wait_at_most<'a, T>(
        changed: &Condvar,
        guard: MutexGuard<'a, T>,
        _most: std::time::Duration,
    ) -> MutexGuard<'a, T> {
        wait(changed, guard)
    }

    pub(crate) fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
        lock.read().unwrap()
    }

    pub(crate) fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
        lock.write().unwrap()
    }
}

/// Threads, modelled too.
mod thread {
    #[derive(Debug)]
    pub(crate) struct Thread(loom::thread::JoinHandle<()>);

    pub(crate) fn spawn(
        _name: &std::ffi::CStr,
        body: impl FnOnce() + Send + 'static,
    ) -> std::io::Result<Thread> {
        Ok(Thread(loom::thread::spawn(body)))
    }

    impl Thread {
        pub(crate) fn join(self) {
            self.0.join().unwrap();
        }
    }
}

mod error {
    /// Those that registrations make.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum Error {
        NotOpen,
        FileRegistered(i32),
        BufferRegistered(usize),
        BufferNotRegistered(usize),
        BufferInUse(usize),
    }
}

use error::Error;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering};

/// A file with its number, and which one it is.
#[derive(Clone, Debug)]
struct File(i32, u32);

impl driver::Numbered for File {
    fn number(&self) -> i32 {
        self.0
    }

    fn is_same(&self, other: &Self) -> bool {
        self.1 == other.1
    }
}

type Driver = driver::Driver<File, ()>;

/// Every interleaving of two threads; `check` sees what they leave.
fn explore<A: 'static, B: 'static>(
    prepare: fn(&Driver),
    first: fn(&Driver) -> A,
    second: fn(&Driver) -> B,
    check: fn(&Driver, A, B),
) {
    loom::model(move || {
        let driver = Arc::new(Driver::new());
        prepare(&driver);
        let other = Arc::clone(&driver);
        let thread = loom::thread::spawn(move || first(&other));
        let second = second(&driver);
        let first = thread.join().unwrap();
        check(&driver, first, second);
    });
}

#[test]
fn the_threads_of_a_model_are_in_different_groups() {
    explore(
        |_| {},
        |_| sync::group(),
        |_| sync::group(),
        |_, first, second| assert_ne!(first, second),
    );
}

#[test]
fn registering_from_zero_opens_once() {
    explore(
        |_| {},
        |driver| driver.add_file(File(3, 1)),
        |driver| driver.add_file(File(4, 2)),
        |driver, first, second| {
            assert_eq!((driver.count(), driver.registered()), (1, (2, 0)));
            assert_ne!(first.unwrap(), second.unwrap());
        },
    );
}

#[test]
fn a_number_is_registered_once() {
    explore(
        |_| {},
        |driver| driver.add_file(File(3, 1)),
        |driver| driver.add_file(File(3, 1)),
        |driver, first, second| {
            assert!(first.is_ok() != second.is_ok());
            assert_eq!(first.and(second), Err(Error::FileRegistered(3)));
            assert_eq!(driver.registered(), (1, 0));
        },
    );
}

#[test]
fn nothing_stays_registered_in_a_closed_driver() {
    explore(
        Driver::open,
        |driver| {
            driver.add_file(File(3, 1)).unwrap();
            driver.add_buffer(4096, ()).unwrap();
        },
        |driver| driver.close().unwrap().is_some(),
        |driver, (), was_last| {
            assert!(was_last);
            match driver.count() {
                0 => assert_eq!(driver.registered(), (0, 0)),
                count => {
                    assert_eq!(count, 1);
                    assert!([(1, 1), (0, 1)].contains(&driver.registered()));
                }
            }
        },
    );
}

#[test]
fn opens_and_closes_are_counted_and_only_one_close_is_the_last() {
    explore(
        Driver::open,
        |driver| driver.close().unwrap().is_some(),
        |driver| {
            driver.open();
            driver.close().unwrap().is_some()
        },
        |driver, first, second| {
            assert_eq!(driver.count(), 0);
            assert!(first || second);
            assert!(matches!(driver.close(), Err(Error::NotOpen)));
        },
    );
}

#[test]
fn a_buffer_is_used_or_taken_out_but_not_both() {
    explore(
        |driver| driver.add_buffer(4096, ()).unwrap(),
        |driver| driver.buffer(4096),
        |driver| driver.remove_buffer(4096),
        |driver, used, removed| match (used, removed) {
            (Some(_), Err(Error::BufferInUse(4096))) => {
                assert_eq!(driver.registered(), (0, 1));
            }
            // Found, and given back, before or after.
            (None, Ok(())) => assert_eq!(driver.registered(), (0, 0)),
            other => panic!("{other:?}"),
        },
    );
}

#[test]
fn a_reused_number_never_leads_to_the_old_file() {
    explore(
        |driver| {
            driver.add_file(File(3, 1)).unwrap();
        },
        |driver| driver.add_file(File(3, 2)),
        |driver| driver.add_file(File(3, 3)),
        |driver, first, second| {
            for (handle, file) in [(first.unwrap(), 2), (second.unwrap(), 3)] {
                assert_eq!(driver.file(handle).unwrap().1, file);
            }
            assert_eq!(driver.registered(), (3, 0));
        },
    );
}

/// Every interleaving in which threads are interrupted twice at most: more take minutes.
fn explore_the_queue(model: fn()) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(model);
}

/// A job that counts what becomes of it.
struct Told {
    ran: Arc<AtomicUsize>,
    dropped: Arc<AtomicUsize>,
}

impl Drop for Told {
    fn drop(&mut self) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }
}

impl Told {
    /// A job, and whether it has run and was dropped.
    fn job() -> (queue::Job, Arc<AtomicUsize>, Arc<AtomicUsize>) {
        let (ran, dropped) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let told = Self { ran: Arc::clone(&ran), dropped: Arc::clone(&dropped) };
        let job = Box::new(move || {
            told.ran.fetch_add(1, Ordering::Relaxed);
        });
        (job, ran, dropped)
    }
}

/// Who waits for a job hears of it when it is dropped: none is forgotten in the queue, and no thread stays.
#[test]
fn a_job_is_done_or_dropped_when_everything_ends() {
    explore_the_queue(|| {
        let workers = Arc::new(queue::Workers::default());
        let (job, ran, dropped) = Told::job();
        let other = Arc::clone(&workers);
        let thread = loom::thread::spawn(move || other.stop());
        let taken = workers.submit(job);
        thread.join().unwrap();
        workers.stop();
        assert_eq!(dropped.load(Ordering::Relaxed), 1);
        assert!(taken || ran.load(Ordering::Relaxed) == 0);
    });
}

/// A worker that is about to sleep does not miss a job that comes meanwhile.
#[test]
fn a_job_that_comes_as_a_worker_falls_asleep_is_done() {
    explore_the_queue(|| {
        let workers = queue::Workers::default();
        let done = Arc::new((loom::sync::Mutex::new(0), loom::sync::Condvar::new()));
        for expected in 1..=2 {
            let told = Arc::clone(&done);
            assert!(workers.submit(Box::new(move || {
                *sync::lock(&told.0) += 1;
                told.1.notify_all();
            })));
            let mut count = sync::lock(&done.0);
            while *count < expected {
                count = sync::wait(&done.1, count);
            }
        }
        workers.stop();
    });
}
