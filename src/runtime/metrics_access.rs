// SPDX-License-Identifier: Apache-2.0
//! Decides who may read `/metrics`: anyone, or users with a bearer token that the API server accepts.
//!
//! `--metrics-auth` does what controller-runtime's `WithAuthenticationAndAuthorization` does: a TokenReview says whose bearer token it is,
//! and a SubjectAccessReview whether that user may `get` the path.

use hyper::HeaderMap;
use hyper::header::AUTHORIZATION;
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, UserInfo};
use k8s_openapi::api::authorization::v1::{NonResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use kube::api::{Api, PostParams};
use kube::{Client, Error};
use sha2::{Digest as _, Sha256};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// How long an accepted token is not asked about again.
const BELIEVED: Duration = Duration::from_secs(60);
/// Tokens that are remembered: a few scrapers, and their next tokens.
const REMEMBERED: usize = 16;
/// Reviews at the same time.
const REVIEWS: usize = 2;
/// How long a refused token keeps its place among them: who guesses must not make the API server work at the speed of guessing.
const PAUSE: Duration = Duration::from_secs(1);
/// How long the API server may take for one review; below the time that a connection has.
const DEADLINE: Duration = Duration::from_secs(2);

/// Who may read `/metrics`.
#[derive(Debug)]
pub enum MetricsAccess {
    /// Anyone who reaches the port.
    Anyone,
    /// Who has a token and the right.
    Reviewed(Reviewer),
}

/// Why `/metrics` is not shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    /// There is no bearer token, or one that is not a user's.
    Unauthenticated,
    /// The user may not read it.
    Forbidden,
    /// Other tokens are being reviewed.
    Busy,
    /// The API server did not say.
    Unknown,
}

impl MetricsAccess {
    /// With `reviewed`, the API server is asked about each reader.
    #[must_use]
    pub fn new(reviewed: bool, client: &Client) -> Self {
        if reviewed {
            Self::Reviewed(Reviewer::new(client.clone()))
        } else {
            Self::Anyone
        }
    }

    pub(super) async fn check(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        match self {
            Self::Anyone => Ok(()),
            Self::Reviewed(reviewer) => reviewer.check(bearer(headers).ok_or(Refusal::Unauthenticated)?).await,
        }
    }
}

/// The token of an `Authorization` header. The name of the scheme may be written in any case.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// Asks the API server about tokens, and remembers for a while which it accepted.
pub struct Reviewer {
    client: Client,
    /// The digests of accepted tokens, the oldest first.
    accepted: Mutex<Vec<([u8; 32], Instant)>>,
    reviews: Arc<Semaphore>,
}

impl std::fmt::Debug for Reviewer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Reviewer")
    }
}

impl Reviewer {
    fn new(client: Client) -> Self {
        Self {
            client,
            accepted: Mutex::default(),
            reviews: Arc::new(Semaphore::new(REVIEWS)),
        }
    }

    async fn check(&self, token: &str) -> Result<(), Refusal> {
        let digest: [u8; 32] = Sha256::digest(token).into();
        if self.is_accepted(&digest) {
            return Ok(());
        }
        let place = self.reviews.clone().try_acquire_owned().map_err(|_| Refusal::Busy)?;
        let answer = self.review(token).await;
        match answer {
            Ok(()) => self.accept(digest),
            Err(_) => drop(tokio::spawn(async move {
                tokio::time::sleep(PAUSE).await;
                drop(place);
            })),
        }
        answer
    }

    async fn review(&self, token: &str) -> Result<(), Refusal> {
        let user = self.user(token).await?.ok_or(Refusal::Unauthenticated)?;
        if self.may_read(user).await? {
            Ok(())
        } else {
            Err(Refusal::Forbidden)
        }
    }

