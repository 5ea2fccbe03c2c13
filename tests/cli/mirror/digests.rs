// SPDX-License-Identifier: Apache-2.0
//! `matrix publish --resolve-digests`: what registries say of images.

use super::{Done, Site};
use anyhow::{Context as _, Result};
use serde_json::Value;

/// Asks for the digests of every version that is listed.
fn resolve(site: &Site, from: &str, more: &[&str]) -> Result<Done> {
    let from = format!("registry.example={from}");
    let line = [
        "matrix",
        "publish",
        "--resolve-digests",
        "--ca-file",
        &site.ca,
        "--images-from",
        &from,
        "-o",
        "json",
    ];
    site.run(&site.publisher.with(&[&line[..], more].concat()))
}

/// The digests of a version by the names of its images.
fn images(site: &Site, version: &str) -> Result<Vec<(String, Option<String>)>> {
    let shown = site
        .run(&["matrix", "show", "toy", version, "--matrix", &site.publisher.matrix(), "-o", "json"])?
        .good()
        .json();
    let images = shown["entry"]["images"].as_array().context("images")?;
    let text = |image: &Value, field: &str| image[field].as_str().map(str::to_owned);
    Ok(images
        .iter()
        .map(|image| (text(image, "name").unwrap_or_default(), text(image, "digest")))
        .collect())
}

#[tokio::test]
async fn resolve_writes_the_digests_that_the_registry_has_and_finds_a_tag_that_moved() -> Result<()> {
    let site = Site::start().await?;
    let source = format!("{}/src", site.source.host());
    assert!(images(&site, "1.0.0")?.iter().all(|(_, digest)| digest.is_none()));
    let found = resolve(&site, &source, &[])?.good().json();
    assert_eq!((&found["asked"], &found["written"]), (&4.into(), &6.into()), "{found}");
    let expected = [
        ("sidecar".to_owned(), Some(site.images.digest("src/sidecars/sidecar:v1").await?)),
        ("toy".to_owned(), Some(site.images.digest("src/toy:v1.0.0").await?)),
    ];
    assert_eq!(images(&site, "1.0.0")?, expected);
    site.run(&["matrix", "lint", &site.publisher.matrix()])?.good();
    let before = site.publisher.files();
    let again = resolve(&site, &source, &[])?.good().json();
    assert_eq!((&again["written"], &again["matrix"]), (&0.into(), &Value::Null), "{again}");

    site.images.make("src/toy:v1.0.0", "another one").await?;
    let moved = resolve(&site, &source, &[])?;
    assert_eq!(moved.code, 4, "{}", moved.err);
    assert!(
        moved.err.contains("registry.example/toy:v1.0.0 has the digest sha256:") && moved.err.contains("Nothing was written"),
        "{}",
        moved.err
    );
    assert_eq!(site.publisher.files(), before);
    Ok(())
}

/// What is missing is named with its reason: a platform, an image, or the registry itself.
#[tokio::test]
async fn resolve_names_what_is_missing() -> Result<()> {
    let site = Site::start().await?;
    let before = site.publisher.files();
    let source = format!("{}/src", site.source.host());
    for (from, more, said) in [
        (
            source.as_str(),
            &["--platform", "linux/s390x"][..],
            "is not available for linux/s390x; it is available for linux/amd64, linux/arm64",
        ),
        (&format!("{}/nowhere", site.source.host()), &[], "cannot be read"),
        ("127.0.0.1:1", &[], "127.0.0.1:1"),
    ] {
        let done = resolve(&site, from, more)?;
        let missing = done.json()["missing"].as_array().cloned().unwrap_or_default();
        assert_eq!((done.code, missing.len()), (1, 4), "{from}: {}{}", done.out, done.err);
        assert!(missing.iter().all(|line| line.to_string().contains(said)), "{from}: {missing:?}");
        let names_twice = |line: &&Value| {
            let words: Vec<&str> = line.as_str().unwrap_or_default().split_whitespace().collect();
            words.windows(2).any(|pair| pair[0].strip_suffix(':') == Some(pair[1]))
        };
        assert_eq!(missing.iter().find(names_twice), None, "{from}");
    }
    assert_eq!(site.publisher.files(), before, "something was written");
    Ok(())
}

/// A version is published with the digests of its images, and not while one of them is not there.
#[tokio::test]
async fn resolve_of_a_new_version_wants_all_of_its_images() -> Result<()> {
    let site = Site::start().await?;
    let package = site.publisher.toy_of(
        "1.2.0",
        &super::TOY.replace(
            "      - {name: sidecar, image: {{ release.images.sidecar.repository ~ ':' ~ release.images.sidecar.tag }}}\n",
            "",
        ),
    );
    let source = format!("registry.example={}/src", site.source.host());
    let publish = || {
        let line = [
            "matrix",
            "publish",
            &package,
            "--resolve-digests",
            "--kubernetes",
            "1.33..1.35",
            "--vsphere",
            "7.0..",
        ];
        site.run(
            &site
                .publisher
                .with(&[&line[..], &["--ca-file", &site.ca, "--images-from", &source]].concat()),
        )
    };
    let refused = publish()?;
    assert!(
        refused.code == 4 && refused.err.contains("toy:v1.2.0"),
        "{}{}",
        refused.out,
        refused.err
    );
    site.images.make("src/toy:v1.2.0", "first").await?;
    publish()?.good();
    let digest = site.images.digest("src/toy:v1.2.0").await?;
    assert_eq!(images(&site, "1.2.0")?, [("toy".to_owned(), Some(digest))]);
    Ok(())
}
