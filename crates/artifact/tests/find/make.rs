//! Things made by hand.

use std::fmt::Write as _;

/// A configuration as long as a small real one, with the option as given, whole.
pub(crate) fn config(version: &str, option: &str) -> Vec<u8> {
    let mut text = format!(
        "#\n# Automatically generated file; DO NOT EDIT.\n# Linux/x86 {version} Kernel Configuration\n#\n"
    );
    let mut state = 0x2545_f491_u32;
    for index in 0..2500 {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        match state >> 30 {
            0 => writeln!(text, "# CONFIG_THING_{index}_{:x} is not set", state & 0xffff),
            1 => writeln!(text, "CONFIG_THING_{index}_{:x}=m", state & 0xffff),
            _ => writeln!(text, "CONFIG_THING_{index}_{:x}=y", state & 0xffff),
        }
        .unwrap();
    }
    writeln!(text, "CONFIG_PCI=y\n{option}\nCONFIG_DEBUG_KERNEL=y").unwrap();
    text.into_bytes()
}

pub(crate) const YES: &str = "CONFIG_PCI_P2PDMA=y";
pub(crate) const NO: &str = "# CONFIG_PCI_P2PDMA is not set";

/// A length of 32 bits, as most formats have it.
pub(crate) fn le32(len: usize) -> [u8; 4] {
    u32::try_from(len).unwrap().to_le_bytes()
}

/// Bytes without a pattern.
pub(crate) fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    };
    (0..len).map(|_| next()).collect()
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write as _;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A tar archive in the POSIX form, as old as can be.
#[derive(Default)]
pub(crate) struct Tar(Vec<u8>);

impl Tar {
    pub(crate) fn header(name: &str, size: u64, kind: u8) -> [u8; 512] {
        let mut header = [0; 512];
        header[..name.len()].copy_from_slice(name.as_bytes());
        header[100..107].copy_from_slice(b"0000644");
        header[124..135].copy_from_slice(format!("{size:011o}").as_bytes());
        header[156] = kind;
        header[257..265].copy_from_slice(b"ustar\x0000");
        Self::sum(&mut header);
        header
    }

    pub(crate) fn sum(header: &mut [u8; 512]) {
        header[148..156].copy_from_slice(b"        ");
        let sum: u32 = header.iter().copied().map(u32::from).sum();
        header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    }

    pub(crate) fn add(self, name: &str, data: &[u8]) -> Self {
        self.add_kind(name, data, b'0')
    }

    pub(crate) fn add_kind(self, name: &str, data: &[u8], kind: u8) -> Self {
        self.raw(&Self::header(name, data.len() as u64, kind), data)
    }

    pub(crate) fn raw(mut self, header: &[u8], data: &[u8]) -> Self {
        self.0.extend_from_slice(header);
        self.0.extend_from_slice(data);
        self.0.resize(self.0.len().next_multiple_of(512), 0);
        self
    }

    pub(crate) fn end(mut self) -> Vec<u8> {
        self.0.resize(self.0.len() + 1024, 0);
        self.0
    }
}

/// An `ar` archive.
pub(crate) fn ar(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut out = b"!<arch>\n".to_vec();
    for (name, data) in members {
        let header =
            format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n", 0, 0, 0, 100_644, data.len());
        out.extend_from_slice(header.as_bytes());
        out.extend_from_slice(data);
        if data.len() % 2 == 1 {
            out.push(b'\n');
        }
    }
    out
}

/// A Debian package of one name.
pub(crate) fn deb(package: &str, data: &[u8]) -> Vec<u8> {
    let control = format!("Package: {package}\nVersion: 1\nArchitecture: amd64\n");
    let control = gzip(&Tar::default().add("./control", control.as_bytes()).end());
    ar(&[("debian-binary", b"2.0\n"), ("control.tar.gz", &control), ("data.tar.gz", &gzip(data))])
}

/// A `cpio` archive in the "newc" form.
pub(crate) fn cpio(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut add = |name: &str, data: &[u8], mode: u32| {
        write_newc(&mut out, name, data, mode);
    };
    for (name, data) in members {
        add(name, data, 0o100_644);
    }
    add("TRAILER!!!", b"", 0);
    out
}

