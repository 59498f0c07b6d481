//! The published support matrix, row by row.

use fastpath_knowledge::{Knowledge, Release};

/// What the support page says: target, operating system inspected, kernel, whether it has the option.
/// Source: <https://rocm.docs.amd.com/projects/hipFile/en/develop/reference/hipFile-kernel-p2pdma-support.html>.
const PUBLISHED: [(&str, &str, &str, bool); 18] = [
    ("debian-12", "Debian GNU/Linux 12 (bookworm)", "6.1.0-53-amd64", false),
    ("debian-13", "Debian GNU/Linux 13 (trixie)", "6.12.107+deb13-amd64", false),
    ("oracle-10", "Oracle Linux Server 10.1", "6.12.0-109.67.6.el10uek.x86_64", false),
    ("oracle-9", "Oracle Linux Server 9.8", "6.12.0-1.23.3.2.el9uek.x86_64", false),
    ("rhel-10.0", "Rocky Linux 10.0 (Red Quartz)", "6.12.0-55.41.1.el10_0.x86_64", true),
    ("rhel-10.2", "Rocky Linux 10.2 (Red Quartz)", "6.12.0-211.58.1.el10_2.x86_64", true),
    ("rhel-8.10", "Rocky Linux 8.10 (Green Obsidian)", "4.18.0-553.166.1.el8_10.x86_64", false),
    ("rhel-9.4", "Rocky Linux 9.4 (Blue Onyx)", "5.14.0-427.42.1.el9_4.x86_64", true),
    ("rhel-9.6", "Rocky Linux 9.6 (Blue Onyx)", "5.14.0-570.58.1.el9_6.x86_64", true),
    ("rhel-9.8", "Rocky Linux 9.8 (Blue Onyx)", "5.14.0-687.49.1.el9_8.x86_64", true),
    ("sles-15.7-native", "SLES 15 SP7", "6.4.0-150700.53.81-default", true),
    ("sles-16.0", "openSUSE Leap 16.0", "6.12.0-160000.37-default", true),
    ("ubuntu-2204", "Ubuntu 22.04.5 LTS", "5.15.0-194-generic", false),
    ("ubuntu-2204-hwe", "Ubuntu 22.04.5 LTS", "6.8.0-138-generic", true),
    ("ubuntu-2404", "Ubuntu 24.04.4 LTS", "6.8.0-142-generic", true),
    ("ubuntu-2404-hwe", "Ubuntu 24.04.4 LTS", "7.0.0-34-generic", true),
    ("ubuntu-2604", "Ubuntu 26.04 LTS", "7.0.0-34-generic", true),
    ("ubuntu-2604-hwe", "Ubuntu 26.04 LTS", "7.0.0-34-generic", true),
];

fn knowledge() -> Knowledge {
    Knowledge::embedded().expect("the embedded files parse")
}

#[test]
fn every_row_is_as_published() {
    let knowledge = knowledge();
    let rows: Vec<_> = knowledge
        .rows()
        .map(|(_, row)| (row.target.as_str(), row.os.as_str(), row.kernel.as_str(), row.p2pdma))
        .collect();
    assert_eq!(rows, PUBLISHED);
}

#[test]
fn every_target_is_in_the_catalogue_under_both_names() {
    let knowledge = knowledge();
    for (name, ..) in PUBLISHED {
        let target = knowledge.target(name).expect(name);
        assert_eq!(target.name, name);
        assert_eq!(knowledge.target(&target.id), Some(target), "{}", target.id);
    }
    let mut names: Vec<&str> = Vec::new();
    for target in knowledge.targets() {
        names.push(&target.name);
        names.extend(Some(target.id.as_str()).filter(|id| *id != target.name));
    }
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all, "a name or id stands for one target");
    assert_eq!(knowledge.target("rhel-9.9"), None);
    assert_eq!(knowledge.target(""), None);
}

#[test]
fn only_the_exact_kernel_of_a_row_is_tested() {
    let knowledge = knowledge();
    let is_tested = |text: &str| knowledge.tested(&Release::new(text).expect(text)).is_some();
    for (_, _, kernel, _) in PUBLISHED {
        assert!(is_tested(kernel), "{kernel}");
        assert!(!is_tested(&format!("{kernel}1")), "{kernel}1");
    }
    assert!(!is_tested("6.8.0-143-generic"));
}

#[test]
fn only_the_two_reported_kernels_of_the_matrix_are_blocked() {
    let knowledge = knowledge();
    for (target, _, kernel, _) in PUBLISHED {
        let release = Release::new(kernel).expect(kernel);
        let mut advisories = knowledge.advisories_for(&release);
        let blocked =
            advisories.any(|a| a.effect_on_release() == fastpath_knowledge::Effect::Block);
        assert_eq!(blocked, matches!(target, "rhel-9.8" | "rhel-10.2"), "{target}");
    }
}

#[test]
fn pinned_keys_are_fingerprints_and_reach_the_targets_that_sign() {
    let keys = fastpath_knowledge::keys();
    assert!(keys.len() > 20);
    for key in &keys {
        assert!([40, 64].contains(&key.fingerprint.len()), "{}", key.name);
        assert!(key.fingerprint.bytes().all(|b| b.is_ascii_digit() || (b'A'..=b'F').contains(&b)));
    }
    let knowledge = knowledge();
    for name in [
        "debian-12",
        "debian-sid",
        "ubuntu-2404",
        "oracle-9",
        "rhel-9.8",
        "rhel-8.10",
        "sles-15.7-native",
    ] {
        let target = knowledge.target(name).expect(name);
        assert!(keys.iter().any(|key| key.is_for(target)), "{name} has no key");
    }
    let rocky = knowledge.target("rhel-9.8").expect("rhel-9.8");
    let others: Vec<_> =
        keys.iter().filter(|key| key.is_for(rocky)).map(|key| key.distribution.as_str()).collect();
    assert_eq!(others, ["rocky"], "and no other distribution's");
}

#[test]
fn remedies_name_targets_that_a_survey_can_read() {
    let knowledge = Knowledge::embedded().expect("embedded");
    let ids: Vec<&str> = knowledge.targets().map(|target| target.id.as_str()).collect();
    let mut named = 0;
    for remedy in &knowledge.remedies {
        let target = remedy.kernel.as_ref().and_then(|kernel| kernel.target.as_ref());
        for id in target.into_iter().chain(&remedy.lacking) {
            assert!(ids.contains(&id.as_str()), "{}: no target `{id}`", remedy.id);
            named += 1;
        }
    }
    assert!(named > 5, "{named}");
}
