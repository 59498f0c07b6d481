//! Kernel releases and knowledge files: nothing panics, versions are ordered, and no file takes a block away.
//!
//! The first line of the input is a release, the second another, the third a version constraint, the rest a knowledge
//! file.

#![no_main]

use std::sync::LazyLock;

use fastpath_knowledge::{Advisory, Constraint, Effect, Knowledge, Release, compare};
use libfuzzer_sys::fuzz_target;

static EMBEDDED: LazyLock<Knowledge> =
    LazyLock::new(|| Knowledge::embedded().expect("a test parses the embedded files"));

/// The strongest effect on a release.
fn effect(knowledge: &Knowledge, release: &Release) -> Option<Effect> {
    knowledge.advisories_for(release).map(Advisory::effect_on_release).max()
}

fuzz_target!(|text: &str| {
    let mut lines = text.splitn(4, '\n');
    let mut next = || lines.next().unwrap_or_default();
    let (first, second, constraint, file) = (next(), next(), next(), next());

    let order = compare(first, second);
    assert_eq!(compare(second, first), order.reverse());
    assert!(compare(first, first).is_eq() && compare(second, second).is_eq());
    if let Ok(constraint) = Constraint::try_from(constraint.to_owned()) {
        let (one, other) = (constraint.matches(first), constraint.matches(second));
        assert!(one == other || order.is_ne());
    }

    let knowledge = &*EMBEDDED;
    let releases: Vec<Release> = [first, second].into_iter().filter_map(Release::new).collect();
    for release in &releases {
        assert!(release.as_str().len() <= 64 && !release.as_str().contains('/'));
        assert!(release.as_str().bytes().all(|byte| byte.is_ascii_graphic()));
        assert!(release.as_str().starts_with(release.base()));
        let _ = (release.major_minor(), release.local(), release.build());
        let _ = release.el_tags().count();
        let _ = (knowledge.driver_build(release), knowledge.tested(release));
        let _ = knowledge.remedies_for(release, "blocked", second, "9.8").count();
        let _ = knowledge.reboot_commands("ubuntu", "grub", release);
    }

    // Most files are malformed; that is found out without a copy of everything that is known.
    let mut alone = Knowledge::default();
    if alone.extend("file", file).is_err() {
        assert!(alone.advisories.is_empty());
        return;
    }
    let mut extended = knowledge.clone();
    extended.extend("file", file).expect("it was taken before");
    assert!(extended.advisories.starts_with(&knowledge.advisories));
    assert!(extended.families.starts_with(&knowledge.families));
    for release in &releases {
        assert!(effect(&extended, release) >= effect(knowledge, release));
        let _ = extended.driver_build(release);
        let _ = extended.remedies_for(release, "blocked", "rocky", "9.8").count();
    }
});
