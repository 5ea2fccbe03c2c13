// SPDX-License-Identifier: Apache-2.0
//! Becomes the process of a container: a user namespace with the container's user as its only one, a mount namespace with the
//! container's root file system, and then the container's program.
//!
//! It is a process of its own, `vdo-testbed enter FILE`, because namespaces are entered by processes with one thread.

use std::convert::Infallible;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::stat::{Mode, umask};
use nix::sys::statvfs::{FsFlags, statvfs};
use nix::unistd::{chdir, chroot, getegid, geteuid};
use serde::{Deserialize, Serialize};

use crate::workdir::write_private;

/// A container's process.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Entry {
    /// The root file system; a folder of this container alone, in which the mount points exist.
    pub(crate) root: PathBuf,
    /// What is seen below the root.
    pub(crate) mounts: Vec<Bind>,
    /// Whether the root file system cannot be written to.
    pub(crate) read_only: bool,
    /// The user inside.
    pub(crate) uid: u32,
    /// The group inside.
    pub(crate) gid: u32,
    /// Whether a program with more rights gives them to the container.
    pub(crate) privilege_escalation: bool,
    /// Where the program starts.
    pub(crate) dir: PathBuf,
    /// The program and its arguments.
    pub(crate) argv: Vec<String>,
    /// The whole environment.
    pub(crate) env: Vec<(String, String)>,
}

/// A file or folder of ours inside of a container.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Bind {
    pub(crate) source: PathBuf,
    /// The absolute path inside.
    pub(crate) target: PathBuf,
    pub(crate) read_only: bool,
}

/// Becomes the process that `file` describes. The file may hold secrets and is deleted first.
pub fn enter(file: &Path) -> Result<Infallible> {
    let text = std::fs::read(file).with_context(|| format!("file {}", file.display()))?;
    std::fs::remove_file(file)?;
    let entry: Entry = serde_json::from_slice(&text).context("the container's description")?;
    isolate(&entry)?;
    let (program, args) = entry.argv.split_first().context("the container has no program")?;
    let mut command = Command::new(program);
    command.args(args).env_clear().envs(entry.env.iter().cloned());
    Err(command.exec()).with_context(|| format!("cannot start {program} in its container"))
}

/// Does for a folder what [`enter`] does for a container, to see whether this machine permits it.
pub fn try_out(folder: &Path) -> Result<()> {
    isolate(&Entry {
        root: folder.to_owned(),
        mounts: Vec::new(),
        read_only: true,
        uid: 65532,
        gid: 65532,
        privilege_escalation: false,
        dir: "/".into(),
        argv: Vec::new(),
        env: Vec::new(),
    })
}

/// Becomes a program that finds `token` where pods have the token of their service account, and sees the other files of this machine
/// but those below `/run`. It is for programs that read this path and have no option for another.
pub fn with_token(token: &Path, argv: &[OsString]) -> Result<Infallible> {
    const RUN: &str = "/run";
    let text = std::fs::read(token).with_context(|| format!("file {}", token.display()))?;
    let (program, args) = argv.split_first().context("there is no program")?;
    namespaces(0, 0)?;
    mount(Some("tmpfs"), RUN, Some("tmpfs"), MsFlags::empty(), None::<&str>).context("mount at /run")?;
    let account = Path::new(RUN).join("secrets/kubernetes.io/serviceaccount");
    std::fs::create_dir_all(&account)?;
    write_private(&account.join("token"), text)?;
    Err(Command::new(program).args(args).exec()).with_context(|| format!("cannot start {}", program.display()))
}

fn isolate(entry: &Entry) -> Result<()> {
    namespaces(entry.uid, entry.gid)?;
    bind(&entry.root, &entry.root)?;
    for one in &entry.mounts {
        let target = entry.root.join(one.target.strip_prefix("/").unwrap_or(&one.target));
        bind(&one.source, &target)?;
        if one.read_only {
            make_read_only(&target)?;
        }
    }
    if entry.read_only {
        make_read_only(&entry.root)?;
    }
    chroot(&entry.root).context("root file system")?;
    chdir(&entry.dir).with_context(|| format!("folder {}", entry.dir.display()))?;
    umask(Mode::from_bits_truncate(0o022));
    if !entry.privilege_escalation {
        nix::sys::prctl::set_no_new_privs().context("no new privileges")?;
    }
    Ok(())
}

/// Enters a user namespace with these as its only user and group, and a mount namespace whose changes no one else sees.
fn namespaces(uid: u32, gid: u32) -> Result<()> {
    let (our_uid, our_gid) = (geteuid(), getegid());
    unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNS).context("user and mount namespace")?;
    let identity =
        |file: &str, text: String| std::fs::write(format!("/proc/self/{file}"), text).with_context(|| format!("/proc/self/{file}"));
    identity("setgroups", "deny".into())?;
    identity("uid_map", format!("{uid} {our_uid} 1"))?;
    identity("gid_map", format!("{gid} {our_gid} 1"))?;
    change(Path::new("/"), MsFlags::MS_REC | MsFlags::MS_PRIVATE)
}

fn bind(source: &Path, target: &Path) -> Result<()> {
    mount(Some(source), target, None::<&str>, MsFlags::MS_BIND | MsFlags::MS_REC, None::<&str>)
        .with_context(|| format!("mount of {} at {}", source.display(), target.display()))
}

/// A mount of another user namespace keeps the restrictions that it has.
fn make_read_only(target: &Path) -> Result<()> {
    let has = statvfs(target)?.flags();
    let kept = [
        (FsFlags::ST_NOSUID, MsFlags::MS_NOSUID),
        (FsFlags::ST_NODEV, MsFlags::MS_NODEV),
        (FsFlags::ST_NOEXEC, MsFlags::MS_NOEXEC),
        (FsFlags::ST_NOATIME, MsFlags::MS_NOATIME),
        (FsFlags::ST_NODIRATIME, MsFlags::MS_NODIRATIME),
        (FsFlags::ST_RELATIME, MsFlags::MS_RELATIME),
    ];
    let kept = kept.into_iter().filter(|(flag, _)| has.contains(*flag)).map(|(_, flag)| flag);
    let flags = kept.fold(MsFlags::MS_BIND | MsFlags::MS_REMOUNT | MsFlags::MS_RDONLY, |all, flag| all | flag);
    change(target, flags)
}

fn change(target: &Path, flags: MsFlags) -> Result<()> {
    mount(None::<&str>, target, None::<&str>, flags, None::<&str>).with_context(|| format!("mount at {}", target.display()))
}
