// SPDX-License-Identifier: Apache-2.0
//! A matrix in a file: the embedded one with few versions, of which the vCenter decides, too.

use crate::matrix_source::embedded_index;
use anyhow::{Context, Result};
use serde_json::{Value, json};

const CPI: [&str; 8] = ["1.30.2", "1.31.1", "1.32.3", "1.33.1", "1.34.0", "1.35.0", "1.35.1", "1.36.0"];
/// The CSI driver's versions, from which vCenter on each runs, and from which version on it is reached.
const CSI: [(&str, &str, Option<&str>); 5] = [
    ("3.3.1", "7.0", None),
    ("3.5.1", "7.0", None),
    ("3.6.3", "7.0", None),
    ("3.7.2", "8.0", Some("3.6.0")),
    ("3.7.3", "8.0.3", Some("3.6.0")),
];

pub struct Matrix {
    index: Value,
    version: u32,
    folder: tempfile::TempDir,
}

impl Matrix {
    pub fn new() -> Result<Self> {
        let mut index = embedded_index()?;
        let mut versions = |driver: &str, change: &dyn Fn(&mut Value) -> bool| -> Result<()> {
            let all = index["drivers"][driver]["versions"].as_array_mut().context("versions")?;
            all.retain_mut(|entry| change(entry));
            Ok(())
        };
        versions("vsphere-cpi", &|entry| CPI.iter().any(|version| entry["version"] == *version))?;
        versions("vsphere-csi", &|entry| {
            let Some((_, vcenter, from)) = CSI.iter().find(|(version, ..)| entry["version"] == *version) else {
                return false;
            };
            entry["vsphere"]["min"] = json!(vcenter);
            if let Some(from) = from {
                entry["upgradesFrom"]["min"] = json!(from);
            }
            true
        })?;
        let matrix = Self {
            index,
            version: 9000,
            folder: tempfile::tempdir()?,
        };
        std::fs::write(matrix.path(), matrix.index.to_string())?;
        Ok(matrix)
    }

    pub fn path(&self) -> String {
        self.folder.path().join("index.json").display().to_string()
    }

    /// Writes it once more, with these versions of the CSI driver withdrawn. Its version.
    pub fn withdraw(&mut self, withdrawn: &[&str]) -> Result<u32> {
        self.version += 1;
        let mut index = self.index.clone();
        index["version"] = self.version.into();
        let versions = index["drivers"]["vsphere-csi"]["versions"].as_array_mut().context("versions")?;
        for entry in versions
            .iter_mut()
            .filter(|entry| withdrawn.iter().any(|version| entry["version"] == *version))
        {
            entry["state"] = json!({"kind": "withdrawn", "reason": "it loses volumes"});
        }
        // Never half of it: the operator reads it at every look.
        let new = self.folder.path().join("new");
        std::fs::write(&new, index.to_string())?;
        std::fs::rename(new, self.path())?;
        Ok(self.version)
    }
}
