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
pub async fn patiently<T, E: From<RegistryError>>(mut ask: impl AsyncFnMut() -> Result<T, RegistryError>) -> Result<T, E> {
    let mut pause = PAUSE;
    for _ in 1..TRIES {
        match ask().await {
            Err(error) if error.may_pass() && error.wait().is_none_or(|wait| wait <= LONGEST) => {
                sleep(error.wait().unwrap_or(pause)).await;
                pause *= 2;
            }
            answer => return answer.map_err(E::from),
        }
    }
    ask().await.map_err(E::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Fault;
    use crate::web::WebError;
    use reqwest::StatusCode;

    fn refused(code: u16, wait: Option<Duration>) -> RegistryError {
        let fault = Fault::Web(WebError::Status {
            code: StatusCode::from_u16(code).expect("a code"),
            told: String::new(),
            wait,
        });
        RegistryError::new("it".into(), fault)
    }

    async fn asked(code: u16, wait: Option<Duration>) -> (u32, Duration) {
        let (mut times, before) = (0, tokio::time::Instant::now());
        let answer: Result<(), RegistryError> = patiently(async || {
            times += 1;
            Err(refused(code, wait))
        })
        .await;
        assert!(answer.is_err());
        (times, before.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn busy_registry_is_asked_again_when_it_says_and_one_that_refuses_is_not() {
        let second = Duration::from_secs(1);
        assert_eq!(asked(429, Some(second)).await, (4, second * 3));
        assert_eq!(asked(503, None).await, (4, PAUSE * 7));
        assert_eq!(asked(429, Some(LONGEST * 2)).await.0, 1);
        assert_eq!(asked(403, None).await.0, 1);
    }
}
