// SPDX-License-Identifier: Apache-2.0
//! What a mirror costs, beside skopeo and crane: a pull, a second pull, a push and a copy of the same images between the same registries in the
//! same run, and the memory for a layer of half a gigabyte. The images have the shape of those of CSI 3.7.x and CPI 1.34.x, and noise for content.
//!
//! `VDO_BENCH_ROUNDS` says how often everything is done (3), and `VDO_BENCH_PART` by how much smaller the images are (1): as they are, five
//! gigabytes of free disk are needed. The layer of half a gigabyte stays.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    missing_docs,
    reason = "a bench that cannot start should stop, and prints"
)]

mod images;
mod measured;
mod program;

use anyhow::{Context, Result};
use measured::Run;
use program::{middle, run};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use vdo_api::types::Digest;
use vdo_core::chart;
use vdo_source::fetch::embedded;
use vdo_testbed::{RegistryAuth, RegistryKind, RegistryServer};

const K8S: &str = "registry.k8s.io/";
const ALL: &str = "csi=3.7.*,cpi=1.34.*";
const LARGE: &str = "registry.k8s.io/bench/large:v1";

/// The registry of the publishers, and what is between it and a site.
struct Bench {
    source: RegistryServer,
    folder: tempfile::TempDir,
    /// Every image of the versions, with its registry.
    names: Vec<String>,
    skopeo: bool,
    crane: PathBuf,
    /// Authorities of both registries.
    trust: PathBuf,
}

#[tokio::main]
async fn main() -> Result<()> {
    let rounds = setting("VDO_BENCH_ROUNDS").unwrap_or(3);
    let bench = Bench::start(setting("VDO_BENCH_PART").unwrap_or(1)).await?;
    let mut programs = vec!["vdoctl", "crane"];
    programs.extend(bench.skopeo.then_some("skopeo"));
    let mut runs: BTreeMap<(&str, &str), Vec<Run>> = BTreeMap::new();
    let mut bundle = Value::Null;
    for _ in 0..rounds {
        // Each is the first in some round.
        programs.rotate_left(1);
        for program in &programs {
            for what in ["pull", "push", "copy"] {
                // Every time a new one: programs know which blobs they have sent to a registry.
                let site = RegistryServer::start(RegistryKind::Distribution, RegistryAuth::None).await?;
                bench.trust_also(&site)?;
                let done = match (*program, what) {
                    ("vdoctl", "pull") => {
                        let (run, said) = bench.pull(&bench.path("vdoctl"), ALL, "none")?;
                        bundle = said;
                        run
                    }
                    ("vdoctl", "push") => bench.vdoctl(&["mirror", "push", &bench.path("vdoctl"), &at(&site)])?.0,
                    ("vdoctl", _) => bench.copy(&at(&site))?,
                    ("skopeo", what) => bench.skopeo(what, &site)?,
                    (_, what) => bench.crane(what, &site)?,
                };
                runs.entry((what, *program)).or_default().push(done);
            }
            if *program == "vdoctl" {
                bench.second()?;
            }
            std::fs::remove_dir_all(bench.path(program))?;
        }
    }
    let bytes = bundle["bytes"].as_f64().context("bytes")?;
    println!(
        "bundle of {} images, CSI 3.7.x and CPI 1.34.x: {:.0} MiB in {} blobs",
        bench.names.len(),
        bytes / f64::from(1 << 20),
        bundle["blobs"]
    );
    for what in ["pull", "push", "copy"] {
        let of = |program| runs.get(&(what, program)).cloned().map(middle);
        let Some(ours) = of("vdoctl") else { continue };
        for program in ["vdoctl", "skopeo", "crane"] {
            let Some(found) = of(program) else { continue };
            println!(
                "{what:5} {program:7} {:6.1} s, {:5.0} MiB/s, {:.2} of ours; peak memory {:.0} MiB",
                found.seconds,
                bytes / f64::from(1 << 20) / found.seconds,
                found.seconds / ours.seconds,
                found.peak
            );
        }
    }
    bench.large().await
}

