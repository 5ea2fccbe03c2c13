// SPDX-License-Identifier: Apache-2.0
//! A site without internet: an empty cluster, its vCenter and a mirror in a network that leads nowhere else.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "tests")]

use crate::common::{Bed, NS, OPERATOR as ACCOUNT, PATIENCE, condition};
use crate::deploy::operate;
use crate::fixture::BARE;
use crate::matrix_source::{Publisher, embedded_index};
use crate::matrix_web::{CHART, leaked, release, until_driver};
use crate::page::open;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use vdo_author::mirror::references;
use vdo_core::chart;
use vdo_core::install::released_image;
use vdo_testbed::{Binaries, Part, Probe, RegistryAuth, RegistryKind, RegistryServer, TestImages, until};

const VDO: &str = "vdo.vmware.com/v1alpha1";
const INSIDE: &str = "mirror::mirror_site_of_its_own";
/// Brings the loopback device up and runs a program. perl is on every machine with the packages that Debian calls essential.
const UP: &str = "use Socket; socket(S, AF_INET, SOCK_DGRAM, 0) or die; my $r = pack('a16 s x22', 'lo', 0x41); ioctl(S, 0x8914, $r) or die $!; \
                  exec @ARGV or die";

#[test]
fn mirror_is_all_that_a_site_without_internet_needs() -> Result<()> {
    let inside = |program: &str| {
        let mut command = Command::new("unshare");
        command.args(["--map-root-user", "--net", "perl", "-e", UP, program]);
        command
    };
    if !inside("true").output().is_ok_and(|output| output.status.success()) {
        // Past the harness, which keeps what a good test prints.
        writeln!(
            std::io::stderr(),
            "SKIPPED: needs network namespaces (mirror_is_all_that_a_site_without_internet_needs)"
        )?;
        return Ok(());
    }
    // Inside nothing can be downloaded.
    let registries = [Part::Crane, Part::Olareg, Part::Distribution];
    Binaries::ensure(&[&Part::ALL[..], &registries].concat())?;
    let program = std::env::current_exe()?;
    let output = inside(program.to_str().context("a path")?)
        .args(["--exact", INSIDE, "--ignored", "--nocapture"])
        .output()?;
    let said = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    ensure!(output.status.success() && said[0].contains("1 passed"), "{}{}", said[0], said[1]);
    Ok(())
}

/// Packets and connections that found no way out of this network since it was made.
fn strays() -> Result<u64> {
    let text = std::fs::read_to_string("/proc/net/snmp")?;
    let mut lines = text.lines().filter(|line| line.starts_with("Ip:"));
    let (names, values) = (lines.next().context("names")?, lines.next().context("values")?);
    let place = names.split(' ').position(|name| name == "OutNoRoutes").context("a counter")?;
    Ok(values.split(' ').nth(place).context("a count")?.parse()?)
}

/// Files of a matrix with CSI 3.8.0 and 3.8.1, whose releases name no digests, so that any image can play theirs.
fn matrix(folder: &Path, key: &Publisher) -> Result<()> {
    let mut index = embedded_index()?;
    let chart = release(&mut index, false)?;
    index["version"] = 7001.into();
    let text = index.to_string();
    std::fs::create_dir_all(folder.join("charts"))?;
    std::fs::write(folder.join(CHART), chart)?;
    std::fs::write(folder.join("index.yaml.sig"), key.signature(text.as_bytes())?)?;
    std::fs::write(folder.join("index.yaml"), text)?;
    Ok(())
}

/// Gives the index the digests that its images have in a registry, as a publisher does, and signs it: an operator believes no other digests.
async fn resolve(folder: &Path, key: &Publisher, made: &TestImages, names: &[String]) -> Result<()> {
    let mut index: Value = serde_json::from_slice(&std::fs::read(folder.join("index.yaml"))?)?;
    let drivers = index["drivers"].as_object_mut().context("drivers")?;
    let versions = drivers
        .values_mut()
        .filter_map(|driver| driver["versions"].as_array_mut())
        .flatten();
    for image in versions.filter_map(|version| version["images"].as_array_mut()).flatten() {
        image["digest"] = match image["ref"]
            .as_str()
            .and_then(|reference| reference.strip_prefix("registry.k8s.io/"))
        {
            Some(name) if names.iter().any(|known| known == name) => made.digest(&format!("k8s/{name}")).await?.to_string().into(),
            _ => Value::Null,
        };
    }
    let text = index.to_string();
    std::fs::write(folder.join("index.yaml.sig"), key.signature(text.as_bytes())?)?;
    Ok(std::fs::write(folder.join("index.yaml"), text)?)
}

