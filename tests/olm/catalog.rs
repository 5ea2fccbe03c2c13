// SPDX-License-Identifier: Apache-2.0
//! The catalog and the images that `make catalog` makes, judged by opm.
#![allow(clippy::expect_used, reason = "tests")]

use crate::common::NS;
use crate::olm_bed::{Approval, bundle, run};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::io::{Cursor, Read as _};
use std::path::Path;
use std::process::Command;
use vdo_testbed::opm;

const IMAGE: &str = "ghcr.io/vdo-project/vdo-bundle:v1";

pub fn release(args: &[&str]) -> Result<String> {
    let output = Command::new(vdo_testbed::vdo_release()?)
        .args(args)
        .env("SOURCE_DATE_EPOCH", "1700000000")
        .output()?;
    ensure!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?)
}

pub fn text(path: &Path) -> &str {
    path.to_str().expect("a path in UTF-8")
}

/// The same set of properties of an entry, but for how its manifests are held: opm renders a folder with all of them.
fn properties(entry: &Value) -> Vec<String> {
    let all = entry["properties"].as_array().into_iter().flatten();
    let mut all: Vec<String> = all
        .filter(|property| !matches!(property["type"].as_str(), Some("olm.bundle.object" | "olm.csv.metadata")))
        .map(|property| format!("{} {}", property["type"], sorted(&property["value"])))
        .collect();
    all.sort();
    all
}

fn sorted(value: &Value) -> String {
    let Value::Object(map) = value else {
        return value.to_string();
    };
    let mut all: Vec<String> = map.iter().map(|(key, value)| format!("{key}: {value}")).collect();
    all.sort();
    all.join(", ")
}

/// The catalog of our bundle, and its image.
fn pack_catalog(catalog: &Path, image: &Path) -> Result<String> {
    let bundle = format!("{IMAGE}={}", bundle().display());
    release(&[
        "catalog",
        "--bundle",
        &bundle,
        "--output",
        text(catalog),
        "--image",
        text(image),
        "--reference",
        "ghcr.io/vdo-project/vdo-catalog:v1",
    ])
}

#[test]
fn catalog_is_valid_and_says_of_the_bundle_what_opm_reads_in_it() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let (catalog, image) = (folder.path().join("catalog"), folder.path().join("image"));
    pack_catalog(&catalog, &image)?;
    opm(&["validate", text(&catalog)])?;
    let ours: Vec<Value> = vdo_api::yaml::load_all(&std::fs::read_to_string(catalog.join("vdo/catalog.yaml"))?)?;
    let ours = ours.iter().find(|one| one["schema"] == "olm.bundle").context("a bundle")?;
    let theirs: Value = serde_json::from_str(&opm(&["render", text(&bundle()), "--output", "json"])?)?;
    assert_eq!(properties(ours), properties(&theirs));
    assert_eq!((&ours["name"], &ours["package"]), (&theirs["name"], &theirs["package"]));
    assert_eq!(ours["image"], IMAGE);
    let images = |entry: &Value| {
        let all = entry["relatedImages"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|one| one["image"].to_string());
        let mut all: Vec<String> = all.filter(|image| !image.contains("vdo-bundle") && image != "\"\"").collect();
        all.sort();
        all
    };
    assert_eq!(images(ours), images(&theirs));
    Ok(())
}