fn setting(name: &str) -> Option<u64> {
    #[expect(clippy::disallowed_methods, reason = "a bench has no arguments of its own")]
    let text = std::env::var(name).ok()?;
    text.parse().ok()
}

fn at(site: &RegistryServer) -> String {
    format!("oci://{}/site", site.host())
}

impl Bench {
    async fn start(part: u64) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let source = RegistryServer::start(RegistryKind::Distribution, RegistryAuth::None).await?;
        let names = matrix(&folder.path().join("matrix"))?;
        let skopeo = Command::new("skopeo")
            .arg("--version")
            .output()
            .is_ok_and(|output| output.status.success());
        if !skopeo {
            println!("skopeo is not installed, so it is not beside us");
        }
        let bench = Self {
            trust: folder.path().join("trust/ca.crt"),
            crane: vdo_testbed::crane().await?,
            source,
            folder,
            names,
            skopeo,
        };
        std::fs::create_dir(bench.folder.path().join("trust"))?;
        std::fs::write(&bench.trust, bench.source.ca())?;
        let made = bench.folder.path().join("made");
        let all: Vec<String> = bench.names.iter().cloned().chain([LARGE.to_owned()]).collect();
        images::make(&made, &all, part)?;
        bench.vdoctl(&["mirror", "push", &bench.path("made"), &format!("oci://{}/k8s", bench.source.host())])?;
        std::fs::remove_dir_all(made)?;
        Ok(bench)
    }

    fn trust_also(&self, site: &RegistryServer) -> Result<()> {
        Ok(std::fs::write(&self.trust, format!("{}{}", self.source.ca(), site.ca()))?)
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env("HOME", self.folder.path()).env("SSL_CERT_FILE", &self.trust);
        command
    }

    fn run(&self, command: &mut Command) -> Result<(Run, String)> {
        run(command, &self.folder.path().join("log"))
    }

    fn vdoctl(&self, arguments: &[&str]) -> Result<(Run, String)> {
        let mut command = self.command(Path::new(vdo_testbed::vdoctl()));
        self.run(command.args(arguments).arg("--ca-file").arg(&self.trust))
    }

    fn pull(&self, bundle: &str, driver: &str, image: &str) -> Result<(Run, Value)> {
        let from = format!("registry.k8s.io={}/k8s", self.source.host());
        let fixed = ["mirror", "pull", bundle, "--matrix", &self.path("matrix"), "-o", "json"];
        let (run, said) = self.vdoctl(&[&fixed[..], &["--driver", driver, "--image", image, "--from", &from]].concat())?;
        Ok((run, serde_json::from_str(said.lines().last().unwrap_or_default())?))
    }

    fn copy(&self, to: &str) -> Result<Run> {
        let from = format!("registry.k8s.io={}/k8s", self.source.host());
        let selected = ["--driver", ALL, "--image", "none", "--from", &from];
        Ok(self
            .vdoctl(&[&["mirror", "copy", &self.path("matrix"), to][..], &selected].concat())?
            .0)
    }

    /// The names of the images in a registry, without it.
    fn each(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(|name| name.strip_prefix(K8S).unwrap_or(name))
    }

    fn skopeo(&self, what: &str, site: &RegistryServer) -> Result<Run> {
        let trust = self.path("trust");
        let mut all = Run::default();
        for name in self.each() {
            let registry = format!("docker://{}/k8s/{name}", self.source.host());
            let layout = format!("oci:{}:{name}", self.path("skopeo"));
            let (from, to) = match what {
                "pull" => (registry, layout),
                "push" => (layout, format!("docker://{}/site/{name}", site.host())),
                _ => (registry, format!("docker://{}/site/{name}", site.host())),
            };
            let mut command = self.command(Path::new("skopeo"));
            command.args([
                "--insecure-policy",
                "copy",
                "--all",
                "--src-cert-dir",
                &trust,
                "--dest-cert-dir",
                &trust,
                &from,
                &to,
            ]);
            all = all.then(self.run(&mut command)?.0);
        }
        Ok(all)
    }

    fn crane(&self, what: &str, site: &RegistryServer) -> Result<Run> {
        let mut all = Run::default();
        for (place, name) in self.each().enumerate() {
            let registry = format!("{}/k8s/{name}", self.source.host());
            // A layout of crane holds images without names.
            let layout = self.path(&format!("crane/{place}"));
            let mut command = self.command(&self.crane);
            match what {
                "pull" => {
                    std::fs::create_dir_all(self.path("crane"))?;
                    command.args(["pull", "--format", "oci", &registry, &layout])
                }
                "push" => command.args(["push", "--index", &layout, &format!("{}/site/{name}", site.host())]),
                _ => command.args(["copy", &registry, &format!("{}/site/{name}", site.host())]),
            };
            all = all.then(self.run(&mut command)?.0);
        }
        Ok(all)
    }

    /// A pull without news.
    fn second(&self) -> Result<()> {
        let asked = || {
            self.source
                .log()
                .lines()
                .filter(|line| line.starts_with("127.0.0.1") && line.contains("\"vdo/"))
                .count()
        };
        let before = asked();
        let (run, said) = self.pull(&self.path("vdoctl"), ALL, "none")?;
        println!(
            "second pull without news: {} requests for {} tags, {} bytes fetched, {:.1} s",
            asked() - before,
            self.names.len(),
            said["fetchedBytes"],
            run.seconds
        );
        Ok(())
    }

    /// One layer of half a gigabyte.
    async fn large(&self) -> Result<()> {
        let site = RegistryServer::start(RegistryKind::Distribution, RegistryAuth::None).await?;
        self.trust_also(&site)?;
        let bundle = self.path("large");
        let (pull, _) = self.pull(&bundle, "cpi=1.34.0", LARGE)?;
        let (push, _) = self.vdoctl(&["mirror", "push", &bundle, &at(&site)])?;
        println!(
            "peak memory with a layer of 512 MiB: pull {:.0} MiB, push {:.0} MiB (goal: less than 64)",
            pull.peak, push.peak
        );
        Ok(())
    }
}

