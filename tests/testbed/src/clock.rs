// SPDX-License-Identifier: Apache-2.0
//! A process with another clock: what time it is, is read from a file, so that it can jump while the process runs.

use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Stands before the C repository: the time of day is that of the machine and as many seconds more as the file says. Time that only passes
/// (deadlines, pauses) is not touched, as on a machine whose clock is set.
const SOURCE: &str = r#"
#define _GNU_SOURCE
#include <stdlib.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *time) {
    long result = syscall(SYS_clock_gettime, clock, time);
    const char *file = getenv("VDO_TESTBED_CLOCK");
    if (result == 0 && clock == CLOCK_REALTIME && file) {
        FILE *text = fopen(file, "r");
        long seconds = 0;
        if (text && fscanf(text, "%ld", &seconds) == 1)
            time->tv_sec += seconds;
        if (text)
            fclose(text);
    }
    return (int)result;
}
"#;

const LIBRARY: &str = "clock.so";

/// A clock that can be set.
#[derive(Debug)]
pub struct Clock {
    folder: PathBuf,
}

impl Clock {
    /// Makes one in this folder; it needs a C compiler.
    pub fn in_folder(folder: &Path) -> Result<Self> {
        let (source, repository) = (folder.join("clock.c"), folder.join(LIBRARY));
        std::fs::write(&source, SOURCE)?;
        let compiler = Command::new("cc")
            .args(["-O1", "-shared", "-fPIC", "-o"])
            .args([&repository, &source])
            .output()
            .context("cc, the C compiler")?;
        ensure!(compiler.status.success(), "cc: {}", String::from_utf8_lossy(&compiler.stderr));
        let clock = Self { folder: folder.to_owned() };
        clock.set(0)?;
        Ok(clock)
    }

    /// The environment of a process that goes by it.
    #[must_use]
    pub fn environment(&self) -> [(&'static str, String); 3] {
        let folder = self.folder.display().to_string();
        [
            // A path would end at its first space.
            ("LD_PRELOAD", LIBRARY.into()),
            ("LD_LIBRARY_PATH", folder),
            ("VDO_TESTBED_CLOCK", self.file().display().to_string()),
        ]
    }

    fn file(&self) -> PathBuf {
        self.folder.join("clock")
    }

    /// From now on it is so many seconds later than it really is, or earlier.
    pub fn set(&self, seconds: i64) -> Result<()> {
        // At once: no one reads half a number.
        let new = self.file().with_extension("new");
        std::fs::write(&new, seconds.to_string())?;
        Ok(std::fs::rename(new, self.file())?)
    }
}
