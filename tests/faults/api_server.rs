// SPDX-License-Identifier: Apache-2.0
//! An API server that refuses, forgets, looks back and dies: the drivers stay as they are, and the end is the same.

use crate::common::{NS, PATIENCE, condition};
use crate::lab::Scenario;
use crate::oracle::{State, nothing_twice};
use crate::shared::run;
use crate::stale_reads::{deleted, identities};
use anyhow::{Result, ensure};
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use vdo_testbed::{Act, Call, Cut, Probe, until};

/// Three in ten, by their numbers; not by chance, so that every run is the same.
fn unlucky(call: &Call) -> bool {
    matches!(call.number.wrapping_mul(7) % 10, 0 | 3 | 6)
}

/// 429, 500 and 503 with Retry-After for three in ten of all requests.
pub fn refusing(call: &Call) -> Act {
    let code = [429, 500, 503][call.number % 3];
    let retry_after = Some(Duration::from_secs(1));
    if unlucky(call) {
        Act::Answer { code, retry_after }
    } else {
        Act::Pass
    }
}

#[test]
fn api_server_refusing_requests_delays_install_without_hot_loop() -> Result<()> {
    run(false, true, async |lab, fresh| {
        let undisturbed = fresh.requests;
        let run = lab.run_judged(Scenario::Install, refusing).await?;
        fresh.state.same(&run.state)?;
        println!(
            "3 in 10 requests refused: same end in {:.1} s, {} requests instead of {undisturbed}",
            run.took.as_secs_f64(),
            run.requests
        );
        // Each refused request is sent again by the client, and some of those are refused again: 1 / 0.7. Twice as many would be a hot
        // loop; as many as without a refusal, and nothing was refused.
        ensure!(
            (undisturbed + undisturbed / 10..=undisturbed * 2 + 10).contains(&run.requests),
            "{}",
            lab.trail()
        );
        Ok(())
    })
}

#[test]
fn api_server_losing_answers_of_writes_ends_in_same_state() -> Result<()> {
    run(false, true, async |lab, fresh| {
        let run = lab
            .run_judged(Scenario::Install, |call| {
                if call.writes() && unlucky(call) {
                    Act::LoseAnswer
                } else {
                    Act::Pass
                }
            })
            .await?;
        fresh.state.same(&run.state)?;
        println!(
            "3 in 10 answers to writes lost: same end in {:.1} s, nothing twice",
            run.took.as_secs_f64()
        );
        Ok(())
    })
}

/// The record of a login is stored, and the answer is lost: no password was sent, so the connection does not wait the five minutes after a
/// login of which the outcome is not known.
#[test]
fn api_server_losing_answer_of_login_record_does_not_delay_login() -> Result<()> {
    run(true, true, async |lab, _| {
        const SOON: Duration = Duration::from_secs(120);
        let lost = AtomicBool::new(false);
        lab.proxy.begin(move |call| {
            let records = call.verb == "patch" && call.resource == "vspherecloudconfigs";
            if records && !lost.swap(true, Ordering::Relaxed) {
                Act::LoseAnswer
            } else {
                Act::Pass
            }
        });
        let mut secret = lab.bed.secret(lab.bed.vcenter.password());
        secret["stringData"]["note"] = "another version of the same login".into();
        lab.bed.apply(&secret).await?;
        let stored = lab.bed.get("v1", "Secret", NS, "vc1-credentials").await?;
        until("the new version of the login to be verified", SOON, async || {
            let connection = lab.bed.get("vdo.vmware.com/v1alpha1", "VsphereCloudConfig", NS, "vc1").await?;
            let credential = &connection["status"]["credential"];
            Ok(Probe::when(
                credential["verified"] == stored["metadata"]["resourceVersion"],
                credential,
            ))
        })
        .await?;
        let handled = lab.proxy.handled();
        let record = handled.iter().find(|h| h.act == Act::LoseAnswer);
        ensure!(
            record.is_some_and(|h| h.call.line().contains("vspherecloudconfigs")),
            "no answer was lost"
        );
        lab.quiet().await
    })
}

