// SPDX-License-Identifier: Apache-2.0
//! Rules of the code that no list of dependencies can say.

use crate::sources::{product_code, product_texts, texts_of};
use std::collections::BTreeSet;

/// A stranger finds the place for a change by the first lines of files.
#[test]
fn rules_every_file_begins_with_what_it_does() {
    let without: Vec<String> = product_texts()
        .into_iter()
        .filter(|(file, text)| !file.ends_with("/tests.rs") && !text.lines().take(3).any(|line| line.starts_with("//!")))
        .map(|(file, _)| file)
        .collect();
    assert!(without.is_empty(), "no line begins with //! in: {without:#?}");
}

/// Text that others have written takes up to a hundred times its bytes in memory: `types::from_json` counts before anything is built, and so does
/// `yaml`. What else reads JSON or YAML has a limit of its own, or reads what was counted before.
#[test]
fn rules_text_from_outside_is_read_within_a_budget() {
    const MAY: [&str; 5] = [
        // What the cache itself has written.
        "src/cluster/cache/cached_object.rs",
        // Objects of the API server, which are bounded while they are read.
        "src/cluster/write.rs",
        // Counts values itself.
        "crates/vdo-core/src/matrix/stream.rs",
        "crates/vdo-api/src/types/json.rs",
        // The memory of all inspections together.
        "crates/vdo-vsphere/src/vcenter/tags.rs",
    ];
    const READS: [&str; 4] = [
        "serde_json::from_str",
        "serde_json::from_slice",
        "from_reader(",
        "Deserializer::from_",
    ];
    let places = |words: &[&str]| -> BTreeSet<String> {
        let found = product_code().filter(|(file, code)| !file.ends_with("tests.rs") && words.iter().any(|word| code.contains(word)));
        found.map(|(file, _)| file).collect()
    };
    assert_eq!(places(&READS), MAY.map(str::to_owned).into());
    assert_eq!(
        places(&["serde_saphyr::"]),
        ["crates/vdo-api/src/yaml.rs", "crates/vdo-api/src/yaml/positions.rs"]
            .map(str::to_owned)
            .into()
    );
}

/// The texts of a piece of code, and the code around them.
fn texts_apart(code: &str) -> (Vec<String>, String) {
    let (mut texts, mut rest) = (Vec::new(), String::new());
    let mut parts = code.replace("'\"'", "' '").replace("\\\\", "  ").replace("\\\"", "  ");
    while let Some((before, after)) = parts.split_once('"') {
        let (text, more) = after.split_once('"').unwrap_or((after, ""));
        rest.push_str(before);
        rest.push(' ');
        texts.push(text.to_owned());
        parts = more.to_owned();
    }
    (texts, rest + &parts)
}

/// The names of drivers: as the matrix and Kubernetes spell them, and as constants. Messages may speak of them.
#[test]
fn rules_driver_names_are_in_the_table_of_drivers_only() {
    const SPELLED: [&str; 3] = ["vsphere-cpi", "vsphere-csi", "csi.vsphere.vmware.com"];
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let may = ["crates/vdo-core/src/drivers", "crates/vdo-api/src/api"];
    for (file, code) in product_code().filter(|(file, _)| !may.iter().any(|may| file.starts_with(may))) {
        let code: Vec<&str> = code.lines().map(|line| line.split(" // ").next().unwrap_or_default()).collect();
        let (texts, code) = texts_apart(&code.join("\n"));
        let spelled = texts.iter().find(|text| SPELLED.contains(&text.as_str()));
        let constant = code.split(|c| !is_word(c)).find(|word| matches!(*word, "CPI" | "CSI"));
        let found = spelled.map(String::as_str).or(constant);
        assert_eq!(found, None, "in {file}: what is known of one driver is in {}", may[0]);
    }
}