/// The catalog as it is published names the bundle's image. OLM makes a Job that unpacks it; here the real opm does so, with the Job's account
/// and the files of our image.
#[test]
#[ignore = "long"]
fn catalog_as_published_installs_from_the_bundles_image() -> Result<()> {
    run(async |world| {
        let folder = tempfile::tempdir()?;
        let bundle = world.release("0.1.0", |_| ()).await?;
        let (image, catalog, content) = (
            folder.path().join("image"),
            folder.path().join("catalog"),
            folder.path().join("content"),
        );
        release(&[
            "bundle-image",
            "--bundle",
            text(&bundle),
            "--output",
            text(&image),
            "--reference",
            IMAGE,
        ])?;
        release(&[
            "catalog",
            "--bundle",
            &format!("{IMAGE}={}", bundle.display()),
            "--output",
            text(&catalog),
        ])?;
        layer(&image)?.1.unpack(&content)?;
        // OLM runs where nodes are initialised.
        world.bed.merge("v1", "Node", "", "w-1", json!({"spec": {"taints": null}})).await?;
        let catalog = std::fs::read_to_string(catalog.join("vdo/catalog.yaml"))?;
        world.olm.serve(&world.bed.cluster, &catalog).await?;
        world.apply_prerequisites().await?;
        world.group("vdo", &[NS]).await?;
        world.subscribe(Approval::Automatic).await?;
        assert_eq!(world.olm.unpack(&world.bed.cluster, &content).await?, IMAGE);
        world.until_succeeded("0.1.0").await.map(|_| ())
    })
}

#[test]
fn catalog_images_hold_the_files_and_their_labels() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let (catalog, image, bundle_image) = (
        folder.path().join("catalog"),
        folder.path().join("image"),
        folder.path().join("bundle"),
    );
    release(&[
        "bundle-image",
        "--bundle",
        text(&bundle()),
        "--output",
        text(&bundle_image),
        "--reference",
        IMAGE,
    ])?;
    pack_catalog(&catalog, &image)?;
    let (labels, files) = unpacked(&bundle_image)?;
    let annotations = vdo_api::yaml::load_value(&std::fs::read_to_string(bundle().join("metadata/annotations.yaml"))?)?;
    assert_eq!(labels, annotations["annotations"], "every annotation is a label");
    for file in [
        "manifests/vdo.clusterserviceversion.yaml",
        "metadata/annotations.yaml",
        "tests/scorecard/config.yaml",
    ] {
        ensure!(files.contains(&file.to_owned()), "{files:?}");
    }
    ensure!(!files.iter().any(|file| file.contains("prerequisites")), "{files:?}");
    let (labels, files) = unpacked(&image)?;
    assert_eq!(labels["operators.operatorframework.io.index.configs.v1"], "/configs");
    ensure!(files.contains(&"configs/vdo/catalog.yaml".to_owned()), "{files:?}");
    Ok(())
}

/// The labels of an image and the paths in its one layer.
fn unpacked(layout: &Path) -> Result<(Value, Vec<String>)> {
    let (labels, mut archive) = layer(layout)?;
    let files = archive.entries()?.map(|entry| Ok(entry?.path()?.to_string_lossy().into_owned()));
    Ok((labels, files.collect::<Result<_>>()?))
}

/// The labels of an image and its one layer.
fn layer(layout: &Path) -> Result<(Value, tar::Archive<Cursor<Vec<u8>>>)> {
    let json = |bytes: Vec<u8>| -> Result<Value> { Ok(serde_json::from_slice(&bytes)?) };
    let blob = |descriptor: &Value| -> Result<Vec<u8>> {
        let digest = descriptor["digest"].as_str().and_then(|text| text.strip_prefix("sha256:"));
        Ok(std::fs::read(layout.join("blobs/sha256").join(digest.context("a digest")?))?)
    };
    let top = json(std::fs::read(layout.join("index.json"))?)?;
    let index = json(blob(&top["manifests"][0])?)?;
    let images = index["manifests"].as_array().context("manifests")?;
    let platforms: Vec<&Value> = images.iter().map(|one| &one["platform"]["architecture"]).collect();
    assert_eq!(platforms, ["amd64", "arm64"]);
    let manifest = json(blob(&images[0])?)?;
    let config = json(blob(&manifest["config"])?)?;
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(&blob(&manifest["layers"][0])?[..]).read_to_end(&mut bytes)?;
    Ok((config["config"]["Labels"].clone(), tar::Archive::new(Cursor::new(bytes))))
}
