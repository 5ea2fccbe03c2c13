// SPDX-License-Identifier: Apache-2.0
//! The functions of this crate for Linux and macOS: file permissions, locks, signals, memory and descriptor limits, terminals.

use crate::Stop;
use rustix::fs::OFlags;
use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, setrlimit};
use std::collections::BTreeSet;
use std::fs::{DirBuilder, File, Metadata, OpenOptions, Permissions, TryLockError};
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use tokio::process::Child;
use tokio::signal::unix::{SignalKind, signal};

/// Creates a file that no one else may read, whatever the umask.
///
/// # Errors
/// When there is one, or it cannot be created.
pub fn create_private(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    // A umask only takes away.
    file.set_permissions(Permissions::from_mode(0o600))?;
    Ok(file)
}

/// Creates a folder that is closed to others.
///
/// # Errors
/// When there is one, or it cannot be created.
pub fn create_private_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(path)
}

/// Whether other users of this machine may read a file.
#[must_use]
pub fn readable_by_others(found: &Metadata) -> bool {
    found.mode() & 0o077 != 0
}

/// Whether other users of this machine may write into a folder.
#[must_use]
pub fn writable_by_others(found: &Metadata) -> bool {
    found.mode() & 0o022 != 0
}

/// Whether a file belongs to the user of this process.
#[must_use]
pub fn is_ours(found: &Metadata) -> bool {
    found.uid() == rustix::process::geteuid().as_raw()
}

/// Whether a file belongs to the user of this process, or to the system.
#[must_use]
pub fn is_ours_or_the_systems(found: &Metadata) -> bool {
    is_ours(found) || found.uid() == 0
}

/// Whether a file can be reached by a second name.
#[must_use]
pub fn has_other_names(found: &Metadata) -> bool {
    found.nlink() != 1
}

/// Opens no link.
pub fn no_link(options: &mut OpenOptions) -> &mut OpenOptions {
    options.custom_flags(flags(OFlags::NOFOLLOW))
}

/// Opens no link, and does not wait for another end.
pub fn no_link_no_waiting(options: &mut OpenOptions) -> &mut OpenOptions {
    options.custom_flags(flags(OFlags::NOFOLLOW | OFlags::NONBLOCK))
}

/// Does not wait for another end, which a pipe may not have.
pub fn no_waiting(options: &mut OpenOptions) -> &mut OpenOptions {
    options.custom_flags(flags(OFlags::NONBLOCK))
}

fn flags(flags: OFlags) -> i32 {
    i32::try_from(flags.bits()).unwrap_or_default()
}

