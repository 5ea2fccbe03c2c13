// SPDX-License-Identifier: Apache-2.0
//! A version that is to be published is tried on a real API server, which keeps nothing of it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use crate::fixture::EMPTY;
use crate::matrix_web::package as chart;
use anyhow::{Result, ensure};
use serde_json::Value;

const GOOD: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: notes, namespace: vmware-system-csi}\ndata: {a: b}\n";
/// Every check without a server finds it good.
const BAD: &str = "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: notes, namespace: vmware-system-csi}\nspec: {minAvailable: 1, maxUnavailable: 1, selector: {matchLabels: {app: a}}}\n";

#[test]
#[ignore = "long"]
fn publish_version_that_the_api_server_refuses_is_not_published() -> Result<()> {
    EMPTY.run(async |bed| {
        let folder = tempfile::tempdir()?;
        let matrix = folder.path().join("matrix").display().to_string();
        let package = folder.path().join("csi.tgz").display().to_string();
        let (code, _, err) = bed.vdoctl(&["matrix", "init", &matrix])?;
        ensure!(code == 0, "{err}");
        let mark = bed.cluster.audit().mark().await?;

        std::fs::write(&package, chart(BAD)?)?;
        let (code, out, err) = bed.vdoctl(&["matrix", "publish", &package, "--to", &matrix])?;
        ensure!(
            code == 4 && err.contains("PodDisruptionBudget") && err.contains("Nothing was written"),
            "{code} {out}{err}"
        );
        let (_, list, _) = bed.vdoctl(&["matrix", "list", "csi", "--matrix", &matrix])?;
        ensure!(!list.contains("3.8.1"), "{list}");

        std::fs::write(&package, chart(GOOD)?)?;
        let (code, out, err) = bed.vdoctl(&["matrix", "publish", &package, "--to", &matrix, "-o", "json"])?;
        ensure!(code == 0, "{code} {out}{err}");
        let published: Value = serde_json::from_str(&out)?;
        let tried = published["versions"][0]["tried"].as_str().unwrap_or_default().to_owned();
        ensure!(tried.starts_with("dry run in cluster"), "{published}");

        let mine = bed
            .cluster
            .audit()
            .since(mark)
            .await?
            .only(|entry| entry.uri.contains("fieldManager=vdoctl"));
        let tries = mine.clone().only(|entry| entry.tries());
        ensure!(tries.len() > 10, "the API server was asked to try everything: {mine}");
        let writes = mine.writes();
        ensure!(writes.is_empty(), "vdoctl wrote: {writes}");
        Ok(())
    })
}
