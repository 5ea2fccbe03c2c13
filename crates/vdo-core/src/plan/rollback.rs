// SPDX-License-Identifier: Apache-2.0
//! Decides when a change of a driver has failed, and which revision is restored.

use super::{Failed, Outcome, Revision, Rollback};
use jiff::{SignedDuration, Timestamp};
use std::time::Duration;
use vdo_api::api::Reason;

/// How long a driver must have been healthy before a change counts as good for ever: a pod that crashes sooner makes it fail.
const PROOF: Duration = Duration::from_secs(60);

/// What is seen of a driver while a change is under way.
#[derive(Debug, Clone, Copy)]
pub struct Sight<'a> {
    /// What keeps it from being as it should be, as a sentence; `None` when nothing does.
    pub lacks: Option<&'a str>,
    /// The API server is against what is left to be written: the reason, and what it said.
    pub refused: Option<(Reason, &'a str)>,
    /// When the newest of its ready pods was created.
    pub progress: Option<Timestamp>,
    /// The time.
    pub now: Timestamp,
    /// How long a change may take without progress.
    pub deadline: Duration,
}

/// When the change that is under way is given up unless the driver is healthy by then; `None` where there is no way back.
#[must_use]
pub fn given_up_at(revisions: &[Revision], progress: Option<Timestamp>, deadline: Duration) -> Option<Timestamp> {
    let newest = revisions.last()?;
    if newest.outcome != Outcome::Progressing || newest.about.rollback.is_some() || !newest.is_known() {
        return None;
    }
    way_back(revisions)?;
    let moved = progress.map_or(newest.time, |progress| progress.max(newest.time));
    moved.checked_add(SignedDuration::try_from(deadline).ok()?).ok()
}

/// Why the change that is under way is given up; `None` while it is not, also where there is no way back.
#[must_use]
pub fn verdict(revisions: &[Revision], sight: &Sight<'_>) -> Option<(Reason, String)> {
    let ends = given_up_at(revisions, sight.progress, sight.deadline)?;
    if let Some((_, said)) = sight.refused {
        return Some((Reason::ChangeRefused, said.to_owned()));
    }
    let lacks = sight.lacks.filter(|_| sight.now >= ends)?;
    let deadline = SignedDuration::try_from(sight.deadline).unwrap_or_default();
    let message = format!("not healthy after {deadline:#} without progress: {lacks}");
    Some((Reason::DeadlineExceeded, message))
}

/// Whether a change that looked good has to be looked at again, because its driver fell ill at once.
#[must_use]
pub fn reopens(revisions: &[Revision], deadline: Duration, now: Timestamp) -> bool {
    let Some(newest) = revisions
        .last()
        .filter(|newest| newest.outcome == Outcome::Deployed && newest.about.rollback.is_none())
    else {
        return false;
    };
    let young = newest.deployed.is_some_and(|since| passed(since, now) < PROOF.min(deadline));
    young && way_back(revisions).is_some()
}

/// The revision that the newest one may be rolled back to: the last good one before it.
#[must_use]
pub fn way_back(revisions: &[Revision]) -> Option<&Revision> {
    let (_, earlier) = revisions.split_last()?;
    let at = earlier.iter().rposition(Revision::is_good)?;
    let back = &earlier[at];
    // Nothing since may be such a step, either.
    let barred = |revision: &Revision| revision.about.irreversible && revision.about.version != back.about.version;
    (!revisions[at..].iter().any(barred)).then_some(back)
}

/// What a driver is brought back to instead of what was rendered: the revision with the objects, and what is reported of it. `basis` is that
/// of now; where it is not known, nothing is tried again.
#[must_use]
pub fn brought_back<'a>(revisions: &'a [Revision], basis: Option<&str>) -> Option<(&'a Revision, Rollback)> {
    let newest = revisions.last()?;
    let same = |failed: &Failed| basis.is_none_or(|basis| basis == failed.failure.basis);
    match (&newest.about.rollback, &newest.failure) {
        (Some(rollback), _) => rollback.from.as_ref().is_some_and(same).then(|| (newest, rollback.clone())),
        (None, Some(failure)) => {
            let from = Failed {
                revision: newest.number,
                version: newest.about.version.clone(),
                failure: failure.clone(),
            };
            let back = way_back(revisions).filter(|_| same(&from))?;
            Some((
                back,
                Rollback {
                    to: back.number,
                    from: Some(from),
                },
            ))
        }
        (None, None) => None,
    }
}

