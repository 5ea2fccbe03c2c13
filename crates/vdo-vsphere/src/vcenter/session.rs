// SPDX-License-Identifier: Apache-2.0
//! A read-only login session with a vCenter: login, renewal, logout, and the reads of inventory, privileges, policies, volumes and tags.

use super::call::Caller;
use super::http::{Bounds, Http1};
use super::identifiers::{identifier, reference};
use super::inspection_limits::Budget;
use super::requests::{Method, VIM, element, is_sendable};
use super::tags::{self, Call, RestCall as _};
use super::{Endpoint, Limits, MAX_ANSWER, Pool, connect, file_service, inventory, policies, privileges, service_content, tls, volumes};
use crate::vsphere::{
    Claim, Granted, Inventory, ManagedObject, Policy, ProbeError, ProbeStage, RegisteredVolume, RegisteredVolumes, SessionError, Tagging,
};
use hyper::header::{HeaderName, HeaderValue};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::timeout;
use vdo_api::facts::Credentials;
use vdo_api::types::plain;

/// How long the end of a session may take, which no caller waits for: the vCenter ends it by itself later.
const LOGOUT: Limits = Limits {
    call: Duration::from_secs(3),
    whole: Duration::from_secs(3),
    answer: 64 << 10,
    received: 128 << 10,
    elements: 0,
};

/// A session with a vCenter, under one account. It only reads.
///
/// Guarantees: it logs in once when it is opened, and once more each time that the vCenter has ended the session in between; a
/// login that was refused is never tried again by the same session. Callers wait for each other, so there is one login for all of
/// them. What is read counts against the budget of the inspection that reads it. The session is logged out when this is dropped inside a runtime, or by
/// [`Session::close`], which waits for it.
pub struct Session {
    /// Where the vCenter is.
    pub endpoint: Endpoint,
    /// The account of the session.
    pub credentials: Credentials,
    /// The connection; `None` once the session was closed or refused.
    pub live: Mutex<Option<Live>>,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Session({} at {})", self.credentials.user, self.endpoint.address())
    }
}

/// A session that the vCenter knows.
pub struct Live {
    pub pipe: Option<Http1>,
    pub cookie: Option<HeaderValue>,
    /// The session's own key, and the account as the vCenter spells it.
    pub owner: (String, String),
    pub service: Service,
    /// The session of the REST service, once there was something to ask of it.
    pub rest: Option<Rest>,
}

/// A session of the REST service.
#[derive(Clone)]
pub struct Rest {
    pub id: HeaderValue,
    /// Whether it speaks the newer of the two dialects.
    pub modern: bool,
}

/// Where things are in this vCenter.
pub struct Service {
    pub sessions: ManagedObject,
    pub collector: ManagedObject,
    pub views: ManagedObject,
    pub root: ManagedObject,
    pub authorization: ManagedObject,
    /// The instance UUID of this vCenter.
    pub instance: String,
}

