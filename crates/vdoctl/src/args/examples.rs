// SPDX-License-Identifier: Apache-2.0
//! The examples at the end of `vdoctl VERB --help`, for each verb.

use super::super::wrap::unbroken;

/// A verb without `vdoctl`, and its examples.
const EXAMPLES: &[(&str, &[&str])] = &[
    (
        "deploy",
        &[
            "vdoctl deploy --vcenter vcenter.example.com --user k8s@vsphere.local",
            "vdoctl deploy --vcenter vcenter.example.com --create-account --admin administrator@vsphere.local",
            "vdoctl deploy --vcenter vcenter.example.com --user k8s@vsphere.local --storage-policy gold",
            "vdoctl deploy --values configuration.yaml --dry-run server",
            "vdoctl deploy --vcenter vcenter.example.com --user k8s@vsphere.local --gitops clusters/east/vdo",
            "vdoctl deploy                            # upgrades the operator and keeps the configuration",
        ],
    ),
    (
        "adopt",
        &[
            "vdoctl adopt",
            "vdoctl adopt -o yaml                     # the objects, with the origin of each setting",
            "vdoctl adopt --write --accept-loss csi/global/cnspvcprotection-cleanup-intervalinmin",
            "vdoctl adopt --move --dry-run            # the steps to move drivers of another tool",
            "vdoctl adopt --move --undo",
        ],
    ),
    (
        "status",
        &[
            "vdoctl status",
            "vdoctl status --watch",
            "vdoctl status -o json | jq .problems",
            "vdoctl status --all-contexts             # one line per cluster, problems first",
        ],
    ),
    (
        "plan",
        &[
            "vdoctl plan",
            "vdoctl plan --set storageProvider.version=3.6.3   # the plan of a change that is not made yet",
            "vdoctl plan -f vdoconfig.yaml -o wide",
        ],
    ),
    ("approve", &["vdoctl approve 5d1c7a90be22f310"]),
    ("events", &["vdoctl events", "vdoctl events --warnings"]),
    (
        "logs",
        &["vdoctl logs", "vdoctl logs csi --tail 20", "vdoctl logs operator --follow"],
    ),
    ("history", &["vdoctl history", "vdoctl history csi", "vdoctl history csi 3 -o yaml"]),
    (
        "rollback",
        &["vdoctl rollback csi --wait", "vdoctl rollback csi 2", "vdoctl rollback csi --lift"],
    ),
    (
        "upgrade plan",
        &[
            "vdoctl upgrade plan",
            "vdoctl upgrade plan --to csi=3.7.3",
            "vdoctl upgrade plan --kubernetes 1.35    # the effects of an upgrade of the cluster",
            "vdoctl upgrade plan --vcenter 9.0",
        ],
    ),
    (
        "upgrade apply",
        &["vdoctl upgrade apply", "vdoctl upgrade apply --to csi=3.7.3 --yes"],
    ),
    ("upgrade retry", &["vdoctl upgrade retry"]),
    (
        "configure connection",
        &[
            "vdoctl configure connection vc2 --vcenter vc2.example.com --user k8s@vsphere.local",
            "vdoctl configure connection vc1 --fetch-certificate    # after the vCenter's certificate was renewed",
            "vdoctl configure connection vc1 --datacenter DC1 --datacenter DC2 --dry-run",
            "vdoctl configure connection --interactive",
        ],
    ),
    (
        "configure drivers",
        &[
            "vdoctl configure drivers --set storageProvider.version=3.6.3",
            "vdoctl configure drivers --set storageProvider.version=null --set updatePolicy=Latest",
            "vdoctl configure drivers --storage-policy gold    # for the default StorageClass",
            "vdoctl configure drivers -f vdoconfig.yaml --dry-run",
        ],
    ),
    (
        "configure matrix",
        &[
            "vdoctl configure matrix https://matrix.example.com/index.yaml",
            "vdoctl configure matrix ./matrix         # copies the folder into ConfigMaps",
            "vdoctl configure matrix embedded         # back to the operator's built-in matrix",
        ],
    ),
    ("secrets list", &["vdoctl secrets list"]),
    (
        "secrets set",
        &[
            "vdoctl secrets set                       # asks for the password on the terminal",
            "vdoctl secrets set vc1 --password-file new.txt",
            "pass show vsphere | vdoctl secrets set vc1 --password-file -",
        ],
    ),
    ("pause", &["vdoctl pause", "vdoctl pause csi"]),
    ("resume", &["vdoctl resume --wait", "vdoctl resume csi"]),
    ("reconcile", &["vdoctl reconcile"]),
    (
        "wait",
        &[
            "vdoctl wait --fail-fast",
            "vdoctl wait --for UpgradeAvailable=False --timeout 1h",
            "vdoctl wait --for deleted",
        ],
    ),
    (
        "diff",
        &[
            "vdoctl diff",
            "vdoctl diff --set storageProvider.snapshots={}",
            "vdoctl diff -o name",
        ],
    ),
    ("render", &["vdoctl render > objects.yaml", "vdoctl render -o name"]),
    (
        "release",
        &[
            "vdoctl release --output-dir drivers",
            "vdoctl release --to helm --output-dir drivers",
        ],
    ),
    (
        "rights",
        &[
            "vdoctl rights > rights.yaml",
            "vdoctl rights --missing | kubectl apply --server-side --force-conflicts -f -",
        ],
    ),
    (
        "matrix resolve",
        &[
            "vdoctl matrix resolve",
            "vdoctl matrix resolve --kubernetes 1.35 --vcenter 8.0.3",
            "vdoctl matrix resolve --what-if-kubernetes 1.36",
        ],
    ),
    (
        "matrix explain",
        &[
            "vdoctl matrix explain",
            "vdoctl matrix explain --kubernetes 1.34 --vcenter 8.0.3 -o wide",
        ],
    ),
    (
        "matrix why-not",
        &["vdoctl matrix why-not csi 3.5.1 --kubernetes 1.34 --vcenter 8.0.3"],
    ),
    (
        "matrix list",
        &[
            "vdoctl matrix list",
            "vdoctl matrix list csi --kubernetes 1.34",
            "vdoctl matrix list -o wide",
        ],
    ),
    ("matrix show", &["vdoctl matrix show csi 3.7.3"]),
    ("matrix lint", &["vdoctl matrix lint ./matrix"]),
    ("matrix load", &["vdoctl matrix load ./matrix configmap://vmware-system-vdo/matrix"]),
    ("matrix sign", &["vdoctl matrix sign ./matrix --key-file publisher.key"]),
    ("matrix source", &["vdoctl matrix source"]),
    ("matrix verify", &["vdoctl matrix verify ./matrix --keys publisher.pub"]),
    ("matrix init", &["vdoctl matrix init ./matrix --key-file publisher.key"]),
    (
        "matrix publish",
        &["vdoctl matrix publish vsphere-csi-3.7.4.tgz --to ./matrix --key-file publisher.key"],
    ),
    (
        "matrix withdraw",
        &["vdoctl matrix withdraw csi 3.7.4 --reason \"loses volumes\" --use 3.7.3 --to ./matrix --key-file publisher.key"],
    ),
    (
        "matrix deprecate",
        &["vdoctl matrix deprecate csi 3.6.0 --reason \"3.6.3 is better\" --to ./matrix --key-file publisher.key"],
    ),
    ("matrix diff", &["vdoctl matrix diff ./old ./new --kubernetes 1.34 --vcenter 8.0.3"]),
    (
        "mirror pull",
        &["vdoctl mirror pull ./bundle --kubernetes 1.33..1.35 --vcenter 8.0"],
    ),
    ("mirror verify", &["vdoctl mirror verify ./bundle"]),
    ("mirror push", &["vdoctl mirror push ./bundle oci://registry.example.com/vsphere"]),
    (
        "mirror copy",
        &["vdoctl mirror copy embedded oci://registry.example.com/vsphere --driver csi=3.7.*"],
    ),
    ("mirror prune", &["vdoctl mirror prune ./bundle"]),
    (
        "chart render",
        &[
            "vdoctl chart render csi --version 3.7.3",
            "vdoctl chart render csi --version 3.7.3 --set controller.replicas=1",
        ],
    ),
    ("chart images", &["vdoctl chart images csi --version 3.7.3"]),
    (
        "chart compare",
        &["vdoctl chart compare csi vsphere-csi-driver.yaml --version 3.7.3"],
    ),
    (
        "chart package",
        &["vdoctl chart package csi --version 3.7.3 --output vsphere-csi-3.7.3.tgz"],
    ),
    ("chart sources", &["vdoctl chart sources ./sources"]),
    ("chart lint", &["vdoctl chart lint charts/vsphere-csi"]),
    ("chart add-release", &["vdoctl chart add-release csi 3.7.4 vsphere-csi-driver.yaml"]),
    (
        "chart import",
        &["vdoctl chart import manifests.yaml --name example --role other --version 1.0.0"],
    ),
    (
        "chart push",
        &["vdoctl chart push vsphere-csi-3.7.3.tgz oci://registry.example.com/charts"],
    ),
    (
        "chart pull",
        &["vdoctl chart pull oci://registry.example.com/charts/vsphere-csi --version 3.7.3"],
    ),
    (
        "doctor",
        &[
            "vdoctl doctor",
            "vdoctl doctor --pre --vcenter vcenter.example.com --user k8s@vsphere.local",
            "vdoctl doctor nodes",
            "vdoctl doctor --fix --user administrator@vsphere.local --dry-run",
            "vdoctl doctor --undo --user administrator@vsphere.local",
        ],
    ),
    (
        "selftest",
        &[
            "vdoctl selftest",
            "vdoctl selftest --storage-class vsphere-default --access-mode ReadWriteMany",
            "vdoctl selftest --zones -o junit > selftest.xml",
            "vdoctl selftest --image registry.example.com/tools/busybox:1.37",
        ],
    ),
    (
        "users create",
        &[
            "vdoctl users create --user administrator@vsphere.local",
            "vdoctl users create --vcenter vcenter.example.com --user administrator@vsphere.local --shared",
        ],
    ),
    ("users list", &["vdoctl users list --user administrator@vsphere.local"]),
    ("users verify", &["vdoctl users verify --user administrator@vsphere.local"]),
    ("users shrink", &["vdoctl users shrink --user administrator@vsphere.local"]),
    ("users rotate", &["vdoctl users rotate --user administrator@vsphere.local"]),
    ("users delete", &["vdoctl users delete --user administrator@vsphere.local"]),
    ("doctor nodes", &["vdoctl doctor nodes"]),
    (
        "doctor volumes",
        &[
            "vdoctl doctor volumes",
            "vdoctl doctor volumes -o wide",
            "vdoctl doctor volumes -o json | jq .findings",
        ],
    ),
    ("doctor topology", &["vdoctl doctor topology", "vdoctl doctor topology -o json"]),
    ("doctor connection", &["vdoctl doctor connection vc1"]),
    (
        "doctor privileges",
        &[
            "vdoctl doctor privileges",
            "vdoctl doctor privileges --required --commands govc",
            "vdoctl doctor privileges --surplus",
        ],
    ),
    (
        "support-bundle",
        &["vdoctl support-bundle", "vdoctl support-bundle --output bundle.tar.gz"],
    ),
    (
        "report",
        &[
            "vdoctl report",
            "vdoctl report --html report.html --from bundle.tar.gz",
            "vdoctl report --html report.html --contexts east,west",
        ],
    ),
    (
        "delete",
        &["vdoctl delete", "vdoctl delete --drivers-only", "vdoctl delete --dry-run server"],
    ),
    (
        "explain",
        &["vdoctl explain PasswordExpired", "vdoctl explain Authenticated", "vdoctl explain 6"],
    ),
    ("version", &["vdoctl version", "vdoctl version --client -o json"]),
    (
        "completion",
        &[
            "source <(vdoctl completion bash)",
            "vdoctl completion zsh > \"${fpath[1]}/_vdoctl\"",
            "vdoctl completion fish | source",
            "vdoctl completion powershell | Out-String | Invoke-Expression",
        ],
    ),
    ("options", &["vdoctl options"]),
];

