#![allow(
    clippy::cast_sign_loss,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr
)]

mod api;
mod asynchronous;
mod backends;
mod batches;
mod call;
mod fixture;
mod gate;
mod mock;
mod model;
mod parameters;
mod process;
mod registration;
mod statistics;
mod units;
