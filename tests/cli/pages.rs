// SPDX-License-Identifier: Apache-2.0
//! Pages of the documentation whose commands need no cluster, as they stand there.

use crate::follow::Page;
use crate::publish::folder::Publisher;
use anyhow::{Result, ensure};
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

fn open(page: &'static str) -> Result<Page> {
    Page::open(page)?.with(Path::new(vdo_testbed::vdoctl()))
}

#[test]
fn page_faq_works_as_written() -> Result<()> {
    open("faq.md")?.run_all()
}

/// A publisher without a cluster, who has the package of a version that the matrix does not know.
#[test]
fn page_matrix_publishes_as_written() -> Result<()> {
    if Command::new("openssl").arg("version").output().is_err() {
        // Past the harness, which keeps what a good test prints.
        writeln!(std::io::stderr(), "SKIPPED: needs openssl (page_matrix_publishes_as_written)")?;
        return Ok(());
    }
    let mut page = open("matrix.md")?;
    std::fs::copy(Publisher::copy().csi_3_7_4(), page.folder().join("vsphere-csi-3.7.4.tgz"))?;
    page.run("vdoctl matrix list")?;
    page.run("openssl genpkey")?;
    page.run("vdoctl matrix withdraw")?;
    page.end(&["vdoctl matrix load", "oras push"])
}

/// A working copy, and the manifests of a version that differs from the one before in its images.
#[test]
fn page_charts_adds_a_version_as_written() -> Result<()> {
    let page = open("charts.md")?;
    let upstream = page.folder().join("upstream/vsphere-csi-driver/3.7.4");
    std::fs::create_dir_all(&upstream)?;
    let copied = Command::new("cp")
        .args(["-r", concat!(env!("CARGO_MANIFEST_DIR"), "/charts"), "."])
        .current_dir(page.folder())
        .status()?;
    ensure!(copied.success(), "the charts cannot be copied");
    let values = ["--set", "webhook.enabled=true", "--set", "webhook.caBundle=Q0E="];
    let rendered = super::vdoctl(&[&["chart", "render", "csi", "--version", "3.7.3"][..], &values].concat()).output()?;
    let manifests = String::from_utf8(rendered.stdout)?
        .replace("v3.7.3", "v3.7.4")
        .replace("Q0E=", "${CA_BUNDLE}");
    std::fs::write(upstream.join("vsphere-csi-driver.yaml"), manifests)?;
    let upstream = page.folder().join("upstream");
    page.set("VDO_UPSTREAM_DIR", upstream.display()).run_all()
}
