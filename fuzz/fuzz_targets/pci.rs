//! The PCI layer: whatever the files of sysfs say, the facts are those of a snapshot, bounded, and every clause is one line.
//!
//! An input that starts with `@` is a list of files and links. Any other is the configuration space of a GPU behind a bridge,
//! and of the bridge.

#![no_main]

use fastpath_fuzz::MemoryTree;
use fastpath_fuzz::artifact::within_memory;
use fastpath_host::pci::{self, Acs, ConfigProblem, Got, PortType};
use libfuzzer_sys::fuzz_target;

/// The most capabilities of each kind that are followed.
const STANDARD: usize = 48;
const EXTENDED: usize = 480;

/// A GPU behind a bridge, both with the same configuration space.
fn machine(config: &[u8]) -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    for (address, class, real) in [
        ("0000:00:01.0", "0x060400", "0000:00:01.0"),
        ("0000:03:00.0", "0x030000", "0000:00:01.0/0000:03:00.0"),
    ] {
        let path = format!("/sys/bus/pci/devices/{address}");
        let link = format!("{path} -> ../../../devices/pci0000:00/{real}");
        files.extend([
            (link, Vec::new()),
            (format!("{path}/class"), format!("{class}\n").into_bytes()),
            (format!("{path}/vendor"), b"0x1002\n".to_vec()),
            (format!("{path}/config"), config.to_owned()),
        ]);
    }
    files
}

/// Where the capability that is looked for stands, if the list that leads from one to the next reaches it; `None` if the list
/// goes where it was before, or is longer than one that is followed.
fn walk(most: usize, mut at: usize, step: impl Fn(usize) -> Step) -> Option<Option<usize>> {
    let mut seen = Vec::new();
    while !seen.contains(&at) && seen.len() < most {
        seen.push(at);
        match step(at) {
            Step::Here => return Some(Some(at)),
            Step::Next(next) => at = next,
            Step::End => return Some(None),
        }
    }
    None
}

enum Step {
    Here,
    Next(usize),
    End,
}

/// What kind of port it is and its control word, read anew; `None` where a list is a loop.
type Naive = (Option<PortType>, Option<Option<u16>>);

fn naive(bytes: &[u8]) -> Naive {
    let word = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
    let express =
        walk(STANDARD, usize::from(bytes[0x34] & 0xfc), |at| match bytes.get(at..at + 2) {
            Some([id, next]) if at >= 64 && *id != 0xff && bytes[6] & 0x10 != 0 => {
                if *id == 0x10 {
                    Step::Here
                } else {
                    Step::Next(usize::from(next & 0xfc))
                }
            }
            _ => Step::End,
        });
    let port = express.map(|at| match at.map(|at| (word(at + 2) >> 4) & 15) {
        None => PortType::Conventional,
        Some(0 | 1) => PortType::Endpoint,
        Some(4) => PortType::RootPort,
        Some(5) => PortType::UpstreamPort,
        Some(6) => PortType::DownstreamPort,
        Some(7 | 8) => PortType::PciBridge,
        Some(9 | 10) => PortType::RootComplexPart,
        Some(_) => PortType::Other,
    });
    let access = walk(EXTENDED, 256, |at| match bytes.get(at..at + 4) {
        Some(&[0, 0, 0, 0]) | None => Step::End,
        Some(_) if at < 256 => Step::End,
        Some(_) if word(at) == 0x0d => Step::Here,
        Some(_) => Step::Next(usize::from(word(at + 2) >> 4) & 0xffc),
    });
    (port, access.map(|at| at.map(|at| word(at + 6))))
}

/// A clause stands in a line of its own.
fn one_line<T>(got: &Got<T>) {
    let why = got.why();
    assert!(!why.contains(char::is_control) && why.len() <= 4096, "{why:?}");
}

fuzz_target!(|input: &[u8]| {
    let host = || {
        if input.starts_with(b"@") {
            MemoryTree::new(input)
        } else {
            MemoryTree::of(machine(input))
        }
    };
    let tree = host();
    let facts = within_memory((8 << 20) + 64 * input.len(), || pci::read(&tree));
    assert_eq!(facts, pci::read(&host().kept()), "a snapshot of it");
    assert!(format!("{facts:?}").len() <= (16 << 10) + 64 * input.len());
    assert!(facts.functions.is_sorted_by(|a, b| a.address < b.address));
    for (_, why) in &facts.unclassified {
        assert!(!why.contains(char::is_control), "{why:?}");
    }
    for function in &facts.functions {
        one_line(&function.place);
        one_line(&function.vendor);
        one_line(&function.device);
        one_line(&function.class);
        one_line(&function.iommu_group);
        one_line(&function.driver);
        one_line(&function.p2pmem);
        one_line(&function.physical);
        if let Got::Value(place) = &function.place {
            assert!(!place.bridges.contains(&function.address), "above itself");
        }
        assert!(function.bars.iter().all(|bar| bar.index < 6 && bar.size > 0));
    }
    if input.starts_with(b"@") {
        return;
    }
    assert_eq!(facts.functions.len(), 2);
    for function in &facts.functions {
        match &function.config {
            Ok(config) => {
                assert_eq!(usize::from(config.length), input.len());
                assert_eq!(config.revision, input[8]);
                if input.len() != 4096 {
                    assert!(input.len() == 256 || config.acs != Acs::Absent, "it is cut");
                    continue;
                }
                let (port, control) = naive(input);
                assert_eq!(config.port, port);
                match control {
                    Some(None) => assert_eq!(config.acs, Acs::Absent),
                    Some(Some(word)) if word != 0xffff => {
                        assert_eq!(config.acs, Acs::Control(word))
                    }
                    Some(Some(_)) | None => assert_eq!(config.acs.redirects(), None),
                }
            }
            Err(ConfigProblem::Short) => assert!(input.len() < 64),
            Err(ConfigProblem::AllOnes) => assert!(input[..64].iter().all(|&byte| byte == 0xff)),
            Err(problem) => assert!(input.len() > 4096, "{problem:?}"),
        }
    }
});