/// Asks; once more when the first time showed that the session or the connection had ended in between.
macro_rules! twice {
    ($session:expr, $budget:expr, $caller:ident => $ask:expr) => {{
        let mut live = $session.live.lock().await;
        let $caller = &mut $session.caller(&mut live, $budget)?;
        match $ask.await {
            Ok(answer) => Ok(answer),
            Err(error) => {
                $session.recover(&mut live, $budget, error).await?;
                let $caller = &mut $session.caller(&mut live, $budget)?;
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
    pub async fn open(endpoint: Endpoint, credentials: Credentials, budget: &Budget) -> Result<Self, SessionError> {
        let session = Self {
            endpoint,
            credentials,
            live: Mutex::new(None),
        };
        *session.live.lock().await = Some(session.login(budget).await?);
        Ok(session)
    }

    /// Everything that machines, hosts and datastores lie in, read in pages of one query.
    ///
    /// # Errors
    /// When the vCenter does not answer as it should, or has ended the session for good.
    pub async fn inventory(&self, budget: &Budget) -> Result<Inventory, SessionError> {
        twice!(self, budget, caller => inventory::read(caller))
    }

    /// Hosts and datastores with what they lie in, and no machines, read with one request where they fit in a page.
    ///
    /// # Errors
    /// When the vCenter does not answer as it should, or has ended the session for good.
    pub async fn hosts_and_datastores(&self, budget: &Budget) -> Result<Inventory, SessionError> {
        twice!(self, budget, caller => inventory::hosts_and_datastores(caller))
    }

    /// Adds what is only read of some machines: the kinds of their SCSI controllers.
    ///
    /// # Errors
    /// When the vCenter does not answer as it should, or has ended the session for good.
    pub async fn look_into(&self, inventory: &mut Inventory, machines: &[usize], budget: &Budget) -> Result<(), SessionError> {
        twice!(self, budget, caller => inventory::look_into(caller, inventory, machines))
    }

    /// Which of these privileges the account has on these objects; with `everything`, also all that it has there.
    ///
    /// # Errors
    /// When the vCenter does not answer as it should, or has ended the session for good.
    pub async fn granted(
        &self,
        questions: &[(Vec<ManagedObject>, Vec<String>)],
        everything: bool,
        budget: &Budget,
    ) -> Result<Granted, SessionError> {
        twice!(self, budget, caller => privileges::ask(caller, questions, everything))
    }

    /// The storage policies.
    ///
    /// # Errors
    /// When the vCenter does not answer as it should, or has ended the session for good.
    pub async fn policies(&self, budget: &Budget) -> Result<Vec<Policy>, SessionError> {
        twice!(self, budget, caller => policies::read(caller))
    }

    /// Whether a cluster of the inventory has the file service of vSAN; `None` where there are too many to ask.
    ///
    /// # Errors
    /// When the vCenter does not answer as it should, or has ended the session for good.
    pub async fn file_service(&self, inventory: &Inventory, budget: &Budget) -> Result<Option<bool>, SessionError> {
        twice!(self, budget, caller => file_service::read(caller, inventory))
    }

    /// The volumes that are registered under a cluster id, and how many of them the cluster does not know.
    ///
    /// # Errors
    /// When the vCenter does not answer as it should, or has ended the session for good.
    pub async fn registered_volumes(&self, claim: &Arc<Claim>, budget: &Budget) -> Result<RegisteredVolumes, SessionError> {
        twice!(self, budget, caller => volumes::read(caller, claim))
    }

    /// Every volume that is registered under a cluster id.
    ///
    /// # Errors
    /// When the vCenter does not answer as it should, or has ended the session for good.
    pub async fn volumes(&self, cluster_id: &str, budget: &Budget) -> Result<Vec<RegisteredVolume>, SessionError> {
        twice!(self, budget, caller => volumes::list(caller, cluster_id))
    }

    /// How many volumes of which kind are registered under a cluster id.
    ///
    /// # Errors
    /// When the vCenter does not answer as it should, or has ended the session for good.
    pub async fn volume_kinds(&self, cluster_id: &str, budget: &Budget) -> Result<BTreeMap<&'static str, u64>, SessionError> {
        twice!(self, budget, caller => volumes::kinds(caller, cluster_id))
    }

    /// Which of these tag categories exist, and which of their tags are on these objects. The first time it logs in to the REST
    /// service; a refusal there is one of the account.
    ///
    /// # Errors
    /// When the vCenter does not answer as it should, or has ended the session for good.
    pub async fn tags(&self, categories: &BTreeSet<&str>, objects: &[ManagedObject], budget: &Budget) -> Result<Tagging, SessionError> {
        twice!(self, budget, caller => tags::read(caller, categories, objects))
    }

    /// What is reported of tags while no login is made for them.
    #[must_use]
    pub fn tags_refused(&self) -> SessionError {
        SessionError::TagsRefused {
            address: self.endpoint.address(),
            user: self.credentials.user.clone(),
        }
    }

    /// The vCenter does not know the session any more.
    pub fn lost(&self) -> SessionError {
        SessionError::Lost {
            address: self.endpoint.address(),
            user: self.credentials.user.clone(),
        }
    }

    /// Makes the session usable after an error, if it can be: by one more login, or because only a connection was lost.
    async fn recover(&self, live: &mut Option<Live>, budget: &Budget, error: SessionError) -> Result<(), SessionError> {
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
        match self.login(budget).await {
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

    /// Makes calls in this session.
    ///
    /// # Errors
    /// When the session was closed or refused.
    pub fn caller<'a>(&'a self, live: &'a mut Option<Live>, budget: &'a Budget) -> Result<Caller<'a>, SessionError> {
        let live = live.as_mut().ok_or_else(|| self.lost())?;
        Ok(Caller {
            session: self,
            live,
            budget,
        })
    }

    async fn login(&self, budget: &Budget) -> Result<Live, SessionError> {
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
        let (mut pipe, service) = self.connect(budget).await?;
        let arguments = element("userName", user) + &element("password", password.expose());
        let request = Method::Login.envelope(&service.sessions, &arguments);
        let bounds = Bounds {
            answer: MAX_ANSWER,
            budget,
        };
        let answer = budget
            .within(&self.endpoint, pipe.post(&self.endpoint, &VIM, request, None, bounds))
            .await?
            .ok_or_else(|| self.passed(Method::Login.name(), budget))??;
        let cookie = answer.cookie.clone();
        let session = self
            .response(Method::Login, answer, budget)
            .await?
            .map_err(|fault| fault.of_login(address, user))?;
        let own = |name: &str| session.child("returnval").map(|own| own.text_of(name)).unwrap_or_default();
        let key = match own("key") {
            key if key.is_empty() => key,
            key => identifier(&key).map_err(|because| self.malformed(because))?,
        };
        Ok(Live {
            pipe: Some(pipe),
            cookie,
            owner: (key, plain(&own("userName"))),
            service,
            rest: None,
        })
    }

    /// A connection to what is a vCenter by its certificate and its own words, before a credential is sent.
    async fn connect(&self, budget: &Budget) -> Result<(Http1, Service), SessionError> {
        let endpoint = &self.endpoint;
        let clock = connect::Deadline::start(endpoint, budget);
        let mut pipe = open(endpoint, &clock).await?;
        let bounds = Bounds {
            answer: MAX_ANSWER,
            budget,
        };
        let answer = clock
            .within(
                ProbeStage::IsVcenter,
                pipe.post(endpoint, &VIM, service_content::RETRIEVE_SERVICE_CONTENT, None, bounds),
            )
            .await??;
        let (about, content) = service_content::about(endpoint, budget, answer).await?;
        let part = |name: &str| {
            let found = content
                .child(name)
                .ok_or_else(|| self.malformed(format!("it contains no reference to the {name}")))?;
            reference(found).map_err(|because| self.malformed(because))
        };
        let service = Service {
            sessions: part("sessionManager")?,
            collector: part("propertyCollector")?,
            views: part("viewManager")?,
            root: part("rootFolder")?,
            authorization: part("authorizationManager")?,
            instance: about.instance_uuid,
        };
        Ok((pipe, service))
    }

    /// The vCenter answered with what is not an answer.
    pub fn malformed(&self, because: String) -> ProbeError {
        ProbeError::Malformed {
            address: self.endpoint.address(),
            because,
        }
    }

    /// A call took longer than one may take.
    pub fn passed(&self, method: &'static str, budget: &Budget) -> SessionError {
        SessionError::TimedOut {
            address: self.endpoint.address(),
            method,
            after: budget.limits().call,
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
pub async fn open(endpoint: &Endpoint, clock: &connect::Deadline<'_>) -> Result<Http1, ProbeError> {
    let config = tls::Config::new(endpoint)?;
    let stream = connect::connect(endpoint, clock).await?;
    let (stream, _) = tls::handshake(endpoint, clock, config, stream).await?;
    clock.within(ProbeStage::IsVcenter, Http1::open(endpoint, stream)).await?
}

async fn logout(endpoint: Endpoint, live: Live) {
    let budget = Budget::new(LOGOUT, &Pool::new(LOGOUT.received));
    let bounds = Bounds {
        answer: LOGOUT.answer,
        budget: &budget,
    };
    let end = async {
        let mut pipe = match live.pipe {
            Some(pipe) if !pipe.is_closed() => pipe,
            _ => open(&endpoint, &connect::Deadline::start(&endpoint, &budget)).await?,
        };
        if let Some(rest) = live.rest {
            let headers = [(HeaderName::from_static("vmware-api-session-id"), Some(rest.id))];
            let path = Call::Logout.path(rest.modern);
            pipe.send(&endpoint, Call::Logout.method(), &path, headers, "", bounds).await?;
        }
        let request = Method::Logout.envelope(&live.service.sessions, "");
        pipe.post(&endpoint, &VIM, request, live.cookie.as_ref(), bounds).await
    };
    match timeout(LOGOUT.whole, end).await {
        Ok(Ok(_)) => {}
        Ok(Err(error)) => tracing::debug!(%error, "a session could not be ended; the vCenter ends it later"),
        Err(_) => tracing::debug!(server = %endpoint.address(), "a session could not be ended in time"),
    }
}
