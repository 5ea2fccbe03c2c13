//! `vdoctl diff`: what is wanted against what is there, field by field.

use super::answer::document;
use super::args::{Diff as Args, Global};
use super::session::{Decided, Session, id};
use super::{Answer, CliError, Exit, style};
use crate::api::APPLIED_ANNOTATION;
use crate::cluster::ClusterError;
use crate::manifest::{Difference, Object, differences};
use crate::plan::{Change, Desired, Plan, Step};
use crate::types::ObjectId;
use futures::StreamExt;
use futures::stream;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Requests that are under way at the same time.
const CONCURRENCY: usize = 8;

/// What would become of one object.
struct Line<'a> {
    action: Action,
    because: Because,
    id: ObjectId,
    api_version: &'a str,
    driver: &'a str,
    fields: Vec<Difference>,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Action {
    Create,
    Change,
    Adopt,
    Remove,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Because {
    /// It has never been there.
    New,
    /// Somebody deleted it.
    Deleted,
    /// Something else is wanted than was applied.
    Outdated,
    /// Somebody changed it.
    Drifted,
    /// It does not bear our marks.
    Unmarked,
    /// Nobody wants it any more.
    Unwanted,
}

pub(super) async fn run(args: &Args, global: &Global) -> Result<Answer, CliError> {
    let session = Session::open(global).await?;
    let mut decided = session.decide().await?;
    let (rehearsed, note) = rehearse(&session, &decided).await?;
    let recorded = |d: &&Desired| {
        let live = decided.prepared.observed.live.get(&d.object.id());
        live.is_some_and(|live| live.annotation(APPLIED_ANNOTATION) == d.object.annotation(APPLIED_ANNOTATION))
    };
    let same = decided.prepared.desired.iter().filter(recorded).map(|d| d.object.id());
    let same: Vec<ObjectId> = same.filter(|id| rehearsed.get(id).is_some_and(Vec::is_empty)).collect();
    decided.prepared.observed.settled.extend(same);
    let mut plan = decided.whole_plan();
    for step in &mut plan.steps {
        if let Step::Apply {
            object,
            change: Change::Update(fields) | Change::Repair(fields),
            ..
        } = step
            && let Some(found) = rehearsed.get(&object.id())
        {
            fields.clone_from(found);
        }
    }
    let lines = lines(&decided, &plan);
    let answer = Answer::formatted(args.output.or_table(), || json(&decided, &plan, &lines), || text(&plan, &lines))?;
    let count = |action| lines.iter().filter(|line| line.action == action).count();
    let summary = match lines.len() {
        0 => format!(
            "no differences: all {} objects are as VDOConfig {} wants them",
            decided.prepared.desired.len(),
            id(&decided.config)
        ),
        _ => format!(
            "{} to create, {} to change, {} to take over, {} to remove",
            count(Action::Create),
            count(Action::Change),
            count(Action::Adopt),
            count(Action::Remove)
        ),
    };
    let answer = note.into_iter().fold(answer, Answer::say);
    Ok(answer
        .say(summary)
        .exit(if lines.is_empty() { Exit::Ok } else { Exit::Differences }))
}

/// Asks the API server what an apply would change in every object that seems to differ: it normalises some values, and a
/// field that is no longer wanted is known to it alone. Who may not ask gets the plain comparison, and is told so.
async fn rehearse(session: &Session, decided: &Decided) -> Result<(BTreeMap<ObjectId, Vec<Difference>>, Option<String>), CliError> {
    let plan = decided.whole_plan();
    let changing = plan.steps.iter().filter_map(|step| match step {
        Step::Apply {
            object,
            change: Change::Update(_) | Change::Repair(_),
            ..
        } => Some(object.clone()),
        _ => None,
    });
    let answers: Vec<(Object, Result<Object, ClusterError>)> = stream::iter(changing.collect::<Vec<_>>())
        .map(|object| async move {
            let result = session.world.writer.rehearse(&object).await;
            (object, result)
        })
        .buffered(CONCURRENCY)
        .collect()
        .await;
    let mut all = BTreeMap::new();
    let mut note = None;
    for (object, result) in answers {
        match (result, decided.prepared.observed.live.get(&object.id())) {
            (Ok(result), Some(live)) => drop(all.insert(object.id(), changes(&result, live))),
            (Ok(_), None) => {}
            (Err(ClusterError::Forbidden { .. }), _) => {
                note = Some("You may not patch, so values that the API server writes differently may be shown as differences.".to_owned());
            }
            // What it refuses is still a difference; the operator will say why it cannot be applied.
            (Err(ClusterError::Refused { .. } | ClusterError::Escalation { .. } | ClusterError::Conflict { .. }), _) => {}
            (Err(error), _) => return Err(error.into()),
        }
    }
    Ok((all, note))
}

/// What an apply would change: fields that get another value, and fields that go. What the server counts for itself, and our
/// own record of what was applied last, say nothing to people.
fn changes(result: &Object, live: &Object) -> Vec<Difference> {
    const COUNTED: [&str; 5] = [
        "metadata.generation",
        "metadata.resourceVersion",
        "metadata.managedFields",
        "metadata.annotations[deprecated.daemonset.template.generation]",
        "status",
    ];
    let mut all = differences(result.value(), live.value());
    let going = differences(live.value(), result.value()).into_iter().filter(|d| d.found.is_null());
    all.extend(going.map(|d| Difference {
        path: d.path,
        wanted: Value::Null,
        found: d.wanted,
    }));
    all.retain(|d| !COUNTED.iter().any(|field| d.path.starts_with(field)));
    if live.annotation(APPLIED_ANNOTATION).is_some() {
        all.retain(|d| !d.path.ends_with(&format!("[{APPLIED_ANNOTATION}]")));
    }
    all
}

fn lines<'a>(decided: &'a Decided, plan: &'a Plan) -> Vec<Line<'a>> {
    let line = |step: &'a Step| match step {
        Step::Apply { object, change, .. } => {
            let live = decided.prepared.observed.live.get(&object.id());
            let (action, because, fields) = match change {
                Change::Create => (Action::Create, Because::New, Vec::new()),
                Change::Restore => (Action::Create, Because::Deleted, Vec::new()),
                Change::Update(fields) => (Action::Change, Because::Outdated, fields.clone()),
                Change::Repair(fields) => (Action::Change, Because::Drifted, fields.clone()),
                Change::Adopt => (
                    Action::Adopt,
                    Because::Unmarked,
                    live.map(|live| differences(object.value(), live.value())).unwrap_or_default(),
                ),
            };
            let driver = decided
                .prepared
                .desired
                .iter()
                .find(|d| d.object.id() == object.id())
                .map_or("", |d| d.driver.as_str());
            Some(Line {
                action,
                because,
                id: object.id(),
                api_version: object.api_version(),
                driver,
                fields: masked(object, fields),
            })
        }
        Step::Delete { id, api_version, .. } => {
            let driver = decided.survey.inventory.objects.get(id).map_or("", |entry| entry.driver.as_str());
            Some(Line {
                action: Action::Remove,
                because: Because::Unwanted,
                id: id.clone(),
                api_version,
                driver,
                fields: Vec::new(),
            })
        }
        Step::Release { .. } | Step::Record(_) | Step::Commit(_) => None,
    };
    plan.steps.iter().filter_map(line).collect()
}