/// An API server that has just started refuses whom it does not know yet. That says nothing about a login that has worked: it stays
/// known, its session stays open, and no password is sent once more.
#[test]
fn api_server_refusing_to_show_secrets_for_a_moment_keeps_login() -> Result<()> {
    run(true, true, async |lab, _| {
        let connection = async || lab.bed.get("vdo.vmware.com/v1alpha1", "VsphereCloudConfig", NS, "vc1").await;
        let secrets = |call: &Call| call.resource == "secrets" && call.namespace == NS && matches!(call.verb, "list" | "watch" | "get");
        let before = connection().await?["status"]["credential"].clone();
        ensure!(before["verified"].is_string(), "{before}");
        let logins = lab.bed.vcenter.logins().await?;
        lab.proxy.begin(move |call| {
            if secrets(call) || call.resource == "selfsubjectrulesreviews" {
                Act::Answer {
                    code: 401,
                    retry_after: None,
                }
            } else {
                Act::Pass
            }
        });
        ensure!(lab.proxy.cut(Cut::Gone, secrets) > 0, "no Secret was watched");
        until("the connection to lack its Secret", PATIENCE, async || {
            let found = condition(&connection().await?, "CredentialsFound");
            Ok(Probe::when(found["reason"] == "Forbidden", &found))
        })
        .await?;
        lab.quiet().await?;
        let meanwhile = connection().await?["status"]["credential"].clone();
        ensure!(meanwhile == before, "{before} became {meanwhile}");
        lab.proxy.judge(|_| Act::Pass);
        until("the connection to be ready", PATIENCE, async || {
            let now = connection().await?;
            let ready = condition(&now, "Ready");
            let found = condition(&now, "CredentialsFound");
            Ok(Probe::when(
                ready["status"] == "True" && found["status"] == "True",
                format!("{ready} {found}"),
            ))
        })
        .await?;
        lab.done(Scenario::Configure).await?;
        lab.quiet().await?;
        ensure!(connection().await?["status"]["credential"] == before, "another login was recorded");
        let after = lab.bed.vcenter.logins().await?;
        ensure!(after == logins, "{logins:?} became {after:?}");
        Ok(())
    })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn any(_: &Call) -> bool {
    true
}

/// Watches that are reset, end, or are too old, once by an event and once by a status code.
#[test]
fn api_server_ending_watches_leads_to_no_storm_and_no_write() -> Result<()> {
    run(true, true, async |lab, _| {
        // A process of its own, with no watch that a test before has broken.
        lab.bed.kill_operator();
        lab.proxy.begin(|_| Act::Pass);
        lab.bed.start_operator().await?;
        lab.done(Scenario::Configure).await?;
        lab.quiet().await?;
        let (mut before, mut seen) = (0, 0);
        until("as many watches for a while", PATIENCE, async || {
            let now = lab.proxy.watches(any);
            seen = if now == before { seen + 1 } else { 0 };
            before = now;
            Ok(Probe::when(seen > 20, now))
        })
        .await?;
        ensure!(before > 10, "only {before} watches run");
        for (how, refused) in [(Cut::Reset, false), (Cut::End, false), (Cut::Gone, false), (Cut::End, true)] {
            let listed = Mutex::new(BTreeSet::new());
            lab.proxy.begin(move |call| match call.verb {
                // Until it lists again.
                "watch" if refused && !lock(&listed).contains(&call.resource) => Act::Answer {
                    code: 410,
                    retry_after: None,
                },
                "list" => {
                    lock(&listed).insert(call.resource.clone());
                    Act::Pass
                }
                _ => Act::Pass,
            });
            ensure!(lab.proxy.cut(how, any) == before, "not all watches were cut");
            until("all watches to run again", PATIENCE, async || {
                let now = lab.proxy.watches(any);
                Ok(Probe::when(now == before, format!("{now} of {before}")))
            })
            .await?;
            lab.quiet().await?;
            let handled = lab.proxy.handled();
            let lists = handled.iter().filter(|h| h.call.verb == "list").count();
            let asked = handled.iter().filter(|h| h.call.verb == "watch").count();
            println!(
                "{before} watches {how:?}{}: {lists} lists, {asked} watches",
                if refused { " and refused with 410" } else { "" }
            );
            ensure!(lab.proxy.writes() == 0, "something was written:\n{}", lab.trail());
            // A client whose place is too old has to list again; all others go on from where they were.
            let listed_at_most = if how == Cut::Gone || refused { before } else { 0 };
            ensure!(lists <= listed_at_most, "a storm of lists: {lists}");
            ensure!(asked <= 2 * before, "a storm of watches: {asked}");
        }
        Ok(())
    })
}

/// The driver's namespace is on its way out, held by an object of another user: that is reported, and the installation goes on when
/// the administrator has brought the next one.
#[test]
fn namespace_terminating_is_named_and_install_goes_on_in_the_next_one() -> Result<()> {
    run(false, true, async |lab, fresh| {
        const PLACE: &str = "vmware-system-csi";
        let bed = &lab.bed;
        bed.apply(
            &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "held", "namespace": PLACE,
        "finalizers": ["example.org/someone"]}}),
        )
        .await?;
        bed.delete("v1", "Namespace", "", PLACE).await?;
        lab.proxy.begin(|_| Act::Pass);
        lab.act(Scenario::Install).await?;
        let said = until("a condition that names the namespace", PATIENCE, async || {
            let config = bed.get("vdo.vmware.com/v1alpha1", "VDOConfig", NS, "vdo").await?;
            let ready = condition(&config, "Ready");
            let names = ready["message"].as_str().unwrap_or_default().contains(PLACE);
            Ok(if names && ready["status"] == "False" {
                Probe::Ready(ready)
            } else {
                Probe::not_yet(ready)
            })
        })
        .await?;
        println!("namespace terminating: {}: {}", said["reason"], said["message"]);
        lab.quiet().await?;
        let refused = lab.proxy.writes();
        bed.merge("v1", "ConfigMap", PLACE, "held", json!({"metadata": {"finalizers": null}}))
            .await?;
        until("the namespace to be gone", PATIENCE, async || {
            let namespace = bed.get("v1", "Namespace", "", PLACE).await?;
            Ok(Probe::when(namespace.is_null(), &namespace["status"]))
        })
        .await?;
        bed.grant().await?;
        lab.done(Scenario::Install).await?;
        lab.quiet().await?;
        nothing_twice(&lab.proxy.handled())?;
        println!("{refused} writes until then; installed when it was gone");
        fresh.state.same(&State::of(bed).await?)
    })
}

