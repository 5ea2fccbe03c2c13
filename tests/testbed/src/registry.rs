// SPDX-License-Identifier: Apache-2.0
//! Real registries: one that lists referrers, and one that wants a login.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::binaries::Binaries;
use crate::pki::{Authority, Validity};
use crate::ports::Port;
use crate::process::{Launch, Process};
use crate::upstream_programs::Part;
use crate::wait::{PATIENCE, Probe, until};
use crate::workdir::Workdir;

/// Which registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegistryKind {
    /// olareg, which lists referrers and lets everyone in.
    Olareg,
    /// distribution, which lists none; strict about uploads.
    Distribution,
}

/// Whom a registry lets in. olareg lets in everyone.
#[derive(Clone, Debug, Default)]
pub enum RegistryAuth {
    /// Everyone.
    #[default]
    None,
    /// Who knows [`LOGIN`].
    Basic,
    /// Who has a token of this service.
    Token {
        /// Where tokens come from.
        realm: String,
        /// The certificate, PEM, whose key has signed them.
        certificate: String,
    },
}

/// The user whom distribution lets in, and the password.
pub const LOGIN: (&str, &str) = ("publisher", "r3ad-it");
/// The bcrypt of that password.
const HASHED: &str = "$2b$05$abcdefghijklmnopqrstuuEq3Q7qHDSwCt2aPdu3boSHWLQX9IeBy";

/// A running registry.
#[derive(Debug)]
pub struct RegistryServer {
    kind: RegistryKind,
    port: Port,
    authority: Option<Authority>,
    program: PathBuf,
    folder: Workdir,
    /// Its configuration, without whether it takes uploads.
    config: String,
    refuses_uploads: bool,
    process: Option<Process>,
}

impl RegistryServer {
    /// Starts one with TLS; its program is built first if it is missing.
    pub async fn start(kind: RegistryKind, auth: RegistryAuth) -> Result<Self> {
        Self::start_with(kind, auth, true).await
    }

    /// Starts one without TLS.
    pub async fn start_plain(kind: RegistryKind) -> Result<Self> {
        Self::start_with(kind, RegistryAuth::None, false).await
    }

    async fn start_with(kind: RegistryKind, auth: RegistryAuth, tls: bool) -> Result<Self> {
        let part = match kind {
            RegistryKind::Olareg => Part::Olareg,
            RegistryKind::Distribution => Part::Distribution,
        };
        let binaries = tokio::task::spawn_blocking(move || Binaries::ensure(&[part])).await??;
        let port = Port::claim()?;
        let folder = Workdir::temporary("registry")?;
        let authority = tls
            .then(|| Authority::new(&format!("authority of the registry at port {}", port.number())))
            .transpose()?;
        let mut http = format!("http:\n  addr: 127.0.0.1:{}\n", port.number());
        if let Some(authority) = &authority {
            let leaf = authority.server(&["127.0.0.1", "localhost"], Validity::Good)?;
            let (cert, key) = (
                folder.write_private("tls.crt", leaf.cert)?,
                folder.write_private("tls.key", leaf.key)?,
            );
            http += &format!("  tls:\n    certificate: {}\n    key: {}\n", cert.display(), key.display());
        }
        let auth = match auth {
            RegistryAuth::None => String::new(),
            RegistryAuth::Basic => {
                let file = folder.write_private("htpasswd", format!("{}:{HASHED}\n", LOGIN.0))?;
                format!("auth:\n  htpasswd:\n    realm: test\n    path: {}\n", file.display())
            }
            RegistryAuth::Token { realm, certificate } => {
                let file = folder.write_private("token.crt", certificate)?;
                format!(
                    "auth:\n  token:\n    realm: {realm}\n    service: registry\n    issuer: test\n    rootcertbundle: {}\n    signingalgorithms: [ES256]\n",
                    file.display()
                )
            }
        };
        std::fs::create_dir(folder.join("data"))?;
        let storage = format!("storage:\n  filesystem:\n    rootdirectory: {}\n", folder.join("data").display());
        let mut server = Self {
            kind,
            port,
            authority,
            program: binaries.path(part),
            folder,
            config: format!("version: 0.1\nlog:\n  level: info\n{auth}{http}{storage}"),
            refuses_uploads: false,
            process: None,
        };
        server.restart().await?;
        Ok(server)
    }

    /// Starts it again for readers alone, as it is during maintenance, or for all.
    pub async fn refuse_uploads(&mut self, refuse: bool) -> Result<()> {
        self.refuses_uploads = refuse;
        self.restart().await
    }

