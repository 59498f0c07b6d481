//! Patterns for kernel releases and names.

use serde::Deserialize;

/// A pattern over a whole string: `*` is any text, `#` a run of digits, every other character itself.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Pattern(String);

impl Pattern {
    /// The pattern as it is written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the whole of `text` fits the pattern.
    pub fn matches(&self, text: &str) -> bool {
        fits(self.0.as_bytes(), text.as_bytes())
    }
}

/// Iterative matching with one point to come back to for each kind of run, so that time stays bounded by the product
/// of the lengths.
fn fits(pattern: &[u8], text: &[u8]) -> bool {
    // `reach[i]` tells whether the pattern read so far can end at `text[..i]`.
    let mut reach = vec![false; text.len() + 1];
    reach[0] = true;
    for &symbol in pattern {
        let mut next = vec![false; text.len() + 1];
        match symbol {
            b'*' => {
                let mut open = false;
                for (there, &here) in next.iter_mut().zip(&reach) {
                    open |= here;
                    *there = open;
                }
            }
            b'#' => {
                for at in 0..text.len() {
                    next[at + 1] = text[at].is_ascii_digit() && (reach[at] || next[at]);
                }
            }
            literal => {
                for at in 0..text.len() {
                    next[at + 1] = reach[at] && text[at] == literal;
                }
            }
        }
        reach = next;
    }
    reach[text.len()]
}
