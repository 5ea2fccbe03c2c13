// SPDX-License-Identifier: Apache-2.0
//! Child processes that cannot outlive us.
//!
//! Each child runs under a small shell that reads a pipe from us. Lines on the pipe are signals to pass on; the pipe's
//! end, which the kernel brings about however we die, kills the child.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

const KEEPER: &str = r#"
exec 3<&0 </dev/null
"$@" 3<&- &
child=$!
( while read -r signal <&3; do kill -s "$signal" "$child" 2>/dev/null; done; kill -s KILL "$child" 2>/dev/null ) &
reader=$!
exec 3<&-
wait "$child"
code=$?
kill "$reader" 2>/dev/null
exit "$code"
"#;

/// What to run.
#[derive(Debug)]
pub struct Launch {
    name: String,
    program: PathBuf,
    args: Vec<OsString>,
    env: Option<Vec<(String, String)>>,
    secrets: Vec<(String, String)>,
    log: PathBuf,
    stdout: Option<PathBuf>,
}

impl Launch {
    /// A program whose output goes to the file `log`.
    pub fn new(name: &str, program: impl Into<PathBuf>, log: impl Into<PathBuf>) -> Self {
        Self {
            name: name.into(),
            program: program.into(),
            args: Vec::new(),
            env: None,
            secrets: Vec::new(),
            log: log.into(),
            stdout: None,
        }
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    /// Adds `--flag=value`.
    #[must_use]
    pub fn flag(self, flag: &str, value: impl AsRef<OsStr>) -> Self {
        let mut arg = OsString::from(format!("--{flag}="));
        arg.push(value);
        self.arg(arg)
    }

    /// Adds an environment variable.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.secrets.push((name.into(), value.into()));
        self
    }

    /// Replaces the whole environment.
    #[must_use]
    pub fn only_env(mut self, env: Vec<(String, String)>) -> Self {
        self.env = Some(env);
        self
    }

    /// Sends standard output to a file of its own.
    #[must_use]
    pub fn stdout(mut self, path: impl Into<PathBuf>) -> Self {
        self.stdout = Some(path.into());
        self
    }

    /// Starts it.
    pub fn spawn(self) -> Result<Process> {
        let log = File::options()
            .create(true)
            .append(true)
            .open(&self.log)
            .with_context(|| format!("log file {}", self.log.display()))?;
        let stdout = match &self.stdout {
            Some(path) => File::create(path).with_context(|| format!("output file {}", path.display()))?,
            None => log.try_clone()?,
        };
        let mut command = Command::new("sh");
        command.arg("-c").arg(KEEPER).arg("keeper").arg(&self.program).args(&self.args);
        if let Some(env) = self.env {
            command.env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin").envs(env);
        }
        command.envs(self.secrets).stdin(Stdio::piped()).stdout(stdout).stderr(log);
        // A group of its own: an interrupt typed at the terminal reaches us, and we or the pipe end the child.
        command.process_group(0);
        let mut child = command.spawn().with_context(|| format!("cannot start {}", self.name))?;
        let line = child.stdin.take();
        Ok(Process {
            name: self.name,
            child,
            line,
            log: self.log,
        })
    }
}

/// A running child. Dropping it kills the child and waits for its end.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    line: Option<ChildStdin>,
    log: PathBuf,
}

impl Process {
    /// The name given at the launch.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The file with the child's output.
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// The process group that holds the child and its keeper.
    pub fn group(&self) -> u32 {
        self.child.id()
    }

    /// The processes of that group: the child, its keeper, and whatever they have started.
    pub fn family(&self) -> Result<Vec<u32>> {
        let mut all = Vec::new();
        for entry in std::fs::read_dir("/proc")? {
            let Ok(process) = entry?.file_name().to_string_lossy().parse::<u32>() else {
                continue;
            };
            let Ok(stat) = std::fs::read_to_string(format!("/proc/{process}/stat")) else {
                continue;
            };
            let of = stat
                .rsplit(") ")
                .next()
                .and_then(|rest| rest.split(' ').nth(2)?.parse::<u32>().ok());
            if of == Some(self.group()) {
                all.push(process);
            }
        }
        ensure!(all.len() >= 2, "the processes of {} are not there", self.name);
        Ok(all)
    }

    /// The child's own process, if it runs: the child of the keeper that is not a shell. Only its name shows that: what runs in a process
    /// that must not be dumped is hidden even from its user.
    pub fn program(&self) -> Option<u32> {
        let name = |process: u32| std::fs::read_to_string(format!("/proc/{process}/comm")).ok();
        let keeper = self.group();
        let shell = name(keeper)?;
        // Asked for each container at each look: a walk through all processes would take a tenth of a processor.
        let children = std::fs::read_to_string(format!("/proc/{keeper}/task/{keeper}/children")).ok()?;
        let mut children = children.split(' ').filter_map(|child| child.parse::<u32>().ok());
        children.find(|child| name(*child).is_some_and(|name| name != shell))
    }

    /// How the child ended, if it has.
    pub fn exited(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Fails, with the end of the log, if the child has ended.
    pub fn check(&mut self) -> Result<()> {
        match self.exited() {
            None => Ok(()),
            Some(status) => bail!(
                "{} ended ({status}); the end of {}:\n{}",
                self.name,
                self.log.display(),
                tail(&self.log, 12)
            ),
        }
    }

    /// Sends the child a signal by its name, such as `STOP`.
    pub fn signal(&mut self, name: &str) -> Result<()> {
        let line = self.line.as_mut().context("the child is being killed")?;
        writeln!(line, "{name}").with_context(|| format!("signal {name} for {}", self.name))
    }

    /// Asks the child to end, kills it after `patience`, and waits.
    pub fn stop(&mut self, patience: Duration) {
        let _ = self.signal("TERM");
        let deadline = Instant::now() + patience;
        while self.exited().is_none() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(10));
        }
        self.kill();
    }

    /// Kills the child and waits.
    pub fn kill(&mut self) {
        self.line = None;
        let _ = self.child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The last lines of a file, or nothing.
pub(crate) fn tail(path: &Path, lines: usize) -> String {
    let bytes = std::fs::read(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let all: Vec<&str> = text.lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}
