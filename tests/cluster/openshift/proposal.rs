// SPDX-License-Identifier: Apache-2.0
//! `vdoctl deploy` on OpenShift: what its own objects say is proposed, confirmed, and installed as it was shown.

use super::{CONFIG, cluster, initialised, platform, play, version};
use crate::common::{Bed, NS};
use crate::deploy::operate;
use crate::fixture::alone;
use crate::screen::Screen;
use crate::terminals::vdoctl;
use anyhow::{Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

const VDO: &str = "vdo.vmware.com/v1alpha1";

/// Infrastructure with these vCenters and two failure domains.
async fn infrastructure(bed: &Bed, vcenters: Value) -> Result<()> {
    let server = bed.vcenter.host();
    let domain = |zone: &str| {
        json!({"name": zone, "region": "r", "zone": zone, "server": server, "topology": {"datacenter": "DC0", "computeCluster": "/DC0/host/DC0_C0",
            "networks": ["VM Network"], "datastore": "/DC0/datastore/LocalDS_0"}})
    };
    let vsphere = json!({"vcenters": vcenters, "failureDomains": [domain("a"), domain("b")],
        "nodeNetworking": {"internal": {"networkSubnetCidr": ["10.0.0.0/16"]}, "external": {}}});
    let change = json!({"spec": {"platformSpec": {"type": "VSphere", "vsphere": vsphere}}});
    bed.merge(CONFIG, "Infrastructure", "", "cluster", change).await
}

async fn credentials(bed: &Bed) -> Result<()> {
    let server = bed.vcenter.host();
    let data = json!({(format!("{server}.username")): STANDARD.encode(bed.vcenter.user()), (format!("{server}.password")): STANDARD.encode(bed.vcenter.password())});
    bed.apply(
        &json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "vsphere-creds", "namespace": "kube-system"}, "data": data}),
    )
    .await
}

async fn nothing_is_there(bed: &Bed) -> Result<()> {
    let found = bed.get("apps/v1", "Deployment", NS, "vdo-operator").await?;
    ensure!(found == Value::Null, "it wrote {found}");
    Ok(())
}

/// What is proposed is shown with its origin, written only after it was confirmed, and what the operator then runs with. Flags win, and a later
/// deployment with one flag keeps the rest.
#[test]
#[ignore = "long"]
fn deploy_on_openshift_proposes_what_infrastructure_says_and_keeps_it() -> Result<()> {
    alone(async || {
        let mut bed = cluster().await?;
        version(&bed, "4.18.3").await?;
        platform(&bed, json!({"type": "VSphere", "vsphere": {}})).await?;
        let print = bed.vcenter.thumbprint_sha256();
        let deploy = |more: &[&str]| bed.vdoctl(&[&["deploy", "--thumbprint", &print], more].concat());

        // An object without the part of vSphere.
        let (code, _, said) = deploy(&["--credentials-from-openshift", "--yes"])?;
        let words = "Infrastructure cluster: spec.platformSpec.vsphere.vcenters names no vCenter, and ConfigMap \
                     openshift-config/cloud-provider-config names no vCenter";
        ensure!(code == 2 && said.contains(words) && said.contains("--vcenter"), "{code}: {said}");

        let server = json!({"server": bed.vcenter.host(), "port": bed.vcenter.port(), "datacenters": ["DC0"]});
        infrastructure(&bed, json!([server])).await?;
        let proxy =
            json!({"httpProxy": "http://proxy.invalid:3128", "httpsProxy": "http://proxy.invalid:3128", "noProxy": ".svc,127.0.0.0/8"});
        play(&bed, CONFIG, "Proxy", "cluster", json!({}), proxy).await?;
        let (code, _, said) = deploy(&["--yes"])?;
        ensure!(
            code == 2 && said.contains("--credentials-from-openshift") && said.contains("--user"),
            "{code}: {said}"
        );
        let (code, _, said) = deploy(&["--credentials-from-openshift", "--yes"])?;
        ensure!(said.contains("Secret kube-system/vsphere-creds does not exist"), "{code}: {said}");
        credentials(&bed).await?;
        initialised(&bed).await?;

        // No one has confirmed it.
        let (code, shown, said) = deploy(&["--credentials-from-openshift"])?;
        ensure!(
            code != 0 && said.contains("no terminal") && said.contains("--yes"),
            "{code}: {said}"
        );
        let address = bed.vcenter.address();
        for line in [
            &*format!("vCenter {address}, datacenter DC0 (Infrastructure cluster: spec.platformSpec.vsphere.vcenters)"),
            "CSI alone; OpenShift runs the cloud provider itself",
            "cluster id: ocp-x7k2p (Infrastructure cluster: status.infrastructureName)",
            "topology categories: openshift-region, openshift-zone (Infrastructure cluster: spec.platformSpec.vsphere.failureDomains, 2 failure domains)",
        ] {
            ensure!(shown.contains(line) || said.contains(line), "no {line}:\n{shown}{said}");
        }
        nothing_is_there(&bed).await?;

        let line = format!("deploy --thumbprint {print} --credentials-from-openshift --no-wait --ignore-checks");
        let mut screen = asked(&bed, &line).await?;
        screen.types("n\n")?;
        let (code, shown) = screen.ended().await?;
        ensure!(
            code == 4 && shown.contains("were not confirmed, so nothing was written"),
            "{code}: {shown}"
        );
        nothing_is_there(&bed).await?;
        // The terminal is closed instead of an answer.
        asked(&bed, &line).await?.kill()?;
        nothing_is_there(&bed).await?;
        let mut screen = asked(&bed, &line).await?;
        screen.types("y\n")?;
        let (code, shown) = screen.ended().await?;
        ensure!(code == 0, "{code}: {shown}");
        ensure!(!shown.contains(bed.vcenter.password()), "the password was printed");
        written(&bed).await?;
        let (code, shown, said) = bed.vdoctl(&["deploy", "--update-policy", "Disabled", "--yes", "--no-wait", "--ignore-checks"])?;
        ensure!(code == 0, "{code}: {shown}{said}");
        let spec = bed.get(VDO, "VDOConfig", NS, "vdo").await?["spec"].clone();
        ensure!(
            spec["updatePolicy"] == "Disabled" && spec["storageProvider"]["clusterId"] == "ocp-x7k2p",
            "{spec}"
        );
        ensure!(
            spec["storageProvider"]["topologyCategories"]
                .as_array()
                .is_some_and(|all| all.len() == 2),
            "{spec}"
        );
        operate(&mut bed).await?;
        // The simulator has no tags of these categories.
        let change = json!({"spec": {"storageProvider": {"topologyCategories": null}}});
        bed.merge(VDO, "VDOConfig", NS, "vdo", change).await?;
        let ready = bed.until_ready().await?;
        ensure!(ready["status"]["clusterId"] == "ocp-x7k2p", "{}", ready["status"]);
        Ok(())
    })
}

