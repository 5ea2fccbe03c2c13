// SPDX-License-Identifier: Apache-2.0
//! The states that were applied of a driver, one after the other, as they are kept in the inventory.

use super::PackedObjects;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// One state that was applied of a driver.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Revision {
    /// It grows by one with each.
    pub number: u64,
    /// What it is.
    #[serde(flatten)]
    pub about: About,
    /// Why it was applied.
    pub cause: String,
    /// When its first write was about to be made.
    pub time: Timestamp,
    /// What became of it.
    pub outcome: Outcome,
    /// When the driver was healthy with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployed: Option<Timestamp>,
    /// Why it is given up.
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
    /// The digest of the patches of the specification that are in the objects; absent without any.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub patches: String,
    /// The digest of the driver's configuration, salted as that of Secrets is.
    pub configuration: String,
    /// The version of the compatibility matrix.
    pub matrix: i64,
    /// The generation of the VDOConfig.
    pub generation: i64,
    /// The digest of all objects, see [`super::target`].
    #[serde(default)]
    pub target: String,
    /// The nodes on which the driver did not work before: they are not a reason to give this one up.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ill: Vec<String>,
    /// There is no way back to the version before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub irreversible: bool,
    /// It brings back an earlier one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollback: Option<Rollback>,
}

/// Which revision is brought back, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Rollback {
    /// The revision that is brought back.
    pub to: u64,
    /// The one that failed; absent where a person asks for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Failed>,
}

/// A change that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Failed {
    /// The revision.
    pub revision: u64,
    /// The version of the driver.
    pub version: String,
    /// Why it failed.
    #[serde(flatten)]
    pub failure: RevisionFailure,
}

/// What became of a revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::Display, schemars::JsonSchema)]
pub enum Outcome {
    /// The driver is not healthy with it yet.
    Progressing,
    /// The driver is, or was, healthy with it.
    Deployed,
    /// It was given up.
    Failed,
    /// Another one came before the driver was healthy with it.
    Superseded,
}

/// Why a revision is given up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RevisionFailure {
    /// As a reason.
    pub reason: String,
    /// As a sentence.
    pub message: String,
    /// Under which specification, matrix and platform: it is not tried again under the same.
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
            None => format!("rollback to revision {to}, as asked for"),
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
                "7 Progressing: rollback to revision 1, as asked for",
            ]
        );
    }
}
