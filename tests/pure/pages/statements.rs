// SPDX-License-Identifier: Apache-2.0
//! What pages state is what the code has: commands, flags, fields, reasons, settings of distributions, alerts.

use super::{lines, pages, read};
use crate::sources::{literals, product_texts, root};
use std::collections::BTreeSet;
use vdo_api::facts::{Distribution, Node};

/// The words of a page in backticks.
fn quoted(page: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (_, line) in lines(page).filter(|(code, _)| !code) {
        found.extend(line.split('`').skip(1).step_by(2).map(str::to_owned));
    }
    found
}

#[test]
fn distributions_page_has_the_settings_that_the_remedy_names() {
    let page = read("docs/distributions.md");
    let screen = read("docs/doctor.md");
    for line in [Distribution::Kubeadm.place()].iter().chain(Distribution::Kubeadm.stanza()) {
        assert!(
            screen.contains(line.trim_start_matches("with ")),
            "the screen of docs/doctor.md lacks {line:?}"
        );
    }
    for version in ["v1.34.4", "v1.34.4+rke2r1", "v1.34.4+k3s1"] {
        let node = Node {
            kubelet: Some(version.into()),
            ..Node::default()
        };
        let distribution: Distribution = node.distribution();
        for line in distribution.stanza() {
            assert!(page.contains(line), "{version}: the page lacks {line:?}");
        }
        for path in distribution
            .place()
            .split(' ')
            .chain(distribution.later().split([' ', ',']))
            .filter(|word| word.starts_with('/'))
        {
            assert!(page.contains(path), "{version}: the page lacks {path}");
        }
    }
}

/// What OLM calls its kinds, reasons and states: words of docs/openshift.md.
const OF_OLM: [&str; 4] = ["AtLatestKnown", "CatalogSource", "OperatorConditionNotUpgradeable", "OperatorGroup"];

/// What Flux, Argo CD, Cluster API, Sveltos and the machines' own tools call their kinds and settings: words of docs/gitops.md, which a real API server
/// with their definitions knows.
const OF_GITOPS: [&str; 14] = [
    "ClusterClass",
    "ClusterProfile",
    "ClusterResourceSet",
    "GitRepository",
    "HelmChart",
    "HelmChartProxy",
    "KubeadmControlPlaneTemplate",
    "LeavePolicies",
    "OCIRepository",
    "ServerSideApply",
    "SkipDryRunOnMissingResource",
    "VSphereClusterTemplate",
    "VSphereMachineTemplate",
    "WaitForTermination",
];

/// `DiskUuidDisabled`, `NodesFound` and the like are words of the code, in sentences and on screens; an alert is one of the rules.
#[test]
fn pages_name_reasons_and_conditions_that_exist() {
    let mut code = read("deploy/monitoring/alerts.yaml");
    code.extend(product_texts().into_iter().map(|(_, text)| text));
    let words = code.split(|letter: char| !letter.is_ascii_alphanumeric());
    let known: BTreeSet<&str> = words.chain(OF_OLM).chain(OF_GITOPS).collect();
    let camel = |word: &str| {
        let capitals = word.chars().filter(char::is_ascii_uppercase).count();
        let letters = word.chars().all(|letter| letter.is_ascii_alphanumeric());
        letters && word.starts_with(|letter: char| letter.is_ascii_uppercase()) && capitals > 1 && capitals < word.len() / 2
    };
    let mut unknown = Vec::new();
    // Benchmarks name what the kernel counts.
    for page in pages().iter().filter(|page| *page != "docs/benchmarks.md") {
        let text = read(page);
        let screens = lines(&text).filter(|(code, _)| *code);
        let screens = screens.flat_map(|(_, line)| line.split(|letter: char| !letter.is_ascii_alphanumeric()));
        unknown.extend(
            quoted(&text)
                .into_iter()
                .chain(screens.map(str::to_owned))
                .filter(|word| camel(word) && !known.contains(word.as_str()))
                .map(|word| format!("{page}: `{word}`")),
        );
    }
    assert!(
        unknown.is_empty(),
        "no reason, condition, kind or alert is called:\n{}",
        unknown.join("\n")
    );
}

