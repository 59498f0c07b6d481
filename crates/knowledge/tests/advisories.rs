//! Which kernels the advisories mark, and that no file of a user takes a block away.

use fastpath_knowledge::{
    Advisory, Effect, Error, IommuGroupType, Knowledge, MapType, Release, RemedyKind, explanations,
};

fn knowledge() -> Knowledge {
    Knowledge::embedded().expect("the embedded files parse")
}

fn release(text: &str) -> Release {
    Release::new(text).expect(text)
}

/// The strongest effect that the release alone has.
fn effect(knowledge: &Knowledge, text: &str) -> Option<Effect> {
    knowledge.advisories_for(&release(text)).map(Advisory::effect_on_release).max()
}

fn ids(knowledge: &Knowledge, text: &str) -> Vec<String> {
    knowledge.advisories_for(&release(text)).map(|advisory| advisory.id.clone()).collect()
}

#[test]
fn answers_that_were_agreed_on() {
    let knowledge = knowledge();
    for (text, expected) in [
        ("5.14.0-687.49.1.el9_8.x86_64", Some(Effect::Block)),
        ("5.14.0-687.49.1.local.el9_8.x86_64", Some(Effect::Block)),
        ("5.14.0-570.58.1.el9_6.x86_64", None),
        ("5.14.0-700.1.1.el9_9.x86_64", Some(Effect::Warn)),
        ("6.12.0-211.58.1.el10_2.x86_64", Some(Effect::Block)),
        ("6.12.0-109.67.6.el10uek.x86_64", None),
        ("6.12.0-300.1.el10_20.x86_64", Some(Effect::Warn)),
        ("5.14.0-my-el9_8-like", None),
    ] {
        assert_eq!(effect(&knowledge, text), expected, "{text}");
    }
}

#[test]
fn the_lines_with_corruption_reports_and_their_neighbours() {
    let knowledge = knowledge();
    for (text, expected) in [
        // The first build that is blocked, and the last before it.
        ("5.14.0-686.el9_8.x86_64", Some("el9-newer-than-blocked")),
        ("5.14.0-687.el9_8.x86_64", Some("el9_8-memory-corruption")),
        ("5.14.0-0687.el9_8.x86_64", Some("el9_8-memory-corruption")),
        ("5.14.0-1000.1.1.el9_8.x86_64", Some("el9_8-memory-corruption")),
        ("6.12.0-210.el10_2.x86_64", Some("el10-newer-than-blocked")),
        ("6.12.0-211.el10_2.x86_64", Some("el10_2-memory-corruption")),
        // Other architectures and variants of the same build.
        ("5.14.0-687.49.1.el9_8.x86_64+debug", Some("el9_8-memory-corruption")),
        ("5.14.0-687.49.1.el9_8.x86_64+rt", Some("el9_8-memory-corruption")),
        ("5.14.0-687.49.1.el9_8.aarch64+64k", Some("el9_8-memory-corruption")),
        ("6.12.0-211.58.1.el10_2.x86_64+debug", Some("el10_2-memory-corruption")),
        // Later minor releases: a number, not a text.
        ("5.14.0-700.el9_9.x86_64", Some("el9-newer-than-blocked")),
        ("5.14.0-800.el9_10.x86_64", Some("el9-newer-than-blocked")),
        ("6.12.0-300.el10_3.x86_64", Some("el10-newer-than-blocked")),
        ("6.12.0-300.1.el10_20.x86_64", Some("el10-newer-than-blocked")),
        // Earlier minor releases.
        ("5.14.0-611.26.1.el9_7.x86_64", None),
        ("5.14.0-427.42.1.el9_4.x86_64", None),
        ("5.14.0-999.el9_1.x86_64", None),
        ("6.12.0-124.29.1.el10_1.x86_64", None),
        ("6.12.0-55.41.1.el10_0.x86_64", None),
        // CentOS Stream, whose tag has no minor number.
        ("6.12.0-166.el10.x86_64", None),
        ("6.12.0-167.el10.x86_64", Some("centos-stream-10-dma-rework")),
        ("6.12.0-191.el10.x86_64", Some("centos-stream-10-dma-rework")),
        ("5.14.0-611.el9.x86_64", None),
        ("5.14.0-612.el9.x86_64", Some("centos-stream-9-dma-rework")),
        // Kernels of others for the same systems.
        ("6.12.0-109.67.6.el10uek.x86_64", None),
        ("6.12.0-300.1.2.el10_2uek.x86_64", None),
        ("5.14.0-700.1.el9_8uek.x86_64", None),
        ("5.14.0-687.hs1.el9_8.x86_64", None),
        ("6.12.0-211.hs2.hsx.el10.x86_64", None),
        ("6.12.0-211.hs2.el10_2.x86_64", None),
        ("6.12.3-1.el10.elrepo.x86_64", None),
        ("6.1.20-1.el9.elrepo.x86_64", None),
        // Other base versions and tags that only look like it.
        ("5.14.1-687.el9_8.x86_64", None),
        ("5.14-687.el9_8.x86_64", None),
        ("6.12.0-687.el9_8.x86_64", None),
        ("5.14.0-687.el8_8.x86_64", None),
        ("5.14.0-687.xel9_8.x86_64", None),
        ("5.14.0-687.el9_80.x86_64", Some("el9-newer-than-blocked")),
        ("5.14.0-x687.el9_8.x86_64", None),
        ("5.14.0.el9_8", None),
        ("4.18.0-553.166.1.el8_10.x86_64", None),
    ] {
        let found = ids(&knowledge, text);
        assert_eq!(found, expected.into_iter().collect::<Vec<_>>(), "{text}");
        let blocked = expected.is_some_and(|id| id.ends_with("-memory-corruption"));
        assert_eq!(effect(&knowledge, text) == Some(Effect::Block), blocked, "{text}");
    }
}

