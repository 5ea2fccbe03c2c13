// SPDX-License-Identifier: Apache-2.0
//! What a request asks for.

use http::{Method, Uri};

/// A request to the API server, by its address alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Call {
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete` or `deletecollection`.
    pub verb: &'static str,
    /// The API group; empty for the core group.
    pub group: String,
    /// The resource, plural; empty for addresses that are none, such as `/version`.
    pub resource: String,
    /// The subresource, such as `status`, or empty.
    pub subresource: String,
    /// The namespace, or empty.
    pub namespace: String,
    /// The object's name, or empty.
    pub name: String,
    /// Whether nothing is to be stored.
    pub dry_run: bool,
    /// Whether a list is asked for in pages, as a watch does before it begins.
    pub paged: bool,
    /// Which request it is since the proxy began to count; the first is 1.
    pub number: usize,
    /// Which write it is, if it is one that counts.
    pub write: Option<usize>,
}

impl Call {
    /// Reads a request line.
    pub(super) fn of(method: &Method, uri: &Uri) -> Self {
        let parts: Vec<&str> = uri.path().split('/').filter(|part| !part.is_empty()).collect();
        let (group, rest) = match parts.as_slice() {
            ["api", _, rest @ ..] => ("", rest),
            ["apis", group, _, rest @ ..] => (*group, rest),
            _ => return Self::default().asked(method, uri),
        };
        let (namespace, rest) = match rest {
            // A namespace itself, or its status; anything longer is something in it.
            ["namespaces", _] | ["namespaces", _, "status" | "finalize"] => ("", rest),
            ["namespaces", namespace, inner @ ..] => (*namespace, inner),
            _ => ("", rest),
        };
        let part = |at: usize| rest.get(at).copied().unwrap_or_default().to_owned();
        Self {
            group: group.to_owned(),
            namespace: namespace.to_owned(),
            resource: part(0),
            name: part(1),
            subresource: part(2),
            ..Self::default()
        }
        .asked(method, uri)
    }

    fn asked(mut self, method: &Method, uri: &Uri) -> Self {
        let has = |key: &str| {
            uri.query()
                .unwrap_or_default()
                .split('&')
                .any(|pair| pair.split('=').next() == Some(key))
        };
        let watches = uri
            .query()
            .unwrap_or_default()
            .split('&')
            .any(|pair| matches!(pair, "watch=true" | "watch=1"));
        self.dry_run = has("dryRun");
        self.paged = has("limit");
        self.verb = match *method {
            Method::GET if watches => "watch",
            Method::GET if self.name.is_empty() && !self.resource.is_empty() => "list",
            Method::POST => "create",
            Method::PUT => "update",
            Method::PATCH => "patch",
            Method::DELETE if self.name.is_empty() => "deletecollection",
            Method::DELETE => "delete",
            _ => "get",
        };
        self
    }

    /// Whether it stores something.
    pub fn writes(&self) -> bool {
        !self.dry_run
            && !self.resource.starts_with("selfsubject")
            && matches!(self.verb, "create" | "update" | "patch" | "delete" | "deletecollection")
    }

    /// Whether it is a write whose place in the order says something: a Lease is renewed by the clock, and asking for a token
    /// or for one's own rights stores nothing.
    pub(super) fn counts(&self) -> bool {
        self.writes() && self.resource != "leases" && self.subresource != "token" && self.group != "authorization.k8s.io"
    }

    /// In one line: `patch deployments.apps/status kube-system/name`.
    pub fn line(&self) -> String {
        let mut out = format!("{} {}", self.verb, self.resource);
        for (mark, part) in [('.', &self.group), ('/', &self.subresource), (' ', &self.namespace)] {
            if !part.is_empty() {
                out.push(mark);
                out.push_str(part);
            }
        }
        if !self.name.is_empty() {
            out.push(if self.namespace.is_empty() { ' ' } else { '/' });
            out.push_str(&self.name);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn api_call_each_address_is_parsed() {
        for (method, uri, line, writes) in [
            (Method::GET, "/version", "get ", false),
            (Method::GET, "/api/v1/nodes?limit=500", "list nodes", false),
            (Method::GET, "/api/v1/nodes/w-1", "get nodes w-1", false),
            (Method::GET, "/api/v1/pods?labelSelector=a%3Db&watch=true", "watch pods", false),
            (Method::GET, "/api/v1/namespaces/a/pods?watch=1", "watch pods a", false),
            (Method::PATCH, "/api/v1/namespaces/a?fieldManager=vdo", "patch namespaces a", true),
            (Method::PUT, "/api/v1/namespaces/a/finalize", "update namespaces/finalize a", true),
            (Method::GET, "/api/v1/namespaces/a/pods/p/log", "get pods/log a/p", false),
            (
                Method::PATCH,
                "/apis/apps/v1/namespaces/a/daemonsets/d/status?x=y",
                "patch daemonsets.apps/status a/d",
                true,
            ),
            (
                Method::PATCH,
                "/apis/apps/v1/namespaces/a/daemonsets/d?dryRun=All&force=true",
                "patch daemonsets.apps a/d",
                false,
            ),
            (
                Method::DELETE,
                "/apis/storage.k8s.io/v1/csidrivers/x",
                "delete csidrivers.storage.k8s.io x",
                true,
            ),
            (Method::DELETE, "/api/v1/namespaces/a/pods", "deletecollection pods a", true),
            (
                Method::POST,
                "/apis/events.k8s.io/v1/namespaces/a/events?",
                "create events.events.k8s.io a",
                true,
            ),
        ] {
            let call = Call::of(&method, &uri.parse().expect("an address"));
            assert_eq!((call.line().as_str(), call.writes()), (line, writes), "{uri}");
        }
    }
}
