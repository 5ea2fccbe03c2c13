// SPDX-License-Identifier: Apache-2.0
//! A choice of the faults that a connection can have, as an administrator makes them: objects in a real cluster, the operator as a
//! process, and its conditions.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "tests")]

use crate::common::{Bed, NS, PATIENCE, condition};
use crate::fixture::EMPTY;
use crate::operation::private;
use anyhow::{Context, Result, ensure};
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::process::Command;
use std::sync::Arc;
use vdo_api::facts::Node;
use vdo_testbed::soap::{Act, Greeting, Rule, SoapOptions, SoapProxy};
use vdo_testbed::{Binaries, Part, Probe, Validity, until};
use vdo_vsphere::vsphere::{Host, Inventory, Machine, Requirements};
use vdo_vsphere::vsphere::{machines_status, match_vms};

/// A connection, what is wrong with it, and what the operator must say.
struct Case {
    name: &'static str,
    stage: &'static str,
    reason: &'static str,
    proxy: SoapOptions,
    rules: Vec<Rule>,
    /// Changes to a connection that is right.
    spec: Value,
    /// The Secret, if it is not the right one.
    secret: Option<Value>,
}

fn case(name: &'static str, stage: &'static str, reason: &'static str) -> Case {
    Case {
        name,
        stage,
        reason,
        proxy: SoapOptions::default(),
        rules: Vec::new(),
        spec: json!({}),
        secret: None,
    }
}

fn cases() -> Vec<Case> {
    let spec = |name, stage, reason, spec| Case {
        spec,
        ..case(name, stage, reason)
    };
    let rule = |name, stage, reason, rule| Case {
        rules: vec![rule],
        ..case(name, stage, reason)
    };
    let door = |name, reason, proxy| Case {
        proxy,
        spec: json!({"thumbprint": null, "vcIp": "localhost", "caBundle": {"configMap": name}}),
        ..case(name, "Trusted", reason)
    };
    let secret = |name, reason, secret| Case {
        secret: Some(secret),
        ..case(name, "CredentialsFound", reason)
    };
    let login = |name, reason, data| Case {
        secret: Some(json!({"type": "kubernetes.io/basic-auth", "stringData": data})),
        ..case(name, "Authenticated", reason)
    };
    let wrong_print = "00:11:22:33:44:55:66:77:88:99:AA:BB:CC:DD:EE:FF:00:11:22:33";
    vec![
        spec("no-such-name", "Resolved", "NameNotResolved", json!({"vcIp": "vcenter.invalid"})),
        spec("closed-port", "Connected", "Unreachable", json!({"port": 1})),
        spec(
            "wrong-thumbprint",
            "Trusted",
            "ThumbprintMismatch",
            json!({"thumbprint": wrong_print}),
        ),
        spec(
            "no-ca-bundle",
            "Trusted",
            "CaBundleInvalid",
            json!({"thumbprint": null, "caBundle": {"configMap": "nowhere"}}),
        ),
        spec("system-roots", "Trusted", "CertificateUntrusted", json!({"thumbprint": null})),
        door(
            "expired",
            "CertificateExpired",
            SoapOptions {
                validity: Validity::Expired,
                ..SoapOptions::default()
            },
        ),
        door(
            "other-name",
            "CertificateNameMismatch",
            SoapOptions {
                names: vec!["other.example.com".into()],
                ..SoapOptions::default()
            },
        ),
        door(
            "old-tls",
            "TlsFailed",
            SoapOptions {
                greeting: Greeting::Tls11,
                ..SoapOptions::default()
            },
        ),
        rule(
            "overloaded",
            "IsVCenter",
            "BadAnswer",
            Rule::always(Act::Status(503, vec![], "<html>busy</html>".into())),
        ),
        rule(
            "esx-host",
            "IsVCenter",
            "NotAVcenter",
            Rule::always(Act::Replace(vec![(">VirtualCenter<", ">HostAgent<".into())])),
        ),
        rule("flood", "IsVCenter", "BadAnswer", Rule::always(Act::Flood(100 << 20))),
        secret("no-secret", "SecretNotFound", Value::Null),
        secret(
            "opaque",
            "SecretWrongType",
            json!({"type": "Opaque", "stringData": {"username": "u", "password": "p"}}),
        ),
        secret(
            "no-password",
            "SecretIncomplete",
            json!({"type": "kubernetes.io/basic-auth", "stringData": {"username": "u", "password": ""}}),
        ),
        Case {
            secret: Some(
                json!({"type": "kubernetes.io/basic-auth", "servers": "another.example.com", "stringData": {"username": "u", "password": "p"}}),
            ),
            ..case("other-server", "CredentialsFound", "ServerNotNamed")
        },
        login(
            "wrong-password",
            "InvalidCredentials",
            json!({"username": "administrator@vsphere.local", "password": "wrong"}),
        ),
        Case {
            rules: vec![Rule::on(
                "Login",
                Act::Fault("InvalidLogin", "User account is locked. Please contact your administrator.", ""),
            )],
            ..case("locked", "Authenticated", "AccountLocked")
        },
        rule(
            "password-expired",
            "Authenticated",
            "PasswordExpired",
            Rule::on("Login", Act::Fault("PasswordExpired", "", "")),
        ),
        rule(
            "no-role",
            "Authenticated",
            "LoginRefused",
            Rule::on("Login", Act::Fault("NoPermission", "", "")),
        ),
        rule(
            "may-not-read",
            "DatacentersFound",
            "InventoryForbidden",
            Rule::on("CreateContainerView", Act::Fault("NoPermission", "", "")),
        ),
        spec(
            "misspelt",
            "DatacentersFound",
            "DatacenterNotFound",
            json!({"datacenters": ["DCO"]}),
        ),
        spec("well", "Ready", "Healthy", json!({})),
    ]
}

