// SPDX-License-Identifier: Apache-2.0
//! The attacks that consist of files, against an operator that runs.

use crate::attacks::{Victim, attacks};
use crate::common::Bed;
use crate::matrix_source::Publisher;
use crate::matrix_web::until_refused;
use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

/// What is served: the index, and its signature if there is one.
pub type Files<'a> = (&'a [u8], Option<&'a str>);

/// Who publishes what the operator uses.
pub struct Publication<'a> {
    pub key: &'a Publisher,
    pub index: Value,
    /// The bytes of the index that is in use, and their signature.
    pub used: (Vec<u8>, String),
}

impl<'a> Publication<'a> {
    /// What is in use when these bytes are published.
    pub fn of(key: &'a Publisher, text: &str) -> Result<Self> {
        let index = vdo_api::yaml::load_all(text)?.into_iter().next().context("an index")?;
        let used = (text.as_bytes().to_vec(), key.signature(text.as_bytes())?);
        Ok(Self { key, index, used })
    }

    pub fn version(&self) -> Result<u64> {
        self.index["version"].as_u64().context("a version")
    }

    /// The index in another version, signed.
    pub fn next(&self, version: u64, change: impl FnOnce(&mut Value) -> Result<()>) -> Result<(Vec<u8>, String)> {
        let mut index = self.index.clone();
        index["version"] = version.into();
        change(&mut index)?;
        let text = index.to_string();
        let signature = self.key.signature(text.as_bytes())?;
        Ok((text.into_bytes(), signature))
    }

    /// Serves what is in use, and waits until the operator is content with it.
    pub async fn restore(&self, bed: &Bed, put: &impl AsyncFn(Files<'_>) -> Result<()>) -> Result<()> {
        put((&self.used.0, Some(&self.used.1))).await?;
        bed.until_reason("MatrixFresh", "Healthy").await?;
        Ok(())
    }

    /// Serves each attack in the place of what is in use. Each is refused for its reason, and changes nothing that runs.
    pub async fn withstands(&self, bed: &Bed, exactly: bool, put: &impl AsyncFn(Files<'_>) -> Result<()>) -> Result<()> {
        let stranger = Publisher::new()?;
        let at = |version: u64| {
            let mut index = self.index.clone();
            index["version"] = version.into();
            index.to_string()
        };
        let victim = Victim {
            index: &at,
            version: self.version()?,
            sign: &|text| self.key.signature(text),
            stranger: &|text| stranger.signature(text),
        };
        let before = bed.owned().await?;
        for attack in attacks(&victim)? {
            put((&attack.index, attack.signature.as_deref())).await?;
            let said = if exactly { attack.said.as_str() } else { "" };
            until_refused(bed, attack.reason, said)
                .await
                .with_context(|| format!("the attack is {}", attack.name))?;
            ensure!(bed.owned().await? == before, "{} changed what runs", attack.name);
            self.restore(bed, put).await?;
        }
        Ok(())
    }
}
