// SPDX-License-Identifier: Apache-2.0
//! Reads the arguments of a container by name, in the spelling of Go's flags, with the values of `$(NAME)` variables.

use super::containers::variables;
use serde_json::Value;
use std::collections::BTreeMap;

/// Arguments by which the parts of a pod find each other; none is a setting.
const STRUCTURE: [&str; 8] = [
    "csi-address",
    "kubelet-registration-path",
    "plugin-registration-path",
    "cloud-config",
    "cloud-provider",
    "fss-name",
    "fss-namespace",
    "mode",
];

/// The arguments of a container by their names, without dashes; an argument without a value has an empty one.
pub(crate) fn of(container: &Value) -> BTreeMap<String, String> {
    let texts = |key: &str| container[key].as_array().into_iter().flatten().filter_map(Value::as_str);
    let texts: Vec<String> = texts("command")
        .chain(texts("args"))
        .map(|text| expanded(text, container))
        .collect();
    let words: Vec<&str> = texts.iter().flat_map(|text| text.split_whitespace()).collect();
    let mut found = BTreeMap::new();
    let mut words = words.into_iter().peekable();
    while let Some(word) = words.next() {
        let Some(flag) = word.strip_prefix("--").or_else(|| word.strip_prefix('-')) else {
            continue;
        };
        let (name, value) = match flag.split_once('=') {
            Some((name, value)) => (name, value),
            // Its value may follow as a word of its own.
            None => (flag, words.next_if(|next| !next.starts_with('-')).unwrap_or_default()),
        };
        found.insert(name.to_owned(), value.to_owned());
    }
    found
}

/// With the values of variables, as the kubelet writes them in place of `$(NAME)`. What is taken from elsewhere stays as it is.
fn expanded(text: &str, container: &Value) -> String {
    let known = variables(container).into_iter().filter_map(|(name, value)| Some((name, value?)));
    known.fold(text.to_owned(), |text, (name, value)| text.replace(&format!("$({name})"), value))
}

/// The same without those that are not settings.
pub(super) fn settings(container: &Value) -> BTreeMap<String, String> {
    let mut flags = of(container);
    flags.retain(|name, _| !STRUCTURE.contains(&name.as_str()));
    for value in flags.values_mut() {
        // A flag alone says yes.
        if value == "true" {
            value.clear();
        }
    }
    flags
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn flags_each_form_is_read() {
        let container = json!({"command": ["/bin/sh", "-c", "exec /bin/x --cloud-config /etc/y"], "args": ["-v=2", "--leader-election", "--strict=true"]});
        let found = of(&container);
        let found: Vec<(&str, &str)> = found.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(
            found,
            [
                ("c", "exec"),
                ("cloud-config", "/etc/y"),
                ("leader-election", ""),
                ("strict", "true"),
                ("v", "2")
            ]
        );
        let by_variable = json!({"args": ["--cloud-config=$(DIR)/$(FILE)", "--fss-namespace=$(NAMESPACE)"], "env": [
            {"name": "DIR", "value": "/etc/cloud"}, {"name": "FILE", "value": "vsphere.conf"},
            {"name": "NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}}]});
        let of_variables = of(&by_variable);
        assert_eq!(of_variables["cloud-config"], "/etc/cloud/vsphere.conf");
        assert_eq!(of_variables["fss-namespace"], "$(NAMESPACE)");
        let settings = settings(&container);
        assert_eq!((settings["strict"].as_str(), settings.get("cloud-config")), ("", None));
    }
}
