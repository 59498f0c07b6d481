//! The locks and counters of registrations; the model tests exchange them for modelled ones. A lock whose holder panicked is taken
//! all the same: what it protects is changed in one step each.

pub(crate) use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
pub(crate) use std::sync::{Arc, Mutex, RwLock};
use std::sync::{MutexGuard, PoisonError, RwLockReadGuard, RwLockWriteGuard};

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}
