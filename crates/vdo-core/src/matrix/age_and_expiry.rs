// SPDX-License-Identifier: Apache-2.0
//! Decides whether an index is old, expired or dated in the future, and restricts the update policy of an expired index (pure).

use super::index::Index;
use super::resolve::UpdatePolicy;
use jiff::{SignedDuration, Timestamp};

/// Days after which an index says that it is old: half a year, in which Kubernetes has one or two new minors.
const OLD: SignedDuration = SignedDuration::from_hours(24 * 182);

/// That an index is older than half a year, and what follows, in a sentence without an end; `None` when it is not, or does not say.
#[must_use]
pub fn is_old(generated: Option<Timestamp>, now: Timestamp) -> Option<String> {
    let generated = generated?;
    let age = now.duration_since(generated);
    (age > OLD).then(|| {
        format!(
            "it is older than six months (generated on {}), so it does not list later releases",
            generated.strftime("%Y-%m-%d")
        )
    })
}

impl Index {
    /// Whether the index is past its expiry, or that cannot be judged: still good for choosing a first version, not for automatic upgrades.
    #[must_use]
    pub fn is_stale(&self, now: Timestamp) -> bool {
        self.expires.is_some_and(|expires| expires < now) || self.is_ahead(now)
    }

    /// Whether it was generated more than a day from now: then the clock is wrong, and an index that is past its expiry seems to be good.
    #[must_use]
    pub fn is_ahead(&self, now: Timestamp) -> bool {
        let day = SignedDuration::from_hours(24);
        self.generated.is_some_and(|generated| generated.duration_since(now) > day)
    }

    /// How far an index may change what is installed: one that is past its date changes nothing, because a newer one may say otherwise.
    #[must_use]
    pub fn policy(&self, asked: UpdatePolicy, now: Timestamp) -> UpdatePolicy {
        match asked {
            UpdatePolicy::Compatible | UpdatePolicy::Latest if self.is_stale(now) => UpdatePolicy::Frozen,
            _ => asked,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn released_index_is_old_after_half_a_year() {
        let at = |text: &str| text.parse::<Timestamp>().expect("a time");
        let now = at("2026-11-25T00:00:00Z");
        for (generated, old) in [
            (None, false),
            (Some("2026-11-25T00:00:00Z"), false),
            (Some("2026-05-28T00:00:00Z"), false),
            (Some("2026-05-20T00:00:00Z"), true),
            (Some("2027-11-25T00:00:00Z"), false),
        ] {
            assert_eq!(is_old(generated.map(at), now).is_some(), old, "{generated:?}");
        }
    }
}
