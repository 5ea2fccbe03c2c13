//! An API server that refuses, forgets, looks back and dies: the drivers stay as they are, and the end is the same.

use crate::bed::{NS, PATIENCE, condition};
use crate::lab::{Lab, Scenario};
use crate::oracle::{State, nothing_twice};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use vdo_testbed::{Act, Call, Cut, Handled, Probe, until};

#[tokio::test(flavor = "multi_thread")]
async fn whatever_the_api_server_does_the_drivers_stay() -> Result<()> {
    crate::bed::prepare();
    let mut lab = Lab::start().await?;
    lab.run(Scenario::Install, None).await?;
    lab.run(Scenario::Delete, None).await?;
    let fresh = lab.run(Scenario::Install, None).await?;
    lab.run(Scenario::Delete, None).await?;
    a_namespace_on_its_way_out(&mut lab, &fresh.state).await?;
    lab.run(Scenario::Delete, None).await?;
    refusals(&mut lab, &fresh.state, fresh.requests).await?;
    watches(&lab).await?;
    the_past(&mut lab).await?;
    killed_servers(&mut lab).await
}

/// Three in ten, by their numbers; not by chance, so that every run is the same.
fn unlucky(call: &Call) -> bool {
    matches!(call.number.wrapping_mul(7) % 10, 0 | 3 | 6)
}

/// 429, 500 and 503 with Retry-After for three in ten of all requests; then as many answers of writes lost.
async fn refusals(lab: &mut Lab, end: &State, undisturbed: usize) -> Result<()> {
    let run = lab
        .run_judged(Scenario::Install, |call| {
            let code = [429, 500, 503][call.number % 3];
            let retry_after = Some(Duration::from_secs(1));
            if unlucky(call) {
                Act::Answer { code, retry_after }
            } else {
                Act::Pass
            }
        })
        .await?;
    end.same(&run.state)?;
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
    lab.run_judged(Scenario::Delete, |_| Act::Pass).await?;

    let run = lab
        .run_judged(Scenario::Install, |call| {
            if call.writes() && unlucky(call) {
                Act::LoseAnswer
            } else {
                Act::Pass
            }
        })
        .await?;
    end.same(&run.state)?;
    println!(
        "3 in 10 answers to writes lost: same end in {:.1} s, nothing twice",
        run.took.as_secs_f64()
    );
    Ok(())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn any(_: &Call) -> bool {
    true
}

/// Watches that are reset, end, or are too old, once by an event and once by a status code.
async fn watches(lab: &Lab) -> Result<()> {
    let before = lab.proxy.watches(any);
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
        // Who is told that his place is too old has to list again; everybody else goes on from where he was.
        let listed_at_most = if how == Cut::Gone || refused { before } else { 0 };
        ensure!(lists <= listed_at_most, "a storm of lists: {lists}");
        ensure!(asked <= 2 * before, "a storm of watches: {asked}");
    }
    Ok(())
}

/// A new operator is shown an older cluster than there is, wholly or in part: it removes nothing, and comes to the same end.
async fn the_past(lab: &mut Lab) -> Result<()> {
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
            ("the inventory", |call| call.resource == "configmaps"),
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
            ensure!(gone.is_empty(), "shown the past of {what}: gone or made anew: {gone:?}");
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
}

/// The resource version of the cluster as it is.
async fn version(lab: &Lab) -> Result<u64> {
    let list = lab.bed.api("v1", "Namespace", "").list(&kube::api::ListParams::default()).await?;
    Ok(list.metadata.resource_version.context("a resource version")?.parse()?)
}

/// The UIDs of all that the operator made.
async fn identities(lab: &Lab) -> Result<BTreeMap<String, String>> {
    let mut all = BTreeMap::new();
    for (api_version, kind) in crate::bed::KINDS {
        for object in lab.bed.list(api_version, kind, "app.kubernetes.io/managed-by=vdo").await? {
            let text = |key: &str| object["metadata"][key].as_str().unwrap_or_default().to_owned();
            all.insert(format!("{kind} {}/{}", text("namespace"), text("name")), text("uid"));
        }
    }
    Ok(all)
}

fn deleted(handled: &[Handled]) -> Vec<String> {
    let deletes = handled
        .iter()
        .filter(|h| h.call.verb == "delete" && h.call.writes() && h.code.is_some_and(|code| code < 300));
    deletes.map(|h| h.call.line()).collect()
}

/// The driver's namespace is on its way out, held by an object of somebody else: it is said, and the installation goes on when
/// it is gone.
async fn a_namespace_on_its_way_out(lab: &mut Lab, end: &State) -> Result<()> {
    const PLACE: &str = "vmware-system-csi";
    let bed = &lab.bed;
    bed.apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": PLACE}}))
        .await?;
    bed.apply(
        &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "held", "namespace": PLACE,
        "finalizers": ["example.org/somebody"]}}),
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
    lab.done(Scenario::Install).await?;
    lab.quiet().await?;
    nothing_twice(&lab.proxy.handled())?;
    println!("{refused} writes until then; installed when it was gone");
    end.same(&State::of(bed).await?)
}

/// etcd and the API server are killed, one after the other and both; the drivers are not touched, and the operator goes on.
async fn killed_servers(lab: &mut Lab) -> Result<()> {
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
        let labels = json!({"metadata": {"labels": {"app.kubernetes.io/managed-by": "vdo", "vdo.vmware.com/driver": "nobody"}}});
        until("the API server to take a change", PATIENCE, async || {
            let change = lab.bed.merge(object.0, object.1, object.2, object.3, labels.clone()).await;
            Ok(change.map_or_else(Probe::not_yet, Probe::Ready))
        })
        .await?;
        let begun = std::time::Instant::now();
        until("the drift to be repaired", PATIENCE, async || {
            let now = lab.bed.get(object.0, object.1, object.2, object.3).await?;
            let label = &now["metadata"]["labels"]["vdo.vmware.com/driver"];
            Ok(Probe::when(label != "nobody", label))
        })
        .await?;
        let repaired = begun.elapsed();
        lab.done(Scenario::Configure).await?;
        lab.quiet().await?;
        let removed = deleted(&lab.proxy.handled());
        ensure!(removed.is_empty(), "deleted: {removed:?}");
        before.0.same(&State::of(&lab.bed).await?)?;
        ensure!(before.1 == identities(lab).await?, "something was made anew");
        // The drift, and what is said meanwhile: nothing else was to be done.
        ensure!(lab.proxy.writes() <= 20, "{} writes:\n{}", lab.proxy.writes(), lab.trail());
        println!(
            "killed: etcd {etcd}, API server {apiserver}: nothing touched, {} writes, drift repaired {:.1} s after the server was back",
            lab.proxy.writes(),
            repaired.as_secs_f64()
        );
    }
    lab.bed.cluster.check()
}
