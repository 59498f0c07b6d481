//! Kernels in files, packages, archives and images, made by the ordinary tools while the tests run or by hand.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "tests say why they skip")]

mod archives;
mod bounds;
mod disks;
mod hostile;
mod images;
mod inputs;
mod make;
mod packages;
mod plain;
mod symbols;
mod tools;
mod zstd;
