// SPDX-License-Identifier: Apache-2.0
//! `vdoctl deploy --gitops`, by the commands of the page: the folder installs VDO in any order, no tool fights with the operator, Secrets are apart.

use super::recipes::document;
use super::tool::{Tool, name, shuffled};
use crate::common::sample::SEED;
use crate::common::{Bed, NS};
use crate::deploy::operate;
use crate::fixture::BARE;
use crate::follow::Page;
use crate::page::open;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use vdo_testbed::{Binaries, Part, argocd_health, kstatus, write_program};

/// Stands in for sops, with its arguments: the values of a Secret are hidden and the whole text is kept beside them.
const SOPS: &str = r#"#!/bin/bash
set -euo pipefail
[ "$1" != --help ] || exit 0
echo "$*" >> "$HOME/sops.log"
case $1 in
encrypt)
  text=$(cat "${@: -1}")
  awk '/^[^ ]/ {data = /^data:/} data && /^ / {sub(/: .*/, ": ENC[x]")} {print}' <<< "$text"
  printf 'sops:\n  kept: %s\n' "$(base64 -w0 <<< "$text")" ;;
decrypt) sed -n 's/^  kept: //p' "${@: -1}" | base64 -d ;;
esac
"#;

/// What `kubectl kustomize` makes of a folder.
fn built(page: &Page, folder: &str) -> Result<Vec<Value>> {
    let kubectl = Binaries::ensure(&[Part::Kubectl])?.path(Part::Kubectl);
    let output = Command::new(kubectl).arg("kustomize").arg(page.folder().join(folder)).output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(vdo_api::yaml::load_all(&String::from_utf8(output.stdout)?)?)
}

fn opened(bed: &Bed) -> Result<Page> {
    let page = open(bed, "gitops.md")?;
    let sops = page.folder().join("bin/sops");
    write_program(&sops, SOPS)?;
    page.file("password", bed.vcenter.password())?;
    let given = "--vcenter vcenter.example.com --user k8s@vsphere.local";
    let ours = format!("--vcenter {} --user '{}'", bed.vcenter.address(), bed.vcenter.user());
    let trust = format!("--thumbprint {}", bed.vcenter.thumbprint_sha256());
    let page = page.instead(given, &ours)?.instead("--ca-file vcenter-ca.pem", &trust)?;
    let page = page.instead(given, &ours)?.instead("--ca-file vcenter-ca.pem", &trust)?;
    let page = page.instead("cat > clusters/west", "mkdir -p clusters/west/vdo\ncat > clusters/west")?;
    page.with(&sops)
}

/// The Secrets that are left out, with values.
fn filled(bed: &Bed, text: &str) -> Result<Vec<Value>> {
    let mut secrets = vdo_api::yaml::load_all(text)?;
    ensure!(secrets.len() == 1 && !text.contains(bed.vcenter.password()), "{text}");
    let keys = &mut secrets[0]["stringData"];
    ensure!(*keys == json!({"username": "", "password": ""}), "{keys}");
    *keys = json!({"username": bed.vcenter.user(), "password": bed.vcenter.password()});
    Ok(secrets)
}

#[test]
#[ignore = "long"]
fn gitops_folder_installs_in_any_order_and_no_tool_fights_with_the_operator() -> Result<()> {
    BARE.run(async |bed| {
        let mut page = opened(bed)?;
        page.run("vdoctl deploy")?;
        let folder = page.folder().join("clusters/east/vdo");
        let mut all = built(&page, "clusters/east/vdo")?;
        let secret = all.iter().find(|object| object["kind"] == "Secret");
        ensure!(secret.is_none(), "a Secret is in the folder");
        all.extend(filled(bed, &std::fs::read_to_string(folder.join("secrets.example.yaml"))?)?);

        let tool = Tool::new(bed.cluster.client(), "argocd-controller");
        let order = shuffled(&all, *SEED);
        ensure!(tool.apply(&order).await? > 0, "nothing was too early");
        tool.apply(&shuffled(&all, SEED.wrapping_add(1))).await?;
        operate(bed).await?;
        bed.until_ready().await?;

        // Without force: a field that the operator had taken would be a conflict. What a tool compares has not changed.
        let before = tool.generations(&all).await?;
        for object in &all {
            let live = tool.live(object).await?;
            lacks(&name(object), object, &live)?;
        }
        ensure!(tool.apply(&all).await? == 0);
        ensure!(
            tool.generations(&all).await? == before,
            "the tool changed what the operator had made of it"
        );
        written_by_others(&tool, &all).await?;
        judged(&tool, &all).await?;
        again(bed, &mut page)
    })
}