/// The differences of a Secret without what is in it.
fn masked(object: &Object, mut fields: Vec<Difference>) -> Vec<Difference> {
    let hide = |value: &mut Value| {
        if !value.is_null() {
            *value = "******".into();
        }
    };
    if object.is_secret() {
        let content = |path: &str| path.starts_with("data") || path.starts_with("stringData");
        for field in fields.iter_mut().filter(|field| content(&field.path)) {
            hide(&mut field.wanted);
            hide(&mut field.found);
        }
    }
    fields
}

fn text(plan: &Plan, lines: &[Line<'_>]) -> String {
    let mut text = String::new();
    for line in lines {
        let name = format!("{} {}", line.id, style::faint(&format!("({})", line.driver)));
        text.push_str(&match (line.action, line.because) {
            (Action::Create, Because::Deleted) => format!("{} {name} was deleted by somebody and would be made again\n", style::good("+")),
            (Action::Create, _) => format!("{} {name} would be created\n", style::good("+")),
            (Action::Change, Because::Drifted) => format!("{} {name} was changed by somebody\n", style::warn("~")),
            (Action::Change, _) => format!("{} {name}\n", style::warn("~")),
            (Action::Adopt, _) => format!("{} {name} is not marked as ours and would be taken over\n", style::warn("~")),
            (Action::Remove, _) => format!("{} {name} would be removed\n", style::bad("-")),
        });
        for field in &line.fields {
            text.push_str(&format!("    {}\n", field.path));
            text.push_str(&format!("      {}\n", style::bad(&format!("- found  {}", shown(&field.found)))));
            text.push_str(&format!("      {}\n", style::good(&format!("+ wanted {}", shown(&field.wanted)))));
        }
        if line.action == Action::Change && line.fields.is_empty() {
            text.push_str("    the record of what was applied last is out of date\n");
        }
    }
    for skip in &plan.skipped {
        text.push_str(&format!("= {}\n", skip.message));
    }
    for wait in &plan.waiting {
        text.push_str(&format!("… {}\n", wait.message));
    }
    text
}

/// A value on one line; nothing at all is a word and not `null`.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => "nothing".into(),
        Value::String(text) if !text.contains('\n') => text.clone(),
        other => other.to_string(),
    }
}

