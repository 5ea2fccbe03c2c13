//! A mirror as sites have it: files behind a real nginx with a certificate of a private authority and passwords, which is reached only
//! through a real squid that wants a password, too. Its name resolves nowhere but in squid.

use crate::pki::{Authority, Validity};
use crate::ports::Port;
use crate::process::{Launch, Process};
use crate::wait::{PATIENCE, Probe, until};
use anyhow::{Context, Result, bail, ensure};
use std::fs::{File, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tokio::net::TcpStream;

/// What it is called.
const HOST: &str = "mirror.test";
/// Who may read, and who may pass the proxy.
const READER: (&str, &str) = ("reader", "r3ad-it");
const PASSENGER: (&str, &str) = ("passenger", "let-m3-by");

/// The mirror. Both programs end with it.
pub struct Mirror {
    folder: tempfile::TempDir,
    authority: Authority,
    port: Port,
    proxy: Port,
    nginx: Option<Process>,
    _squid: Process,
}

impl Mirror {
    /// Starts both programs.
    ///
    /// # Errors
    /// When nginx, squid or htpasswd is not installed, or does not start.
    pub async fn start() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let (port, proxy) = (Port::claim()?, Port::claim()?);
        let authority = Authority::new("authority of a site")?;
        let leaf = authority.server(&[HOST], Validity::Good)?;
        let root = folder.path();
        // squid that is started by root works as another user.
        allow(root, 0o711)?;
        let squid = root.join("squid");
        for path in [root.join("files"), squid.clone()] {
            std::fs::create_dir(path)?;
        }
        allow(&squid, 0o777)?;
        std::fs::write(root.join("server.pem"), leaf.cert)?;
        std::fs::write(root.join("server.key"), leaf.key)?;
        passwords(&root.join("readers"), READER)?;
        passwords(&squid.join("passengers"), PASSENGER)?;
        std::fs::write(squid.join("hosts"), format!("127.0.0.1 {HOST}\n"))?;
        std::fs::write(root.join("nginx.conf"), nginx_conf(root, port.number()))?;
        let helper = ["/usr/lib/squid", "/usr/lib64/squid", "/usr/libexec/squid"].map(|folder| Path::new(folder).join("basic_ncsa_auth"));
        let helper = helper
            .into_iter()
            .find(|path| path.exists())
            .context("squid has no basic_ncsa_auth")?;
        std::fs::write(squid.join("squid.conf"), squid_conf(&squid, &helper, proxy.number()))?;
        for file in ["passengers", "hosts", "squid.conf"] {
            allow(&squid.join(file), 0o644)?;
        }
        let squid = Launch::new("squid", program("squid")?, root.join("squid.log"))
            .arg("-N")
            .arg("-n")
            .arg(service(&proxy))
            .arg("-f")
            .arg(squid.join("squid.conf"));
        let squid = squid.spawn()?;
        let mut mirror = Self {
            folder,
            authority,
            port,
            proxy,
            nginx: None,
            _squid: squid,
        };
        mirror.listens(mirror.proxy.number()).await?;
        mirror.revive().await?;
        Ok(mirror)
    }

    /// Ends the web server, as an outage does. The proxy goes on.
    pub fn die(&mut self) {
        self.nginx = None;
    }

    /// Starts the web server.
    ///
    /// # Errors
    /// When it does not start.
    pub async fn revive(&mut self) -> Result<()> {
        let root = self.folder.path();
        let nginx = Launch::new("nginx", program("nginx")?, root.join("nginx.log"))
            .arg("-p")
            .arg(root)
            .arg("-e")
            .arg(root.join("error.log"))
            .arg("-c")
            .arg(root.join("nginx.conf"));
        self.nginx = Some(nginx.spawn()?);
        self.listens(self.port.number()).await
    }

    async fn listens(&self, number: u16) -> Result<()> {
        until(&format!("port {number} of the mirror"), PATIENCE, async || {
            let connected = TcpStream::connect(("127.0.0.1", number)).await;
            Ok(Probe::when(connected.is_ok(), format!("{connected:?}\n{}", self.logs())))
        })
        .await
    }

    /// Whether every answer comes by a few bytes a second.
    ///
    /// # Errors
    /// When that cannot be said to the web server.
    pub fn slow(&self, is_slow: bool) -> Result<()> {
        let file = self.folder.path().join("slow");
        match is_slow {
            true => std::fs::write(file, "")?,
            false => std::fs::remove_file(file)?,
        }
        Ok(())
    }

    /// The folder of files that it serves, which a publisher fills.
    pub fn files(&self) -> PathBuf {
        self.folder.path().join("files")
    }

    fn logs(&self) -> String {
        let files = ["nginx.log", "error.log", "squid.log", "squid/cache.log"];
        let text = files.map(|file| std::fs::read_to_string(self.folder.path().join(file)).unwrap_or_default());
        text.concat()
    }

    /// The address of a file.
    pub fn url(&self, path: &str) -> String {
        format!("https://{HOST}:{}{path}", self.port.number())
    }

    /// The proxy, with a password or with another one.
    pub fn proxy(&self, is_right: bool) -> String {
        let password = if is_right { PASSENGER.1 } else { "wr0ng" };
        format!("http://{}:{password}@127.0.0.1:{}", PASSENGER.0, self.proxy.number())
    }

    /// The authority that has signed the certificate.
    pub fn authority(&self) -> String {
        self.authority.pem()
    }

    /// User and password of a reader.
    pub fn reader(&self) -> (&'static str, &'static str) {
        READER
    }

    /// Has these bytes as a file, or no such file. They are written beside it, then renamed; its time differs from that of the file before, which
    /// is by what nginx knows them apart.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn put(&self, path: &str, content: Option<&[u8]>) -> Result<()> {
        let path = self.files().join(path.trim_start_matches('/'));
        let before = std::fs::metadata(&path).and_then(|data| data.modified()).ok();
        let Some(content) = content else {
            return match before {
                Some(_) => Ok(std::fs::remove_file(path)?),
                None => Ok(()),
            };
        };
        std::fs::create_dir_all(path.parent().context("a folder")?)?;
        let new = path.with_extension("new");
        std::fs::write(&new, content)?;
        if let Some(before) = before {
            File::options()
                .write(true)
                .open(&new)?
                .set_modified(before + Duration::from_secs(1))?;
        }
        Ok(std::fs::rename(new, path)?)
    }

    /// The requests that nginx has answered: method, path and status of each.
    ///
    /// # Errors
    /// When its log cannot be read.
    pub fn answered(&self) -> Result<Vec<String>> {
        lines(&self.folder.path().join("access.log"))
    }

    /// The connections that squid was asked for.
    ///
    /// # Errors
    /// When its log cannot be read.
    pub fn passed(&self) -> Result<Vec<String>> {
        lines(&self.folder.path().join("squid/access.log"))
    }
}