/// Every field that is in the folder is as it is there. Values that Kubernetes writes in another form are none of ours.
fn lacks(path: &str, wanted: &Value, live: &Value) -> Result<()> {
    match wanted {
        Value::Object(fields) => fields
            .iter()
            .filter(|(key, _)| *key != "stringData")
            .try_for_each(|(key, value)| lacks(&format!("{path}.{key}"), value, &live[key])),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .try_for_each(|(at, value)| lacks(&format!("{path}[{at}]"), value, &live[at])),
        value => {
            ensure!(value == live || value.is_null(), "{path} is {live}, and {value} in the folder");
            Ok(())
        }
    }
}

/// What others than the tool have written into the objects is what the Application of the page ignores.
async fn written_by_others(tool: &Tool, all: &[Value]) -> Result<()> {
    let application = document("Application", "vdo")?;
    let rules = application["spec"]["ignoreDifferences"].as_array().context("rules")?;
    let mut seen = Vec::new();
    for object in all.iter().filter(|object| object["apiVersion"] == "vdo.vmware.com/v1alpha1") {
        let live = tool.live(object).await?;
        let of_others = live["metadata"]["managedFields"].as_array().into_iter().flatten();
        for entry in of_others.filter(|entry| entry["manager"] != "argocd-controller") {
            let fields = entry["fieldsV1"].as_object().context("fields")?;
            for (field, below) in fields {
                let pointers: Vec<String> = match field.as_str() {
                    "f:metadata" => {
                        let keys = below.as_object().into_iter().flatten();
                        keys.map(|(key, _)| format!("/metadata/{}", key.trim_start_matches("f:"))).collect()
                    }
                    other => vec![format!("/{}", other.trim_start_matches("f:"))],
                };
                for pointer in pointers {
                    let ignored = rules.iter().any(|rule| {
                        let kind = rule["kind"] == "*" || rule["kind"] == object["kind"];
                        kind && rule["jsonPointers"]
                            .as_array()
                            .is_some_and(|all| all.contains(&pointer.clone().into()))
                    });
                    ensure!(ignored, "{}: {} wrote {pointer}", name(object), entry["manager"]);
                    seen.push(pointer);
                }
            }
        }
    }
    ensure!(
        ["/status", "/metadata/finalizers"]
            .iter()
            .all(|field| seen.contains(&(*field).to_owned())),
        "{seen:?}"
    );
    Ok(())
}

/// kstatus takes everything for finished, and Argo CD what it has a check for.
async fn judged(tool: &Tool, all: &[Value]) -> Result<()> {
    let mut live = Vec::new();
    for object in all {
        live.push(tool.live(object).await?);
    }
    for (object, health) in live.iter().zip(kstatus(&live)?) {
        ensure!(health.status == "Current", "{}: {health:?}", name(object));
    }
    for object in live.iter().filter(|object| object["apiVersion"] == "vdo.vmware.com/v1alpha1") {
        let script = super::health::script(object["kind"].as_str().context("a kind")?)?;
        let health = argocd_health(&script, std::slice::from_ref(object))?.remove(0);
        ensure!(health.status == "Healthy", "{}: {health:?}", name(object));
    }
    Ok(())
}

