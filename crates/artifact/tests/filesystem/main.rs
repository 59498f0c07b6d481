//! File systems made by their own tools, compared byte by byte.

mod btrfs;
mod ext4;
mod fat;
mod iso9660;
mod squashfs;
mod tools;
mod xfs;
