// SPDX-License-Identifier: Apache-2.0
//! A watch that begins in the past: the operator deletes nothing for it.

use crate::common::PATIENCE;
use crate::lab::{Lab, Scenario};
use crate::oracle::{State, nothing_twice};
use crate::shared::run;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use vdo_testbed::{Act, Call, Handled, Probe, until};

fn any(_: &Call) -> bool {
    true
}

/// A new operator is shown an older cluster than there is, wholly or in part: it removes nothing, and comes to the same end.
#[test]
fn stale_reads_after_restart_delete_nothing_and_end_in_same_state() -> Result<()> {
    run(true, true, async |lab, _| {
        const EXTRA: &str = "vsphere-csi-node-windows";
        let old = Value::Null;
        let new = json!({"windows": false});
        for (first, second) in [(&old, &new), (&new, &old)] {
            let spec = |storage: &Value| match storage {
                Value::Null => json!({}),
                storage => json!({"cloudProvider": {}, "storageProvider": storage}),
            };
            lab.bed.apply(&lab.bed.config(spec(first))).await?;
            lab.done(Scenario::Configure).await?;
            lab.quiet().await?;
            let then = version(lab).await?;
            lab.bed.apply(&lab.bed.config(spec(second))).await?;
            lab.done(Scenario::Configure).await?;
            lab.quiet().await?;
            // What is no longer wanted goes after everything else is well.
            until("the object that makes the difference to come or go", PATIENCE, async || {
                let there = identities(lab).await?.keys().any(|key| key.contains(EXTRA));
                Ok(Probe::when(there == (*second == old), format!("it is there: {there}")))
            })
            .await?;
            lab.quiet().await?;
            let now = State::of(&lab.bed).await?;
            let objects = identities(lab).await?;

            for (what, stale) in [
                ("everything", any as fn(&Call) -> bool),
                ("the VDOConfig", |call| call.resource == "vdoconfigs"),
                ("the inventory", |call| call.resource == "secrets"),
                ("everything but the VDOConfig", |call| call.resource != "vdoconfigs"),
            ] {
                lab.bed.kill_operator();
                lab.proxy.hold(stale);
                // What a watch shows may be old; what is asked for without a version never is.
                lab.proxy.begin(move |call| match call.verb {
                    "list" if call.paged && stale(call) => Act::At(then),
                    _ => Act::Pass,
                });
                lab.bed.start_operator().await?;
                // Its own watches are in step, and it has looked at what it was shown.
                until("the first reconcile", PATIENCE, async || {
                    let lists = lab
                        .proxy
                        .handled()
                        .iter()
                        .filter(|h| h.call.resource == "pods" && h.call.verb == "watch")
                        .count();
                    Ok(Probe::when(lists > 0, "the pods of the drivers are not watched yet"))
                })
                .await?;
                lab.quiet().await?;
                let removed = deleted(&lab.proxy.handled());
                ensure!(removed.is_empty(), "shown the past of {what}, it deleted {removed:?}");
                let kept = identities(lab).await?;
                let gone: Vec<_> = objects.iter().filter(|(key, uid)| kept.get(*key) != Some(uid)).collect();
                ensure!(gone.is_empty(), "shown the past of {what}: deleted or recreated: {gone:?}");
                lab.proxy.judge(|_| Act::Pass);
                lab.proxy.release();
                until("the same end", PATIENCE, async || {
                    lab.done(Scenario::Configure).await?;
                    lab.quiet().await?;
                    Ok(match now.same(&State::of(&lab.bed).await?) {
                        Ok(()) => Probe::Ready(()),
                        Err(error) => Probe::not_yet(format!("{error:#}")),
                    })
                })
                .await
                .with_context(|| format!("after the past of {what}:\n{}", lab.trail()))?;
                nothing_twice(&lab.proxy.handled())?;
            }
        }
        println!("shown the past in 8 ways: nothing deleted, same end");
        lab.bed.apply(&lab.bed.config(json!({}))).await?;
        lab.done(Scenario::Configure).await
    })
}

/// The resource version of the cluster as it is.
async fn version(lab: &Lab) -> Result<u64> {
    let list = lab.bed.api("v1", "Namespace", "").list(&kube::api::ListParams::default()).await?;
    Ok(list.metadata.resource_version.context("a resource version")?.parse()?)
}

/// The UIDs of all that the operator made.
pub async fn identities(lab: &Lab) -> Result<BTreeMap<String, String>> {
    let mut all = BTreeMap::new();
    for (api_version, kind) in crate::common::KINDS {
        for object in lab.bed.list(api_version, kind, "app.kubernetes.io/managed-by=vdo").await? {
            let text = |key: &str| object["metadata"][key].as_str().unwrap_or_default().to_owned();
            all.insert(format!("{kind} {}/{}", text("namespace"), text("name")), text("uid"));
        }
    }
    Ok(all)
}

pub fn deleted(handled: &[Handled]) -> Vec<String> {
    let deletes = handled
        .iter()
        .filter(|h| h.call.verb == "delete" && h.call.writes() && h.code.is_some_and(|code| code < 300));
    deletes.map(|h| h.call.line()).collect()
}