/// Every image that these versions can ask for, without the registry.
fn names(folder: &Path) -> Result<Vec<String>> {
    let sources = vdo_source::fetch::embedded::sources();
    let packed =
        |driver: &str, version: &str| -> Result<chart::Chart> { Ok(chart::open(&chart::package(&sources[driver], &version.parse()?)?)?) };
    let newer = chart::open(&std::fs::read(folder.join(CHART))?)?;
    let next = sources["vsphere-cpi"]
        .versions()
        .into_iter()
        .filter(|version| version.minor() == "1.35");
    let mut charts = vec![packed("vsphere-csi", "3.8.0")?, newer, packed("vsphere-cpi", "1.34.0")?];
    for version in next {
        charts.push(packed("vsphere-cpi", &version.to_string())?);
    }
    let mut names = Vec::new();
    for chart in charts {
        for wanted in references(&chart, &["1.34".into()])? {
            names.push(
                wanted
                    .source
                    .strip_prefix("registry.k8s.io/")
                    .context("another registry")?
                    .to_owned(),
            );
        }
    }
    names.sort();
    names.dedup();
    Ok(names)
}

/// The images of the drivers' pods.
async fn images(bed: &Bed) -> Result<Vec<String>> {
    let objects: Vec<Value> = bed.owned().await?.into_iter().collect();
    Ok(chart::images(&objects))
}

/// Waits until the drivers are ready; their images are those of the mirror, by digest.
async fn until_from_the_mirror(bed: &Bed, prefix: &str) -> Result<()> {
    bed.until_ready().await?;
    bed.until_reason("ImagesMirrored", "Healthy").await?;
    let all = images(bed).await?;
    let is_of_the_mirror = |image: &&String| image.starts_with(&format!("{prefix}/")) && image.contains("@sha256:");
    let others: Vec<&String> = all.iter().filter(|image| !is_of_the_mirror(image)).collect();
    ensure!(!all.is_empty() && others.is_empty(), "not from the mirror, or by tag: {others:?}");
    Ok(())
}

