// SPDX-License-Identifier: Apache-2.0
//! Decides after how many minutes the operator logs in to a vCenter again, although its session still works.

use jiff::{SignedDuration, Timestamp};

/// How long a session is used before it is renewed: a vCenter does not end one when the password changes, so only a login shows that the
/// password still is the right one. A little less than the usual pause between two looks.
const RENEWED: SignedDuration = SignedDuration::from_mins(8);

/// Whether a session of this age is old enough to be renewed.
#[must_use]
pub fn is_old(opened: Timestamp, now: Timestamp) -> bool {
    now.duration_since(opened) >= RENEWED
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_700_000_000 + seconds).expect("a time")
    }

    #[test]
    fn session_of_eight_minutes_is_renewed() {
        assert!(!is_old(at(0), at(479)) && is_old(at(0), at(480)));
    }
}
