// SPDX-License-Identifier: Apache-2.0
//! The administrator's password is looked for wherever it must not be, which is everywhere.

use crate::common::Bed;
use crate::secrets::scan::{Scanner, seen_of_process};
use anyhow::{Result, ensure};
use std::path::Path;

/// That the password is in no form in these bytes.
pub fn is_not_in(bed: &Bed, place: &str, bytes: &[u8]) -> Result<()> {
    let scanner = Scanner::new(&[bed.vcenter.password().to_owned()]);
    let found = scanner.find(bytes).map(|(_, form)| form);
    ensure!(found.is_none(), "the administrator's password is in {place}: {found:?}");
    Ok(())
}

/// Not in the arguments and the environment of a process that knows it.
pub fn is_not_around(bed: &Bed, process: u32) -> Result<()> {
    for (part, content) in seen_of_process(process)? {
        is_not_in(bed, part, &content)?;
    }
    Ok(())
}

/// Not in files that a command leaves, nor in etcd, of which Secrets are a part, nor in logs.
pub async fn is_nowhere(bed: &Bed) -> Result<()> {
    files(bed, &bed.cluster.dir().join("users"))?;
    for (key, bytes) in bed.cluster.stored().await? {
        is_not_in(bed, &key, &bytes)?;
    }
    is_not_in(bed, "the operator's log", &std::fs::read(bed.operator_log())?)
}

fn files(bed: &Bed, folder: &Path) -> Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        match path.is_dir() {
            true => files(bed, &path)?,
            false => is_not_in(bed, &path.display().to_string(), &std::fs::read(&path)?)?,
        }
    }
    Ok(())
}
