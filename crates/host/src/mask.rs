//! Taking identities out of text: machine ids, file system UUIDs, serial numbers, names of hosts and people.
//!
//! Two strengths. [`mask_ids`] keeps the length and everything that is no id. [`disguise`] is for texts that somebody
//! may have written by hand, as names of boot entries: it keeps only what is known to name nobody.

/// Replaces every hexadecimal digit of a machine id (32 digits in a row) or UUID (8-4-4-4-12) by `0`, so that texts
/// that named one thing still do, and nobody learns which.
pub fn mask_ids(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = text.to_owned().into_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let boundary = at == 0 || !bytes[at - 1].is_ascii_alphanumeric();
        match id_length(&bytes[at..]).filter(|_| boundary) {
            Some(length) => {
                for byte in &mut out[at..at + length] {
                    if byte.is_ascii_hexdigit() {
                        *byte = b'0';
                    }
                }
                at += length;
            }
            None => at += 1,
        }
    }
    // Only ASCII digits were exchanged for `0`, so the text is still UTF-8.
    String::from_utf8(out).unwrap_or_default()
}

/// The length of the id that `bytes` starts with: 32 hexadecimal digits, or a UUID. Longer runs are checksums.
pub(crate) fn id_length(bytes: &[u8]) -> Option<usize> {
    const UUID: [usize; 5] = [8, 4, 4, 4, 12];
    let digits = bytes.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    let ends = |length: usize| bytes.get(length).is_none_or(|byte| !byte.is_ascii_alphanumeric());
    if digits == 32 && ends(digits) {
        return Some(digits);
    }
    let mut at = 0;
    for (group, length) in UUID.into_iter().enumerate() {
        if group > 0 {
            if bytes.get(at) != Some(&b'-') {
                return None;
            }
            at += 1;
        }
        let digits = bytes.get(at..at + length)?;
        if !digits.iter().all(u8::is_ascii_hexdigit) {
            return None;
        }
        at += length;
    }
    ends(at).then_some(at)
}

/// Replaces every word that could name a host, a person or a disk by a stand-in, the same for the same word whatever
/// its case. What is left: ids as [`mask_ids`] leaves them, releases and versions, small numbers, names of partitions,
/// and the words that boot loaders and distributions use themselves. Everything between words stays too, so the text
/// of a quoted word is disguised in the same way as the word.
///
/// A pure function that changes nothing when it is applied again.
pub fn disguise(text: &str) -> String {
    let text = mask_ids(text);
    let mut out = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(first) = rest.chars().next() {
        let (length, kept) =
            if first.is_alphanumeric() { token(rest) } else { (first.len_utf8(), true) };
        let (token, after) = rest.split_at(length);
        if kept {
            out.push_str(token);
        } else {
            out.push_str(&stand_in(token));
        }
        rest = after;
    }
    out
}

/// Whether what [`disguise`] gave holds something that may have been another text before: then equal texts need not
/// have been equal.
pub fn is_disguised(text: &str) -> bool {
    has_stand_in(text)
        || text.char_indices().any(|(at, c)| {
            c == '0'
                && !text[..at].ends_with(|c: char| c.is_ascii_alphanumeric())
                && id_length(&text.as_bytes()[at..]).is_some()
        })
}

/// Whether what [`disguise`] gave holds a stand-in: then it is not known which of two texts comes first.
pub fn has_stand_in(text: &str) -> bool {
    text.split(|c: char| !c.is_alphanumeric()).any(is_stand_in)
}

/// The length of what `text`, which starts with a letter or digit, starts with, and whether it is kept.
fn token(text: &str) -> (usize, bool) {
    let whole = |length: &usize| !text[*length..].starts_with(char::is_alphanumeric);
    if let Some(length) = id_length(text.as_bytes()).filter(whole) {
        return (length, true);
    }
    if let Some(length) = address_length(text).or_else(|| serial_length(text)) {
        return (length, false);
    }
    if let Some(length) = release_length(text) {
        return (length, true);
    }
    let length = text.find(|c: char| !c.is_alphanumeric()).unwrap_or(text.len());
    (length, is_harmless(&text[..length]))
}

