//! Version comparison against rpm's own vectors and against what any order must do; constraints.

use std::cmp::Ordering;

use fastpath_knowledge::{Constraint, compare};
use proptest::prelude::*;

/// From rpm's test suite: <https://github.com/rpm-software-management/rpm/blob/master/tests/rpmvercmp.at>.
const VECTORS: &[(&str, &str, Ordering)] = {
    use Ordering::{Equal, Greater, Less};
    &[
        ("1.0", "1.0", Equal),
        ("1.0", "2.0", Less),
        ("2.0", "1.0", Greater),
        ("2.0.1", "2.0.1", Equal),
        ("2.0", "2.0.1", Less),
        ("2.0.1", "2.0", Greater),
        ("2.0.1a", "2.0.1a", Equal),
        ("2.0.1a", "2.0.1", Greater),
        ("2.0.1", "2.0.1a", Less),
        ("5.5p1", "5.5p1", Equal),
        ("5.5p1", "5.5p2", Less),
        ("5.5p2", "5.5p1", Greater),
        ("5.5p10", "5.5p10", Equal),
        ("5.5p1", "5.5p10", Less),
        ("5.5p10", "5.5p1", Greater),
        ("10xyz", "10.1xyz", Less),
        ("10.1xyz", "10xyz", Greater),
        ("xyz10", "xyz10", Equal),
        ("xyz10", "xyz10.1", Less),
        ("xyz10.1", "xyz10", Greater),
        ("xyz.4", "xyz.4", Equal),
        ("xyz.4", "8", Less),
        ("8", "xyz.4", Greater),
        ("xyz.4", "2", Less),
        ("2", "xyz.4", Greater),
        ("5.5p2", "5.6p1", Less),
        ("5.6p1", "5.5p2", Greater),
        ("5.6p1", "6.5p1", Less),
        ("6.5p1", "5.6p1", Greater),
        ("6.0.rc1", "6.0", Greater),
        ("6.0", "6.0.rc1", Less),
        ("10b2", "10a1", Greater),
        ("10a2", "10b2", Less),
        ("1.0aa", "1.0aa", Equal),
        ("1.0a", "1.0aa", Less),
        ("1.0aa", "1.0a", Greater),
        ("10.0001", "10.0001", Equal),
        ("10.0001", "10.1", Equal),
        ("10.1", "10.0001", Equal),
        ("10.0001", "10.0039", Less),
        ("10.0039", "10.0001", Greater),
        ("4.999.9", "5.0", Less),
        ("5.0", "4.999.9", Greater),
        ("20101121", "20101121", Equal),
        ("20101121", "20101122", Less),
        ("20101122", "20101121", Greater),
        ("2_0", "2_0", Equal),
        ("2.0", "2_0", Equal),
        ("2_0", "2.0", Equal),
        ("a", "a", Equal),
        ("a+", "a+", Equal),
        ("a+", "a_", Equal),
        ("a_", "a+", Equal),
        ("+a", "+a", Equal),
        ("+a", "_a", Equal),
        ("_a", "+a", Equal),
        ("+_", "+_", Equal),
        ("_+", "+_", Equal),
        ("_+", "_+", Equal),
        ("+", "_", Equal),
        ("_", "+", Equal),
        ("1.0~rc1", "1.0~rc1", Equal),
        ("1.0~rc1", "1.0", Less),
        ("1.0", "1.0~rc1", Greater),
        ("1.0~rc1", "1.0~rc2", Less),
        ("1.0~rc2", "1.0~rc1", Greater),
        ("1.0~rc1~git123", "1.0~rc1~git123", Equal),
        ("1.0~rc1~git123", "1.0~rc1", Less),
        ("1.0~rc1", "1.0~rc1~git123", Greater),
        ("1.0^", "1.0^", Equal),
        ("1.0^", "1.0", Greater),
        ("1.0", "1.0^", Less),
        ("1.0^git1", "1.0^git1", Equal),
        ("1.0^git1", "1.0", Greater),
        ("1.0", "1.0^git1", Less),
        ("1.0^git1", "1.0^git2", Less),
        ("1.0^git2", "1.0^git1", Greater),
        ("1.0^git1", "1.01", Less),
        ("1.01", "1.0^git1", Greater),
        ("1.0^20160101", "1.0^20160101", Equal),
        ("1.0^20160101", "1.0.1", Less),
        ("1.0.1", "1.0^20160101", Greater),
        ("1.0^20160101^git1", "1.0^20160101^git1", Equal),
        ("1.0^20160102", "1.0^20160101^git1", Greater),
        ("1.0^20160101^git1", "1.0^20160102", Less),
        ("1.0~rc1^git1", "1.0~rc1^git1", Equal),
        ("1.0~rc1^git1", "1.0~rc1", Greater),
        ("1.0~rc1", "1.0~rc1^git1", Less),
        ("1.0^git1~pre", "1.0^git1~pre", Equal),
        ("1.0^git1", "1.0^git1~pre", Greater),
        ("1.0^git1~pre", "1.0^git1", Less),
        ("1b.fc17", "1b.fc17", Equal),
        ("1b.fc17", "1.fc17", Less),
        ("1.fc17", "1b.fc17", Greater),
        ("1g.fc17", "1g.fc17", Equal),
        ("1g.fc17", "1.fc17", Greater),
        ("1.fc17", "1g.fc17", Less),
        ("1.1.α", "1.1.α", Equal),
        ("1.1.α", "1.1.β", Equal),
        ("1.1.β", "1.1.α", Equal),
        ("1.1.αα", "1.1.α", Equal),
        ("1.1.α", "1.1.ββ", Equal),
        ("1.1.ββ", "1.1.αα", Equal),
    ]
};

