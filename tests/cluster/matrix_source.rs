// SPDX-License-Identifier: Apache-2.0
//! A matrix from a file instead of the embedded one: read again at every look, and one that cannot be used never takes the place of the
//! one before.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use crate::common::{Bed, NS, PATIENCE, condition};
use crate::fixture::INSTALLED;
use anyhow::{Context, Result};
use serde_json::{Value, json};
use vdo_testbed::{Probe, until};

const VDO: &str = "vdo.vmware.com/v1alpha1";
const CSI_NS: &str = "vmware-system-csi";

/// The embedded index in a file of the test.
struct Matrix {
    index: Value,
    path: &'static str,
    _folder: tempfile::TempDir,
}

/// The index in the binary, for tests that change it.
pub fn embedded_index() -> Result<Value> {
    Ok(vdo_api::yaml::load_all(std::str::from_utf8(vdo_source::fetch::embedded::index())?)?.remove(0))
}

impl Matrix {
    /// Writes it with this version, and starts the operator with it.
    async fn start(bed: &mut Bed, version: u32) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("index.json");
        let matrix = Self {
            index: embedded_index()?,
            // A flag lives as long as the tests.
            path: Box::leak(file.display().to_string().into_boxed_str()),
            _folder: folder,
        };
        matrix.write(version)?;
        bed.kill_operator();
        bed.flags.push(("matrix", matrix.path));
        bed.start_operator().await?;
        matrix.until_used(bed, version).await?;
        Ok(matrix)
    }

    fn write(&self, version: u32) -> Result<()> {
        let mut index = self.index.clone();
        index["version"] = version.into();
        Ok(std::fs::write(self.path, index.to_string())?)
    }

    fn destroy(&self) -> Result<()> {
        Ok(std::fs::write(self.path, "drivers: [")?)
    }

    /// Waits until the status names this file in this version and calls it fresh.
    async fn until_used(&self, bed: &Bed, version: u32) -> Result<()> {
        until("another matrix to be in use", PATIENCE, async || {
            let matrix = &bed.status().await?["matrix"];
            let used = matrix["version"] == version && matrix["source"] == self.path;
            Ok(Probe::when(used, matrix))
        })
        .await?;
        bed.until_reason("MatrixFresh", "Healthy").await?;
        Ok(())
    }
}

/// Makes the operator look again.
pub async fn look(bed: &Bed, token: &str) -> Result<()> {
    let change = json!({"metadata": {"annotations": {"vdo.vmware.com/reconcile-at": token}}});
    bed.merge(VDO, "VDOConfig", NS, "vdo", change).await
}

#[test]
fn matrix_file_broken_keeps_last_good_one_in_use() -> Result<()> {
    INSTALLED.run(async |bed| {
        let matrix = Matrix::start(bed, 7001).await?;
        let path = matrix.path;
        let before = bed.owned().await?;
        matrix.destroy()?;
        look(bed, "broken").await?;
        let found = bed.until_reason("MatrixFresh", "MatrixInvalid").await?;
        let message = found["message"].as_str().unwrap_or_default();
        assert!(message.contains(path) && message.contains("7001"), "{message}");
        assert_eq!(bed.status().await?["matrix"]["version"], 7001, "the last good one is in use");
        assert_eq!(bed.owned().await?, before, "nothing that runs is touched");
        // With an index that cannot be used vdoctl decides nothing, as an operator would that starts with it.
        let (code, _, err) = bed.vdoctl(&["plan", "--matrix", path])?;
        assert!(
            code == 4 && err.contains(&format!("vdoctl matrix lint {}", shlex::try_quote(path)?)),
            "{code} {err}"
        );
        matrix.write(7002)?;
        look(bed, "valid").await?;
        matrix.until_used(bed, 7002).await
    })
}

/// A publisher's key, with its public half in a file that the operator trusts.
pub struct Publisher(vdo_source::signature::PrivateKey, String);

impl Publisher {
    pub fn new() -> Result<Self> {
        let pem = rcgen::KeyPair::generate()?.serialize_pem();
        let key = vdo_source::signature::PrivateKey::parse(&vdo_api::types::Secret::new(pem.clone()))?;
        Ok(Self(key, pem))
    }

    /// Its private half, PEM.
    pub fn private(&self) -> &str {
        &self.1
    }

