//! What is not PCI, but counts in the kernel's P2P decision: the processor, boot parameters, where memory ends.

use serde::{Deserialize, Serialize};

use super::Got;
use crate::tree::{Tree, Want};
use crate::witness::Evidence;

/// The family of processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Architecture {
    /// x86, 32 or 64 bits.
    X86,
    /// 64-bit Arm.
    Arm,
    /// Another one.
    Other,
}

/// Processor, boot parameters and memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// The architecture, if `/proc/cpuinfo` tells.
    pub architecture: Option<Architecture>,
    /// Vendor of the first processor, `AuthenticAMD`.
    pub cpu_vendor: Got<String>,
    /// Its family, decimal as in `/proc/cpuinfo`; 23 is Zen.
    pub cpu_family: Option<u32>,
    /// Where vendor and family stand.
    pub cpu_source: Vec<Evidence>,
    /// Boot parameters that count here, in order.
    pub parameters: Vec<Parameter>,
    /// Whether the boot parameters could be read.
    pub command_line: Got<bool>,
    /// The address after the last byte of memory; only root is told.
    pub memory_end: Option<u64>,
}

impl Default for Machine {
    fn default() -> Self {
        Self {
            architecture: None,
            cpu_vendor: Got::NotRecorded,
            cpu_family: None,
            cpu_source: Vec::new(),
            parameters: Vec::new(),
            command_line: Got::NotRecorded,
            memory_end: None,
        }
    }
}

/// One boot parameter, `pci=disable_acs_redir=0000:01:00.0`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parameter {
    /// As it stands on the command line.
    pub text: String,
}

impl Parameter {
    /// Its name.
    pub fn name(&self) -> &str {
        self.text.split('=').next().unwrap_or_default()
    }

    /// Where it stands.
    pub fn evidence(&self) -> Evidence {
        let text = Some(self.text.clone());
        Evidence { path: COMMAND_LINE.to_owned(), line: Some(1), text }
    }
}

const CPUINFO: &str = "/proc/cpuinfo";
const COMMAND_LINE: &str = "/proc/cmdline";
const IOMEM: &str = "/proc/iomem";

/// 8192 processors, the most that Linux is built for on x86, with 2 KiB of text each.
const CPUINFO_LIMIT: usize = 16 << 20;

/// The kernel cuts a command line at 4096 bytes on most architectures, some allow more.
const COMMAND_LINE_LIMIT: usize = 64 << 10;

/// A line for each range of addresses; thousands on large machines.
const IOMEM_LIMIT: usize = 4 << 20;

/// Boot parameters that are kept.
const PARAMETERS: [&str; 8] = [
    "pci",
    "iommu",
    "amd_iommu",
    "intel_iommu",
    "iommu.passthrough",
    "iommu.strict",
    "nokaslr",
    "pcie_acs_override",
];

pub(super) fn read(tree: &dyn Tree) -> Machine {
    let mut machine = Machine::default();
    match tree.read(CPUINFO, &Want::lines(CPUINFO_LIMIT, keep_processor)) {
        Ok(content) => processor(&content.bytes, &mut machine),
        Err(error) => machine.cpu_vendor = Got::failed(error),
    }
    match tree.read(COMMAND_LINE, &Want::lines(COMMAND_LINE_LIMIT, keep_parameters)) {
        Ok(content) => {
            machine.command_line = Got::Value(true);
            let text = String::from_utf8_lossy(&content.bytes).into_owned();
            machine.parameters =
                words(&text).map(|word| Parameter { text: word.to_owned() }).collect();
        }
        Err(error) => machine.command_line = Got::failed(error),
    }
    if let Ok(content) = tree.read(IOMEM, &Want::lines(IOMEM_LIMIT, keep_memory)) {
        machine.memory_end = memory_end(&String::from_utf8_lossy(&content.bytes));
    }
    machine
}