#[test]
fn a_mainline_kernel_on_enterprise_linux_is_not_its_kernel() {
    let knowledge = knowledge();
    for text in ["6.18.7-1.el9.elrepo.x86_64", "7.1.4-1.el10.elrepo.x86_64"] {
        assert_eq!(effect(&knowledge, text), Some(Effect::Warn), "{text}");
        assert!(ids(&knowledge, text).iter().all(|id| !id.starts_with("el")), "{text}");
    }
}

#[test]
fn advisories_with_needs_only_warn_until_they_are_proven() {
    let knowledge = knowledge();
    let has = |text: &str, id: &str| ids(&knowledge, text).iter().any(|found| found == id);
    for (text, expected) in [
        ("6.15.0", false),
        ("6.15.11-200.fc42.x86_64", false),
        ("6.16", true),
        ("6.16.0-rc1", true),
        ("6.16.0", true),
        ("6.17.8-300.fc43.x86_64", true),
        ("7.0.0-34-generic", true),
        ("7.1", true),
        ("7.1.4", true),
        ("7.1.5", false),
        ("7.1.10", false),
        ("7.2", false),
        ("7.2.13+deb14-amd64", false),
        ("custom", false),
    ] {
        assert_eq!(has(text, "CVE-2026-74277"), expected, "{text}");
    }
    for (text, expected) in [("6.16.9", false), ("6.17", true), ("7.2.13+deb14-amd64", true)] {
        assert_eq!(has(text, "blk-mq-dma-stale-state"), expected, "{text}");
    }
    for text in ["6.16.0", "7.1.4", "7.0.0-34-generic"] {
        assert_eq!(effect(&knowledge, text), Some(Effect::Warn), "{text}");
    }
    for advisory in knowledge.advisories.iter().filter(|advisory| !advisory.needs.is_empty()) {
        assert_eq!(advisory.effect, Effect::Block, "{}", advisory.id);
        assert_eq!(advisory.effect_on_release(), Effect::Warn, "{}", advisory.id);
        let needs = &advisory.needs;
        assert_eq!(needs.iommu_group_type, [IommuGroupType::Dma, IommuGroupType::DmaFq]);
        assert_eq!(needs.map_type, [MapType::BusAddress]);
    }
}

