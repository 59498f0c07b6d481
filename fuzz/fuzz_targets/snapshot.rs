//! Snapshots: reading one is bounded and never panics, and whatever it says can be judged.
//!
//! An input that starts with `@` is a list of members (`@name`, then the bytes), put into an archive here, so that a
//! fuzzer need not find tar's checksums. Anything else is the file itself.

#![no_main]

use fastpath_fuzz::sections;
use fastpath_host::snapshot::Replay;
use fastpath_host::{Asked, Tree, Want, gather};
use libfuzzer_sys::fuzz_target;

fn archive(input: &[u8]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, bytes) in sections(input) {
        let mut header = tar::Header::new_ustar();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        // The name as it is: `append_data` would refuse the ones that matter.
        let field = &mut header.as_old_mut().name;
        let length = name.len().min(field.len());
        field[..length].copy_from_slice(&name.as_bytes()[..length]);
        header.set_cksum();
        builder.append(&header, bytes.as_slice()).expect("a vector takes everything");
    }
    builder.into_inner().expect("a vector takes everything")
}

fuzz_target!(|input: &[u8]| {
    let bytes = if input.starts_with(b"@") { archive(input) } else { input.to_owned() };
    let Ok(replay) = Replay::from_bytes(bytes) else { return };
    let _ = replay.meta();
    let facts = gather(&replay, &Asked::Running);
    if let Some(kernel) = facts.kernel.installed.first() {
        let _ = gather(&replay, &Asked::Release(kernel.release.clone()));
    }
    // Questions nobody asked when it was taken.
    for path in
        ["/", "/etc", "/etc/../etc/os-release", "//etc//os-release", "", "relative", "/a/b/c"]
    {
        let _ = replay.read(path, &Want::whole(1 << 20));
        let _ = replay.list(path);
        let _ = replay.kind(path);
    }
});
