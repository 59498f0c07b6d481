//! Kernel releases: what is taken for one, and what its parts are.

use fastpath_knowledge::{ElTag, Pattern, Release};
use proptest::prelude::*;
use serde::Deserialize;

fn release(text: &str) -> Release {
    Release::new(text).expect(text)
}

#[test]
fn releases_of_many_distributions() {
    for text in [
        "6.8.0-142-generic",
        "6.12.107+deb13-amd64",
        "5.14.0-687.49.1.el9_8.x86_64+debug",
        "6.12.0-160000.37-default",
        "6.18.7-arch1-1",
        "6.19.0-0.rc7.260128g1f97d9dcf5364.49.fc44.x86_64",
        "4.14.35-2047.543.3.1.el7uek.x86_64",
        "6.1.21.1-microsoft-standard-WSL2+",
        "6.18-zen1-1-zen",
        "custom",
    ] {
        assert_eq!(release(text).as_str(), text);
        assert_eq!(release(text).to_string(), text);
        assert_eq!(release(&format!(" {text}\n")).as_str(), text, "white space around it goes");
    }
}

#[test]
fn what_cannot_be_a_release() {
    let longest = "6".repeat(64);
    assert!(Release::new(&longest).is_some());
    for text in [
        "",
        " ",
        "\n",
        "\0",
        ".",
        "..",
        "...",
        ".hidden",
        "../../etc/passwd",
        "6.8.0/../..",
        "/6.8.0",
        "6.8.0 generic",
        "6.8.0\tgeneric",
        "6.8.0\ngeneric",
        "6.8.0\0",
        "6.8.0\u{1b}[31m",
        "6.8.0\u{7f}",
        "6.8.0-é",
        "-5",
        "6.8.0-138';touch${IFS}x;'-generic",
        "6.8.0-$(reboot)",
        "6.8.0-`reboot`",
        "6.8.0-a;b",
        "6.8.0-{a,b}",
        "6.8.0-a\\b",
        "~root",
        "6.8.0\u{202e}",
        "6.8.0\u{a0}generic",
        &format!("{longest}6"),
        &"6".repeat(1 << 20),
    ] {
        assert_eq!(Release::new(text), None, "{text:?}");
    }
    let error = Release::try_from("6\u{1b}8".to_owned()).expect_err("a control character");
    assert_eq!(error, "`6\\u{1b}8` is no kernel release");
}

#[test]
fn the_parts_of_a_release() {
    for (text, base, local, build) in [
        ("5.14.0-687.49.1.el9_8.x86_64", "5.14.0", Some("687.49.1.el9_8.x86_64"), Some("687")),
        ("6.8.0-142-generic", "6.8.0", Some("142-generic"), Some("142")),
        ("6.12.107+deb13-amd64", "6.12.107", None, None),
        ("5.14.0-my-el9_8-like", "5.14.0", Some("my-el9_8-like"), None),
        ("6.12.0-160000.37-default", "6.12.0", Some("160000.37-default"), Some("160000")),
        ("6.18.7-arch1-1", "6.18.7", Some("arch1-1"), None),
        ("6.18", "6.18", None, None),
        ("6.18.", "6.18", None, None),
        ("6.18.-5", "6.18", None, None),
        ("6.18-", "6.18", Some(""), None),
        ("custom-5", "", None, None),
        ("5.14.0-00687.el9_8", "5.14.0", Some("00687.el9_8"), Some("00687")),
    ] {
        let release = release(text);
        assert_eq!(
            (release.base(), release.local(), release.build()),
            (base, local, build),
            "{text}"
        );
    }
    assert_eq!(release("6.12.0-1").major_minor(), Some((6, 12)));
    assert_eq!(release("6.12-rc1").major_minor(), Some((6, 12)));
    assert_eq!(release("6").major_minor(), None);
    assert_eq!(release("custom").major_minor(), None);
    assert_eq!(release("99999999999.1").major_minor(), Some((u32::MAX, 1)), "still a number");
}

