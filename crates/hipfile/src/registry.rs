//! What is registered under a number: found by many threads at once, kept by whoever found it.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use crate::sync::{Arc, AtomicU64, GROUPS, Ordering, RwLock, SHARDS, group};

/// Entries by number. An entry that was found stays whole while it is used, also if it is taken out meanwhile.
#[derive(Debug)]
pub(crate) struct Registry<T> {
    shards: [RwLock<HashMap<u64, Arc<T>>>; SHARDS],
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

/// The same for what many threads use all the time: each of a few groups of threads has locks and counts of its own, so that finding
/// an entry waits for no other processor. An entry is many clones of one thing.
#[derive(Debug)]
pub(crate) struct Replicated<T> {
    replicas: [Replica<T>; GROUPS],
}

/// Two share nothing that a processor keeps.
#[derive(Debug)]
#[repr(align(128))]
struct Replica<T>(Registry<T>);

impl<T: Clone> Replicated<T> {
    pub(crate) fn new() -> Self {
        Self { replicas: std::array::from_fn(|_| Replica(Registry::new())) }
    }

    fn each(&self) -> impl Iterator<Item = &Registry<T>> {
        self.replicas.iter().map(|replica| &replica.0)
    }

    /// See [`Registry::get`].
    pub(crate) fn get(&self, key: u64) -> Option<Arc<T>> {
        self.replicas.get(group())?.0.get(key)
    }

    /// See [`Registry::insert`].
    pub(crate) fn insert(&self, key: u64, value: T) -> bool {
        let mut shards: Vec<_> =
            self.each().map(|replica| crate::sync::write(replica.shard(key))).collect();
        if shards.iter().any(|shard| shard.contains_key(&key)) {
            return false;
        }
        for (shard, value) in shards.iter_mut().zip(std::iter::repeat_n(value, GROUPS)) {
            shard.insert(key, Arc::new(value));
        }
        true
    }

    /// See [`Registry::remove`].
    pub(crate) fn remove(&self, key: u64) -> Option<Arc<T>> {
        let all: Vec<Option<Arc<T>>> = self.each().map(|replica| replica.remove(key)).collect();
        all.into_iter().flatten().next()
    }

    /// Takes an entry out unless someone uses it.
    pub(crate) fn remove_unused(&self, key: u64) -> Result<(), Kept> {
        let mut shards: Vec<_> =
            self.each().map(|replica| crate::sync::write(replica.shard(key))).collect();
        // Nobody can find it while all shards are locked, so the counts only fall.
        let is_used = |entry: Option<&Arc<T>>| entry.is_some_and(|it| Arc::strong_count(it) > 1);
        if shards.iter().any(|shard| is_used(shard.get(&key))) {
            return Err(Kept::InUse);
        }
        let removed: Vec<_> = shards.iter_mut().map(|shard| shard.remove(&key)).collect();
        drop(shards);
        removed.iter().any(Option::is_some).then_some(()).ok_or(Kept::Missing)
    }

    /// See [`Registry::drain`].
    pub(crate) fn drain(&self) -> Vec<Arc<T>> {
        self.each().flat_map(Registry::drain).collect()
    }

    /// See [`Registry::len`].
    pub(crate) fn len(&self) -> usize {
        self.each().next().map_or(0, Registry::len)
    }
}

/// Why an entry was not taken out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    /// There is none.
    Missing,
    /// Someone uses it.
    InUse,
}

/// How many runtimes this process and those that it was forked off from have had.
pub(crate) static RUNTIMES: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);

/// Gives handles: never zero, never the same twice, none that a runtime before gave, so that what a child of a fork has of its
/// parent's is no other file, and no address that a program could read through.
#[derive(Debug)]
pub(crate) struct Handles {
    kind: u64,
    next: AtomicU64,
}

impl Handles {
    /// `kind` tells a file's handle from a batch's in a debugger.
    pub(crate) fn new(kind: u8) -> Self {
        let runtime = RUNTIMES.load(Ordering::Relaxed) & 0xff;
        let next = AtomicU64::new((runtime << 32) + 1);
        Self { kind: 0xF11E_0000_0000_0000 | (u64::from(kind) << 40), next }
    }

    pub(crate) fn next(&self) -> u64 {
        const NUMBERS: u64 = (1 << 40) - 1;
        self.kind | (self.next.fetch_add(1, Ordering::Relaxed) & NUMBERS)
    }
}
