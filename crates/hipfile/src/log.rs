//! One line each, to standard error.

use std::sync::atomic::{AtomicU8, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

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

    /// The word that sets it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
        }
    }
}

/// Takes lines, each without its end.
pub type Sink = Box<dyn Fn(&str) + Send + Sync>;

pub(crate) struct Log {
    level: AtomicU8,
    sink: Option<Sink>,
}

impl std::fmt::Debug for Log {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Log").field("level", &self.level).finish_non_exhaustive()
    }
}

impl Log {
    pub(crate) fn new(level: Level, sink: Option<Sink>) -> Self {
        Self { level: AtomicU8::new(level as u8), sink }
    }

    pub(crate) fn level(&self) -> Level {
        let level = self.level.load(Ordering::Relaxed);
        let all = [Level::Off, Level::Warn, Level::Info, Level::Debug];
        all.into_iter().find(|one| *one as u8 == level).unwrap_or(Level::Warn)
    }

    pub(crate) fn set_level(&self, level: Level) {
        self.level.store(level as u8, Ordering::Relaxed);
    }

    pub(crate) fn is_on(&self, level: Level) -> bool {
        level as u8 <= self.level.load(Ordering::Relaxed)
    }

    /// The text is made only if it is wanted.
    pub(crate) fn say(&self, level: Level, text: impl FnOnce() -> String) {
        if !self.is_on(level) {
            return;
        }
        // One write, so that lines of several threads do not mix. Nothing can be done if it fails.
        let mut line = format!("hipfile: {}: ", level.as_str());
        for c in text().chars() {
            match c {
                '\n' => line.push(' '),
                // A terminal obeys them.
                c if c.is_control() => line.extend(c.escape_default()),
                c => line.push(c),
            }
        }
        line.push('\n');
        match &self.sink {
            Some(sink) => sink(line.trim_end()),
            // Not through the standard library, whose lock another thread may have held when this process was forked off.
            None if is_read() => drop(rustix::io::write(rustix::stdio::stderr(), line.as_bytes())),
            None => {}
        }
    }
}

/// Whether standard error still has a reader: else the program, which may never write there, would get SIGPIPE for a line of ours.
fn is_read() -> bool {
    const NOW: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };
    let stderr = rustix::stdio::stderr();
    let mut asked = [PollFd::new(&stderr, PollFlags::OUT)];
    let gone = PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL;
    poll(&mut asked, Some(&NOW)).is_err() || !asked[0].revents().intersects(gone)
}