#[test]
fn dist_tags_are_read_whole() {
    let tags = |text: &str| release(text).el_tags().collect::<Vec<_>>();
    let tag = |major, minor| ElTag { major, minor };
    assert_eq!(tags("5.14.0-687.49.1.el9_8.x86_64"), [tag(9, Some(8))]);
    assert_eq!(tags("5.14.0-1.el9_10.x86_64"), [tag(9, Some(10))]);
    assert_eq!(tags("6.12.0-300.1.el10_20.x86_64"), [tag(10, Some(20))]);
    assert_eq!(tags("6.12.0-191.el10.x86_64"), [tag(10, None)]);
    assert_eq!(tags("6.12.0-109.67.6.el10uek.x86_64"), [tag(10, None)]);
    assert_eq!(tags("5.14.0-my-el9_8-like"), [tag(9, Some(8))]);
    assert_eq!(tags("5.14.0-1.el9_8.el10_2"), [tag(9, Some(8)), tag(10, Some(2))]);
    assert_eq!(tags("5.14.0-1.el9_.x86_64"), [tag(9, None)]);
    for text in [
        "5.14.0-1.xel9_8.x86_64",
        "5.14.0-1.9el9_8",
        "5.14.0-1.el.x86_64",
        "5.14.0-1.elrepo",
        "5.14.0-1.EL9_8",
        "5.14.0",
        "5.14.0.el9_8",
        "el9_8",
    ] {
        assert_eq!(tags(text), [], "{text}");
    }
}

#[derive(Deserialize)]
struct Holder {
    pattern: Pattern,
}

fn pattern(text: &str) -> Pattern {
    let quoted = format!("pattern = '{text}'");
    toml::from_str::<Holder>(&quoted).expect(text).pattern
}

/// The meaning of a pattern, as a recursion.
fn fits(pattern: &[u8], text: &[u8]) -> bool {
    let Some((&symbol, rest)) = pattern.split_first() else { return text.is_empty() };
    match symbol {
        b'*' => (0..=text.len()).any(|taken| fits(rest, &text[taken..])),
        b'#' => {
            let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
            (1..=digits).any(|taken| fits(rest, &text[taken..]))
        }
        literal => text.first() == Some(&literal) && fits(rest, &text[1..]),
    }
}

#[test]
fn patterns_cover_whole_texts() {
    for (text, yes, no) in [
        (
            "#.#.#-#-generic",
            &["6.8.0-142-generic"][..],
            &["6.8.0-142-generic-64k", "6.8-1-generic"][..],
        ),
        ("*.el#uek*", &["6.12.0-1.el9uek.x86_64", "4.1-1.el7uek"], &["6.12.0-1.el9_8.x86_64"]),
        ("", &[""], &["a"]),
        ("*", &["", "a", "1"], &[]),
        ("**", &["", "a"], &[]),
        ("#", &["1", "12"], &["", "a", "1a", "٣"]),
        ("##", &["12", "123"], &["1"]),
        ("*#", &["a1", "12"], &["a", ""]),
        ("a.c", &["a.c"], &["abc"]),
    ] {
        let pattern = pattern(text);
        for text in yes {
            assert!(pattern.matches(text), "{pattern:?} {text}");
        }
        for text in no {
            assert!(!pattern.matches(text), "{pattern:?} {text}");
        }
    }
}

/// With a point to come back to for each star, this would not end.
#[test]
fn many_stars_take_bounded_time() {
    let many = pattern(&"*a#".repeat(60));
    assert!(!many.matches(&"a1".repeat(2000).replace("1a", "aa")));
    assert!(many.matches(&"a1".repeat(60)));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn patterns_mean_what_the_recursion_means(
        shape in "[ab1*#.]{0,8}",
        text in "[ab12.]{0,10}",
    ) {
        prop_assert_eq!(pattern(&shape).matches(&text), fits(shape.as_bytes(), text.as_bytes()));
    }

    #[test]
    fn a_pattern_without_signs_is_its_text(text in "[a-z0-9._+-]{0,20}", other in "[a-z0-9._+-]{0,20}") {
        prop_assert!(pattern(&text).matches(&text));
        prop_assert_eq!(pattern(&text).matches(&other), text == other);
    }

    #[test]
    fn a_release_is_safe_to_show_and_to_put_into_a_path(text in ".{0,70}") {
        if let Some(release) = Release::new(&text) {
            let shown = release.as_str();
            prop_assert!((1..=64).contains(&shown.len()));
            prop_assert!(shown.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'/'));
            prop_assert!(!shown.starts_with('.'));
        }
    }

    #[test]
    fn parts_are_parts(text in "[0-9a-z._+-]{1,30}") {
        if let Some(release) = Release::new(&text) {
            prop_assert!(text.starts_with(release.base()));
            if let (Some(local), Some(build)) = (release.local(), release.build()) {
                prop_assert!(text.ends_with(local));
                prop_assert!(local.starts_with(build));
                prop_assert!(build.bytes().all(|byte| byte.is_ascii_digit()));
            }
            let _ = (release.major_minor(), release.el_tags().count());
        }
    }
}
