// SPDX-License-Identifier: Apache-2.0
//! A mirror as sites have it: files behind a real nginx with a certificate of a private authority and passwords, which is reached only
//! through a real squid that wants a password, too. Its name resolves nowhere but in squid.

use crate::pki::{Authority, Validity};
use crate::ports::Port;
use crate::process::{Launch, Process};
use crate::squid::{Squid, lines, listens, passwords, program};
use anyhow::{Context, Result};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What it is called.
const HOST: &str = "mirror.test";
/// Who may read.
const READER: (&str, &str) = ("reader", "r3ad-it");

/// The mirror. Both programs end with it.
pub struct Mirror {
    folder: tempfile::TempDir,
    authority: Authority,
    port: Port,
    nginx: Option<Process>,
    squid: Squid,
}

impl Mirror {
    /// Starts both programs.
    ///
    /// # Errors
    /// When nginx, squid or htpasswd is not installed, or does not start.
    pub async fn start() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let port = Port::claim()?;
        let authority = Authority::new("authority of a site")?;
        let leaf = authority.server(&[HOST], Validity::Good)?;
        let root = folder.path();
        std::fs::create_dir(root.join("files"))?;
        std::fs::write(root.join("server.pem"), leaf.cert)?;
        std::fs::write(root.join("server.key"), leaf.key)?;
        passwords(&root.join("readers"), READER)?;
        std::fs::write(root.join("nginx.conf"), nginx_conf(root, port.number()))?;
        let mut mirror = Self {
            folder,
            authority,
            port,
            nginx: None,
            squid: Squid::start(HOST).await?,
        };
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
        listens(self.port.number(), || self.logs()).await
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
        let files = ["nginx.log", "error.log"];
        let text = files.map(|file| std::fs::read_to_string(self.folder.path().join(file)).unwrap_or_default());
        text.concat()
    }

    /// The address of a file.
    pub fn url(&self, path: &str) -> String {
        format!("https://{HOST}:{}{path}", self.port.number())
    }

    /// The proxy, with a password or with another one.
    pub fn proxy(&self, is_right: bool) -> String {
        self.squid.url(Some(is_right))
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
        self.squid.passed()
    }
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