/// Files with their content and when they were written.
fn files(folder: &Path) -> Result<Vec<(std::path::PathBuf, Vec<u8>, std::time::SystemTime)>> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        match path.is_dir() {
            true => all.extend(files(&path)?),
            false => all.push((path.clone(), std::fs::read(&path)?, path.metadata()?.modified()?)),
        }
    }
    all.sort();
    Ok(all)
}

/// The other commands of the page, and each of them a second time.
fn again(bed: &Bed, page: &mut Page) -> Result<()> {
    let (east, west) = (page.folder().join("clusters/east"), page.folder().join("clusters/west/vdo"));
    let before = files(&east)?;
    let said = page.run("vdoctl deploy")?;
    ensure!(said.contains("0 files written") && files(&east)? == before, "{said}");

    page.run("mkdir -p clusters/west/vdo\ncat > clusters/west")?;
    let before = files(&west)?;
    for (path, text, _) in &before {
        let text = String::from_utf8_lossy(text);
        use base64::Engine as _;
        let encoded = base64::engine::general_purpose::STANDARD.encode(bed.vcenter.password());
        ensure!(
            !text.contains(bed.vcenter.password()) && !text.contains(&encoded),
            "{} has the password",
            path.display()
        );
    }
    let secrets: Vec<Value> = built(page, "clusters/west/vdo")?
        .into_iter()
        .filter(|object| object["kind"] == "Secret")
        .collect();
    ensure!(
        secrets.len() == 1 && secrets[0]["data"]["password"] == "ENC[x]" && secrets[0]["sops"].is_object(),
        "{secrets:?}"
    );
    ensure!(!west.join("secrets.example.yaml").exists());
    page.run("mkdir -p clusters/west/vdo\ncat > clusters/west")?;
    let after = files(&west)?;
    let kept = |all: &[(std::path::PathBuf, Vec<u8>, std::time::SystemTime)]| -> Vec<_> {
        let ours = all.iter().filter(|(path, ..)| !path.ends_with(".sops.yaml"));
        ours.cloned().collect()
    };
    ensure!(kept(&after) == kept(&before), "the second run changed the folder");
    let log = std::fs::read_to_string(page.folder().join("sops.log"))?;
    let wanted = "encrypt --filename-override config/secret-vc1-credentials.yaml --encrypted-regex ^(data|stringData)$ --input-type yaml --output-type yaml /dev/stdin\n\
                  decrypt --output-type yaml config/secret-vc1-credentials.yaml\n";
    ensure!(log == wanted, "{log}");

    page.run("kubectl kustomize clusters/east/vdo/operator > vdo-operator.yaml")?;
    page.run("mkdir -p manifests/vdo")?;
    let manifest = std::fs::read_to_string(page.folder().join("manifests/vdo/20-config.yaml"))?;
    ensure!(manifest.contains("kind: VDOConfig"), "{manifest}");
    for path in ["vdo-operator", "vdo-config"] {
        let path = document("Kustomization", path)?["spec"]["path"]
            .as_str()
            .context("a path")?
            .to_owned();
        ensure!(page.folder().join(&path).join("kustomization.yaml").is_file(), "there is no {path}");
    }
    let path = document("Application", "vdo")?["spec"]["source"]["path"]
        .as_str()
        .context("a path")?
        .to_owned();
    ensure!(page.folder().join(path).join("kustomization.yaml").is_file());
    let names = document("Kustomization", "vdo-config")?["spec"]["healthChecks"].take();
    let all = built(page, "clusters/east/vdo")?;
    for check in names.as_array().into_iter().flatten() {
        let is = |object: &&Value| object["kind"] == check["kind"] && object["metadata"]["name"] == check["name"];
        ensure!(
            check["namespace"] == NS && all.iter().any(|object| is(&object)),
            "{check} is not in the folder"
        );
    }
    page.end(&[])
}
