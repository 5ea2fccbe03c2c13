// SPDX-License-Identifier: Apache-2.0
//! Derives `minKubeVersion`, the newest OpenShift and `relatedImages` of the OLM bundle from the versions of the matrix.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use vdo_core::drivers::KNOWN;
use vdo_core::matrix::{Entry, Index, State};
use vdo_core::openshift;

/// Minors of Kubernetes that are looked at; 1.99 is decades away.
const MINORS: std::ops::Range<u64> = 0..100;

/// The versions of a driver that may be chosen, deprecated ones as well.
fn usable<'a>(index: &'a Index, driver: &str) -> impl Iterator<Item = &'a Entry> {
    let versions = index.drivers.get(driver).into_iter();
    let versions = versions.flat_map(|driver| &driver.versions);
    versions.filter(|entry| !matches!(entry.state, State::Withdrawn(_)) && !entry.version.is_prerelease())
}

/// The minors of Kubernetes for which every driver that is installed by default has a version, in order.
fn minors(index: &Index) -> Vec<u64> {
    let has = |minor: u64, driver: &str| usable(index, driver).any(|entry| entry.kubernetes.range.contains(&[1, minor]));
    let all = |minor: &u64| KNOWN.iter().all(|driver| has(*minor, driver.name));
    MINORS.filter(all).collect()
}

/// The oldest Kubernetes, as `minKubeVersion` has it.
pub(super) fn oldest_kubernetes(index: &Index) -> Result<String> {
    let minors = minors(index);
    Ok(format!("1.{}.0", minors.first().context("the matrix supports no Kubernetes")?))
}

/// The newest OpenShift, which OLM keeps a cluster at while this version of the operator is installed.
pub(super) fn newest_openshift(index: &Index) -> Result<String> {
    let minors = minors(index);
    let newest = minors.last().context("the matrix supports no Kubernetes")?;
    let minor = newest
        .checked_sub(openshift::FIRST)
        .context("the matrix supports no Kubernetes version of OpenShift 4")?;
    Ok(format!("4.{minor}"))
}

/// The images of the newest version of each driver: by digest where the matrix knows it.
pub(super) fn related_images(index: &Index) -> Vec<Value> {
    let mut all: Vec<Value> = Vec::new();
    for driver in KNOWN {
        let Some(newest) = usable(index, driver.name)
            .filter(|entry| entry.state == State::Good)
            .max_by_key(|entry| &entry.version)
        else {
            continue;
        };
        for image in &newest.images {
            let reference = match &image.digest {
                Some(digest) => format!("{}@{digest}", without_tag(&image.reference)),
                None => image.reference.clone(),
            };
            if all.iter().all(|known| known["image"] != reference.as_str()) {
                all.push(json!({"name": format!("{}-{}", driver.name, dashes(&image.name)), "image": reference}));
            }
        }
    }
    all
}

fn without_tag(reference: &str) -> &str {
    match reference.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => name,
        _ => reference,
    }
}

/// `livenessProbe` as `liveness-probe`.
fn dashes(name: &str) -> String {
    let mut out = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            out.push('-');
        }
        out.push(letter.to_ascii_lowercase());
    }
    out
}