/// The command on a terminal, where it has shown what OpenShift proposes and asks.
async fn asked(bed: &Bed, line: &str) -> Result<Screen> {
    let mut screen = Screen::start(vdoctl(bed, line)?)?;
    screen.until("Deploy to cluster").await?;
    screen.types("y\n")?;
    screen.until("Are these values right? [y/N]").await?;
    ensure!(screen.shown().contains("cluster id: ocp-x7k2p"), "{}", screen.shown());
    Ok(screen)
}

/// What was written is what was shown.
async fn written(bed: &Bed) -> Result<()> {
    let connection = bed.get(VDO, "VsphereCloudConfig", NS, "vc1").await?["spec"].clone();
    assert_eq!(connection["vcIp"], bed.vcenter.host(), "{connection}");
    assert_eq!(connection["port"], bed.vcenter.port(), "{connection}");
    assert_eq!(connection["datacenters"], json!(["DC0"]), "{connection}");
    let spec = bed.get(VDO, "VDOConfig", NS, "vdo").await?["spec"].clone();
    assert_eq!(spec["cloudProvider"], Value::Null, "{spec}");
    let storage = &spec["storageProvider"];
    assert_eq!(storage["clusterDistribution"], "OpenShift", "{spec}");
    assert_eq!(storage["clusterId"], "ocp-x7k2p", "{spec}");
    assert_eq!(
        storage["topologyCategories"],
        json!(["openshift-region", "openshift-zone"]),
        "{spec}"
    );
    let secret = bed.get("v1", "Secret", NS, "vc1-credentials").await?;
    assert_eq!(secret["data"]["password"], STANDARD.encode(bed.vcenter.password()));
    let map = bed.get("v1", "ConfigMap", NS, "vdo-trusted-ca").await?;
    assert_eq!(
        map["metadata"]["labels"]["config.openshift.io/inject-trusted-cabundle"], "true",
        "{map}"
    );
    let operator = bed.get("apps/v1", "Deployment", NS, "vdo-operator").await?;
    let env = operator["spec"]["template"]["spec"]["containers"][0]["env"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    for (name, value) in [("HTTPS_PROXY", "http://proxy.invalid:3128"), ("NO_PROXY", ".svc,127.0.0.0/8")] {
        ensure!(env.contains(&json!({"name": name, "value": value})), "no {name}: {env:?}");
    }
    Ok(())
}
