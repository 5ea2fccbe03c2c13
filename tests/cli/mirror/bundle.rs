// SPDX-License-Identifier: Apache-2.0
//! What a bundle holds, and what becomes of it.

use super::{Site, VERSIONS};
use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use vdo_testbed::{RegistryAuth, RegistryKind, RegistryServer};

/// Every blob of a bundle.
fn blobs(bundle: &str) -> Result<BTreeMap<String, PathBuf>> {
    let entries = fs::read_dir(Path::new(bundle).join("blobs/sha256"))?;
    let named = entries.map(|entry| {
        let path = entry?.path();
        Ok((path.file_name().context("a name")?.to_string_lossy().into_owned(), path))
    });
    named.collect()
}

/// What everything in the bundle belongs to: the digests below each name.
fn below(bundle: &str) -> Result<BTreeMap<String, Vec<String>>> {
    let read = |path: PathBuf| -> Result<Value> { Ok(serde_json::from_slice(&fs::read(path)?)?) };
    let digests = |value: &Value| -> Vec<String> {
        let parts = ["manifests", "layers"].iter().filter_map(|key| value[key].as_array()).flatten();
        let all = parts.chain(value.get("config"));
        all.filter_map(|part| Some(part["digest"].as_str()?.trim_start_matches("sha256:").to_owned()))
            .collect()
    };
    let mut found = BTreeMap::new();
    for entry in read(Path::new(bundle).join("index.json"))?["manifests"]
        .as_array()
        .context("manifests")?
    {
        let name = entry["annotations"]["org.opencontainers.image.ref.name"]
            .as_str()
            .context("a name")?
            .to_owned();
        let mut open = vec![
            entry["digest"]
                .as_str()
                .context("a digest")?
                .trim_start_matches("sha256:")
                .to_owned(),
        ];
        let mut all = Vec::new();
        while let Some(digest) = open.pop() {
            if let Ok(document) = read(Path::new(bundle).join("blobs/sha256").join(&digest)) {
                open.extend(digests(&document));
            }
            all.push(digest);
        }
        found.insert(name, all);
    }
    Ok(found)
}

#[tokio::test]
async fn bundle_with_any_blob_missing_cut_or_changed_names_exactly_the_versions_that_need_it() -> Result<()> {
    let site = Site::start().await?;
    let archive = b"an archive of vdoctl";
    super::archive(&site.publisher.matrix(), archive)?;
    let sums = fs::read(Path::new(&site.publisher.matrix()).join("SHA256SUMS"))?;
    let bundle = site.path("bundle");
    site.pull(&bundle, &["--all"])?.good();
    let below = below(&bundle)?;
    let matrix = &below["vdo/matrix:stable"];
    let verify = ["mirror", "verify", &bundle, "--matrix-keys", &site.publisher.public(), "-o", "json"];
    for (place, (name, path)) in blobs(&bundle)?.into_iter().enumerate() {
        let good = fs::read(&path)?;
        let needs = |image: &str| below[image].contains(&name);
        let mut expected: Vec<String> = VERSIONS
            .iter()
            .filter(|version| needs(&format!("registry.example/toy:v{version}")) || needs("registry.example/sidecars/sidecar:v1"))
            .map(|version| format!("toy {version}"))
            .collect();
        if matrix.contains(&name) {
            // A chart is of one version, everything else of all.
            let chart = VERSIONS.iter().find(|version| {
                let package = vdo_core::chart::open(&good);
                package.is_ok_and(|chart| chart.metadata.version.to_string() == **version)
            });
            let of_all = if good == archive || good == sums {
                Vec::new()
            } else {
                vec!["all".into()]
            };
            expected = chart.map_or(of_all, |version| vec![format!("toy {version}")]);
        }
        // Each in one way: there are enough of them.
        let (what, damaged) = match place % 3 {
            0 => ("missing", None),
            1 => ("cut", Some(good[..good.len() - 1].to_vec())),
            _ => {
                let mut bytes = good.clone();
                bytes[good.len() / 2] ^= 1;
                ("changed", Some(bytes))
            }
        };
        match damaged {
            Some(bytes) => fs::write(&path, bytes)?,
            None => fs::remove_file(&path)?,
        }
        let found = site.run(&verify)?;
        // What lacks something is not pushed; no registry is asked.
        let pushed = (what == "missing")
            .then(|| site.run(&["mirror", "push", &bundle, "oci://127.0.0.1:1/x"]))
            .transpose()?;
        fs::write(&path, &good)?;
        if let Some(pushed) = pushed {
            assert_eq!(pushed.code, 4, "{}{}", pushed.out, pushed.err);
            assert!(!pushed.err.contains("127.0.0.1"), "{name}: {}", pushed.err);
        }
        assert_eq!(found.code, 1, "{what} {name}: {}{}", found.out, found.err);
        let faults = found.json()["faults"].clone();
        let mut named: Vec<String> = faults
            .as_array()
            .context("faults")?
            .iter()
            .flat_map(|fault| fault["versions"].as_array().into_iter().flatten())
            .filter_map(|version| Some(version.as_str()?.to_owned()))
            .collect();
        named.sort();
        named.dedup();
        assert_eq!(named, expected, "{what} {name}: {faults}");
    }
    site.run(&verify)?.good();
    // A pull replaces what is damaged: of each way, whatever it is.
    for (place, (name, path)) in blobs(&bundle)?.into_iter().enumerate() {
        let mut bytes = fs::read(&path)?;
        match place % 3 {
            0 => fs::remove_file(&path)?,
            1 => fs::write(&path, &bytes[1..])?,
            _ => {
                bytes[0] ^= 1;
                fs::write(&path, bytes).with_context(|| name)?;
            }
        }
    }
    assert_eq!(site.run(&verify)?.code, 1);
    site.pull(&bundle, &["--all"])?.good();
    site.run(&verify)?.good();
    Ok(())
}

