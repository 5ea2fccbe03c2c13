// SPDX-License-Identifier: Apache-2.0
//! The functions of this crate for Windows 10 and newer; a function without an equivalent on Windows does nothing.
//!
//! The access list of a folder decides who may read a file, and a new file inherits this list. Below the profile of a user these are the user
//! and the administrators, elsewhere everyone whom the folder permits. The standard library shows no owner and no access list, so no file is
//! refused for them.

use crate::{Stop, windows_rules};
use std::fs::{DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, IsTerminal};
use std::os::windows::fs::OpenOptionsExt as _;
use std::os::windows::io::AsHandle;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use tokio::process::Child;
use tokio::signal::windows::{
    CtrlBreak, CtrlC, CtrlClose, CtrlLogoff, CtrlShutdown, ctrl_break, ctrl_c, ctrl_close, ctrl_logoff, ctrl_shutdown,
};

// From winbase.h and winerror.h.
const FILE_FLAG_OPEN_REPARSE_POINT: u32 = 0x0020_0000;
const FILE_FLAG_DELETE_ON_CLOSE: u32 = 0x0400_0000;
const ERROR_SHARING_VIOLATION: i32 = 32;

/// Creates a file with the access list of its folder.
///
/// # Errors
/// When there is one, or it cannot be created.
pub fn create_private(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).open(path)
}

/// Creates a folder with the access list of the folder above it.
///
/// # Errors
/// When there is one, or it cannot be created.
pub fn create_private_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().create(path)
}

/// Whether other users of this machine may read a file. It is not known here.
#[must_use]
pub fn readable_by_others(_: &Metadata) -> bool {
    false
}

/// Whether other users of this machine may write into a folder. It is not known here.
#[must_use]
pub fn writable_by_others(_: &Metadata) -> bool {
    false
}

/// Whether a file belongs to the user of this process. It is not known here.
#[must_use]
pub fn is_ours(_: &Metadata) -> bool {
    true
}

/// Whether a file belongs to the user of this process, or to the system. It is not known here.
#[must_use]
pub fn is_ours_or_the_systems(_: &Metadata) -> bool {
    true
}

/// Whether a file can be reached by a second name. It is not known here.
#[must_use]
pub fn has_other_names(_: &Metadata) -> bool {
    false
}

/// Opens no link.
pub fn no_link(options: &mut OpenOptions) -> &mut OpenOptions {
    options.custom_flags(FILE_FLAG_OPEN_REPARSE_POINT)
}

/// Opens no link, and does not wait for another end.
pub fn no_link_no_waiting(options: &mut OpenOptions) -> &mut OpenOptions {
    no_link(options)
}

/// Does not wait for another end: a pipe here has one, or does not exist.
pub fn no_waiting(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

/// A folder in which one process works at a time: as long as the file is open. `None` where another one does. A folder itself cannot be locked
/// here, so a file in it is, which is deleted when it is closed.
///
/// # Errors
/// When the folder cannot be written.
pub fn file_for_one(folder: &Path) -> io::Result<Option<File>> {
    let open = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .share_mode(0)
        .custom_flags(FILE_FLAG_DELETE_ON_CLOSE)
        .open(folder.join(".vdoctl.lock"));
    match open {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.raw_os_error() == Some(ERROR_SHARING_VIOLATION) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Nothing to do: Windows writes a dump of a process for an administrator only, and only where one has asked for dumps.
pub fn keep_memory_private() {}

/// Nothing to do: the system has no such limit.
pub fn raise_descriptor_limit() {}

/// `None`: a process here has no limit of memory that can be set without code that is not safe, so the caller does the work itself.
///
/// # Errors
/// Never.
pub fn again_with_memory(_: u64) -> io::Result<Option<Child>> {
    Ok(None)
}

/// Whether a process was ended by a signal. There are none.
#[must_use]
pub fn was_aborted(_: ExitStatus) -> bool {
    false
}

/// Nothing to do: Ctrl-C reaches every program of the console.
pub fn end_children() {}

/// What asks a process to stop: Ctrl-C and Ctrl-Break; the window that closes, the user who logs off, the system that shuts down.
#[derive(Debug)]
pub struct Signals {
    interrupt: CtrlC,
    stop: CtrlBreak,
    close: CtrlClose,
    logoff: CtrlLogoff,
    shutdown: CtrlShutdown,
}

impl Signals {
    /// Catches them from now on.
    ///
    /// # Errors
    /// When the system does not let them be caught.
    pub fn catch() -> io::Result<Self> {
        Ok(Self {
            interrupt: ctrl_c()?,
            stop: ctrl_break()?,
            close: ctrl_close()?,
            logoff: ctrl_logoff()?,
            shutdown: ctrl_shutdown()?,
        })
    }

    /// Waits for the next one.
    pub async fn next(&mut self) -> Stop {
        tokio::select! {
            biased;
            _ = self.interrupt.recv() => Stop::Interrupted,
            _ = self.stop.recv() => Stop::Interrupted,
            _ = self.close.recv() => Stop::Terminated,
            _ = self.logoff.recv() => Stop::Terminated,
            _ = self.shutdown.recv() => Stop::Terminated,
        }
    }
}

/// How many columns a stream's terminal has; `None` where it is no terminal.
pub fn columns(stream: &(impl AsHandle + IsTerminal)) -> Option<usize> {
    crate::width(stream.is_terminal().then(|| terminal_size::terminal_size_of(stream)).flatten())
}

/// Has the console follow the sequences for colours and places.
pub fn prepare_terminal() {
    // A console that cannot, of before Windows 10, is served by the writer of colours.
    let _ = anstyle_query::windows::enable_ansi_colors();
}

/// `None`: the shells here set the console themselves before they ask for the next command.
#[must_use]
pub fn terminal_settings() -> Option<String> {
    None
}

/// Nothing to do, as [`terminal_settings`] gives nothing.
pub fn restore_terminal(_: &str) {}

/// The folder with `.kube`, as kubectl finds it.
#[must_use]
pub fn kube_home() -> Option<PathBuf> {
    windows_rules::kube_home(variable, |path| path.exists())
}

/// The folder in which programs such as Helm keep a folder with their settings: `%APPDATA%`.
#[must_use]
pub fn config_folder() -> Option<PathBuf> {
    variable("APPDATA").map(PathBuf::from)
}

/// The file that is the standard input of whatever program opens it: there is none.
pub const STANDARD_INPUT: Option<&str> = None;

/// A program as a shell finds it by its name: with the endings that `PATHEXT` has, such as `.exe` and `.cmd`, in the folders of `PATH`.
#[must_use]
pub fn program(name: &str) -> String {
    let path = variable("PATH").unwrap_or_default();
    let endings = variable("PATHEXT").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    windows_rules::program(name, &folders, &endings.to_string_lossy(), |path| path.is_file())
}

/// The name of this machine, for people.
#[must_use]
pub fn host_name() -> String {
    variable("COMPUTERNAME").unwrap_or_default().to_string_lossy().into_owned()
}

#[expect(
    clippy::disallowed_methods,
    reason = "these variables have the same meaning as in kubectl, Helm and every shell"
)]
fn variable(name: &str) -> Option<std::ffi::OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}
