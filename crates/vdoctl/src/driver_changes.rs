// SPDX-License-Identifier: Apache-2.0
//! Computes and prints the summary of a plan: for each driver the old and new version, the reason, and the pods that restart.

use super::style;
use super::views::plan::{ChangeKind, DriverChangeView};
use std::collections::BTreeSet;
use vdo_api::types::{DriverVersion, count, verb};
use vdo_core::drivers::short;
use vdo_core::matrix::Resolution;
use vdo_core::plan::{Action, Item};

/// The label whose value is the version of the driver.
const VERSION_LABEL: &str = "metadata.labels[app.kubernetes.io/version]";

/// Whether nothing but the label of the version changes.
pub(super) fn is_label_only(item: &Item) -> bool {
    item.action == Action::Apply && !item.fields.is_empty() && item.fields.iter().all(|field| field.path == VERSION_LABEL)
}

/// Every driver that was chosen, or of which something is removed.
pub(super) fn drivers(items: &[Item], choice: &Resolution) -> Vec<DriverChangeView> {
    let chosen = choice.picks.keys().map(ToString::to_string);
    let removed = items
        .iter()
        .filter(|item| item.action == Action::Prune)
        .map(|item| item.driver.clone());
    let names: BTreeSet<String> = chosen.chain(removed).filter(|name| !name.is_empty()).collect();
    names.into_iter().map(|name| driver(name, items, choice)).collect()
}

fn driver(name: String, items: &[Item], choice: &Resolution) -> DriverChangeView {
    let own: Vec<&Item> = items
        .iter()
        .filter(|item| item.driver == name && item.action != Action::Keep)
        .collect();
    let pick = choice.picks.iter().find(|(driver, _)| ***driver == name).map(|(_, pick)| pick);
    let restarts = own.iter().filter(|item| restarts(item));
    let (from, to) = (pick.and_then(|pick| pick.from.clone()), pick.map(|pick| pick.version.clone()));
    DriverChangeView {
        change: kind(from.as_ref(), to.as_ref(), own.len()),
        from,
        to,
        because: pick.map(|pick| pick.because.clone()).unwrap_or_default(),
        objects: own.len(),
        labels_only: own.iter().filter(|item| is_label_only(item)).count(),
        restarts: restarts.map(|item| format!("{} {}", item.id.kind(), item.id.name)).collect(),
        then: pick
            .iter()
            .flat_map(|pick| &pick.path)
            .skip(1)
            .map(|step| step.version.to_string())
            .collect(),
        preconditions: pick.map(|pick| pick.preconditions().to_vec()).unwrap_or_default(),
        driver: name,
    }
}

/// Whether pods that run are replaced.
fn restarts(item: &Item) -> bool {
    let workload = matches!(item.id.kind(), "Deployment" | "DaemonSet" | "StatefulSet");
    let template = || item.fields.iter().any(|field| field.path.starts_with("spec.template"));
    workload && (item.action == Action::Recreate || (matches!(item.action, Action::Apply | Action::Adopt) && template()))
}

/// What happens to a driver of which so many objects change.
fn kind(from: Option<&DriverVersion>, to: Option<&DriverVersion>, objects: usize) -> ChangeKind {
    match (from, to) {
        (_, None) => ChangeKind::Remove,
        (None, Some(_)) => ChangeKind::Install,
        (Some(from), Some(to)) if to > from => ChangeKind::Upgrade,
        (Some(from), Some(to)) if to < from => ChangeKind::Downgrade,
        (Some(_), Some(_)) if objects > 0 => ChangeKind::Change,
        (Some(_), Some(_)) => ChangeKind::Keep,
    }
}

impl DriverChangeView {
    /// A line of what happens, and indented lines of what that means.
    pub(super) fn lines(&self) -> String {
        let version = |version: &Option<DriverVersion>| version.as_ref().map(ToString::to_string).unwrap_or_default();
        let name = short(&self.driver);
        let renewed = |word: String| format!("{name} {} → {} ({word}): {}", version(&self.from), version(&self.to), self.because);
        let head = match self.change {
            ChangeKind::Remove => format!("{name} {}", style::bad("is removed")),
            ChangeKind::Install => format!("{name} {} {}: {}", version(&self.to), style::good("is installed"), self.because),
            ChangeKind::Upgrade => renewed(style::good("upgrade")),
            ChangeKind::Downgrade => renewed(style::bad("downgrade")),
            ChangeKind::Change | ChangeKind::Keep => format!("{name} stays at {}", version(&self.to)),
        };
        let mut text = format!("{head}\n");
        if !self.then.is_empty() {
            text.push_str(&format!("  then {}\n", self.then.join(", then ")));
        }
        if !self.preconditions.is_empty() {
            text.push_str(&format!("  required before the change: {}\n", self.preconditions.join(", ")));
        }
        if self.objects == 0 {
            return text;
        }
        let labels = match self.labels_only {
            0 => String::new(),
            some => format!(", {some} of them only in the version label"),
        };
        let verb = verb(self.objects, "changes", "change");
        let pods = match &self.restarts[..] {
            [] => "no pod restarts".to_owned(),
            all => format!("pods restart: {}", all.join(", ")),
        };
        text.push_str(&format!("  {} {verb}{labels}; {pods}\n", count(self.objects, "object")));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plan_summary_names_versions_reason_and_restarts() {
        let v = |text: &str| text.parse::<DriverVersion>().ok();
        let change = |from: Option<DriverVersion>, to: Option<DriverVersion>, objects, restarts: &[&str]| DriverChangeView {
            driver: "vsphere-csi".into(),
            change: kind(from.as_ref(), to.as_ref(), objects),
            from,
            to,
            because: "pinned".into(),
            objects,
            labels_only: objects / 2,
            restarts: restarts.iter().map(|name| (*name).to_owned()).collect(),
            then: Vec::new(),
            preconditions: Vec::new(),
        };
        let node = ["DaemonSet vsphere-csi-node"];
        for (change, expected) in [
            (
                change(v("3.7.3"), v("3.6.3"), 4, &node),
                "CSI 3.7.3 → 3.6.3 (downgrade): pinned\n  4 objects change, 2 of them only in the version label; pods restart: DaemonSet vsphere-csi-node\n",
            ),
            (
                change(v("3.6.3"), v("3.7.3"), 1, &[]),
                "CSI 3.6.3 → 3.7.3 (upgrade): pinned\n  1 object changes; no pod restarts\n",
            ),
            (change(v("3.7.3"), v("3.7.3"), 0, &[]), "CSI stays at 3.7.3\n"),
            (
                change(v("3.7.3"), v("3.7.3"), 1, &node),
                "CSI stays at 3.7.3\n  1 object changes; pods restart: DaemonSet vsphere-csi-node\n",
            ),
            (change(None, v("3.7.3"), 0, &[]), "CSI 3.7.3 is installed: pinned\n"),
            (change(None, None, 1, &[]), "CSI is removed\n  1 object changes; no pod restarts\n"),
        ] {
            assert_eq!(anstream::adapter::strip_str(&change.lines()).to_string(), expected);
        }
    }
}
