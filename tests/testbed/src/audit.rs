// SPDX-License-Identifier: Apache-2.0
//! What the API server was asked, by whom: its audit log.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result};
use kube::Client;
use serde_json::Value;

use crate::wait::{PATIENCE, Probe, until};

static MARKER: AtomicU64 = AtomicU64::new(0);
/// Far more than what is written while one request is answered. The log of a shared cluster has tens of megabytes.
const RECENT: u64 = 256 << 10;

/// A reader of the audit log.
#[derive(Clone)]
pub struct AuditLog {
    path: PathBuf,
    client: Client,
}

/// A place in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark(u64);

/// One request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Who asked.
    pub user: String,
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, …
    pub verb: String,
    /// The resource, plural; empty for addresses that are none, such as `/version`.
    pub resource: String,
    /// The subresource, such as `status`, or empty.
    pub subresource: String,
    /// The API group; empty for the core group.
    pub api_group: String,
    /// The namespace, or empty.
    pub namespace: String,
    /// The object's name, or empty.
    pub name: String,
    /// The answer's status code.
    pub code: u16,
    /// Whether a right was missing. Admission refuses with the same code.
    pub lacked_right: bool,
    /// The request's address.
    pub uri: String,
    /// The client's user agent.
    pub user_agent: String,
    /// When the request came in, RFC 3339.
    pub timestamp: String,
}

/// The requests of a time, in the log's order.
#[derive(Clone, Debug, Default)]
pub struct Requests(pub Vec<Entry>);

impl AuditLog {
    pub(crate) fn new(path: PathBuf, client: Client) -> Self {
        Self { path, client }
    }

    /// The log file.
    pub fn path(&self) -> &std::path::Path {
        &self.path
    }

    /// Waits until everything asked so far is in the log.
    pub async fn settle(&self) -> Result<()> {
        // Two, one after the other: the second is written after all that was answered before the first was asked.
        for _ in 0..2 {
            let marker = format!("testbed-marker={}-{}", std::process::id(), MARKER.fetch_add(1, Ordering::Relaxed));
            let request = http::Request::get(format!("/livez/ping?{marker}")).body(Vec::new())?;
            self.client.request_text(request).await?;
            let start = self.length();
            until("a marker in the audit log", PATIENCE, async || {
                let from = Mark(start.saturating_sub(RECENT));
                Ok(Probe::when(self.read(from)?.0.contains(&marker), "not there"))
            })
            .await?;
        }
        Ok(())
    }

    /// Settles, and gives the place to count from.
    pub async fn mark(&self) -> Result<Mark> {
        self.settle().await?;
        Ok(self.here())
    }

    /// Settles, and gives the requests since the mark.
    pub async fn since(&self, mark: Mark) -> Result<Requests> {
        self.settle().await?;
        self.entries(mark)
    }

    /// What is in the log since the mark at this moment; requests under way may be missing.
    pub fn so_far(&self, mark: Mark) -> Result<Requests> {
        self.entries(mark)
    }

    /// Settles, and gives all requests that `filter` wants.
    pub async fn requests(&self, filter: impl Fn(&Entry) -> bool) -> Result<Requests> {
        Ok(self.since(Mark(0)).await?.only(filter))
    }

    /// The place where the log ends at this moment; requests under way may be missing.
    pub fn here(&self) -> Mark {
        let from = Mark(self.length().saturating_sub(RECENT));
        self.read(from).map_or(from, |(_, end)| end)
    }

    fn length(&self) -> u64 {
        std::fs::metadata(&self.path).map_or(0, |meta| meta.len())
    }

    /// The whole lines from a place on, and the place behind them.
    fn read(&self, mark: Mark) -> Result<(String, Mark)> {
        use std::io::{Read, Seek, SeekFrom};
        let mut file = std::fs::File::open(&self.path).with_context(|| format!("audit log {}", self.path.display()))?;
        file.seek(SeekFrom::Start(mark.0))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        bytes.truncate(end);
        Ok((String::from_utf8_lossy(&bytes).into_owned(), Mark(mark.0 + end as u64)))
    }