/// docs/air-gap.md, as it stands there, with what an administrator would see afterwards.
#[test]
#[ignore = "is run by mirror_is_all_that_a_site_without_internet_needs, in a network of its own"]
fn mirror_site_of_its_own() -> Result<()> {
    BARE.run(async |bed| {
        let folder = tempfile::tempdir()?;
        let file = |name: &str| leaked(folder.path().join(name).display().to_string());
        let key = Publisher::new()?;
        std::fs::write(file("keys.pem"), key.public())?;
        let source = folder.path().join("matrix");
        matrix(&source, &key)?;

        // What is outside: the images, in a registry with the login of crane. And the site's registry, of another kind.
        let mut public = RegistryServer::start(RegistryKind::Olareg, RegistryAuth::None).await?;
        let made = TestImages::of(&public).await?;
        let names = names(&source)?;
        for name in &names {
            made.make(&format!("k8s/{name}"), "released").await?;
        }
        resolve(&source, &key, &made, &names).await?;
        let operator = released_image();
        let (host, repository) = operator.split_once('/').context("a registry")?;
        made.make(&format!("ghcr/{repository}"), "released").await?;
        let site = RegistryServer::start(RegistryKind::Distribution, RegistryAuth::Basic).await?;
        let mirrored = TestImages::of(&site).await?;
        let login = std::fs::read_to_string(mirrored.login())?;
        let prefix = format!("{}/site/vsphere", site.host());

        // The page is not limited to a few versions; the machine trusts both registries and is logged in to the site's.
        let outside = public.host();
        let limits = "--driver csi=3.8.0..3.8.1,cpi=1.34.0";
        let pull = format!("mirror pull ./bundle {limits} --from registry.k8s.io={outside}/k8s,{host}={outside}/ghcr");
        let mut page = open(bed, "air-gap.md")?
            .instead("mirror pull ./bundle", &pull)?
            .set("VDO_MATRIX", source.display())
            .set("VDO_MATRIX_KEYS", file("keys.pem"))
            .set("SSL_CERT_FILE", file("authorities.pem"))
            .set("REGISTRY", &prefix)
            .set("VCENTER", bed.vcenter.address())
            .set("THUMBPRINT", bed.vcenter.thumbprint_sha256());
        std::fs::write(file("authorities.pem"), public.ca() + &site.ca())?;
        page.file(".docker/config.json", &login)?;
        page.file("credentials/ca.crt", &site.ca())?;
        page.file("credentials/.dockerconfigjson", &login)?;
        let credentials = leaked(page.folder().join("credentials").display().to_string());
        page.run("vdoctl mirror pull")?;
        public.stop();

        // Where there is no internet.
        let strays_before = strays()?;
        page.run("vdoctl mirror verify ./bundle")?;
        bed.flags = vec![
            ("matrix-credentials", credentials),
            ("matrix-keys", file("keys.pem")),
            ("matrix-interval", "1s"),
        ];
        let deploying = tokio::task::spawn_blocking(move || page.run("vdoctl deploy").map(|_| page));
        operate(bed).await?;
        let mut page = deploying.await??;
        until_from_the_mirror(bed, &prefix).await?;
        let deployed = bed.get("apps/v1", "Deployment", NS, "vdo-operator").await?["spec"]["template"].to_string();
        ensure!(deployed.contains(&format!("{prefix}/{repository}")), "{deployed}");

        // The same for a cluster that has VDO, and no mirror yet.
        bed.kill_operator();
        bed.merge(VDO, "VDOConfig", NS, "vdo", json!({"spec": {"images": null}})).await?;
        bed.delete("v1", "Secret", NS, "vdo-matrix").await?;
        page.run("vdoctl mirror push ./bundle \"oci://$REGISTRY\" --use")?;
        bed.start_operator().await?;
        until_from_the_mirror(bed, &prefix).await?;
        page.run("vdoctl mirror verify --cluster")?;
        page.run("vdoctl mirror prune")?;
        page.end(&[])?;

        // A tag moves in the registry, and another version of the mirror is wanted.
        let before = images(bed).await?;
        mirrored.make("site/vsphere/csi-vsphere/driver:v3.8.0", "another image").await?;
        bed.apply(&bed.config(json!({"storageProvider": {"version": "3.8.0"}, "cloudProvider": {}})))
            .await?;
        until_driver(bed, "3.8.0").await?;
        ensure!(images(bed).await? != before);
        until_from_the_mirror(bed, &prefix).await?;

        // To a version that it lacks: refused, and nothing is written.
        let mark = bed.cluster.audit().mark().await?;
        bed.apply(&bed.config(json!({"storageProvider": {"version": "3.7.2"}, "cloudProvider": {}})))
            .await?;
        until("the version to be refused", PATIENCE, async || {
            let ready = condition(&bed.get(VDO, "VDOConfig", NS, "vdo").await?, "Ready");
            let said = ready["message"].as_str().unwrap_or_default().to_owned();
            Ok(Probe::when(said.contains("is not in the mirror"), ready))
        })
        .await?;
        let writes = bed.cluster.audit().since(mark).await?.of(ACCOUNT).writes();
        let writes = writes.only(|entry| !["leases", "events", "vdoconfigs", "vspherecloudconfigs"].contains(&entry.resource.as_str()));
        ensure!(writes.is_empty(), "the refusal wrote:\n{writes}");
        let (code, out, _) = bed.vdoctl(&[
            "matrix",
            "why-not",
            "csi",
            "3.7.2",
            "--kubernetes",
            "1.34",
            "--vcenter",
            "8.0.3",
            "--matrix",
            &format!("oci://{prefix}/vdo/matrix:stable"),
            "--matrix-credentials",
            credentials,
        ])?;
        ensure!(code == 1 && out.contains("is not in the mirror"), "{out}");

        // What this cluster would need of a new mirror: what runs, the newest, and the cloud provider of the next minor.
        bed.apply(&bed.config(json!({"storageProvider": {}, "cloudProvider": {}}))).await?;
        public.restart().await?;
        let (ca, matrix) = (public.ca_file()?.display().to_string(), source.display().to_string());
        let from = format!("registry.k8s.io={outside}/k8s");
        let pull = [
            "mirror",
            "pull",
            file("another"),
            "--for-cluster",
            "--image",
            "none",
            "--dry-run",
            "-o",
        ];
        let keys = ["json", "--matrix", &matrix, "--matrix-keys", file("keys.pem")];
        let (code, would, err) = bed.vdoctl(&[&pull[..], &keys, &["--ca-file", &ca, "--from", &from]].concat())?;
        ensure!(code == 0, "{would}{err}");
        let would: Value = serde_json::from_str(would.lines().last().unwrap_or_default())?;
        ensure!(would["versions"]["vsphere-csi"] == json!(["3.8.0", "3.8.1"]), "{would}");
        let cpi = would["versions"]["vsphere-cpi"].as_array().context("versions")?;
        let next = |version: &Value| version.as_str().is_some_and(|version| version.starts_with("1.35."));
        ensure!(cpi.first() == Some(&json!("1.34.0")) && cpi.iter().any(next), "{would}");

        let strays = strays()? - strays_before;
        ensure!(strays == 0, "{strays} attempts to reach something else");
        Ok(())
    })
}
