//! Faults on request, and how often each function was called.
//!
//! A request is `FUNCTION[:N[+]]=ACTION`: at the N-th call from now (with `+` also at every later one, without N at
//! every call) the action happens. Several are separated by commas.

use std::cell::Cell;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::api::NAMES;
use crate::error::Error;
use crate::lock;

/// What happens instead of, or to, a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// `error:CODE`: the call fails with this HIP error and does nothing.
    Error(i32),
    /// `later:CODE`: the call succeeds, its work does not: the stream's next synchronisation says so.
    Later(i32),
    /// `errno:E[@BYTES]`: the kernel refuses a direct transfer, after that many bytes.
    Errno(i32, u64),
    /// `short:BYTES`: a direct transfer ends well after at most that many bytes.
    Short(u64),
    /// `flip:BYTE`: a direct transfer ends well, but this byte of it arrives with its lowest bit wrong.
    Flip(u64),
    /// `corrupt:KIND`: a direct transfer ends well, but what arrives is wrong.
    Corrupt(Corruption),
    /// `lost`: the calling thread's current device is lost for good.
    Lost,
}

/// How what arrives is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Corruption {
    /// `swap`: the first two pages in each other's place; a single page in halves.
    Swap,
    /// `stale`: nothing arrives, what was there stays.
    Stale,
    /// `shift`: the bytes of a page further on, of half a page in a single one.
    Shift,
    /// `tail`: nothing of the last page.
    Tail,
    /// `zero`: zeros.
    Zero,
    /// `spill`: what should, and its first page again behind.
    Spill,
}

const CORRUPTIONS: [(&str, Corruption); 6] = [
    ("swap", Corruption::Swap),
    ("stale", Corruption::Stale),
    ("shift", Corruption::Shift),
    ("tail", Corruption::Tail),
    ("zero", Corruption::Zero),
    ("spill", Corruption::Spill),
];

/// A requested fault.
#[derive(Debug)]
pub(crate) struct Fault {
    function: usize,
    from: u64,
    every: bool,
    action: Action,
    seen: u64,
}

static CALLS: [AtomicU64; NAMES.len()] = [const { AtomicU64::new(0) }; NAMES.len()];
static ARMED: AtomicBool = AtomicBool::new(false);
static FAULTS: Mutex<Vec<Fault>> = Mutex::new(Vec::new());

thread_local! {
    static PENDING: Cell<Option<Action>> = const { Cell::new(None) };
}

/// Counts a call and says what shall go wrong with it.
pub(crate) fn called(function: usize) -> Option<Action> {
    CALLS.get(function)?.fetch_add(1, Ordering::Relaxed);
    if !ARMED.load(Ordering::Acquire) {
        return None;
    }
    let mut action = None;
    for fault in lock(&FAULTS).iter_mut().filter(|fault| fault.function == function) {
        fault.seen += 1;
        if fault.seen == fault.from || (fault.every && fault.seen > fault.from) {
            action = action.or(Some(fault.action));
        }
    }
    action
}

/// Leaves an action for the code below the door.
pub(crate) fn leave(action: Option<Action>) {
    PENDING.set(action);
}

/// Takes what [`leave`] left for this call.
pub(crate) fn take() -> Option<Action> {
    PENDING.take()
}

/// Whether this call's work shall fail after the call.
pub(crate) fn is_later() -> bool {
    matches!(PENDING.get(), Some(Action::Later(_)))
}

/// Takes the error that this call's work shall have.
pub(crate) fn take_later() -> Option<Error> {
    match PENDING.get() {
        Some(Action::Later(code)) => {
            PENDING.set(None);
            Some(Error(code))
        }
        _ => None,
    }
}

pub(crate) fn calls(name: &str) -> Option<u64> {
    let index = NAMES.iter().position(|known| *known == name)?;
    Some(CALLS.get(index)?.load(Ordering::Relaxed))
}

/// Adds faults to those that are requested.
pub(crate) fn arm(faults: Vec<Fault>) {
    if !faults.is_empty() {
        lock(&FAULTS).extend(faults);
        ARMED.store(true, Ordering::Release);
    }
}

/// Takes back every request and counts from 0 again.
pub(crate) fn reset() {
    lock(&FAULTS).clear();
    ARMED.store(false, Ordering::Release);
    for calls in &CALLS {
        calls.store(0, Ordering::Relaxed);
    }
}

