// SPDX-License-Identifier: Apache-2.0
//! Decides whether and when a login at a vCenter may be tried, so that a wrong password never locks an account (pure).
//!
//! An attempt is written into the status before it is made: a restart in the middle of the attempt finds it there, and every
//! connection with the same account at the same vCenter counts it.

use super::VcenterFacts;
use super::session_error::of_refused_login;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use std::borrow::Borrow;
use vdo_api::api::{ConditionType, Conditions, CredentialStatus, Reason, VsphereCloudConfig};
use vdo_api::facts::StoredCredentials;

/// How long the same credentials are not sent again that a vCenter refused although the password may be right, by the number of attempts: the
/// account is locked, its password has expired, or it has no permission. No password is judged then, so nothing counts towards a lock.
const REFUSED: [SignedDuration; 3] = [
    SignedDuration::from_mins(15),
    SignedDuration::from_hours(1),
    SignedDuration::from_hours(6),
];

/// How long after an attempt of which the outcome is not known, by the number of attempts: longer than the three minutes in which a vCenter
/// counts, and growing, because others count for a day.
const UNANSWERED: [SignedDuration; 3] = [
    SignedDuration::from_mins(5),
    SignedDuration::from_hours(1),
    SignedDuration::from_hours(12),
];

/// What one login is: a vCenter by its identity, an account, and a version of its password.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Key {
    /// `about.instanceUuid`.
    pub vcenter: String,
    /// The Secret, as namespace/name.
    pub secret: String,
    /// The user name in it.
    pub user: String,
    /// Its resource version.
    pub version: String,
}

impl Key {
    /// What these credentials are at this vCenter.
    #[must_use]
    pub fn of(found: &StoredCredentials, facts: &VcenterFacts) -> Self {
        Self {
            vcenter: facts.instance_uuid.clone(),
            secret: found.secret.clone(),
            user: found.credentials.user.clone(),
            version: found.version.clone(),
        }
    }

    /// What other connections have written down about the same login.
    #[must_use]
    pub fn records(&self, connections: &[impl Borrow<VsphereCloudConfig>]) -> Vec<CredentialStatus> {
        let statuses = connections.iter().filter_map(|connection| connection.borrow().status.as_ref());
        let same = statuses.filter(|status| status.about.as_ref().is_some_and(|about| about.instance_uuid == self.vcenter));
        same.filter_map(|status| status.credential.clone())
            .filter(|c| (&c.secret, &c.user, &c.version) == (&self.secret, &self.user, &self.version))
            .collect()
    }

    /// Nothing has been tried yet.
    #[must_use]
    pub fn untried(&self) -> CredentialStatus {
        CredentialStatus {
            secret: self.secret.clone(),
            user: self.user.clone(),
            version: self.version.clone(),
            ..CredentialStatus::default()
        }
    }
}

/// What may be done.
#[derive(Debug, PartialEq)]
pub enum Decision {
    /// Log in; this version has worked before.
    Proceed,
    /// Write this down, then log in.
    RecordFirst(CredentialStatus),
    /// Not yet; this is why.
    Wait(CredentialStatus),
}

/// Decides from everything that is known of this login.
#[must_use]
pub fn decide(key: &Key, records: &[CredentialStatus], now: Timestamp) -> Decision {
    let tried = tried(records);
    match tried {
        Some(record) if !next(record).is_due(now) => Decision::Wait(record.clone()),
        None if records.iter().any(|r| r.verified.as_ref() == Some(&key.version)) => Decision::Proceed,
        _ => Decision::RecordFirst(begun(key, tried, now)),
    }
}

/// The record that counts: that of the last attempt, if there was one.
#[must_use]
pub fn tried(records: &[CredentialStatus]) -> Option<&CredentialStatus> {
    let tried = records.iter().filter(|r| r.attempts > 0);
    tried.max_by_key(|r| (r.attempts, r.last_tried.clone()))
}

/// The record of a login that is about to be made.
#[must_use]
pub fn begun(key: &Key, tried: Option<&CredentialStatus>, now: Timestamp) -> CredentialStatus {
    CredentialStatus {
        attempts: tried.map_or(0, |record| record.attempts).saturating_add(1),
        last_tried: Some(Time(Timestamp::from_second(now.as_second()).unwrap_or(now))),
        ..key.untried()
    }
}

