// SPDX-License-Identifier: Apache-2.0
//! Decides the next step in the rotation of the webhook's certificate (keep, issue, stage, promote, retire) from its state and the time.

use super::Validity;
use jiff::{SignedDuration, Timestamp};

/// How long each half of a rotation lasts. An API server learns of a new caBundle within seconds, a pod of a new Secret
/// within a minute or two; this is far above both.
pub const SETTLE: SignedDuration = SignedDuration::from_mins(10);

/// What the decision about a certificate depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    /// The pair that is served, or why it is invalid.
    pub current: Result<Validity, String>,
    /// The next pair, or why it is invalid.
    pub next: Option<Result<Validity, String>>,
    /// Whether the live caBundle already contains the authority of the next pair.
    pub next_trusted: bool,
    /// Whether the authority of the previous pair is still trusted.
    pub previous: bool,
    /// When this state was reached.
    pub since: Timestamp,
    /// Whether every pod of the driver is up to date.
    pub rolled_out: bool,
}

impl Validity {
    /// When it is renewed: after two thirds of its life.
    #[must_use]
    pub fn renewal(&self) -> Timestamp {
        let third = (self.until.as_second() - self.from.as_second()) / 3;
        Timestamp::from_second(self.until.as_second() - third).unwrap_or(self.until)
    }
}

/// The next step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Nothing.
    Keep,
    /// Issue a new pair and serve with it at once: there is none, or the current one is invalid.
    Issue(String),
    /// Issue the next pair and trust its authority in addition to the current one.
    Stage,
    /// Serve with the next pair; both authorities stay trusted.
    Promote,
    /// Stop trusting the authority of the previous pair.
    Retire,
}

/// Decides the next step. At no time is anything served that is not trusted: an authority is trusted before its certificate is served, and
/// until nothing serves with it.
#[must_use]
pub fn decide(known: Option<&Known>, now: Timestamp) -> Action {
    let Some(known) = known else {
        return Action::Issue("there is none yet".into());
    };
    let settled = now.duration_since(known.since) >= SETTLE;
    match (&known.current, &known.next) {
        // The current pair is invalid: a next pair that is already trusted is better, and without one there is nothing to lose.
        (Err(_), Some(Ok(_))) if known.next_trusted => Action::Promote,
        (Err(why), _) => Action::Issue(format!("the current one {why}")),
        (Ok(_), Some(Err(_))) => Action::Stage,
        (Ok(_), Some(Ok(_))) if known.next_trusted && settled => Action::Promote,
        (Ok(_), Some(Ok(_))) => Action::Keep,
        (Ok(_), None) if known.previous && settled && known.rolled_out => Action::Retire,
        (Ok(_), None) if known.previous => Action::Keep,
        (Ok(validity), None) if now >= validity.renewal() => Action::Stage,
        (Ok(_), None) => Action::Keep,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 86_400;

    fn day(day: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + day * DAY).expect("a time")
    }

    /// Good from day 0 to day 90.
    fn good() -> Result<Validity, String> {
        Ok(Validity {
            from: day(0),
            until: day(90),
        })
    }

    fn known() -> Known {
        Known {
            current: good(),
            next: None,
            next_trusted: false,
            previous: false,
            since: day(0),
            rolled_out: true,
        }
    }

    #[test]
    fn webhook_certificate_each_state_and_time_decides_action() {
        let bad = || Err::<Validity, String>("expired".into());
        let issue = Action::Issue("the current one expired".into());
        let staged = |trusted: bool| Known {
            next: Some(good()),
            next_trusted: trusted,
            since: day(61),
            ..known()
        };
        let promoted = |rolled_out: bool| Known {
            previous: true,
            since: day(61),
            rolled_out,
            ..known()
        };
        let minutes = |m: i64| Timestamp::from_second(day(61).as_second() + m * 60).expect("a time");
        for (what, known, now, expected) in [
            ("fresh", known(), day(1), Action::Keep),
            (
                "a moment before its renewal",
                known(),
                Timestamp::from_second(day(60).as_second() - 1).expect("a time"),
                Action::Keep,
            ),
            ("its renewal", known(), day(60), Action::Stage),
            ("long after its renewal", known(), day(89), Action::Stage),
            ("expired", Known { current: bad(), ..known() }, day(91), issue.clone()),
            (
                "expired, the next not trusted",
                Known {
                    current: bad(),
                    ..staged(false)
                },
                day(91),
                issue.clone(),
            ),
            (
                "expired, the next trusted",
                Known {
                    current: bad(),
                    ..staged(true)
                },
                minutes(0),
                Action::Promote,
            ),
            (
                "expired, the next no good either",
                Known {
                    current: bad(),
                    next: Some(bad()),
                    next_trusted: true,
                    ..known()
                },
                day(91),
                issue,
            ),
            ("staged just now", staged(true), minutes(0), Action::Keep),
            ("staged, trusted, settled", staged(true), minutes(10), Action::Promote),
            ("staged, not trusted yet", staged(false), day(80), Action::Keep),
            (
                "staged, and no good",
                Known {
                    next: Some(bad()),
                    ..staged(true)
                },
                minutes(10),
                Action::Stage,
            ),
            ("promoted just now", promoted(true), minutes(9), Action::Keep),
            ("promoted, pods still old", promoted(false), day(70), Action::Keep),
            ("promoted and rolled out", promoted(true), minutes(10), Action::Retire),
            // A clock that went back is no reason to hurry.
            ("the clock went back", staged(true), day(60), Action::Keep),
        ] {
            assert_eq!(decide(Some(&known), now), expected, "{what}");
        }
        assert_eq!(decide(None, day(0)), Action::Issue("there is none yet".into()));
    }
}