    /// Whose token it is, if anyone's.
    async fn user(&self, token: &str) -> Result<Option<UserInfo>, Refusal> {
        let review = TokenReview {
            spec: TokenReviewSpec {
                token: Some(token.to_owned()),
                audiences: None,
            },
            ..TokenReview::default()
        };
        let api: Api<TokenReview> = Api::all(self.client.clone());
        let answer = answered("tokenreviews.authentication.k8s.io", api.create(&PostParams::default(), &review)).await?;
        let status = answer.status.unwrap_or_default();
        let authenticated = status.authenticated.unwrap_or(false);
        Ok(status.user.filter(|user| authenticated && user.username.is_some()))
    }

    async fn may_read(&self, user: UserInfo) -> Result<bool, Refusal> {
        let review = SubjectAccessReview {
            spec: SubjectAccessReviewSpec {
                user: user.username,
                uid: user.uid,
                groups: user.groups,
                extra: user.extra,
                non_resource_attributes: Some(NonResourceAttributes {
                    path: Some("/metrics".into()),
                    verb: Some("get".into()),
                }),
                ..SubjectAccessReviewSpec::default()
            },
            ..SubjectAccessReview::default()
        };
        let api: Api<SubjectAccessReview> = Api::all(self.client.clone());
        let parameters = PostParams::default();
        let request = api.create(&parameters, &review);
        let answer = answered("subjectaccessreviews.authorization.k8s.io", request).await?;
        Ok(answer.status.is_some_and(|status| status.allowed && status.denied != Some(true)))
    }

    fn is_accepted(&self, digest: &[u8; 32]) -> bool {
        let mut accepted = self.accepted.lock().unwrap_or_else(PoisonError::into_inner);
        accepted.retain(|(_, at)| at.elapsed() < BELIEVED);
        accepted.iter().any(|(known, _)| known == digest)
    }

    fn accept(&self, digest: [u8; 32]) {
        let mut accepted = self.accepted.lock().unwrap_or_else(PoisonError::into_inner);
        if accepted.len() >= REMEMBERED {
            accepted.remove(0);
        }
        accepted.push((digest, Instant::now()));
    }
}