fn write_newc(out: &mut Vec<u8>, name: &str, data: &[u8], mode: u32) {
    let size = u32::from_le_bytes(le32(data.len()));
    let name_len = u32::from_le_bytes(le32(name.len() + 1));
    let fields = [1, mode, 0, 0, 1, 0, size, 0, 0, 0, 0, name_len, 0];
    out.extend_from_slice(b"070701");
    for field in fields {
        out.extend_from_slice(format!("{field:08x}").as_bytes());
    }
    out.extend_from_slice(name.as_bytes());
    out.push(0);
    out.resize(out.len().next_multiple_of(4), 0);
    out.extend_from_slice(data);
    out.resize(out.len().next_multiple_of(4), 0);
}

/// What a kernel is before it is compressed: its banner, its configuration between the marks if it carries one, and
/// other bytes around them.
pub(crate) fn vmlinux(release: &str, config: Option<&[u8]>) -> Vec<u8> {
    let mut out = noise(300_000, 7);
    out.extend_from_slice(b"\0Linux version %s (%s)\0");
    out.extend_from_slice(
        format!("\0Linux version {release} (builder@host) #1 SMP\n\0").as_bytes(),
    );
    out.extend_from_slice(b"IKCFG_ST is looked for by scripts\0");
    if let Some(config) = config {
        out.extend_from_slice(b"IKCFG_ST");
        out.extend_from_slice(&gzip(config));
        out.extend_from_slice(b"IKCFG_ED");
    }
    out.extend_from_slice(&noise(100_000, 9));
    out
}

/// A bzImage around a compressed kernel, with its version string.
pub(crate) fn bzimage(release: &str, payload: &[u8]) -> Vec<u8> {
    let (sectors, code) = (3_u8, 0x340);
    let start = (usize::from(sectors) + 1) * 512;
    let mut out = vec![0x90; start + code];
    out[0x1f1] = sectors;
    out[0x1fe..0x200].copy_from_slice(&[0x55, 0xaa]);
    out[0x202..0x206].copy_from_slice(b"HdrS");
    out[0x206..0x208].copy_from_slice(&0x20f_u16.to_le_bytes());
    let version = format!("{release} (builder@host) #1 SMP\0");
    out[0x20e..0x210].copy_from_slice(&0x200_u16.to_le_bytes());
    out[0x400..0x400 + version.len()].copy_from_slice(version.as_bytes());
    out[0x248..0x24c].copy_from_slice(&le32(code));
    out[0x24c..0x250].copy_from_slice(&le32(payload.len()));
    out.extend_from_slice(payload);
    out.extend_from_slice(&noise(4000, 11));
    out
}

/// An EFI zboot image.
pub(crate) fn zboot(payload: &[u8], method: &str) -> Vec<u8> {
    let mut out = vec![0; 0x1000];
    out[..8].copy_from_slice(b"MZ\0\0zimg");
    out[8..12].copy_from_slice(&0x1000_u32.to_le_bytes());
    out[12..16].copy_from_slice(&le32(payload.len()));
    out[0x18..0x18 + method.len()].copy_from_slice(method.as_bytes());
    out.extend_from_slice(payload);
    out
}

/// A PE program with the given sections.
pub(crate) fn pe(sections: &[(&str, &[u8])]) -> Vec<u8> {
    let mut out = vec![0; 0x400];
    out[..2].copy_from_slice(b"MZ");
    out[0x3c..0x40].copy_from_slice(&0x80_u32.to_le_bytes());
    out[0x80..0x84].copy_from_slice(b"PE\0\0");
    out[0x86..0x88].copy_from_slice(&le32(sections.len())[..2]);
    out[0x94..0x96].copy_from_slice(&0xf0_u16.to_le_bytes());
    for (index, (name, data)) in sections.iter().enumerate() {
        let at = 0x80 + 24 + 0xf0 + 40 * index;
        let offset = le32(out.len());
        out[at..at + name.len()].copy_from_slice(name.as_bytes());
        out[at + 8..at + 12].copy_from_slice(&le32(data.len()));
        let stored = le32(data.len().next_multiple_of(512));
        out[at + 16..at + 20].copy_from_slice(&stored);
        out[at + 20..at + 24].copy_from_slice(&offset);
        out.extend_from_slice(data);
        out.resize(out.len().next_multiple_of(512), 0);
    }
    out
}
