// SPDX-License-Identifier: Apache-2.0
//! The operator as OLM v1 installs, upgrades and removes it: a ClusterExtension, and images that its programs pull themselves.

use crate::catalog::{release, text};
use crate::common::{Bed, NS, PATIENCE, condition};
use crate::olm_bed::{prerequisites, release as bundle_of, repository};
use crate::transcript::{Transcript, WORKLOADS};
use crate::upgrade::{ensure_wrote_nothing, workloads};
use anyhow::{Context, Result, ensure};
use kube::api::DeleteParams;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use vdo_testbed::{OLM_V1, OlmV1, Probe, until};

/// The account with which OLM v1 installs; a user brings it.
const INSTALLER: &str = "vdo-installer";
const EXTENSION: &str = "get clusterextension vdo --output custom-columns=NAME:.metadata.name,VERSION:.status.install.bundle.version,CONDITIONS:.status.conditions[*].type,STATUS:.status.conditions[*].status";

/// Stores these bundles and a catalog of them in the registry, and has catalogd serve it.
async fn publish(bed: &Bed, olm: &mut OlmV1, folder: &Path, bundles: &[(&str, PathBuf)]) -> Result<()> {
    let host = olm.registry().host();
    let tag = format!("of-{}", bundles.len());
    let (catalog, image) = (folder.join("catalog"), folder.join(format!("image-{tag}")));
    let mut args = vec!["catalog".to_owned()];
    for (version, bundle) in bundles {
        let (reference, layout) = (format!("{host}/vdo-bundle:v{version}"), folder.join(format!("layout-{version}")));
        release(&[
            "bundle-image",
            "--bundle",
            text(bundle),
            "--output",
            text(&layout),
            "--reference",
            &reference,
        ])?;
        olm.registry().store("vdo-bundle", &format!("v{version}"), &layout).await?;
        args.extend(["--bundle".to_owned(), format!("{reference}={}", bundle.display())]);
    }
    let reference = format!("{host}/vdo-catalog:{tag}");
    for (flag, value) in [("--output", text(&catalog)), ("--image", text(&image)), ("--reference", &reference)] {
        args.extend([flag.to_owned(), value.to_owned()]);
    }
    release(&args.iter().map(String::as_str).collect::<Vec<_>>())?;
    olm.registry().store("vdo-catalog", &tag, &image).await?;
    olm.serve(&bed.cluster, &reference).await
}

/// Asks for this version, with the operator's namespace alone.
async fn extension(bed: &Bed, version: &str) -> Result<()> {
    bed.apply(
        &json!({"apiVersion": OLM_V1, "kind": "ClusterExtension", "metadata": {"name": "vdo"}, "spec": {
        "namespace": NS, "serviceAccount": {"name": INSTALLER},
        "config": {"configType": "Inline", "inline": {"watchNamespace": NS}},
        "source": {"sourceType": "Catalog", "catalog": {"packageName": "vdo", "version": version}}}}),
    )
    .await
}

/// Waits until OLM says that this version is installed, and the operator's pod with its image is ready alone.
async fn until_installed(bed: &Bed, olm: &mut OlmV1, version: &str) -> Result<()> {
    let image = format!("{}:v{version}", repository()?);
    until(&format!("ClusterExtension vdo to have {version}"), PATIENCE, async || {
        olm.check()?;
        let found = bed.get(OLM_V1, "ClusterExtension", "", "vdo").await?;
        let installed = condition(&found, "Installed")["status"] == "True" && found["status"]["install"]["bundle"]["version"] == version;
        let pods = bed.list("v1", "Pod", "app.kubernetes.io/name=vdo-operator").await?;
        let runs = pods.len() == 1
            && pods[0]["spec"]["containers"][0]["image"] == image.as_str()
            && condition(&pods[0], "Ready")["status"] == "True";
        let catalog = bed.get(OLM_V1, "ClusterCatalog", "", "test-catalog").await?;
        let state = || format!("{}\ncatalog: {}\n{}", found["status"], catalog["status"], bed.agent.logs());
        Ok(Probe::when(installed && runs, state()))
    })
    .await
}

