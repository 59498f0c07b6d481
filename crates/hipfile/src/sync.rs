//! Locks, conditions and counters; the model tests exchange them for modelled ones. A lock whose holder panicked is taken
//! all the same: what it protects is changed in one step each.

use std::cell::Cell;
use std::sync::atomic::AtomicUsize;
pub(crate) use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
pub(crate) use std::sync::{Arc, Condvar, Mutex, MutexGuard, RwLock};
use std::sync::{PoisonError, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

/// Locks for a registry's entries: threads that look up different ones rarely meet.
pub(crate) const SHARDS: usize = 16;

/// Groups of threads that share counts.
pub(crate) const GROUPS: usize = 8;

thread_local! {
    static GROUP: Cell<usize> = const { Cell::new(GROUPS) };
}

/// The calling thread's group, below [`GROUPS`].
pub(crate) fn group() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let known = GROUP.get();
    if known < GROUPS {
        return known;
    }
    let group = NEXT.fetch_add(1, Ordering::Relaxed) % GROUPS;
    GROUP.set(group);
    group
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Gives the lock up until it is told that something changed, or for no reason.
pub(crate) fn wait<'a, T>(changed: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    changed.wait(guard).unwrap_or_else(PoisonError::into_inner)
}

/// The same, at most so long.
pub(crate) fn wait_at_most<'a, T>(
    changed: &Condvar,
    guard: MutexGuard<'a, T>,
    most: Duration,
) -> MutexGuard<'a, T> {
    changed.wait_timeout(guard, most).unwrap_or_else(PoisonError::into_inner).0
}

pub(crate) fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}
