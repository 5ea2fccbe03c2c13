//! `vdoctl upgrade plan` and `apply`: every driver to the newest version that fits, or to one that is named, as a change of the VDOConfig.
//!
//! A driver is pinned to its next version until it is healthy there. The pin is then lifted, because the policy of the VDOConfig keeps what
//! is installed; a pin that was there before stays, at the new version.

use super::args::{DriverArg, Format, Global, MatrixFile, Platform, Resolve, UpgradeApply, UpgradePlan};
use super::change::Change;
use super::context::Context;
use super::deploy::wait::until_ready;
use super::driver_fields::{field, patch, typed};
use super::output::document;
use super::plan_view::Planned;
use super::printer::Printer;
use super::progress::{Mark, Progress};
use super::{Answer, CliError, Exit, matrix, prompt, style};
use crate::api::UPGRADE_PINS;
use crate::drivers::short;
use crate::manifest::Object;
use crate::types::DriverVersion;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::IsTerminal as _;

/// Which driver goes to which version.
type Targets = BTreeMap<String, DriverVersion>;

/// An upgrade that was planned as if it were asked for.
struct Upgrade {
    context: Context,
    live: Object,
    targets: Targets,
    change: Change,
    planned: Planned,
}

impl Upgrade {
    /// Plans it; `None` where every driver is where it should go.
    async fn plan(to: &[DriverArg], index: &MatrixFile, global: &Global) -> Result<Option<Self>, CliError> {
        let mut context = Context::open(global).await?.choosing_from(index, global).await?;
        let live = context.acting_object().await?;
        let spec = live.value()["spec"].clone();
        let decided = context.decide().await?;
        let targets = targets(
            to,
            &spec,
            &decided
                .decision
                .resolution
                .picks
                .iter()
                .filter_map(|(name, pick)| {
                    let newest = pick.newest.clone().max(Some(pick.target.clone()))?;
                    Some((name.to_string(), (pick.from.clone()?, newest)))
                })
                .collect(),
        )?;
        if targets.is_empty() {
            return Ok(None);
        }
        let change = Change::merge(&context, live.clone(), pinned(&live, &targets)?).await?;
        context.suppose(vec![change.after.clone()]);
        let planned = Planned::of(&context).await?;
        Ok(Some(Self {
            context,
            live,
            targets,
            change,
            planned,
        }))
    }

    /// Drivers that would not come to their version, with what is in the way.
    fn misses(&self) -> Vec<String> {
        let reaches = |name: &str, version: &DriverVersion| {
            let change = self.planned.drivers.iter().find(|change| change.driver == name);
            change.is_some_and(|change| change.to.as_ref() == Some(version) || !change.steps.is_empty())
        };
        let misses = self.targets.iter().filter(|(name, version)| !reaches(name, version));
        misses
            .map(|(name, version)| format!("{} does not come to {version}", short(name)))
            .collect()
    }
}

pub(super) async fn plan(args: &UpgradePlan, global: &Global) -> Result<Answer, CliError> {
    if args.kubernetes.is_some() || !args.vcenter.is_empty() {
        let asked = Resolve {
            platform: Platform::default(),
            what_if_kubernetes: args.kubernetes.clone(),
            what_if_vcenter: args.vcenter.clone(),
            index: args.index.clone(),
            output: args.output,
        };
        return matrix::resolve(&asked, global).await;
    }
    let format = args.output.or_table();
    let upgrade = Upgrade::plan(&args.to, &args.index, global).await?;
    let Some(upgrade) = upgrade else {
        let answer = Answer::formatted(
            format,
            || document("UpgradePlan", json!({"upgrade": false, "drivers": []})),
            String::new,
        )?;
        return Ok(answer.note(NOTHING));
    };
    let answer = Answer::formatted(format, || json_of(&upgrade), || text(&upgrade, format == Format::Wide))?;
    let answer = upgrade.planned.talk().cloned().fold(answer, Answer::note);
    Ok(answer
        .note(upgrade.planned.summary())
        .note(format!("Nothing was changed. To do it: {}", command(&args.to)))
        .exit(Exit::Differences))
}

