//! What is known of host bridges, by release.

use fastpath_knowledge::{Knowledge, Known, Release, Rule, host_bridges};

fn release(text: &str) -> Release {
    Release::new(text).expect("a release")
}

/// What is known of an id in a release, as the last of its entries has it.
fn listed(knowledge: &Knowledge, text: &str, vendor: u16, device: u16) -> Option<Known> {
    let level = knowledge.p2pdma_level(&release(text));
    knowledge.host_bridges_for(vendor, device).map(|one| one.is_in(&level)).next()
}

#[test]
fn the_embedded_data_is_well_formed() {
    let data = host_bridges();
    assert_eq!(data.host_bridge.len(), 9);
    assert_eq!((data.p2pdma_rule.len(), data.p2pdma_backport.len()), (4, 1));
    for one in &data.host_bridge {
        let url = one.source.url.as_deref().unwrap_or_default();
        assert!(url.starts_with("https://") && one.date.len() == 10, "{}", one.name);
    }
}

#[test]
fn ids_are_known_from_the_release_on_they_were_read_in() {
    let knowledge = Knowledge::embedded().expect("embedded knowledge parses");
    let cases = [
        ("6.1.192", 0x8086, 0x09a2, Some(Known::Yes)),
        ("5.10.262", 0x8086, 0x09a2, Some(Known::No)),
        ("5.10.0-46-amd64", 0x8086, 0x09a2, Some(Known::Unconfirmed)),
        ("5.15.0-144-generic", 0x8086, 0x09a2, Some(Known::Unconfirmed)),
        ("5.14.0-570.58.1.el9_6.x86_64", 0x8086, 0x09a2, Some(Known::Unconfirmed)),
        ("4.18.0-553.166.1.el8_10.x86_64", 0x8086, 0x09a2, Some(Known::No)),
        ("4.18.0-553.166.1.el8_10.x86_64", 0x1022, 0x1450, Some(Known::Yes)),
        ("6.8.0-142-generic", 0x1022, 0x1450, Some(Known::No)),
        ("5.4.300", 0x8086, 0x2f00, Some(Known::Yes)),
        ("5.3", 0x8086, 0x2f00, Some(Known::Unconfirmed)),
        ("5.4.300", 0x8086, 0x2030, Some(Known::No)),
        ("7.1.2", 0x8086, 0x0b25, Some(Known::Unconfirmed)),
        ("7.1.3", 0x8086, 0x0b25, Some(Known::Yes)),
        ("6.12.118", 0x8086, 0x0b25, Some(Known::No)),
        ("7.3.4+deb13-amd64", 0x10de, 0x2f95, Some(Known::Yes)),
        ("6.12.107+deb13-amd64", 0x10de, 0x2f95, Some(Known::Unconfirmed)),
        ("7.3.4", 0x1ae0, 0x1234, Some(Known::Yes)),
        ("7.3.4", 0x8086, 0x7d1b, None),
    ];
    for (text, vendor, device, expected) in cases {
        let found = listed(&knowledge, text, vendor, device);
        assert_eq!(found, expected, "{vendor:04x}:{device:04x} in {text}");
    }
}

#[test]
fn rules_hold_from_a_release_on() {
    let knowledge = Knowledge::embedded().expect("embedded knowledge parses");
    let cases = [
        ("5.1", Rule::HostBridge, Known::No),
        ("5.2", Rule::HostBridge, Known::Yes),
        ("4.18.0-553.166.1.el8_10.x86_64", Rule::HostBridge, Known::Yes),
        ("4.18.0-553.166.1.el8_10.x86_64", Rule::BehindAcs, Known::No),
        ("4.18.0-553.166.1.el8_10.x86_64", Rule::AmdZen, Known::No),
        ("5.3.18-150300.59.1-default", Rule::AmdZen, Known::Unconfirmed),
        ("5.3.18", Rule::BehindAcs, Known::Unconfirmed),
        ("5.8.18", Rule::AmdZen, Known::No),
        ("5.9-rc1", Rule::AmdZen, Known::Yes),
        ("5.10.262", Rule::RootPortFirst, Known::No),
        ("5.15.194", Rule::RootPortFirst, Known::Unconfirmed),
        ("6.1.0-57-amd64", Rule::RootPortFirst, Known::Yes),
    ];
    for (text, rule, expected) in cases {
        let level = knowledge.p2pdma_level(&release(text));
        assert_eq!(knowledge.p2pdma_follows(&level, rule), expected, "{rule:?} in {text}");
    }
}

#[test]
fn a_knowledge_file_adds_a_host_bridge() {
    let mut knowledge = Knowledge::embedded().expect("embedded knowledge parses");
    let entry = "[[host_bridge]]\nname = 'ours'\nvendor = '8086'\ndevices = ['7d1b']\nsince = '6.8'\n\
                 date = '2026-11-30'\nsource = { title = 'our patch' }\n";
    knowledge.extend("site.toml", entry).expect("the file is sound");
    assert_eq!(listed(&knowledge, "6.8.0-142-generic", 0x8086, 0x7d1b), Some(Known::Yes));
    let wrong = entry.replace("'7d1b'", "'0x7d1b'");
    let error = knowledge.extend("site.toml", &wrong).unwrap_err().to_string();
    assert!(error.starts_with("site.toml: line 4: id `0x7d1b`: expected four"), "{error}");
}
