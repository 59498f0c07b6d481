//! Just enough of RFC 3339 for the time of a snapshot.

/// Seconds since 1970 of `2026-11-30T17:20:58Z`; a fraction of a second is allowed and dropped.
pub(super) fn unix_seconds(text: &str) -> Option<u64> {
    let bytes = text.as_bytes();
    let shape = b"0000-00-00T00:00:00";
    if bytes.len() > 40 || bytes.len() < shape.len() {
        return None;
    }
    let (head, tail) = text.split_at_checked(shape.len())?;
    let fits = head.bytes().zip(shape).all(|(byte, model)| match model {
        b'0' => byte.is_ascii_digit(),
        other => byte == *other,
    });
    let fraction = tail.strip_suffix('Z')?;
    let fraction_fits = fraction.is_empty()
        || fraction.strip_prefix('.').is_some_and(|digits| {
            !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
        });
    if !fits || !fraction_fits {
        return None;
    }
    let number = |from: usize, to: usize| head.get(from..to)?.parse::<u64>().ok();
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let length = |year: u64, month: u64| match month {
        2 => 28 + u64::from(leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    // 60 is a leap second.
    let valid = year >= 1970
        && (1..=12).contains(&month)
        && (1..=length(year, month)).contains(&day)
        && hour < 24
        && minute < 60
        && second <= 60;
    if !valid {
        return None;
    }
    let days = (1970..year).map(|year| 365 + u64::from(leap(year))).sum::<u64>()
        + (1..month).map(|month| length(year, month)).sum::<u64>()
        + (day - 1);
    Some(days * 86_400 + hour * 3_600 + minute * 60 + second)
}

#[cfg(test)]
mod tests {
    use super::unix_seconds;

    #[test]
    fn times_are_counted() {
        assert_eq!(unix_seconds("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(unix_seconds("2000-02-29T12:00:00Z"), Some(951_825_600));
        assert_eq!(unix_seconds("2026-11-30T17:20:58.123456789Z"), Some(1_796_059_258));
        for wrong in [
            "",
            "2026-11-30",
            "2026-11-30T17:20:58",
            "2026-11-30T17:20:58+01:00",
            "2026-11-30T17:20:58.Z",
            "2025-02-29T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-00-01T00:00:00Z",
            "1969-12-31T23:59:59Z",
            "2026-11-30T24:00:00Z",
            "2026-11-30T17:20:5\u{e9}Z",
        ] {
            assert_eq!(unix_seconds(wrong), None, "{wrong}");
        }
    }
}