/// The length of the release or version that `text` starts with: `6.8.0-142-generic`, `258.2-2-arch`, `22.04.5`. It
/// ends where the names of boot entries go on: before `-advanced-`, `--`, or a long number.
fn release_length(text: &str) -> Option<usize> {
    let part = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '+' | '~' | '-');
    let run = &text[..text.find(|c| !part(c)).unwrap_or(text.len())];
    let (major, rest) = run.split_once('.')?;
    let number = major.bytes().all(|byte| byte.is_ascii_digit());
    if !number || !rest.starts_with(|c: char| c.is_ascii_digit()) || !run.is_ascii() {
        return None;
    }
    let serial = |piece: &str| piece.len() >= 16 && piece.bytes().all(|b| b.is_ascii_hexdigit());
    let mut length = 0;
    for piece in run.split('-') {
        if length > 0 && (matches!(piece, "" | "advanced" | "recovery") || serial(piece)) {
            break;
        }
        // The hyphen in front of every piece but the first.
        length += piece.len() + usize::from(length > 0);
    }
    Some(run[..length].trim_end_matches(['.', '_', '+', '~', '-']).len())
}

/// The length of the IPv4 address that `text` starts with. Kernels have four numbers too, but a small first one.
fn address_length(text: &str) -> Option<usize> {
    let length = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let dotted = text[..length].trim_end_matches('.');
    let ends = !text[dotted.len()..].starts_with(|c: char| c.is_alphanumeric());
    let groups: Vec<Option<u8>> = dotted.split('.').map(|group| group.parse().ok()).collect();
    let address = groups.len() == 4 && groups.iter().all(Option::is_some);
    (address && ends && groups[0] >= Some(10)).then_some(dotted.len())
}

/// The length of the serial number of a FAT file system, `ABCD-1234`, that `text` starts with.
fn serial_length(text: &str) -> Option<usize> {
    const LENGTH: usize = 9;
    let serial = text.as_bytes().get(..LENGTH)?;
    let digits =
        |at: usize, byte: &u8| if at == 4 { *byte == b'-' } else { byte.is_ascii_hexdigit() };
    let ends = text.get(LENGTH..).is_some_and(|rest| !rest.starts_with(char::is_alphanumeric));
    (ends && serial.iter().enumerate().all(|(at, byte)| digits(at, byte))).then_some(LENGTH)
}

/// Whether a word names nobody.
fn is_harmless(word: &str) -> bool {
    if !word.is_ascii() {
        return false;
    }
    let lower = word.to_ascii_lowercase();
    let base = lower.trim_end_matches(|c: char| c.is_ascii_digit());
    let digits = lower.len() - base.len();
    let short = digits <= 4;
    let date = digits == 8 && lower[base.len()..].starts_with("20");
    match base {
        "" => short || date,
        _ if is_stand_in(&lower) || is_partition(&lower) || is_short_hexadecimal(&lower) => true,
        _ => short && (base.len() == 1 || WORDS.binary_search(&base).is_ok()),
    }
}

