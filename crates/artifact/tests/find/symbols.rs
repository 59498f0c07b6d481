//! Lists of symbols.

use std::fmt::Write as _;

use crate::make::{Tar, YES, config, gzip};
use crate::tools::{find_all, show};

fn map(names: &[&str]) -> Vec<u8> {
    let mut text = String::new();
    for (index, name) in names.iter().enumerate() {
        writeln!(text, "ffffffff81{index:06x} T {name}").unwrap();
    }
    text.into_bytes()
}

fn symvers(lines: &[(&str, &str)]) -> Vec<u8> {
    let mut text = String::new();
    for (name, module) in lines {
        writeln!(text, "0x1234abcd\t{name}\t{module}\tEXPORT_SYMBOL_GPL\t").unwrap();
    }
    text.into_bytes()
}

#[test]
fn a_map_tells_by_whole_names() {
    let with = map(&["_text", "pci_enable_device", "pci_p2pdma_add_resource", "_end"]);
    assert_eq!(show(&find_all("System.map-6.1.0", &with)), ["- 6.1.0 symbols true"]);
    // The first is in every kernel, the others are longer or local labels.
    let without = map(&[
        "_text",
        "dma_pci_p2pdma_supported",
        "pci_enable_device",
        "pci_p2pdma_add_resource_stub",
        "__pfx_pci_p2pdma_distance_many",
        "_end",
    ]);
    assert_eq!(show(&find_all("x", &without)), ["- - symbols false"]);
    let nothing = map(&["_text", "start_kernel", "_end"]);
    assert_eq!(show(&find_all("x", &nothing)), ["- - symbols that tell nothing"]);
}

#[test]
fn a_cut_map_is_no_proof_of_absence() {
    let whole = map(&["_text", "pci_enable_device", "schedule", "_end"]);
    for len in 40..whole.len() {
        let found = crate::tools::find("System.map-6.1.0", &whole[..len]).0;
        assert_eq!(show(&found), ["- 6.1.0 symbols that tell nothing"], "cut at {len}");
    }
}

#[test]
fn debians_placeholder_tells_nothing() {
    let text =
        b"ffffffffffffffff B The real System.map is in the linux-image-<version>-dbg package\n";
    assert_eq!(show(&find_all("x", text)), ["- - symbols that tell nothing"]);
}

#[test]
fn exports_count_only_from_the_kernel_proper() {
    let with =
        symvers(&[("pci_enable_device", "vmlinux"), ("pci_p2pdma_distance_many", "vmlinux")]);
    assert_eq!(show(&find_all("Module.symvers", &with)), ["- - symbols true"]);
    let elsewhere = symvers(&[
        ("pci_enable_device", "vmlinux"),
        ("pci_p2pdma_distance_many", "drivers/gpu/amdkcl"),
    ]);
    assert_eq!(show(&find_all("symvers-6.1.0.gz", &gzip(&elsewhere))), ["- 6.1.0 symbols false"]);
    let module = symvers(&[("amdgpu_x", "drivers/gpu/drm/amd/amdgpu")]);
    assert_eq!(show(&find_all("x", &module)), ["- - symbols that tell nothing"]);
}

#[test]
fn a_configuration_outweighs_them_and_the_better_list_the_other() {
    let yes = map(&["pci_enable_device", "pci_p2pdma_add_resource", "_end"]);
    let nothing = map(&["_text", "_end"]);
    let tar = Tar::default()
        .add("boot/System.map-6.1.0-1", &yes)
        .add("boot/System.map-6.1.0-2", &nothing)
        .add("lib/modules/6.1.0-2/symvers.gz", &gzip(&symvers(&[("pci_x", "vmlinux")])))
        .add("boot/config-6.1.0-1", &config("6.1.0", YES))
        .add("lib/modules/6.1.0-1/symvers.gz", &gzip(b"damaged, and never looked at"))
        .end();
    assert_eq!(
        show(&find_all("x.tar", &tar)),
        ["boot/config-6.1.0-1 6.1.0-1 y", "lib/modules/6.1.0-2/symvers.gz 6.1.0-2 symbols false"]
    );
}