pub(super) fn passed(since: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(now.duration_since(since)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{About, PackedObjects, RevisionFailure};
    use Outcome::{Deployed, Progressing, Superseded};

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("a time")
    }

    /// Applied at its number in hundreds of seconds, deployed ten seconds later.
    fn revision(number: u64, outcome: Outcome, deployed: bool) -> Revision {
        let time = i64::try_from(number).expect("small") * 100;
        Revision {
            outcome,
            time: at(time),
            deployed: deployed.then(|| at(time + 10)),
            ..Revision::of(number, PackedObjects::of([].iter()))
        }
    }

    fn failed(number: u64, basis: &str) -> Revision {
        Revision {
            failure: Some(RevisionFailure {
                reason: "DeadlineExceeded".into(),
                message: "no".into(),
                basis: basis.into(),
            }),
            ..revision(number, Outcome::Failed, false)
        }
    }

    fn irreversible(revision: Revision) -> Revision {
        Revision {
            about: About {
                irreversible: true,
                version: format!("{}", revision.number),
                ..revision.about.clone()
            },
            ..revision
        }
    }

    fn rolled_back(revision: Revision) -> Revision {
        Revision {
            about: About {
                rollback: Some(Rollback { to: 1, from: None }),
                ..About::default()
            },
            ..revision
        }
    }

    #[test]
    fn change_is_given_up_only_with_a_way_back_and_after_the_deadline_or_a_refusal() {
        let good = || revision(1, Deployed, true);
        let under_way = || revision(2, Progressing, false);
        let ill = Some("no pod is ready");
        for (revisions, lacks, refused, progress, now, expected) in [
            (vec![under_way()], ill, true, None, 900, None),
            (vec![good(), under_way()], ill, false, None, 229, None),
            (vec![good(), under_way()], ill, false, None, 230, Some(Reason::DeadlineExceeded)),
            (vec![good(), under_way()], None, false, None, 900, None),
            // another pod became ready
            (vec![good(), under_way()], ill, false, Some(220), 249, None),
            (
                vec![good(), under_way()],
                ill,
                false,
                Some(220),
                250,
                Some(Reason::DeadlineExceeded),
            ),
            (vec![good(), under_way()], ill, true, None, 201, Some(Reason::ChangeRefused)),
            // the clock was set back
            (vec![good(), under_way()], ill, false, None, 100, None),
            (vec![good(), irreversible(under_way())], ill, true, None, 900, None),
            (
                vec![irreversible(good()), under_way()],
                ill,
                true,
                None,
                900,
                Some(Reason::ChangeRefused),
            ),
            // what was skipped was irreversible
            (
                vec![
                    good(),
                    irreversible(revision(2, Superseded, false)),
                    revision(3, Progressing, false),
                ],
                ill,
                true,
                None,
                900,
                None,
            ),
            (vec![good(), revision(2, Deployed, true)], ill, true, None, 900, None),
            (vec![good(), failed(2, "b")], ill, true, None, 900, None),
            (vec![good(), rolled_back(under_way())], ill, true, None, 900, None),
            (vec![good(), Revision::of(2, PackedObjects::default())], ill, true, None, 900, None),
        ] {
            let sight = Sight {
                lacks,
                refused: refused.then_some((Reason::Forbidden, "no")),
                progress: progress.map(at),
                now: at(now),
                deadline: Duration::from_secs(30),
            };
            let reported = verdict(&revisions, &sight).map(|(reason, _)| reason);
            assert_eq!(reported, expected, "{revisions:?} {sight:?}");
        }
    }

    #[test]
    fn good_change_is_looked_at_again_for_a_minute_at_most() {
        let both = [revision(1, Deployed, true), revision(2, Deployed, true)];
        let long = Duration::from_secs(600);
        for (revisions, deadline, now, expected) in [
            (&both[..], long, 269, true),
            (&both, long, 270, false),
            (&both, Duration::from_secs(5), 214, true),
            (&both, Duration::from_secs(5), 215, false),
            (&both[1..], long, 220, false),
            (&[revision(1, Deployed, true), revision(2, Progressing, true)], long, 220, false),
            (
                &[revision(1, Deployed, true), rolled_back(revision(2, Deployed, true))],
                long,
                220,
                false,
            ),
        ] {
            assert_eq!(reopens(revisions, deadline, at(now)), expected, "{now}");
        }
    }

    #[test]
    fn failed_change_is_not_tried_again_on_the_same_basis() {
        let back = |revisions: &[Revision], basis: Option<&str>| {
            brought_back(revisions, basis)
                .map(|(revision, rollback)| (revision.number, rollback.to, rollback.from.map(|from| from.revision)))
        };
        let given_up = [revision(1, Deployed, true), failed(2, "b")];
        assert_eq!(back(&given_up, Some("b")), Some((1, 1, Some(2))));
        assert_eq!(back(&given_up, None), Some((1, 1, Some(2))), "nothing is known: nothing is tried");
        assert_eq!(back(&given_up, Some("c")), None);
        let (_, rollback) = brought_back(&given_up, Some("b")).expect("a way back");
        let mut after = given_up.to_vec();
        after.push(Revision {
            about: About {
                rollback: Some(rollback),
                ..About::default()
            },
            ..revision(3, Progressing, false)
        });
        assert_eq!(back(&after, Some("b")), Some((3, 1, Some(2))));
        assert_eq!(back(&after, Some("c")), None);
        after[2].about.rollback = Some(Rollback { to: 1, from: None });
        assert_eq!(back(&after, Some("b")), None, "a person's pin is not a verdict");
        assert_eq!(
            back(&[revision(1, Deployed, true), revision(2, Progressing, false)], Some("b")),
            None
        );
        assert_eq!(back(&[], Some("b")), None);
    }
}
