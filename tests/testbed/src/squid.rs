// SPDX-License-Identifier: Apache-2.0
//! A real squid that wants a password.

use crate::ports::Port;
use crate::process::{Launch, Process};
use crate::wait::{PATIENCE, Probe, until};
use anyhow::{Context, Result, bail, ensure};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use tokio::net::TcpStream;

/// Who may pass.
pub(crate) const PASSENGER: (&str, &str) = ("passenger", "let-m3-by");

/// The proxy. The program ends with it.
pub struct Squid {
    folder: tempfile::TempDir,
    port: Port,
    _process: Process,
}

impl Squid {
    /// Starts the program, in which this name is the one of this machine.
    ///
    /// # Errors
    /// When squid or htpasswd is not installed, or squid does not start.
    pub async fn start(host: &str) -> Result<Self> {
        // Its configuration knows no names with blanks.
        let folder = tempfile::tempdir_in("/tmp")?;
        let port = Port::claim()?;
        let root = folder.path();
        // squid that is started by root works as another user.
        allow(root, 0o777)?;
        passwords(&root.join("passengers"), PASSENGER)?;
        std::fs::write(root.join("hosts"), format!("127.0.0.1 {host}\n"))?;
        let helper = ["/usr/lib/squid", "/usr/lib64/squid", "/usr/libexec/squid"].map(|folder| Path::new(folder).join("basic_ncsa_auth"));
        let helper = helper
            .into_iter()
            .find(|path| path.exists())
            .context("squid has no basic_ncsa_auth")?;
        std::fs::write(root.join("squid.conf"), squid_conf(root, &helper, port.number()))?;
        for file in ["passengers", "hosts", "squid.conf"] {
            allow(&root.join(file), 0o644)?;
        }
        let launch = Launch::new("squid", program("squid")?, root.join("squid.log"))
            .arg("-N")
            .arg("-n")
            .arg(service(&port))
            .arg("-f")
            .arg(root.join("squid.conf"));
        let squid = Self {
            _process: launch.spawn()?,
            folder,
            port,
        };
        listens(squid.port.number(), || squid.logs()).await?;
        Ok(squid)
    }

    /// Its address, with a password that is right, wrong or not there.
    pub fn url(&self, login: Option<bool>) -> String {
        format!("http://{}127.0.0.1:{}", self::login(login), self.port.number())
    }

    /// The connections that it was asked for.
    ///
    /// # Errors
    /// When its log cannot be read.
    pub fn passed(&self) -> Result<Vec<String>> {
        lines(&self.folder.path().join("access.log"))
    }

    fn logs(&self) -> String {
        let files = ["squid.log", "cache.log"];
        let text = files.map(|file| std::fs::read_to_string(self.folder.path().join(file)).unwrap_or_default());
        text.concat()
    }
}

/// A login as an address has it, with a password that is right, wrong or not there.
pub(crate) fn login(right: Option<bool>) -> String {
    match right {
        None => String::new(),
        Some(true) => format!("{}:{}@", PASSENGER.0, PASSENGER.1),
        Some(false) => format!("{}:wr0ng@", PASSENGER.0),
    }
}

/// After what squid calls its shared memory, which another one on this machine must not have: it may be another user's.
fn service(port: &Port) -> String {
    format!("vdo{}x{}", std::process::id(), port.number())
}

impl Drop for Squid {
    fn drop(&mut self) {
        // squid that is killed leaves it.
        for file in std::fs::read_dir("/dev/shm").into_iter().flatten().flatten() {
            if file.file_name().to_string_lossy().starts_with(&service(&self.port)) {
                let _ = std::fs::remove_file(file.path());
            }
        }
    }
}

/// Waits until something listens; the logs are for the error.
pub(crate) async fn listens(number: u16, logs: impl Fn() -> String) -> Result<()> {
    until(&format!("port {number} of a program"), PATIENCE, async || {
        let connected = TcpStream::connect(("127.0.0.1", number)).await;
        Ok(Probe::when(connected.is_ok(), format!("{connected:?}\n{}", logs())))
    })
    .await
}

pub(crate) fn lines(file: &Path) -> Result<Vec<String>> {
    Ok(std::fs::read_to_string(file)?.lines().map(str::to_owned).collect())
}

fn allow(path: &Path, mode: u32) -> Result<()> {
    Ok(std::fs::set_permissions(path, Permissions::from_mode(mode))?)
}

/// A program of the system, which may be where only root looks.
pub(crate) fn program(name: &str) -> Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/usr/local/sbin".into()]);
    match folders.map(|folder| folder.join(name)).find(|file| file.is_file()) {
        Some(file) => Ok(file),
        None => bail!("{name} is not installed"),
    }
}

/// Writes a file with this user and password.
pub(crate) fn passwords(file: &Path, (user, password): (&str, &str)) -> Result<()> {
    let made = Command::new(program("htpasswd")?).args(["-nbm", user, password]).output()?;
    ensure!(made.status.success(), "htpasswd: {}", String::from_utf8_lossy(&made.stderr));
    Ok(std::fs::write(file, made.stdout)?)
}

fn squid_conf(root: &Path, helper: &Path, port: u16) -> String {
    let (root, helper) = (root.display(), helper.display());
    format!(
        "http_port 127.0.0.1:{port}\nvisible_hostname localhost\nauth_param basic program {helper} {root}/passengers\nauth_param basic realm proxy\n\
         acl known proxy_auth REQUIRED\nhttp_access allow known\nhttp_access deny all\nhosts_file {root}/hosts\ncache deny all\n\
         access_log stdio:{root}/access.log\ncache_log {root}/cache.log\ncache_store_log none\ncoredump_dir {root}\npid_filename none\n\
         pinger_enable off\nshutdown_lifetime 1 seconds\n"
    )
}