#[tokio::test]
async fn bundle_pulled_again_asks_once_for_each_tag_and_reports_a_tag_that_moved() -> Result<()> {
    let mut site = Site::start().await?;
    // This one logs what it is asked.
    let source = RegistryServer::start(RegistryKind::Distribution, RegistryAuth::None).await?;
    let images = vdo_testbed::TestImages::of(&source).await?;
    for name in ["toy:v1.0.0", "toy:v1.0.1", "toy:v1.1.0", "sidecars/sidecar:v1"] {
        images.make(&format!("src/{name}"), "first").await?;
    }
    site.ca = source.ca_file()?.display().to_string();
    (site.source, site.images) = (source, images);
    let bundle = site.path("bundle");
    let asked = |log: &str| {
        log.lines()
            .filter(|line| line.starts_with("127.0.0.1") && line.contains("\"vdo/"))
            .count()
    };
    let first = site.pull(&bundle, &["--all", "-o", "json"])?.good().json();
    assert_eq!(first["moved"], json!([]));
    let before = asked(&site.source.log());
    assert!(before > 4, "{before} requests");
    let again = site.pull(&bundle, &["--all", "-o", "json"])?.good().json();
    assert_eq!(again["fetchedBytes"], 0);
    assert_eq!(asked(&site.source.log()) - before, 4, "one request for each tag");

    let (old, new) = (
        site.images.digest("src/toy:v1.0.1").await?,
        site.images.make("src/toy:v1.0.1", "second").await?,
    );
    let moved = site.pull(&bundle, &["--all", "-o", "json"])?.good().json();
    assert_eq!(
        moved["moved"],
        json!([{"reference": "registry.example/toy:v1.0.1", "before": old, "now": new}])
    );
    let plain = site.pull(&bundle, &["--all"])?.good();
    assert!(!plain.out.contains("refers to another"), "it is reported once: {}", plain.out);
    site.run(&["mirror", "verify", &bundle])?.good();
    // What is half there is not fetched from its start, from a real registry either.
    let (name, path) = blobs(&bundle)?
        .into_iter()
        .max_by_key(|(_, path)| fs::metadata(path).map(|found| found.len()).unwrap_or_default())
        .context("a layer")?;
    let layer = fs::read(&path)?;
    fs::write(Path::new(&bundle).join(format!(".{name}.partial")), &layer[..layer.len() / 2])?;
    fs::remove_file(&path)?;
    site.pull(&bundle, &["--all"])?.good();
    assert_eq!(fs::read(&path)?, layer);
    let log = site.source.log();
    let is_of_layer = |line: &&str| line.starts_with("127.0.0.1") && line.contains(&format!("blobs/sha256:{name} "));
    let of_layer = log.lines().rfind(is_of_layer).context("a request")?;
    assert!(of_layer.contains(" 206 "), "{of_layer}");
    // Blobs of the first image are still there, until they are pruned.
    let pruned = site.run(&["mirror", "prune", &bundle, "-o", "json"])?.good().json();
    assert!(pruned["removedBlobs"].as_u64() > Some(3), "{pruned}");
    site.run(&["mirror", "verify", &bundle])?.good();
    Ok(())
}