    fn entries(&self, mark: Mark) -> Result<Requests> {
        let (text, _) = self.read(mark)?;
        let events = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        // A watch has a line when it begins and one when it ends; the beginning counts.
        let counted = events.filter(|event| event["stage"] == "ResponseStarted" || event["verb"] != "watch");
        Ok(Requests(counted.filter_map(|event| Entry::read(&event)).collect()))
    }
}

impl fmt::Debug for AuditLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuditLog").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Entry {
    fn read(event: &Value) -> Option<Self> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let object = &event["objectRef"];
        let uri = text(&event["requestURI"]);
        // Other long requests, such as logs, begin and end too: count the end. Markers are ours.
        let long = event["stage"] == "ResponseStarted" && event["verb"] != "watch";
        if long || uri.contains("testbed-marker=") {
            return None;
        }
        Some(Self {
            user: text(&event["user"]["username"]),
            verb: text(&event["verb"]),
            resource: text(&object["resource"]),
            subresource: text(&object["subresource"]),
            api_group: text(&object["apiGroup"]),
            namespace: text(&object["namespace"]),
            name: text(&object["name"]),
            code: event["responseStatus"]["code"]
                .as_u64()
                .and_then(|code| u16::try_from(code).ok())
                .unwrap_or_default(),
            lacked_right: event["annotations"]["authorization.k8s.io/decision"] == "forbid",
            uri,
            user_agent: text(&event["userAgent"]),
            timestamp: text(&event["requestReceivedTimestamp"]),
        })
    }

    /// The request's target in one line: `deployments.apps/scale kube-system/name`, or the address.
    pub fn object(&self) -> String {
        if self.resource.is_empty() {
            return self.uri.clone();
        }
        let mut out = self.resource.clone();
        for (mark, part) in [('.', &self.api_group), ('/', &self.subresource)] {
            if !part.is_empty() {
                out.push(mark);
                out.push_str(part);
            }
        }
        match (self.namespace.as_str(), self.name.as_str()) {
            ("", "") => {}
            ("", name) => out.push_str(&format!(" {name}")),
            (namespace, "") => out.push_str(&format!(" {namespace}")),
            (namespace, name) => out.push_str(&format!(" {namespace}/{name}")),
        }
        out
    }

    /// Whether it only tried what a write would do.
    pub fn tries(&self) -> bool {
        self.uri.contains("dryRun=All")
    }

    /// Whether it could have changed something: neither tries nor questions about one's own rights do.
    pub fn writes(&self) -> bool {
        !self.tries()
            && !self.resource.starts_with("selfsubject")
            && matches!(self.verb.as_str(), "create" | "update" | "patch" | "delete" | "deletecollection")
    }
}

impl Requests {
    /// Those that `filter` wants.
    #[must_use]
    pub fn only(self, filter: impl Fn(&Entry) -> bool) -> Self {
        Self(self.0.into_iter().filter(|entry| filter(entry)).collect())
    }

    /// Those of one user.
    #[must_use]
    pub fn of(self, user: &str) -> Self {
        self.only(|entry| entry.user == user)
    }

    /// Those that could have changed something.
    #[must_use]
    pub fn writes(self) -> Self {
        self.only(Entry::writes)
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many for each user, verb and object.
    pub fn counts(&self) -> BTreeMap<(String, String, String), usize> {
        let mut counts = BTreeMap::new();
        for entry in &self.0 {
            *counts.entry((entry.user.clone(), entry.verb.clone(), entry.object())).or_insert(0) += 1;
        }
        counts
    }
}

impl fmt::Display for Requests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = self.counts();
        let users = counts.keys().map(|key| key.0.len()).max().unwrap_or(4).max(4);
        writeln!(f, "{:>6}  {:users$}  {:8}  OBJECT", "COUNT", "USER", "VERB")?;
        for ((user, verb, object), count) in &counts {
            writeln!(f, "{count:>6}  {user:users$}  {verb:8}  {object}")?;
        }
        writeln!(f, "{:>6}  in all", self.len())
    }
}
