// SPDX-License-Identifier: Apache-2.0
//! Leader election: two operators in one cluster, a stopped leader, a leader that ends, and a Lease that cannot be renewed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "tests")]

use crate::common::{Bed, NS, OPERATOR, PATIENCE, condition, logged};
use crate::fixture::{EMPTY, INSTALLED};
use anyhow::{Result, ensure};
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};
use vdo_testbed::{Act, AuditLog, Mark, Probe, Process, Proxy, Requests, until};

const VDO: &str = "vdo.vmware.com/v1alpha1";
const FEATURES: &str = "internal-feature-states.csi.vsphere.vmware.com";

/// What the operators wrote, without the Lease itself.
fn writes(audit: &AuditLog, mark: Mark) -> Result<Requests> {
    Ok(audit.so_far(mark)?.of(OPERATOR).writes().only(|e| e.resource != "leases"))
}

async fn until_written(audit: &AuditLog, mark: Mark, count: usize) -> Result<()> {
    let end = Instant::now() + PATIENCE;
    while writes(audit, mark)?.len() < count {
        ensure!(Instant::now() < end, "gave up waiting for {count} writes");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    Ok(())
}

async fn holder(bed: &Bed) -> Result<String> {
    let lease = bed.get("coordination.k8s.io/v1", "Lease", "kube-system", "vdo-operator").await?;
    Ok(lease["spec"]["holderIdentity"].as_str().unwrap_or("(no Lease)").to_owned())
}

async fn until_held_by(bed: &Bed, identity: &str) -> Result<Duration> {
    let start = Instant::now();
    until(&format!("the Lease to be held by {identity:?}"), PATIENCE, async || {
        let found = holder(bed).await?;
        Ok(Probe::when(found == identity, found))
    })
    .await?;
    Ok(start.elapsed())
}

/// Deletes the Lease, so that the next operator need not wait until that of a killed one runs out.
async fn free_lease(bed: &Bed) -> Result<()> {
    bed.delete("coordination.k8s.io/v1", "Lease", "kube-system", "vdo-operator").await
}

async fn until_ended(process: &mut Process) -> Result<std::process::ExitStatus> {
    until("the operator to end", PATIENCE, async || {
        Ok(process.exited().map_or_else(|| Probe::not_yet("it runs"), Probe::Ready))
    })
    .await
}

/// In the middle of an installation: the writes in hand are finished, none begins, the Lease is free, and all of it in time.
#[test]
#[ignore = "long"]
fn leader_on_sigterm_finishes_its_writes_and_frees_the_lease() -> Result<()> {
    EMPTY.run(async |bed| {
        bed.flags.clear();
        bed.lead_directly();
        free_lease(bed).await?;
        let mut operator = bed.another_operator("first").await?;
        let audit = bed.cluster.audit();
        let mark = audit.mark().await?;
        bed.apply_samples().await?;
        // The finalizer, the inventory and the first objects.
        until_written(&audit, mark, 8).await?;
        let signalled = Instant::now();
        let at = audit.mark().await?;
        operator.signal("TERM")?;
        let status = until_ended(&mut operator).await?;
        let took = signalled.elapsed();
        ensure!(status.success(), "it ended with {status}");
        ensure!(took < Duration::from_secs(5), "it took {took:?} to end");
        assert_eq!(holder(bed).await?, "", "the Lease was not released");
        let late = audit.since(at).await?.of(OPERATOR).writes();
        let objects = late.clone().only(|e| e.resource != "leases");
        // What had begun when the signal came, side by side; nothing like the rest of the installation.
        ensure!(objects.len() <= 8 + 2, "after the signal it wrote:\n{objects}");
        let broken = late.only(|e| e.code == 0 || e.code >= 400);
        ensure!(broken.is_empty(), "writes were broken off:\n{broken}");
        let ready = condition(&bed.get(VDO, "VDOConfig", NS, "vdo").await?, "Ready");
        ensure!(ready["status"] != "True", "half an installation is Ready: {ready}");
        println!("stopped in an installation: ended in {took:?} after {} more writes", objects.len());
        Ok(())
    })
}

/// The leader is stopped in the middle of an installation, and goes on when the other operator has finished it.
#[test]
#[ignore = "long"]
fn leader_stopped_and_continued_writes_nothing() -> Result<()> {
    EMPTY.run(async |bed| {
        bed.flags.clear();
        bed.lead_directly();
        let audit = bed.cluster.audit();
        free_lease(bed).await?;
        bed.apply(&bed.secret(bed.vcenter.password())).await?;
        bed.apply(&bed.connection("vc1")).await?;
        // On a busy machine an installation could be over before a signal arrives: the proxy keeps it in its middle.
        let proxy = Proxy::start(&bed.cluster).await?;
        bed.lead_through(&proxy)?;
        let mut first = bed.another_operator("first").await?;
        let first_log = bed.operator_log();
        until_held_by(bed, "first").await?;
        bed.lead_directly();
        let mut second = bed.another_operator("second").await?;
        let second_log = bed.operator_log();
        assert_eq!(holder(bed).await?, "first", "a second operator took the Lease of one that is alive");
        let mark = audit.mark().await?;
        proxy.begin(|call| match call.write {
            Some(6) => Act::StopAfter,
            _ => Act::Pass,
        });
        bed.apply(&bed.config(json!({}))).await?;
        proxy.stopped(PATIENCE).await?;
        first.signal("STOP")?;
        proxy.resume();
        let waited = until_held_by(bed, "second").await?;
        bed.until_ready().await?;
        let created = audit
            .since(mark)
            .await?
            .of(OPERATOR)
            .writes()
            .only(|e| e.code == 201 && e.resource != "events")
            .counts();
        let twice: Vec<_> = created.iter().filter(|(_, count)| **count > 1).collect();
        ensure!(twice.is_empty(), "created twice: {twice:?}");
        ensure!(applied(&second_log)? > 0, "the second operator installed nothing");

        let (before, mark) = (applied(&first_log)?, quiet(bed).await?);
        first.signal("CONT")?;
        logged(&first_log, "another operator leads now").await?;
        let after = audit.since(mark).await?.of(OPERATOR).writes().only(|e| e.resource != "leases");
        ensure!(after.is_empty(), "an operator that was stopped wrote when it woke:\n{after}");
        println!(
            "stopped in an installation: taken over after {waited:?}, nothing written on waking; {before} objects by the first, {} by the second",
            applied(&second_log)?
        );

        // What it would do is done by the other one, once.
        drift(bed).await?;
        until_repaired(bed).await?;
        let repairs = audit.since(mark).await?.of(OPERATOR).only(|e| e.name == FEATURES && e.writes());
        ensure!(repairs.len() == 1, "one drift was repaired by:\n{repairs}");
        first.kill();
        second.kill();
        free_lease(bed).await
    })
}

/// Waits until the installation has written its last word; gives the place after it.
async fn quiet(bed: &Bed) -> Result<Mark> {
    until("the inventory to hold the UIDs", PATIENCE, async || {
        let map = bed.state().await?;
        let objects: Vec<Value> = serde_json::from_str(map["data"]["objects"].as_str().unwrap_or("[]"))?;
        Ok(Probe::when(
            !objects.is_empty() && objects.iter().all(|o| o["uid"].is_string()),
            "some have none",
        ))
    })
    .await?;
    bed.cluster.audit().mark().await
}

/// How many objects an operator says that it applied.
fn applied(log: &Path) -> Result<usize> {
    let text = std::fs::read_to_string(log)?;
    Ok(text.lines().filter(|line| line.contains("\"message\":\"applied\"")).count())
}

async fn drift(bed: &Bed) -> Result<()> {
    let change = json!({"data": {"trigger-csi-fullsync": "true"}});
    bed.merge("v1", "ConfigMap", "vmware-system-csi", FEATURES, change).await
}

async fn drifted(bed: &Bed) -> Result<bool> {
    let map = bed.get("v1", "ConfigMap", "vmware-system-csi", FEATURES).await?;
    Ok(map["data"]["trigger-csi-fullsync"] == "true")
}

async fn until_repaired(bed: &Bed) -> Result<()> {
    until("the drift to be repaired", PATIENCE, async || {
        Ok(Probe::when(!drifted(bed).await?, "it is there"))
    })
    .await
}

/// As in a rolling update: the new operator is ready, the old one gets SIGTERM, and the new one need not wait until the Lease runs out.
#[test]
#[ignore = "long"]
fn leader_on_sigterm_hands_over_to_a_ready_follower() -> Result<()> {
    INSTALLED.run(async |bed| {
        bed.kill_operator();
        free_lease(bed).await?;
        let mut leader = bed.another_operator("first").await?;
        until_held_by(bed, "first").await?;
        let mut follower = bed.another_operator("second").await?;
        leader.signal("TERM")?;
        let status = until_ended(&mut leader).await?;
        ensure!(status.success(), "it ended with {status}");
        let waited = until_held_by(bed, "second").await?;
        ensure!(waited < Duration::from_secs(6), "the Lease stayed free for {waited:?}");
        drift(bed).await?;
        until_repaired(bed).await?;
        println!("handed over in {waited:?}");
        follower.kill();
        free_lease(bed).await
    })
}

/// The API server refuses every renewal: writes stop before the Lease runs out, and go on when it is renewed again.
#[test]
#[ignore = "long"]
fn leader_without_renewal_stops_writing_until_renewed() -> Result<()> {
    INSTALLED.run(async |bed| {
        const ADMISSION: &str = "admissionregistration.k8s.io/v1";
        let (policy, binding) = ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding");
        bed.kill_operator();
        bed.start_operator().await?;
        until_held_by(bed, "vdo-operator-0").await?;
        let renewals = json!({"apiGroups": ["coordination.k8s.io"], "apiVersions": ["v1"], "operations": ["UPDATE"],
            "resources": ["leases"], "resourceNames": ["vdo-operator"]});
        let refused = json!({"failurePolicy": "Fail", "matchConstraints": {"resourceRules": [renewals]},
            "validations": [{"expression": "false", "message": "no lease today"}]});
        let bound = json!({"policyName": "no-lease", "validationActions": ["Deny"]});
        for (kind, spec) in [(policy, refused), (binding, bound)] {
            bed.apply(&json!({"apiVersion": ADMISSION, "kind": kind, "metadata": {"name": "no-lease"}, "spec": spec}))
                .await?;
        }
        let start = Instant::now();
        logged(&bed.operator_log(), "this operator has lost the Lease").await?;
        let stopped = start.elapsed();
        ensure!(stopped < Duration::from_secs(20), "it wrote for {stopped:?} without renewing");
        let mark = bed.cluster.audit().mark().await?;
        drift(bed).await?;
        // As long as a whole campaign takes: it is woken by the drift, and may not act.
        let end = Instant::now() + Duration::from_secs(5);
        while Instant::now() < end {
            ensure!(drifted(bed).await?, "a drift was repaired without the Lease");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let written = writes(&bed.cluster.audit(), mark)?;
        ensure!(written.is_empty(), "without the Lease it wrote:\n{written}");
        for kind in [binding, policy] {
            bed.delete(ADMISSION, kind, "", "no-lease").await?;
        }
        until_repaired(bed).await?;
        println!("without the Lease: writes stopped after {stopped:?}, and went on when it was back");
        Ok(())
    })
}

/// When the Lease was taken, as it stands there.
async fn taken(bed: &Bed) -> Result<String> {
    let lease = bed.get("coordination.k8s.io/v1", "Lease", "kube-system", "vdo-operator").await?;
    Ok(lease["spec"]["acquireTime"].as_str().unwrap_or_default().to_owned())
}

/// Starts an operator whose requests about the Lease are treated so.
async fn behind_slow_api_server(bed: &mut Bed, identity: &str, judge: fn(bool) -> Act) -> Result<(Process, Proxy)> {
    bed.flags.clear();
    bed.lead_directly();
    free_lease(bed).await?;
    let proxy = Proxy::start(&bed.cluster).await?;
    proxy.begin(move |call| match (call.resource.as_str(), call.verb) {
        ("leases", verb) => judge(verb != "get"),
        _ => Act::Pass,
    });
    bed.lead_through(&proxy)?;
    let operator = bed.another_operator(identity).await?;
    bed.lead_directly();
    Ok((operator, proxy))
}

/// Each answer takes 3 s, and then only those to writes take longer than is waited for them.
#[test]
#[ignore = "long"]
fn leader_behind_slow_api_server_takes_the_lease_once_and_leads() -> Result<()> {
    EMPTY.run(async |bed| {
        let slow: [fn(bool) -> Act; 2] = [
            |_| Act::Late(Duration::from_secs(3)),
            |writes| if writes { Act::Late(Duration::from_secs(9)) } else { Act::Pass },
        ];
        for judge in slow {
            let (mut operator, _proxy) = behind_slow_api_server(bed, "slow", judge).await?;
            logged(&bed.operator_log(), "leading").await?;
            let first = taken(bed).await?;
            // Longer than a Lease lasts without being renewed.
            let end = Instant::now() + Duration::from_secs(20);
            while Instant::now() < end {
                let (now, who) = (taken(bed).await?, holder(bed).await?);
                ensure!(
                    now == first && who == "slow",
                    "the Lease was taken again: {first}, now {now} by {who}"
                );
                let metrics = bed.fetch("/metrics").await?;
                ensure!(metrics.contains("vdo_leader 1"), "it does not lead");
                tokio::time::sleep(Duration::from_millis(500)).await;
            }
            ensure!(bed.fetch("/readyz").await?.starts_with("HTTP/1.1 200"), "it is not ready");
            operator.kill();
        }
        free_lease(bed).await
    })
}

/// No answer about the Lease comes in time: that is logged, counted, and keeps the operator from being ready.
#[test]
#[ignore = "long"]
fn leader_election_without_answers_is_logged_and_not_ready() -> Result<()> {
    EMPTY.run(async |bed| {
        let (mut operator, _proxy) = behind_slow_api_server(bed, "slow", |_| Act::Late(Duration::from_secs(9))).await?;
        logged(&bed.operator_log(), "the Lease cannot be read or written").await?;
        let text = std::fs::read_to_string(bed.operator_log())?;
        ensure!(
            text.contains("Lease kube-system/vdo-operator within 6 s"),
            "the log does not name the request: {text}"
        );
        let said = bed.fetch("/readyz").await?;
        ensure!(
            said.starts_with("HTTP/1.1 503") && said.contains("no operator is known to hold the Lease"),
            "{said}"
        );
        let metrics = bed.fetch("/metrics").await?;
        let failures = metrics.lines().find(|line| line.starts_with("vdo_lease_failures_total"));
        ensure!(
            failures.is_some_and(|line| !line.ends_with(" 0")) && metrics.contains("vdo_leader 0"),
            "{metrics}"
        );
        operator.kill();
        free_lease(bed).await
    })
}

/// A write to the Lease arrives after its operator has given it up: it must not hold what it cannot use.
#[test]
#[ignore = "long"]
fn leader_that_cannot_lead_leaves_the_lease_to_a_healthy_operator() -> Result<()> {
    EMPTY.run(async |bed| {
        let (mut slow, _proxy) = behind_slow_api_server(bed, "slow", |writes| match writes {
            true => Act::Delay(Duration::from_secs(9)),
            false => Act::Pass,
        })
        .await?;
        let slow_log = bed.operator_log();
        until_held_by(bed, "slow").await?;
        let mut healthy = bed.another_operator("healthy").await?;
        logged(&slow_log, "the API server confirmed the write to the Lease too late").await?;
        let waited = until_held_by(bed, "healthy").await?;
        let first = taken(bed).await?;
        let end = Instant::now() + Duration::from_secs(20);
        while Instant::now() < end {
            let (now, who) = (taken(bed).await?, holder(bed).await?);
            ensure!(now == first && who == "healthy", "the Lease went on to {who}");
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        println!("the healthy operator leads after {waited:?}");
        slow.kill();
        healthy.kill();
        free_lease(bed).await
    })
}
