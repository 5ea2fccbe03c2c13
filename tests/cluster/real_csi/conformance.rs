// SPDX-License-Identifier: Apache-2.0
//! csi-sanity of kubernetes-csi against the driver as the operator has installed it, with an account of `vdoctl users`. What it finds is in
//! `tests/fixtures/csi-sanity.yaml`, and explained on docs/conformance.md, which is generated from that.

use super::{ACCOUNT, CLASS, Trust, install_as, with_driver};
use crate::common::Bed;
use crate::users::{done, user_in_secret};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::Path;
use vdo_testbed::{CsiPlugin, CsiVersion, PATIENCE, Probe, Sanity, SanityCase, until};

const VERSION: &str = "3.7.0";
const RESULTS: &str = "tests/fixtures/csi-sanity.yaml";
const NODE: &str = "w-1";
const DEFINITION: &str = "csinodetopologies.cns.vmware.com";
/// The account of the plugin on nodes.
const NODE_ACCOUNT: &str = "system:serviceaccount:vmware-system-csi:vsphere-csi-node";

/// Every case ends as it is recorded; nothing is forbidden to the driver, neither in the cluster nor in a vCenter that enforces privileges.
#[test]
#[ignore = "needs a machine that does nothing else: make conformance"]
fn real_csi_conformance_ends_as_the_page_shows() -> Result<()> {
    with_driver(&[CsiVersion::Newer], Trust::Thumbprint, async |bed| {
        for (category, tag) in [("k8s-region", "region-1"), ("k8s-zone", "zone-a")] {
            bed.vcenter.tag(category, tag, "Datacenter", "DC0").await?;
        }
        bed.vcenter.enforce(true).await?;
        done(bed, "create", &["--yes", "--features", "cloud-provider,block,topology"])?;
        let storage = json!({"version": VERSION, "storageClasses": [{"name": CLASS}], "topologyCategories": ["k8s-region", "k8s-zone"]});
        install_as(bed, storage).await?;
        let plugin = plugin(bed).await?;
        let controller = until("the driver's controller to be ready", PATIENCE, async || {
            Ok(bed
                .agent
                .csi_socket()
                .map_or_else(|| Probe::not_yet(bed.agent.logs()), Probe::Ready))
        })
        .await?;
        let sanity = Sanity {
            controller,
            node: plugin.socket(),
            shared: plugin.shared(),
        };
        let mut cases = sanity.run().await?;
        cases.sort_by(|one, other| one.name.cmp(&other.name));
        let outcome = is_as_recorded(&cases).and(nothing_was_forbidden(bed, &cases).await);
        outcome.with_context(|| format!("log of the plugin: {}", plugin.log().display()))
    })
}

/// The plugin of a node, when the syncer answers which zone a node is in.
async fn plugin(bed: &Bed) -> Result<CsiPlugin> {
    until("the definition of the nodes' topology", PATIENCE, async || {
        let found = bed
            .get("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", DEFINITION)
            .await?;
        Ok(Probe::when(found["status"]["acceptedNames"]["kind"].is_string(), found))
    })
    .await?;
    let other = json!({"apiVersion": "cns.vmware.com/v1alpha1", "kind": "CSINodeTopology", "metadata": {"name": "w-2"},
        "spec": {"nodeID": "w-2", "nodeuuid": uuid(bed, "w-2").await?}});
    bed.apply(&other).await?;
    until("the syncer to know the zone of a node", 2 * PATIENCE, async || {
        let found = bed.get("cns.vmware.com/v1alpha1", "CSINodeTopology", "", "w-2").await?;
        Ok(Probe::when(
            found["status"]["status"] == "Success",
            format!("{found}\n{}", bed.agent.logs()),
        ))
    })
    .await?;
    let mut plugin = bed.agent.start_csi_plugin(NODE, &uuid(bed, NODE).await?).await?;
    until("the plugin to listen", PATIENCE, async || {
        plugin.check()?;
        Ok(Probe::when(plugin.socket().exists(), "not yet"))
    })
    .await?;
    Ok(plugin)
}

/// The UUID of a node's machine, as the cloud provider has found it.
async fn uuid(bed: &Bed, node: &str) -> Result<String> {
    let node = bed.get("v1", "Node", "", node).await?;
    let id = node["spec"]["providerID"].as_str().and_then(|id| id.strip_prefix("vsphere://"));
    Ok(id.context("a provider ID")?.to_owned())
}

#[expect(
    clippy::disallowed_methods,
    reason = "a test has no argument parser; the page on testing names the variable"
)]
fn is_to_be_written() -> bool {
    std::env::var("VDO_CONFORMANCE").is_ok_and(|value| value == "write")
}