/// The first processor's lines.
fn processor(bytes: &[u8], machine: &mut Machine) {
    let text = String::from_utf8_lossy(bytes);
    machine.cpu_vendor = Got::Missing;
    let mut processors = 0;
    for (number, line) in (1..).zip(text.lines()) {
        let Some((key, value)) = line.split_once(':') else { continue };
        let value = value.trim();
        let evidence = || Evidence {
            path: CPUINFO.to_owned(),
            line: Some(number),
            text: Some(line.to_owned()),
        };
        match key.trim() {
            "processor" => {
                processors += 1;
                if processors > 1 {
                    break;
                }
            }
            "vendor_id" => {
                machine.cpu_vendor = Got::Value(value.to_owned());
                machine.cpu_source.push(evidence());
            }
            "cpu family" => {
                machine.architecture = Some(Architecture::X86);
                machine.cpu_family = value.parse().ok();
                machine.cpu_source.push(evidence());
            }
            "CPU implementer" => machine.architecture = Some(Architecture::Arm),
            "isa" | "cpu" => machine.architecture = Some(Architecture::Other),
            _ => {}
        }
    }
}

fn keep_processor(line: &[u8], out: &mut Vec<u8>) {
    const KEYS: [&[u8]; 6] =
        [b"processor", b"vendor_id", b"cpu family", b"CPU implementer", b"isa", b"cpu"];
    let key = line.split(|&byte| byte == b':').next().unwrap_or_default();
    if KEYS.contains(&key.trim_ascii()) {
        out.extend_from_slice(line);
    }
}

/// The parameters of a command line: a blank inside double quotes does not separate, and what follows `--` is not the kernel's.
fn words(line: &str) -> impl Iterator<Item = &str> {
    let mut quoted = false;
    line.split(move |c: char| {
        quoted ^= c == '"';
        c.is_ascii_whitespace() && !quoted
    })
    .take_while(|word| *word != "--")
    .filter(|word| !word.is_empty())
}

fn keep_parameters(line: &[u8], out: &mut Vec<u8>) {
    let line = String::from_utf8_lossy(line);
    let used = words(&line)
        .filter(|word| PARAMETERS.contains(&word.split('=').next().unwrap_or_default()));
    out.extend_from_slice(used.collect::<Vec<_>>().join(" ").as_bytes());
}

fn keep_memory(line: &[u8], out: &mut Vec<u8>) {
    // Ranges inside memory, which are indented, name parts of the kernel.
    if line.ends_with(b" : System RAM") && !line.starts_with(b" ") {
        out.extend_from_slice(line);
    }
}

/// The end of the last range; `None` if addresses are hidden, which makes them all zero.
fn memory_end(text: &str) -> Option<u64> {
    let end = |line: &str| {
        let (range, _) = line.split_once(" : ")?;
        u64::from_str_radix(range.split_once('-')?.1, 16).ok()
    };
    text.lines().filter_map(end).max().filter(|&last| last > 0).map(|last| last.saturating_add(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(line: &str) -> String {
        let mut out = Vec::new();
        keep_parameters(line.as_bytes(), &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn only_parameters_that_count_are_kept() {
        let cases = [
            ("root=UUID=1 ro quiet iommu=pt", "iommu=pt"),
            (
                "pci=disable_acs_redir=0000:01:00.0;0000:02:00.0 nokaslr",
                "pci=disable_acs_redir=0000:01:00.0;0000:02:00.0 nokaslr",
            ),
            ("x=\"a iommu=off\" amd_iommu=off", "amd_iommu=off"),
            ("iommu.passthrough=1 -- nokaslr", "iommu.passthrough=1"),
            ("ip=10.0.0.1:::host iommu_secret=1 pci", "pci"),
            ("", ""),
        ];
        for (line, expected) in cases {
            assert_eq!(kept(line), expected, "{line}");
            assert_eq!(kept(expected), expected, "{line} again");
        }
    }

    #[test]
    fn memory_ends_where_its_last_range_does() {
        let text = "00001000-0009ffff : System RAM\n\n100000000-203fffffff : System RAM\n";
        assert_eq!(memory_end(text), Some(0x20_4000_0000));
        assert_eq!(memory_end("00000000-00000000 : System RAM\n"), None, "hidden");
        assert_eq!(memory_end("x\n"), None);
    }
}