const NOTHING: &str = "Every driver has the newest version that fits.";

fn command(to: &[DriverArg]) -> String {
    let named = |ask: &DriverArg| {
        let version = ask.pin.as_ref().map(|version| format!("={version}")).unwrap_or_default();
        format!(" --to {}{version}", ask.driver)
    };
    format!("vdoctl upgrade apply{}", to.iter().map(named).collect::<String>())
}

fn json_of(upgrade: &Upgrade) -> Value {
    let plan = upgrade.planned.json("Plan", &upgrade.planned.changing().collect::<Vec<_>>());
    document(
        "UpgradePlan",
        json!({
            "upgrade": true,
            "targets": upgrade.targets,
            "drivers": plan["drivers"],
            "waiting": plan["waiting"],
            "blocked": plan["blocked"],
            "misses": upgrade.misses(),
            "change": upgrade.change.json(),
            "objects": plan["objects"],
        }),
    )
}

fn text(upgrade: &Upgrade, wide: bool) -> String {
    let planned = &upgrade.planned;
    let mut text: String = planned.drivers.iter().map(|driver| driver.lines()).collect();
    if wide {
        let (shown, _) = planned.shown(true);
        text.extend(shown.iter().map(|item| planned.line(item)));
    }
    text.push_str(&planned.rest());
    text.extend(upgrade.misses().iter().map(|miss| format!("{} {miss}\n", style::bad("✗"))));
    let refused = planned.refusals.iter();
    text.extend(refused.map(|(id, refusal)| format!("{} {id}: {refusal}\n", style::bad("✗"))));
    text
}

pub(super) async fn apply(args: &UpgradeApply, global: &Global, printer: &Printer) -> Result<Answer, CliError> {
    let mut progress = Progress::new(printer, args.output.or_table());
    let answer = upgrade(args, global, &mut progress).await;
    match progress.end() {
        Some(exit) => answer.map(|answer| answer.exit(exit)),
        None => answer,
    }
}

async fn upgrade(args: &UpgradeApply, global: &Global, progress: &mut Progress) -> Result<Answer, CliError> {
    // --timeout is for the drivers; a request is answered soon or not at all.
    let requests = Global {
        timeout: None,
        ..global.clone()
    };
    let Some(upgrade) = Upgrade::plan(&args.to, &args.index, &requests).await? else {
        // A command that was interrupted may have left its pins.
        let context = Context::open(&requests).await?;
        let live = context.acting_object().await?;
        if !own_pins(&live).is_empty() && !args.no_wait {
            return finished(&context, global, progress).await;
        }
        return Ok(Answer::text("").note(NOTHING));
    };
    for driver in &upgrade.planned.drivers {
        progress.step(Mark::Note, driver.lines().trim_end());
    }
    let waits = upgrade
        .planned
        .waiting
        .iter()
        .chain(&upgrade.planned.blocked)
        .map(|wait| wait.message.clone());
    waits.for_each(|message| progress.step(Mark::Note, &message));
    let refusals = upgrade.planned.refusals.iter().map(|(id, refusal)| format!("{id}: {refusal}"));
    let wrong: Vec<String> = refusals.chain(upgrade.misses()).collect();
    if !wrong.is_empty() {
        return Err(CliError::new(
            Exit::Refused,
            format!("the upgrade cannot be made, so nothing was changed: {}", wrong.join("; ")),
            "Put it right and run the same command again; vdoctl upgrade plan -o wide shows the whole plan.",
        ));
    }
    consent(args, &upgrade.context)?;
    upgrade.change.make(&upgrade.context).await?;
    progress.step(Mark::Done, &format!("{} asks for it", upgrade.live));
    if args.no_wait {
        return Ok(Answer::text("")
            .note("vdoctl status --watch shows how far it is; run the same command again when it is done, to lift the pins."));
    }
    finished(&Context::open(&requests).await?, global, progress).await
}