/// What the API server says to the user who deletes the ClusterExtension; nothing where it would do so.
async fn refusal(bed: &Bed) -> Result<Option<String>> {
    let params = DeleteParams {
        dry_run: true,
        ..DeleteParams::default()
    };
    until("the policy to know the definition", PATIENCE, async || {
        let answer = match bed.api(OLM_V1, "ClusterExtension", "").delete("vdo", &params).await {
            Ok(_) => None,
            Err(kube::Error::Api(status)) => Some(status.message),
            Err(error) => return Err(error.into()),
        };
        let early = answer.as_ref().filter(|message| message.contains("failed to configure policy"));
        Ok(match early {
            Some(message) => Probe::not_yet(message),
            None => Probe::Ready(answer),
        })
    })
    .await
}

#[test]
fn olm_v1_installs_upgrades_without_a_write_to_drivers_and_is_removed_in_order() -> Result<()> {
    crate::common::prepare();
    tokio::runtime::Runtime::new()?.block_on(async {
        let mut bed = Bed::start_for_images().await?;
        let mut olm = OlmV1::start(&bed.cluster).await?;
        let outcome = installed_upgraded_removed(&mut bed, &mut olm).await;
        if outcome.is_err() {
            bed.cluster.keep_dir();
        }
        outcome.with_context(|| format!("logs: {}", olm.dir().display()))
    })
}

async fn installed_upgraded_removed(bed: &mut Bed, olm: &mut OlmV1) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let first = bundle_of(bed, folder.path(), "0.1.0", |_| ()).await?;
    publish(bed, olm, folder.path(), &[("0.1.0", first.clone())]).await?;
    for object in prerequisites()? {
        bed.apply(&object).await?;
    }
    bed.apply(&json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": INSTALLER, "namespace": NS}}))
        .await?;
    bed.apply(
        &json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": INSTALLER},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": INSTALLER, "namespace": NS}]}),
    )
    .await?;
    extension(bed, "0.1.0").await?;
    until_installed(bed, olm, "0.1.0").await?;
    bed.apply_samples().await?;
    bed.until_ready().await?;
    let mut seen = Transcript::default();
    seen.say("ClusterExtension vdo requests version 0.1.0.");
    for line in [EXTENSION, WORKLOADS] {
        seen.kubectl(bed, line).await?;
    }

    let before = workloads(bed).await?;
    let mark = bed.cluster.audit().mark().await?;
    let second = bundle_of(bed, folder.path(), "0.2.0", |_| ()).await?;
    publish(bed, olm, folder.path(), &[("0.1.0", first), ("0.2.0", second)]).await?;
    extension(bed, "0.2.0").await?;
    until_installed(bed, olm, "0.2.0").await?;
    bed.until_ready().await?;
    assert_eq!(workloads(bed).await?, before, "the upgrade replaced something of the drivers");
    ensure_wrote_nothing(bed, mark).await?;
    seen.say("ClusterExtension vdo requests version 0.2.0.");
    for line in [EXTENSION, WORKLOADS] {
        seen.kubectl(bed, line).await?;
    }

    let refused = refusal(bed).await?.context("it would be deleted")?;
    ensure!(
        refused.contains("kubectl delete vdoconfig vdo --namespace vmware-system-vdo"),
        "{refused}"
    );
    seen.say("The wrong order.");
    let (code, _) = seen.kubectl(bed, "delete clusterextension vdo").await?;
    ensure!(code != 0, "it was deleted");
    seen.say("The right order.");
    seen.kubectl(bed, "delete vdoconfig --all --namespace vmware-system-vdo --timeout=10m")
        .await?;
    let (code, said) = seen.kubectl(bed, "delete clusterextension vdo").await?;
    ensure!(code == 0, "{said}");
    seen.hold("olm-v1");
    until("the operator's pod to be gone", PATIENCE, async || {
        Ok(Probe::when(bed.operator_pod().await? == Value::Null, "it is there"))
    })
    .await?;
    // They belong to the extension, other than with OLM v0.
    for plural in ["vdoconfigs", "vspherecloudconfigs", "compatibilityconfigs"] {
        let name = format!("{plural}.vdo.vmware.com");
        until(&format!("{name} to be gone"), PATIENCE, async || {
            let found = bed.get("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", &name).await?;
            Ok(Probe::when(found == Value::Null, "it is there"))
        })
        .await?;
    }
    Ok(())
}
