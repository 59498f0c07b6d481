//! The names and habits the simulated library has in common with the real one.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // What clients of HIP 7 are linked against.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libamdhip64.so.7");
    // Worker threads run its code and exit handlers point into it: `dlclose` must leave it where it is.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
