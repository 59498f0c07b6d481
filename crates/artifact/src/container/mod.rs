//! Containers, read forwards, one member after the other.

pub(crate) mod ar;
pub(crate) mod cpio;
pub(crate) mod rpm;
pub(crate) mod tar;

/// The longest name that is kept; Linux has no longer path.
const MAX_NAME: u64 = 4096;

/// A name as text. What is no UTF-8 is replaced: such a name is none of those looked for.
fn name_text(bytes: &[u8]) -> String {
    let end = memchr::memchr(0, bytes).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}
