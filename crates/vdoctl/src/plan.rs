// SPDX-License-Identifier: Apache-2.0
//! `vdoctl plan`: prints the steps of the operator's plan in order, with reasons, waits, and the hash that `vdoctl approve` needs.

use super::args::{Format, Global, Plan as Args};
use super::context::Context;
use super::plan_and_diff::Planned;
use super::views::plan::PlanView;
use super::{Answer, CliError, style};
use vdo_api::api::Approval;
use vdo_core::manifest::Difference;
use vdo_core::plan::{Action, Item};

pub(super) async fn run(args: &Args, global: &Global) -> Result<Answer, CliError> {
    let mut context = Context::open(global).await?.choosing_from(&args.index, global).await?;
    answer(args.output.or_table(), &Planned::after(&mut context, &args.preview).await?)
}

/// The plan as a document and as text, with its fields as `shown` shows those of a kind.
pub(super) async fn with_fields(global: &Global, shown: impl Fn(&str, &Difference) -> Difference) -> Result<(Answer, Answer), CliError> {
    let context = Context::open(global).await?.like_the_operator(global).await?;
    let mut planned = Planned::of(&context).await?;
    for item in &mut planned.items {
        let kind = item.id.kind().to_owned();
        item.fields = item.fields.iter().map(|field| shown(&kind, field)).collect();
    }
    Ok((answer(Format::Json, &planned)?, answer(Format::Wide, &planned)?))
}

fn answer(format: Format, planned: &Planned) -> Result<Answer, CliError> {
    let all: Vec<&Item> = planned.items.iter().collect();
    let view = PlanView(planned.view(&all));
    let answer = Answer::view(format, &view, || text(planned, format == Format::Wide))?;
    let answer = planned.talk().fold(answer, Answer::note);
    let answer = answer.note(planned.summary()).exit(planned.exit());
    Ok(match &planned.hash {
        _ if !planned.supposed.is_empty() => answer.note("This is a preview: nothing was changed."),
        Some(hash) if !planned.approved => answer.note(format!("The operator waits for approval: vdoctl approve {hash}")),
        _ => answer,
    })
}

fn text(planned: &Planned, wide: bool) -> String {
    let mut text = format!(
        "{} {}",
        style::head("PLAN"),
        planned.hash.as_deref().unwrap_or("(nothing to approve)")
    );
    text.push_str(&match (planned.approval, planned.approved) {
        (Approval::Manual, true) => format!("  for VDOConfig {}, approved\n", planned.config),
        (Approval::Automatic, true) => format!("  for VDOConfig {}\n", planned.config),
        (_, false) => format!("  for VDOConfig {}, {}\n", planned.config, style::warn("not approved")),
    });
    text.insert_str(0, &(planned.header() + &planned.supposition()));
    text.extend(planned.drivers.iter().map(super::views::plan::DriverChangeView::lines));
    let (shown, folded) = planned.shown(wide);
    let mut stage = None;
    for item in shown {
        let here = (item.action == Action::Prune, item.wave);
        if stage != Some(here) {
            stage = Some(here);
            let name = if here.0 {
                "AFTERWARDS".to_owned()
            } else {
                format!("WAVE {}", here.1)
            };
            text.push_str(&format!("{}  {}\n", style::head(&name), style::faint(meaning(here))));
        }
        text.push_str(&planned.line(item));
        if wide {
            let waits = planned.deferred.iter().filter(|skip| skip.id == item.id);
            text.extend(waits.map(|skip| format!("    {}\n", style::faint(&skip.message))));
        }
    }
    text.push_str(&folded);
    if wide {
        let kept = planned.items.iter().filter(|item| item.action == Action::Keep);
        text.extend(kept.map(|item| planned.line(item)));
    }
    text + &planned.rest()
}

/// What happens in a stage; see `plan::wave`.
fn meaning((pruned, wave): (bool, u8)) -> &'static str {
    match (pruned, wave) {
        (true, _) => "once everything above is healthy",
        (_, 0) => "definitions",
        (_, 1) => "namespaces",
        (_, 2) => "rights and configuration",
        (_, 3) => "bindings",
        (_, 4) => "pods of the cloud provider",
        (_, 5) => "pods of the storage driver",
        _ => "pods and webhooks",
    }
}

#[cfg(test)]
mod tests {
    use super::super::context::Left;
    use super::super::plan_and_diff::Refusal;
    use super::super::views::plan::{ChangeKind, DriverChangeView};
    use super::*;
    use serde_json::json;
    use vdo_api::api::Reason;
    use vdo_api::types::ObjectId;
    use vdo_core::drivers::{CPI, CSI};
    use vdo_core::plan::{Because, Skip, Wait};

    fn item(action: Action, because: Because, kind: &str, wave: u8, fields: Vec<Difference>) -> Item {
        let group = if wave > 3 { "apps" } else { "" };
        Item {
            action,
            because,
            id: ObjectId::new(group, kind, "csi", "one"),
            api_version: if wave > 3 { "apps/v1".into() } else { "v1".into() },
            driver: "vsphere-csi".into(),
            wave,
            fields,
        }
    }

