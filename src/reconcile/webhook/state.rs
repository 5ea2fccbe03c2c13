//! What is kept of the certificate: a Secret beside the VDOConfig, which only the operator reads (pure).

use crate::manifest::Object;
use crate::types::Secret;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

/// The Secret.
pub const SECRET: &str = "vdo-webhook-certificate";

/// A certificate authority and the one certificate that it ever signed. Its own key is thrown away, so nobody can sign
/// another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair {
    /// The certificate authority, PEM.
    pub authority: String,
    /// The serving certificate, PEM.
    pub certificate: String,
    /// Its key, PEM.
    pub key: Secret,
}

/// Where the rotation stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    /// What the webhook serves with.
    pub current: Pair,
    /// What it will serve with: its authority is trusted already.
    pub next: Option<Pair>,
    /// The authority of what it served with before, trusted until nothing serves with it.
    pub previous: Option<String>,
    /// When this state was reached.
    pub since: Timestamp,
}

impl State {
    /// All authorities that the API server has to trust, PEM.
    #[must_use]
    pub fn bundle(&self) -> String {
        let next = self.next.as_ref().map(|next| next.authority.as_str());
        let all = [Some(self.current.authority.as_str()), next, self.previous.as_deref()];
        all.into_iter().flatten().collect()
    }

    /// Reads the Secret. `None` when a part of it is missing, which is the same as having none.
    #[must_use]
    pub fn read(secret: &Object) -> Option<Self> {
        let text = |key: &str| {
            let bytes = STANDARD.decode(secret.text(&format!("/data/{key}"))).ok()?;
            String::from_utf8(bytes).ok().filter(|text| !text.is_empty())
        };
        let pair = |prefix: &str| {
            Some(Pair {
                authority: text(&format!("{prefix}ca.crt"))?,
                certificate: text(&format!("{prefix}tls.crt"))?,
                key: Secret::new(text(&format!("{prefix}tls.key"))?),
            })
        };
        Some(Self {
            current: pair("")?,
            next: pair("next-"),
            previous: text("previous-ca.crt"),
            since: text("since")?.parse().ok()?,
        })
    }

    /// The Secret. It goes with the VDOConfig.
    #[must_use]
    pub fn write(&self, namespace: &str, owner: &Value) -> Value {
        let mut data = Map::new();
        let mut put = |key: String, text: &str| data.insert(key, STANDARD.encode(text).into());
        for (prefix, pair) in [("", Some(&self.current)), ("next-", self.next.as_ref())] {
            let Some(pair) = pair else { continue };
            put(format!("{prefix}ca.crt"), &pair.authority);
            put(format!("{prefix}tls.crt"), &pair.certificate);
            put(format!("{prefix}tls.key"), pair.key.expose());
        }
        if let Some(previous) = &self.previous {
            put("previous-ca.crt".into(), previous);
        }
        put("since".into(), &self.since.to_string());
        json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "name": SECRET,
                "namespace": namespace,
                "labels": {"app.kubernetes.io/managed-by": "vdo"},
                "ownerReferences": [owner],
            },
            "type": "Opaque",
            "data": data,
        })
    }
}
