// SPDX-License-Identifier: Apache-2.0
//! MatrixFresh and `status.matrix`: whether the matrix is that of the configured source, signed, and not expired (pure).

use crate::reconcile::matrix_fallback::Basis;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use vdo_api::api::{ConditionType, MatrixStatus, Reason, VDOConfig};
use vdo_core::matrix::{self, Index};
use vdo_core::status::Precondition;
use vdo_source::fetch::{ChartRepository, LoadedIndex, MatrixSource};

/// Whether the matrix is the one that is wanted, and not past its date. `unheard` names another source that is not followed.
pub(in crate::reconcile) fn matrix(basis: &Basis, source: &str, unheard: Option<String>, now: Timestamp) -> Precondition {
    let mut found = judged(basis, source, now);
    if let Some(unheard) = unheard {
        found.message = format!("{}; {unheard}", found.message);
    }
    found
}

/// The matrix for the status.
pub(in crate::reconcile) fn matrix_status(loaded: &LoadedIndex, repository: &ChartRepository, config: &VDOConfig) -> MatrixStatus {
    MatrixStatus {
        source: loaded.source.clone(),
        version: i64::try_from(loaded.index.version).unwrap_or(i64::MAX),
        digest: loaded.digest.to_string(),
        signer: loaded.signer.as_ref().map(ToString::to_string),
        // Keys that cannot be read now are those of before: nothing new is used without them.
        keys: repository.trusted().unwrap_or_else(|| keys_of(config)),
        generated: loaded.index.generated.map(Time),
        expires: loaded.index.expires.map(Time),
        knows: matrix::knowledge(&loaded.index),
    }
}

/// The keys that were trusted by the word of the status.
fn keys_of(config: &VDOConfig) -> Vec<String> {
    let matrix = config.status.as_ref().and_then(|status| status.matrix.as_ref());
    matrix.map(|matrix| matrix.keys.clone()).unwrap_or_default()
}

fn judged(basis: &Basis, source: &str, now: Timestamp) -> Precondition {
    let (kind, index) = (ConditionType::MatrixFresh, &basis.loaded.index);
    if let Some(problem) = &basis.loaded.problem {
        let why = &problem.message;
        let message = match basis.narrowed {
            true => format!(
                "{source} cannot be used, so no version is selected; the operator keeps the installed drivers with their charts, which are \
                 built into the operator: {why}"
            ),
            false if basis.loaded.source == source => {
                format!("{source} cannot be used, so its previous version {} is used: {why}", index.version)
            }
            false => format!(
                "{source} cannot be used, so the previous version {} of {} is used: {why}",
                index.version, basis.loaded.source
            ),
        };
        return Precondition::fails(kind, problem.reason, message);
    }
    if let Some(generated) = index.generated.filter(|_| index.is_ahead(now)) {
        return Precondition::fails(
            kind,
            Reason::MatrixExpired,
            format!(
                "the matrix ({source}, version {}) was generated at {generated}, but the clock of the machine that checks the matrix shows {now}: one of the two times is wrong, \
                 so it is not known whether the matrix has expired; the installed versions stay, and nothing is upgraded",
                index.version
            ),
        );
    }
    match index.expires {
        Some(expires) if index.is_stale(now) => Precondition::fails(
            kind,
            Reason::MatrixExpired,
            format!(
                "the matrix ({source}, version {}) expired at {expires}; the installed versions stay, and newer versions are not \
                 known: use a newer matrix, or update the operator",
                index.version
            ),
        ),
        Some(expires) => Precondition::holds(
            kind,
            format!(
                "the matrix ({source}, version {}) is valid until {expires}{}{}",
                index.version,
                signed(basis, source),
                age(index, now)
            ),
        ),
        None => Precondition::holds(
            kind,
            format!(
                "the matrix ({source}, version {}) has no expiry date{}{}",
                index.version,
                signed(basis, source),
                age(index, now)
            ),
        ),
    }
}

