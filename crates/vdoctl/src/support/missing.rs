// SPDX-License-Identifier: Apache-2.0
//! Groups the messages about parts of a support bundle that could not be read: one line for all logs with the same cause.

use vdo_api::types::count;

/// What a line about the log of a container begins with.
pub(super) const LOG: &str = "log of ";

/// What the API server asks a kubelet for when a log is read.
const OF_KUBELET: &str = "/containerLogs/";

/// The lines, of which those about logs are one for each cause, at the place of the first.
pub(super) fn grouped(missing: &[String]) -> Vec<String> {
    let mut lines: Vec<(String, usize)> = Vec::new();
    for line in missing {
        let Some((_, cause)) = line.strip_prefix(LOG).and_then(|line| line.split_once(": ")) else {
            lines.push((line.clone(), 0));
            continue;
        };
        let cause = cause_of(cause);
        match lines.iter_mut().find(|(known, logs)| *logs > 0 && *known == cause) {
            Some((_, logs)) => *logs += 1,
            None => lines.push((cause, 1)),
        }
    }
    let text = |(text, logs): (String, usize)| match logs {
        0 => text,
        logs => format!("{}: {text}", count(logs, "log")),
    };
    lines.into_iter().map(text).collect()
}

/// The same for all containers of a node that does not answer: without the address that was asked.
fn cause_of(cause: &str) -> String {
    if !cause.contains(OF_KUBELET) {
        return cause.to_owned();
    }
    let last = cause.rsplit(": ").next().unwrap_or_default();
    format!("the kubelets do not answer ({last})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_with_the_same_cause_are_one_line() {
        let kubelet = |node: &str, pod: &str| {
            format!(
                "log of Pod n/{pod} container c: the API server did not answer the request to get Pod n/{pod}: Get \"https://{node}:10250/containerLogs/n/{pod}/c\": \
                 dial tcp {node}:10250: connect: connection refused"
            )
        };
        let missing = [
            "metrics of Pod n/o: no answer".to_owned(),
            kubelet("a", "x"),
            kubelet("b", "y"),
            "log of Pod n/z container c: you lack the right to get Pod n/z".to_owned(),
            kubelet("a", "w"),
        ];
        let expected = [
            "metrics of Pod n/o: no answer",
            "3 logs: the kubelets do not answer (connection refused)",
            "1 log: you lack the right to get Pod n/z",
        ];
        assert_eq!(grouped(&missing), expected);
        assert_eq!(grouped(&[]), [""; 0]);
    }
}
