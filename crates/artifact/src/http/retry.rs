//! How long to wait before the next try.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The wait before try `failed + 1`: doubles from `first` to `most`.
pub(super) fn backoff(failed: u32, first: Duration, most: Duration) -> Duration {
    first.saturating_mul(1 << failed.saturating_sub(1).min(16)).min(most)
}

/// `Retry-After`: seconds, or a date (RFC 9110, 10.2.3).
pub(super) fn retry_after(value: &str) -> Option<Duration> {
    let value = value.trim();
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = jiff::fmt::rfc2822::parse(value).ok()?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?.as_secs();
    let then = u64::try_from(date.timestamp().as_second()).ok()?;
    Some(Duration::from_secs(then.saturating_sub(now)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_bound() {
        let wait = |failed| backoff(failed, Duration::from_secs(1), Duration::from_secs(8));
        assert_eq!([1, 2, 3, 4, 5, 99].map(|n| wait(n).as_secs()), [1, 2, 4, 8, 8, 8]);
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        assert_eq!(retry_after(" 7 "), Some(Duration::from_secs(7)));
        assert_eq!(retry_after("Sun, 06 Nov 1994 08:49:37 GMT"), Some(Duration::ZERO));
        assert!(retry_after("Tue, 31 Dec 2999 23:59:59 GMT").unwrap() > Duration::from_secs(1000));
        assert_eq!(retry_after("soon"), None);
    }
}
