//! Version comparison as rpm does it, and constraints written with it.

use std::cmp::Ordering;

use serde::Deserialize;

/// Compares two version strings as rpm does (`rpmvercmp`): runs of digits as numbers, runs of letters as text, `~`
/// below and `^` above the end of the string, everything else only separates.
///
/// Rules: <https://rpm-software-management.github.io/rpm/manual/dependencies.html>.
pub fn compare(a: &str, b: &str) -> Ordering {
    rpm_version::Evr::new("", a, "").cmp(&rpm_version::Evr::new("", b, ""))
}

/// A conjunction of comparisons, written `>= 6.16, < 7.1.5`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Constraint {
    terms: Vec<(Operator, String)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Less,
    LessEqual,
    Equal,
    GreaterEqual,
    Greater,
}

impl Constraint {
    /// Whether `version` satisfies every comparison.
    pub fn matches(&self, version: &str) -> bool {
        self.terms.iter().all(|(operator, bound)| {
            let ordering = compare(version, bound);
            match operator {
                Operator::Less => ordering.is_lt(),
                Operator::LessEqual => ordering.is_le(),
                Operator::Equal => ordering.is_eq(),
                Operator::GreaterEqual => ordering.is_ge(),
                Operator::Greater => ordering.is_gt(),
            }
        })
    }
}

impl TryFrom<String> for Constraint {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let mut terms = Vec::new();
        for term in text.split(',') {
            let term = term.trim();
            let operators = [
                ("<=", Operator::LessEqual),
                (">=", Operator::GreaterEqual),
                ("<", Operator::Less),
                (">", Operator::Greater),
                ("=", Operator::Equal),
            ];
            let found = operators.into_iter().find_map(|(sign, operator)| {
                term.strip_prefix(sign).map(|version| (operator, version.trim().to_owned()))
            });
            match found {
                Some((operator, version)) if is_version(&version) => {
                    terms.push((operator, version));
                }
                _ => {
                    return Err(format!(
                        "version constraint `{text}`: expected comparisons such as `>= 6.16, < 7.1.5`"
                    ));
                }
            }
        }
        Ok(Self { terms })
    }
}

/// Whether the text is one version: an operator or a second version inside it would compare as something else.
fn is_version(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._~^+-".contains(&byte))
}
