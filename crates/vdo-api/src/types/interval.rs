// SPDX-License-Identifier: Apache-2.0
//! Parses a duration of a flag or an environment variable (`90s`, `10m`, `1h30m`).

use std::time::Duration;

/// Below this, asking costs more than it tells.
const SHORTEST: Duration = Duration::from_secs(1);

/// Longer than any process runs.
const LONGEST: Duration = Duration::from_secs(366 * 24 * 60 * 60);

/// Reads how often something is done, or how long it may take: numbers with units, `90s`, `10m`, `1h30m`. Always a unit, because a bare number is a
/// guess.
///
/// # Errors
/// When the text is not a duration, or one below a second or above a year; the sentence says which.
pub fn interval(text: &str) -> Result<Duration, String> {
    let read = text.parse::<jiff::SignedDuration>().ok().and_then(|read| read.try_into().ok());
    match read {
        None => Err(format!(
            "{text:?} is not a duration; write numbers with units, for example 90s, 10m or 1h30m"
        )),
        Some(short) if short < SHORTEST => Err(format!("{text:?} is too short; the shortest interval is 1s")),
        Some(long) if long > LONGEST => Err(format!("{text:?} is too long; the longest interval is a year, 8784h")),
        Some(interval) => Ok(interval),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duration_flag_units_are_summed() {
        for text in ["1h30m5s", "1h 30m 5s", "1 hour, 30 minutes, 5 seconds"] {
            assert_eq!(interval(text), Ok(Duration::from_secs(5405)), "{text}");
        }
    }

    #[test]
    fn duration_flag_malformed_text_is_rejected() {
        for bad in [
            "",
            "10",
            "m",
            "10x",
            "1m2",
            "0s",
            "-5s",
            "1d",
            "99999999999999999999h",
            "18446744073709551615h",
            "2562047788015215h",
            "8785h",
            "5ü",
        ] {
            assert!(interval(bad).is_err(), "{bad:?} was accepted");
        }
    }
}