/// An advisory for the kernels of RHEL 9.8 under the embedded one's id, with what a test changes in it.
fn el9_8(effect: &str, build: &str) -> String {
    format!(
        "[[advisory]]\nid = 'el9_8-memory-corruption'\neffect = '{effect}'\nsummary = 's'\ndetail = 'd'\n\
         date = '2026-11-30'\nlifted_by = 'l'\n[advisory.source]\ntitle = 't'\n[[advisory.match]]\n\
         version = '= 5.14.0'\nbuild = '{build}'\nel = 9\nel_minor = '= 8'\n"
    )
}

#[test]
fn no_file_takes_a_block_away() {
    let blocked = "5.14.0-687.49.1.el9_8.x86_64";
    for (file, entries) in [
        (el9_8("warn", ">= 687"), 1),
        (el9_8("warn", ">= 9999"), 1),
        (el9_8("block", "< 0"), 1),
        (el9_8("warn", ">= 687").repeat(2), 2),
        (String::new(), 0),
    ] {
        let mut extended = knowledge();
        let before = extended.clone();
        extended.extend("file", &file).expect("well-formed");
        assert_eq!(effect(&extended, blocked), Some(Effect::Block), "{file}");
        assert_eq!(extended.advisories.len(), before.advisories.len() + entries);
        assert!(extended.advisories.starts_with(&before.advisories));
        assert_eq!(effect(&extended, "5.14.0-570.58.1.el9_6.x86_64"), None);
    }
}

#[test]
fn a_file_may_add_a_block() {
    let mut extended = knowledge();
    extended.extend("file", &el9_8("block", ">= 600")).expect("well-formed");
    assert_eq!(effect(&extended, "5.14.0-650.el9_8.x86_64"), Some(Effect::Block));
}

#[test]
fn other_tables_are_added_to_as_well() {
    let before = knowledge();
    let mut extended = before.clone();
    let target = |name: &str, id: &str| {
        format!(
            "[[target]]\nname = '{name}'\nid = '{id}'\nos_id = 'o'\nos_version = 'v'\ndistribution = 'd'\n\
             version = 'v'\nflavour = 'default'\n[target.source]\nfamily = 'rpm'\narch = 'x86_64'\n\
             repositories = []\npackage = 'kernel-core'\nfollow = 'rpm-highest'\nsigned = 'no'\nkeys = 'k'\n"
        )
    };
    let file = "[[family]]\nid = 'el'\nname = 'n'\nreleases = ['*']\n\
        [[driver]]\nreleases = ['*']\nbuilds = 'yes'\nsource = 's'\ndate = '2026-11-30'\n"
        .to_owned()
        + &target("rhel-9.8", "i")
        + &target("new", "new-id");
    extended.extend("file", &file).expect("well-formed");
    // What is embedded comes first, so it stays what it was.
    assert_eq!(extended.target("rhel-9.8"), before.target("rhel-9.8"));
    assert_eq!(extended.target("new-id").map(|target| target.name.as_str()), Some("new"));
    let uek = release("6.12.0-109.67.6.el10uek.x86_64");
    assert_eq!(extended.family(&uek).map(|family| family.id.as_str()), Some("uek"));
    let known_not_to_build = release("6.18.7-061807-generic");
    assert_eq!(
        extended.driver_build(&known_not_to_build).0,
        before.driver_build(&known_not_to_build).0
    );
}

