//! The head of a plan: for each driver which version becomes which, why, and which pods restart.

use super::style;
use super::views::plan::DriverChangeView;
use std::collections::BTreeSet;
use vdo_api::types::{DriverVersion, count};
use vdo_core::drivers::short;
use vdo_core::matrix::Resolution;
use vdo_core::plan::{Action, Item};

/// The label whose value is the version of the driver.
const VERSION_LABEL: &str = "metadata.labels[app.kubernetes.io/version]";

/// What happens to a driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DriverChange {
    /// Its name.
    pub driver: String,
    /// The installed version.
    pub from: Option<DriverVersion>,
    /// The chosen one; `None` where it is removed.
    pub to: Option<DriverVersion>,
    /// Why that one.
    pub because: String,
    /// How many of its objects change.
    pub objects: usize,
    /// How many of these change in the label of the version only.
    pub labels_only: usize,
    /// Workloads whose pods are replaced.
    pub restarts: Vec<String>,
    /// The versions after the chosen one, where it is a step on the way.
    pub steps: Vec<String>,
    /// What must hold before the next version, by name.
    pub preconditions: Vec<String>,
}

/// Whether nothing but the label of the version changes.
pub(super) fn is_label_only(item: &Item) -> bool {
    item.action == Action::Apply && !item.fields.is_empty() && item.fields.iter().all(|field| field.path == VERSION_LABEL)
}

/// Every driver that was chosen, or of which something is removed.
pub(super) fn drivers(items: &[Item], choice: &Resolution) -> Vec<DriverChange> {
    let chosen = choice.picks.keys().map(ToString::to_string);
    let removed = items
        .iter()
        .filter(|item| item.action == Action::Prune)
        .map(|item| item.driver.clone());
    let names: BTreeSet<String> = chosen.chain(removed).filter(|name| !name.is_empty()).collect();
    names.into_iter().map(|name| driver(name, items, choice)).collect()
}

fn driver(name: String, items: &[Item], choice: &Resolution) -> DriverChange {
    let own: Vec<&Item> = items
        .iter()
        .filter(|item| item.driver == name && item.action != Action::Keep)
        .collect();
    let pick = choice.picks.iter().find(|(driver, _)| ***driver == name).map(|(_, pick)| pick);
    let restarts = own.iter().filter(|item| restarts(item));
    DriverChange {
        from: pick.and_then(|pick| pick.from.clone()),
        to: pick.map(|pick| pick.version.clone()),
        because: pick.map(|pick| pick.because.clone()).unwrap_or_default(),
        objects: own.len(),
        labels_only: own.iter().filter(|item| is_label_only(item)).count(),
        restarts: restarts.map(|item| format!("{} {}", item.id.kind(), item.id.name)).collect(),
        steps: pick
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

impl DriverChange {
    /// What it is in a word.
    fn kind(&self) -> &'static str {
        match (&self.from, &self.to) {
            (_, None) => "remove",
            (None, Some(_)) => "install",
            (Some(from), Some(to)) if to > from => "upgrade",
            (Some(from), Some(to)) if to < from => "downgrade",
            (Some(_), Some(_)) if self.objects > 0 => "change",
            (Some(_), Some(_)) => "keep",
        }
    }

    /// A line of what happens, and indented lines of what that means.
    pub(super) fn lines(&self) -> String {
        let version = |version: &Option<DriverVersion>| version.as_ref().map(ToString::to_string).unwrap_or_default();
        let name = short(&self.driver);
        let head = match self.kind() {
            "remove" => format!("{name} {}", style::bad("is removed")),
            "install" => format!("{name} {} {}: {}", version(&self.to), style::good("is installed"), self.because),
            kind @ ("upgrade" | "downgrade") => {
                let kind = if kind == "upgrade" { style::good(kind) } else { style::bad(kind) };
                format!("{name} {} → {} ({kind}): {}", version(&self.from), version(&self.to), self.because)
            }
            _ => format!("{name} {} stays", version(&self.to)),
        };
        let mut text = format!("{head}\n");
        if !self.steps.is_empty() {
            text.push_str(&format!("  then {}\n", self.steps.join(", then ")));
        }
        if !self.preconditions.is_empty() {
            text.push_str(&format!("  before that must hold: {}\n", self.preconditions.join(", ")));
        }
        if self.objects == 0 {
            return text;
        }
        let labels = match self.labels_only {
            0 => String::new(),
            some => format!(", {some} of them only in the label of the version"),
        };
        let verb = if self.objects == 1 { "changes" } else { "change" };
        let pods = match &self.restarts[..] {
            [] => "no pod restarts".to_owned(),
            all => format!("pods restart: {}", all.join(", ")),
        };
        text.push_str(&format!("  {} {verb}{labels}; {pods}\n", count(self.objects, "object")));
        text
    }

    /// What is shown to programs.
    pub(super) fn view(&self) -> DriverChangeView {
        DriverChangeView {
            driver: self.driver.clone(),
            change: self.kind().to_owned(),
            from: self.from.clone(),
            to: self.to.clone(),
            because: self.because.clone(),
            objects: self.objects,
            labels_only: self.labels_only,
            restarts: self.restarts.clone(),
            then: self.steps.clone(),
            preconditions: self.preconditions.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plan_summary_names_versions_reason_and_restarts() {
        let v = |text: &str| text.parse::<DriverVersion>().ok();
        let change = |from, to, objects, restarts: &[&str]| DriverChange {
            driver: "vsphere-csi".into(),
            from,
            to,
            because: "pinned".into(),
            objects,
            labels_only: objects / 2,
            restarts: restarts.iter().map(|name| (*name).to_owned()).collect(),
            steps: Vec::new(),
            preconditions: Vec::new(),
        };
        let node = ["DaemonSet vsphere-csi-node"];
        for (change, expected) in [
            (
                change(v("3.7.3"), v("3.6.3"), 4, &node),
                "CSI 3.7.3 → 3.6.3 (downgrade): pinned\n  4 objects change, 2 of them only in the label of the version; pods restart: DaemonSet vsphere-csi-node\n",
            ),
            (
                change(v("3.6.3"), v("3.7.3"), 1, &[]),
                "CSI 3.6.3 → 3.7.3 (upgrade): pinned\n  1 object changes; no pod restarts\n",
            ),
            (change(v("3.7.3"), v("3.7.3"), 0, &[]), "CSI 3.7.3 stays\n"),
            (
                change(v("3.7.3"), v("3.7.3"), 1, &node),
                "CSI 3.7.3 stays\n  1 object changes; pods restart: DaemonSet vsphere-csi-node\n",
            ),
            (change(None, v("3.7.3"), 0, &[]), "CSI 3.7.3 is installed: pinned\n"),
            (change(None, None, 1, &[]), "CSI is removed\n  1 object changes; no pod restarts\n"),
        ] {
            assert_eq!(anstream::adapter::strip_str(&change.lines()).to_string(), expected);
        }
    }
}
