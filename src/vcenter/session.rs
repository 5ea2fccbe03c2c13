//! A login and what can be asked under it.

use super::exchange::{Answer, Pipe};
use super::method::{Method, element};
use super::refusal::{Fault, SessionError};
use super::soap::{SOAP, VIM};
use super::xml::{self, Element};
use super::{Endpoint, MAX_ANSWER, ProbeError, Stage, inventory, soap, tls, wire};
use crate::facts::{Credentials, Inventory};
use hyper::header::HeaderValue;
use std::fmt;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::timeout;

/// The inventory of a large vCenter comes in pages of a few megabytes; more than this is not from a vCenter.
const MAX_PAGE: usize = 64 << 20;

/// How long the end of a session may take: the vCenter ends it by itself later.
const LOGOUT: Duration = Duration::from_secs(3);

/// A reference to a managed object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Moref {
    pub(super) kind: String,
    pub(super) id: String,
}

impl Moref {
    pub(super) fn of(element: &Element) -> Self {
        Self {
            kind: element.kind.clone(),
            id: element.text.trim().to_owned(),
        }
    }

    pub(super) fn element(&self, name: &str) -> String {
        element(name, &self.id).replacen('>', &format!(" type=\"{}\">", self.kind), 1)
    }
}

/// A session with a vCenter, under one account. It only reads.
///
/// Guarantees: it logs in once when it is opened, and once more each time that the vCenter has ended the session in between; a
/// login that was refused is never tried again by the same session. Callers wait for each other, so there is one login for all of
/// them. Every call has a deadline. The session is logged out when this is dropped inside a runtime, or by
/// [`Session::close`], which waits for it.
pub struct Session {
    endpoint: Endpoint,
    credentials: Credentials,
    deadline: Duration,
    live: Mutex<Option<Live>>,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Session({} at {})", self.credentials.user, self.endpoint.address())
    }
}

/// A session that the vCenter knows.
struct Live {
    pipe: Option<Pipe>,
    cookie: Option<HeaderValue>,
    service: Service,
}

/// Where things are in this vCenter.
pub(super) struct Service {
    sessions: Moref,
    pub(super) collector: Moref,
    pub(super) views: Moref,
    pub(super) root: Moref,
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

    /// Datacenters, folders and machines, read in pages of one query.
    ///
    /// # Errors
    /// When the vCenter does not answer as it should, or has ended the session for good.
    pub async fn inventory(&self) -> Result<Inventory, SessionError> {
        let mut live = self.live.lock().await;
        let lost = || SessionError::Lost {
            address: self.endpoint.address(),
            user: self.credentials.user.clone(),
        };
        let first = inventory::read(&mut self.caller(live.as_mut().ok_or_else(lost)?)).await;
        match first {
            // Without the old session: while it lives, it would be refused a second login.
            Err(SessionError::Lost { .. }) => *live = None,
            // An idle connection may have been closed just now; the session outlives it.
            Err(SessionError::Connection(ProbeError::Broken { .. })) => {}
            other => return other,
        }
        if live.is_none() {
            tracing::info!(server = %self.endpoint.address(), user = self.credentials.user, "the session has ended; logging in again");
            *live = Some(self.login().await?);
        }
        inventory::read(&mut self.caller(live.as_mut().ok_or_else(lost)?)).await
    }

    /// Ends the session.
    pub async fn close(&self) {
        if let Some(live) = self.live.lock().await.take() {
            logout(self.endpoint.clone(), live).await;
        }
    }

    fn caller<'a>(&'a self, live: &'a mut Live) -> Caller<'a> {
        Caller { session: self, live }
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
        let (mut pipe, service) = self.connect().await?;
        let arguments = element("userName", user) + &element("password", password.expose());
        let request = Method::Login.envelope(&service.sessions, &arguments);
        let answer = timeout(self.deadline, pipe.post(&self.endpoint, request, None, MAX_ANSWER))
            .await
            .map_err(|_| self.passed(Method::Login))??;
        self.response(Method::Login, &answer)?
            .map_err(|fault| fault.of_login(address, user))?;
        Ok(Live {
            pipe: Some(pipe),
            cookie: answer.cookie,
            service,
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
                pipe.post(endpoint, soap::RETRIEVE_SERVICE_CONTENT, None, MAX_ANSWER),
            )
            .await??;
        soap::about(endpoint, &answer)?;
        let content = self.response(Method::RetrievePropertiesEx, &answer)?;
        let content = content.map_err(|fault| fault.of_call(endpoint.address(), "", "RetrieveServiceContent"))?;
        let part = |name: &str| {
            let found = content.child("returnval").and_then(|content| content.child(name));
            found.map(Moref::of).ok_or_else(|| ProbeError::Malformed {
                address: endpoint.address(),
                because: format!("it does not say where its {name} is"),
            })
        };
        let service = Service {
            sessions: part("sessionManager")?,
            collector: part("propertyCollector")?,
            views: part("viewManager")?,
            root: part("rootFolder")?,
        };
        Ok((pipe, service))
    }

    /// The element of the response, or the fault in its place.
    fn response(&self, method: Method, answer: &Answer) -> Result<Result<Element, Fault>, ProbeError> {
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
        let tree = match xml::parse(text) {
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
        if first.namespace != VIM || !first.name.ends_with("Response") {
            return Err(malformed(format!("its answer to {} is another", method.name())));
        }
        Ok(Ok(first))
    }

    fn passed(&self, method: Method) -> SessionError {
        SessionError::TimedOut {
            address: self.endpoint.address(),
            method: method.name(),
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

/// Makes calls within a session.
pub(super) struct Caller<'a> {
    session: &'a Session,
    live: &'a mut Live,
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

    /// One call. A connection that an exchange did not leave clean is not used again.
    pub(super) async fn call(&mut self, method: Method, this: &Moref, arguments: &str) -> Result<Element, SessionError> {
        let endpoint = &self.session.endpoint;
        let exchange = async {
            let mut pipe = match self.live.pipe.take() {
                Some(pipe) if !pipe.is_closed() => pipe,
                _ => open(endpoint, &wire::Clock::start(endpoint, self.session.deadline)).await?,
            };
            let request = method.envelope(this, arguments);
            let answer = pipe.post(endpoint, request, self.live.cookie.as_ref(), MAX_PAGE).await?;
            self.live.pipe = Some(pipe);
            Ok::<_, ProbeError>(answer)
        };
        let answer = timeout(self.session.deadline, exchange)
            .await
            .map_err(|_| self.session.passed(method))??;
        let user = &self.session.credentials.user;
        self.session
            .response(method, &answer)?
            .map_err(|fault| fault.of_call(endpoint.address(), user, method.name()))
    }
}

async fn open(endpoint: &Endpoint, clock: &wire::Clock) -> Result<Pipe, ProbeError> {
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
        let request = Method::Logout.envelope(&live.service.sessions, "");
        pipe.post(&endpoint, request, live.cookie.as_ref(), MAX_ANSWER).await
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