#[tokio::test]
async fn bundle_pruned_to_fewer_versions_has_only_these_and_stays_complete() -> Result<()> {
    let site = Site::start().await?;
    let bundle = site.path("bundle");
    // Something stands where older versions of cosign put signatures.
    let mut signatures = Vec::new();
    for version in ["1.0.0", "1.1.0"] {
        let digest = site.images.digest(&format!("src/toy:v{version}")).await?;
        let tag = format!("toy:{}.sig", digest.replace(':', "-"));
        site.images.make(&format!("src/{tag}"), version).await?;
        signatures.push(format!("registry.example/{tag}"));
    }
    site.pull(&bundle, &["--all"])?.good();
    let all = blobs(&bundle)?.len();
    let would = site
        .run(&["mirror", "prune", &bundle, "--driver", "toy=1.1.0", "--dry-run", "-o", "json"])?
        .good()
        .json();
    assert!(would["removedBlobs"].as_u64() > Some(5), "{would}");
    assert_eq!(blobs(&bundle)?.len(), all, "a dry run has removed something");
    site.run(&["mirror", "prune", &bundle, "--driver", "toy=1.1.0"])?.good();
    let verified = site.run(&["mirror", "verify", &bundle, "-o", "json"])?.good().json();
    assert_eq!((&verified["versions"], &verified["images"]), (&json!(["toy 1.1.0"]), &json!(2)));
    assert!(blobs(&bundle)?.len() < all - 5);
    let names: Vec<String> = below(&bundle)?.into_keys().filter(|name| name.ends_with(".sig")).collect();
    assert_eq!(names, signatures[1..], "the signature of the image that stays");
    let refused = site.run(&["mirror", "prune", &bundle, "--driver", "toy=1.0.0"])?;
    assert_eq!(refused.code, 2, "{}{}", refused.out, refused.err);
    Ok(())
}

#[tokio::test]
async fn bundle_as_a_tar_is_pulled_pulled_again_verified_and_pushed() -> Result<()> {
    let site = Site::start().await?;
    let target = RegistryServer::start(RegistryKind::Olareg, RegistryAuth::None).await?;
    let ca = target.ca_file()?.display().to_string();
    let bundle = site.path("bundle.tar");
    site.pull(&bundle, &["--driver", "toy=1.0.0"])?.good();
    let first = fs::metadata(&bundle)?.len();
    site.run(&["mirror", "verify", &bundle])?.good();
    // A tag moves, and the registry loses a layer that the archive has.
    site.images.make("src/toy:v1.0.0", "second").await?;
    let at = |name: &str| format!("{}/src/toy{name}", site.source.host());
    let read = async |name: String| -> Result<Value> { Ok(serde_json::from_str(&site.images.crane(&["manifest", &name]).await?)?) };
    let list = read(at(":v1.0.0")).await?;
    let part = read(at(&format!("@{}", list["manifests"][0]["digest"].as_str().context("a digest")?))).await?;
    let shared = part["layers"][0]["digest"]
        .as_str()
        .context("a digest")?
        .trim_start_matches("sha256:");
    let (layer, hidden) = (site.source.blob("src/toy", shared)?, site.path("hidden"));
    fs::rename(&layer, &hidden)?;
    site.pull(&bundle, &["--driver", "toy=1.0.0"])?.good();
    fs::rename(&hidden, &layer)?;
    site.pull(&bundle, &["--all"])?.good();
    assert!(fs::metadata(&bundle)?.len() > first);
    let left: Vec<String> = fs::read_dir(site.home.path())?
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect::<Result<_>>()?;
    assert_eq!(left.iter().filter(|name| name.contains("bundle")).count(), 1, "{left:?}");
    let to = format!("oci://{}", target.host());
    site.run(&["mirror", "push", &bundle, &to, "--ca-file", &ca])?.good();
    let verified = site.run(&["mirror", "verify", &to, "--ca-file", &ca])?.good();
    assert!(verified.out.contains("3 versions, 4 images: complete"), "{}", verified.out);

    // An archive that ends too early, and ones that name what is outside.
    let whole = fs::read(&bundle)?;
    fs::write(&bundle, &whole[..whole.len() * 2 / 3])?;
    let cut = site.run(&["mirror", "verify", &bundle])?;
    assert_eq!(cut.code, 4);
    assert!(cut.err.contains("cannot be used"), "{}", cut.err);
    for name in ["../oci-layout", "/oci-layout", "blobs/../../oci-layout"] {
        let mut archive = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_gnu();
        header.set_size(3);
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_cksum();
        archive.append(&header, &b"abc"[..])?;
        fs::write(&bundle, archive.into_inner()?)?;
        let refused = site.run(&["mirror", "verify", &bundle])?;
        assert_eq!(refused.code, 4, "{name}");
        assert!(refused.err.contains("outside"), "{name}: {}", refused.err);
    }
    Ok(())
}

#[tokio::test]
async fn bundle_that_another_vdoctl_writes_is_left_alone() -> Result<()> {
    let site = Site::start().await?;
    let bundle = site.path("bundle");
    site.pull(&bundle, &["--all"])?.good();
    let turn = fs::File::open(&bundle)?;
    turn.try_lock()?;
    let refused = site.run(&["mirror", "prune", &bundle])?;
    assert_eq!(refused.code, 4);
    assert!(refused.err.contains("another vdoctl process is writing into"), "{}", refused.err);
    let refused = site.pull(&bundle, &["--all"])?;
    assert_eq!(refused.code, 4, "{}", refused.out);
    assert!(refused.err.contains("another vdoctl process is writing into"), "{}", refused.err);
    drop(turn);
    site.pull(&bundle, &["--all"])?.good();
    Ok(())
}
