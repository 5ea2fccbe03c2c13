// SPDX-License-Identifier: Apache-2.0
//! The type `Revision`: a version of a driver that was applied, with objects, cause and outcome; adds revisions and trims old ones.

use super::PackedObjects;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// A version and the objects of a driver that the operator applied at a certain time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Revision {
    /// The number of the revision. Each revision has the number of the revision before it plus one.
    pub number: u64,
    /// What it is.
    #[serde(flatten)]
    pub about: About,
    /// Why the operator applied the revision.
    pub cause: String,
    /// The time directly before the first write of the revision.
    pub time: Timestamp,
    /// The result of the revision.
    pub outcome: Outcome,
    /// The time at which the driver was healthy with the revision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployed: Option<Timestamp>,
    /// Why the revision failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<RevisionFailure>,
    /// The objects, but for the content of Secrets. Kept beside the rest, under its digest.
    #[serde(skip)]
    pub objects: PackedObjects,
}

/// What is known of the objects of a driver beside themselves.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct About {
    /// The version of the driver.
    pub version: String,
    /// The digest of the chart.
    pub chart: String,
    /// The digest of the values that the chart was rendered with.
    pub values: String,
    /// The digest of the patches that were applied to the objects; absent if there are no patches.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub patches: String,
    /// The salted digest of the driver's configuration.
    pub configuration: String,
    /// The version of the compatibility matrix.
    pub matrix: i64,
    /// The generation of the VDOConfig.
    pub generation: i64,
    /// The digest of all objects of the revision.
    #[serde(default)]
    pub target: String,
    /// The nodes on which the driver did not work before this revision. The revision does not fail because of these nodes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ill: Vec<String>,
    /// The upgrade to this version is never rolled back automatically.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub irreversible: bool,
    /// The rollback, if the revision is a rollback.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollback: Option<Rollback>,
}

/// Which revision is restored, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Rollback {
    /// The number of the restored revision.
    pub to: u64,
    /// The revision that failed; absent if a person requested the rollback.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Failed>,
}

/// A revision that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Failed {
    /// The number of the failed revision.
    pub revision: u64,
    /// The version of the driver.
    pub version: String,
    /// Why it failed.
    #[serde(flatten)]
    pub failure: RevisionFailure,
}

/// The result of a revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::Display, schemars::JsonSchema)]
pub enum Outcome {
    /// The driver is not healthy with the revision yet.
    Progressing,
    /// The driver is, or was, healthy with the revision.
    Deployed,
    /// The revision failed.
    Failed,
    /// A newer revision replaced the revision before the driver was healthy.
    Superseded,
}

/// Why a revision failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RevisionFailure {
    /// The reason, as in a condition.
    pub reason: String,
    /// The message.
    pub message: String,
    /// Identifies the specification, matrix and platform. The operator does not retry the revision until one of them changes.
    pub basis: String,
}

impl Revision {
    /// A first one that is under way.
    #[must_use]
    pub fn of(number: u64, objects: PackedObjects) -> Self {
        Self {
            number,
            about: About::default(),
            cause: String::new(),
            time: Timestamp::UNIX_EPOCH,
            outcome: Outcome::Progressing,
            deployed: None,
            failure: None,
            objects,
        }
    }

    /// Whether its objects are known.
    #[must_use]
    pub fn is_known(&self) -> bool {
        !self.objects.bytes().is_empty()
    }

    /// Whether the driver was healthy with it, and it was not given up later.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.deployed.is_some() && self.outcome != Outcome::Failed
    }
}

/// Adds a revision. What was under way is superseded by it.
pub(super) fn push(revisions: &mut Vec<Revision>, about: About, objects: PackedObjects, now: Timestamp) {
    let cause = cause(revisions.last(), &about);
    let number = revisions.last().map_or(1, |last| last.number.saturating_add(1));
    for earlier in revisions.iter_mut().filter(|earlier| earlier.outcome == Outcome::Progressing) {
        earlier.outcome = Outcome::Superseded;
    }
    revisions.push(Revision {
        about,
        cause,
        time: now,
        ..Revision::of(number, objects)
    });
}

