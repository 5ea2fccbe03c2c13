// SPDX-License-Identifier: Apache-2.0
//! `vdoctl pause`, `vdoctl resume` and `vdoctl reconcile`: sets `managementState`, or makes the operator reconcile now.

use super::args::{Global, Manage as Args};
use super::context::Context;
use super::driver_fields::{patch, typed};
use super::object_write::Change;
use super::status::{Kind, handed, needed};
use super::{Answer, CliError, Exit};
use serde_json::json;
use vdo_api::api::{ManagementState, RECONCILE_AT};

/// Sets `managementState` of all, or of one driver.
pub(super) async fn state(args: &Args, state: ManagementState, global: &Global) -> Result<Answer, CliError> {
    let context = Context::open(global).await?;
    let live = context.acting_object().await?;
    let spec = live.value()["spec"].clone();
    let fields = json!({"managementState": state});
    let (what, change) = match &args.driver {
        None => (live.to_string(), fields),
        Some(word) => {
            let driver = typed(&spec, word)?;
            (format!("{driver} of {live}"), patch(&spec, &[(driver, fields)])?)
        }
    };
    let change = Change::merge(&context, live, json!({"spec": change})).await?;
    let already = change.is_none();
    change.make(&context).await?;
    let verb = args.driver.as_ref().map(|driver| format!(" {driver}")).unwrap_or_default();
    let line = match (state, already) {
        (ManagementState::Paused, true) => format!("{what} is paused already"),
        (ManagementState::Paused, false) => {
            format!("{what} is paused: the operator only checks and reports, and writes nothing until vdoctl resume{verb}")
        }
        (_, true) => format!("{what} is managed already"),
        (_, false) => format!("{what} is managed again"),
    };
    if state == ManagementState::Paused {
        return Ok(Answer::text("").note(line));
    }
    if args.driver.is_some() && spec["managementState"] == "Paused" {
        let still = "The whole VDOConfig is paused, so nothing is written yet: vdoctl resume";
        return Ok(Answer::text("").note(line).note(still));
    }
    Ok(handed(&line, needed(&context).await, &[Kind::Paused]))
}

/// Has the operator reconcile now.
pub(super) async fn reconcile(global: &Global) -> Result<Answer, CliError> {
    let context = Context::open(global).await?;
    let config = context.acting_object().await?;
    let need = needed(&context).await;
    if let Some(need) = need.as_ref().filter(|need| need.kind == Kind::Operator) {
        return Err(CliError::new(
            Exit::Differences,
            format!("no operator reconciles {config}: {}", need.what),
            need.remedy.clone(),
        ));
    }
    wake(&context).await?;
    let live = &config;
    let done = format!("the operator reconciles {live} now, and reads its matrix again");
    Ok(handed(&done, need, &[]))
}

/// Wakes an operator that waits for its next attempt. What its status shows once it has acted.
pub(super) async fn wake(context: &Context) -> Result<String, CliError> {
    let live = context.acting_object().await?;
    let change = Change::reconcile(context, live).await?;
    change.make(context).await?;
    let mark = change.after.value()["metadata"]["annotations"][RECONCILE_AT].as_str();
    Ok(mark.unwrap_or_default().to_owned())
}
