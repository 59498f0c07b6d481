//! Bounds on the work any input can cause.

/// The bounds. The defaults keep the peak of memory below 256 MiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most bytes all streams together may decompress to, and the most that are read of an input without an end.
    pub output: u64,
    /// The most bytes of one configuration.
    pub config: usize,
    /// The most bytes of one compressed kernel, decompressed. It is searched as it comes, so this bounds work only.
    pub image: usize,
    /// The most bytes of an image that is not compressed, or of an input of no known kind, that are searched for a kernel.
    pub search: u64,
    /// The most members of all containers together.
    pub members: u64,
    /// The deepest nesting of containers, layers of compression counted.
    pub depth: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            output: 16 << 30,
            config: 16 << 20,
            image: 160 << 20,
            search: 2 << 30,
            members: 4_000_000,
            depth: 8,
        }
    }
}
