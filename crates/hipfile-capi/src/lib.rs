//! `libhipfile.so.0`: hipFile's C interface, for programs that were built for AMD's library.
//!
//! Every exported function has three doors: a panic does not leave it ([`door`]), every address is checked before it is used
//! ([`place`]), and every number is taken as a number. Behind them is [`hipfile::raw`], which does the work. What a function does
//! for a C program is said in `include/hipfile.h`.
//!
//! It decides nothing about I/O: see `hipfile`.

#![allow(non_snake_case, reason = "the names are C's")]

pub mod abi;
pub mod batch;
mod door;
pub mod driver;
pub mod files;
pub mod parameters;
mod place;
pub mod statistics;
pub mod streams;
pub mod watch;

/// Ends the threads when the library is unloaded or the process exits. Threads of the program may be inside the library
/// then, so nothing is freed.
extern "C" fn at_end() {
    door::quietly((), hipfile::raw::shutdown);
}

#[used]
#[unsafe(link_section = ".fini_array")]
static AT_END: extern "C" fn() = at_end;

/// An ELF note is aligned to its numbers.
#[repr(C, align(4))]
struct Note([u8; fastpath_host::runtime::MARK.len()]);

/// Tells `check` which library a process has loaded: the functions are those of AMD's.
#[used]
#[unsafe(link_section = ".note.fastpath")]
static NOTE: Note = Note(fastpath_host::runtime::MARK);