/// Which Kubernetes it knows, and that it is old when it is. It says days and no ages, so that the condition does not change daily.
fn age(index: &Index, now: Timestamp) -> String {
    let knows = matrix::knowledge(index).map(|knows| format!("; the matrix covers {knows}"));
    let old = matrix::is_old(index.generated, now).map(|old| format!("; {old}"));
    [knows, old].into_iter().flatten().collect()
}

/// Who has signed it. What is in the binary needs no signature.
fn signed(basis: &Basis, source: &str) -> String {
    match &basis.loaded.signer {
        Some(key) => format!(" and is signed by the key {key}"),
        None if source == MatrixSource::Embedded.to_string() => String::new(),
        None => " and is not checked for a signature, because no keys are trusted".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use vdo_api::types::Digest;
    use vdo_source::fetch::{LoadedIndex, Problem, embedded};

    #[test]
    fn precondition_matrix_expired_or_invalid_fails() {
        let at = |text: &str| text.parse::<Timestamp>().expect("a time");
        let loaded = |expires: Option<&str>, problem: Option<Reason>| {
            let mut index = Index::parse(embedded::index()).expect("an index");
            index.expires = expires.map(at);
            LoadedIndex {
                source: "embedded".into(),
                signed: Arc::new(vdo_source::fetch::Signed {
                    index: Vec::new(),
                    signature: None,
                    lock: None,
                }),
                digest: Digest::of(b""),
                index: index.into(),
                signer: None,
                lock: None,
                problem: problem.map(|reason| Problem {
                    reason,
                    message: "line 7".into(),
                }),
            }
        };
        let end = Some("2027-01-01T00:00:00Z");
        let (good, bad) = ("2026-12-31T00:00:00Z", "2027-01-02T00:00:00Z");
        for (loaded, narrowed, now, holds, reason) in [
            (loaded(end, None), false, good, true, None),
            (loaded(end, None), false, bad, false, Some(Reason::MatrixExpired)),
            (loaded(None, None), false, "2099-01-01T00:00:00Z", true, None),
            // The clock was set back, so that an old index seems to be good.
            (loaded(end, None), false, "2020-01-01T00:00:00Z", false, Some(Reason::MatrixExpired)),
            (
                loaded(end, Some(Reason::MatrixInvalid)),
                false,
                bad,
                false,
                Some(Reason::MatrixInvalid),
            ),
            (
                loaded(end, Some(Reason::MatrixInvalid)),
                true,
                good,
                false,
                Some(Reason::MatrixInvalid),
            ),
            (
                loaded(end, Some(Reason::MatrixNotTrusted)),
                false,
                good,
                false,
                Some(Reason::MatrixNotTrusted),
            ),
            (
                loaded(end, Some(Reason::MatrixRolledBack)),
                false,
                good,
                false,
                Some(Reason::MatrixRolledBack),
            ),
            (
                loaded(end, Some(Reason::MatrixUnreachable)),
                false,
                good,
                false,
                Some(Reason::MatrixUnreachable),
            ),
            (
                loaded(end, Some(Reason::MatrixIncomplete)),
                false,
                good,
                false,
                Some(Reason::MatrixIncomplete),
            ),
        ] {
            let basis = Basis { loaded, narrowed };
            let found = matrix(&basis, "embedded", None, at(now));
            assert_eq!(found.message.contains("no version is selected"), narrowed, "{}", found.message);
            assert_eq!(found.holds, Some(holds), "{}", found.message);
            assert!(reason.is_none_or(|reason| reason == found.reason), "{}", found.reason);
            let old = basis
                .loaded
                .index
                .generated
                .is_some_and(|day| at(now).duration_since(day).as_hours() > 24 * 182);
            assert_eq!(found.message.contains("older than six months"), old && holds, "{}", found.message);
            assert_eq!(
                found.message.contains("covers Kubernetes up to 1.37, released on 2026-08-26"),
                holds,
                "{}",
                found.message
            );
        }
    }
}