    /// The public half, PEM.
    pub fn public(&self) -> String {
        self.0.public().pem()
    }

    pub fn signature(&self, bytes: &[u8]) -> Result<String> {
        Ok(self.0.sign(bytes, vdo_source::signature::Form::Bare)?)
    }

    /// Signs the file as it is.
    fn sign(&self, file: &str) -> Result<()> {
        Ok(std::fs::write(format!("{file}.sig"), self.signature(&std::fs::read(file)?)?)?)
    }
}

/// Waits until the matrix of this version is refused as not trusted, and the one before is in use.
async fn until_refused(bed: &Bed, token: &str, said: &str) -> Result<()> {
    look(bed, token).await?;
    until(&format!("a matrix to be refused: {said}"), PATIENCE, async || {
        let config = bed.get(VDO, "VDOConfig", NS, "vdo").await?;
        let found = condition(&config, "MatrixFresh");
        let reported = found["message"].as_str().is_some_and(|message| message.contains(said));
        Ok(Probe::when(reported && found["reason"] == "MatrixNotTrusted", found))
    })
    .await
}

/// What is not signed by a trusted key never takes the place of what is, and keys change without a restart.
#[test]
#[ignore = "long"]
fn matrix_without_signature_of_a_trusted_key_is_refused() -> Result<()> {
    INSTALLED.run(async |bed| {
        let (old, new) = (Publisher::new()?, Publisher::new()?);
        let matrix = Matrix::start(bed, 7001).await?;
        old.sign(matrix.path)?;
        let keys = matrix.path.replace("index.json", "keys.pem");
        std::fs::write(&keys, old.0.public().pem())?;
        bed.kill_operator();
        bed.flags.push(("matrix-keys", Box::leak(keys.clone().into_boxed_str())));
        bed.start_operator().await?;
        let signer = old.0.public().fingerprint().to_string();
        until("the signer to be shown", PATIENCE, async || {
            let matrix = &bed.status().await?["matrix"];
            Ok(Probe::when(matrix["signer"] == signer.as_str(), matrix))
        })
        .await?;
        let before = bed.owned().await?;

        matrix.write(7002)?;
        until_refused(bed, "changed", "changed after it was signed").await?;
        std::fs::remove_file(format!("{}.sig", matrix.path))?;
        until_refused(bed, "unsigned", "the file is not signed").await?;
        new.sign(matrix.path)?;
        until_refused(bed, "another key", "no trusted key has signed the file").await?;
        assert_eq!(bed.status().await?["matrix"]["version"], 7001, "the last good one is in use");
        assert_eq!(bed.owned().await?, before, "nothing that runs is touched");
        for command in ["plan", "diff"] {
            let (code, _, err) = bed.vdoctl(&[command, "--matrix", matrix.path, "--matrix-keys", &keys])?;
            assert!(code == 4 && err.contains("not trusted"), "{code} {err}");
        }

        // Both are trusted while one takes the place of the other; then the old one is not any more.
        std::fs::write(&keys, format!("{}{}", old.0.public().pem(), new.0.public().pem()))?;
        look(bed, "two keys").await?;
        matrix.until_used(bed, 7002).await?;
        std::fs::write(&keys, new.0.public().pem())?;
        matrix.write(7003)?;
        old.sign(matrix.path)?;
        until_refused(bed, "revoked", "no trusted key has signed the file").await?;
        new.sign(matrix.path)?;
        let away = format!("{keys}.away");
        std::fs::rename(&keys, &away)?;
        until_refused(bed, "no keys", "cannot read").await?;
        std::fs::rename(&away, &keys)?;
        look(bed, "new key").await?;
        matrix.until_used(bed, 7003).await
    })
}