/// After what squid calls its shared memory, which another one on this machine must not have: it may be another user's.
fn service(proxy: &Port) -> String {
    format!("vdo{}x{}", std::process::id(), proxy.number())
}

impl Drop for Mirror {
    fn drop(&mut self) {
        // squid that is killed leaves it.
        for file in std::fs::read_dir("/dev/shm").into_iter().flatten().flatten() {
            if file.file_name().to_string_lossy().starts_with(&service(&self.proxy)) {
                let _ = std::fs::remove_file(file.path());
            }
        }
    }
}

fn lines(file: &Path) -> Result<Vec<String>> {
    Ok(std::fs::read_to_string(file)?.lines().map(str::to_owned).collect())
}

fn allow(path: &Path, mode: u32) -> Result<()> {
    Ok(std::fs::set_permissions(path, Permissions::from_mode(mode))?)
}

/// A program of the system, which may be where only root looks.
fn program(name: &str) -> Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/usr/local/sbin".into()]);
    match folders.map(|folder| folder.join(name)).find(|file| file.is_file()) {
        Some(file) => Ok(file),
        None => bail!("{name} is not installed"),
    }
}

fn passwords(file: &Path, (user, password): (&str, &str)) -> Result<()> {
    let made = Command::new(program("htpasswd")?).args(["-nbm", user, password]).output()?;
    ensure!(made.status.success(), "htpasswd: {}", String::from_utf8_lossy(&made.stderr));
    Ok(std::fs::write(file, made.stdout)?)
}

/// One process, which outlives the one that started it.
fn nginx_conf(root: &Path, port: u16) -> String {
    let root = root.display();
    format!(
        "daemon off;\nmaster_process off;\npid \"{root}/nginx.pid\";\nevents {{}}\nhttp {{\n\
         log_format short '$request_method $uri $status $body_bytes_sent';\naccess_log \"{root}/access.log\" short;\n\
         client_body_temp_path \"{root}/body\";\nproxy_temp_path \"{root}/proxy\";\nfastcgi_temp_path \"{root}/fastcgi\";\n\
         uwsgi_temp_path \"{root}/uwsgi\";\nscgi_temp_path \"{root}/scgi\";\n\
         server {{\nlisten 127.0.0.1:{port} ssl;\nserver_name {HOST};\nssl_certificate \"{root}/server.pem\";\nssl_certificate_key \"{root}/server.key\";\n\
         auth_basic mirror;\nauth_basic_user_file \"{root}/readers\";\nroot \"{root}/files\";\ngzip on;\ngzip_types application/json application/octet-stream;\n\
         location / {{\nif (-f \"{root}/slow\") {{\nset $limit_rate 64;\n}}\n}}\n}}\n}}\n"
    )
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