/// When the same credentials may be sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    /// Not before the Secret changes: the password is wrong, and every policy counts it.
    Changed,
    /// From then on.
    At(Timestamp),
}

impl Next {
    fn is_due(self, now: Timestamp) -> bool {
        matches!(self, Self::At(at) if at <= now)
    }
}

fn next(record: &CredentialStatus) -> Next {
    if record.refused.as_deref() == Some(Reason::InvalidCredentials.as_str()) {
        return Next::Changed;
    }
    let pauses = if record.refused.is_some() { REFUSED } else { UNANSWERED };
    let n = usize::try_from(record.attempts).unwrap_or(usize::MAX).clamp(1, pauses.len());
    let last = record.last_tried.as_ref().map(|tried| tried.0);
    // Without a time it was never tried, and a time past all times is not reached.
    let at = last.map_or(Some(Timestamp::MIN), |last| last.checked_add(pauses[n - 1]).ok());
    at.map_or(Next::Changed, Next::At)
}

/// What came of logins at the service for tags, which takes the same password and counts on its own: whether it refused this version of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TagRefusals {
    refused: bool,
}

impl TagRefusals {
    /// As these connections say it in their conditions.
    #[must_use]
    pub fn recorded(key: &Key, connections: &[impl Borrow<VsphereCloudConfig>]) -> Self {
        let refused = connections
            .iter()
            .filter_map(|connection| connection.borrow().status.as_ref())
            .any(|status| {
                let credential = status.credential.as_ref();
                // The version whose login succeeded is the one that the conditions speak of; the newest may not have been tried yet.
                let same = credential
                    .is_some_and(|c| (&c.secret, &c.user, c.verified.as_ref()) == (&key.secret, &key.user, Some(&key.version)))
                    && status.about.as_ref().is_some_and(|about| about.instance_uuid == key.vcenter);
                let topology = Conditions::find(&status.conditions, ConditionType::TopologyConsistent);
                same && topology.is_some_and(|topology| topology.reason == Reason::TagLoginRefused.as_str())
            });
        Self { refused }
    }

    /// One more.
    #[must_use]
    pub fn and_one(self) -> Self {
        Self { refused: true }
    }

    /// Whether a login may be made there: not again with what was refused.
    #[must_use]
    pub fn allow(self) -> bool {
        !self.refused
    }
}

/// The message while a login waits: the same for all that wait, and as long as the wait lasts.
#[must_use]
pub fn waiting(server: &str, record: &CredentialStatus) -> (Reason, String) {
    let CredentialStatus { user, secret, .. } = record;
    let next = match next(record) {
        Next::At(until) => format!(" The next attempt is at {until}, or earlier if the Secret changes."),
        Next::Changed => {
            " The password is not sent again before the Secret changes; vdoctl secrets set tries a password and stores it.".to_owned()
        }
    };
    let refused = record
        .refused
        .as_ref()
        .and_then(|word| Reason::ALL.iter().find(|r| r.as_str() == word));
    let Some(reason) = refused.copied() else {
        return (
            Reason::TimedOut,
            format!("{server} has not answered the login of {user:?} from Secret {secret}.{next}"),
        );
    };
    let todo = of_refused_login(reason);
    let meaning = begun_small(reason.meaning().trim_end_matches('.'));
    (
        reason,
        format!("the login of {user:?} from Secret {secret} at {server} was refused: {meaning}. {todo}{next}"),
    )
}

