// SPDX-License-Identifier: Apache-2.0
//! Makes SOAP and REST calls in a session, over one connection and within the budget; logs in to REST and reconnects when needed.

use super::connect;
use super::fault::Fault;
use super::http::{Answer, Bounds, Http1};
use super::inspection_limits::Budget;
use super::offload::{Unread, Work, offload};
use super::requests::Operation;
use super::session::{Live, Rest, Service, Session, open};
use super::tags::{self, Call, Json, RestCall};
use super::xml::{Element, Tree};
use crate::vsphere::{ManagedObject, ProbeError, SessionError};
use hyper::header::{self, HeaderName, HeaderValue};

/// Makes calls within a session.
pub struct Caller<'a> {
    /// The session that the calls belong to.
    pub session: &'a Session,
    /// Its connection and cookie.
    pub(super) live: &'a mut Live,
    /// What all answers together may take.
    pub(super) budget: &'a Budget,
}

impl Caller<'_> {
    /// The objects of the vCenter that others are reached through.
    pub fn service(&self) -> &Service {
        &self.live.service
    }

    /// `host:port` of the vCenter.
    pub fn address(&self) -> String {
        self.session.endpoint.address()
    }

    /// One call.
    pub async fn call(&mut self, operation: impl Into<Operation>, this: &ManagedObject, arguments: &str) -> Result<Tree, SessionError> {
        let (response, ()) = self.call_each(operation, this, arguments, (), |(), _| Ok(())).await?;
        Ok(response)
    }

    /// One call of which the answer is a long list: its items go through `take` into `taken`.
    pub async fn call_each<T: Send + 'static>(
        &mut self,
        operation: impl Into<Operation>,
        this: &ManagedObject,
        arguments: &str,
        taken: T,
        take: fn(&mut T, Element) -> Result<(), Unread>,
    ) -> Result<(Tree, T), SessionError> {
        let operation = operation.into();
        let read = self.exchanged(&operation, this, arguments, taken, take).await?;
        read.map_err(|fault| fault.of_call(self.address(), &self.session.credentials.user, operation.name))
    }

    /// One call, with the fault as it came.
    pub async fn exchanged<T: Send + 'static>(
        &mut self,
        operation: &Operation,
        this: &ManagedObject,
        arguments: &str,
        taken: T,
        take: fn(&mut T, Element) -> Result<(), Unread>,
    ) -> Result<Result<(Tree, T), Fault>, SessionError> {
        let request = operation.envelope(this, arguments, &operation.header(&self.cookie()));
        let cookie = self.live.cookie.clone();
        let answer = self.post(operation, request, cookie.as_ref()).await?;
        Ok(self.session.response_each(operation, answer, self.budget, taken, take).await?)
    }

    /// Work on what was read, off the threads on which everything else waits.
    pub async fn offload<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Work) -> Result<T, Unread> + Send + 'static,
    ) -> Result<T, SessionError> {
        Ok(offload(&self.session.endpoint, self.budget, work).await?)
    }

    /// What is read of one answer.
    fn bounds(&self) -> Bounds<'_> {
        Bounds {
            answer: self.budget.limits().answer,
            budget: self.budget,
        }
    }

    /// A connection that an exchange did not leave clean is not used again.
    pub async fn post(&mut self, operation: &Operation, request: String, cookie: Option<&HeaderValue>) -> Result<Answer, SessionError> {
        let (endpoint, budget) = (&self.session.endpoint, self.budget);
        let exchange = async {
            let mut pipe = self.pipe().await?;
            let answer = pipe.post(endpoint, &operation.place, request, cookie, self.bounds()).await?;
            self.live.pipe = Some(pipe);
            Ok::<_, ProbeError>(answer)
        };
        let answer = budget.within(endpoint, exchange).await?;
        Ok(answer.ok_or_else(|| self.passed(operation.name))??)
    }

    /// One call of the REST service, which logs in there when there is no session or it has ended.
    pub async fn rest(&mut self, call: &impl RestCall) -> Result<Json, SessionError> {
        let (answer, modern) = self.rest_answer(call).await?;
        self.content(call, answer, modern).await
    }

    /// The same, with the answer as it came, and whether it is one of the newer dialect.
    pub async fn rest_answer(&mut self, call: &impl RestCall) -> Result<(Answer, bool), SessionError> {
        if let Some(rest) = self.live.rest.clone() {
            match self.exchange(call, Some(&rest), rest.modern).await? {
                answer if answer.status == 401 => self.live.rest = None,
                answer => return Ok((answer, rest.modern)),
            }
        }
        let rest = self.rest_login().await?;
        self.live.rest = Some(rest.clone());
        Ok((self.exchange(call, Some(&rest), rest.modern).await?, rest.modern))
    }

    async fn rest_login(&mut self) -> Result<Rest, SessionError> {
        let mut modern = false;
        let mut answer = self.exchange(&Call::Login, None, modern).await?;
        if answer.status == 404 {
            modern = true;
            answer = self.exchange(&Call::Login, None, modern).await?;
        }
        if answer.status == 401 {
            return Err(self.session.tags_refused());
        }
        let value = self.content(&Call::Login, answer, modern).await?;
        tags::opened(&value, modern).ok_or_else(|| self.session.malformed("it contains no session".into()).into())
    }

    async fn exchange(&mut self, call: &impl RestCall, rest: Option<&Rest>, modern: bool) -> Result<Answer, SessionError> {
        let (endpoint, budget, credentials) = (&self.session.endpoint, self.budget, &self.session.credentials);
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
            let path = call.path(modern);
            let answer = pipe
                .send(endpoint, call.method(), &path, headers, call.body(modern), self.bounds())
                .await?;
            self.live.pipe = Some(pipe);
            Ok::<_, ProbeError>(answer)
        };
        let answer = budget.within(endpoint, exchange).await?;
        Ok(answer.ok_or_else(|| self.passed(call.name()))??)
    }

    /// What an answer of the REST service holds.
    pub async fn content(&self, call: &impl RestCall, answer: Answer, modern: bool) -> Result<Json, SessionError> {
        let (address, user) = (self.address(), self.session.credentials.user.clone());
        match answer.status {
            200..=299 => self.offload(move |work| tags::content(&answer, modern, work)).await,
            // A session that was just begun, or had to be had again.
            401 => Err(self.session.tags_refused()),
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

    fn passed(&self, method: &'static str) -> SessionError {
        self.session.passed(method, self.budget)
    }

    /// The connection, or a new one where the old one has ended.
    async fn pipe(&mut self) -> Result<Http1, ProbeError> {
        match self.live.pipe.take() {
            Some(pipe) if !pipe.is_closed() => Ok(pipe),
            _ => {
                let endpoint = &self.session.endpoint;
                open(endpoint, &connect::Deadline::start(endpoint, self.budget)).await
            }
        }
    }

    /// The key of the session, and the account as the vCenter spells it.
    pub fn owner(&self) -> (String, String) {
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
