// SPDX-License-Identifier: Apache-2.0
//! Images for tests, made by crane.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::binaries::Binaries;
use crate::registry::{LOGIN, RegistryServer};
use crate::upstream_programs::Part;

/// The program crane; it is built first if it is missing.
pub async fn crane() -> Result<PathBuf> {
    let binaries = tokio::task::spawn_blocking(|| Binaries::ensure(&[Part::Crane])).await??;
    Ok(binaries.path(Part::Crane))
}

/// Makes images in a registry.
#[derive(Debug)]
pub struct TestImages {
    program: PathBuf,
    folder: tempfile::TempDir,
    host: String,
    ca: PathBuf,
}

impl TestImages {
    /// For this registry, with its login.
    pub async fn of(server: &RegistryServer) -> Result<Self> {
        let images = Self {
            program: crane().await?,
            folder: tempfile::tempdir()?,
            host: server.host(),
            ca: server.ca_file()?,
        };
        images.crane(&["auth", "login", &images.host, "-u", LOGIN.0, "-p", LOGIN.1]).await?;
        Ok(images)
    }

    /// An image for two platforms at `repository:tag`. Its content depends on its name and on `content`. Gives its digest.
    pub async fn make(&self, name: &str, content: &str) -> Result<String> {
        let mut parts = Vec::new();
        let shared = self.layer("shared", "in every image")?;
        let repository = name.split(':').next().unwrap_or(name);
        for arch in ["amd64", "arm64"] {
            let layer = self.layer(arch, &format!("{name} {content} {arch}"))?;
            let at = format!("{}/{repository}:part-{arch}", self.host);
            let layers = ["-f", &shared, "-f", &layer];
            self.crane(&[&["append", "--oci-empty-base", "-t", &at][..], &layers].concat())
                .await?;
            self.crane(&["mutate", "--set-platform", &format!("linux/{arch}"), "-t", &at, &at])
                .await?;
            parts.push(at);
        }
        let at = format!("{}/{name}", self.host);
        self.crane(&["index", "append", "-m", &parts[0], "-m", &parts[1], "-t", &at])
            .await?;
        self.digest(name).await
    }

    /// What a name leads to.
    pub async fn digest(&self, name: &str) -> Result<String> {
        let digest = self.crane(&["digest", &format!("{}/{name}", self.host)]).await?;
        Ok(digest.trim().to_owned())
    }

    /// Runs crane with the login and the authority of the registry.
    pub async fn crane(&self, arguments: &[&str]) -> Result<String> {
        let output = tokio::process::Command::new(&self.program)
            .args(arguments)
            .current_dir(self.folder.path())
            .env("HOME", self.folder.path())
            .env("DOCKER_CONFIG", self.folder.path())
            .env("SSL_CERT_FILE", &self.ca)
            .kill_on_drop(true)
            .output()
            .await
            .context("cannot run crane")?;
        let said = String::from_utf8_lossy(&output.stderr);
        anyhow::ensure!(output.status.success(), "crane {}: {}", arguments.join(" "), said.trim());
        Ok(String::from_utf8(output.stdout)?)
    }

    /// Where crane keeps its login: a configuration of Docker.
    pub fn login(&self) -> PathBuf {
        self.folder.path().join("config.json")
    }

    /// The folder in which crane runs.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn layer(&self, name: &str, content: &str) -> Result<String> {
        let path = self.folder.path().join(format!("{name}.tar"));
        let mut archive = tar::Builder::new(std::fs::File::create(&path)?);
        let mut header = tar::Header::new_ustar();
        // Larger than a packet, and hard to compress.
        let mut state = content
            .bytes()
            .fold(7_u64, |state, byte| state.wrapping_mul(31).wrapping_add(u64::from(byte)));
        let mut noise = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 56) as u8
        };
        let bytes: Vec<u8> = (0..200_000).map(|_| noise()).collect();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        archive.append_data(&mut header, format!("{name}.bin"), bytes.as_slice())?;
        archive.into_inner()?;
        Ok(path.display().to_string())
    }
}
