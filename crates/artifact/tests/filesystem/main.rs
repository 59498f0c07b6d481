//! File systems made by their own tools, compared byte by byte.

mod ext4;
mod tools;
mod xfs;