/// Reads a list of requests.
pub(crate) fn parse(text: &str) -> Result<Vec<Fault>, String> {
    text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(parse_one).collect()
}

fn parse_one(text: &str) -> Result<Fault, String> {
    let (target, action) = text
        .split_once('=')
        .ok_or_else(|| format!("expected FUNCTION[:N[+]]=ACTION, found `{text}`"))?;
    let (name, count) = target.split_once(':').unwrap_or((target, "1+"));
    let function = NAMES
        .iter()
        .position(|known| *known == name)
        .ok_or_else(|| format!("there is no function `{name}`"))?;
    let (from, every) = match count.strip_suffix('+') {
        Some(count) => (count, true),
        None => (count, false),
    };
    let from = from.parse().ok().filter(|from| *from > 0);
    let from = from.ok_or_else(|| format!("expected a count from 1, found `{count}`"))?;
    let wrong = || {
        format!(
            "expected error:CODE, later:CODE, errno:E[@BYTES], short:BYTES, flip:BYTE, corrupt:KIND or lost, found `{action}`"
        )
    };
    let (kind, value) = action.split_once(':').unwrap_or((action, ""));
    let code = || value.parse().ok().filter(|code| *code > 0).ok_or_else(wrong);
    let action = match kind {
        "error" => Action::Error(code()?),
        "later" => Action::Later(code()?),
        "errno" => {
            let (errno, bytes) = value.split_once('@').unwrap_or((value, "0"));
            let errno =
                errno.parse().ok().filter(|errno| (1..4096).contains(errno)).ok_or_else(wrong)?;
            Action::Errno(errno, bytes.parse().map_err(|_| wrong())?)
        }
        "short" => Action::Short(value.parse().map_err(|_| wrong())?),
        "flip" => Action::Flip(value.parse().map_err(|_| wrong())?),
        "corrupt" => {
            let kind = CORRUPTIONS.iter().find(|(word, _)| *word == value);
            Action::Corrupt(kind.ok_or_else(wrong)?.1)
        }
        "lost" if value.is_empty() => Action::Lost,
        _ => return Err(wrong()),
    };
    let fits = match action {
        Action::Errno(..) | Action::Short(_) | Action::Flip(_) | Action::Corrupt(_) => {
            name.starts_with("hipAmdFile")
        }
        Action::Later(_) => {
            name.ends_with("Async") || matches!(name, "hipLaunchHostFunc" | "hipStreamWriteValue64")
        }
        Action::Error(_) | Action::Lost => true,
    };
    if !fits {
        return Err(format!("`{name}` cannot fail with `{kind}`"));
    }
    Ok(Fault { function, from, every, action, seen: 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read() {
        let faults =
            parse("hipMalloc:3=error:2, hipAmdFileRead:2+=errno:5@4096,hipMemcpy=lost,hipAmdFileWrite:1=corrupt:swap").unwrap();
        let read: Vec<_> =
            faults.iter().map(|f| (NAMES[f.function], f.from, f.every, f.action)).collect();
        let expected = [
            ("hipMalloc", 3, false, Action::Error(2)),
            ("hipAmdFileRead", 2, true, Action::Errno(5, 4096)),
            ("hipMemcpy", 1, true, Action::Lost),
            ("hipAmdFileWrite", 1, false, Action::Corrupt(Corruption::Swap)),
        ];
        assert_eq!(read, expected);
    }

    #[test]
    fn mistakes_are_named() {
        let error = |text| parse(text).unwrap_err();
        assert_eq!(error("hipMalloc"), "expected FUNCTION[:N[+]]=ACTION, found `hipMalloc`");
        assert_eq!(error("hipmalloc=lost"), "there is no function `hipmalloc`");
        assert_eq!(error("hipMalloc:0=lost"), "expected a count from 1, found `0`");
        assert_eq!(error("hipMalloc=short:1"), "`hipMalloc` cannot fail with `short`");
        assert_eq!(error("hipMalloc=flip:1"), "`hipMalloc` cannot fail with `flip`");
        assert_eq!(error("hipMemcpy=later:719"), "`hipMemcpy` cannot fail with `later`");
        assert_eq!(error("hipMalloc=corrupt:zero"), "`hipMalloc` cannot fail with `corrupt`");
        assert!(error("hipAmdFileRead=corrupt:all").ends_with("found `corrupt:all`"));
        assert!(error("hipAmdFileRead=errno:0").ends_with("found `errno:0`"));
    }
}
