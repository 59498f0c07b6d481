//! What is registered under a number: found by many threads at once, kept by whoever found it.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use crate::sync::{Arc, AtomicU64, Ordering, RwLock};

/// Threads that look up different entries rarely meet.
const SHARDS: usize = 16;

/// Entries by number. An entry that was found stays whole while it is used, also if it is taken out meanwhile.
#[derive(Debug)]
pub(crate) struct Registry<T> {
    shards: [RwLock<HashMap<u64, Arc<T>>>; SHARDS],
}

/// Why an entry was not taken out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    /// There is none.
    Missing,
    /// Someone uses it.
    InUse,
}

impl<T> Registry<T> {
    pub(crate) fn new() -> Self {
        Self { shards: std::array::from_fn(|_| RwLock::new(HashMap::new())) }
    }

    fn shard(&self, key: u64) -> &RwLock<HashMap<u64, Arc<T>>> {
        // Addresses differ in their middle bits, handles in the low ones.
        let index = ((key ^ (key >> 12) ^ (key >> 21)) as usize) % SHARDS;
        // The index is below the length, always.
        self.shards.get(index).unwrap_or(&self.shards[0])
    }

    /// The entry, to be used without any lock.
    pub(crate) fn get(&self, key: u64) -> Option<Arc<T>> {
        crate::sync::read(self.shard(key)).get(&key).cloned()
    }

    /// Adds an entry, if the number is free.
    pub(crate) fn insert(&self, key: u64, value: Arc<T>) -> bool {
        match crate::sync::write(self.shard(key)).entry(key) {
            Entry::Occupied(_) => false,
            Entry::Vacant(place) => {
                place.insert(value);
                true
            }
        }
    }

    /// Takes an entry out; who uses it goes on.
    pub(crate) fn remove(&self, key: u64) -> Option<Arc<T>> {
        crate::sync::write(self.shard(key)).remove(&key)
    }

    /// Takes an entry out unless someone uses it.
    pub(crate) fn remove_unused(&self, key: u64) -> Result<Arc<T>, Kept> {
        let mut shard = crate::sync::write(self.shard(key));
        match shard.entry(key) {
            Entry::Vacant(_) => Err(Kept::Missing),
            // Nobody can find it while the shard is locked, so the count only falls.
            Entry::Occupied(entry) if Arc::strong_count(entry.get()) > 1 => Err(Kept::InUse),
            Entry::Occupied(entry) => Ok(entry.remove()),
        }
    }

    /// Takes everything out.
    pub(crate) fn drain(&self) -> Vec<Arc<T>> {
        let drained =
            self.shards.iter().map(|shard| std::mem::take(&mut *crate::sync::write(shard)));
        drained.flat_map(HashMap::into_values).collect()
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.shards.iter().map(|shard| crate::sync::read(shard).len()).sum()
    }
}

/// Gives handles: never zero, never the same twice, and no address that a program could read through.
#[derive(Debug)]
pub(crate) struct Handles {
    kind: u64,
    next: AtomicU64,
}

impl Handles {
    /// `kind` tells a file's handle from a batch's in a debugger.
    pub(crate) fn new(kind: u8) -> Self {
        Self { kind: 0xF11E_0000_0000_0000 | (u64::from(kind) << 40), next: AtomicU64::new(1) }
    }

    pub(crate) fn next(&self) -> u64 {
        self.kind | self.next.fetch_add(1, Ordering::Relaxed)
    }
}
