// SPDX-License-Identifier: Apache-2.0
//! Which addresses nodes get: what the check of a connection says is what the real cloud provider does, for specifications and machines of all kinds.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "tests")]

use crate::common::{Bed, NODES, NS, PATIENCE, condition};
use crate::fixture::alone;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use vdo_api::api::VDOConfigSpec;
use vdo_core::driverconfig::node_addresses::Adapter;
use vdo_core::drivers::node_addresses;
use vdo_testbed::{Probe, UNINITIALIZED, VcenterOptions, until};

const VDO: &str = "vdo.vmware.com/v1alpha1";

/// The adapters of a machine: the network and the addresses of each.
type Adapters = &'static [(&'static str, &'static [&'static str])];

/// What machines report of their adapters: the name of a row, and each adapter with its network and its addresses.
const MACHINES: [(&str, Adapters); 9] = [
    ("four", &[("blue", &["10.1.0.1"])]),
    ("six", &[("blue", &["2001:db8::1"])]),
    ("both", &[("blue", &["fe80::1", "10.1.0.2", "2001:db8::2"])]),
    ("other", &[("red", &["192.168.7.1"])]),
    ("two", &[("Red", &["192.168.7.2"]), ("blue", &["10.1.0.3", "10.2.0.3"])]),
    ("split", &[("red", &["2001:db8:7::4"]), ("green", &["10.2.0.4"])]),
    ("local", &[("blue", &["169.254.0.9", "fe80::9", "::1"])]),
    ("bare", &[("blue", &[])]),
    ("none", &[]),
];

/// What the cloud provider is asked for.
fn specifications() -> Vec<Value> {
    vec![
        json!({}),
        json!({"ipFamilies": ["IPv6"]}),
        json!({"ipFamilies": ["IPv4", "IPv6"]}),
        json!({"nodeNetworks": {"internal": {"subnets": ["10.1.0.0/16"], "excludedSubnets": ["192.168.0.0/16"]},
            "external": {"excludedSubnets": ["192.168.7.0/24", "10.2.0.0/16"]}}}),
        json!({"ipFamilies": ["IPv6", "IPv4"], "nodeNetworks": {"internal": {"name": "RED"}, "external": {"name": "green"}}}),
    ]
}

fn adapters(row: Adapters) -> Vec<Adapter> {
    row.iter()
        .map(|(network, addresses)| Adapter {
            network: (*network).into(),
            addresses: addresses.iter().map(|address| (*address).to_owned()).collect(),
        })
        .collect()
}

/// What the node has of each address, by type.
fn of_node(node: &Value) -> BTreeMap<String, Vec<String>> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for address in node["status"]["addresses"].as_array().into_iter().flatten() {
        let text = |key: &str| address[key].as_str().unwrap_or_default().to_owned();
        found.entry(text("type")).or_default().push(text("address"));
    }
    found.remove("Hostname");
    found
}

/// What it should have; `None` where the cloud provider does not register it.
fn expected(spec: &Value, row: Adapters) -> Result<Option<BTreeMap<String, Vec<String>>>> {
    let spec: VDOConfigSpec = serde_json::from_value(json!({"cloudProvider": spec}))?;
    let Ok(chosen) = node_addresses(&spec).choose(&adapters(row)) else {
        return Ok(None);
    };
    let mut wanted: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for family in chosen {
        for (kind, address) in [("InternalIP", family.internal), ("ExternalIP", family.external)] {
            wanted
                .entry(kind.into())
                .or_default()
                .extend(address.map(|address| address.to_string()));
        }
    }
    wanted.retain(|_, addresses| !addresses.is_empty());
    Ok(Some(wanted))
}

/// The cloud provider runs with this part of the specification.
async fn ask(bed: &Bed, spec: &Value) -> Result<()> {
    bed.apply(&bed.config(json!({"cloudProvider": spec}))).await?;
    until(&format!("the cloud provider to run with {spec}"), PATIENCE, async || {
        let config = bed.get(VDO, "VDOConfig", NS, "vdo").await?;
        let current = config["status"]["observedGeneration"] == config["metadata"]["generation"];
        let ready = condition(&config, "CloudProviderReady");
        Ok(Probe::when(current && ready["status"] == "True", &config["status"]["conditions"]))
    })
    .await
}