    fn planned() -> Planned {
        let image = Difference {
            path: "spec.template.spec.containers[0].image".into(),
            wanted: json!("driver:v2"),
            found: json!("driver:v1"),
        };
        let password = Difference {
            path: "data.password".into(),
            wanted: json!("******"),
            found: json!(null),
        };
        Planned {
            config: "vmware-system-vdo/vdo".into(),
            matrix: None,
            hash: Some("0123456789abcdef".into()),
            approval: Approval::Manual,
            approved: false,
            taken_away: Vec::new(),
            items: vec![
                item(Action::Create, Because::New, "ConfigMap", 2, Vec::new()),
                item(Action::Adopt, Because::Unmarked, "Secret", 2, vec![password]),
                item(Action::Apply, Because::Outdated, "Deployment", 5, vec![image]),
                item(Action::Recreate, Because::Immutable, "DaemonSet", 5, Vec::new()),
                item(Action::Prune, Because::Unwanted, "Service", 2, Vec::new()),
                item(Action::Keep, Because::AsWanted, "ServiceAccount", 2, Vec::new()),
            ],
            refusals: vec![Refusal {
                id: ObjectId::new("apps", "Deployment", "csi", "one"),
                reason: Reason::AdmissionDenied,
                what: "a policy is against it".into(),
                remedy: "Change the policy.".into(),
            }],
            patched: Default::default(),
            stays: vec![Skip {
                id: ObjectId::new("", "PersistentVolumeClaim", "csi", "data"),
                message: "PersistentVolumeClaim csi/data stays: objects of this kind hold data".into(),
            }],
            waiting: vec![Wait {
                driver: "vsphere-csi".into(),
                reason: Reason::WaitingForNodes,
                message: "CSI waits for initialised nodes: 1 of 2 are".into(),
            }],
            blocked: vec![Wait {
                driver: "vsphere-csi".into(),
                reason: Reason::VolumesInUse,
                message: "the storage driver stays: it has 2 volumes".into(),
            }],
            deferred: vec![Skip {
                id: ObjectId::new("", "ConfigMap", "csi", "one"),
                message: "ConfigMap csi/one is tried once Namespace csi is there".into(),
            }],
            notes: Vec::new(),
            left: Vec::new(),
            undecided: Default::default(),
            drivers: vec![DriverChangeView {
                driver: "vsphere-csi".into(),
                change: ChangeKind::Upgrade,
                from: "3.6.3".parse().ok(),
                to: "3.7.3".parse().ok(),
                because: "newest that supports Kubernetes 1.34".into(),
                objects: 5,
                labels_only: 0,
                restarts: vec!["Deployment one".into(), "DaemonSet one".into()],
                then: Vec::new(),
                preconditions: Vec::new(),
            }],
            supposed: Vec::new(),
        }
    }

    /// Scripts read it: a change here is a change of vdoctl/v1.
    #[test]
    fn plan_json_every_action_matches_snapshot() {
        let answer = answer(Format::Json, &planned()).expect("an answer");
        insta::assert_snapshot!(String::from_utf8(answer.data).expect("text"));
        assert_eq!(answer.exit, super::super::Exit::Differences);
    }

    #[test]
    fn plan_of_a_driver_that_cannot_be_decided_about_is_an_error() {
        let left = vec![Left {
            what: "vsphere-csi is pinned to 9.9.9".to_owned(),
            is_kept_out: false,
        }];
        let undecided = [CSI.to_owned()].into();
        let planned = Planned {
            left,
            undecided,
            ..planned()
        };
        let answer = answer(Format::Json, &planned).expect("an answer");
        assert!(planned.summary().ends_with("; CSI cannot be planned"), "{}", planned.summary());
        assert_eq!(answer.exit, super::super::Exit::Refused);
        assert!(answer.talk.iter().any(|line| line.contains("9.9.9")), "{:?}", answer.talk);
        let json: serde_json::Value = serde_json::from_slice(&answer.data).expect("JSON");
        assert!(json["leftAlone"][0].as_str().is_some_and(|line| line.contains("9.9.9")), "{json}");
    }

    #[test]
    fn plan_without_differences_names_the_drivers_that_cannot_be_planned() {
        let of = |undecided: &[&str], names: &[&str]| {
            let one = planned().drivers.remove(0);
            let driver = |name: &&str| DriverChangeView {
                driver: (*name).to_owned(),
                ..one.clone()
            };
            Planned {
                items: Vec::new(),
                undecided: undecided.iter().map(|name| (*name).to_owned()).collect(),
                drivers: names.iter().map(driver).collect(),
                ..planned()
            }
            .summary()
        };
        assert_eq!(of(&[CSI], &[CPI]), "no differences for CPI; CSI cannot be planned");
        assert_eq!(of(&[CSI], &[CPI, CSI]), "no differences for CPI; CSI cannot be planned");
        assert_eq!(of(&[CPI, CSI], &[]), "no differences; CPI and CSI cannot be planned");
        assert!(of(&[], &[CPI]).starts_with("no differences: all 0 objects"));
    }

    #[test]
    fn plan_text_every_action_shows_its_reason() {
        let answer = answer(Format::Wide, &planned()).expect("an answer");
        let text = anstream::adapter::strip_str(&String::from_utf8(answer.data).expect("text")).to_string();
        insta::assert_snapshot!(format!("{text}---\n{}", answer.talk.join("\n")));
    }
}