#[test]
fn rpms_own_vectors() {
    for &(a, b, expected) in VECTORS {
        assert_eq!(compare(a, b), expected, "{a} {b}");
        assert_eq!(compare(b, a), expected.reverse(), "{b} {a}");
    }
}

#[test]
fn numbers_have_no_largest() {
    assert_eq!(
        compare("99999999999999999999999999", "100000000000000000000000000"),
        Ordering::Less
    );
    assert_eq!(compare("000000000000000000000000687", "687"), Ordering::Equal);
    assert_eq!(compare("0", "00"), Ordering::Equal);
    assert_eq!(compare("", ""), Ordering::Equal);
    assert_eq!(compare("", "0"), Ordering::Less);
    assert_eq!(compare("", "~"), Ordering::Greater);
}

fn constraint(text: &str) -> Constraint {
    Constraint::try_from(text.to_owned()).expect(text)
}

#[test]
fn constraints_hold_as_written() {
    for (text, holds, does_not) in [
        ("< 687", &["686", "0"][..], &["687", "688"][..]),
        ("<= 687", &["686", "687", "0687"], &["688"]),
        ("= 5.14.0", &["5.14.0"], &["5.14.1", "5.14", "5.14.0.1"]),
        (">= 687", &["687", "688", "1000"], &["686", "99"]),
        ("> 611", &["612"], &["611", "610"]),
        (">= 6.16, < 7.1.5", &["6.16", "6.16.0", "7.0", "7.1.4"], &["6.15.9", "7.1.5", "7.2"]),
        (">=6.16,<7.1.5", &["6.16", "7.1.4"], &["6.15", "7.1.5"]),
        ("  >=   6.16  ,  <  7.1.5  ", &["6.16", "7.1.4"], &["6.15", "7.1.5"]),
        ("> 5, < 4", &[], &["3", "4", "4.5", "5", "6"]),
    ] {
        let constraint = constraint(text);
        for version in holds {
            assert!(constraint.matches(version), "{version} {text}");
        }
        for version in does_not {
            assert!(!constraint.matches(version), "{version} {text}");
        }
    }
}

#[test]
fn constraints_that_say_nothing_are_refused() {
    for text in ["", " ", ",", "6.16", ">=", ">= ", ">= 6.16,", ", >= 6.16", "~ 6.16", "!= 6.16"] {
        let message = Constraint::try_from(text.to_owned()).expect_err(text);
        assert!(message.starts_with(&format!("version constraint `{text}`: ")), "{message}");
    }
}

fn version() -> impl Strategy<Value = String> {
    prop_oneof![
        "[0-9a-c.~^_+-]{0,10}",
        "[0-9]{1,3}(\\.[0-9]{1,3}){0,3}(~rc[0-9]|\\^git[0-9])?",
        "[5-6]\\.[0-9]{1,2}\\.[0-2]-[0-9]{1,3}\\.el(9|10)(_[0-9])?",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_version_equals_itself(a in ".{0,20}") {
        prop_assert_eq!(compare(&a, &a), Ordering::Equal);
    }

    #[test]
    fn the_order_is_the_same_from_both_ends(a in version(), b in version()) {
        prop_assert_eq!(compare(&a, &b), compare(&b, &a).reverse());
    }

    #[test]
    fn the_order_is_transitive(a in version(), b in version(), c in version()) {
        let mut sorted = [a, b, c];
        sorted.sort_by(|a, b| compare(a, b));
        let [a, b, c] = &sorted;
        prop_assert!(compare(a, b).is_le() && compare(b, c).is_le());
        prop_assert!(compare(a, c).is_le());
        if compare(a, b).is_lt() || compare(b, c).is_lt() {
            prop_assert!(compare(a, c).is_lt());
        }
    }

    #[test]
    fn operators_follow_the_order(a in version(), b in "[0-9a-c.~^]{1,10}") {
        let holds = |operator: &str| constraint(&format!("{operator} {b}")).matches(&a);
        let order = compare(&a, &b);
        prop_assert_eq!(holds("<"), order.is_lt());
        prop_assert_eq!(holds("<="), order.is_le());
        prop_assert_eq!(holds("="), order.is_eq());
        prop_assert_eq!(holds(">="), order.is_ge());
        prop_assert_eq!(holds(">"), order.is_gt());
    }

    #[test]
    fn any_text_is_a_constraint_or_an_error(text in ".{0,30}", version in version()) {
        if let Ok(constraint) = Constraint::try_from(text) {
            let _ = constraint.matches(&version);
        }
    }
}
