// SPDX-License-Identifier: Apache-2.0
//! The vSAN file service, which clusters are asked about where file volumes are configured.

use crate::cluster_id::{credentials, endpoint, start};
use anyhow::{Context, Result, ensure};
use jiff::Timestamp;
use vdo::reconcile::connection::examine;
use vdo_api::api::{ConditionType, Reason};
use vdo_testbed::soap::{Act, Rule};
use vdo_vsphere::vcenter::Budget;
use vdo_vsphere::vsphere::{Feature, InspectionRequest, Requirements};

/// The answer of a cluster, as the vSAN Management API has it.
fn config(service: &str) -> Act {
    Act::Body(format!(
        "<Envelope xmlns=\"http://schemas.xmlsoap.org/soap/envelope/\"><Body><VsanClusterGetConfigResponse xmlns=\"urn:vsan\"><returnval>\
         <enabled>true</enabled>{service}</returnval></VsanClusterGetConfigResponse></Body></Envelope>"
    ))
}

const ON: &str = "<fileServiceConfig><enabled>true</enabled></fileServiceConfig>";
const OFF: &str = "<fileServiceConfig><enabled>false</enabled></fileServiceConfig>";

#[tokio::test(flavor = "multi_thread")]
async fn file_service_that_no_cluster_has_is_said_before_the_first_claim() -> Result<()> {
    let (vcenter, proxy) = start().await?;
    for (features, answer, expected, asked) in [
        (vec![Feature::Block], config(OFF), Reason::Healthy, false),
        (vec![Feature::Block, Feature::File], config(ON), Reason::Healthy, true),
        (vec![Feature::Block, Feature::File], config(OFF), Reason::NoFileService, true),
        (vec![Feature::Block, Feature::File], config(""), Reason::NoFileService, true),
        // What is not known is not said.
        (
            vec![Feature::File],
            Act::Fault("NoPermission", "Permission was denied.", ""),
            Reason::Healthy,
            true,
        ),
    ] {
        let before = proxy.calls().get("VsanClusterGetConfig").copied().unwrap_or_default();
        proxy.no_more_rules();
        proxy.rule(Rule::on("VsanClusterGetConfig", answer));
        let question = InspectionRequest {
            server: proxy.host().into(),
            requirements: Requirements {
                features: features.iter().copied().collect(),
                ..Requirements::default()
            },
            ..InspectionRequest::default()
        };
        let report = examine(
            &endpoint(&proxy),
            &credentials(&vcenter),
            question,
            Timestamp::UNIX_EPOCH,
            &Budget::default(),
        )
        .await;
        let check = report.check(ConditionType::StorageFound).context("StorageFound")?;
        ensure!(check.status == Some(true) && check.reason == expected, "{features:?}: {check:?}");
        let now = proxy.calls().get("VsanClusterGetConfig").copied().unwrap_or_default();
        ensure!((now > before) == asked, "{features:?}: {before} and {now} calls");
    }
    Ok(())
}