#[test]
fn a_malformed_file_names_its_line_and_adds_nothing() {
    let sound = el9_8("block", ">= 687");
    for (file, line) in [
        ("[[advisory]\n".to_owned(), 1),
        ("\n\nx = = 1\n".to_owned(), 3),
        ("\n\nunknown = 1\n".to_owned(), 3),
        ("[[advisories]]\nid = 'x'\n".to_owned(), 1),
        ("\u{feff}\n[[advisory]]\nid = 1\n".to_owned(), 3),
        (sound.replace("effect = 'block'", "effect = 'allow'"), 3),
        (sound.replace("effect = 'block'", "effect = 'Block'"), 3),
        (sound.replace("summary", "sumary"), 4),
        (sound.replace(">= 687", "687"), 12),
        (sound.replace("el_minor = '= 8'", "el_minor = 'some'"), 14),
        (sound.replace("el = 9", "el = -9"), 13),
        (sound.replace("el = 9", "el = '9'"), 13),
        (format!("{sound}[advisory.needs]\nmap_type = ['bus']\n"), 16),
        (format!("{sound}[advisory.needs]\nother = ['bus']\n"), 16),
    ] {
        let mut extended = knowledge();
        let before = extended.advisories.clone();
        let error = extended.extend("kept/file.toml", &file).expect_err(&file);
        let Error::Malformed { origin, line: found, message } = &error;
        assert_eq!((origin.as_str(), *found), ("kept/file.toml", line), "{file}: {message}");
        assert!(
            error.to_string().starts_with(&format!("kept/file.toml: line {line}: ")),
            "{error}"
        );
        assert_eq!(extended.advisories, before);
    }
    // A field that is missing has no line of its own: its table's is named.
    let error =
        knowledge().extend("file", "# one\n[[advisory]]\nid = 'x'\n").expect_err("incomplete");
    let Error::Malformed { line, .. } = error;
    assert_eq!(line, 2);
}

#[test]
fn embedded_ids_are_unique_and_everything_has_a_source() {
    let knowledge = knowledge();
    let unique = |what: &str, mut ids: Vec<&str>| {
        let all = ids.len();
        assert!(all > 0 && ids.iter().all(|id| !id.is_empty()), "{what}");
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), all, "{what}: an id twice");
    };
    unique(
        "advisories",
        knowledge.advisories.iter().map(|advisory| advisory.id.as_str()).collect(),
    );
    unique("families", knowledge.families.iter().map(|family| family.id.as_str()).collect());
    unique("remedies", knowledge.remedies.iter().map(|remedy| remedy.id.as_str()).collect());
    unique("target names", knowledge.targets().map(|target| target.name.as_str()).collect());
    unique("target ids", knowledge.targets().map(|target| target.id.as_str()).collect());
    let explanations = explanations();
    unique(
        "explanations",
        explanations.iter().map(|explanation| explanation.id.as_str()).collect(),
    );
    for advisory in &knowledge.advisories {
        assert!(!advisory.conditions.is_empty(), "{} marks nothing", advisory.id);
        assert!(advisory.source.url.is_some(), "{}", advisory.id);
        assert!(!advisory.lifted_by.is_empty() && !advisory.summary.is_empty());
    }
    assert!(knowledge.drivers.iter().all(|driver| !driver.releases.is_empty()));
    assert!(knowledge.families.iter().all(|family| !family.releases.is_empty()));
}

#[test]
fn a_kernel_that_a_remedy_leads_to_is_not_blocked() {
    let knowledge = knowledge();
    for remedy in &knowledge.remedies {
        let Some(kernel) = &remedy.kernel else {
            assert_ne!(remedy.kind, RemedyKind::Kernel, "{} leads to no kernel", remedy.id);
            continue;
        };
        assert_eq!(remedy.kind, RemedyKind::Kernel, "{}", remedy.id);
        let effect = effect(&knowledge, kernel.release.as_str());
        assert_ne!(effect, Some(Effect::Block), "{}: {}", remedy.id, kernel.release);
    }
}

