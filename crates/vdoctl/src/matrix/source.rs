// SPDX-License-Identifier: Apache-2.0
//! `vdoctl matrix source`: prints the source of the operator's matrix, and every setting that can name a source.

use super::super::args::{Global, MatrixSourceArgs as Args};
use super::super::context::Context;
use super::super::operator_running::{Deployment, Presence};
use super::super::views::matrix::{MatrixSourceView, PlaceView};
use super::super::{Answer, CliError, style};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt;
use vdo::reconcile::named;
use vdo_api::api::ConditionType;
use vdo_core::manifest::Object;
use vdo_source::fetch::{MatrixSource, Named, Origin, named_source, settings};

/// A setting that may name a source; the first that does counts.
struct SourceSetting {
    place: String,
    source: Option<String>,
    /// Whether it may name one.
    may: bool,
}

pub(super) async fn run(args: &Args, global: &Global) -> Result<Answer, CliError> {
    let context = Context::open(global).await?;
    let config = context.acting().await?;
    let namespace = config.namespace().unwrap_or_default();
    let names = named(&context.ports.reader, &config).await?;
    let flag = match Presence::find(&context, &namespace).await {
        Ok(Presence {
            deployment: Deployment::Found(found),
            ..
        }) => flag(&found),
        _ => None,
    };
    let places = places(flag, &names);
    let counts = places.iter().position(|place| place.may && place.source.is_some());
    let found = settings(&names);
    let status = config.status.unwrap_or_default();
    let fresh = status
        .conditions
        .iter()
        .find(|condition| condition.type_ == ConditionType::MatrixFresh.as_str());
    let used = status.matrix.as_ref();
    let named = places.iter().enumerate().map(|(at, place)| PlaceView {
        place: place.place.clone(),
        source: place.source.clone(),
        counts: counts == Some(at),
    });
    let view = MatrixSourceView {
        in_use: used.cloned(),
        named: named.collect(),
        upgrades_disabled: names.frozen(),
    };
    let mut answer = Answer::view(args.output.or_table(), &view, || text(&view, fresh))?;
    if let Err(error) = &found {
        answer = answer.note(format!("{} {error}; the previous source is still used", style::warn("warning:")));
    }
    if let Some(unheard) = names.unheard() {
        answer = answer.note(format!("{} {unheard}", style::warn("warning:")));
    }
    if names.frozen() {
        answer = answer.note("A ConfigMap of the original operator switches upgrades off (auto-upgrade: disabled).".to_owned());
    }
    Ok(answer)
}

fn text(view: &MatrixSourceView, fresh: Option<&Condition>) -> String {
    let mut text = match &view.in_use {
        Some(matrix) => format!("In use: {}, version {}\n", matrix.source, matrix.version),
        None => "In use: nothing yet\n".to_owned(),
    };
    if let Some(fresh) = fresh {
        text.push_str(&format!("MatrixFresh: {}, {}\n", fresh.status, fresh.message));
    }
    let rows = view.named.iter().map(|place| {
        let mark = if place.counts { style::good("✓") } else { " ".to_owned() };
        vec![mark, place.place.clone(), place.source.clone().unwrap_or_else(|| "-".into())]
    });
    text.push('\n');
    text + &style::table(&["", "WHERE", "SOURCE"], &rows.collect::<Vec<_>>())
}

fn places(flag: Option<String>, named: &Named) -> Vec<SourceSetting> {
    let of_flag = SourceSetting {
        place: format!("{} of the operator", Origin::Flag),
        source: flag,
        may: true,
    };
    let of_cluster = named.places().into_iter().map(|naming| SourceSetting {
        place: naming.origin.to_string(),
        may: naming.may,
        source: naming
            .text
            .map(|text| named_source(&text).map_or_else(|problem| problem, |source| source.to_string())),
    });
    let own = SourceSetting {
        place: "the operator itself".into(),
        source: Some(MatrixSource::Embedded.to_string()),
        may: true,
    };
    std::iter::once(of_flag).chain(of_cluster).chain([own]).collect()
}

/// The source that the operator's Deployment names by argument or variable.
fn flag(deployment: &Object) -> Option<String> {
    let deployment: k8s_openapi::api::apps::v1::Deployment = serde_json::from_value(deployment.value().clone()).ok()?;
    let container = deployment.spec?.template.spec?.containers.into_iter().next()?;
    let args = container.args.unwrap_or_default();
    let given = args.iter().enumerate().find_map(|(at, arg)| match arg.strip_prefix("--matrix") {
        Some("") => args.get(at + 1).cloned(),
        Some(rest) => rest.strip_prefix('=').map(str::to_owned),
        None => None,
    });
    let variables = container.env.into_iter().flatten();
    given.or_else(|| variables.into_iter().find(|variable| variable.name == "VDO_MATRIX")?.value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use std::collections::BTreeMap;

    #[test]
    fn source_of_the_operators_flag_is_found_in_its_deployment() {
        let of = |container: Value| {
            let spec = json!({"template": {"spec": {"containers": [container]}}});
            let object = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "o", "namespace": "n"}, "spec": spec});
            flag(&Object::new(object).expect("an object"))
        };
        for (container, expected) in [
            (json!({}), None),
            (json!({"args": ["--matrix-keys=/keys", "--matrix=/a"]}), Some("/a")),
            (json!({"args": ["--matrix", "/a"]}), Some("/a")),
            (json!({"env": [{"name": "VDO_MATRIX", "value": "/b"}]}), Some("/b")),
            (
                json!({"args": ["--matrix=/a"], "env": [{"name": "VDO_MATRIX", "value": "/b"}]}),
                Some("/a"),
            ),
        ] {
            assert_eq!(of(container.clone()).as_deref(), expected, "{container}");
        }
    }

    #[test]
    fn places_are_listed_in_the_order_in_which_they_count() {
        let map = |key: &str, value: &str| BTreeMap::from([(key.to_owned(), value.to_owned())]);
        let named = Named {
            secret: map("source", "https://a.test/i.yaml"),
            maps: BTreeMap::from([("comp-matrix-config".to_owned(), map("versionConfigURL", "http://a.test/"))]),
            objects: vec![("original".to_owned(), "https://b.test/i.json".to_owned())],
            used: None,
        };
        let all: Vec<String> = places(None, &named)
            .into_iter()
            .map(|place| format!("{}: {}", place.place, place.source.unwrap_or_default()))
            .collect();
        assert_eq!(all[0], "--matrix of the operator: ");
        assert_eq!(all[1], "Secret vdo-matrix: https://a.test/i.yaml");
        assert_eq!(all[2], "ConfigMap vdo-matrix: ");
        assert!(
            all[3].starts_with("ConfigMap comp-matrix-config: http:// is not a source"),
            "{all:?}"
        );
        let rest = [
            "ConfigMap compat-matrix-config: ",
            "CompatibilityConfig original: https://b.test/i.json",
            "the operator itself: embedded",
        ];
        assert_eq!(all[4..], rest);
    }
}
