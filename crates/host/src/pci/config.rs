//! PCI configuration space: the two capabilities that the kernel's peer-to-peer decision looks at.
//!
//! Layout: PCI Express Base Specification; the names of `include/uapi/linux/pci_regs.h`,
//! <https://git.kernel.org/pub/scm/linux/kernel/git/torvalds/linux.git/tree/include/uapi/linux/pci_regs.h>.

use serde::{Deserialize, Serialize};

/// The size of an extended configuration space, which no file is larger than.
pub(super) const LIMIT: usize = 4096;

/// What `config` gives to a reader without `CAP_SYS_ADMIN`.
const HEADER: usize = 64;

/// Where the extended capabilities start; a function without them has no more than this.
const EXTENDED: usize = 256;

/// More capabilities than fit, as in the kernel's own walks: a list that is longer is a loop.
const MOST_STANDARD: usize = (EXTENDED - HEADER) / 4;
const MOST_EXTENDED: usize = (LIMIT - EXTENDED) / 8;

const STATUS: usize = 0x06;
const STATUS_CAPABILITIES: u8 = 0x10;
const REVISION: usize = 0x08;
const HEADER_TYPE: usize = 0x0e;
const CAPABILITIES: usize = 0x34;
const EXPRESS: u8 = 0x10;
const ACS: u16 = 0x000d;
/// Offset of the control word in the ACS capability.
const ACS_CONTROL: usize = 6;

/// The bits that send peer traffic up to the root: request redirect, completion redirect, egress control.
const REDIRECT: u16 = 0x04 | 0x08 | 0x20;

/// What was found out about Access Control Services of a function, which can send peer traffic up to the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Acs {
    /// The function has no ACS capability.
    Absent,
    /// Its control word.
    Control(u16),
    /// It could not be told.
    Unreadable(ConfigProblem),
}

/// Why configuration space does not tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ConfigProblem {
    /// There is no `config`.
    Missing,
    /// It is not allowed to be opened.
    Refused,
    /// It could not be read for another reason.
    Failed,
    /// The snapshot does not hold it.
    NotRecorded,
    /// Only the header was given: capabilities need `CAP_SYS_ADMIN`.
    HeaderOnly,
    /// It is cut elsewhere.
    Short,
    /// All its bits are set: the function does not answer.
    AllOnes,
    /// A list of capabilities does not end.
    Loop,
}

impl ConfigProblem {
    /// One clause.
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Missing => "there is no config file",
            Self::Refused => "permission denied",
            Self::Failed => "it could not be read",
            Self::NotRecorded => "not recorded in this snapshot",
            Self::HeaderOnly => "only 64 bytes are shown without root",
            Self::Short => "it is cut",
            Self::AllOnes => "the device does not answer, all bits are set",
            Self::Loop => "its list of capabilities does not end",
        }
    }

    /// Whether more privilege would help.
    pub const fn is_permission(self) -> bool {
        matches!(self, Self::Refused | Self::HeaderOnly)
    }
}

impl Acs {
    /// Whether peer traffic is sent up to the root; `None` if that could not be told.
    pub const fn redirects(self) -> Option<bool> {
        match self {
            Self::Absent => Some(false),
            Self::Control(word) => Some(word & REDIRECT != 0),
            Self::Unreadable(_) => None,
        }
    }
}

/// What PCI Express calls a function, from its capability's flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PortType {
    /// An endpoint, legacy ones included.
    Endpoint,
    /// A port of the root complex.
    RootPort,
    /// The port of a switch towards the root.
    UpstreamPort,
    /// A port of a switch away from the root.
    DownstreamPort,
    /// A part of the root complex itself.
    RootComplexPart,
    /// A bridge from or to conventional PCI.
    PciBridge,
    /// No PCI Express capability.
    Conventional,
    /// A number that no specification gives a name.
    Other,
}

/// What is kept of a configuration space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Config {
    /// How many bytes it gave: 64 without privilege, 256 without extended capabilities, else 4096.
    pub length: u16,
    /// The revision.
    pub revision: u8,
    /// What kind of port it is; `None` if that could not be told.
    pub port: Option<PortType>,
    /// Access Control Services.
    pub acs: Acs,
}

