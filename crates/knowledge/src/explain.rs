//! The long texts behind every finding, reason and state.

use serde::Deserialize;

/// What `fastpath explain` says about one id.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Explanation {
    /// The id.
    pub id: String,
    /// One line.
    pub title: String,
    /// The long text; paragraphs are separated by blank lines.
    pub text: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    explanation: Vec<Explanation>,
}

/// Every explanation, in the order of the data file.
pub fn explanations() -> Vec<Explanation> {
    // A test parses the embedded file, so the default is never taken.
    toml::from_str::<File>(include_str!("../data/explanations.toml"))
        .map(|file| file.explanation)
        .unwrap_or_default()
}