/// The connections are there when the operator starts, which asks each vCenter once.
#[test]
#[ignore = "long"]
fn connection_fault_is_reported_at_its_stage_and_shown_by_kubectl() -> Result<()> {
    EMPTY.run(async |bed| {
        let cases = cases();
        let mut proxies = Vec::new();
        for case in &cases {
            let proxy = SoapProxy::start(&bed.vcenter, case.proxy.clone()).await?;
            case.rules.iter().cloned().for_each(|rule| proxy.rule(rule));
            bed.apply(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": case.name, "namespace": NS}, "data": {"ca.crt": proxy.ca_pem()}}))
                .await?;
            let right =
                json!({"type": "kubernetes.io/basic-auth", "stringData": {"username": bed.vcenter.user(), "password": bed.vcenter.password()}});
            let mut secret = case.secret.clone().unwrap_or(right);
            if let Some(fields) = secret.as_object_mut() {
                fields.insert("apiVersion".into(), "v1".into());
                fields.insert("kind".into(), "Secret".into());
                let servers = fields.shift_remove("servers");
                let annotations: BTreeMap<_, _> = servers.map(|servers| ("vdo.vmware.com/servers", servers)).into_iter().collect();
                fields.insert("metadata".into(), json!({"name": case.name, "namespace": NS, "annotations": annotations}));
                bed.apply(&secret).await?;
            }
            let mut connection = bed.connection(case.name);
            let spec = connection["spec"].as_object_mut().context("a spec")?;
            spec.insert("port".into(), proxy.port().into());
            spec.insert("thumbprint".into(), proxy.thumbprint_sha256().into());
            spec.insert("credentials".into(), case.name.into());
            for (field, value) in case.spec.as_object().context("changes")? {
                match value {
                    Value::Null => spec.shift_remove(field),
                    value => spec.insert(field.clone(), value.clone()),
                };
            }
            bed.apply(&connection).await?;
            proxies.push(proxy);
        }
        bed.lead_directly();
        bed.flags.clear();
        bed.start_operator().await?;

        let mut wrong = Vec::new();
        for case in &cases {
            let found = until(&format!("connection {} to be looked at", case.name), PATIENCE, async || {
                let object = bed.get("vdo.vmware.com/v1alpha1", "VsphereCloudConfig", NS, case.name).await?;
                let stage = condition(&object, case.stage);
                Ok(
                    if object["status"]["observedGeneration"] == object["metadata"]["generation"] && stage["reason"] != "NotChecked" {
                        Probe::Ready(object)
                    } else {
                        Probe::not_yet(stage)
                    },
                )
            })
            .await?;
            let (stage, ready) = (condition(&found, case.stage), condition(&found, "Ready"));
            let right = stage["reason"] == case.reason && (ready["reason"] == case.reason);
            println!(
                "{:<18} {:<18} {:<24} {}",
                case.name,
                case.stage,
                case.reason,
                if right {
                    "as it should be".into()
                } else {
                    stage["reason"].to_string()
                }
            );
            if !right {
                wrong.push(format!("{}: {stage}; {ready}", case.name));
            }
        }
        ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
        for (case, proxy) in cases.iter().zip(&proxies) {
            let failed: u64 = proxy.logins().values().map(|logins| logins.failed).sum();
            ensure!(failed <= 1, "{}: {failed} logins failed", case.name);
        }
        shown_by_kubectl(bed, &cases)?;
        removed_by_the_command_that_is_shown(bed, &cases, &proxies).await
    })
}

/// What a person adds to the command that `vdoctl doctor` shows: the answers that a terminal would be asked for.
fn answer(reason: &str) -> Option<Answer> {
    Some(match reason {
        "ThumbprintMismatch" | "CertificateUntrusted" | "CertificateNameMismatch" | "CaBundleInvalid" => Answer::Certificate,
        "SecretNotFound" | "SecretWrongType" | "SecretIncomplete" | "ServerNotNamed" | "InvalidCredentials" | "PasswordExpired" => {
            Answer::Account
        }
        _ => return None,
    })
}

#[derive(Clone, Copy, PartialEq)]
enum Answer {
    Certificate,
    Account,
}

/// The command below the cross is pasted, and the cross is gone.
async fn removed_by_the_command_that_is_shown(bed: &Bed, cases: &[Case], proxies: &[SoapProxy]) -> Result<()> {
    let quiet = json!({"managementState": "Paused", "cloudProvider": {"vsphereCloudConfigs": ["well"]}});
    bed.apply(&bed.config(quiet)).await?;
    let folder = tempfile::tempdir()?;
    let file = private(folder.path(), "password", bed.vcenter.password())?;
    let mut pasted = 0;
    for (case, proxy) in cases.iter().zip(proxies) {
        let Some(answer) = answer(case.reason) else { continue };
        // A new password was set in the vCenter.
        if case.reason == "PasswordExpired" {
            proxy.no_more_rules();
        }
        let expected = match answer {
            Answer::Certificate => format!("vdoctl configure connection {} --fetch-certificate", case.name),
            Answer::Account => format!("vdoctl secrets set {}", case.name),
        };
        let (_, shown, _) = bed.vdoctl(&["doctor", "connection", case.name])?;
        let command = shown.lines().map(str::trim).find(|line| *line == expected);
        let command = command.with_context(|| format!("{expected} is not in:\n{shown}"))?;
        let more = match answer {
            Answer::Certificate => "--yes".to_owned(),
            Answer::Account => format!("--user {} --password-file {}", bed.vcenter.user(), shlex::try_quote(&file)?),
        };
        let words = shlex::split(&format!("{command} {more}")).context("a command line")?;
        let words: Vec<&str> = words.iter().skip(1).map(String::as_str).collect();
        let (code, out, said) = bed.vdoctl(&words)?;
        ensure!(code == 0, "{command}: {code}\n{out}{said}");
        bed.until_condition("VsphereCloudConfig", case.name, "Ready", "Healthy").await?;
        pasted += 1;
    }
    ensure!(pasted >= 10, "{pasted} commands were pasted");
    Ok(())
}

/// `kubectl get vsc`: a line for each connection, with its reason.
fn shown_by_kubectl(bed: &Bed, cases: &[Case]) -> Result<()> {
    let output = Command::new(Binaries::ensure(&[Part::Kubectl])?.path(Part::Kubectl))
        .arg("--kubeconfig")
        .arg(bed.cluster.kubeconfig())
        .args(["get", "vsc", "-n", NS])
        .output()?;
    let text = String::from_utf8(output.stdout)?;
    println!("{text}");
    let mut lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let heading = lines.next().context("a heading")?;
    ensure!(
        heading == ["NAME", "ADDRESS", "READY", "VERSION", "USER", "REASON", "AGE"],
        "{heading:?}"
    );
    let rows: Vec<Vec<&str>> = lines.collect();
    for case in cases {
        let row = rows.iter().find(|row| row[0] == case.name).with_context(|| case.name)?;
        let ready = if case.reason == "Healthy" { "True" } else { "False" };
        ensure!(row.contains(&case.reason) && row[2] == ready, "{row:?}");
    }
    Ok(())
}

/// The worst that a status may have to hold: five thousand nodes with long names and every fault there is.
#[test]
fn status_of_five_thousand_faulty_nodes_is_accepted_by_the_api_server() -> Result<()> {
    EMPTY.run(async |bed| {
        let long = "a-node-with-a-name-as-long-as-a-person-may-make-it-in-a-domain-that-is-long-as-well.prod.example.com";
        let nodes: Vec<Arc<Node>> = (0..5000)
            .map(|at| Node {
                name: format!("{long}-{at:04}"),
                provider_id: "vsphere://another".into(),
                system_uuid: format!("{at:08x}-0000-0000-0000-000000000000"),
                ..Node::default()
            })
            .map(Arc::new)
            .collect();
        let machine = |at: usize| Machine {
            id: format!("vm-{at}"),
            path: format!("/Europe/A folder/Another folder/A datacenter/vm/Production/Kubernetes/{long}-{at:04}"),
            uuid: format!("{at:08x}-0000-0000-0000-000000000000"),
            hardware: "vmx-13".into(),
            power: "suspended".into(),
            host: "host-1".into(),
            snapshot: true,
            controllers: Some(vec!["VirtualLsiLogicController".into()]),
            ..Machine::default()
        };
        let host = Host {
            name: format!("esx.{long}"),
            version: "6.5.0".into(),
            state: "notResponding".into(),
            ..Host::default()
        };
        let inventory = Inventory {
            machines: (0..5000).map(machine).collect(),
            hosts: [("host-1".to_owned(), host)].into(),
            ..Inventory::default()
        };
        let reports = match_vms(&nodes, &inventory, &[], &Requirements::default());
        let status = machines_status(&reports);
        ensure!(
            (status.nodes, status.found, status.with_problems) == (5000, 5000, 5000),
            "{} nodes",
            status.nodes
        );
        ensure!(
            status.list.len() == 100 && status.list[0].reasons.len() >= 8,
            "{:?}",
            status.list[0]
        );
        let connection = bed.connection("large");
        bed.apply(&connection).await?;
        let change = json!({"status": {"machines": status}});
        println!("the status of 5000 sick nodes: {} KiB", change.to_string().len() >> 10);
        let api = bed.api("vdo.vmware.com/v1alpha1", "VsphereCloudConfig", NS);
        api.patch_status("large", &PatchParams::default(), &Patch::Merge(&change)).await?;
        let stored = bed.get("vdo.vmware.com/v1alpha1", "VsphereCloudConfig", NS, "large").await?;
        ensure!(
            stored["status"]["machines"]["nodes"] == 5000,
            "{}",
            stored["status"]["machines"]["nodes"]
        );
        ensure!(
            stored["status"]["machines"]["list"]
                .as_array()
                .is_some_and(|list| list.len() == 100),
            "the list is not whole"
        );
        Ok(())
    })
}
