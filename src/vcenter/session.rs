//! A login and what can be asked under it.

use super::caller::Caller;
use super::exchange::{Answer, Pipe};
use super::method::{Method, VIM, element, is_sendable, reference};
use super::refusal::{Fault, SessionError};
use super::soap::SOAP;
use super::tags::{self, Call};
use super::xml::{self, Element};
use super::{Endpoint, MAX_ANSWER, ProbeError, Stage, inventory, plain, policies, privileges, soap, tls, wire};
use crate::facts::{Credentials, Granted, Inventory, ManagedObject, Policy, Tagging};
use hyper::header::{HeaderName, HeaderValue};
use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::timeout;

/// How long the end of a session may take: the vCenter ends it by itself later.
const LOGOUT: Duration = Duration::from_secs(3);

/// A session with a vCenter, under one account. It only reads.
///
/// Guarantees: it logs in once when it is opened, and once more each time that the vCenter has ended the session in between; a
/// login that was refused is never tried again by the same session. Callers wait for each other, so there is one login for all of
/// them. Every call has a deadline. The session is logged out when this is dropped inside a runtime, or by
/// [`Session::close`], which waits for it.
pub struct Session {
    pub(super) endpoint: Endpoint,
    pub(super) credentials: Credentials,
    pub(super) deadline: Duration,
    live: Mutex<Option<Live>>,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Session({} at {})", self.credentials.user, self.endpoint.address())
    }
}

/// A session that the vCenter knows.
pub(super) struct Live {
    pub(super) pipe: Option<Pipe>,
    pub(super) cookie: Option<HeaderValue>,
    /// The session's own key, and the account as the vCenter spells it.
    pub(super) owner: (String, String),
    pub(super) service: Service,
    /// The session of the REST service, once there was something to ask of it.
    pub(super) rest: Option<Rest>,
}

/// A session of the REST service.
#[derive(Clone)]
pub(super) struct Rest {
    pub(super) id: HeaderValue,
    /// Whether it speaks the newer of the two dialects.
    pub(super) modern: bool,
}

/// Where things are in this vCenter.
pub(super) struct Service {
    sessions: ManagedObject,
    pub(super) collector: ManagedObject,
    pub(super) views: ManagedObject,
    pub(super) root: ManagedObject,
    pub(super) authorization: ManagedObject,
}

/// Asks; once more when the first time showed that the session or the connection had ended in between.
macro_rules! twice {
    ($session:expr, $caller:ident => $ask:expr) => {{
        let mut live = $session.live.lock().await;
        let $caller = &mut $session.caller(&mut live)?;
        match $ask.await {
            Ok(answer) => Ok(answer),
            Err(error) => {
                $session.recover(&mut live, error).await?;
                let $caller = &mut $session.caller(&mut live)?;
                $ask.await
            }
        }
    }};
}

impl Session {
    /// Logs in. No request is made for an empty user name or password.
    ///
    /// # Errors
    /// When the vCenter cannot be reached, or does not accept the credentials.
    pub async fn open(endpoint: Endpoint, credentials: Credentials, deadline: Duration) -> Result<Self, SessionError> {
        let session = Self {
            endpoint,
            credentials,
            deadline,
            live: Mutex::new(None),
        };
        *session.live.lock().await = Some(session.login().await?);
        Ok(session)
    }

    /// Everything that machines, hosts and datastores lie in, read in pages of one query.
    ///
    /// # Errors
    /// When the vCenter does not answer as it should, or has ended the session for good.
    pub async fn inventory(&self) -> Result<Inventory, SessionError> {
        twice!(self, caller => inventory::read(caller))
    }

    /// Adds what is only read of some machines: the kinds of their SCSI controllers.
    ///
    /// # Errors
    /// When the vCenter does not answer as it should, or has ended the session for good.
    pub async fn look_into(&self, inventory: &mut Inventory, machines: &[usize]) -> Result<(), SessionError> {
        twice!(self, caller => inventory::look_into(caller, inventory, machines))
    }

    /// Which of these privileges the account has on these objects; with `everything`, also all that it has there.
    ///
    /// # Errors
    /// When the vCenter does not answer as it should, or has ended the session for good.
    pub async fn granted(&self, questions: &[(Vec<ManagedObject>, Vec<String>)], everything: bool) -> Result<Granted, SessionError> {
        twice!(self, caller => privileges::ask(caller, questions, everything))
    }

    /// The storage policies.
    ///
    /// # Errors
    /// When the vCenter does not answer as it should, or has ended the session for good.
    pub async fn policies(&self) -> Result<Vec<Policy>, SessionError> {
        twice!(self, caller => policies::read(caller))
    }

