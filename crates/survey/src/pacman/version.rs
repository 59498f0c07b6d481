//! pacman's order of versions.

use std::cmp::Ordering;

/// Compares two versions `[epoch:]version[-pkgrel]` as pacman does: the epoch first, then the version, then, if both have
/// one, the package release.
///
/// The comparison of one part is like rpm's, with three differences: `~` and `^` mean nothing, letters behind the common part
/// make a version older (`1.0rc < 1.0`), and separators of different length make a difference.
///
/// Rules: <https://man.archlinux.org/man/vercmp.8>.
pub fn compare(a: &str, b: &str) -> Ordering {
    if a == b {
        return Ordering::Equal;
    }
    let (a, b) = (Parts::of(a), Parts::of(b));
    compare_part(a.epoch, b.epoch).then_with(|| compare_part(a.version, b.version)).then_with(
        || match (a.release, b.release) {
            (Some(a), Some(b)) => compare_part(a, b),
            _ => Ordering::Equal,
        },
    )
}

struct Parts<'a> {
    epoch: &'a str,
    version: &'a str,
    release: Option<&'a str>,
}

impl<'a> Parts<'a> {
    fn of(text: &'a str) -> Self {
        let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (epoch, rest) = match text[digits..].strip_prefix(':') {
            Some(rest) => (&text[..digits], rest),
            None => ("0", text),
        };
        let (version, release) = match rest.rsplit_once('-') {
            Some((version, release)) => (version, Some(release)),
            None => (rest, None),
        };
        Self { epoch: if epoch.is_empty() { "0" } else { epoch }, version, release }
    }
}

/// A run of digits or letters from the start, and the rest.
fn run(text: &str, of: impl Fn(&u8) -> bool) -> (&str, &str) {
    let end = text.bytes().position(|byte| !of(&byte)).unwrap_or(text.len());
    text.split_at(end)
}

fn compare_part(a: &str, b: &str) -> Ordering {
    if a == b {
        return Ordering::Equal;
    }
    let (mut a, mut b) = (a, b);
    loop {
        if a.is_empty() || b.is_empty() {
            break;
        }
        // Bytes beyond ASCII separate as well; a cut inside a character cannot happen, for all its bytes do.
        let (gap_a, rest_a) = run(a, |byte| !byte.is_ascii_alphanumeric());
        let (gap_b, rest_b) = run(b, |byte| !byte.is_ascii_alphanumeric());
        (a, b) = (rest_a, rest_b);
        if a.is_empty() || b.is_empty() {
            break;
        }
        if gap_a.len() != gap_b.len() {
            return gap_a.len().cmp(&gap_b.len());
        }
        let number = a.starts_with(|c: char| c.is_ascii_digit());
        let kind = |byte: &u8| {
            if number { byte.is_ascii_digit() } else { byte.is_ascii_alphabetic() }
        };
        let (part_a, rest_a) = run(a, kind);
        let (part_b, rest_b) = run(b, kind);
        if part_b.is_empty() {
            // A number is newer than letters.
            return if number { Ordering::Greater } else { Ordering::Less };
        }
        let order = if number {
            let (part_a, part_b) = (part_a.trim_start_matches('0'), part_b.trim_start_matches('0'));
            part_a.len().cmp(&part_b.len()).then_with(|| part_a.cmp(part_b))
        } else {
            part_a.cmp(part_b)
        };
        if order.is_ne() {
            return order;
        }
        (a, b) = (rest_a, rest_b);
    }
    let letters = |text: &str| text.starts_with(|c: char| c.is_ascii_alphabetic());
    match (a.is_empty(), b.is_empty()) {
        (true, true) => Ordering::Equal,
        // Letters that remain never beat nothing: they are `rc`, `beta`.
        (true, false) if !letters(b) => Ordering::Less,
        _ if letters(a) => Ordering::Less,
        _ => Ordering::Greater,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From pacman's manual and its own tests (`test/util/vercmptest.sh`).
    #[test]
    fn vectors_of_pacman() {
        let ascending =
            ["1.0a", "1.0b", "1.0beta", "1.0p", "1.0pre", "1.0rc", "1.0", "1.0.a", "1.0.1"];
        for (at, low) in ascending.iter().enumerate() {
            for high in &ascending[at + 1..] {
                assert_eq!(compare(low, high), Ordering::Less, "{low} {high}");
                assert_eq!(compare(high, low), Ordering::Greater, "{high} {low}");
            }
        }
        for (a, b, expected) in [
            ("1.5.0", "1.5.0", 0),
            ("1.5.1", "1.5.0", 1),
            ("1.5.1", "1.5", 1),
            ("1.5.0-1", "1.5.0-1", 0),
            ("1.5.0-1", "1.5.0-2", -1),
            ("1.5.0-2", "1.5.1-1", -1),
            ("1.5-1", "1.5.1-1", -1),
            ("1.5-1", "1.5", 0),
            ("1.1-1", "1.1.1", -1),
            ("1.5.b-1", "1.5.b", 0),
            ("1.5b-1", "1.5-1", -1),
            ("1.5b", "1.5.1", -1),
            ("1.0.", "1.0.1", -1),
            ("1..0", "1.0", 1),
            ("2.0", "2_0", 0),
            ("2.0a", "2.0.a", -1),
            ("2___a", "2_a", 1),
            ("0:1.0", "1.0", 0),
            ("0:1.0", "0:1.1", -1),
            ("1:1.0", "0:1.1", 1),
            ("1:1.0", "2:1.1", -1),
            ("1:1.0-1", "0:1.1-5", 1),
            ("1:1.0", "1.1", 1),
            ("6.17.9.arch1-1", "6.17.10.arch1-1", -1),
            ("6.18.arch1-1", "6.17.9.arch1-1", 1),
            ("6.18.rc1.arch1-1", "6.18.arch1-1", 1),
            ("", "1", -1),
        ] {
            let found = match compare(a, b) {
                Ordering::Less => -1,
                Ordering::Equal => 0,
                Ordering::Greater => 1,
            };
            assert_eq!(found, expected, "{a} {b}");
            assert_eq!(compare(b, a), compare(a, b).reverse(), "{b} {a}");
        }
    }
}
