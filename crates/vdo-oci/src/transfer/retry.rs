//! Registries that are busy for a moment.

use crate::registry::RegistryError;
use std::time::Duration;
use tokio::time::sleep;

/// How often something is asked for, at most.
const TRIES: u32 = 4;
/// How long the first pause is; each is twice as long as the one before.
const PAUSE: Duration = Duration::from_millis(500);
/// The longest pause that a registry may ask for. For a longer one the person who waits decides.
const LONGEST: Duration = Duration::from_secs(60);

/// Asks again, a while later, when the registry is busy or the connection breaks off.
///
/// # Errors
/// The last error.
pub async fn patiently<T, E, F>(mut ask: impl FnMut() -> F) -> Result<T, E>
where
    E: From<RegistryError>,
    F: Future<Output = Result<T, RegistryError>>,
{
    let mut asked = 0;
    loop {
        let error = match ask().await {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        asked += 1;
        match pause(asked, error.may_pass(), error.wait()) {
            Some(pause) => sleep(pause).await,
            None => return Err(error.into()),
        }
    }
}

/// How long to wait before it is asked again, if it is, by what the registry asks for.
fn pause(asked: u32, may_pass: bool, wait: Option<Duration>) -> Option<Duration> {
    let again = may_pass && asked < TRIES && wait.is_none_or(|wait| wait <= LONGEST);
    again.then(|| wait.unwrap_or(PAUSE.saturating_mul(2_u32.saturating_pow(asked.saturating_sub(1)))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pause_follows_the_registry_and_grows_and_ends() {
        let second = Duration::from_secs(1);
        for (asked, may_pass, wait, expected) in [
            (1, true, None, Some(PAUSE)),
            (3, true, None, Some(PAUSE * 4)),
            (TRIES, true, None, None),
            (1, true, Some(second), Some(second)),
            (1, true, Some(LONGEST * 2), None),
            (1, false, None, None),
        ] {
            assert_eq!(pause(asked, may_pass, wait), expected, "{asked} {may_pass} {wait:?}");
        }
    }
}