/// A position in a menu, as hexadecimal.
fn is_short_hexadecimal(word: &str) -> bool {
    word.strip_prefix("0x").is_some_and(|digits| {
        (1..=3).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

/// The name that Linux gives to a disk or a partition: `sda2`, `nvme0n1p1`.
fn is_partition(word: &str) -> bool {
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if let Some(numbers) = word.strip_prefix("nvme") {
        let Some((controller, rest)) = numbers.split_once('n') else { return number(numbers) };
        let (space, partition) = rest.split_once('p').unwrap_or((rest, "0"));
        return numbers.len() <= 12 && [controller, space, partition].into_iter().all(number);
    }
    let disk = ["sd", "vd", "hd"].into_iter().find_map(|kind| word.strip_prefix(kind));
    disk.is_some_and(|rest| {
        let (letters, digits) = rest.split_at(rest.len().min(1));
        letters.bytes().all(|byte| byte.is_ascii_lowercase())
            && digits.len() <= 3
            && digits.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// What stands for a word. One of 65536, so that a guess at the word cannot be proved. It starts with a digit if the
/// word did: GRUB takes such a name of an entry for a number.
fn stand_in(word: &str) -> String {
    // FNV-1a, which is the same in every release of this program.
    let hash = word.to_lowercase().bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let folded = (hash ^ (hash >> 16) ^ (hash >> 32) ^ (hash >> 48)) & 0xffff;
    let digit = if word.starts_with(|c: char| c.is_ascii_digit()) { "0" } else { "" };
    format!("{digit}h{folded:04x}")
}

fn is_stand_in(word: &str) -> bool {
    let word = word.strip_prefix('0').unwrap_or(word);
    word.strip_prefix('h').is_some_and(|digits| {
        digits.len() == 4 && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    })
}

/// Words of boot loaders, of the files they read, and of the distributions that write these. Sorted, in lower case.
#[rustfmt::skip]
const WORDS: [&str; 342] = [
    "aarch", "advanced", "all", "alma", "almalinux", "alpha", "alpine", "amazon", "amd", "amzn",
    "an", "and", "android", "antix", "any", "apple", "arch", "archlinux", "arm", "armhf", "atomic",
    "auto", "azure", "azurelinux", "backup", "base", "bazzite", "beta", "binary", "bios", "block",
    "bls", "blscfg", "blue", "boot", "booted", "bootuuid", "btrfs", "by", "bzimage", "cachyos",
    "centos", "cfg", "chain", "chainloader", "chosen", "cloud", "cmdline", "conf", "config",
    "configfile", "console", "core", "coreos", "coughlan", "counter", "current", "custom", "deb",
    "debian", "debug", "default", "desktop", "dev", "devel", "directory", "disable", "disk", "dm",
    "do", "done", "dual", "edition", "efi", "efilinux", "eight", "eighteen", "eighty", "el",
    "elementary", "eleven", "elif", "else", "enable", "endeavour", "endeavouros", "endless",
    "enterprise", "entries", "entry", "env", "error", "eval", "exit", "ext", "fallback", "false",
    "fc", "feature", "fedora", "fi", "fifteen", "fifty", "file", "final", "firmware", "firstboot",
    "five", "flavour", "for", "forty", "four", "fourteen", "from", "fs", "function", "fwsetup",
    "fwupd", "gcp", "generic", "genkernel", "gentoo", "gnu", "gnulinux", "gpt", "green", "grub",
    "grubenv", "grubx", "gz", "hardened", "hat", "hd", "hwe", "hypervisor", "id", "ignition",
    "image", "img", "in", "initramfs", "initrd", "initrdfail", "iso", "kali", "kcmdline", "kernel",
    "kernelopts", "kernels", "last", "lastbooted", "latest", "le", "leap", "legacy", "level",
    "limine", "linux", "linuxmint", "live", "load", "loader", "loongarch", "loop", "lowlatency",
    "lts", "luks", "lvm", "macos", "mainline", "maipo", "manager", "manjaro", "mapper", "md",
    "memory", "memtest", "menu", "menuentry", "microos", "microsoft", "mint", "mode", "module",
    "mounted", "msdos", "multi", "multiboot", "mx", "netboot", "network", "new", "next", "nine",
    "nineteen", "ninety", "nixos", "no", "nomodeset", "none", "normal", "nvme", "obsidian", "ol",
    "old", "on", "one", "onyx", "ootpa", "open", "openeuler", "opensuse", "option", "options",
    "oracle", "order", "os", "osprober", "ostree", "osx", "other", "part", "plow", "plus", "pop",
    "poweroff", "ppc64el", "ppc64le", "pre", "preempt", "prefix", "prev", "previous", "proxmox",
    "q4os", "quartz", "raid", "rc", "realtime", "reboot", "recovery", "red", "redhat", "refind",
    "release", "rescue", "rhel", "riscv", "rocky", "root", "rpm", "rt", "s390x", "safe", "saved",
    "scientific", "secure", "security", "select", "server", "set", "settings", "setup", "seven",
    "seventeen", "seventy", "shell", "signed", "silverblue", "simple", "single", "six", "sixteen",
    "sixty", "slackware", "sle", "sles", "snapper", "snapshot", "snapshots", "source", "stable",
    "standard", "start", "steamos", "stock", "submenu", "success", "suse", "system", "systemd",
    "ten", "test", "testing", "then", "thirteen", "thirty", "three", "title", "to", "top", "true",
    "tumbleweed", "tuxedo", "twelve", "twenty", "two", "ubuntu", "uefi", "uek", "uki", "unified",
    "unset", "unsigned", "unstable", "until", "update", "user", "ventoy", "version", "vg", "vga",
    "virt", "virtual", "vm", "vmlinux", "vmlinuz", "void", "while", "windows", "with",
    "workstation", "wsl", "xen", "xfs", "xz", "zen", "zero", "zfs", "zfsbootmenu", "zorin", "zst",
];

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_words_are_sorted() {
        assert!(WORDS.is_sorted());
        assert!(WORDS.iter().all(|word| word.bytes().all(|byte| !byte.is_ascii_uppercase())));
        // Digits at the end are taken off before a word is looked up.
        assert!(WORDS.iter().all(|word| !word.ends_with(|c: char| c.is_ascii_digit())));
    }

    #[test]
    fn what_distributions_write_stays_readable() {
        let zero = "00000000-0000-0000-0000-000000000000";
        let texts = [
            "Ubuntu, with Linux 6.8.0-142-generic".to_owned(),
            "Advanced options for Ubuntu".to_owned(),
            "Debian GNU/Linux, with Linux 6.12.57+deb13-amd64 (recovery mode)".to_owned(),
            "Fedora Linux (6.17.8-300.fc43.x86_64) 43 (Forty Three)".to_owned(),
            "Rocky Linux (5.14.0-687.49.1.el9_8.x86_64) 9.8 (Blue Onyx)".to_owned(),
            "Red Hat Enterprise Linux (5.14.0-687.49.1.el9_8.x86_64) 9.8 (Plow)".to_owned(),
            "Fedora CoreOS 43.20251110.3.0 (ostree:0)".to_owned(),
            "Windows Boot Manager (on /dev/nvme0n1p1)".to_owned(),
            "UEFI Firmware Settings".to_owned(),
            "Arch Linux, with Linux linux-lts".to_owned(),
            "openSUSE Leap 16.0".to_owned(),
            "systemd-boot 258.2-2-arch".to_owned(),
            "GRUB 2.12".to_owned(),
            format!("gnulinux-advanced-{zero}>gnulinux-6.8.0-142-generic-advanced-{zero}"),
            "/vmlinuz-0-rescue-00000000000000000000000000000000".to_owned(),
            "1>2".to_owned(),
            "0x1>0x1".to_owned(),
            "${saved_entry}".to_owned(),
        ];
        for text in texts {
            assert_eq!(disguise(&text), text);
        }
    }

    #[test]
    fn names_and_serial_numbers_go() {
        let texts = [
            ("osprober-efi-ABCD-1234", "ABCD"),
            ("osprober-efi-1234-5678", "1234"),
            ("osprober-chain-A0B1C2D3E4F50617", "A0B1"),
            ("osprober-chain-1001020304050607", "1001"),
            ("gnulinux-simple-1a2b3c4d5e6f7081", "1a2b"),
            ("gnulinux-6.8.0-31-generic-advanced-1a2b3c4d5e6f7081", "1a2b"),
            ("osprober-gnulinux-/boot/vmlinuz-6.8.0-31-generic--ABCD-1234", "ABCD"),
            ("gnulinux-simple-/dev/mapper/alicepc--vg-root", "alicepc"),
            ("gnulinux-6.8.0-31-generic-advanced-/dev/mapper/alicepc--vg-root", "alicepc"),
            ("Ubuntu of Alice", "Alice"),
            ("boot.example.com", "example"),
            ("10.0.0.1", "10.0"),
            ("müller", "ller"),
        ];
        for (text, secret) in texts {
            let out = disguise(text);
            assert!(!out.contains(secret), "{out}");
            assert!(is_disguised(&out), "{out}");
        }
    }

    #[test]
    fn quotes_do_not_change_what_stands_for_a_word() {
        let (plain, quoted) = (disguise("Fred's box"), disguise(r"Fred'\''s box"));
        assert_eq!(quoted.replace(r"'\''", "'"), plain);
    }

    proptest! {
        #[test]
        fn a_disguise_is_kept(
            text in "((6\\.1\\.0|10\\.0\\.0\\.1|ABCD|12|alice|h12ab|é|0x|linux|advanced|0123456789abcdef|[-._+~>/ a0]){1,2}){0,8}"
        ) {
            let once = disguise(&text);
            prop_assert_eq!(disguise(&once), once);
        }

        #[test]
        fn any_text_can_be_disguised(text in ".*") {
            let once = disguise(&text);
            prop_assert_eq!(disguise(&once), once);
        }
    }
}
