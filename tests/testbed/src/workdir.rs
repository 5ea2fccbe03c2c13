// SPDX-License-Identifier: Apache-2.0
//! A folder that goes away with us, unless it is kept for an inspection.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

use anyhow::{Context, Result};

/// Reads a pipe from us to its end, and removes the folder if the last word was not to keep it. It tries again while
/// processes that are just being killed still write there.
const BROOM: &str = r#"
keep=
while read -r word; do keep=$word; done
[ -n "$keep" ] && exit 0
for _ in 1 2 3 4 5 6 7 8 9 10; do
  rm -rf "$1" 2>/dev/null && [ ! -e "$1" ] && exit 0
  sleep 0.2
done
"#;

/// The folder of one cluster, vCenter or agent.
#[derive(Debug)]
pub(crate) struct Workdir {
    path: PathBuf,
    broom: Option<(Child, ChildStdin)>,
    keep: bool,
}

impl Workdir {
    /// A new folder under the system's temporary one.
    pub(crate) fn temporary(what: &str) -> Result<Self> {
        let path = tempfile::Builder::new()
            .prefix(&format!("vdo-{what}-"))
            .tempdir()
            .context("temporary folder")?
            .keep();
        let mut command = Command::new("sh");
        command.arg("-c").arg(BROOM).arg("broom").arg(&path);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0);
        let mut child = command.spawn().context("cannot start sh")?;
        let broom = child.stdin.take().map(|pipe| (child, pipe));
        Ok(Self { path, broom, keep: false })
    }

    /// A folder of the caller's, which stays.
    pub(crate) fn lasting(path: &Path) -> Result<Self> {
        std::fs::create_dir_all(path).with_context(|| format!("folder {}", path.display()))?;
        Ok(Self {
            path: path.to_owned(),
            broom: None,
            keep: false,
        })
    }

    /// Temporary without a path, lasting with one.
    pub(crate) fn new(what: &str, path: Option<&Path>) -> Result<Self> {
        path.map_or_else(|| Self::temporary(what), Self::lasting)
    }

    /// Keeps the folder for someone who has to find out what went wrong.
    pub(crate) fn keep(&mut self) {
        self.keep = true;
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn join(&self, name: impl AsRef<Path>) -> PathBuf {
        self.path.join(name)
    }

    /// Makes a file only its owner can read.
    pub(crate) fn write_private(&self, name: &str, content: impl AsRef<[u8]>) -> Result<PathBuf> {
        let path = self.join(name);
        write_private(&path, content)?;
        Ok(path)
    }
}

impl Drop for Workdir {
    fn drop(&mut self) {
        let Some((mut child, mut pipe)) = self.broom.take() else { return };
        if self.keep || std::thread::panicking() || std::env::var_os("VDO_TESTBED_KEEP").is_some() {
            let _ = writeln!(std::io::stderr(), "test bed: logs and state are kept in {}", self.path.display());
            let _ = pipe.write_all(b"keep\n");
        }
        drop(pipe);
        let _ = child.wait();
    }
}

/// Makes a file only its owner can read.
pub(crate) fn write_private(path: &Path, content: impl AsRef<[u8]>) -> Result<()> {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = std::fs::OpenOptions::new();
    options.create(true).truncate(true).write(true).mode(0o600);
    let mut file = options.open(path).with_context(|| format!("file {}", path.display()))?;
    file.write_all(content.as_ref()).with_context(|| format!("file {}", path.display()))
}