/// What the bytes of a `config` file say.
pub(super) fn parse(bytes: &[u8]) -> Result<Config, ConfigProblem> {
    let length = u16::try_from(bytes.len()).map_err(|_| ConfigProblem::Failed)?;
    if bytes.len() < HEADER {
        return Err(ConfigProblem::Short);
    }
    if bytes[..HEADER].iter().all(|&byte| byte == 0xff) {
        return Err(ConfigProblem::AllOnes);
    }
    let revision = bytes[REVISION];
    if bytes.len() < EXTENDED {
        let problem =
            if bytes.len() == HEADER { ConfigProblem::HeaderOnly } else { ConfigProblem::Short };
        return Ok(Config { length, revision, port: None, acs: Acs::Unreadable(problem) });
    }
    let port = match express(bytes, |_| {}) {
        Walk::Found(at) => word(bytes, at + 2).map(port_type),
        Walk::End => Some(PortType::Conventional),
        Walk::Loop => None,
    };
    let acs = match extended(bytes, |_| {}) {
        Walk::Found(at) => match word(bytes, at + ACS_CONTROL) {
            Some(0xffff) => Acs::Unreadable(ConfigProblem::AllOnes),
            Some(control) => Acs::Control(control),
            None => Acs::Unreadable(ConfigProblem::Short),
        },
        Walk::End if bytes.len() > EXTENDED && bytes.len() < LIMIT => {
            Acs::Unreadable(ConfigProblem::Short)
        }
        Walk::End => Acs::Absent,
        Walk::Loop if dword(bytes, EXTENDED) == Some(u32::MAX) => {
            Acs::Unreadable(ConfigProblem::AllOnes)
        }
        Walk::Loop => Acs::Unreadable(ConfigProblem::Loop),
    };
    Ok(Config { length, revision, port, acs })
}

/// Keeps of a configuration space what [`parse`] finds in it: ids, class, the chains of capabilities, and the words of the two
/// that count. Serial numbers, addresses and the rest become zero.
pub(super) fn redact(bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![0; bytes.len()];
    let mut keep = |range: std::ops::Range<usize>| {
        let range = range.start.min(bytes.len())..range.end.min(bytes.len());
        out[range.clone()].copy_from_slice(&bytes[range]);
    };
    if bytes.len() >= HEADER && bytes[..HEADER].iter().all(|&byte| byte == 0xff) {
        keep(0..HEADER);
        return out;
    }
    keep(0..4);
    keep(STATUS..STATUS + 1);
    keep(REVISION..REVISION + 4);
    keep(HEADER_TYPE..HEADER_TYPE + 1);
    keep(CAPABILITIES..CAPABILITIES + 1);
    if let Walk::Found(at) = express(bytes, |at| keep(at..at + 2)) {
        keep(at..at + 4);
    }
    if let Walk::Found(at) = extended(bytes, |at| keep(at..at + 4)) {
        keep(at..at + ACS_CONTROL + 2);
    }
    out
}

/// How the walk through a list of capabilities ended.
enum Walk {
    /// The capability is at this offset.
    Found(usize),
    /// It is not in the list.
    End,
    /// The list does not end.
    Loop,
}

/// Looks for the PCI Express capability; `see` is told each capability's place.
fn express(bytes: &[u8], mut see: impl FnMut(usize)) -> Walk {
    if bytes.get(STATUS).is_none_or(|status| status & STATUS_CAPABILITIES == 0) {
        return Walk::End;
    }
    let mut at = usize::from(bytes.get(CAPABILITIES).copied().unwrap_or(0) & 0xfc);
    for _ in 0..MOST_STANDARD {
        let (true, Some([id, next])) = (at >= HEADER, bytes.get(at..at + 2)) else {
            return Walk::End;
        };
        if *id == 0xff {
            return Walk::End;
        }
        see(at);
        if *id == EXPRESS {
            return Walk::Found(at);
        }
        at = usize::from(next & 0xfc);
    }
    Walk::Loop
}

/// Looks for the ACS capability; `see` is told each capability's place.
fn extended(bytes: &[u8], mut see: impl FnMut(usize)) -> Walk {
    let mut at = EXTENDED;
    for _ in 0..MOST_EXTENDED {
        let Some(header) = dword(bytes, at).filter(|_| at >= EXTENDED) else { return Walk::End };
        see(at);
        if header == 0 {
            return Walk::End;
        }
        if header & 0xffff == u32::from(ACS) {
            return Walk::Found(at);
        }
        at = usize::try_from(header >> 20).unwrap_or(0) & 0xffc;
    }
    Walk::Loop
}

