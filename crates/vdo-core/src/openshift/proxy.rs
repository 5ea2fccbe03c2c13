// SPDX-License-Identifier: Apache-2.0
//! Reads OpenShift's cluster-wide Proxy object as proxy environment variables for the operator.

use crate::manifest::Object;

/// The object with it, of the kind Proxy (config.openshift.io/v1).
pub const PROXY: &str = "cluster";

/// Variables of the environment, as programs read them. An address may hold a password, so nothing prints them.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Proxy(Vec<(&'static str, String)>);

impl Proxy {
    /// Name and value of each.
    pub fn variables(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.0.iter().map(|(name, value)| (*name, value.as_str()))
    }
}

impl std::fmt::Debug for Proxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

/// From the status of that object, which OpenShift has completed and checked; `None` where there is no proxy.
#[must_use]
pub fn proxy(object: &Object) -> Option<Proxy> {
    const FIELDS: [(&str, &str); 3] = [
        ("HTTP_PROXY", "/status/httpProxy"),
        ("HTTPS_PROXY", "/status/httpsProxy"),
        ("NO_PROXY", "/status/noProxy"),
    ];
    let fields = FIELDS.map(|(name, pointer)| (name, object.text(pointer).to_owned()));
    let set: Vec<_> = fields.into_iter().filter(|(_, value)| !value.is_empty()).collect();
    set.iter().any(|(name, _)| *name != "NO_PROXY").then_some(Proxy(set))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn proxy_is_the_one_of_the_status() {
        for (status, expected) in [
            (json!({}), None),
            (json!({"noProxy": ".svc"}), None),
            (
                json!({"httpProxy": "http://u:p4ss@p:3128", "httpsProxy": "http://p:3128", "noProxy": ".svc,10.0.0.0/8"}),
                Some(vec!["HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"]),
            ),
            (json!({"httpsProxy": "http://p:3128"}), Some(vec!["HTTPS_PROXY"])),
            (Value::Null, None),
        ] {
            let object = json!({"apiVersion": "config.openshift.io/v1", "kind": "Proxy", "metadata": {"name": "cluster"},
                "spec": {"httpsProxy": "http://only-asked-for:1"}, "status": status});
            let found = proxy(&Object::new(object).expect("an object"));
            assert!(!format!("{found:?}").contains("p4ss"));
            let names = found
                .as_ref()
                .map(|found| found.variables().map(|(name, _)| name).collect::<Vec<_>>());
            assert_eq!(names, expected, "{status}");
            assert!(found.iter().flat_map(Proxy::variables).all(|(_, value)| !value.contains("asked")));
        }
    }
}