/// The cloud provider's process is that of the newest pod.
async fn restarted(bed: &Bed) -> Result<()> {
    until("the cloud provider's process to be that of the newest pod", PATIENCE, async || {
        let pods = bed.list("v1", "Pod", "name=vsphere-cloud-controller-manager").await?;
        let names: Vec<&str> = pods.iter().filter_map(|pod| pod["metadata"]["name"].as_str()).collect();
        let runs: Vec<String> = bed.agent.runs().into_iter().filter(|run| run.running).map(|run| run.pod).collect();
        Ok(Probe::when(runs == names && names.len() == 1, json!([names, runs])))
    })
    .await
}

/// A node joins, and comes to what is expected of it: its addresses, or an error about it in the log of the cloud provider.
async fn join(bed: &Bed, name: &str, wanted: Option<&BTreeMap<String, Vec<String>>>) -> Result<()> {
    let taint = json!([{"key": UNINITIALIZED, "value": "true", "effect": "NoSchedule"}]);
    let node = json!({"apiVersion": "v1", "kind": "Node", "spec": {"taints": taint},
        "metadata": {"name": name, "labels": {"kubernetes.io/os": "linux", "kubernetes.io/hostname": name}}});
    bed.apply(&node).await?;
    until(&format!("the cloud provider to judge {name}"), PATIENCE, async || {
        let node = bed.get("v1", "Node", "", name).await?;
        let registered = node["spec"]["providerID"].is_string();
        let failed = bed.agent.logs().contains(&format!("error syncing '{name}'"));
        let found = of_node(&node);
        Ok(match wanted {
            Some(_) if !registered => Probe::not_yet(format!("{node}, failed: {failed}")),
            // The addresses are written after the provider ID.
            Some(wanted) => Probe::when(&found == wanted, format!("{name} has {found:?}, the check says {wanted:?}")),
            None => {
                ensure!(!registered, "{name} is registered with {found:?}, the check says that it cannot be");
                Probe::when(failed, "the cloud provider has not tried yet")
            }
        })
    })
    .await
}

/// Each specification with each machine. Names differ in each round, because a node that has a provider ID keeps it.
#[test]
#[ignore = "long"]
fn addresses_of_nodes_are_those_that_the_check_expects() -> Result<()> {
    alone(async || {
        let specifications = specifications();
        let rows = |at: usize| MACHINES.iter().map(move |(row, machine)| (format!("{row}-{at}"), *machine));
        let names: Vec<String> = (0..specifications.len()).flat_map(rows).map(|(name, _)| name).collect();
        let machines = NODES.into_iter().chain(names.iter().map(|name| (name.as_str(), "10.9.9.9")));
        let mut bed = Bed::start_with(VcenterOptions::with_vms(machines)).await?;
        for (name, machine) in (0..specifications.len()).flat_map(rows) {
            let text: Vec<String> = machine
                .iter()
                .map(|(network, all)| format!("{network}={}", all.join(",")))
                .collect();
            bed.vcenter.set("VirtualMachine", &name, &[("adapters", &text.join(";"))]).await?;
        }
        for (at, (name, _)) in NODES.into_iter().enumerate() {
            let adapters = format!("red=10.1.9.{at},2001:db8:9::{at}");
            bed.vcenter.set("VirtualMachine", name, &[("adapters", &adapters)]).await?;
        }
        bed.start_operator().await?;
        bed.apply(&bed.secret(bed.vcenter.password())).await?;
        bed.apply(&bed.connection("vc1")).await?;
        let mut missing = 0;
        for (at, spec) in specifications.iter().enumerate() {
            ask(&bed, spec).await?;
            restarted(&bed).await?;
            let joined = rows(at).map(async |(name, machine)| {
                let wanted = expected(spec, machine)?;
                join(&bed, &name, wanted.as_ref())
                    .await
                    .with_context(|| format!("{spec}, {machine:?}"))?;
                anyhow::Ok(wanted.is_none().then_some(name))
            });
            let joined = futures::future::try_join_all(joined).await?;
            let lacking: Vec<String> = joined.into_iter().flatten().collect();
            ensure!(
                !lacking.is_empty(),
                "each specification should leave a machine without addresses: {spec}"
            );
            missing += lacking.len();
            // What the connection reports is the same.
            let report = bed
                .until_condition("VsphereCloudConfig", "vc1", "NodesFound", "GuestAddressMissing")
                .await?;
            let message = report["message"].as_str().unwrap_or_default();
            ensure!(lacking.iter().any(|name| message.contains(name.as_str())), "{lacking:?}: {message}");
            for (name, _) in rows(at) {
                bed.delete("v1", "Node", "", &name).await?;
            }
        }
        println!("{} pairs, {missing} without addresses", names.len());
        Ok(())
    })
}
