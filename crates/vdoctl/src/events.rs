// SPDX-License-Identifier: Apache-2.0
//! `vdoctl events`: prints the Kubernetes events of the operator, the drivers and their objects.

use super::ages::ago;
use super::args::{Events as Args, Global};
use super::context::{Context, now};
use super::error::sentence;
use super::style::{bad, table};
use super::vdo_namespaces::{is_ours, namespaces};
use super::views::events::{EventView, EventsView};
use super::{Answer, CliError};
use k8s_openapi::jiff::Timestamp;
use vdo::cluster::{Select, Watch, list};
use vdo_core::manifest::Object;

pub(super) async fn run(args: &Args, global: &Global) -> Result<Answer, CliError> {
    let context = Context::open(global).await?;
    let (mut events, mut unread) = (Vec::new(), Vec::new());
    for namespace in namespaces(&context) {
        let watch = Watch::new("v1", "Event", &namespace, Select::All);
        match list(&context.ports.client, &watch).await {
            Ok(found) => events.extend(found.iter().filter(|event| is_ours(&namespace, event)).map(of_event)),
            Err(error) => unread.push(format!("events in {namespace}: {}", sentence(&error))),
        }
    }
    events.retain(|event| !args.warnings || event.r#type == "Warning");
    events.sort_by(|a, b| (&a.last_seen, &a.namespace, &a.name).cmp(&(&b.last_seen, &b.namespace, &b.name)));
    let view = EventsView { events };
    let answer = Answer::view(args.output.or_table(), &view, || text(&view, now()))?;
    Ok(unread.into_iter().fold(answer, Answer::note))
}

fn of_event(event: &Object) -> EventView {
    let text = |place: &str| event.text(place).to_owned();
    let number = |place: &str| event.value().pointer(place).and_then(serde_json::Value::as_i64);
    let times = [
        "/series/lastObservedTime",
        "/lastTimestamp",
        "/eventTime",
        "/metadata/creationTimestamp",
    ];
    let last = times.iter().filter_map(|place| event.text(place).parse::<Timestamp>().ok()).max();
    EventView {
        namespace: event.namespace().to_owned(),
        kind: text("/involvedObject/kind"),
        name: text("/involvedObject/name"),
        r#type: text("/type"),
        reason: text("/reason"),
        message: text("/message"),
        count: number("/series/count").or_else(|| number("/count")).unwrap_or(1),
        last_seen: last,
    }
}

fn text(view: &EventsView, now: Timestamp) -> String {
    if view.events.is_empty() {
        return "There are no events. The API server keeps events for an hour.\n".to_owned();
    }
    let row = |event: &EventView| {
        let seen = event.last_seen.map_or_else(|| "-".to_owned(), |then| ago(then, now));
        let times = if event.count > 1 {
            format!(" (x{})", event.count)
        } else {
            String::new()
        };
        let kind = if event.r#type == "Warning" {
            bad(&event.r#type)
        } else {
            event.r#type.clone()
        };
        vec![
            format!("{seen}{times}"),
            kind,
            event.reason.clone(),
            format!("{}/{}", event.kind.to_lowercase(), event.name),
            event.message.split_whitespace().collect::<Vec<_>>().join(" "),
        ]
    };
    let rows: Vec<Vec<String>> = view.events.iter().map(row).collect();
    table(&["LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"], &rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn event_is_seen_last_at_the_newest_of_its_times() {
        let event = |more: serde_json::Value| {
            let mut value = json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e", "namespace": "n", "creationTimestamp": "2026-01-01T00:00:00Z"},
                "involvedObject": {"kind": "VDOConfig", "name": "vdo"}, "type": "Warning", "reason": "NotReady", "message": " a\nb "});
            for (key, value_of) in more.as_object().into_iter().flatten() {
                value[key] = value_of.clone();
            }
            of_event(&Object::new(value).expect("an event"))
        };
        for (more, count, seconds) in [
            (json!({}), 1, 0),
            (json!({"count": 3, "lastTimestamp": "2026-01-01T00:00:05Z"}), 3, 5),
            (
                json!({"eventTime": "2026-01-01T00:00:02Z", "series": {"count": 7, "lastObservedTime": "2026-01-01T00:00:09Z"}}),
                7,
                9,
            ),
        ] {
            let found = event(more.clone());
            let since = found.last_seen.map(|at| at.as_second() - 1_767_225_600);
            assert_eq!((found.count, since), (count, Some(seconds)), "{more}");
        }
        let now = "2026-01-01T00:05:00Z".parse().expect("a time");
        let view = EventsView {
            events: vec![event(json!({"count": 2}))],
        };
        let shown = text(&view, now);
        for part in ["5m (x2)", "Warning", "NotReady", "vdoconfig/vdo", "a b"] {
            assert!(shown.contains(part), "{shown}");
        }
    }
}
