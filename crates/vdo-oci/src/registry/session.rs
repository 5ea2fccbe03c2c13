// SPDX-License-Identifier: Apache-2.0
//! Logs in to a registry: keeps tokens by scope, requests new tokens from the token service, and sets the header `Authorization`.

use super::challenge::Challenge;
use super::{Fault, Login, Need, Registry, realm, token};
use crate::web::{self, Client, Clock, Follow, WebError, authorization, refused};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, WWW_AUTHENTICATE};
use reqwest::{Method, Response, Url};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;
use vdo_api::types::{Later as _, Secret};

/// Bytes of an answer with a token.
const TOKEN: usize = 256 << 10;

/// What is known of the registry's wishes.
#[derive(Default)]
pub(super) struct Session(Mutex<State>);

#[derive(Default)]
struct State {
    /// It takes a name and a password.
    basic: bool,
    /// By scope, and until when.
    tokens: BTreeMap<String, (Secret, Instant)>,
}

fn scope(repository: &str, need: Need) -> String {
    let actions = match need {
        Need::Pull => "pull",
        Need::Push => "pull,push",
    };
    format!("repository:{repository}:{actions}")
}

fn basic(user: &str, password: &Secret) -> Secret {
    Secret::new(format!("Basic {}", STANDARD.encode(format!("{user}:{}", password.expose()))))
}

impl Session {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a request is sent with.
    pub(super) fn authorization(&self, login: &Login, repository: &str, need: Need) -> Result<Option<(HeaderName, HeaderValue)>, Fault> {
        let state = self.state();
        // A token for writing is one for reading as well.
        let as_well = (need == Need::Pull).then_some(Need::Push);
        let mut needs = std::iter::once(need).chain(as_well);
        let token = needs.find_map(|need| state.tokens.get(&scope(repository, need)));
        let value = match (token, login) {
            (Some((token, until)), _) if *until > Instant::now() => Some(Secret::new(format!("Bearer {}", token.expose()))),
            (_, Login::Token(token)) => Some(Secret::new(format!("Bearer {}", token.expose()))),
            (_, Login::Basic { user, password }) if state.basic => Some(basic(user, password)),
            _ => None,
        };
        Ok(value.map(|value| authorization(&value)).transpose()?)
    }
}

impl Registry {
    /// Does what the registry asks its clients for; whether a request is worth to be sent again that was `authorized` or not. Another request may
    /// have been asked the same meanwhile.
    pub(super) async fn log_in(&self, (repository, need): (&str, Need), authorized: bool, asked: &Response) -> Result<bool, Fault> {
        let headers = asked.headers().get_all(WWW_AUTHENTICATE);
        let login = &self.0.options.login;
        match Challenge::parse(headers.iter().filter_map(|value| value.to_str().ok())) {
            Some(Challenge::Basic) => {
                self.0.session.state().basic = true;
                Ok(matches!(login, Login::Basic { .. }) && !authorized)
            }
            Some(Challenge::Bearer { realm, service }) if !matches!(login, Login::Token(_)) => {
                let scope = scope(repository, need);
                let (token, good_for) = self.token(&realm, service.as_deref(), &scope).await?;
                let until = Instant::now().later(good_for);
                self.0.session.state().tokens.insert(scope, (token, until));
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// Whether the credentials for this registry go to a service for tokens. Where they go to another host, the log names both.
    fn trusts(&self, realm: &Url) -> Result<(), Fault> {
        let (base, login) = (&self.0.base, &self.0.options.login);
        if *login == Login::Anonymous || realm.host_str() == base.host_str() {
            return Ok(());
        }
        let allowed = realm::allowed(&self.0.options.access).map_err(WebError::from)?;
        if !realm::may_see(base, realm, &allowed) {
            return Err(Fault::FarRealm {
                host: realm.host_str().unwrap_or_default().to_owned(),
            });
        }
        let (registry, realm) = (&self.0.host, web::shown(realm));
        tracing::info!("the credentials for the registry {registry} are sent to the token service of this registry, {realm}");
        Ok(())
    }

    /// A token, and for how long it is sent.
    async fn token(&self, realm: &str, service: Option<&str>, scope: &str) -> Result<(Secret, Duration), Fault> {
        let plain = self.0.options.plain_http;
        let mut url = Url::parse(realm).map_err(|_| Fault::NotRegistry(format!("it names {realm:?} as its token service")))?;
        if url.scheme() != "https" && !(plain && url.scheme() == "http") {
            return Err(Fault::Realm(web::shown(&url)));
        }
        self.trusts(&url)?;
        let shown = web::shown(&url);
        let failed = |source: WebError| Fault::Token {
            realm: shown.clone(),
            source,
        };
        let own = url.origin() == self.0.base.origin() && self.0.options.own;
        let access = (&self.0.options.access, own);
        let http = Client::new(&url, access, HeaderMap::new(), Follow::Nowhere { plain }).map_err(failed)?;
        let wishes = [("service", service.unwrap_or_default()), ("scope", scope)];
        let wishes = wishes.into_iter().filter(|(_, value)| !value.is_empty());
        let request = match &self.0.options.login {
            Login::Identity(token) => {
                let mut form = Url::parse("form:").map_err(|error| failed(WebError::Asked(error.to_string())))?;
                let fixed = [
                    ("grant_type", "refresh_token"),
                    ("client_id", "vdo"),
                    ("refresh_token", token.expose()),
                ];
                form.query_pairs_mut().extend_pairs(fixed).extend_pairs(wishes);
                let body = form.query().unwrap_or_default().to_owned();
                http.request(Method::POST, url)
                    .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
                    .body(body)
            }
            login => {
                url.query_pairs_mut().extend_pairs(wishes);
                let request = http.request(Method::GET, url);
                match login {
                    Login::Basic { user, password } => {
                        let (name, value) = authorization(&basic(user, password)).map_err(failed)?;
                        request.header(name, value)
                    }
                    _ => request,
                }
            }
        };
        let mut clock = Clock::start();
        let request = request.build().map_err(|error| failed(error.into()))?;
        let response = clock.within(http.execute(request)).await.and_then(|sent| sent).map_err(failed)?;
        if !response.status().is_success() {
            return Err(failed(refused(clock, response, super::error::said).await));
        }
        let body = Secret::new(String::from_utf8_lossy(&clock.read(response, TOKEN).await.map_err(failed)?).into_owned());
        token::read(&body).ok_or_else(|| failed(WebError::Asked("the answer contains no token".into())))
    }
}
