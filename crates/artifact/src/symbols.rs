//! Lists of a kernel's symbols: `System.map`, `Module.symvers`, `/proc/kallsyms`.
//!
//! Two functions are defined in `drivers/pci/p2pdma.c` alone, which is built only with the option.

use std::io::BufRead;

use crate::fail::{Failure, Place};
use crate::source::{Source, len_u64};

/// Functions that only a kernel with the option has.
pub(crate) const OWN: [&[u8]; 2] = [b"pci_p2pdma_add_resource", b"pci_p2pdma_distance_many"];

/// Lines have a hundred bytes or so; of longer ones only the beginning is looked at.
const MAX_LINE: usize = 4096;

/// The kind of list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum List {
    /// `ffffffff81000000 T _text`: `System.map`, `/proc/kallsyms`.
    Addresses,
    /// `0x1234abcd\tname\tvmlinux\tEXPORT_SYMBOL_GPL`.
    Exports,
}

impl List {
    /// What the first whole line says.
    pub(crate) fn sniff(head: &[u8]) -> Option<Self> {
        let line = &head[..memchr::memchr(b'\n', head)?];
        let hex = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_hexdigit);
        if let Some(rest) = line.strip_prefix(b"0x") {
            let fields: Vec<&[u8]> = rest.split(|&byte| byte == b'\t').collect();
            return (fields.len() >= 3 && hex(fields[0])).then_some(Self::Exports);
        }
        let mut fields = line.split(|&byte| byte == b' ');
        let address = fields.next().is_some_and(|field| field.len() >= 8 && hex(field));
        let kind =
            fields.next().is_some_and(|kind| kind.len() == 1 && kind[0].is_ascii_alphabetic());
        (address && kind && fields.next().is_some()).then_some(Self::Addresses)
    }
}

/// Reads a list to its end: whether the option's own functions are in it; `None` if it tells nothing.
pub(crate) fn read(
    list: List,
    source: &mut dyn Source,
    place: &Place<'_>,
) -> Result<Option<bool>, Failure> {
    let (mut own, mut others, mut end) = (false, false, false);
    let mut whole = true;
    let mut line = Vec::new();
    loop {
        line.clear();
        let count = std::io::Read::take(&mut *source, len_u64(MAX_LINE))
            .read_until(b'\n', &mut line)
            .map_err(|error| place.failure(error))?;
        if count == 0 {
            break;
        }
        whole = line.ends_with(b"\n");
        let text = line.trim_ascii_end();
        let Some(name) = name(list, text) else { continue };
        own |= OWN.contains(&name);
        others |= name.starts_with(b"pci_");
        end |= name == b"_end";
    }
    // A list cut short lacks names. `System.map` is sorted by address and ends with `_end` and its neighbours; of the
    // other list only the last line tells.
    let sound = whole && (end || list == List::Exports);
    Ok(if own {
        Some(true)
    } else if others && sound {
        Some(false)
    } else {
        None
    })
}

/// The name in a line, if it is one of the kernel proper.
fn name(list: List, line: &[u8]) -> Option<&[u8]> {
    match list {
        List::Addresses => {
            let mut fields = line.splitn(3, |&byte| byte == b' ');
            let name = fields.nth(2)?;
            // A module's symbol has the module after a tab.
            (!name.contains(&b'\t')).then_some(name)
        }
        List::Exports => {
            let mut fields = line.split(|&byte| byte == b'\t');
            let name = fields.nth(1)?;
            (fields.next()? == b"vmlinux").then_some(name)
        }
    }
}
