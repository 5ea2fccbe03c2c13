// SPDX-License-Identifier: Apache-2.0
//! Parses the operator's tolerations, written as in `kubectl taint` (`KEY[=VALUE][:EFFECT]`), and reads those of its Deployment.

use super::manifests::OPERATOR;
use crate::manifest::Object;
use serde_json::{Value, json};
use std::str::FromStr;

/// Where a Deployment has the tolerations of its pods.
pub(super) const TOLERATIONS: &str = "/spec/template/spec/tolerations";

/// The effects of a taint.
const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

/// A toleration: `KEY[=VALUE][:EFFECT]`. Without a value every value is tolerated, without an effect every effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Toleration {
    key: String,
    value: Option<String>,
    effect: Option<String>,
}

impl FromStr for Toleration {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (taint, effect) = match text.rsplit_once(':') {
            Some((taint, effect)) => (taint, Some(effect)),
            None => (text, None),
        };
        let (key, value) = match taint.split_once('=') {
            Some((key, value)) => (key, Some(value)),
            None => (taint, None),
        };
        if let Some(effect) = effect.filter(|effect| !EFFECTS.contains(effect)) {
            return Err(format!(
                "{effect:?} is not an effect of a taint; the effects are {}",
                EFFECTS.join(", ")
            ));
        }
        if key.is_empty() {
            return Err("the key of the taint is missing; write KEY, KEY=VALUE or KEY=VALUE:EFFECT".into());
        }
        Ok(Self {
            key: key.to_owned(),
            value: value.map(str::to_owned),
            effect: effect.map(str::to_owned),
        })
    }
}

impl Toleration {
    /// As a pod has it.
    pub(super) fn to_value(&self) -> Value {
        let mut value = match &self.value {
            Some(value) => json!({"key": self.key, "operator": "Equal", "value": value}),
            None => json!({"key": self.key, "operator": "Exists"}),
        };
        if let Some(effect) = &self.effect {
            value["effect"] = effect.clone().into();
        }
        value
    }

    fn read(value: &Value) -> Option<Self> {
        let text = |field: &str| value.get(field).and_then(Value::as_str).map(str::to_owned);
        Some(Self {
            key: text("key")?,
            value: text("value").filter(|_| text("operator").as_deref() != Some("Exists")),
            effect: text("effect"),
        })
    }

    /// The tolerations of an operator that is there besides those of `bare`, the operator of deploy/.
    #[must_use]
    pub fn added(live: &Object, bare: &[Object]) -> Vec<Self> {
        let of = |object: &Object| -> Vec<Self> {
            let all = object.value().pointer(TOLERATIONS).and_then(Value::as_array);
            all.into_iter().flatten().filter_map(Self::read).collect()
        };
        let own: Vec<Self> = bare.iter().filter(|object| object.name() == OPERATOR).flat_map(of).collect();
        of(live).into_iter().filter(|one| !own.contains(one)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::install::{Settings, objects};

    #[test]
    fn toleration_is_read_as_a_taint_is_written() {
        for (text, expected) in [
            ("etcd", json!({"key": "etcd", "operator": "Exists"})),
            (
                "etcd:NoExecute",
                json!({"key": "etcd", "operator": "Exists", "effect": "NoExecute"}),
            ),
            ("a/b=c", json!({"key": "a/b", "operator": "Equal", "value": "c"})),
            (
                "a=:NoSchedule",
                json!({"key": "a", "operator": "Equal", "value": "", "effect": "NoSchedule"}),
            ),
        ] {
            assert_eq!(text.parse::<Toleration>().map(|found| found.to_value()), Ok(expected), "{text}");
        }
        for (text, part) in [
            ("a:Never", "not an effect"),
            (":NoSchedule", "key of the taint"),
            ("", "key of the taint"),
        ] {
            let error = text.parse::<Toleration>().expect_err(text);
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    /// A deployment that forgets the flag must not take the operator off its node.
    #[test]
    fn tolerations_of_the_operator_that_is_there_are_those_that_were_added() {
        let tolerations: Vec<Toleration> = vec!["dedicated=infra:NoSchedule".parse().expect("a toleration")];
        let with = Settings {
            tolerations: tolerations.clone(),
            ..Settings::default()
        };
        let deployment = |all: Vec<Object>| all.into_iter().find(|object| object.kind() == "Deployment").expect("the operator");
        let bare = objects(&Settings::default()).expect("tested");
        let live = deployment(objects(&with).expect("tested"));
        assert_eq!(Toleration::added(&live, &bare), tolerations);
        assert_eq!(Toleration::added(&deployment(bare.clone()), &bare), []);
    }
}
