//! What the kernel's verdict does to the fastpath.

use std::path::{Path, PathBuf};

use fastpath_host::DirTree;
use fastpath_verdict::Verdict;

use super::fixture::{Fixture, write};
use crate::choose::Reason;
use crate::{Options, Runtime};

const ROCKY: &str = "rocky-9.8-no-config";
const RELEASE: &str = "5.14.0-687.5.1.el9_8.x86_64";
const ID: &str = "el9_8-memory-corruption";

fn host(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/hosts").join(name).join("root")
}

fn on(host: &Path, environment: &[(&str, &str)]) -> Fixture {
    Fixture::with(environment, |_, options| {
        options.tree = Box::new(DirTree::open(host).unwrap());
        options.uname = None;
    })
}

fn gate(runtime: &Runtime) -> (Option<Verdict>, Option<Reason>) {
    runtime.driver_open().unwrap();
    (runtime.gate().verdict, runtime.gate().closed)
}

#[test]
fn a_blocked_kernel_closes_it_and_one_line_names_the_advisory() {
    let fixture = on(&host(ROCKY), &[]);
    assert_eq!(gate(&fixture.runtime), (Some(Verdict::Blocked), Some(Reason::Advisory)));
    fixture.runtime.driver_open().unwrap();
    assert_eq!(fixture.logged(ID), 1);
    assert_eq!(fixture.lines.lock().unwrap().len(), 1);
}

#[test]
fn only_naming_every_blocking_advisory_opens_it() {
    for (wrong, unknown) in [("", 0), ("el9_8", 1), ("all", 1), ("el10_2-memory-corruption", 0)] {
        let fixture = on(&host(ROCKY), &[("HIPFILE_ACCEPT_ADVISORY", wrong)]);
        assert_eq!(gate(&fixture.runtime).1, Some(Reason::Advisory), "{wrong}");
        let said = format!("HIPFILE_ACCEPT_ADVISORY: there is no advisory `{wrong}`");
        assert_eq!(fixture.logged(&said), unknown, "{wrong}");
    }
    let fixture = on(&host(ROCKY), &[("HIPFILE_ACCEPT_ADVISORY", ID)]);
    assert_eq!(gate(&fixture.runtime), (Some(Verdict::Blocked), None));
    assert_eq!(fixture.logged("data may be corrupted"), 1);
}

#[test]
fn a_site_adds_advisories_which_must_be_named_too() {
    const MORE: &str = "[[advisory]]\nid = \"site\"\neffect = \"block\"\nsummary = \"s\"\ndetail = \"d\"\n\
        date = \"2026-11-30\"\nlifted_by = \"l\"\n[advisory.source]\ntitle = \"t\"\nurl = \"u\"\n\
        [[advisory.match]]\nversion = \"= 5.14.0\"\n";
    let with = |accepted: &str| {
        Fixture::with(&[("HIPFILE_ACCEPT_ADVISORY", accepted)], |root, options| {
            options.tree = Box::new(DirTree::open(&host(ROCKY)).unwrap());
            options.uname = None;
            write(&root.join("etc/fastpath/knowledge.d/site.toml"), MORE);
        })
    };
    assert_eq!(gate(&with(ID).runtime).1, Some(Reason::Advisory));
    let both = with("site,el9_8-memory-corruption");
    assert_eq!(gate(&both.runtime), (Some(Verdict::Blocked), None));
    assert_eq!(both.runtime.gate().advisories, [ID, "site"]);
}

#[test]
fn a_knowledge_file_that_cannot_be_read_closes_it() {
    let named = Fixture::with(&[("HIPFILE_KNOWLEDGE", "/nowhere/at.all")], |_, _| {});
    assert_eq!(gate(&named.runtime), (Some(Verdict::Unknown), Some(Reason::Knowledge)));
    assert_eq!(named.logged("/nowhere/at.all"), 1);
    let broken = Fixture::with(&[], |root, _| {
        write(&root.join("etc/fastpath/knowledge.d/a.toml"), "advisory = 7");
    });
    assert_eq!(gate(&broken.runtime).1, Some(Reason::Knowledge));
}

#[test]
fn an_unknown_kernel_is_left_to_the_driver() {
    let fixture = Fixture::new();
    assert_eq!(gate(&fixture.runtime), (Some(Verdict::Unknown), None));
}

#[test]
fn a_kernel_without_the_option_closes_it() {
    let fixture = on(&host("debian-12"), &[]);
    assert_eq!(gate(&fixture.runtime), (Some(Verdict::Unsupported), Some(Reason::Kernel)));
}

#[test]
fn an_accepted_advisory_opens_no_kernel_without_the_option() {
    const ID: &str = "site";
    const SITE: &str = "[[advisory]]\nid = \"site\"\neffect = \"block\"\nsummary = \"s\"\ndetail = \"d\"\n\
        date = \"2026-11-30\"\nlifted_by = \"l\"\n[advisory.source]\ntitle = \"t\"\nurl = \"u\"\n\
        [[advisory.match]]\nversion = \">= 5.0\"\n";
    for accepted in ["", ID] {
        let fixture = Fixture::with(&[("HIPFILE_ACCEPT_ADVISORY", accepted)], |root, options| {
            options.tree = Box::new(DirTree::open(&host("debian-12")).unwrap());
            options.uname = Some("6.1.0-42-amd64".to_owned());
            write(&root.join("etc/fastpath/knowledge.d/site.toml"), SITE);
        });
        assert_eq!(gate(&fixture.runtime), (Some(Verdict::Unsupported), Some(Reason::Kernel)));
        assert_eq!(fixture.runtime.gate().advisories, [ID]);
    }
}

#[test]
fn masked_proc_and_boot_hide_no_advisory_from_uname() {
    let empty = |_: &Path, options: &mut Options| options.uname = Some(RELEASE.to_owned());
    let fixture = Fixture::with(&[], empty);
    assert_eq!(gate(&fixture.runtime), (Some(Verdict::Blocked), Some(Reason::Advisory)));
    assert_eq!(fixture.runtime.gate().advisories, [ID]);
}

#[test]
fn a_tree_that_names_another_kernel_hides_no_advisory_from_uname() {
    let fixture = Fixture::with(&[], |_, options| {
        options.tree = Box::new(DirTree::open(&host("fedora-43")).unwrap());
        options.uname = Some(RELEASE.to_owned());
    });
    assert_eq!(gate(&fixture.runtime), (Some(Verdict::Blocked), Some(Reason::Advisory)));
}

#[test]
fn a_closed_gate_sends_all_io_through_the_fallback() {
    let fixture = Fixture::with(&[], |_, options| options.uname = Some(RELEASE.to_owned()));
    let (_file, handle) = fixture.file("data", 0, &[7; 4096]);
    let buffer = fixture.buffer(4096);
    assert_eq!(fixture.read(handle, buffer, 4096, 0, 0), Ok(4096));
    assert_eq!(fixture.transfers(), 0);
    assert_eq!(fixture.mock.peek(buffer, 4096), [7; 4096]);
    assert_eq!(fixture.runtime.reasons(handle), Some(vec![(Reason::Advisory, 1)]));
}

/// The kernel's log calls itself regular, and has nothing to be read until something is said.
#[test]
fn a_knowledge_file_that_never_comes_is_not_waited_for() {
    let fixture = on(&host(ROCKY), &[("HIPFILE_KNOWLEDGE", "/proc/kmsg")]);
    assert_eq!(gate(&fixture.runtime).1, Some(Reason::Advisory));
    assert_eq!(fixture.logged("/proc/kmsg: "), 1);
}
