// SPDX-License-Identifier: Apache-2.0
//! `vdoctl logs --follow`: prints new log lines of many containers, each with its pod and container, also of containers that start later.

use super::super::args::Logs as Args;
use super::super::context::Context;
use super::super::error::sentence;
use super::super::output::Form;
use super::super::printer::Printer;
use super::super::{Answer, CliError, Exit};
use super::{Of, pods_of};
use futures::AsyncReadExt as _;
use kube::Client;
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::sync::mpsc::{Sender, channel};
use vdo::cluster::pod_log_stream;
use vdo_core::manifest::Object;

/// How often it is looked for new containers.
const PACE: Duration = Duration::from_secs(2);

/// The most logs at once: each is a connection, and the API server holds another one to the kubelet.
const MOST: usize = 100;

/// As much of a line as is held until its end comes.
const LINE: usize = 64 << 10;

/// A run of a container; a restart is another one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Run {
    namespace: String,
    pod: String,
    container: String,
    /// Knows this run from those before and after it.
    id: String,
}

/// What a log says.
enum Said {
    Lines(String),
    Failed(String),
}

/// Follows all logs, also of containers that begin later, until interrupted or until no one reads the output.
pub(super) async fn follow(args: &Args, context: &Context, of: &Of, printer: &mut Printer) -> Result<Answer, CliError> {
    let (tell, mut said) = channel(64);
    let mut known: BTreeSet<Run> = BTreeSet::new();
    let mut trouble = None;
    let mut clock = tokio::time::interval(PACE);
    loop {
        tokio::select! {
            _ = clock.tick() => {
                let is_first = known.is_empty();
                let found = match pods_of(args, context, of).await {
                    Ok(pods) => { trouble = None; running(args, &pods) }
                    Err(error) if is_first => return Err(error),
                    // Pods come and go, and so may the API server.
                    Err(error) => {
                        if trouble.as_ref() != Some(&error.what) {
                            printer.answer(&Answer::text("").note(&error.what));
                            trouble = Some(error.what);
                        }
                        continue;
                    }
                };
                if found.len() > MOST {
                    return Err(too_many(found.len()));
                }
                for run in found.into_iter().filter(|run| known.insert(run.clone())) {
                    let tail = is_first.then_some(args.tail);
                    tokio::spawn(read(context.ports.client.clone(), run, tail, tell.clone()));
                }
            }
            Some(said) = said.recv() => match said {
                Said::Lines(lines) => {
                    if let Err(exit) = printer.replace(0, Form::Foreign, &lines) {
                        return Ok(Answer::text("").exit(exit));
                    }
                }
                Said::Failed(what) => drop(printer.answer(&Answer::text("").note(what))),
            }
        }
    }
}

fn too_many(count: usize) -> CliError {
    CliError::new(
        Exit::Refused,
        format!("the command selects {count} containers, and vdoctl follows at most {MOST} logs at once"),
        "Name a node, or one container: vdoctl logs NODE --follow, vdoctl logs csi -c vsphere-csi-node --follow",
    )
}

/// The containers of these pods that have a log.
fn running(args: &Args, pods: &[Object]) -> Vec<Run> {
    let mut found = Vec::new();
    for pod in pods {
        let begun = pod.container_statuses().filter(|status| status.pointer("/state/waiting").is_none());
        for status in begun {
            let container = status["name"].as_str().unwrap_or_default();
            if args.container.as_ref().is_none_or(|wanted| wanted == container) {
                found.push(Run {
                    namespace: pod.namespace().to_owned(),
                    pod: pod.name().to_owned(),
                    container: container.to_owned(),
                    id: format!("{} {}", pod.text("/metadata/uid"), status["restartCount"]),
                });
            }
        }
    }
    found
}

/// Reads a log to its end.
async fn read(client: Client, run: Run, tail: Option<i64>, tell: Sender<Said>) {
    let failed = |error: &(dyn std::error::Error + 'static)| {
        Said::Failed(format!("{}/{} {}: {}", run.namespace, run.pod, run.container, sentence(error)))
    };
    let mut log = match pod_log_stream(&client, &run.namespace, &run.pod, &run.container, tail).await {
        Ok(log) => log,
        Err(error) => return drop(tell.send(failed(&error)).await),
    };
    let title = format!("[{}/{}] ", run.pod, run.container);
    let mut lines = Lines::default();
    let mut buffer = vec![0; 16 << 10];
    loop {
        let said = match log.read(&mut buffer).await {
            Ok(0) => return drop(tell.send(Said::Lines(lines.end(&title))).await),
            Ok(length) => Said::Lines(lines.push(&title, buffer.get(..length).unwrap_or_default())),
            Err(error) => {
                let _ = tell.send(Said::Lines(lines.end(&title))).await;
                return drop(tell.send(failed(&error)).await);
            }
        };
        if tell.send(said).await.is_err() {
            return;
        }
    }
}

/// The lines of a stream of bytes.
#[derive(Debug, Default)]
struct Lines {
    begun: Vec<u8>,
}

impl Lines {
    /// The lines that these bytes end, each behind a title. One that does not end is cut.
    fn push(&mut self, title: &str, bytes: &[u8]) -> String {
        let mut text = String::new();
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.begun.extend_from_slice(piece);
            if piece.ends_with(b"\n") || self.begun.len() >= LINE {
                text.push_str(&self.end(title));
            }
        }
        text
    }

    /// What has no end yet, as a line.
    fn end(&mut self, title: &str) -> String {
        let line = std::mem::take(&mut self.begun);
        let line = String::from_utf8_lossy(&line);
        match line.trim_end_matches(['\r', '\n']) {
            "" if line.is_empty() => String::new(),
            line => format!("{title}{line}\n"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn lines_are_whole_whatever_the_pieces_are() {
        let mut lines = Lines::default();
        for (bytes, expected) in [
            (&b"a\nb"[..], "t a\n"),
            (b"c", ""),
            (b"d\r\n\n", "t bcd\nt \n"),
            (b"\xff", ""),
            (b"\n", "t \u{fffd}\n"),
        ] {
            assert_eq!(lines.push("t ", bytes), expected, "{bytes:?}");
        }
        assert_eq!(lines.end("t "), "");
        let endless = lines.push("t ", &vec![b'x'; 3 * LINE]);
        assert!(endless.len() >= LINE && lines.begun.len() < LINE, "{}", endless.len());
    }

    #[test]
    fn runs_are_of_containers_that_have_begun() {
        let status = |name: &str, count: u32, state: &str| json!({"name": name, "restartCount": count, "state": {state: {}}});
        let value = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "n", "uid": "u"}, "status": {
            "initContainerStatuses": [status("init", 0, "terminated")],
            "containerStatuses": [status("a", 2, "running"), status("b", 0, "waiting")]}});
        let pod = Object::new(value).expect("a pod");
        let args = |container: Option<&str>| Args {
            of: "csi".into(),
            container: container.map(str::to_owned),
            tail: 5,
            previous: false,
            follow: true,
        };
        let found = |container| {
            let runs = running(&args(container), std::slice::from_ref(&pod));
            runs.into_iter()
                .map(|run| format!("{} {}", run.container, run.id))
                .collect::<Vec<_>>()
        };
        assert_eq!(found(None), ["init u 0", "a u 2"]);
        assert_eq!(found(Some("a")), ["a u 2"]);
        assert!(found(Some("b")).is_empty());
    }
}
