// SPDX-License-Identifier: Apache-2.0
//! The page about OLM, followed as it is written.

use crate::common::{NS, PATIENCE};
use crate::follow::Page;
use crate::olm_bed::{bundle, run};
use anyhow::{Result, ensure};
use vdo_testbed::{Binaries, CATALOG, OLM_NAMESPACE, Part, Probe, until};

#[test]
#[ignore = "long"]
fn olm_page_installs_and_removes_as_written() -> Result<()> {
    run(async |world| {
        let folder = world.release("0.1.0", |_| ()).await?;
        world.publish(&[&folder]).await?;
        let kubectl = tokio::task::spawn_blocking(|| Binaries::ensure(&[Part::Kubectl]))
            .await??
            .path(Part::Kubectl);
        let mut page = Page::open("openshift.md")?
            .with(&kubectl)?
            .set("KUBECONFIG", world.bed.cluster.kubeconfig().display())
            .instead("source: vdo-catalog", &format!("source: {CATALOG}"))?
            .instead(
                "sourceNamespace: openshift-marketplace",
                &format!("sourceNamespace: {OLM_NAMESPACE}"),
            )?;
        page.file("prerequisites.yaml", &std::fs::read_to_string(bundle().join("prerequisites.yaml"))?)?;
        page.run("kubectl apply --server-side -f prerequisites.yaml")?;
        page.run("cat > subscription.yaml")?;
        world.bed.apply_samples().await?;
        world.bed.until_ready().await?;
        page.run("kubectl patch subscription vdo")?;
        page.run("kubectl delete vdoconfig")?;
        // A person takes longer than half a minute to get here.
        ensure!(world.refusal("0.1.0").await?.is_none(), "it is refused without a VDOConfig");
        page.run("kubectl delete subscription vdo")?;
        page.run("kubectl delete operatorgroup vdo")?;
        page.end(&[])?;
        until("the operator's namespace to be gone", PATIENCE, async || {
            let namespace = world.bed.get("v1", "Namespace", "", NS).await?;
            Ok(Probe::when(namespace.is_null(), namespace["status"].to_string()))
        })
        .await
    })
}
