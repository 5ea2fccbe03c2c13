// SPDX-License-Identifier: Apache-2.0
//! Reads and writes the Secret `vdo-webhook-certificate`: the current, next and previous certificate of the webhook, and its CA bundle.
//! The Secret is in the namespace of the VDOConfig, and only the operator reads it.

use crate::manifest::Object;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use vdo_api::types::Secret;

/// The name of the Secret.
pub const SECRET: &str = "vdo-webhook-certificate";

/// A certificate authority and the one certificate that it ever signed. The key of the authority is discarded, so no
/// other certificate can be signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair {
    /// The certificate authority, PEM.
    pub authority: String,
    /// The serving certificate, PEM.
    pub certificate: String,
    /// Its key, PEM.
    pub key: Secret,
}

/// The state of the rotation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    /// The pair that the webhook serves with.
    pub current: Pair,
    /// The pair that it will serve with: its authority is trusted already.
    pub next: Option<Pair>,
    /// The authority of the pair that it served with before, trusted until no pod serves with it.
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

    /// Reads the Secret. `None` when a part of it is missing; then it counts as missing.
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

    /// The Secret. It is deleted with the VDOConfig, its owner.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::certificate::issue;

    fn at(day: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + day * 86_400).expect("a time")
    }

    #[test]
    fn certificate_state_written_then_read_is_equal() {
        let pair = |day: i64| issue("service", "ns", at(day)).expect("a pair");
        let state = State {
            current: pair(0),
            next: Some(pair(1)),
            previous: Some(pair(2).authority),
            since: at(3),
        };
        let written = state.write("home", &json!({"uid": "u"}));
        assert_eq!(State::read(&Object::new(written.clone()).expect("an object")), Some(state.clone()));
        let (next, previous) = (
            &state.next.as_ref().expect("a pair").authority,
            state.previous.as_ref().expect("an authority"),
        );
        assert_eq!(state.bundle(), format!("{}{next}{previous}", state.current.authority));
        for key in ["tls.key", "tls.crt", "ca.crt", "since"] {
            let mut half = written.clone();
            half["data"].as_object_mut().expect("data").shift_remove(key);
            assert_eq!(State::read(&Object::new(half).expect("an object")), None, "without {key}");
        }
        let debug = format!("{state:?}");
        assert!(!debug.contains("PRIVATE KEY") && debug.contains("******"), "{debug}");
    }
}
