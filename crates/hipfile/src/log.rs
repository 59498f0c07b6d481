//! One line each, to standard error.

use std::io::Write as _;

/// How much is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Nothing.
    Off,
    /// What the user should act on.
    Warn,
    /// Why I/O went the way it went, once for each file and reason.
    Info,
    /// Every registration.
    Debug,
}

impl Level {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        Some(match text.trim().to_ascii_lowercase().as_str() {
            "off" | "none" | "0" => Self::Off,
            "warn" | "warning" => Self::Warn,
            "info" => Self::Info,
            "debug" => Self::Debug,
            _ => return None,
        })
    }

    const fn word(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Warn => "warning",
            Self::Info => "info",
            Self::Debug => "debug",
        }
    }
}

/// Takes lines, each without its end.
pub type Sink = Box<dyn Fn(&str) + Send + Sync>;

pub(crate) struct Log {
    level: Level,
    sink: Option<Sink>,
}

impl std::fmt::Debug for Log {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Log").field("level", &self.level).finish_non_exhaustive()
    }
}

impl Log {
    pub(crate) fn new(level: Level, sink: Option<Sink>) -> Self {
        Self { level, sink }
    }

    pub(crate) fn is_on(&self, level: Level) -> bool {
        level <= self.level
    }

    /// The text is made only if it is wanted.
    pub(crate) fn say(&self, level: Level, text: impl FnOnce() -> String) {
        if !self.is_on(level) {
            return;
        }
        // One write, so that lines of several threads do not mix. Nothing can be done if it fails.
        let line = format!("hipfile: {}: {}\n", level.word(), text().replace('\n', " "));
        match &self.sink {
            Some(sink) => sink(line.trim_end()),
            None => drop(std::io::stderr().write_all(line.as_bytes())),
        }
    }
}