/// A folder in which one process works at a time: as long as the file is open. `None` where another one does.
///
/// # Errors
/// When the folder cannot be opened.
pub fn file_for_one(folder: &Path) -> io::Result<Option<File>> {
    let open = File::open(folder)?;
    match open.try_lock() {
        Ok(()) => Ok(Some(open)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Keeps passwords out of files: no core dump is written when the process aborts, and no other process of the same user may
/// read its memory. A kernel that refuses is no reason not to work.
pub fn keep_memory_private() {
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    if let Err(error) = setrlimit(Resource::Core, none) {
        tracing::warn!(%error, "core dumps cannot be switched off; a crash may write passwords to a file");
    }
    // A pipe to a program that collects core dumps ignores the limit, so the process is marked as not dumpable as well.
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable) {
        tracing::warn!(%error, "the memory of this process cannot be protected from other processes of the same user");
    }
}

/// Takes as many file descriptors as the system grants. The limit at the start is often 1,024 for the sake of old programs, and
/// each watch and each vCenter needs one.
pub fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    let highest = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    if let Err(error) = setrlimit(Resource::Nofile, highest) {
        tracing::warn!(%error, limit = ?limit.current, "the limit of file descriptors cannot be raised");
    }
}

/// Starts this command line once more, in a child that may have this many bytes and whose stderr is a pipe. `None` where this process has such a
/// limit already. macOS takes the limit and counts little under it.
///
/// # Errors
/// When the child cannot be started.
pub fn again_with_memory(bytes: u64) -> io::Result<Option<Child>> {
    let unlimited = getrlimit(Resource::Data);
    if unlimited.current.is_some_and(|current| current <= bytes) {
        return Ok(None);
    }
    let mut line = std::env::args_os();
    let mut command = tokio::process::Command::new(std::env::current_exe()?);
    if let Some(called) = line.next() {
        command.as_std_mut().arg0(called);
    }
    command.args(line).stderr(Stdio::piped()).kill_on_drop(true);
    let limit = Rlimit {
        current: Some(bytes),
        maximum: unlimited.maximum,
    };
    // A child inherits the limits that its parent has when it starts.
    setrlimit(Resource::Data, limit)?;
    let child = command.spawn();
    setrlimit(Resource::Data, unlimited)?;
    child.map(Some)
}

/// Whether a process was ended by a signal, such as its own at an abort.
#[must_use]
pub fn was_aborted(status: ExitStatus) -> bool {
    status.signal().is_some()
}

/// How often nothing new must be found before it is believed. Children are listed for each thread on its own, and those of a thread that
/// ends meanwhile go over to another one, which may have been asked already.
const LOOKS: u32 = 3;

/// Ends the programs that this process has started. Only Linux tells which there are.
pub fn end_children() {
    let (mut known, mut looks) = (BTreeSet::new(), 0);
    while looks < LOOKS {
        let new: Vec<i32> = running().into_iter().filter(|child| known.insert(*child)).collect();
        looks = if new.is_empty() { looks + 1 } else { 0 };
        for child in new.into_iter().filter_map(Pid::from_raw) {
            // One that has ended in the meantime is as good.
            let _ = kill_process(child, Signal::TERM);
        }
    }
}

fn running() -> Vec<i32> {
    let Ok(threads) = std::fs::read_dir("/proc/self/task") else {
        return Vec::new();
    };
    let children = threads
        .flatten()
        .filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    let children: Vec<String> = children.collect();
    children
        .join(" ")
        .split_whitespace()
        .filter_map(|child| child.parse().ok())
        .collect()
}

/// The signals that ask a process to stop.
#[derive(Debug)]
pub struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

impl Signals {
    /// Catches them from now on.
    ///
    /// # Errors
    /// When the system does not let them be caught.
    pub fn catch() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// Waits for the next one.
    pub async fn next(&mut self) -> Stop {
        tokio::select! {
            biased;
            _ = self.interrupt.recv() => Stop::Interrupted,
            _ = self.terminate.recv() => Stop::Terminated,
        }
    }
}

/// How many columns a stream's terminal has; `None` where it is no terminal.
pub fn columns(stream: &(impl AsFd + IsTerminal)) -> Option<usize> {
    crate::width(stream.is_terminal().then(|| terminal_size::terminal_size_of(stream)).flatten())
}

/// Has the terminal follow the sequences for colours and places, as it does by itself here.
pub fn prepare_terminal() {}

/// How the terminal of this process is set, for [`restore_terminal`].
#[must_use]
pub fn terminal_settings() -> Option<String> {
    stty(&["-g"])
}

/// Sets the terminal as it was.
pub fn restore_terminal(settings: &str) {
    let _ = stty(&[settings.trim()]);
}

/// The terminal of this process, set or asked by the tool that every system with terminals has.
fn stty(arguments: &[&str]) -> Option<String> {
    let terminal = File::open("/dev/tty").ok()?;
    let output = Command::new("stty")
        .args(arguments)
        .stdin(terminal)
        .stderr(Stdio::null())
        .output()
        .ok()?;
    output
        .status
        .success()
        .then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The folder with `.kube`, as kubectl finds it.
#[must_use]
pub fn kube_home() -> Option<PathBuf> {
    std::env::home_dir()
}

/// The folder in which programs such as Helm keep a folder with their settings.
#[must_use]
pub fn config_folder() -> Option<PathBuf> {
    let below = if cfg!(target_os = "macos") {
        "Library/Preferences"
    } else {
        ".config"
    };
    Some(std::env::home_dir()?.join(below))
}

/// The file that is the standard input of whatever program opens it.
pub const STANDARD_INPUT: Option<&str> = Some("/dev/stdin");

/// A program as the system finds it by its name.
#[must_use]
pub fn program(name: &str) -> String {
    name.to_owned()
}

/// The name of this machine, for people. macOS has no file with it, so it is empty there.
#[must_use]
pub fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    name.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptor_limit_raised_is_the_highest_granted() {
        raise_descriptor_limit();
        let limit = getrlimit(Resource::Nofile);
        assert_eq!(limit.current, limit.maximum);
    }

    #[test]
    fn folder_for_one_is_given_to_a_second_when_the_first_is_done() {
        let folder = tempfile::tempdir().expect("a folder");
        let first = file_for_one(folder.path()).expect("a file").expect("it is free");
        assert!(file_for_one(folder.path()).expect("a file").is_none());
        drop(first);
        assert!(file_for_one(folder.path()).expect("a file").is_some());
    }
}
