// SPDX-License-Identifier: Apache-2.0
//! Every field that the API server knows, held against what was judged.

use crate::common::contents::newest;
use crate::fixture::BARE;
use anyhow::{Context, Result, ensure};
use http::Request;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use vdo_api::api::OPERATOR_NAMESPACE;
use vdo_core::admission::Allowed;
use vdo_core::manifest::Object;
use vdo_source::fetch::{ChartRepository, MatrixSource, Records};

/// Where each field of each definition is listed; a star marks those that users may set.
const JUDGED: &str = include_str!("../../fixtures/judged-fields.txt");

fn judged() -> BTreeMap<&'static str, BTreeSet<&'static str>> {
    let mut all: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut definition = "";
    for line in JUDGED.lines().filter(|line| !line.starts_with('#')) {
        let fields = match line.split_once(": ") {
            Some((name, fields)) => {
                definition = name;
                fields
            }
            None => line,
        };
        all.entry(definition).or_default().extend(fields.split_whitespace());
    }
    all
}

/// The objects that the fields are put into: those of the charts, and one of each kind that the operator writes without a chart.
fn objects() -> Vec<Value> {
    let mut all = [newest("vsphere-csi"), newest("vsphere-cpi"), newest("antrea")].concat();
    // Of definitions only the names are bounded.
    all.retain(|object| object["kind"] != "CustomResourceDefinition");
    all.push(
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "vsphere-config-secret", "namespace": "vmware-system-csi"},
        "type": "Opaque"}),
    );
    all.push(json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "fast"},
        "provisioner": "csi.vsphere.vmware.com", "reclaimPolicy": "Delete", "volumeBindingMode": "Immediate", "allowVolumeExpansion": true}));
    all.push(
        json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "vdo-operator", "namespace": "kube-system"}}),
    );
    all
}

struct Search<'a> {
    schemas: &'a Value,
    judged: &'a BTreeMap<&'static str, BTreeSet<&'static str>>,
    allowed: &'a Allowed,
    root: &'a Value,
    tried: usize,
    problems: BTreeSet<String>,
}

impl Search<'_> {
    /// The name of a definition and its schema.
    fn resolved<'s>(&'s self, schema: &'s Value) -> (&'s str, &'s Value) {
        let reference = schema["$ref"]
            .as_str()
            .or_else(|| schema.pointer("/allOf/0/$ref").and_then(Value::as_str));
        let name = reference.and_then(|reference| reference.rsplit('/').next());
        match name {
            Some(name) => (name.rsplit('.').next().unwrap_or(name), &self.schemas[name]),
            None => ("", schema),
        }
    }

    /// Tries every field that the value at this place does not have, and goes into those that it has.
    fn visit(&mut self, definition: &str, schema: &Value, value: &Value, place: &str) -> Result<()> {
        let Some(properties) = schema["properties"].as_object() else {
            return Ok(());
        };
        for (field, schema) in properties.clone() {
            let fields = self.judged.get(definition);
            let star = format!("{field}*");
            let free = fields.is_some_and(|fields| fields.contains(&*star));
            if !free && !fields.is_some_and(|fields| fields.contains(&*field)) {
                self.problems.insert(format!("{definition}.{field} was never judged"));
            }
            let place = format!("{place}/{}", field.replace('/', "~1"));
            let (name, inner) = self.resolved(&schema);
            let (name, inner) = (name.to_owned(), inner.clone());
            match value.get(&field) {
                _ if free => {}
                Some(Value::Array(items)) => {
                    let (name, inner) = self.resolved(&inner["items"]);
                    let (name, inner) = (name.to_owned(), inner.clone());
                    for (at, item) in items.iter().enumerate() {
                        self.visit(&name, &inner, item, &format!("{place}/{at}"))?;
                    }
                }
                Some(value) => self.visit(&name, &inner, value, &place)?,
                None => self.attempt(&format!("{definition}.{field}"), &inner, &place)?,
            }
        }
        Ok(())
    }

    fn attempt(&mut self, what: &str, schema: &Value, place: &str) -> Result<()> {
        let sample = self.sample(schema);
        let object = crate::common::contents::with(self.root, place, sample.clone());
        self.tried += 1;
        if self.allowed.check(&Object::new(object)?).is_ok() {
            self.problems.insert(format!(
                "{what} = {sample} is accepted at {place} of {}",
                self.root["metadata"]["name"]
            ));
        }
        Ok(())
    }

    /// A value of the type that no chart has.
    fn sample(&self, schema: &Value) -> Value {
        let (_, schema) = self.resolved(schema);
        match schema["type"].as_str() {
            Some("boolean") => true.into(),
            Some("integer" | "number") => 12345.into(),
            Some("array") => json!([self.sample(&schema["items"])]),
            Some("object") => json!({"other": "x"}),
            _ => "other".into(),
        }
    }
}

#[test]
#[ignore = "long"]
fn content_every_field_of_the_api_is_judged_and_refused_unless_charts_have_it() -> Result<()> {
    BARE.run(async |bed| {
        let library = ChartRepository::new(MatrixSource::Embedded);
        let index = library.index(&Records::default()).await?.index;
        let allowed = vdo::reconcile::rights(
            &library,
            &index,
            vdo::reconcile::Account::usual(OPERATOR_NAMESPACE),
            vdo::reconcile::Versions::All,
        )
        .await?
        .content;
        let judged = judged();
        let mut problems = BTreeSet::new();
        let mut tried = 0;
        for object in objects() {
            let (api_version, kind) = (object["apiVersion"].as_str().context("a version")?, &object["kind"]);
            let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
            let place = if group.is_empty() { "api" } else { "apis" };
            let request = Request::get(format!("/openapi/v3/{place}/{api_version}")).body(Vec::new())?;
            let document: Value = bed.cluster.client().request(request).await?;
            let schemas = &document["components"]["schemas"];
            let known = json!({"group": group, "kind": kind, "version": version});
            let is = |schema: &Value| {
                schema["x-kubernetes-group-version-kind"]
                    .as_array()
                    .is_some_and(|all| all.contains(&known))
            };
            let (name, schema) = schemas
                .as_object()
                .and_then(|all| all.iter().find(|(_, schema)| is(schema)))
                .with_context(|| format!("no schema of {kind}"))?;
            let mut search = Search {
                schemas,
                judged: &judged,
                allowed: &allowed,
                root: &object,
                tried: 0,
                problems: BTreeSet::new(),
            };
            ensure!(
                allowed.check(&Object::new(object.clone())?).is_ok(),
                "{kind} is refused without any change"
            );
            search.visit(name.rsplit('.').next().unwrap_or(name), schema, &object, "")?;
            tried += search.tried;
            problems.append(&mut search.problems);
        }
        println!("{tried} fields tried");
        ensure!(problems.is_empty(), "{problems:#?}");
        ensure!(tried > 500, "only {tried} fields were tried");
        Ok(())
    })
}
