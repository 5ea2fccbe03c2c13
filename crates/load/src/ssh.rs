// SPDX-License-Identifier: Apache-2.0
//! Runs a script on a node with ssh, with a key or the password in K8S_MASTER_SSH_PWD, and explains failed connections.
//!
//! ssh never asks a question: an unknown host key, a password or a passphrase ends the command with a remedy.

use crate::node::Node;
use crate::programs::{Call, Ended, Input, ask};
use crate::stop::Stop;

/// The variable with the password of the control-plane node's user.
pub const PASSWORD: &str = "K8S_MASTER_SSH_PWD";

/// What ssh calls to ask, and what tells this program that it was called for that.
const ASK: &str = "VDO_LOAD_ANSWERS_SSH";

/// The password, when ssh has started this program to ask for it. So it is in no argument and in no file.
pub fn asked_for() -> Option<String> {
    std::env::var_os(ASK)?;
    std::env::var(PASSWORD).ok()
}

/// Runs a script in the shell of a node, with this on its standard input, and gives what it printed.
///
/// # Errors
/// When the node cannot be reached without a question, or the script fails: with what it said.
pub fn run(node: &Node, script: &str, input: Input<'_>) -> Result<String, Stop> {
    match ask(&call(node, script)?, input)? {
        Ended::Well(printed) => Ok(printed),
        Ended::Missing => Err(Stop::usage("ssh is missing on this machine").try_this("Install OpenSSH 8.4 or newer.")),
        Ended::Badly(code, said) => Err(explain(node, code, &said)),
    }
}

fn call(node: &Node, script: &str) -> Result<Call, Stop> {
    // A host key that is not known ends this: an image, and a password, are not sent to a machine that may be another one.
    let mut call = Call::of("ssh", &["-o", "StrictHostKeyChecking=yes", "-o", "ConnectTimeout=20"]);
    if node.password {
        let own = std::env::current_exe().map_err(|error| Stop::refused(format!("the path of this program is unknown: {error}")))?;
        // Keys of this user are not tried, because the password would be given as their passphrase.
        for option in [
            "NumberOfPasswordPrompts=1",
            "PubkeyAuthentication=no",
            "PreferredAuthentications=password,keyboard-interactive",
        ] {
            call = call.and("-o", option);
        }
        let display = std::env::var("DISPLAY").unwrap_or_else(|_| ":0".to_owned());
        call = call
            .with("SSH_ASKPASS", own.display().to_string())
            .with("SSH_ASKPASS_REQUIRE", "force");
        call = call.with("DISPLAY", display).with(ASK, "1");
    } else {
        call = call.and("-o", "BatchMode=yes");
    }
    Ok(call.and("-l", node.user.clone()).and("--", node.host.clone()).then(script))
}

/// What the end of ssh means.
fn explain(node: &Node, code: Option<i32>, said: &str) -> Stop {
    let (name, said) = (node.name(), said.trim());
    // ssh itself ends with 255, otherwise as the script.
    if code != Some(255) {
        return Stop::refused(format!("Node {name}: {said}"));
    }
    let stop = |what: &str| Stop::refused(format!("Node {name}: {what}\n{said}"));
    if said.contains("Host key verification failed") || said.contains("REMOTE HOST IDENTIFICATION HAS CHANGED") {
        return stop("the host key is unknown or has changed, and ssh would ask for confirmation").try_this(format!(
            "Log in once (ssh {name}), and compare the host key with the key that the console of the machine shows"
        ));
    }
    match (said.contains("Permission denied"), node.password) {
        (true, true) => stop(&format!("the password in {PASSWORD} is not accepted"))
            .try_this("Correct the password, or allow passwords in sshd_config of the node."),
        (true, false) => stop("no key is accepted, and ssh would ask for a password or a passphrase")
            .try_this(format!("Copy your public key to the node: ssh-copy-id {name}"))
            .try_this("Or, if your key has a passphrase, add the key to the SSH agent: ssh-add"),
        _ => stop("the node cannot be reached over SSH").try_this(format!("To see the error, run: ssh {name} true")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ssh_failure_names_the_node_and_the_command_that_helps() {
        let node = |password| Node {
            user: "root".into(),
            host: "n1".into(),
            password,
        };
        for (password, code, said, part) in [
            (false, 255, "Host key verification failed.", "ssh root@n1"),
            (
                false,
                255,
                "root@n1: Permission denied (publickey,password).",
                "ssh-copy-id root@n1",
            ),
            (
                true,
                255,
                "root@n1: Permission denied (password).",
                "K8S_MASTER_SSH_PWD is not accepted",
            ),
            (false, 255, "ssh: connect to host n1 port 22: No route to host", "No route to host"),
            (
                false,
                1,
                "ctr: no space left on device",
                "Node root@n1: ctr: no space left on device",
            ),
        ] {
            let text = explain(&node(password), Some(code), said).to_string();
            assert!(
                text.starts_with("Node root@n1: ") && text.contains(part) && text.contains(said),
                "{text}"
            );
        }
    }
}