/// etcd and the API server are killed, one after the other and both; the drivers are not touched, and the operator goes on.
#[test]
fn api_server_and_etcd_killed_drivers_stay_and_drift_is_repaired() -> Result<()> {
    run(true, true, async |lab, _| {
        for (etcd, apiserver) in [(false, true), (true, false), (true, true)] {
            let before = (State::of(&lab.bed).await?, identities(lab).await?);
            lab.proxy.begin(|_| Act::Pass);
            if apiserver {
                lab.bed.cluster.stop_apiserver();
            }
            if etcd {
                lab.bed.cluster.stop_etcd();
            }
            // As long as it takes the operator to see it: every watch is gone, or what it asks fails.
            if apiserver {
                until("the watches to break", PATIENCE, async || {
                    Ok(Probe::when(lab.proxy.watches(any) == 0, "some run"))
                })
                .await?;
            }
            if etcd {
                lab.bed.cluster.start_etcd()?;
            }
            if apiserver {
                lab.bed.cluster.start_apiserver().await?;
            }
            // Drift shows that it sees and writes again.
            let object = ("v1", "ServiceAccount", "kube-system", "cloud-controller-manager");
            let labels = json!({"metadata": {"labels": {"app.kubernetes.io/managed-by": "vdo", "vdo.vmware.com/driver": "unknown"}}});
            until("the API server to take a change", PATIENCE, async || {
                let change = lab.bed.merge(object.0, object.1, object.2, object.3, labels.clone()).await;
                Ok(change.map_or_else(Probe::not_yet, Probe::Ready))
            })
            .await?;
            let begun = std::time::Instant::now();
            until("the drift to be repaired", PATIENCE, async || {
                let now = lab.bed.get(object.0, object.1, object.2, object.3).await?;
                let label = &now["metadata"]["labels"]["vdo.vmware.com/driver"];
                Ok(Probe::when(label != "unknown", label))
            })
            .await?;
            let repaired = begun.elapsed();
            lab.done(Scenario::Configure).await?;
            lab.quiet().await?;
            let removed = deleted(&lab.proxy.handled());
            ensure!(removed.is_empty(), "deleted: {removed:?}");
            before.0.same(&State::of(&lab.bed).await?)?;
            ensure!(before.1 == identities(lab).await?, "something was recreated");
            // The drift, and what is said meanwhile: nothing else was to be done.
            ensure!(lab.proxy.writes() <= 20, "{} writes:\n{}", lab.proxy.writes(), lab.trail());
            println!(
                "killed: etcd {etcd}, API server {apiserver}: nothing touched, {} writes, drift repaired {:.1} s after the server was back",
                lab.proxy.writes(),
                repaired.as_secs_f64()
            );
        }
        lab.bed.cluster.check()
    })
}
