//! A site without internet: an empty cluster, its vCenter and a mirror in a network that leads nowhere else.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "tests")]

use crate::common::{Bed, OPERATOR as ACCOUNT, PATIENCE, condition};
use crate::fixture::EMPTY;
use crate::matrix_source::{Publisher, embedded_index};
use crate::matrix_web::{CHART, leaked, release, until_driver};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use vdo::chart;
use vdo::mirror::references;
use vdo_testbed::{Binaries, Part, Probe, RegistryAuth, RegistryKind, RegistryServer, TestImages, until};

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

/// Files of a matrix with CSI 3.7.3 and 3.7.4, whose releases name no digests, so that any image can play theirs.
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

/// Every image that these versions can ask for, without the registry.
fn names(folder: &Path) -> Result<Vec<String>> {
    let sources = vdo::fetch::embedded::sources();
    let packed =
        |driver: &str, version: &str| -> Result<chart::Chart> { Ok(chart::open(&chart::package(&sources[driver], &version.parse()?)?)?) };
    let newer = chart::open(&std::fs::read(folder.join(CHART))?)?;
    let next = sources["vsphere-cpi"]
        .versions()
        .into_iter()
        .filter(|version| version.minor() == "1.35");
    let mut charts = vec![packed("vsphere-csi", "3.7.3")?, newer, packed("vsphere-cpi", "1.34.0")?];
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

fn good(bed: &Bed, arguments: &[&str]) -> Result<String> {
    let (code, out, err) = bed.vdoctl(arguments)?;
    ensure!(code == 0, "vdoctl {arguments:?}: {out}{err}");
    Ok(out)
}

/// The images of the drivers' pods.
async fn images(bed: &Bed) -> Result<Vec<String>> {
    let objects: Vec<Value> = bed.owned().await?.into_iter().collect();
    Ok(chart::images(&objects))
}

#[test]
#[ignore = "is run by mirror_is_all_that_a_site_without_internet_needs, in a network of its own"]
fn mirror_site_of_its_own() -> Result<()> {
    EMPTY.run(async |bed| {
        let folder = tempfile::tempdir()?;
        let file = |name: &str| leaked(folder.path().join(name).display().to_string());
        let key = Publisher::new()?;
        std::fs::write(file("keys.pem"), key.public())?;
        let source = folder.path().join("matrix");
        matrix(&source, &key)?;

        // Where there is internet: the images are in a registry with the login of crane.
        let mut public = RegistryServer::start(RegistryKind::Olareg, RegistryAuth::None).await?;
        let made = TestImages::of(&public).await?;
        for name in names(&source)? {
            made.make(&format!("k8s/{name}"), "released").await?;
        }
        let bundle = file("bundle");
        let ca = public.ca_file()?.display().to_string();
        let from = format!("registry.k8s.io={}/k8s", public.host());
        let matrix = source.display().to_string();
        let pull = [
            "mirror",
            "pull",
            bundle,
            "--driver",
            "csi=3.7.3..3.7.4,cpi=1.34.0",
            "--image",
            "none",
        ];
        let keys = ["--matrix", &matrix, "--matrix-keys", file("keys.pem")];
        good(bed, &[&pull[..], &keys, &["--ca-file", &ca, "--from", &from]].concat())?;
        public.stop();

        // Where there is none: a registry of the site, of another kind.
        let site = RegistryServer::start(RegistryKind::Distribution, RegistryAuth::Basic).await?;
        let mirrored = TestImages::of(&site).await?;
        let (ca, login) = (site.ca_file()?.display().to_string(), mirrored.login().display().to_string());
        let access = ["--ca-file", &ca, "--registry-config", &login];
        let prefix = format!("{}/site/vsphere", site.host());
        let place = format!("oci://{prefix}");
        let strays_before = strays()?;
        good(bed, &["mirror", "verify", bundle, "--matrix-keys", file("keys.pem")])?;
        good(bed, &[&["mirror", "push", bundle, &place][..], &access].concat())?;
        good(
            bed,
            &[&["mirror", "verify", &place, "--matrix-keys", file("keys.pem")][..], &access].concat(),
        )?;

        std::fs::create_dir(file("credentials"))?;
        std::fs::write(file("credentials/ca.crt"), site.ca())?;
        std::fs::copy(&login, file("credentials/.dockerconfigjson"))?;
        bed.flags = vec![
            ("matrix-credentials", file("credentials")),
            ("matrix-keys", file("keys.pem")),
            ("matrix-interval", "1s"),
        ];
        bed.apply_samples().await?;
        bed.apply(&bed.config(json!({"storageProvider": {"version": "3.7.3"}, "cloudProvider": {}})))
            .await?;
        let used = good(bed, &[&["mirror", "push", bundle, &place, "--use"][..], &access].concat())?;
        ensure!(used.contains("spec.images.registry is"), "{used}");
        bed.start_operator().await?;
        bed.until_ready().await?;
        until_driver(bed, "3.7.3").await?;
        bed.until_reason("ImagesMirrored", "Healthy").await?;
        let strangers: Vec<String> = images(bed).await?;
        let strangers: Vec<&String> = strangers
            .iter()
            .filter(|image| !image.starts_with(&format!("{prefix}/")) || !image.contains("@sha256:"))
            .collect();
        ensure!(strangers.is_empty(), "not from the mirror, or by tag: {strangers:?}");
        good(bed, &[&["mirror", "verify", "--cluster"][..], &access].concat())?;

        // A tag moves in the registry.
        let before = images(bed).await?;
        mirrored.make("site/vsphere/csi-vsphere/driver:v3.7.3", "another image").await?;

        // Up within the mirror.
        bed.apply(&bed.config(json!({"updatePolicy": "Latest", "storageProvider": {}, "cloudProvider": {}})))
            .await?;
        until_driver(bed, "3.7.4").await?;
        ensure!(images(bed).await? != before);

        // To a version that it lacks: refused, and nothing is written.
        let mark = bed.cluster.audit().mark().await?;
        bed.apply(&bed.config(json!({"storageProvider": {"version": "3.7.2"}, "cloudProvider": {}})))
            .await?;
        until("the version to be refused", PATIENCE, async || {
            let ready = condition(
                &bed.get("vdo.vmware.com/v1alpha1", "VDOConfig", crate::common::NS, "vdo").await?,
                "Ready",
            );
            let said = ready["message"].as_str().unwrap_or_default().to_owned();
            Ok(Probe::when(
                said.contains("3.7.2 is not in the mirror") || said.contains("is not in the mirror"),
                ready,
            ))
        })
        .await?;
        let writes = bed.cluster.audit().since(mark).await?.of(ACCOUNT).writes();
        let writes = writes.only(|entry| entry.resource != "leases" && entry.resource != "events" && entry.resource != "vdoconfigs");
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
            &format!("{place}/vdo/matrix:stable"),
            "--matrix-credentials",
            file("credentials"),
        ])?;
        ensure!(code == 1 && out.contains("is not in the mirror"), "{out}");

        // What this cluster would need of a new mirror: what runs, and the cloud provider of the next minor.
        bed.apply(&bed.config(json!({"storageProvider": {}, "cloudProvider": {}}))).await?;
        public.restart().await?;
        let ca = public.ca_file()?.display().to_string();
        let pull = [
            "mirror",
            "pull",
            file("another"),
            "--for-cluster",
            "--image",
            "none",
            "--dry-run",
            "-o",
            "json",
        ];
        let would = good(bed, &[&pull[..], &keys, &["--ca-file", &ca, "--from", &from]].concat())?;
        let would: Value = serde_json::from_str(would.lines().last().unwrap_or_default())?;
        ensure!(would["versions"]["vsphere-csi"] == json!(["3.7.4"]), "{would}");
        let cpi = would["versions"]["vsphere-cpi"].as_array().context("versions")?;
        let next = |version: &Value| version.as_str().is_some_and(|version| version.starts_with("1.35."));
        ensure!(cpi.first() == Some(&json!("1.34.0")) && cpi.iter().any(next), "{would}");

        let strays = strays()? - strays_before;
        ensure!(strays == 0, "{strays} attempts to reach something else");
        Ok(())
    })
}