/// The examples of a verb; none where it has none.
#[must_use]
pub fn of(path: &str) -> &'static [&'static str] {
    EXAMPLES
        .iter()
        .find(|(verb, _)| *verb == path)
        .map_or(&[], |(_, examples)| examples)
}

/// Columns of a line of help between its margins.
const ROOM: usize = 78;

/// An example in help: the command stays on one line, and its comment stands below it where the two are too long for one.
pub(super) fn shown(example: &str) -> String {
    match example.split_once("  #").filter(|_| example.len() > ROOM) {
        Some((command, comment)) => format!("{}\n    # {}", unbroken(command.trim_end()), comment.trim_start()),
        None => unbroken(example),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaves(command: &clap::Command, path: &str, found: &mut Vec<String>) {
        for verb in command.get_subcommands() {
            let path = format!("{path} {}", verb.get_name()).trim_start().to_owned();
            if verb.get_subcommands().next().is_none() || !verb.is_subcommand_required_set() {
                found.push(path.clone());
            }
            leaves(verb, &path, found);
        }
    }

    /// Every verb has an example, no example is of a verb that is not there, and each is understood.
    #[test]
    fn examples_of_every_verb_are_valid_command_lines() {
        let mut verbs = Vec::new();
        leaves(&super::super::command(), "", &mut verbs);
        for verb in &verbs {
            assert!(!of(verb).is_empty(), "vdoctl {verb} has no example");
        }
        for (verb, examples) in EXAMPLES {
            assert!(verbs.iter().any(|known| known == verb), "there is no verb {verb}");
            for example in *examples {
                let begin = example.find("vdoctl").expect("an example of vdoctl");
                let line = example[begin..].split([')', '#', '>']).next().unwrap_or_default();
                let line = line.split(" | ").next().unwrap_or_default();
                // The few quotes are around the words of a reason.
                let quoted = line.split('"').enumerate();
                let words = quoted.flat_map(|(at, part)| match at % 2 {
                    1 => vec![part.to_owned()],
                    _ => part.split_whitespace().map(str::to_owned).collect(),
                });
                let words: Vec<String> = words.collect();
                for pair in words.windows(2).filter(|pair| pair[0] == "--set" && !verb.starts_with("chart")) {
                    let setting: super::super::Setting = pair[1].parse().expect("a setting");
                    assert!(setting.in_spec().is_ok(), "{example}: {:?}", setting.in_spec());
                }
                let result = super::super::command().try_get_matches_from(words);
                assert!(
                    result.is_ok(),
                    "{example}: {}",
                    result.err().map(|error| error.to_string()).unwrap_or_default()
                );
                assert!(
                    line.trim_start_matches("vdoctl ").starts_with(verb),
                    "{example} is not one of {verb}"
                );
            }
        }
    }
}
