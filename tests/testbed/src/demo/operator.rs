//! The operator in a test bed that stays up. The process that holds the test bed starts it, so that both end together;
//! whoever wants it to run leaves a request in the test bed's folder.

use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::ports::Port;
use crate::process::{Launch, Process};

pub(super) const REQUEST: &str = "operator.request.json";

/// Which operator shall run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wanted {
    /// The program.
    pub program: PathBuf,
    /// Length and time of the program's file; another operator has others.
    pub stamp: String,
    /// The kubeconfig with its service account's token.
    pub kubeconfig: PathBuf,
}

/// The operator, as `state.json` says it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Running {
    /// What was asked for.
    #[serde(flatten)]
    pub wanted: Wanted,
    /// Its process group.
    pub group: u32,
    /// Where it serves /healthz, /readyz and /metrics.
    pub address: String,
    /// Its log.
    pub log: PathBuf,
    /// How it ended, if it has.
    pub ended: Option<String>,
}

impl Wanted {
    /// The operator of this file.
    pub(super) fn new(program: PathBuf, kubeconfig: PathBuf) -> Result<Self> {
        let meta = std::fs::metadata(&program).with_context(|| format!("program {}", program.display()))?;
        let changed = meta.modified()?.duration_since(UNIX_EPOCH)?.as_nanos();
        Ok(Self {
            stamp: format!("{}-{changed}", meta.len()),
            program,
            kubeconfig,
        })
    }

    /// Asks the holder of the test bed in `dir` to run this operator instead of the one that runs.
    pub(super) fn ask(&self, dir: &Path) -> Result<()> {
        // Complete or absent: somebody waits for it.
        std::fs::write(dir.join("operator.request.new"), serde_json::to_string_pretty(self)?)?;
        std::fs::rename(dir.join("operator.request.new"), dir.join(REQUEST))?;
        Ok(())
    }
}

impl Running {
    /// Whether it says that it is ready.
    pub(super) async fn is_ready(&self) -> bool {
        let ask = async {
            let mut stream = TcpStream::connect(&self.address).await?;
            let request = format!("GET /readyz HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.address);
            stream.write_all(request.as_bytes()).await?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await?;
            std::io::Result::Ok(answer.starts_with("HTTP/1.1 200"))
        };
        matches!(tokio::time::timeout(Duration::from_secs(2), ask).await, Ok(Ok(true)))
    }
}

/// The holder's side.
#[derive(Debug)]
pub(super) struct Keeper {
    dir: PathBuf,
    port: Port,
    process: Option<Process>,
}

impl Keeper {
    pub(super) fn new(dir: &Path) -> Result<Self> {
        for stale in [REQUEST, "operator.log"] {
            let _ = std::fs::remove_file(dir.join(stale));
        }
        Ok(Self {
            dir: dir.to_owned(),
            port: Port::claim()?,
            process: None,
        })
    }

    /// Does what is asked for, looks whether the operator still runs, and says whether there is news in `state`.
    pub(super) fn tend(&mut self, state: &mut Option<Running>) -> Result<bool> {
        let request = self.dir.join(REQUEST);
        if let Ok(text) = std::fs::read(&request) {
            std::fs::remove_file(&request)?;
            *state = Some(self.start(serde_json::from_slice(&text).context("request for an operator")?));
            return Ok(true);
        }
        let (Some(running), Some(process)) = (state, &mut self.process) else {
            return Ok(false);
        };
        let Some(status) = process.exited() else { return Ok(false) };
        running.ended = Some(status.to_string());
        self.process = None;
        Ok(true)
    }

    fn start(&mut self, wanted: Wanted) -> Running {
        if let Some(mut old) = self.process.take() {
            old.stop(Duration::from_secs(5));
        }
        let address = format!("127.0.0.1:{}", self.port.number());
        let log = self.dir.join("operator.log");
        let launch = Launch::new("vdo-operator", &wanted.program, &log)
            .flag("kubeconfig", &wanted.kubeconfig)
            .env("VDO_IDENTITY", "vdo-operator-0")
            .flag("listen", &address);
        let started = launch.spawn();
        let ended = started.as_ref().err().map(|error| format!("{error:#}"));
        self.process = started.ok();
        Running {
            group: self.process.as_ref().map_or(0, Process::group),
            wanted,
            address,
            log,
            ended,
        }
    }
}
