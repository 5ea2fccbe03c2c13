// SPDX-License-Identifier: Apache-2.0
//! Loopback ports that no other test bed on this machine will take.

use std::collections::hash_map::RandomState;
use std::fs::{File, TryLockError};
use std::hash::BuildHasher;
use std::net::TcpListener;

use anyhow::{Context, Result, bail};

/// Below the range the kernel hands out for outgoing connections, above the well-known ones.
const FIRST: u16 = 18_000;
const COUNT: u16 = 14_000;

/// A port, ours as long as this value lives.
#[derive(Debug)]
pub(crate) struct Port {
    number: u16,
    _claim: File,
}

impl Port {
    /// Claims a free port. A locked file stands for the claim, so that two test beds starting at once differ.
    pub(crate) fn claim() -> Result<Self> {
        let folder = std::env::temp_dir().join("vdo-testbed-ports");
        std::fs::create_dir_all(&folder).with_context(|| format!("folder {}", folder.display()))?;
        let start = RandomState::new().hash_one(std::process::id());
        for step in 0..u64::from(COUNT) {
            let offset = (start.wrapping_add(step) % u64::from(COUNT)) as u16;
            let number = FIRST + offset;
            let file = File::create(folder.join(number.to_string())).context("port claim")?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => continue,
                Err(TryLockError::Error(error)) => return Err(error).context("port claim"),
            }
            if TcpListener::bind(("127.0.0.1", number)).is_ok() {
                return Ok(Self { number, _claim: file });
            }
        }
        bail!("no free port between {FIRST} and {}", FIRST + COUNT)
    }

    pub(crate) fn number(&self) -> u16 {
        self.number
    }
}