/// The operator changes nothing in a vCenter: what opens a session that can is made in one place of the command line.
#[test]
fn rules_only_users_of_vdoctl_may_change_a_vcenter() {
    let places = |word: &str| -> BTreeSet<String> {
        product_code()
            .filter(|(_, code)| code.contains(word))
            .map(|(file, _)| file)
            .collect()
    };
    assert_eq!(
        places("Consent::given"),
        ["crates/vdoctl/src/users/login_and_datastores.rs".to_owned()].into()
    );
    assert_eq!(
        places("Administrator::open"),
        ["crates/vdoctl/src/users/login_and_datastores.rs".to_owned()].into()
    );
    // Requests of any name are made of these, and the administration alone makes such requests.
    let raw = places("vcenter::raw");
    assert!(
        !raw.is_empty() && raw.iter().all(|file| file.starts_with("crates/vdo-admin/src/administrator/")),
        "{raw:?}"
    );
    assert_eq!(places("Self(())"), ["crates/vdo-admin/src/accounts/consent.rs".to_owned()].into());
}

/// What is written is a step of the plan: the methods that write are called where steps are carried out, and beside them only for a
/// status, for an approval and for a person.
#[test]
fn rules_only_apply_writes_to_the_cluster() {
    const WRITES: [&str; 6] = [
        ".apply(&",
        ".apply(object, ",
        ".merge(\"vdo.vmware.com",
        ".merge(API_VERSION",
        ".merge(api_version",
        ".delete_as_seen(",
    ];
    const MAY: [&str; 16] = [
        // `adopt --move`, on workloads of others.
        "crates/vdoctl/src/adopt/moving.rs",
        "crates/vdoctl/src/approve.rs",
        // What `configure`, `secrets set`, `upgrade apply`, `pause` and `resume` write.
        "crates/vdoctl/src/object_write.rs",
        "crates/vdoctl/src/delete/drivers.rs",
        "crates/vdoctl/src/delete/remove.rs",
        "crates/vdoctl/src/deploy/write.rs",
        "crates/vdoctl/src/history.rs",
        // `mirror push --use`.
        "crates/vdoctl/src/mirror/use_in_cluster.rs",
        // A test of storage, in a namespace of its own.
        "crates/vdoctl/src/selftest/test_namespace.rs",
        "crates/vdoctl/src/selftest/run.rs",
        // What OLM reads.
        "src/controller/olm_condition.rs",
        "src/controller/vdoconfig.rs",
        "src/controller/vsphere_cloud_config.rs",
        "src/reconcile/apply.rs",
        "src/reconcile/apply/delete.rs",
        "src/reconcile/apply/state_secret.rs",
    ];
    let mut found = BTreeSet::new();
    for (name, text) in product_texts() {
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        if !name.starts_with("src/cluster") && code.contains("writer") && WRITES.iter().any(|write| code.contains(write)) {
            found.insert(name);
        }
    }
    assert_eq!(found, MAY.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>());
}

/// A fresh machine has the essential packages of Debian and what the README asks for. A test that starts another program looks for it first and
/// says that it is skipped; `kill` is such a program, so that signals are sent by the system call.
#[test]
fn rules_tests_start_programs_that_every_machine_has() {
    const EVERY_MACHINE: [&str; 12] = [
        "bash",
        "cc",
        "cp",
        "git",
        "go",
        "install",
        "make",
        "setsid",
        "sh",
        "sha256sum",
        "tar",
        "unshare",
    ];
    const LOOKED_FOR: [&str; 6] = ["chromium", "cosign", "fish", "openssl", "wine", "zsh"];
    let mut started = BTreeSet::new();
    for (file, text) in texts_of("tests", &["rs"]) {
        let after = text.split("Command::new(\"").skip(1);
        started.extend(after.filter_map(|rest| Some((rest.split_once('"')?.0.to_owned(), file.clone()))));
    }
    let known = |program: &str| EVERY_MACHINE.contains(&program) || LOOKED_FOR.contains(&program);
    let strange: Vec<_> = started.iter().filter(|(program, _)| !known(program)).collect();
    assert!(started.len() > 10 && strange.is_empty(), "{strange:?}");
}
