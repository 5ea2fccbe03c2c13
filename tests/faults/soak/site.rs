// SPDX-License-Identifier: Apache-2.0
//! A web server with the matrix, of which its publisher brings one version after the other.

use anyhow::Result;
use serde_json::Value;
use vdo_api::types::Secret;
use vdo_source::signature::{Form, PrivateKey};
use vdo_testbed::{WebAnswer, WebServer};

const INDEX: &str = "/matrix/index.json";

pub struct Site {
    server: WebServer,
    key: PrivateKey,
    index: Value,
    version: u64,
    folder: tempfile::TempDir,
}

impl Site {
    pub async fn start() -> Result<Self> {
        let mut site = Self {
            server: WebServer::start().await?,
            key: PrivateKey::parse(&Secret::new(rcgen::KeyPair::generate()?.serialize_pem()))?,
            index: vdo_api::yaml::load_all(std::str::from_utf8(vdo_source::fetch::embedded::index())?)?.remove(0),
            // Newer than any that the operator has had.
            version: 1_000_000,
            folder: tempfile::tempdir()?,
        };
        std::fs::write(site.folder.path().join("ca.crt"), site.server.authority().pem())?;
        std::fs::write(site.folder.path().join("keys.pem"), site.key.public().pem())?;
        site.server.answer(|_| WebAnswer::File);
        site.publish()?;
        Ok(site)
    }

    /// Publishes one more version; its number.
    pub fn publish(&mut self) -> Result<u64> {
        self.version += 1;
        self.index["version"] = self.version.into();
        let text = self.index.to_string();
        self.server
            .put(&format!("{INDEX}.sig"), self.key.sign(text.as_bytes(), Form::Bare)?);
        self.server.put(INDEX, text);
        Ok(self.version)
    }

    /// Flags of an operator that asks here.
    pub fn flags(&self) -> [(&'static str, &'static str); 4] {
        // A flag lives as long as the tests.
        let leaked = |text: String| -> &'static str { Box::leak(text.into_boxed_str()) };
        let folder = self.folder.path();
        [
            ("matrix", leaked(self.server.url(INDEX))),
            ("matrix-credentials", leaked(folder.display().to_string())),
            ("matrix-keys", leaked(folder.join("keys.pem").display().to_string())),
            ("matrix-interval", "1s"),
        ]
    }
}