/// Waits until the drivers are healthy, and lifts the pins that were set for the upgrade.
async fn finished(context: &Context, global: &Global, progress: &mut Progress) -> Result<Answer, CliError> {
    let summary = until_ready(context, false, global.timeout_with_drivers(), progress).await?;
    progress.step(Mark::Done, &summary);
    let live = context.acting_object().await?;
    let change = lifted(&live)?;
    Change::merge(context, live, change).await?.make(context).await?;
    Ok(Answer::text(""))
}

fn consent(args: &UpgradeApply, context: &Context) -> Result<(), CliError> {
    if args.yes {
        return Ok(());
    }
    let refused = |remedy: &str| CliError::new(Exit::Refused, format!("nothing was changed in cluster {}", context.name), remedy);
    if !std::io::stdin().is_terminal() {
        return Err(refused("There is no terminal to ask on: add --yes."));
    }
    let question = format!("    Upgrade the drivers of cluster {} at {}?", context.name, context.server);
    match prompt::yes(&question) {
        Ok(true) => Ok(()),
        _ => Err(refused("Choose another version with --to, or another cluster with --context.")),
    }
}

/// The versions that are asked for, or the newest ones. `installed` has what is installed, and the newest version that fits.
fn targets(to: &[DriverArg], spec: &Value, installed: &BTreeMap<String, (DriverVersion, DriverVersion)>) -> Result<Targets, CliError> {
    if to.is_empty() {
        let newer = installed.iter().filter(|(_, (from, newest))| newest > from);
        return Ok(newer.map(|(name, (_, newest))| (name.clone(), newest.clone())).collect());
    }
    let mut targets = Targets::new();
    for ask in to {
        let name = typed(spec, &ask.driver)?;
        let found = installed.get(&name);
        let version = match (&ask.pin, found) {
            (Some(version), _) => version.clone(),
            (None, Some((_, newest))) => newest.clone(),
            (None, None) => {
                return Err(CliError::new(
                    Exit::NotFound,
                    format!("{name} is not installed"),
                    "The operator installs it first; vdoctl status says what it waits for.",
                ));
            }
        };
        if found.is_none_or(|(from, _)| *from != version) {
            targets.insert(name, version);
        }
    }
    Ok(targets)
}

/// The drivers that were pinned for an upgrade, with their versions.
fn own_pins(live: &Object) -> BTreeMap<String, String> {
    let all = live.annotation(UPGRADE_PINS).unwrap_or_default();
    let pair = |text: &str| text.split_once('=').map(|(name, version)| (name.to_owned(), version.to_owned()));
    all.split(',').filter_map(pair).collect()
}

/// The change that asks for these versions, and remembers which pins are only for the upgrade.
fn pinned(live: &Object, targets: &Targets) -> Result<Value, CliError> {
    let spec = &live.value()["spec"];
    let mut own = own_pins(live);
    for (name, version) in targets {
        if field(spec, name, "version").is_null() || own.contains_key(name) {
            own.insert(name.clone(), version.to_string());
        }
    }
    let fields: Vec<(String, Value)> = targets
        .iter()
        .map(|(name, version)| (name.clone(), json!({"version": version})))
        .collect();
    let pins: Vec<String> = own.iter().map(|(name, version)| format!("{name}={version}")).collect();
    let mut change = json!({"spec": patch(spec, &fields)?});
    if !pins.is_empty() {
        change["metadata"] = json!({"annotations": {UPGRADE_PINS: pins.join(",")}});
    }
    Ok(change)
}