    /// Which of these tag categories exist, and which of their tags are on these objects. The first time it logs in to the REST
    /// service; a refusal there is one of the account.
    ///
    /// # Errors
    /// When the vCenter does not answer as it should, or has ended the session for good.
    pub async fn tags(&self, categories: &BTreeSet<&str>, objects: &[ManagedObject]) -> Result<Tagging, SessionError> {
        twice!(self, caller => tags::read(caller, categories, objects))
    }

    /// What is told of tags while no login is made for them.
    #[must_use]
    pub fn tags_refused(&self) -> SessionError {
        SessionError::TagsRefused {
            address: self.endpoint.address(),
            user: self.credentials.user.clone(),
        }
    }

    /// Makes the session usable after an error, if it can be: by one more login, or because only a connection was lost.
    async fn recover(&self, live: &mut Option<Live>, error: SessionError) -> Result<(), SessionError> {
        match error {
            SessionError::Lost { .. } => {}
            // An idle connection may have been closed just now; the session outlives it.
            SessionError::Connection(ProbeError::Broken { .. }) if live.is_some() => return Ok(()),
            SessionError::Connection(ProbeError::Broken { .. }) => {}
            other => return Err(other),
        }
        tracing::info!(server = %self.endpoint.address(), user = self.credentials.user, "the session has ended; logging in again");
        // Without the old session: while it lives, it would be refused a second login. That of the service for tags is another one.
        let old = live.take();
        match self.login().await {
            Ok(new) => {
                let rest = old.and_then(|old| old.rest);
                *live = Some(Live { rest, ..new });
                Ok(())
            }
            Err(error) => {
                if let Some(old) = old.filter(|old| old.rest.is_some()) {
                    logout(self.endpoint.clone(), old).await;
                }
                Err(error)
            }
        }
    }

    /// Ends the session.
    pub async fn close(&self) {
        if let Some(live) = self.live.lock().await.take() {
            logout(self.endpoint.clone(), live).await;
        }
    }

    fn caller<'a>(&'a self, live: &'a mut Option<Live>) -> Result<Caller<'a>, SessionError> {
        let lost = || SessionError::Lost {
            address: self.endpoint.address(),
            user: self.credentials.user.clone(),
        };
        let live = live.as_mut().ok_or_else(lost)?;
        Ok(Caller { session: self, live })
    }

    async fn login(&self) -> Result<Live, SessionError> {
        let Credentials { user, password } = &self.credentials;
        let address = self.endpoint.address();
        if user.is_empty() || password.is_empty() {
            return Err(SessionError::InvalidLogin {
                address,
                user: user.clone(),
            });
        }
        if !is_sendable(user) || !is_sendable(password.expose()) {
            let user = user.clone();
            return Err(SessionError::Unsendable { address, user });
        }
        let (mut pipe, service) = self.connect().await?;
        let arguments = element("userName", user) + &element("password", password.expose());
        let request = Method::Login.envelope(&service.sessions, &arguments, "");
        let answer = timeout(self.deadline, pipe.post(&self.endpoint, &VIM, request, None, MAX_ANSWER))
            .await
            .map_err(|_| self.passed(Method::Login.name()))??;
        let session = self
            .response(Method::Login, &answer, &mut |_| {})?
            .map_err(|fault| fault.of_login(address, user))?;
        let own = |name: &str| session.child("returnval").map(|own| own.text_of(name)).unwrap_or_default();
        Ok(Live {
            pipe: Some(pipe),
            cookie: answer.cookie,
            owner: (own("key"), plain(&own("userName"))),
            service,
            rest: None,
        })
    }

    /// A connection to what is a vCenter by its certificate and its own words, before a credential is sent.
    async fn connect(&self) -> Result<(Pipe, Service), SessionError> {
        let endpoint = &self.endpoint;
        let clock = wire::Clock::start(endpoint, self.deadline);
        let mut pipe = open(endpoint, &clock).await?;
        let answer = clock
            .within(
                Stage::IsVcenter,
                pipe.post(endpoint, &VIM, soap::RETRIEVE_SERVICE_CONTENT, None, MAX_ANSWER),
            )
            .await??;
        soap::about(endpoint, &answer)?;
        let content = self.response(Method::RetrievePropertiesEx, &answer, &mut |_| {})?;
        let content = content.map_err(|fault| fault.of_call(endpoint.address(), "", "RetrieveServiceContent"))?;
        let part = |name: &str| {
            let found = content.child("returnval").and_then(|content| content.child(name));
            found.map(reference).ok_or_else(|| ProbeError::Malformed {
                address: endpoint.address(),
                because: format!("it does not say where its {name} is"),
            })
        };
        let service = Service {
            sessions: part("sessionManager")?,
            collector: part("propertyCollector")?,
            views: part("viewManager")?,
            root: part("rootFolder")?,
            authorization: part("authorizationManager")?,
        };
        Ok((pipe, service))
    }

