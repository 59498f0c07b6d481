//! Kernel images made by hand around real streams.

use crate::make::{NO, Tar, YES, bzimage, config, gzip, le32, noise, pe, vmlinux, zboot};
use crate::plain::cuts;
use crate::tools::{errors, filter, find, find_all, have, only_config, show};

const RELEASE: &str = "6.18.7-arch1-1";

/// How the kernel's build compresses: the tool, its options, and whether the size is appended to the stream.
const METHODS: [(&str, &[&str], bool); 8] = [
    ("gzip", &["-n", "-9", "-c"], false),
    ("bzip2", &["-9", "-c"], true),
    ("xz", &["--check=crc32", "--lzma2=dict=128MiB", "-c"], true),
    ("xz", &["--check=crc32", "--x86", "--lzma2=dict=32MiB", "-c"], true),
    ("xz", &["--format=lzma", "-9", "-c"], true),
    ("lz4", &["-l", "-9", "-c", "-q"], true),
    ("zstd", &["-22", "--ultra", "-c", "-q"], true),
    ("lz4", &["-9", "-c", "-q"], false),
];

/// The payload of a kernel: the stream and, if its format has none, the size.
fn payload(method: (&str, &[&str], bool), kernel: &[u8]) -> Vec<u8> {
    let mut stream = filter(method.0, method.1, kernel);
    if method.2 {
        stream.extend_from_slice(&le32(kernel.len()));
    }
    stream
}

#[test]
fn a_bzimage_gives_its_configuration_whatever_the_compression() {
    let text = config("6.18.7-arch1", YES);
    let kernel = vmlinux(RELEASE, Some(&text));
    for method in METHODS {
        if !have(method.0) {
            continue;
        }
        let image = bzimage(RELEASE, &payload(method, &kernel));
        let found = find_all("x", &image);
        assert_eq!(only_config(&found), text, "{method:?}");
        assert_eq!(show(&found), [format!("- {RELEASE} y")]);
        let silent = bzimage(RELEASE, &payload(method, &vmlinux(RELEASE, None)));
        assert_eq!(
            show(&find_all("vmlinuz-6.18.7-arch1-2", &silent)),
            [format!("- 6.18.7-arch1-2 no configuration, {RELEASE}")],
            "{method:?}"
        );
    }
}

#[test]
fn without_a_setup_header_every_magic_is_tried() {
    let text = config("6.18.7", YES);
    let kernel = vmlinux(RELEASE, Some(&text));
    for method in METHODS {
        if !have(method.0) {
            continue;
        }
        // A false magic of each kind comes first.
        let mut image = b"\x7fELF".to_vec();
        image.extend_from_slice(&noise(5000, 3));
        for magic in
            [&b"\x1f\x8b\x08"[..], b"\xfd7zXZ\0", b"BZh91AY&SY", b"\x28\xb5\x2f\xfd", b"\x02!L\x18"]
        {
            image.extend_from_slice(magic);
            image.extend_from_slice(&noise(100, 5));
        }
        image.extend_from_slice(&payload(method, &kernel));
        image.extend_from_slice(&noise(5000, 17));
        let found = find_all("x", &image);
        assert_eq!(only_config(&found), text, "{method:?}");
        assert_eq!(show(&found), [format!("- {RELEASE} y")]);
    }
}

#[test]
fn uncompressed_images_and_modules_are_searched_as_they_are() {
    let text = config("6.18.7", NO);
    let line = [format!("- {RELEASE} not set")];
    let mut elf = b"\x7fELF\x02\x01\x01".to_vec();
    elf.extend_from_slice(&vmlinux(RELEASE, Some(&text)));
    assert_eq!(show(&find_all("x", &elf)), line);
    let mut flat = vec![0; 64];
    flat[..2].copy_from_slice(b"MZ");
    flat[0x38..0x3c].copy_from_slice(b"ARM\x64");
    flat.extend_from_slice(&vmlinux(RELEASE, Some(&text)));
    assert_eq!(show(&find_all("Image", &flat)), line);
    assert_eq!(show(&find_all("Image.gz", &gzip(&flat))), line);
    // `configs.ko` has the configuration and no banner.
    let mut module = b"\x7fELF\x02\x01\x01 some sections IKCFG_ST".to_vec();
    module.extend_from_slice(&gzip(&text));
    module.extend_from_slice(b"IKCFG_ED and a symbol table");
    let tar =
        Tar::default().add("lib/modules/6.1.0-1/kernel/kernel/configs.ko.gz", &gzip(&module)).end();
    assert_eq!(
        show(&find_all("x.tar", &tar)),
        ["lib/modules/6.1.0-1/kernel/kernel/configs.ko.gz 6.1.0-1 not set"]
    );
}

#[test]
fn the_mark_is_found_wherever_it_stands() {
    let text = config("6.1.0", YES);
    // Across the end of what is searched at once, and near it.
    for before in (262_000..262_300).step_by(7) {
        let mut elf = b"\x7fELF".to_vec();
        elf.resize(before, 0x55);
        elf.extend_from_slice(b"IKCFG_ST");
        elf.extend_from_slice(&gzip(&text));
        assert_eq!(only_config(&find_all("x", &elf)), text, "after {before}");
    }
}

