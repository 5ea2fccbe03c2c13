// SPDX-License-Identifier: Apache-2.0
//! `vdoctl approve`: approves the plan that the VDOConfig's status names by its hash, so that the operator carries out this plan.

use super::args::{Approve as Args, Global};
use super::context::{Context, id};
use super::status::{Kind, handed, needed};
use super::{Answer, CliError, Exit};
use serde_json::json;
use vdo_api::api::{API_VERSION, APPROVE, Approval};
use vdo_api::types::count;

pub(super) async fn run(args: &Args, global: &Global) -> Result<Answer, CliError> {
    let context = Context::open(global).await?;
    let config = context.acting().await?;
    let name = id(&config);
    let Some(plan) = config
        .status
        .as_ref()
        .and_then(|status| status.plan.clone())
        .filter(|plan| !plan.approved)
    else {
        return none_waits(&name, config.spec.approval, args.hash.as_deref());
    };
    match &args.hash {
        Some(hash) if *hash == plan.hash => {}
        Some(hash) => {
            return Err(CliError::new(
                Exit::Refused,
                format!("VDOConfig {name} waits for approval of plan {}, not of plan {hash}", plan.hash),
                "The plan has changed. Check the current plan with vdoctl plan.",
            ));
        }
        None if args.yes => {}
        None => {
            return Err(CliError::new(
                Exit::Refused,
                format!(
                    "VDOConfig {name} in cluster {} waits for approval of plan {} ({})",
                    context.name,
                    plan.hash,
                    count(usize::try_from(plan.steps).unwrap_or(0), "step")
                ),
                format!("Check the plan with vdoctl plan, then run: vdoctl approve {}", plan.hash),
            ));
        }
    }
    let change = json!({"metadata": {"annotations": {APPROVE: plan.hash}}});
    let id = config.id();
    context.ports.writer.merge(API_VERSION, &id, &change, false).await?;
    let done = format!("plan {} of VDOConfig {name} is approved", plan.hash);
    Ok(handed(&done, needed(&context).await, &[Kind::Approval, Kind::Fault]))
}

/// There is no plan to approve. One that was named is not approved by that.
fn none_waits(config: &str, approval: Approval, hash: Option<&str>) -> Result<Answer, CliError> {
    let why = match approval {
        Approval::Automatic => "spec.approval is Automatic, so no plan waits for approval",
        Approval::Manual => "nothing waits for approval",
    };
    match hash {
        None => Ok(Answer::text("").note(format!("VDOConfig {config}: {why}"))),
        Some(hash) => Err(CliError::new(
            Exit::Refused,
            format!("plan {hash} of VDOConfig {config} was not approved: {why}"),
            "`vdoctl plan` shows what the operator would do next.",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plan_that_is_named_where_none_waits_is_refused() {
        for approval in [Approval::Automatic, Approval::Manual] {
            assert_eq!(none_waits("n/c", approval, None).map(|answer| answer.exit), Ok(Exit::Ok));
            let refused = none_waits("n/c", approval, Some("abc")).expect_err("it was not approved");
            assert!(
                refused.exit == Exit::Refused && refused.what.starts_with("plan abc of VDOConfig n/c was not approved: "),
                "{refused}"
            );
        }
    }
}