/// Why a state is applied, from what differs.
fn cause(before: Option<&Revision>, about: &About) -> String {
    if let Some(Rollback { to, from }) = &about.rollback {
        return match from {
            Some(from) => format!("rollback to revision {to}, because revision {} failed", from.revision),
            None => format!("rollback to revision {to}, as requested"),
        };
    }
    let Some(before) = before.map(|before| &before.about) else {
        return "installation".into();
    };
    if before.version != about.version {
        return format!("{} to {}", before.version, about.version);
    }
    let differs = [
        ("chart", before.chart != about.chart),
        ("values", before.values != about.values),
        ("patches", before.patches != about.patches),
        ("configuration", before.configuration != about.configuration),
    ];
    let named: Vec<&str> = differs.iter().filter(|(_, differs)| *differs).map(|(name, _)| *name).collect();
    if named.is_empty() {
        return "objects changed".into();
    }
    format!("{} changed", named.join(" and "))
}

/// Leaves out the oldest revisions: what stays are the newest one, the last good one and so many others.
pub(super) fn trim(revisions: &mut Vec<Revision>, limit: usize) {
    let newest = revisions.last().map(|newest| newest.number);
    let good = revisions.iter().rev().find(|revision| revision.is_good()).map(|good| good.number);
    let keeps = |revision: &Revision| Some(revision.number) == newest || Some(revision.number) == good;
    let mut surplus = revisions.iter().filter(|revision| !keeps(revision)).count().saturating_sub(limit);
    revisions.retain(|revision| {
        let goes = surplus > 0 && !keeps(revision);
        surplus -= usize::from(goes);
        !goes
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn revision(number: u64, outcome: Outcome, deployed: bool) -> Revision {
        Revision {
            outcome,
            deployed: deployed.then_some(Timestamp::UNIX_EPOCH),
            ..Revision::of(number, PackedObjects::default())
        }
    }

    #[test]
    fn revisions_trimmed_keep_newest_last_good_and_the_limit() {
        use Outcome::{Deployed, Failed, Progressing, Superseded};
        let all = || {
            vec![
                revision(1, Deployed, true),
                revision(2, Deployed, true),
                revision(3, Failed, true),
                revision(4, Superseded, false),
                revision(5, Progressing, false),
            ]
        };
        for (limit, left) in [
            (0, &[2, 5][..]),
            (1, &[2, 4, 5]),
            (2, &[2, 3, 4, 5]),
            (3, &[1, 2, 3, 4, 5]),
            (9, &[1, 2, 3, 4, 5]),
        ] {
            let mut revisions = all();
            trim(&mut revisions, limit);
            let numbers: Vec<u64> = revisions.iter().map(|revision| revision.number).collect();
            assert_eq!(numbers, left, "{limit}");
        }
    }

    #[test]
    fn revision_pushed_names_its_cause_and_supersedes_what_was_under_way() {
        let about = |version: &str, values: &str, configuration: &str| About {
            version: version.into(),
            values: values.into(),
            configuration: configuration.into(),
            ..About::default()
        };
        let failed = Failed {
            revision: 5,
            version: "2".into(),
            failure: RevisionFailure {
                reason: "DeadlineExceeded".into(),
                message: String::new(),
                basis: String::new(),
            },
        };
        let mut revisions = Vec::new();
        for about in [
            about("1", "a", "a"),
            about("1", "b", "a"),
            about("1", "c", "b"),
            about("1", "c", "b"),
            about("2", "c", "b"),
            About {
                rollback: Some(Rollback { to: 3, from: Some(failed) }),
                ..about("1", "c", "b")
            },
            About {
                rollback: Some(Rollback { to: 1, from: None }),
                ..about("1", "a", "a")
            },
        ] {
            let now = Timestamp::from_second(revisions.len() as i64).expect("a time");
            push(&mut revisions, about, PackedObjects::default(), now);
        }
        let times: Vec<i64> = revisions.iter().map(|revision| revision.time.as_second()).collect();
        assert_eq!(times, [0, 1, 2, 3, 4, 5, 6]);
        let reported: Vec<String> = revisions
            .iter()
            .map(|r| format!("{} {}: {}", r.number, r.outcome, r.cause))
            .collect();
        assert_eq!(
            reported,
            [
                "1 Superseded: installation",
                "2 Superseded: values changed",
                "3 Superseded: values and configuration changed",
                "4 Superseded: objects changed",
                "5 Superseded: 1 to 2",
                "6 Superseded: rollback to revision 3, because revision 5 failed",
                "7 Progressing: rollback to revision 1, as requested",
            ]
        );
    }
}
