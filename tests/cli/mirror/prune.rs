//! What becomes of a mirror in a registry that needs less than was written there.

use super::{Site, Target};
use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use vdo_testbed::{RegistryAuth, RegistryKind, RegistryServer, TestImages};

/// The tags of a repository.
async fn tags(images: &TestImages, host: &str, repository: &str) -> Result<Vec<String>> {
    let listed = images.crane(&["ls", &format!("{host}/{repository}")]).await?;
    Ok(listed.lines().map(str::to_owned).collect())
}

#[tokio::test]
async fn prune_of_a_registry_deletes_what_only_versions_need_that_are_not_selected() -> Result<()> {
    let site = Site::start().await?;
    // Something stands where older versions of cosign put signatures.
    let signed = site.images.digest("src/toy:v1.0.0").await?.replace(':', "-");
    site.images.make(&format!("src/toy:{signed}.sig"), "a signature").await?;
    let bundle = site.path("bundle");
    site.pull(&bundle, &["--all"])?.good();
    for kind in [RegistryKind::Distribution, RegistryKind::Olareg] {
        let auth = if kind == RegistryKind::Distribution {
            RegistryAuth::Basic
        } else {
            RegistryAuth::None
        };
        let target = Target::at(RegistryServer::start(kind, auth).await?).await?;
        let (prefix, host) = (target.prefix(), target.server.host());
        let run = |verb: &str, more: &[&str]| site.run(&[&["mirror", verb, &prefix][..], &target.flags(), more].concat());
        site.run(&[&["mirror", "push", &bundle, &prefix][..], &target.flags()].concat())?
            .good();
        let repository = "site/vsphere/toy";
        target
            .images
            .crane(&["tag", &format!("{host}/{repository}:v1.0.1"), "mine"])
            .await?;
        let select = ["--driver", "toy=1.1.0", "-o", "json"];
        let would = run("prune", &[&select[..], &["--dry-run"]].concat())?.good().json();
        assert_eq!(
            tags(&target.images, &host, repository).await?.len(),
            5,
            "a dry run has deleted something"
        );
        let removed = run("prune", &select)?.good().json();
        assert_eq!(removed["removedImages"], would["removedImages"]);
        let first = site.images.digest("src/toy:v1.0.0").await?;
        assert_eq!(
            removed["removedImages"],
            json!([format!("{host}/{repository}@{first}")]),
            "{removed}"
        );
        assert!(removed["kept"].to_string().contains("the tag mine leads to it"), "{removed}");
        let mut left = tags(&target.images, &host, repository).await?;
        left.sort();
        assert_eq!(left, ["mine", "v1.0.1", "v1.1.0"], "{kind:?}");
        for name in ["toy:mine", "toy:v1.1.0", "sidecars/sidecar:v1"] {
            target
                .images
                .crane(&["validate", "--remote", &format!("{host}/site/vsphere/{name}")])
                .await?;
        }
        let verified = run("verify", &["-o", "json"])?.good().json();
        assert_eq!((&verified["versions"], &verified["images"]), (&json!(["toy 1.1.0"]), &json!(2)));
        assert_eq!(tags(&target.images, &host, "site/vsphere/vdo/matrix").await?, ["stable"]);
        let again = run("prune", &["-o", "json"])?.good().json();
        assert_eq!(again["removedImages"], json!([]), "{again}");
    }
    Ok(())
}

#[tokio::test]
async fn prune_of_a_registry_deletes_what_earlier_pushes_have_left_once_the_registry_lets_it() -> Result<()> {
    let site = Site::start().await?;
    let mut target = Target::start().await?;
    let (prefix, host) = (target.prefix(), target.server.host());
    let flags = [target.ca.clone(), target.login.clone()];
    let flags = ["--ca-file", &flags[0], "--registry-config", &flags[1]];
    let parts = async |name: &str| -> Result<Vec<String>> {
        let list = target.images.crane(&["manifest", &format!("{host}/site/vsphere/{name}")]).await?;
        let list: Value = serde_json::from_str(&list)?;
        let entries = list["manifests"].as_array().context("manifests")?.iter();
        Ok(entries.filter_map(|entry| Some(entry["digest"].as_str()?.to_owned())).collect())
    };
    let push = |bundle: &str, version: &str| -> Result<()> {
        let bundle = site.path(bundle);
        site.pull(&bundle, &["--driver", version])?.good();
        site.run(&[&["mirror", "push", &bundle, &prefix][..], &flags].concat())?.good();
        Ok(())
    };
    push("one", "toy=1.0.0")?;
    let below = parts("toy:v1.0.0").await?;
    push("two", "toy=1.1.0")?;
    target.server.allow_deletion(false).await?;
    let prune = |more: &[&str]| site.run(&[&["mirror", "prune", &prefix][..], &flags, more].concat());
    let refused = prune(&[])?;
    assert_eq!(refused.code, 4, "{}", refused.out);
    assert!(
        refused.err.contains("does not delete manifests") && refused.err.contains("storage.delete.enabled"),
        "{}",
        refused.err
    );
    let would = prune(&["--dry-run"])?.good();
    assert!(would.out.contains(&format!("{host}/site/vsphere/toy@sha256:")), "{}", would.out);
    target.server.allow_deletion(true).await?;
    let pruned = prune(&[])?.good();
    assert!(pruned.out.contains("removed: 1 image"), "{}", pruned.out);
    assert_eq!(tags(&target.images, &host, "site/vsphere/toy").await?, ["v1.1.0"]);
    // The manifests of its platforms as well, though no tag leads to them.
    for digest in below {
        let found = target
            .images
            .crane(&["manifest", &format!("{host}/site/vsphere/toy@{digest}")])
            .await;
        assert!(found.is_err(), "{digest} is still there");
    }
    assert_eq!(tags(&target.images, &host, "site/vsphere/vdo/matrix").await?, ["stable"]);
    site.run(&[&["mirror", "verify", &prefix][..], &flags].concat())?.good();
    Ok(())
}
