// SPDX-License-Identifier: Apache-2.0
//! A real proxy of SOCKS 5 that wants a password: microsocks. It resolves names as this machine does.

use crate::ports::Port;
use crate::process::{Launch, Process};
use crate::squid::{PASSENGER, lines, listens, login, program};
use anyhow::Result;
use std::path::PathBuf;

/// The proxy. The program ends with it.
pub struct Microsocks {
    folder: tempfile::TempDir,
    port: Port,
    _process: Process,
}

impl Microsocks {
    /// Starts the program.
    ///
    /// # Errors
    /// When microsocks is not installed, or does not start.
    pub async fn start() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let port = Port::claim()?;
        let log = folder.path().join("microsocks.log");
        let launch = Launch::new("microsocks", program("microsocks")?, log.clone());
        let port_number = port.number().to_string();
        let words = ["-i", "127.0.0.1", "-p", &port_number, "-u", PASSENGER.0, "-P", PASSENGER.1];
        let process = words.iter().fold(launch, |launch, word| launch.arg(word)).spawn()?;
        listens(port.number(), || std::fs::read_to_string(&log).unwrap_or_default()).await?;
        Ok(Self {
            folder,
            port,
            _process: process,
        })
    }

    /// Its address, with a password that is right, wrong or not there.
    #[must_use]
    pub fn url(&self, scheme: &str, right: Option<bool>) -> String {
        format!("{scheme}://{}127.0.0.1:{}", login(right), self.port.number())
    }

    /// The connections that it made.
    ///
    /// # Errors
    /// When its log cannot be read.
    pub fn passed(&self) -> Result<Vec<String>> {
        lines(&self.log())
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("microsocks.log")
    }
}