/// `spec.storageProvider.topologyCategories` is in the reference, which is made from the definitions.
#[test]
fn pages_name_fields_that_the_definitions_have() {
    let mut known = BTreeSet::new();
    for kind in ["vdoconfig", "vspherecloudconfig", "compatibilityconfig"] {
        let page = read(&format!("docs/reference/{kind}.md"));
        let mut part = "";
        for line in page.lines() {
            if let Some(heading) = line.strip_prefix("## ") {
                part = heading;
            }
            if let Some(field) = line.strip_prefix("| `").and_then(|rest| rest.split('`').next()) {
                known.insert(format!("{part}.{}", field.replace("[]", "")));
            }
        }
    }
    let free = ["spec.storageProvider.values.", "spec.cloudProvider.values.", "spec.drivers.values."];
    let (mut seen, mut unknown) = (0, Vec::new());
    for page in pages() {
        for word in quoted(&read(&page)) {
            let path = word.split([':', ' ', '=']).next().unwrap_or_default().replace("[]", "");
            if !path.starts_with("spec.") && !path.starts_with("status.") || free.iter().any(|prefix| path.starts_with(prefix)) {
                continue;
            }
            seen += 1;
            if !known.contains(&path) {
                unknown.push(format!("{page}: `{path}`"));
            }
        }
    }
    assert!(seen > 15, "only {seen} fields were read");
    assert!(unknown.is_empty(), "these are not fields:\n{}", unknown.join("\n"));
}

/// The example of each kind is read as it is, and has no field that is not in its definition.
#[test]
fn reference_examples_are_objects_of_their_kind() {
    fn is<K: serde::de::DeserializeOwned + serde::Serialize>(kind: &str) {
        let page = read(&format!("docs/reference/{kind}.md"));
        let example = page
            .split("```yaml\n")
            .nth(1)
            .and_then(|rest| rest.split("```").next())
            .expect("an example");
        let written = vdo_api::yaml::load_value(example).expect("YAML");
        let read: K = serde_json::from_value(written.clone()).unwrap_or_else(|error| panic!("{kind}: {error}"));
        let read = serde_json::to_value(read).expect("JSON");
        lost(kind, &written["spec"], &read["spec"]);
    }
    /// Everything that is written is read.
    fn lost(path: &str, written: &serde_json::Value, read: &serde_json::Value) {
        match written {
            serde_json::Value::Object(fields) => fields
                .iter()
                .for_each(|(name, value)| lost(&format!("{path}.{name}"), value, &read[name])),
            serde_json::Value::Array(items) => items
                .iter()
                .zip(0..)
                .for_each(|(item, at)| lost(&format!("{path}[{at}]"), item, &read[at])),
            written => assert_eq!(written, read, "{path} is not a field"),
        }
    }
    is::<vdo_api::api::VDOConfig>("vdoconfig");
    is::<vdo_api::api::VsphereCloudConfig>("vspherecloudconfig");
    is::<vdo_api::api::CompatibilityConfig>("compatibilityconfig");
}

#[test]
fn pages_name_files_that_exist() {
    let mut absent = Vec::new();
    for page in pages() {
        for word in quoted(&read(&page)) {
            let ours = ["deploy/", "overlays/", "charts/", "crates/", "src/", "tests/", "matrix-index/"]
                .iter()
                .any(|folder| word.starts_with(folder));
            // `crates/vdoctl/src/VERB.rs` stands for many.
            let many = word.contains(['*', ' ', '<', '{']) || word.split(['/', '.', '-']).any(|part| part.chars().all(char::is_uppercase));
            if ours && !many && !root().join(&word).exists() {
                absent.push(format!("{page}: {word}"));
            }
        }
    }
    assert!(absent.is_empty(), "there is no such file:\n{}", absent.join("\n"));
}

