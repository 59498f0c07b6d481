//! fastpath
fn main() {}
