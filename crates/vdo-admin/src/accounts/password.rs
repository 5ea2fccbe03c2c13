// SPDX-License-Identifier: Apache-2.0
//! A random password that meets the policy of an identity source.

use std::borrow::Cow;
use vdo_api::types::{Remedy, Secret};

/// What an identity source demands of a password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PasswordPolicy {
    /// The fewest characters.
    pub min_length: usize,
    /// The most characters.
    pub max_length: usize,
    /// The fewest letters.
    pub min_letters: usize,
    /// The fewest capital letters.
    pub min_upper: usize,
    /// The fewest small letters.
    pub min_lower: usize,
    /// The fewest digits.
    pub min_digits: usize,
    /// The fewest characters that are neither letters nor digits.
    pub min_special: usize,
    /// How many equal characters may follow each other.
    pub max_repeated: usize,
}

impl Default for PasswordPolicy {
    /// That of a new vCenter.
    fn default() -> Self {
        Self {
            min_length: 8,
            max_length: 20,
            min_letters: 2,
            min_upper: 1,
            min_lower: 1,
            min_digits: 1,
            min_special: 1,
            max_repeated: 3,
        }
    }
}

/// No password, or none that is long enough to be safe, meets the policy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// What is demanded does not fit into what is allowed.
    #[error("no password meets the policy of the identity source: the policy demands {demanded} characters and allows {allowed}")]
    Impossible {
        /// Characters that are demanded.
        demanded: usize,
        /// Characters that are allowed.
        allowed: usize,
    },
    /// None was found; the characters may not be repeated often enough.
    #[error("no password was found that meets the policy of the identity source")]
    NotFound,
}

impl Remedy for PolicyError {
    fn remedy(&self) -> Option<Cow<'static, str>> {
        Some("Change the password policy in vCenter under Administration, Single Sign On, Configuration.".into())
    }
}

/// As long as a password is where the policy allows it.
const LENGTH: usize = 32;
/// How often is tried to find one without repetition.
const TRIES: usize = 1000;

const UPPER: &[u8] = b"ABCDEFGHJKLMNPQRSTUVWXYZ";
const LOWER: &[u8] = b"abcdefghijkmnopqrstuvwxyz";
const DIGITS: &[u8] = b"23456789";
/// Such that no shell, file or connection string reads them as anything else.
const SPECIAL: &[u8] = b"-_.+=:@%";

/// A password that meets the policy. `random` fills bytes that no one can guess.
///
/// # Errors
/// When there is none.
pub fn password(policy: &PasswordPolicy, mut random: impl FnMut(&mut [u8])) -> Result<Secret, PolicyError> {
    let mut pick = |from: usize| {
        // Bytes beyond the last whole round are thrown away, so that each is as likely as the others.
        let mut byte = [0];
        loop {
            random(&mut byte);
            let round = 256 / from * from;
            if usize::from(byte[0]) < round {
                return usize::from(byte[0]) % from;
            }
        }
    };
    let letters = policy.min_letters.max(policy.min_upper + policy.min_lower);
    let demanded = (letters + policy.min_digits + policy.min_special).max(policy.min_length);
    let allowed = policy.max_length;
    if demanded > allowed || allowed == 0 {
        return Err(PolicyError::Impossible { demanded, allowed });
    }
    let length = LENGTH.clamp(demanded, allowed);
    let either = [UPPER, LOWER].concat();
    let any = [UPPER, LOWER, DIGITS, SPECIAL].concat();
    let parts = [
        (policy.min_upper, UPPER),
        (policy.min_lower, LOWER),
        (letters - policy.min_upper - policy.min_lower, either.as_slice()),
        (policy.min_digits, DIGITS),
        (policy.min_special, SPECIAL),
        (length - letters - policy.min_digits - policy.min_special, any.as_slice()),
    ];
    for _ in 0..TRIES {
        let mut text = zeroize::Zeroizing::new(String::with_capacity(length));
        let mut classes: Vec<&[u8]> = parts.iter().flat_map(|(count, from)| std::iter::repeat_n(*from, *count)).collect();
        while !classes.is_empty() {
            let class = classes.swap_remove(pick(classes.len()));
            text.push(char::from(class[pick(class.len())]));
        }
        if !repeats(&text, policy.max_repeated) {
            return Ok(Secret::new(text.as_str()));
        }
    }
    Err(PolicyError::NotFound)
}

/// Whether more than so many equal characters follow each other; no policy says 0.
fn repeats(text: &str, most: usize) -> bool {
    let (mut last, mut run) = ('\0', 0);
    most > 0
        && text.chars().any(|c| {
            run = if c == last { run + 1 } else { 1 };
            last = c;
            run > most
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The same numbers each time, for tests only.
    fn counting(mut seed: u64) -> impl FnMut(&mut [u8]) {
        move |bytes| {
            for byte in bytes {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                *byte = (seed >> 56) as u8;
            }
        }
    }

    proptest! {
        #[test]
        fn password_meets_any_policy_that_can_be_met(
            seed: u64, min in 1_usize..24, more in 0_usize..30, letters in 0_usize..6, upper in 0_usize..4, lower in 0_usize..4,
            digits in 0_usize..4, special in 0_usize..4, repeated in 1_usize..4,
        ) {
            let policy = PasswordPolicy {
                min_length: min, max_length: min + more, min_letters: letters, min_upper: upper, min_lower: lower,
                min_digits: digits, min_special: special, max_repeated: repeated,
            };
            let demanded = letters.max(upper + lower) + digits + special;
            let made = password(&policy, counting(seed));
            if demanded > policy.max_length {
                prop_assert!(made.is_err());
                return Ok(());
            }
            let made = made.expect("a password");
            let text = made.expose();
            let count = |is: fn(&char) -> bool| text.chars().filter(is).count();
            prop_assert!((policy.min_length..=policy.max_length).contains(&text.len()));
            prop_assert!(count(char::is_ascii_alphabetic) >= letters && count(char::is_ascii_uppercase) >= upper);
            prop_assert!(count(char::is_ascii_lowercase) >= lower && count(char::is_ascii_digit) >= digits);
            prop_assert!(count(|c| !c.is_ascii_alphanumeric()) >= special);
            prop_assert!(!repeats(text, repeated));
        }
    }

    #[test]
    fn password_of_the_default_policy_is_as_long_as_allowed() {
        let made = password(&PasswordPolicy::default(), counting(7)).expect("a password");
        assert_eq!(made.expose().len(), 20);
        let other = password(&PasswordPolicy::default(), counting(8)).expect("a password");
        assert_ne!(made, other);
    }

    #[test]
    fn password_of_an_impossible_policy_is_refused() {
        let policy = PasswordPolicy {
            min_length: 30,
            max_length: 20,
            ..PasswordPolicy::default()
        };
        let error = password(&policy, counting(1)).expect_err("an error");
        assert!(error.to_string().contains("demands 30 characters and allows 20"), "{error}");
        let stuck = PasswordPolicy {
            max_repeated: 1,
            ..PasswordPolicy::default()
        };
        // A source that is broken gives the same byte for ever.
        assert_eq!(password(&stuck, |bytes| bytes.fill(0)), Err(PolicyError::NotFound));
    }
}