#[test]
fn an_efi_zboot_image_is_unpacked() {
    let text = config("6.18.7", YES);
    let kernel = vmlinux(RELEASE, Some(&text));
    for (method, name) in
        METHODS.into_iter().zip(["gzip", "bzip2", "xzkern", "xz", "lzma", "lz4", "zstd22", "lz4"])
    {
        if have(method.0) {
            let found = find_all("x", &zboot(&payload(method, &kernel), name));
            assert_eq!(show(&found), [format!("- {RELEASE} y")], "{method:?}");
        }
    }
}

#[test]
fn a_unified_image_gives_the_release_of_its_section() {
    let kernel = bzimage(RELEASE, &gzip(&vmlinux(RELEASE, Some(&config("6.18.7", YES)))));
    let initrd = noise(300_000, 3);
    for order in [[0, 1, 2, 3], [2, 3, 1, 0]] {
        let sections: [(&str, &[u8]); 4] = [
            (".osrel", b"ID=arch\n"),
            (".uname", b"6.18.7-own\0"),
            (".linux", &kernel),
            (".initrd", &initrd),
        ];
        let image = pe(&order.map(|index| sections[index]));
        assert_eq!(show(&find_all("x.efi", &image)), ["- 6.18.7-own y"]);
    }
    let bare = pe(&[(".linux", &kernel)]);
    assert_eq!(show(&find_all("x.efi", &bare)), [format!("- {RELEASE} y")]);
    assert!(find("x.efi", &pe(&[(".text", b"code")])).1.is_err());
}

#[test]
fn exported_names_in_an_image_are_a_yes_and_their_absence_is_nothing() {
    let mut kernel = vmlinux(RELEASE, None);
    kernel.extend_from_slice(b"\0pci_enable_device\0");
    let without = bzimage(RELEASE, &gzip(&kernel));
    assert_eq!(
        show(&find_all("x", &without)),
        [format!("- {RELEASE} no configuration, {RELEASE}")]
    );
    kernel.extend_from_slice(b"\0pci_p2pdma_distance_many_stub\0");
    let alike = bzimage(RELEASE, &gzip(&kernel));
    assert_eq!(show(&find_all("x", &alike)), [format!("- {RELEASE} no configuration, {RELEASE}")]);
    kernel.extend_from_slice(b"\0pci_p2pdma_distance_many\0");
    let with = bzimage(RELEASE, &gzip(&kernel));
    assert_eq!(show(&find_all("x", &with)), [format!("- {RELEASE} symbols true")]);
}

#[test]
fn a_bzimage_may_be_uncompressed() {
    let kernel = [b"\x7fELF".to_vec(), vmlinux(RELEASE, Some(&config("6.18.7", YES)))].concat();
    assert_eq!(show(&find_all("x", &bzimage(RELEASE, &kernel))), [format!("- {RELEASE} y")]);
}

#[test]
fn lzop_is_known_and_not_read() {
    if have("lzop") {
        let stream = filter("lzop", &["-c"], &vmlinux(RELEASE, None));
        let line = ["x: the compression cannot be read: lzop"];
        assert_eq!(errors(find("x", &stream).1), line);
        assert_eq!(errors(find("x", &bzimage(RELEASE, &stream)).1), line);
    }
}

#[test]
fn a_damaged_kernel_is_an_error_that_names_the_offset() {
    let kernel = vmlinux(RELEASE, Some(&config("6.18.7", YES)));
    let mut stream = gzip(&kernel);
    stream[4000] ^= 0x55;
    let (found, result) = find("vmlinuz", &bzimage(RELEASE, &stream));
    assert!(found.is_empty());
    let message = errors(result).remove(0);
    assert!(message.starts_with("vmlinuz: damaged gzip at offset "), "{message}");
    let (_, result) = find("vmlinuz", &bzimage(RELEASE, b"no stream at all"));
    let message = errors(result).remove(0);
    assert!(message.contains("no compressed kernel in it"), "{message}");
}

#[test]
fn a_cut_image_never_gives_a_wrong_answer() {
    let text = config("6.18.7", YES);
    let kernel = vmlinux(RELEASE, Some(&text));
    for method in METHODS {
        if !have(method.0) {
            continue;
        }
        let image = bzimage(RELEASE, &payload(method, &kernel));
        for len in cuts(image.len()).filter(|len| len % 13 == 0) {
            let (found, _) = find("vmlinuz", &image[..len]);
            if !found.is_empty() {
                assert_eq!(only_config(&found), text, "{method:?} cut at {len}");
            }
        }
    }
}

#[test]
fn lying_headers_are_no_danger() {
    let image = bzimage(RELEASE, &gzip(&vmlinux(RELEASE, Some(&config("6.18.7", YES)))));
    for at in [0x1f1, 0x206, 0x20e, 0x20f, 0x248, 0x249, 0x24a, 0x24b, 0x24c, 0x24d, 0x24e, 0x24f] {
        for value in [0, 1, 0x7f, 0xff] {
            let mut lying = image.clone();
            lying[at] = value;
            // The stream is still there for those who look.
            let (found, _) = find("vmlinuz", &lying);
            assert!(found.len() <= 1);
        }
    }
}
