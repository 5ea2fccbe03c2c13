// SPDX-License-Identifier: Apache-2.0
//! A proxy in front of the simulated vCenter, for what a real one does and the simulator does not: lock accounts, end sessions, refuse
//! unknown properties, and answer like a server that is broken, hostile or another server.
//!
//! It ends TLS with a certificate of its own, reads which method is called, and counts logins and sessions.

mod model;
mod rest;
mod rule;
mod serve;
mod text;
mod tls;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Result;

use crate::pki::{Authority, Leaf, Validity};
use crate::vcenter::{Logins, Vcenter};
use model::Model;
pub use model::{Lockout, Sessions};
pub use rule::{Act, Rule};
pub use text::fault;
pub use tls::Greeting;

/// How the proxy presents itself.
#[derive(Clone, Debug)]
pub struct SoapOptions {
    /// The names in its certificate.
    pub names: Vec<String>,
    /// When its certificate is valid.
    pub validity: Validity,
    /// Whether its certificate is signed by no one but itself.
    pub self_signed: bool,
    /// How it greets.
    pub greeting: Greeting,
    /// When it locks accounts; never, if not given.
    pub lockout: Option<Lockout>,
    /// Whether its REST service speaks the newer dialect, below `/api`, and no other.
    pub modern: bool,
}

impl Default for SoapOptions {
    fn default() -> Self {
        Self {
            names: vec!["127.0.0.1".into(), "localhost".into()],
            validity: Validity::Good,
            self_signed: false,
            greeting: Greeting::Tls,
            lockout: None,
            modern: false,
        }
    }
}

/// The running proxy. Dropping it ends it.
#[derive(Debug)]
pub struct SoapProxy {
    port: u16,
    ca: String,
    leaf: Leaf,
    state: Arc<State>,
    accepting: tokio::task::JoinHandle<()>,
}

/// What all its connections share.
#[derive(Debug)]
struct State {
    upstream: serve::Upstream,
    modern: bool,
    seen: Mutex<Seen>,
}

/// What one kind of client has done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Client {
    /// How often it tried to log in.
    pub logins: Logins,
    /// The sessions that it began and did not end.
    pub sessions: BTreeSet<String>,
}

/// What was seen, and what shall be done next.
#[derive(Debug, Default)]
struct Seen {
    rules: Vec<Rule>,
    calls: BTreeMap<String, u64>,
    logins: BTreeMap<String, Logins>,
    agents: BTreeSet<String>,
    /// What each user agent has done, by its name without the version.
    clients: BTreeMap<String, Client>,
    /// The only password of a user, where it is not as the vCenter has it.
    passwords: BTreeMap<String, String>,
    model: Model,
}

impl State {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SoapProxy {
    /// Starts one in front of a vCenter, on a port of its own.
    pub async fn start(vcenter: &Vcenter, options: SoapOptions) -> Result<Self> {
        let authority = Authority::new("testbed-proxy-ca")?;
        let names: Vec<&str> = options.names.iter().map(String::as_str).collect();
        let leaf = match options.self_signed {
            true => Authority::self_signed(&names, options.validity)?,
            false => authority.server(&names, options.validity)?,
        };
        let state = Arc::new(State {
            upstream: serve::Upstream::new(vcenter)?,
            modern: options.modern,
            seen: Mutex::new(Seen {
                model: Model::new(options.lockout),
                ..Seen::default()
            }),
        });
        let door = tls::Door::new(&leaf, options.greeting)?;
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await?;
        let port = listener.local_addr()?.port();
        let accepting = tokio::spawn(serve::accept(listener, door, state.clone()));
        Ok(Self {
            port,
            ca: authority.pem(),
            leaf,
            state,
            accepting,
        })
    }

    /// The host to connect to.
    pub fn host(&self) -> &'static str {
        "127.0.0.1"
    }

    /// The port to connect to.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The authority that signed its certificate.
    pub fn ca_pem(&self) -> &str {
        &self.ca
    }

    /// SHA-256 thumbprint of its certificate.
    pub fn thumbprint_sha256(&self) -> String {
        self.leaf.sha256()
    }

    /// SHA-1 thumbprint of its certificate.
    pub fn thumbprint_sha1(&self) -> String {
        self.leaf.sha1()
    }

    /// From now on this happens, too. The first rule that fits a call acts.
    pub fn rule(&self, rule: Rule) {
        self.state.seen().rules.push(rule);
    }

    /// Ends all rules.
    pub fn no_more_rules(&self) {
        self.state.seen().rules.clear();
    }

    /// How often each method was called; what is not a SOAP call stands there as `VERB /path`.
    pub fn calls(&self) -> BTreeMap<String, u64> {
        self.state.seen().calls.clone()
    }

    /// How often each user tried to log in, and with what success.
    pub fn logins(&self) -> BTreeMap<String, Logins> {
        self.state.seen().logins.clone()
    }

    /// The user agents that called.
    pub fn agents(&self) -> BTreeSet<String> {
        self.state.seen().agents.clone()
    }

    /// What the clients with this user agent have done; the name is what stands before the version.
    pub fn client(&self, agent: &str) -> Client {
        self.state.seen().clients.get(agent).cloned().unwrap_or_default()
    }

    /// From now on this is the only password of a user, of those that the vCenter knows. Sessions go on, as in a real one.
    pub fn set_password(&self, user: &str, password: &str) {
        self.state.seen().passwords.insert(user.into(), password.into());
    }

    /// The sessions that were begun and not ended.
    pub fn sessions(&self) -> Sessions {
        self.state.seen().model.sessions()
    }

    /// Ends every session, as an idle time does.
    pub fn end_sessions(&self) {
        let mut seen = self.state.seen();
        seen.model.end_sessions();
        seen.clients.values_mut().for_each(|client| client.sessions.clear());
    }

    /// The time in which failures count and locks last goes on by this much.
    pub fn pass(&self, time: Duration) {
        self.state.seen().model.pass(time);
    }
}

impl Drop for SoapProxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}