/// A sentence as the rest of another one.
fn begun_small(sentence: &str) -> String {
    let mut letters = sentence.chars();
    letters
        .next()
        .map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> Key {
        Key {
            vcenter: "uuid".into(),
            secret: "n/s".into(),
            user: "u".into(),
            version: "7".into(),
        }
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_700_000_000 + seconds).expect("a time")
    }

    fn record(attempts: i32, refused: Option<&str>, verified: Option<&str>) -> CredentialStatus {
        CredentialStatus {
            attempts,
            last_tried: (attempts > 0).then(|| Time(at(0))),
            refused: refused.map(Into::into),
            verified: verified.map(Into::into),
            ..key().untried()
        }
    }

    /// A wrong password is sent once, however long ago that was: no policy is so strict that one attempt locks an account.
    #[test]
    fn login_wrong_password_is_sent_once() {
        const YEAR: i64 = 365 * 86_400;
        let refused = |n| record(n, Some("InvalidCredentials"), None);
        for (records, seconds, expected) in [
            (vec![], 0, "claim 1"),
            (vec![record(0, None, Some("6"))], 0, "claim 1"),
            (vec![record(0, None, Some("7"))], 0, "again"),
            (vec![refused(1)], 1, "wait"),
            (vec![refused(1)], 900, "wait"),
            (vec![refused(1)], YEAR, "wait"),
            (vec![refused(9)], YEAR, "wait"),
            // It worked before, and was changed in the vCenter.
            (vec![record(1, Some("InvalidCredentials"), Some("7"))], YEAR, "wait"),
            // Any connection counts.
            (vec![record(0, None, None), refused(1), record(0, None, Some("7"))], YEAR, "wait"),
        ] {
            let reported = match decide(&key(), &records, at(seconds)) {
                Decision::Proceed => "again".into(),
                Decision::RecordFirst(c) => format!("claim {}", c.attempts),
                Decision::Wait(_) => "wait".to_owned(),
            };
            assert_eq!(reported, expected, "{records:?} after {seconds} s");
        }
    }

    /// Where no password was judged, or no answer came, the pauses grow.
    #[test]
    fn login_refused_backoff_grows_after_each_attempt() {
        let locked = |n| record(n, Some("AccountLocked"), None);
        let unanswered = |n| record(n, None, None);
        for (record, pause) in [
            (locked(1), 900),
            (locked(2), 3600),
            (locked(3), 21_600),
            (locked(9), 21_600),
            (record(1, Some("PasswordExpired"), None), 900),
            (record(1, Some("LoginRefused"), None), 900),
            // The operator ended in the middle of it, or no answer came.
            (unanswered(1), 300),
            (unanswered(2), 3600),
            (unanswered(3), 43_200),
            (unanswered(9), 43_200),
        ] {
            let records = [record.clone()];
            let decided = |seconds| decide(&key(), &records, at(seconds));
            assert_eq!(decided(pause - 1), Decision::Wait(record.clone()), "{record:?}");
            assert!(
                matches!(decided(pause), Decision::RecordFirst(c) if c.attempts == record.attempts + 1),
                "{record:?}"
            );
        }
    }

    /// What is sent in a year: one login with a password that is wrong, which no policy locks an account for; where no answer ever comes, few a
    /// day.
    #[test]
    fn logins_of_a_year_stay_below_the_policies_that_lock_accounts() {
        const DAY: i64 = 86_400;
        for (answer, most) in [(Some("InvalidCredentials"), 1), (None, 4)] {
            let (mut known, mut sent, mut now) = (Vec::new(), Vec::new(), 0);
            while now < 365 * DAY {
                if let Decision::RecordFirst(begun) = decide(&key(), &known, at(now)) {
                    sent.push(now);
                    known = vec![CredentialStatus {
                        refused: answer.map(Into::into),
                        ..begun
                    }];
                }
                now += 300;
            }
            let within = |seconds: i64| {
                sent.iter()
                    .map(|from| sent.iter().filter(|at| (*from..from + seconds).contains(at)).count())
                    .max()
            };
            assert!(within(DAY) <= Some(most), "{answer:?}: {:?} in a day", within(DAY));
            assert_eq!(within(181), Some(1), "{answer:?}");
            assert_eq!(answer.is_some(), sent.len() == 1, "{}", sent.len());
        }
    }

    /// What is written before an attempt counts it, says when it is made, and nothing of what came of the last one.
    #[test]
    fn login_begun_is_recorded_before_it_is_made() {
        let tried = record(2, Some("InvalidCredentials"), Some("7"));
        for (tried, attempts) in [(None, 1), (Some(&tried), 3)] {
            let now = Timestamp::new(at(60).as_second(), 5).expect("a time");
            let expected = CredentialStatus {
                attempts,
                last_tried: Some(Time(at(60))),
                ..key().untried()
            };
            assert_eq!(begun(&key(), tried, now), expected);
        }
    }

    #[test]
    fn login_wait_message_says_what_to_do_and_when() {
        let until = at(900);
        for (refused, reason, part) in [
            (None, Reason::TimedOut, "vc has not answered the login of \"u\" from Secret n/s."),
            (Some("AccountLocked"), Reason::AccountLocked, "Unlock the account in vCenter"),
            (Some("PasswordExpired"), Reason::PasswordExpired, "Set a new password in vCenter"),
            (Some("LoginRefused"), Reason::LoginRefused, "Give the user a role"),
            (
                Some("InvalidCredentials"),
                Reason::InvalidCredentials,
                "the vCenter does not accept the user name or the password. Give the right user name and password",
            ),
        ] {
            let (said, message) = waiting("vc", &record(1, refused, None));
            assert_eq!(said, reason);
            assert!(message.contains(part), "{message}");
            let until = if refused.is_some() { until } else { at(300) };
            let next = match refused {
                Some("InvalidCredentials") => {
                    " The password is not sent again before the Secret changes; vdoctl secrets set tries a password and stores it."
                        .to_owned()
                }
                _ => format!(" The next attempt is at {until}, or earlier if the Secret changes."),
            };
            assert!(message.ends_with(&next), "{message}");
        }
    }

    /// A refusal by the service for tags is remembered by all connections that share the login, through restarts.
    #[test]
    fn tag_login_refusal_in_status_applies_to_same_secret_version() {
        let connection = |reason: Reason, credential: CredentialStatus, vcenter: &str| {
            let mut conditions = Conditions::new(vec![], None, Time(at(0)));
            conditions.set(ConditionType::TopologyConsistent, None, reason, "reported");
            let status = vdo_api::api::VsphereCloudConfigStatus {
                about: Some(vdo_api::api::AboutStatus {
                    instance_uuid: vcenter.into(),
                    ..Default::default()
                }),
                credential: Some(credential),
                conditions: conditions.finish(),
                ..Default::default()
            };
            VsphereCloudConfig {
                status: Some(status),
                ..VsphereCloudConfig::new("vc", Default::default())
            }
        };
        let of = |version| record(0, None, Some(version));
        let other = CredentialStatus {
            user: "another user".into(),
            ..of("7")
        };
        for (reason, credential, vcenter, allowed) in [
            (Reason::TagLoginRefused, of("7"), "uuid", false),
            (Reason::TagLoginRefused, of("6"), "uuid", true),
            (Reason::TagLoginRefused, of("7"), "another vCenter", true),
            (Reason::TagLoginRefused, other, "uuid", true),
            (Reason::Healthy, of("7"), "uuid", true),
        ] {
            let what = format!("{reason} {credential:?} {vcenter}");
            let known = [connection(reason, credential, vcenter)];
            assert_eq!(TagRefusals::recorded(&key(), &known).allow(), allowed, "{what}");
        }
    }

    #[test]
    fn login_records_same_vcenter_secret_and_user_are_shared() {
        use vdo_api::api::{AboutStatus, VsphereCloudConfigStatus};
        let connection = |uuid: &str, credential: CredentialStatus| {
            let mut object = VsphereCloudConfig::new("c", vdo_api::api::VsphereCloudConfigSpec::default());
            object.status = Some(VsphereCloudConfigStatus {
                about: Some(AboutStatus {
                    instance_uuid: uuid.into(),
                    ..AboutStatus::default()
                }),
                credential: Some(credential),
                ..VsphereCloudConfigStatus::default()
            });
            object
        };
        let other = |change: &dyn Fn(&mut CredentialStatus)| {
            let mut credential = record(1, None, None);
            change(&mut credential);
            connection("uuid", credential)
        };
        let all = [
            connection("uuid", record(1, None, None)),
            connection("another vCenter", record(2, None, None)),
            other(&|c| c.user = "another user".into()),
            other(&|c| c.secret = "n/another".into()),
            other(&|c| c.version = "8".into()),
        ];
        assert_eq!(key().records(&all), [record(1, None, None)]);
    }
}