fn is_as_recorded(cases: &[SanityCase]) -> Result<()> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(RESULTS);
    let found = recorded(cases)?;
    if is_to_be_written() {
        return Ok(std::fs::write(file, found)?);
    }
    let expected = std::fs::read_to_string(&file).with_context(|| format!("file {}", file.display()))?;
    let differ = |one: &str, other: &str, mark: char| -> String {
        let lines = one.lines().filter(|line| !other.lines().any(|known| known == *line));
        lines.map(|line| format!("{mark} {line}\n")).collect()
    };
    ensure!(
        found == expected,
        "not as in {RESULTS} (- recorded, + now); where that is right: VDO_CONFORMANCE=write make conformance\n{}{}",
        differ(&expected, &found, '-'),
        differ(&found, &expected, '+')
    );
    Ok(())
}

/// The results as YAML.
fn recorded(cases: &[SanityCase]) -> Result<String> {
    let mut text = format!("# Written by `VDO_CONFORMANCE=write make conformance`. Do not edit.\ndriver: {VERSION}\ncases:\n");
    for case in cases {
        // One line for each, so that what differs is a whole case.
        let (name, message) = (&case.name, lasting(&case.message));
        let message = match message.as_str() {
            "" => String::new(),
            text => format!(", message: {}", serde_json::to_string(text)?),
        };
        writeln!(
            text,
            "- {{case: {}, result: {}{message}}}",
            serde_json::to_string(name)?,
            case.state
        )?;
    }
    Ok(text)
}

/// A message on one line, without what is another one in each run.
fn lasting(message: &str) -> String {
    let mut lines = message.lines().map(str::trim);
    let of_driver = lines.clone().find(|line| line.starts_with("rpc error: "));
    let text = of_driver.map_or_else(|| lines.by_ref().collect::<Vec<_>>().join(" "), str::to_owned);
    // Protocol buffers print one blank or two, which differs from one build of the driver to the next.
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let is_of_word = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
    let mut left = String::new();
    for piece in text.split_inclusive(|letter| !is_of_word(letter)) {
        let word = piece.trim_end_matches(|letter| !is_of_word(letter));
        let kept: Vec<&str> = word
            .split('-')
            .take_while(|part| !part.contains(|letter: char| letter.is_ascii_digit()))
            .collect();
        let is_id = word.len() >= 8 && kept.len() < word.split('-').count();
        left += &if is_id { kept.join("-") + "…" } else { word.to_owned() };
        left += &piece[word.len()..];
    }
    left
}

/// What the driver may do is enough for everything that is asked of it.
async fn nothing_was_forbidden(bed: &Bed, cases: &[SanityCase]) -> Result<()> {
    let own = |user: &str| user == ACCOUNT || user == NODE_ACCOUNT;
    let requests = bed.cluster.audit().requests(|entry| own(&entry.user)).await?;
    let of_node = requests.0.iter().filter(|entry| entry.user == NODE_ACCOUNT).count();
    ensure!(
        requests.len() > 100 && of_node > 0,
        "the driver has made {} requests, {of_node} from the node",
        requests.len()
    );
    let forbidden = requests.clone().only(|entry| entry.code == 403);
    ensure!(forbidden.is_empty(), "forbidden to the driver:\n{forbidden}");
    let refused = cases.iter().find(|case| case.message.contains("NoPermission"));
    ensure!(refused.is_none(), "refused by the vCenter: {refused:?}");
    let user = user_in_secret(bed).await?;
    let logins = bed.vcenter.logins().await?.get(&user).copied().unwrap_or_default();
    ensure!(logins.failed == 0 && logins.succeeded > 0, "{user}: {logins:?}");
    let used = bed.vcenter.used(&user).await?;
    let disks = "VirtualMachine.Config.AddExistingDisk";
    ensure!(used.contains(disks), "no disk was attached by {user}: {used:?}");
    Ok(())
}

#[test]
#[ignore = "long"]
fn conformance_message_is_the_same_in_every_run() {
    for (message, expected) in [
        ("GetCapacity not supported", "GetCapacity not supported"),
        (
            "unexpected error: no VM for node:\"fake-node-id-b80117c2-c\"\nExpected\n    <codes.Code>: 13\nto equal\n    <codes.Code>: 5",
            "unexpected error: no VM for node:\"fake-node-id…\" Expected <codes.Code>: 13 to equal <codes.Code>: 5",
        ),
        (
            "Unexpected  error:\n    <*status.Error | 0x35294ab90c60>: \n    rpc error: code = Internal desc = disk 7f600668-0768-4cbb-bbc5-c89c7b79ccb9 é\n    {",
            "rpc error: code = Internal desc = disk … é",
        ),
    ] {
        assert_eq!(lasting(message), expected);
    }
    let case = SanityCase {
        name: "A / \"b\"".into(),
        state: "failed".into(),
        message: "c: d".into(),
    };
    let text = recorded(&[case]).unwrap_or_default();
    let read: Value = vdo_api::yaml::load_value(&text).unwrap_or_default();
    assert_eq!(read["cases"], json!([{"case": "A / \"b\"", "result": "failed", "message": "c: d"}]));
}