/// The operator decides with the matrix that the cluster keeps; without that it keeps what runs. It goes on when there is a matrix.
#[test]
#[ignore = "long"]
fn operator_started_with_broken_matrix_keeps_what_runs() -> Result<()> {
    INSTALLED.run(async |bed| {
        let matrix = Matrix::start(bed, 7001).await?;
        until("the cluster to keep the matrix", PATIENCE, async || {
            let map = bed.state().await?;
            let kept = map["data"]["matrix"].as_str().is_some_and(|kept| kept.contains(matrix.path));
            Ok(Probe::when(kept, "it does not"))
        })
        .await?;
        bed.kill_operator();
        matrix.destroy()?;
        bed.start_operator().await?;
        until("an operator that decides with what is kept", PATIENCE, async || {
            let found = condition(&bed.get(VDO, "VDOConfig", NS, "vdo").await?, "MatrixFresh");
            let kept = found["message"]
                .as_str()
                .is_some_and(|message| message.contains("previous version 7001 is used"));
            Ok(Probe::when(kept && found["reason"] == "MatrixInvalid", found))
        })
        .await?;
        bed.kill_operator();
        bed.merge_state(json!({"data": {"matrix": null}})).await?;
        bed.start_operator().await?;
        let found = until("an operator that keeps what runs", PATIENCE, async || {
            let config = bed.get(VDO, "VDOConfig", NS, "vdo").await?;
            let found = condition(&config, "MatrixFresh");
            let kept = found["message"]
                .as_str()
                .is_some_and(|message| message.contains("no version is selected"));
            Ok(if kept { Probe::Ready(found) } else { Probe::not_yet(found) })
        })
        .await?;
        assert!(found["status"] == "False" && found["reason"] == "MatrixInvalid", "{found}");
        bed.delete("v1", "Service", CSI_NS, "vsphere-csi-controller").await?;
        until("a deleted object to be back", PATIENCE, async || {
            let service = bed.get("v1", "Service", CSI_NS, "vsphere-csi-controller").await?;
            Ok(Probe::when(service != Value::Null, "not there"))
        })
        .await?;
        bed.until_ready().await?;
        assert_eq!(bed.status().await?["matrix"]["version"], 7001, "the one that was decided with last");
        matrix.write(7002)?;
        look(bed, "valid").await?;
        matrix.until_used(bed, 7002).await
    })
}

/// With the operator's matrix vdoctl wants what the operator wants. With another one, in which the version that runs has another chart,
/// it wants something else, and reports that.
#[test]
#[ignore = "long"]
fn vdoctl_with_another_matrix_than_the_operator_reports_it() -> Result<()> {
    INSTALLED.run(async |bed| {
        let matrix = Matrix::start(bed, 7002).await?;
        let operator = matrix.path;
        let mut changed = matrix.index.clone();
        let versions = changed["drivers"]["vsphere-csi"]["versions"].as_array_mut().context("versions")?;
        let chart = versions.iter().find(|entry| entry["version"] == "3.7.3").context("a version")?["chart"].clone();
        let runs = versions
            .iter_mut()
            .find(|entry| entry["version"] == "3.8.0")
            .context("the version that runs")?;
        runs["chart"] = chart;
        let folder = tempfile::tempdir()?;
        std::fs::write(folder.path().join("index.yaml"), changed.to_string())?;
        let folder = folder.path().to_str().context("a path")?;
        for verb in ["plan", "diff"] {
            let wants = |more: &[&str]| -> Result<(i32, String, String)> {
                let (code, out, err) = bed.vdoctl(&[&[verb, "-o", "json"], more].concat())?;
                let plan: Value = serde_json::from_str(&out).with_context(|| err.clone())?;
                Ok((code, plan["objects"].to_string(), err))
            };
            let (code, own, said) = wants(&["--matrix", operator])?;
            assert!(
                code == 0 && !said.contains("another matrix"),
                "{verb} with the operator's: {own} {said}"
            );
            let (code, other, said) = wants(&["--matrix", folder])?;
            assert!(code == 1 && other.contains("driver:v3.7.3"), "{verb} with another: {other}");
            assert!(
                said.contains(&format!(
                    "another matrix: {operator}, version 7002. Without --matrix, this answer uses the matrix of the operator"
                )),
                "{said}"
            );
            let (code, unnamed, said) = wants(&[])?;
            assert!(
                code == 0 && unnamed == own && !said.contains("another matrix"),
                "{verb}: {unnamed} {said}"
            );
        }
        let (code, objects, _) = bed.vdoctl(&["render", "--matrix", folder])?;
        assert!(
            code == 0 && objects.contains("driver:v3.7.3") && !objects.contains("driver:v3.8.0"),
            "{objects}"
        );
        Ok(())
    })
}