    /// The element of the response, or the fault in its place.
    /// What stands in a long list goes to `each` and not into the element.
    pub(super) fn response(
        &self,
        method: Method,
        answer: &Answer,
        each: &mut dyn FnMut(Element),
    ) -> Result<Result<Element, Fault>, ProbeError> {
        let address = || self.endpoint.address();
        let malformed = |because: String| ProbeError::Malformed {
            address: address(),
            because,
        };
        let status = |fault| ProbeError::Status {
            address: address(),
            status: answer.status,
            fault,
        };
        // A fault comes as 500; everything else that is not 200 does not come from the vCenter's SOAP service.
        if answer.status != 200 && answer.status != 500 {
            return Err(status(None));
        }
        let text = std::str::from_utf8(&answer.body).map_err(|_| malformed("it is not UTF-8 text".to_owned()))?;
        let tree = match xml::parse_each(text, method.list(), each) {
            Ok(tree) => tree,
            Err(_) if answer.status == 500 => return Err(status(None)),
            Err(because) => return Err(malformed(because)),
        };
        let body = tree
            .children
            .into_iter()
            .find(|child| child.is(SOAP, "Body"))
            .ok_or_else(|| malformed("its answer is not SOAP".to_owned()))?;
        let first = body
            .children
            .into_iter()
            .next()
            .ok_or_else(|| malformed(format!("its answer to {} is empty", method.name())))?;
        if first.is(SOAP, "Fault") {
            let fault = fault(&first);
            let text = self.credentials.password.hidden_in(&fault.text);
            return Ok(Err(Fault { text, ..fault }));
        }
        if first.namespace != method.place().namespace || !first.name.ends_with("Response") {
            return Err(malformed(format!("its answer to {} is another", method.name())));
        }
        Ok(Ok(first))
    }

    pub(super) fn passed(&self, method: &'static str) -> SessionError {
        SessionError::TimedOut {
            address: self.endpoint.address(),
            method,
            after: self.deadline,
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if let Some(live) = self.live.get_mut().take()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            runtime.spawn(logout(self.endpoint.clone(), live));
        }
    }
}

/// A connection that is judged and not used yet.
pub(super) async fn open(endpoint: &Endpoint, clock: &wire::Clock) -> Result<Pipe, ProbeError> {
    let config = tls::Config::new(endpoint)?;
    let stream = wire::connect(endpoint, clock).await?;
    let (stream, _) = tls::handshake(endpoint, clock, config, stream).await?;
    clock.within(Stage::IsVcenter, Pipe::open(endpoint, stream)).await?
}

async fn logout(endpoint: Endpoint, live: Live) {
    let end = async {
        let mut pipe = match live.pipe {
            Some(pipe) if !pipe.is_closed() => pipe,
            _ => open(&endpoint, &wire::Clock::start(&endpoint, LOGOUT)).await?,
        };
        if let Some(rest) = live.rest {
            let headers = [(HeaderName::from_static("vmware-api-session-id"), Some(rest.id))];
            let path = Call::Logout.path(rest.modern);
            pipe.send(&endpoint, Call::Logout.method(), &path, headers, "", MAX_ANSWER).await?;
        }
        let request = Method::Logout.envelope(&live.service.sessions, "", "");
        pipe.post(&endpoint, &VIM, request, live.cookie.as_ref(), MAX_ANSWER).await
    };
    match timeout(LOGOUT, end).await {
        Ok(Ok(_)) => {}
        Ok(Err(error)) => tracing::debug!(%error, "a session could not be ended; the vCenter ends it by itself"),
        Err(_) => tracing::debug!(server = %endpoint.address(), "a session could not be ended in time"),
    }
}

/// The type of a fault is that of its detail; the element's own name says it where the type is missing.
fn fault(element: &Element) -> Fault {
    let detail = element.child("detail").and_then(|detail| detail.children.first());
    let kind = detail.map_or_else(String::new, |detail| {
        let kind = if detail.xsi_type.is_empty() {
            &detail.name
        } else {
            &detail.xsi_type
        };
        kind.strip_suffix("Fault").unwrap_or(kind).to_owned()
    });
    Fault {
        kind,
        text: element.text_of("faultstring"),
    }
}
