// SPDX-License-Identifier: Apache-2.0
//! Computes the operator's plan for adopted drivers before `vdoctl adopt` writes: the change of each object, and the checks that fail.
//! The plan comes from the same code as in `vdoctl deploy`, which supposes that the objects of the adoption exist.

use super::super::CliError;
use super::super::args::{Deploy, Global};
use super::super::context::Deciding;
use super::super::deploy::configuration::Configuration;
use super::super::deploy::target::Target;
use super::super::doctor::check::Check;
use super::super::plan_and_diff::Planned;
use super::super::preflight_checks::{Asking, check};
use super::super::style;
use super::super::views::plan::PlannedView;
use vdo_adopt::Adoption;
use vdo_core::install::Mounts;
use vdo_core::manifest::{ManifestError, Object};
use vdo_vsphere::vcenter::Budget;

/// What would be done, and what is in its way.
pub(super) struct Picture {
    /// Of each object; nothing where a check failed before.
    pub plan: Option<Planned>,
    /// The checks that failed.
    pub failed: Vec<Check>,
}

/// Looks at it. The vCenter is asked, with the account that the drivers use.
pub(super) async fn picture(context: &mut Deciding, global: &Global, adoption: &Adoption) -> Result<Picture, CliError> {
    let nodes = vdo::reconcile::nodes(&context.ports.reader).await?;
    let target = Target::look(&Deploy::default(), global, context, nodes).await?;
    let objects: Result<Vec<Object>, ManifestError> = adoption.documents.iter().map(|document| Object::new(document.object())).collect();
    let configuration = Configuration {
        objects: objects.map_err(|error| CliError::internal(&error))?,
    };
    let asking = Asking {
        only: None,
        installed: &target.operator(Mounts::default())?,
        there: target.installed.config.as_ref(),
        surplus: false,
        budget: Budget::for_person(global.timeout),
    };
    let checked = check(context, &configuration, asking).await?;
    Ok(Picture {
        failed: checked.failures().cloned().collect(),
        plan: checked.plan,
    })
}

impl Picture {
    /// What would be done, for programs.
    pub(super) fn view(&self) -> Option<PlannedView> {
        let plan = self.plan.as_ref()?;
        Some(plan.view(&plan.changing().collect::<Vec<_>>()))
    }

    /// For people.
    pub(super) fn text(&self) -> String {
        let mut text = format!("\n{}\n", style::head("What the operator would do:"));
        for check in &self.failed {
            text.push_str(&format!("{} {}\n", style::bad("✗"), check.message));
            let remedy = check.remedy.to_string();
            text.extend(remedy.lines().map(|line| format!("    {line}\n")));
        }
        let Some(plan) = &self.plan else { return text };
        text.extend(plan.drivers.iter().map(|driver| driver.lines()));
        text.extend(plan.changing().map(|item| plan.line(item)));
        text.push_str(&plan.rest());
        text.push_str(&format!("{}\n", plan.effect()));
        text
    }
}
