//! The survey from end to end: the program itself, on repositories made with the distributions' own tools and signed with a key
//! of the test, served on the loopback interface.

#[path = "../../../survey/tests/common/mod.rs"]
mod common;
#[path = "../../../artifact/tests/server/mod.rs"]
mod server;

mod faults;
mod matrix;
mod rows;
mod runs;
mod signed;
mod world;