    /// Starts it again, with what it has stored.
    pub async fn restart(&mut self) -> Result<()> {
        self.stop();
        let launch = Launch::new("registry", &self.program, self.folder.join("registry.log"));
        let port = self.port.number().to_string();
        let launch = match self.kind {
            RegistryKind::Olareg => {
                let launch = launch
                    .arg("serve")
                    .flag("addr", "127.0.0.1")
                    .flag("port", &port)
                    .flag("dir", self.folder.join("data"));
                let launch = launch
                    .flag("gc-frequency", "-1s")
                    .flag("store-ro", self.refuses_uploads.to_string());
                match self.authority {
                    Some(_) => launch
                        .flag("tls-cert", self.folder.join("tls.crt"))
                        .flag("tls-key", self.folder.join("tls.key")),
                    None => launch,
                }
            }
            RegistryKind::Distribution => {
                let maintenance = format!("  maintenance:\n    readonly:\n      enabled: {}\n", self.refuses_uploads);
                let config = self.folder.write_private("config.yml", format!("{}{maintenance}", self.config))?;
                launch.arg("serve").arg(config)
            }
        };
        let mut process = launch.env("OTEL_TRACES_EXPORTER", "none").spawn()?;
        until("the registry to listen", PATIENCE, async || {
            process.check()?;
            let connected = tokio::net::TcpStream::connect(("127.0.0.1", self.port.number())).await;
            Ok(Probe::when(connected.is_ok(), "the connection is refused"))
        })
        .await?;
        self.process = Some(process);
        Ok(())
    }

    /// Stores an image layout under this name and tag, and starts again.
    ///
    /// # Errors
    /// When it is not olareg, which keeps each repository as such a layout.
    pub async fn store(&mut self, repository: &str, tag: &str, layout: &Path) -> Result<()> {
        ensure!(self.kind == RegistryKind::Olareg, "only olareg stores layouts");
        let target = self.folder.join("data").join(repository);
        let blobs = target.join("blobs/sha256");
        std::fs::create_dir_all(&blobs)?;
        for entry in std::fs::read_dir(layout.join("blobs/sha256"))? {
            let entry = entry?;
            std::fs::copy(entry.path(), blobs.join(entry.file_name()))?;
        }
        std::fs::copy(layout.join("oci-layout"), target.join("oci-layout"))?;
        let read = |path: PathBuf| -> Result<serde_json::Value> { Ok(serde_json::from_slice(&std::fs::read(path)?)?) };
        let mut added = read(layout.join("index.json"))?["manifests"][0].clone();
        added["annotations"] = serde_json::json!({"org.opencontainers.image.ref.name": tag});
        let place = target.join("index.json");
        let mut index = if place.is_file() {
            read(place.clone())?
        } else {
            serde_json::json!({"schemaVersion": 2, "manifests": []})
        };
        let all = index["manifests"].as_array_mut().context("an index")?;
        all.retain(|one| one["annotations"]["org.opencontainers.image.ref.name"] != tag);
        all.push(added);
        std::fs::write(place, index.to_string())?;
        self.restart().await
    }

    /// Ends it, as a crash does.
    pub fn stop(&mut self) {
        self.process = None;
    }

    /// Its host, as references name it.
    pub fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port.number())
    }

    /// The certificate of its authority, PEM.
    pub fn ca(&self) -> String {
        self.authority.as_ref().map(Authority::pem).unwrap_or_default()
    }

    /// A file with that certificate, for programs.
    pub fn ca_file(&self) -> Result<PathBuf> {
        self.folder.write_private("ca.crt", self.ca())
    }

    /// Where it stores a blob: to take it away or to change it behind the registry's back.
    ///
    /// # Errors
    /// When it has none.
    pub fn blob(&self, repository: &str, hex: &str) -> Result<PathBuf> {
        let data = self.folder.join("data");
        let path = match self.kind {
            RegistryKind::Olareg => data.join(repository).join("blobs/sha256").join(hex),
            RegistryKind::Distribution => data.join("docker/registry/v2/blobs/sha256").join(&hex[..2]).join(hex).join("data"),
        };
        ensure!(path.is_file(), "there is no blob {}", path.display());
        Ok(path)
    }

    /// Everything that it has said.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder.join("registry.log")).unwrap_or_default()
    }
}

/// The program oras; it is built first if it is missing.
pub async fn oras() -> Result<PathBuf> {
    let binaries = tokio::task::spawn_blocking(|| Binaries::ensure(&[Part::Oras])).await??;
    Ok(binaries.path(Part::Oras))
}

/// Runs a program in a folder, which is its home, and gives its output.
///
/// # Errors
/// When it fails, in its own words, or takes longer than five minutes.
pub async fn run(program: &Path, folder: &Path, args: &[&str]) -> Result<String> {
    let mut command = tokio::process::Command::new(program);
    command
        .args(args)
        .current_dir(folder)
        .env("HOME", folder)
        .env("DOCKER_CONFIG", folder);
    for (variable, name) in [
        ("HELM_CACHE_HOME", "cache"),
        ("HELM_CONFIG_HOME", "config"),
        ("HELM_DATA_HOME", "data"),
    ] {
        command.env(variable, folder.join(name));
    }
    let output = tokio::time::timeout(Duration::from_secs(300), command.kill_on_drop(true).output()).await;
    let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let output = output.with_context(|| format!("{name} does not end"))?;
    let output = output.with_context(|| format!("cannot run {}", program.display()))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{name} {}: {}", args.join(" "), said.trim());
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