/// Each command line of `vdoctl` on a page, in text, blocks or tables, has a verb and flags that exist.
#[test]
fn pages_have_verbs_and_flags_of_vdoctl_that_exist() {
    let mut top = vdoctl::args::command();
    // Flags that a verb hands on to those below it are theirs, too.
    top.build();
    let options = vdoctl::args::options();
    let (mut seen, mut wrong) = (0, Vec::new());
    for page in pages() {
        let text = read(&page).replace("\\\n", " ");
        let mut typed: Vec<String> = quoted(&text);
        typed.extend(lines(&text).filter(|(code, _)| *code).map(|(_, line)| line.to_owned()));
        for line in typed {
            let Some((before, rest)) = line.split_once("vdoctl ") else {
                continue;
            };
            if !matches!(before.trim(), "" | "$" | "sudo") {
                continue;
            }
            seen += 1;
            wrong.extend(
                judge(&top, &options, rest)
                    .err()
                    .map(|error| format!("{page}: vdoctl {rest}: {error}")),
            );
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(seen > 200, "only {seen} command lines were read");
}
fn judge(top: &clap::Command, options: &clap::Command, line: &str) -> Result<(), String> {
    let mut command = top;
    let mut verbs = true;
    // What comes after a wide gap is said about the command.
    let line = line.split("   ").next().unwrap_or_default();
    for word in line.split_whitespace() {
        if word.starts_with(['|', '>', ';', '&', '#', '…']) {
            break;
        }
        if let Some(flag) = word
            .strip_prefix("--")
            .map(|flag| flag.split(['=', ']', '`', ',']).next().unwrap_or_default())
        {
            let has = |of: &clap::Command| of.get_arguments().any(|arg| arg.get_long() == Some(flag));
            if !flag.is_empty() && !has(command) && !has(options) && !matches!(flag, "help" | "version") {
                return Err(format!("{} has no --{flag}", command.get_name()));
            }
            verbs = false;
        } else if verbs
            && command.has_subcommands()
            && word.chars().all(|letter| letter.is_ascii_lowercase() || letter == '-')
            && !word.starts_with('-')
        {
            command = command
                .find_subcommand(word)
                .ok_or_else(|| format!("{} has no verb {word}", command.get_name()))?;
        }
    }
    Ok(())
}

/// Every command of vdoctl that a message names has verbs and flags that there are.
#[test]
fn messages_have_verbs_and_flags_of_vdoctl_that_exist() {
    // Words of sentences about the program.
    const PROSE: [&str; 26] = [
        "removes", "of", "does", "that", "has", "writes", "is", "made", "did", "reads", "knows", "packs", "process", "queried", "deletes",
        "cannot", "come", "follows", "then", "rotates", "created", "uses", "could", "accepts", "never", "may",
    ];
    let mut top = vdoctl::args::command();
    top.build();
    let options = vdoctl::args::options();
    let (mut wrong, mut seen) = (Vec::new(), 0);
    for (path, text) in product_texts().into_iter().filter(|(path, _)| !path.ends_with("/tests.rs")) {
        let text = literals(&text);
        for (at, _) in text.match_indices("vdoctl ") {
            let rest = text[at + "vdoctl ".len()..].split(['"', '`', '\n', '|']).next().unwrap_or_default();
            let mut command = &top;
            for (place, word) in rest.split_whitespace().enumerate() {
                let bare = word.trim_end_matches(['.', ',', ';', ':', ')', '?']);
                let has = |flag: &str, of: &clap::Command| of.get_arguments().any(|arg| arg.get_long() == Some(flag));
                if let Some(flag) = bare.strip_prefix("--").map(|flag| flag.split('=').next().unwrap_or_default()) {
                    seen += 1;
                    if !has(flag, command) && !has(flag, &options) {
                        wrong.push(format!("{path}: {} has no --{flag}: vdoctl {rest}", command.get_name()));
                    }
                } else if let Some(verb) = command.find_subcommand(bare) {
                    command = verb;
                } else if place == 0 && bare.chars().all(|c| c.is_ascii_lowercase() || c == '-') && !PROSE.contains(&bare) {
                    wrong.push(format!("{path}: there is no verb {bare}: vdoctl {rest}"));
                }
                seen += usize::from(place == 0);
                if bare != word || matches!(bare, "or" | "and") {
                    break;
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(seen > 100, "only {seen} commands were read");
}

/// How many checks passed and how many objects there are, as the screens of a deployment on this page have it.
fn deployment_of(page: &str) -> (BTreeSet<u32>, BTreeSet<u32>) {
    let (mut checks, mut objects) = (BTreeSet::new(), BTreeSet::new());
    let text = read(page);
    for line in text.lines().filter_map(|line| line.trim_start().strip_prefix("✓ ")) {
        let line = line.split(';').next().unwrap_or_default();
        if line.contains(" objects applied") || line.contains(" objects are in sync") {
            objects.insert(line.split_whitespace().filter_map(|word| word.parse::<u32>().ok()).sum());
        } else if let Some(count) = line.strip_suffix(" checks passed") {
            checks.insert(count.parse().expect("a number"));
        }
    }
    (checks, objects)
}

/// docs/install.md has the screens of a real terminal; those of docs/cli.md are examples, and have the same numbers.
#[test]
fn pages_show_the_same_numbers_of_checks_and_objects_of_a_deployment() {
    let (recorded_checks, recorded_objects) = deployment_of("docs/install.md");
    assert_eq!(
        recorded_objects.len(),
        1,
        "an installation has one number of objects: {recorded_objects:?}"
    );
    let (_, objects) = deployment_of("docs/cli.md");
    assert_eq!(objects, recorded_objects);
    let cli = read("docs/cli.md");
    let (_, screen) = cli.split_once("$ vdoctl deploy --vcenter").expect("a screen of deploy");
    let checks = screen
        .lines()
        .find_map(|line| line.trim().strip_prefix("✓ ")?.strip_suffix(" checks passed"));
    let checks: u32 = checks.and_then(|count| count.parse().ok()).expect("a number of checks");
    assert_eq!(Some(&checks), recorded_checks.last(), "a first deployment makes every check");
}

/// What a reader copies to begin with is accepted by the operator: the Secret names its server, and the connection how it is trusted.
#[test]
fn pages_of_an_installation_have_no_connection_without_trust() {
    let mut seen = 0;
    for page in ["README.md", "docs/install.md"] {
        let text = read(page);
        let blocks = text.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next());
        for block in blocks.filter(|block| block.contains("kind: VsphereCloudConfig")) {
            seen += 1;
            for field in ["thumbprint:", "vdo.vmware.com/servers:"] {
                assert!(block.contains(field), "{page}: {field} is not in\n{block}");
            }
        }
    }
    assert!(seen > 0, "no page has a connection");
}

/// The flags are in the generated reference, and a second table of them would become old. Decisions are no pages of the site.
#[test]
fn pages_for_users_repeat_no_table_of_flags_and_list_no_decision() {
    let cli = read("docs/cli.md");
    let flags: Vec<&str> = cli.lines().filter(|line| line.starts_with("| `-")).collect();
    assert!(flags.is_empty(), "docs/reference/vdoctl.md has the flags: {flags:?}");
    let listed = super::links(&read("docs/SUMMARY.md"));
    let decisions: Vec<&String> = listed.iter().filter(|link| link.contains("decisions/")).collect();
    assert!(listed.len() > 30 && decisions.is_empty(), "{decisions:?}");
}

/// What a stranger asks in the first minute.
#[test]
fn page_readme_answers_why_where_from_and_which_certificate() {
    let readme = read("README.md");
    for (question, answer) in [
        ("why not manifests or Helm", "| | manifests, Helm | VDO |"),
        ("where vdoctl is from", "`make build` builds `vdoctl`"),
        ("where the image is from", "`make deploy` builds the image"),
        (
            "what about the certificate",
            "the first two commands show the certificate and ask you to confirm it",
        ),
        ("how long the demonstration takes", "| `make demo` | about "),
        ("what is not proven", "not yet against a real vSphere installation"),
    ] {
        assert!(
            readme.replace('\n', " ").contains(answer),
            "{question}: {answer:?} is not in README.md"
        );
    }
}