const fn port_type(flags: u16) -> PortType {
    match (flags >> 4) & 0xf {
        0 | 1 => PortType::Endpoint,
        4 => PortType::RootPort,
        5 => PortType::UpstreamPort,
        6 => PortType::DownstreamPort,
        7 | 8 => PortType::PciBridge,
        9 | 10 => PortType::RootComplexPart,
        _ => PortType::Other,
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn dword(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A function of a switch: PCI Express at 0x40 behind another capability, ACS behind a serial number.
    fn port(kind: u16, control: u16) -> Vec<u8> {
        let mut bytes = vec![0; LIMIT];
        bytes[..4].copy_from_slice(&[0x22, 0x10, 0xa5, 0x14]);
        bytes[STATUS] = STATUS_CAPABILITIES;
        bytes[REVISION] = 3;
        bytes[0x2c..0x30].copy_from_slice(b"SECR");
        bytes[CAPABILITIES] = 0x50;
        bytes[0x50..0x52].copy_from_slice(&[0x01, 0x40]);
        bytes[0x40..0x42].copy_from_slice(&[EXPRESS, 0]);
        bytes[0x42..0x44].copy_from_slice(&(2 | (kind << 4)).to_le_bytes());
        bytes[0x100..0x104].copy_from_slice(&0x1500_0003_u32.to_le_bytes());
        bytes[0x104..0x10c].copy_from_slice(b"SECRET12");
        bytes[0x150..0x154].copy_from_slice(&0x0001_000d_u32.to_le_bytes());
        bytes[0x156..0x158].copy_from_slice(&control.to_le_bytes());
        bytes
    }

    #[test]
    fn a_ports_kind_and_control_word_are_found() {
        let parsed = parse(&port(6, 0x1d)).unwrap();
        let expected = Config {
            length: 4096,
            revision: 3,
            port: Some(PortType::DownstreamPort),
            acs: Acs::Control(0x1d),
        };
        assert_eq!(parsed, expected);
        assert_eq!(parsed.acs.redirects(), Some(true));
        assert_eq!(parse(&port(4, 0x11)).unwrap().acs.redirects(), Some(false));
        assert_eq!(parse(&port(4, 0)).unwrap().port, Some(PortType::RootPort));
        for bit in [0x04, 0x08, 0x20] {
            assert_eq!(Acs::Control(bit).redirects(), Some(true), "{bit:#x}");
        }
        for bit in [0x01, 0x02, 0x10, 0x40] {
            assert_eq!(Acs::Control(bit).redirects(), Some(false), "{bit:#x}");
        }
    }

    #[test]
    fn what_cannot_be_told_has_its_own_state() {
        let whole = port(5, 0x1d);
        assert_eq!(parse(&[]), Err(ConfigProblem::Short));
        assert_eq!(parse(&whole[..63]), Err(ConfigProblem::Short));
        let header = parse(&whole[..64]).unwrap();
        assert_eq!((header.port, header.acs), (None, Acs::Unreadable(ConfigProblem::HeaderOnly)));
        assert_eq!(
            parse(&whole[..128]).unwrap().acs,
            Acs::Unreadable(ConfigProblem::Short),
            "cut inside the standard capabilities"
        );
        let standard = parse(&whole[..256]).unwrap();
        assert_eq!((standard.port, standard.acs), (Some(PortType::UpstreamPort), Acs::Absent));
        assert_eq!(parse(&whole[..0x157]).unwrap().acs, Acs::Unreadable(ConfigProblem::Short));
        assert_eq!(parse(&whole[..0x140]).unwrap().acs, Acs::Unreadable(ConfigProblem::Short));
        assert_eq!(parse(&[0xff; LIMIT]), Err(ConfigProblem::AllOnes));
        assert_eq!(parse(&[0xff; HEADER]), Err(ConfigProblem::AllOnes));
    }

    #[test]
    fn lists_that_do_not_end_are_loops() {
        let mut bytes = port(5, 0x1d);
        bytes[0x51] = 0x50;
        assert_eq!(parse(&bytes).unwrap().port, None);
        let mut bytes = port(5, 0x1d);
        bytes[0x100..0x104].copy_from_slice(&0x1000_0003_u32.to_le_bytes());
        assert_eq!(parse(&bytes).unwrap().acs, Acs::Unreadable(ConfigProblem::Loop));
        bytes[0x100..0x104].fill(0xff);
        bytes[0xffc..].fill(0xff);
        assert_eq!(parse(&bytes).unwrap().acs, Acs::Unreadable(ConfigProblem::AllOnes));
    }

    #[test]
    fn no_extended_capability_is_no_acs() {
        let mut bytes = port(5, 0x1d);
        bytes[0x100..].fill(0);
        assert_eq!(parse(&bytes).unwrap().acs, Acs::Absent);
    }

    #[test]
    fn a_serial_number_does_not_survive() {
        let bytes = port(6, 0x1d);
        let kept = redact(&bytes);
        assert_eq!(parse(&kept), parse(&bytes));
        assert_eq!(kept.len(), bytes.len());
        assert!(memchr::memmem::find(&kept, b"SECR").is_none());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn a_redaction_changes_nothing_that_is_found(
            mut bytes in prop::collection::vec(prop_oneof![8 => Just(0_u8), 1 => Just(0xff_u8), 3 => any::<u8>()], 0..LIMIT + 1),
            headers in prop::collection::vec((0_usize..LIMIT / 4, any::<u16>(), 0x10_u32..0x400), 0..12),
        ) {
            for (at, id, next) in headers {
                let id = if id < 0x8000 { 0x000d } else { u32::from(id & 0xf) };
                if let Some(place) = bytes.get_mut(at * 4..at * 4 + 4) {
                    place.copy_from_slice(&(id | (next << 22)).to_le_bytes());
                }
            }
            let kept = redact(&bytes);
            prop_assert_eq!(parse(&kept), parse(&bytes));
            prop_assert_eq!(redact(&kept), kept);
        }
    }
}