/// The change that lifts the pins of an upgrade. One that a person has changed meanwhile stays.
fn lifted(live: &Object) -> Result<Value, CliError> {
    let spec = &live.value()["spec"];
    let own = own_pins(live);
    let same = own
        .iter()
        .filter(|(name, version)| field(spec, name, "version") == version.as_str());
    let fields: Vec<(String, Value)> = same.map(|(name, _)| (name.clone(), json!({"version": null}))).collect();
    Ok(json!({"metadata": {"annotations": {UPGRADE_PINS: null}}, "spec": patch(spec, &fields)?}))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(text: &str) -> DriverVersion {
        text.parse().expect("a version")
    }

    fn config(annotations: Value, spec: Value) -> Object {
        let value = json!({"apiVersion": "vdo.vmware.com/v1alpha1", "kind": "VDOConfig", "metadata": {"name": "vdo", "namespace": "n", "annotations": annotations}, "spec": spec});
        Object::new(value).expect("an object")
    }

    #[test]
    fn upgrade_targets_are_the_newest_or_what_is_named() {
        let installed: BTreeMap<String, _> = [
            ("vsphere-cpi".to_owned(), (version("1.34.0"), version("1.34.0"))),
            ("vsphere-csi".to_owned(), (version("3.6.3"), version("3.7.3"))),
        ]
        .into();
        let of = |to: &[&str]| -> Result<Vec<String>, Exit> {
            let asks: Vec<DriverArg> = to.iter().map(|text| text.parse().expect("an ask")).collect();
            let found = targets(&asks, &json!({}), &installed).map_err(|error| error.exit)?;
            Ok(found.iter().map(|(name, version)| format!("{name} {version}")).collect())
        };
        assert_eq!(of(&[]), Ok(vec!["vsphere-csi 3.7.3".to_owned()]));
        assert_eq!(of(&["csi"]), Ok(vec!["vsphere-csi 3.7.3".to_owned()]));
        assert_eq!(of(&["csi=3.7.0"]), Ok(vec!["vsphere-csi 3.7.0".to_owned()]));
        assert_eq!(of(&["cpi", "csi=3.6.3"]), Ok(vec![]), "they are there already");
        assert_eq!(of(&["antrea"]), Err(Exit::NotFound));
    }

    /// A pin of the upgrade is lifted, one of a person is kept at the new version.
    #[test]
    fn upgrade_pins_are_lifted_unless_a_person_pinned() {
        let to = |name: &str, text: &str| Targets::from([(name.to_owned(), version(text))]);
        let bare = config(json!({}), json!({}));
        let change = pinned(&bare, &to("vsphere-csi", "3.7.3")).expect("a change");
        assert_eq!(
            change["spec"],
            json!({"cloudProvider": {}, "storageProvider": {"version": "3.7.3"}})
        );
        assert_eq!(change["metadata"]["annotations"][UPGRADE_PINS], "vsphere-csi=3.7.3");
        let under_way = config(change["metadata"]["annotations"].clone(), change["spec"].clone());
        let lift = lifted(&under_way).expect("a change");
        assert_eq!(lift["spec"], json!({"storageProvider": {"version": null}}));
        assert_eq!(lift["metadata"]["annotations"][UPGRADE_PINS], Value::Null);
        // Again, to another version, before the first was lifted.
        let change = pinned(&under_way, &to("vsphere-csi", "3.7.4")).expect("a change");
        assert_eq!(change["metadata"]["annotations"][UPGRADE_PINS], "vsphere-csi=3.7.4");

        let by_hand = config(json!({}), json!({"storageProvider": {"version": "3.6.3"}}));
        let change = pinned(&by_hand, &to("vsphere-csi", "3.7.3")).expect("a change");
        assert_eq!(change, json!({"spec": {"storageProvider": {"version": "3.7.3"}}}));
        let changed = config(
            json!({UPGRADE_PINS: "vsphere-csi=3.7.3"}),
            json!({"storageProvider": {"version": "3.7.0"}}),
        );
        assert_eq!(lifted(&changed).expect("a change")["spec"], json!({}));
    }
}
