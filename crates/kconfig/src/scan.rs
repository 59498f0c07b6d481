//! One pass over a text for the option and its companions.

use std::sync::LazyLock;

use aho_corasick::packed;
use memchr::memmem;

use crate::text::{Text, Value};

/// A symbol this product asks about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Symbol {
    /// `CONFIG_PCI_P2PDMA`: PCI peer-to-peer DMA, the option in question.
    PciP2pdma,
    /// `CONFIG_ZONE_DEVICE`: what the option depends on.
    ZoneDevice,
    /// `CONFIG_HSA_AMD_P2P`: GPU-to-GPU peers in amdkfd; hipFile does not need it.
    HsaAmdP2p,
    /// `CONFIG_DMABUF_MOVE_NOTIFY`: gone, and always on, since the dma-buf series of January 2026.
    DmabufMoveNotify,
    /// `CONFIG_IKCONFIG`: the kernel carries its configuration.
    Ikconfig,
}

/// Every symbol, in the order of [`Scan`]'s fields: the option first, then its four companions.
pub const SYMBOLS: [Symbol; 5] = [
    Symbol::PciP2pdma,
    Symbol::ZoneDevice,
    Symbol::HsaAmdP2p,
    Symbol::DmabufMoveNotify,
    Symbol::Ikconfig,
];

impl Symbol {
    /// The name without `CONFIG_`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::PciP2pdma => "PCI_P2PDMA",
            Self::ZoneDevice => "ZONE_DEVICE",
            Self::HsaAmdP2p => "HSA_AMD_P2P",
            Self::DmabufMoveNotify => "DMABUF_MOVE_NOTIFY",
            Self::Ikconfig => "IKCONFIG",
        }
    }

    /// How many bytes of the name come before the part that is searched for. Names are searched by a stretch that
    /// is rare in configurations, so that few candidates need a look at their line.
    const fn skip(self) -> usize {
        match self {
            Self::PciP2pdma => 4,
            Self::ZoneDevice | Self::Ikconfig | Self::HsaAmdP2p => 0,
            Self::DmabufMoveNotify => 7,
        }
    }

    const fn index(self) -> usize {
        match self {
            Self::PciP2pdma => 0,
            Self::ZoneDevice => 1,
            Self::HsaAmdP2p => 2,
            Self::DmabufMoveNotify => 3,
            Self::Ikconfig => 4,
        }
    }
}

/// What a text says about one symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The value of the last line for the symbol.
    pub value: Value,
    /// Where that line starts, in bytes from the start of the text; zero when the symbol is absent.
    pub offset: usize,
    /// How many lines set the symbol.
    pub lines: u32,
    /// Whether two of those lines give different values.
    pub differs: bool,
}

impl Setting {
    const ABSENT: Self = Self { value: Value::Absent, offset: 0, lines: 0, differs: false };

    fn add(&mut self, offset: usize, value: Value) {
        self.differs |= self.lines > 0 && self.value != value;
        self.lines = self.lines.saturating_add(1);
        (self.offset, self.value) = (offset, value);
    }
}

/// The settings of every symbol of [`SYMBOLS`] in one text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scan {
    settings: [Setting; SYMBOLS.len()],
}

impl Scan {
    /// What the text says about `symbol`.
    pub const fn get(&self, symbol: Symbol) -> Setting {
        self.settings[symbol.index()]
    }
}

static NEEDLES: LazyLock<Option<packed::Searcher>> = LazyLock::new(|| {
    packed::Searcher::new(SYMBOLS.iter().map(|symbol| &symbol.name()[symbol.skip()..]))
});

impl Text<'_> {
    /// What the text says about the option and its companions, found in one pass. The last line of a symbol wins.
    pub fn scan(&self) -> Scan {
        let mut settings = [Setting::ABSENT; SYMBOLS.len()];
        let mut candidate = |symbol: Symbol, at: usize| {
            let Some(name_at) = at.checked_sub(symbol.skip()) else { return };
            let name = symbol.name().as_bytes();
            if self.bytes()[name_at..].starts_with(name)
                && let Some((offset, value)) = self.setting_at(name_at, name.len())
            {
                settings[symbol.index()].add(offset, value);
            }
        };
        if let Some(searcher) = NEEDLES.as_ref() {
            // Matches do not overlap, so no needle may reach into another's whole name: `_P2P` would hide `P2PDMA`.
            for found in searcher.find_iter(self.bytes()) {
                candidate(SYMBOLS[found.pattern().as_usize()], found.start());
            }
        } else {
            for symbol in SYMBOLS {
                let needle = &symbol.name()[symbol.skip()..];
                for at in memmem::find_iter(self.bytes(), needle) {
                    candidate(symbol, at);
                }
            }
        }
        Scan { settings }
    }

    /// What the text says about one symbol alone.
    pub fn find(&self, symbol: Symbol) -> Setting {
        let mut setting = Setting::ABSENT;
        let name = symbol.name().as_bytes();
        for at in memmem::find_iter(self.bytes(), name) {
            if let Some((offset, value)) = self.setting_at(at, name.len()) {
                setting.add(offset, value);
            }
        }
        setting
    }
}
