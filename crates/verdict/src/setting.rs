//! How hipFile's libraries read a yes or a no from the environment: one rule for who judges a process and for who runs in it.

/// `true` lets I/O that cannot take the fastpath take the fallback. Default true.
pub const ALLOW_COMPAT_MODE: &str = "HIPFILE_ALLOW_COMPAT_MODE";
/// `true` keeps everything off the fastpath. Default false.
pub const FORCE_COMPAT_MODE: &str = "HIPFILE_FORCE_COMPAT_MODE";
/// `true` lets regular files of any file system on the fastpath. Default false.
pub const UNSUPPORTED_FILE_SYSTEMS: &str = "HIPFILE_UNSUPPORTED_FILE_SYSTEMS";

/// Who reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    /// This project's library: every usual way to say yes or no.
    Ours,
    /// AMD's: `true` and `false`, in capitals or not. For anything else it is as if nothing was set.
    Amd,
}

/// What a value means to a reader; `None` if it means nothing, so that the default stays.
pub fn boolean(value: &str, reader: Reader) -> Option<bool> {
    const YES: [&str; 4] = ["true", "1", "on", "yes"];
    const NO: [&str; 4] = ["false", "0", "off", "no"];
    let (value, known) = match reader {
        Reader::Ours => (value.trim(), YES.len()),
        Reader::Amd => (value, 1),
    };
    let is = |words: [&str; 4]| words.iter().take(known).any(|it| value.eq_ignore_ascii_case(it));
    is(YES).then_some(true).or_else(|| is(NO).then_some(false))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amds_library_knows_two_words_only() {
        for (value, ours, amd) in [
            ("true", Some(true), Some(true)),
            ("TRUE", Some(true), Some(true)),
            ("False", Some(false), Some(false)),
            ("1", Some(true), None),
            ("on", Some(true), None),
            ("Yes", Some(true), None),
            ("0", Some(false), None),
            ("off", Some(false), None),
            ("no", Some(false), None),
            (" true ", Some(true), None),
            ("", None, None),
            ("maybe", None, None),
        ] {
            assert_eq!(boolean(value, Reader::Ours), ours, "{value}");
            assert_eq!(boolean(value, Reader::Amd), amd, "{value}");
        }
    }
}
