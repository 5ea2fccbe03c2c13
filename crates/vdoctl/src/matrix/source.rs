//! `vdoctl matrix source`: where the operator takes the matrix from, and what names it.

use super::super::args::{Global, MatrixSourceArgs as Args};
use super::super::context::Context;
use super::super::operator::{Deployment, Presence};
use super::super::output::document;
use super::super::{Answer, CliError, style};
use kube::ResourceExt;
use serde_json::{Value, json};
use vdo::reconcile::named;
use vdo_api::api::ConditionType;
use vdo_core::manifest::Object;
use vdo_source::fetch::{MatrixSource, Named, Origin, named_source, settings};

/// A place that may name a source, in the order in which they count.
struct Place {
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
    let mut answer = Answer::formatted(
        args.output.or_table(),
        || {
            let all: Vec<Value> = places
                .iter()
                .enumerate()
                .map(|(at, place)| json!({"where": place.place, "source": place.source, "counts": counts == Some(at)}))
                .collect();
            document(
                "MatrixSource",
                json!({"inUse": used, "named": all, "upgradesDisabled": names.frozen()}),
            )
        },
        || {
            let mut text = match used {
                Some(matrix) => format!("In use: {}, version {}\n", matrix.source, matrix.version),
                None => "In use: nothing yet\n".to_owned(),
            };
            if let Some(fresh) = fresh {
                text.push_str(&format!("MatrixFresh: {}, {}\n", fresh.status, fresh.message));
            }
            let rows = places.iter().enumerate().map(|(at, place)| {
                let mark = if counts == Some(at) { style::good("✓") } else { " ".to_owned() };
                vec![mark, place.place.clone(), place.source.clone().unwrap_or_else(|| "-".into())]
            });
            text.push('\n');
            text.push_str(&style::table(&["", "WHERE", "SOURCE"], &rows.collect::<Vec<_>>()));
            text
        },
    )?;
    if let Err(error) = &found {
        answer = answer.note(format!("{} {error}; the source before is kept", style::warn("warning:")));
    }
    if let Some(unheard) = names.unheard() {
        answer = answer.note(format!("{} {unheard}", style::warn("warning:")));
    }
    if names.frozen() {
        answer = answer.note("Upgrades are switched off by auto-upgrade: disabled.".to_owned());
    }
    Ok(answer)
}

fn places(flag: Option<String>, named: &Named) -> Vec<Place> {
    let of_flag = Place {
        place: format!("{} of the operator", Origin::Flag),
        source: flag,
        may: true,
    };
    let of_cluster = named.places().into_iter().map(|naming| Place {
        place: naming.origin.to_string(),
        may: naming.may,
        source: naming
            .text
            .map(|text| named_source(&text).map_or_else(|problem| problem, |source| source.to_string())),
    });
    let own = Place {
        place: "the operator itself".into(),
        source: Some(MatrixSource::Embedded.to_string()),
        may: true,
    };
    std::iter::once(of_flag).chain(of_cluster).chain([own]).collect()
}

/// The source that the operator's Deployment names by argument or variable.
fn flag(deployment: &Object) -> Option<String> {
    let container = deployment.value().pointer("/spec/template/spec/containers/0")?;
    let list = |key: &str| container[key].as_array().cloned().unwrap_or_default();
    let args: Vec<String> = list("args").iter().filter_map(|arg| Some(arg.as_str()?.to_owned())).collect();
    let given = args.iter().enumerate().find_map(|(at, arg)| match arg.strip_prefix("--matrix") {
        Some("") => args.get(at + 1).cloned(),
        Some(rest) => rest.strip_prefix('=').map(str::to_owned),
        None => None,
    });
    given.or_else(|| {
        let env = list("env");
        let variable = env.iter().find(|variable| variable["name"] == "VDO_MATRIX")?;
        Some(variable["value"].as_str()?.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
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
        assert!(all[3].starts_with("ConfigMap comp-matrix-config: http:// is no source"), "{all:?}");
        let rest = [
            "ConfigMap compat-matrix-config: ",
            "CompatibilityConfig original: https://b.test/i.json",
            "the operator itself: embedded",
        ];
        assert_eq!(all[4..], rest);
    }
}