/// A matrix with CSI 3.7.x and CPI 1.34.x whose releases name no digests, so that any image can play theirs. Gives the names of their images.
fn matrix(folder: &Path) -> Result<Vec<String>> {
    std::fs::create_dir_all(folder.join("charts"))?;
    let mut index = vdo_api::yaml::load_all(std::str::from_utf8(embedded::index())?)?.remove(0);
    let mut sources = embedded::sources();
    let mut names = Vec::new();
    for (driver, minor) in [("vsphere-csi", "3.7"), ("vsphere-cpi", "1.34")] {
        let source = sources.get_mut(driver).context("a driver")?;
        let file = source.files.get_mut(&format!("releases/{minor}.yaml")).context("releases")?;
        let text = String::from_utf8(file.clone())?;
        let without = |line: &str| match line.split_once(", digest: '") {
            Some((before, _)) => format!("{before}}}\n"),
            None => format!("{line}\n"),
        };
        *file = text.lines().map(without).collect::<String>().into_bytes();
        let versions = index["drivers"][driver]["versions"].as_array_mut().context("versions")?;
        versions.retain(|entry| {
            entry["version"]
                .as_str()
                .is_some_and(|version| version.starts_with(&format!("{minor}.")))
        });
        for entry in versions {
            let version = entry["version"].as_str().context("a version")?.to_owned();
            let package = chart::package(source, &version.parse()?)?;
            for wanted in vdo_author::mirror::references(&chart::open(&package)?, &["1.34".into()])? {
                names.push(wanted.source);
            }
            let path = format!("charts/{driver}-{version}.tgz");
            entry["chart"] = json!({"urls": [path], "sha256": Digest::of(&package).hex()});
            std::fs::write(folder.join(path), package)?;
        }
    }
    std::fs::write(folder.join("index.yaml"), index.to_string())?;
    names.sort();
    names.dedup();
    Ok(names)
}
