use super::exchange::{Answer, Pipe};
use super::method::Method;
use super::session::{Live, Rest, Service, Session, open};
use super::tags::{self, Call};
use super::xml::Element;
use super::{ProbeError, SessionError, wire};
use crate::facts::ManagedObject;
use hyper::header::{self, HeaderName, HeaderValue};
use serde_json::Value;
use tokio::time::timeout;

/// The inventory of a large vCenter comes in pages of a few megabytes; more than this is not from a vCenter.
const MAX_PAGE: usize = 64 << 20;

/// Makes calls within a session.
pub(super) struct Caller<'a> {
    pub(super) session: &'a Session,
    pub(super) live: &'a mut Live,
}

impl Caller<'_> {
    pub(super) fn service(&self) -> &Service {
        &self.live.service
    }

    pub(super) fn address(&self) -> String {
        self.session.endpoint.address()
    }

    /// The session is gone, seen in an answer that is no fault.
    pub(super) fn lost(&self) -> SessionError {
        SessionError::Lost {
            address: self.address(),
            user: self.session.credentials.user.clone(),
        }
    }

    /// One call.
    pub(super) async fn call(&mut self, method: Method, this: &ManagedObject, arguments: &str) -> Result<Element, SessionError> {
        self.call_each(method, this, arguments, &mut |_| {}).await
    }

    /// One call of which the answer is a long list: its items go to `each`. A connection that an exchange did not leave clean is
    /// not used again.
    pub(super) async fn call_each(
        &mut self,
        method: Method,
        this: &ManagedObject,
        arguments: &str,
        each: &mut (dyn FnMut(Element) + Send),
    ) -> Result<Element, SessionError> {
        let (endpoint, deadline) = (&self.session.endpoint, self.session.deadline);
        let exchange = async {
            let mut pipe = self.pipe().await?;
            let request = method.envelope(this, arguments, &self.cookie());
            let answer = pipe
                .post(endpoint, &method.place(), request, self.live.cookie.as_ref(), MAX_PAGE)
                .await?;
            self.live.pipe = Some(pipe);
            Ok::<_, ProbeError>(answer)
        };
        let answer = timeout(deadline, exchange)
            .await
            .map_err(|_| self.session.passed(method.name()))??;
        let user = &self.session.credentials.user;
        self.session
            .response(method, &answer, each)?
            .map_err(|fault| fault.of_call(endpoint.address(), user, method.name()))
    }

    /// One call of the REST service, which logs in there when there is no session or it has ended.
    pub(super) async fn rest(&mut self, call: &Call<'_>) -> Result<Value, SessionError> {
        if let Some(rest) = self.live.rest.clone() {
            match self.exchange(call, Some(&rest), rest.modern).await? {
                answer if answer.status == 401 => self.live.rest = None,
                answer => return self.content(call, &answer, rest.modern),
            }
        }
        let rest = self.rest_login().await?;
        self.live.rest = Some(rest.clone());
        let answer = self.exchange(call, Some(&rest), rest.modern).await?;
        self.content(call, &answer, rest.modern)
    }

    async fn rest_login(&mut self) -> Result<Rest, SessionError> {
        let mut modern = false;
        let mut answer = self.exchange(&Call::Login, None, modern).await?;
        if answer.status == 404 {
            modern = true;
            answer = self.exchange(&Call::Login, None, modern).await?;
        }
        if answer.status == 401 {
            let (address, user) = (self.address(), self.session.credentials.user.clone());
            return Err(SessionError::TagsRefused { address, user });
        }
        let value = self.content(&Call::Login, &answer, modern)?;
        tags::opened(&value, modern).ok_or_else(|| self.malformed("it gives no session".into()))
    }

    async fn exchange(&mut self, call: &Call<'_>, rest: Option<&Rest>, modern: bool) -> Result<Answer, SessionError> {
        let (credentials, deadline) = (&self.session.credentials, self.session.deadline);
        let login = rest
            .is_none()
            .then(|| tags::basic(&credentials.user, credentials.password.expose()))
            .flatten();
        let headers = [
            (header::CONTENT_TYPE, Some(HeaderValue::from_static("application/json"))),
            (header::AUTHORIZATION, login),
            (HeaderName::from_static("vmware-api-session-id"), rest.map(|rest| rest.id.clone())),
        ];
        let exchange = async {
            let mut pipe = self.pipe().await?;
            let (endpoint, path) = (&self.session.endpoint, call.path(modern));
            let answer = pipe.send(endpoint, call.method(), &path, headers, call.body(), MAX_PAGE).await?;
            self.live.pipe = Some(pipe);
            Ok::<_, ProbeError>(answer)
        };
        let answer = timeout(deadline, exchange).await;
        Ok(answer.map_err(|_| self.session.passed(call.name()))??)
    }

    fn content(&self, call: &Call<'_>, answer: &Answer, modern: bool) -> Result<Value, SessionError> {
        let (address, user) = (self.address(), self.session.credentials.user.clone());
        match answer.status {
            200..=299 => tags::content(answer, modern).map_err(|because| self.malformed(because)),
            // A session that was just begun, or had to be had again.
            401 => Err(SessionError::TagsRefused { address, user }),
            403 => Err(SessionError::Forbidden {
                address,
                user,
                method: call.name(),
            }),
            status => Err(SessionError::Connection(ProbeError::Status {
                address,
                status,
                fault: None,
            })),
        }
    }

    fn malformed(&self, because: String) -> SessionError {
        SessionError::Connection(ProbeError::Malformed {
            address: self.address(),
            because,
        })
    }

    /// The connection, or a new one where the old one has ended.
    async fn pipe(&mut self) -> Result<Pipe, ProbeError> {
        match self.live.pipe.take() {
            Some(pipe) if !pipe.is_closed() => Ok(pipe),
            _ => {
                let endpoint = &self.session.endpoint;
                open(endpoint, &wire::Clock::start(endpoint, self.session.deadline)).await
            }
        }
    }

    /// The key of the session, and the account as the vCenter spells it.
    pub(super) fn owner(&self) -> (String, String) {
        self.live.owner.clone()
    }

    /// The value of the cookie, without its name and quotes.
    fn cookie(&self) -> String {
        let text = self
            .live
            .cookie
            .as_ref()
            .and_then(|cookie| cookie.to_str().ok())
            .unwrap_or_default();
        let value = text.split_once('=').map_or("", |(_, value)| value);
        value.trim_matches('"').to_owned()
    }
}