/// What the API server says within the deadline. What is missing is logged; the reader could not change it.
async fn answered<T>(resource: &str, request: impl Future<Output = Result<T, Error>>) -> Result<T, Refusal> {
    match tokio::time::timeout(DEADLINE, request).await {
        Ok(Ok(answer)) => return Ok(answer),
        Ok(Err(Error::Api(status))) if status.code == 403 => {
            tracing::warn!(
                "the operator may not create {resource}, so no one may read /metrics; apply deploy/monitoring/metrics-auth.yaml"
            );
        }
        Ok(Err(error)) => tracing::warn!(%error, "{resource} cannot be created, so the request for /metrics is refused"),
        Err(_) => {
            tracing::warn!("the request to create {resource} got no answer within {DEADLINE:?}, so the request for /metrics is refused");
        }
    }
    Err(Refusal::Unknown)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::{BodyExt as _, Full};
    use hyper::body::Bytes;
    use hyper::{Request, Response, StatusCode};
    use kube::client::Body;
    use serde_json::{Value, json};
    use std::convert::Infallible;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// An API server that knows the tokens `reader` and `other`, of which the first may read `/metrics`. With `rights` the operator may ask.
    fn reviewer(rights: bool) -> (Reviewer, Arc<AtomicUsize>) {
        let asked = Arc::new(AtomicUsize::new(0));
        let counter = asked.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            counter.fetch_add(1, Ordering::Relaxed);
            async move {
                let path = request.uri().path().to_owned();
                let body = request.into_body().collect().await.expect("a body").to_bytes();
                let (code, answer) = if rights {
                    (StatusCode::CREATED, answer(&path, &serde_json::from_slice(&body).expect("JSON")))
                } else {
                    (
                        StatusCode::FORBIDDEN,
                        json!({"kind": "Status", "status": "Failure", "code": 403, "reason": "Forbidden", "message": "no"}),
                    )
                };
                let mut response = Response::new(Full::new(Bytes::from(answer.to_string())));
                *response.status_mut() = code;
                Ok::<_, Infallible>(response)
            }
        });
        (Reviewer::new(Client::new(service, "default")), asked)
    }

    fn answer(path: &str, review: &Value) -> Value {
        let mut answer = review.clone();
        answer["status"] = match path {
            "/apis/authentication.k8s.io/v1/tokenreviews" => match review["spec"]["token"].as_str() {
                Some(name @ ("reader" | "other")) => {
                    json!({"authenticated": true, "user": {"username": name, "groups": ["g"], "extra": {"k": ["v"]}}})
                }
                _ => json!({"authenticated": false}),
            },
            "/apis/authorization.k8s.io/v1/subjectaccessreviews" => {
                let wanted = json!({"user": "reader", "groups": ["g"], "extra": {"k": ["v"]},
                    "nonResourceAttributes": {"path": "/metrics", "verb": "get"}});
                json!({"allowed": review["spec"] == wanted})
            }
            other => panic!("{other}"),
        };
        answer
    }

    fn headers(authorization: &str) -> HeaderMap {
        HeaderMap::from_iter([(AUTHORIZATION, authorization.parse().expect("a value"))])
    }

    #[tokio::test]
    async fn metrics_access_token_and_right_decide() {
        let (reviewer, asked) = reviewer(true);
        let access = MetricsAccess::Reviewed(reviewer);
        assert_eq!(access.check(&headers("Bearer reader")).await, Ok(()));
        assert_eq!(access.check(&headers("bearer  reader")).await, Ok(()), "from memory");
        assert_eq!(asked.load(Ordering::Relaxed), 2, "a token and a right, asked about once");
        assert_eq!(access.check(&headers("Bearer other")).await, Err(Refusal::Forbidden));
        assert_eq!(asked.load(Ordering::Relaxed), 4);
    }

    #[tokio::test]
    async fn metrics_access_without_bearer_token_asks_no_one() {
        let (reviewer, asked) = reviewer(true);
        let access = MetricsAccess::Reviewed(reviewer);
        for wrong in ["Basic cmVhZGVy", "Bearer", "Bearer ", "reader"] {
            assert_eq!(access.check(&headers(wrong)).await, Err(Refusal::Unauthenticated), "{wrong}");
        }
        assert_eq!(access.check(&HeaderMap::new()).await, Err(Refusal::Unauthenticated));
        assert_eq!(asked.load(Ordering::Relaxed), 0);
        assert_eq!(MetricsAccess::Anyone.check(&HeaderMap::new()).await, Ok(()));
    }

    #[tokio::test]
    async fn metrics_access_guessed_tokens_are_slowed_down() {
        let (reviewer, asked) = reviewer(true);
        assert_eq!(reviewer.check("reader").await, Ok(()));
        for guess in 0..REVIEWS {
            assert_eq!(reviewer.check(&format!("guess {guess}")).await, Err(Refusal::Unauthenticated));
        }
        let before = asked.load(Ordering::Relaxed);
        assert_eq!(reviewer.check("one guess more").await, Err(Refusal::Busy));
        assert_eq!(asked.load(Ordering::Relaxed), before);
        assert_eq!(reviewer.check("reader").await, Ok(()), "who is known does not wait behind guesses");
    }

    #[tokio::test]
    async fn metrics_access_without_rights_of_operator_is_refused() {
        let (reviewer, _) = reviewer(false);
        assert_eq!(reviewer.check("reader").await, Err(Refusal::Unknown));
    }

    #[tokio::test]
    async fn metrics_access_remembers_a_bounded_number_of_tokens() {
        let (reviewer, _) = reviewer(true);
        for number in 0..=u8::try_from(REMEMBERED).expect("few") {
            reviewer.accept([number; 32]);
        }
        assert!(!reviewer.is_accepted(&[0; 32]) && reviewer.is_accepted(&[1; 32]));
    }
}
