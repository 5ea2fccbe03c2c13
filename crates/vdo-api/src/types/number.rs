// SPDX-License-Identifier: Apache-2.0
//! Arithmetic on times, sizes and ranges that saturates instead of overflows, for numbers from registries, servers and objects.

use jiff::Timestamp;
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

/// No deadline is later than this after its beginning: a century.
const FAR: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// A point in time from which another one follows. `+` panics where the sum does not exist.
pub trait Later: Copy {
    /// This long after it; the farthest point in time that exists where that one does not.
    #[must_use]
    fn later(self, by: Duration) -> Self;
}

/// The clock of the standard library, and that of tokio, which is the same one.
impl<T: Copy + From<Instant> + Into<Instant>> Later for T {
    fn later(self, by: Duration) -> Self {
        let start: Instant = self.into();
        start.checked_add(by.min(FAR)).unwrap_or(start).into()
    }
}

/// The time of day so long after another one; the last that exists where that one does not.
#[must_use]
pub fn time_after(time: Timestamp, by: Duration) -> Timestamp {
    time.checked_add(by).unwrap_or(Timestamp::MAX)
}

/// The sum of sizes that others name; the largest number there is where it is larger.
#[must_use]
pub fn total(numbers: impl IntoIterator<Item = u64>) -> u64 {
    numbers.into_iter().fold(0, u64::saturating_add)
}

/// The numbers from the first to the last that others name, and no more of them than anyone looks at: a hundred.
#[must_use]
pub fn span(first: u64, last: u64) -> RangeInclusive<u64> {
    first..=last.min(first.saturating_add(99))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: [Duration; 3] = [Duration::MAX, Duration::from_secs(u64::MAX), Duration::from_secs(i64::MAX as u64)];

    #[test]
    fn later_of_the_longest_durations_exists() {
        let now = Instant::now();
        for by in MOST {
            assert_eq!(now.later(by), now.later(FAR), "{by:?}");
            assert_eq!(time_after(Timestamp::UNIX_EPOCH, by), Timestamp::MAX, "{by:?}");
            assert_eq!(time_after(Timestamp::MAX, by), Timestamp::MAX, "{by:?}");
        }
        let second = Duration::from_secs(1);
        assert_eq!(now.later(second).duration_since(now), second);
        assert_eq!(time_after(Timestamp::UNIX_EPOCH, second).as_second(), 1);
    }

    #[test]
    fn span_of_any_numbers_is_short() {
        for (first, last, expected) in [
            (30, 35, 6),
            (35, 30, 0),
            (0, u64::MAX, 100),
            (u64::MAX, u64::MAX, 1),
            (u64::MAX - 1, u64::MAX, 2),
        ] {
            assert_eq!(span(first, last).count(), expected, "{first} {last}");
        }
    }

    #[test]
    fn total_of_the_largest_numbers_is_the_largest() {
        for (numbers, expected) in [
            (&[][..], 0),
            (&[1, 2][..], 3),
            (&[u64::MAX][..], u64::MAX),
            (&[u64::MAX, 1][..], u64::MAX),
            (&[i64::MAX as u64; 3][..], u64::MAX),
        ] {
            assert_eq!(total(numbers.iter().copied()), expected, "{numbers:?}");
        }
    }
}