fn json(decided: &Decided, plan: &Plan, lines: &[Line<'_>]) -> Value {
    let objects: Vec<Value> = lines
        .iter()
        .map(|line| {
            let fields: Vec<Value> = line
                .fields
                .iter()
                .map(|f| json!({"path": f.path, "found": f.found, "wanted": f.wanted}))
                .collect();
            json!({
                "action": line.action,
                "because": line.because,
                "object": {"apiVersion": line.api_version, "kind": line.id.kind(), "namespace": line.id.namespace, "name": line.id.name},
                "driver": line.driver,
                "fields": fields,
            })
        })
        .collect();
    let kept: Vec<Value> = plan
        .skipped
        .iter()
        .map(|s| json!({"object": s.id.to_string(), "message": s.message}))
        .collect();
    let waiting: Vec<Value> = plan
        .waiting
        .iter()
        .map(|w| json!({"driver": w.driver, "reason": w.reason, "message": w.message}))
        .collect();
    document(
        "Diff",
        json!({
            "config": id(&decided.config),
            "wanted": decided.prepared.desired.len(),
            "objects": objects,
            "kept": kept,
            "waiting": waiting,
        }),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(data: &Value, generation: i64) -> Object {
        let metadata = json!({"name": "s", "namespace": "n", "generation": generation, "labels": {"l": generation.to_string()}});
        Object::new(json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data})).expect("an object")
    }

    #[test]
    fn fields_that_go_are_there_and_nothing_of_a_secret_is() {
        let wanted = secret(&json!({"kept": "aaaa", "new": "bbbb"}), 2);
        let found = masked(&wanted, changes(&wanted, &secret(&json!({"kept": "cccc", "old": "dddd"}), 1)));
        let shown: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(
            shown,
            [
                "metadata.labels.l: wanted \"2\", found \"1\"",
                "data.kept: wanted \"******\", found \"******\"",
                "data.new: wanted \"******\", found null",
                "data.old: wanted null, found \"******\"",
            ]
        );
    }
}