/// Every `ID` of `os-release` that any part of the data speaks of, and some it does not.
fn os_ids(knowledge: &Knowledge) -> Vec<String> {
    let mut ids: Vec<String> = ["", "linux", "gentoo", "nixos", "Ubuntu", "opensuse-tumbleweed"]
        .map(str::to_owned)
        .to_vec();
    ids.extend(knowledge.remedies.iter().flat_map(|remedy| remedy.when.os.clone()));
    ids.extend(knowledge.reboots.iter().flat_map(|reboot| reboot.os.clone()));
    ids.extend(knowledge.targets().map(|target| target.os_id.clone()));
    ids.sort();
    ids.dedup();
    ids
}

#[test]
fn no_remedy_is_for_another_distributions_system() {
    let knowledge = knowledge();
    let os_ids = os_ids(&knowledge);
    let mut versions: Vec<&str> =
        vec!["", "8", "9", "9.7", "10", "11", "12", "13", "14", "22.04", "23"];
    versions.extend(knowledge.targets().map(|target| target.os_version.as_str()));
    // A version a remedy names is one it may hold for, whether or not the matrix has it.
    let named: Vec<String> = knowledge
        .remedies
        .iter()
        .flat_map(|remedy| remedy.when.os_version.iter())
        .map(|pattern| pattern.as_str().replace(['*', '#'], "1"))
        .collect();
    versions.extend(named.iter().map(String::as_str));
    let releases: Vec<Release> = knowledge
        .remedies
        .iter()
        .filter_map(|remedy| remedy.kernel.as_ref().map(|kernel| kernel.release.clone()))
        .chain(knowledge.rows().map(|(_, row)| row.kernel.clone()))
        .chain(["custom", "6.1.21.1-microsoft-standard-WSL2"].map(release))
        .collect();
    for remedy in &knowledge.remedies {
        // What holds on any system must not install anything from a distribution.
        if remedy.when.os.is_empty() {
            assert!(remedy.kernel.is_none(), "{} is for every system", remedy.id);
            let installs = |command: &String| {
                ["apt", "dnf", "yum", "zypper", "grubby", "pacman", "subscription-manager"]
                    .iter()
                    .any(|tool| command.split(' ').any(|word| word == *tool))
            };
            assert!(!remedy.commands.iter().any(installs), "{} is for every system", remedy.id);
            continue;
        }
        let mut holds_somewhere = false;
        for os in &os_ids {
            let named = remedy.when.os.contains(os);
            for (family, verdict, version, release) in
                remedy.when.family.iter().flat_map(|family| {
                    let releases = &releases;
                    let versions = &versions;
                    ["blocked", "unsupported", "supported", "unknown"].into_iter().flat_map(
                        move |verdict| {
                            versions.iter().flat_map(move |version| {
                                releases
                                    .iter()
                                    .map(move |release| (family, verdict, *version, release))
                            })
                        },
                    )
                })
            {
                let holds = remedy.when.holds(release, family, verdict, os, version);
                assert!(named || !holds, "{} holds for {os:?} {version:?}", remedy.id);
                let listed = remedy.when.verdict.iter().any(|listed| listed.as_str() == verdict);
                assert!(listed || !holds, "{} holds for {verdict}", remedy.id);
                holds_somewhere |= holds;
            }
        }
        assert!(holds_somewhere, "{} is for nobody", remedy.id);
    }
}

#[test]
fn the_tools_of_a_remedy_are_those_of_its_systems() {
    for remedy in &knowledge().remedies {
        let uses = |tool: &str| {
            remedy.commands.iter().any(|command| command.split(' ').any(|word| word == tool))
        };
        let only =
            |systems: &[&str]| remedy.when.os.iter().all(|os| systems.contains(&os.as_str()));
        let id = &remedy.id;
        assert!(!uses("apt") || only(&["ubuntu", "debian"]), "{id}");
        assert!(
            !uses("dnf") || only(&["rhel", "rocky", "almalinux", "centos", "ol", "fedora"]),
            "{id}"
        );
        assert!(!uses("subscription-manager") || only(&["rhel"]), "{id}");
        assert!(!uses("zypper") || only(&["sles", "opensuse-leap", "opensuse-tumbleweed"]), "{id}");
    }
}
