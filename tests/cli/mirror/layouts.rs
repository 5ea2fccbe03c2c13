// SPDX-License-Identifier: Apache-2.0
//! Layouts of other tools, and ours in their hands.

use super::{Site, Target};
use anyhow::{Context as _, Result};
use serde_json::Value;
use std::path::Path;
use vdo_testbed::{oras, run};

#[tokio::test]
async fn layout_of_crane_is_pushed_and_ours_is_read_by_oras() -> Result<()> {
    let site = Site::start().await?;
    let target = Target::start().await?;
    let layout = site.images.folder().join("lay");
    let layout = layout.display().to_string();
    let from = format!("{}/src/toy:v1.0.0", site.source.host());
    site.images.crane(&["pull", "--format", "oci", &from, &layout]).await?;
    let to = format!("oci://{}/from/crane:v1", target.server.host());
    let push = |layout: &str, to: &str| site.run(&[&["mirror", "push", layout, to][..], &target.flags()].concat());
    push(&layout, &to)?.good();
    assert_eq!(
        target.images.digest("from/crane:v1").await?,
        site.images.digest("src/toy:v1.0.0").await?
    );
    let unnamed = push(&layout, &format!("oci://{}/from/crane", target.server.host()))?;
    assert_eq!(unnamed.code, 2, "{}", unnamed.err);
    assert!(unnamed.err.contains("has no name"), "{}", unnamed.err);

    // oras copies an image out of our bundle.
    let bundle = site.path("bundle");
    site.pull(&bundle, &["--driver", "toy=1.0.0"])?.good();
    let oras = oras().await?;
    let copied = format!("{}/from/oras:v1", target.server.host());
    // oras takes the part behind the last colon for the tag, so it is given the digest.
    let digest = site.images.digest("src/toy:v1.0.0").await?;
    let source = format!("{bundle}@{digest}");
    let arguments = [
        "copy",
        "--from-oci-layout",
        &source,
        "--to-ca-file",
        &target.ca,
        "--to-registry-config",
        &target.login,
        &copied,
    ];
    run(&oras, site.home.path(), &arguments).await?;
    assert_eq!(target.images.digest("from/oras:v1").await?, digest);
    target.images.crane(&["validate", "--remote", &copied]).await?;
    Ok(())
}

#[tokio::test]
async fn layout_with_referrers_keeps_them_in_either_kind_of_registry() -> Result<()> {
    let site = Site::start().await?;
    let target = Target::start().await?;
    let oras = oras().await?;
    std::fs::write(site.home.path().join("sbom.txt"), "what is in it")?;
    let image = format!("{}/src/toy:v1.0.0", site.source.host());
    let attach = [
        "attach",
        "--ca-file",
        &site.ca,
        "--artifact-type",
        "example/sbom",
        &image,
        "sbom.txt:text/plain",
    ];
    run(&oras, site.home.path(), &attach).await?;
    let bundle = site.path("bundle");
    site.pull(&bundle, &["--driver", "toy=1.0.0"])?.good();
    site.run(&["mirror", "verify", &bundle])?.good();
    site.run(&[&["mirror", "push", &bundle, &target.prefix()][..], &target.flags()].concat())?
        .good();
    let at = format!("{}/site/vsphere/toy:v1.0.0", target.server.host());
    let discover = [
        "discover",
        "--ca-file",
        &target.ca,
        "--registry-config",
        &target.login,
        "-o",
        "json",
        &at,
    ];
    let found = run(&oras, site.home.path(), &discover).await?;
    assert!(found.contains("example/sbom"), "{found}");
    Ok(())
}

/// A folder with the authority of a registry, as skopeo wants it.
fn authority(site: &Site, name: &str, pem: &str) -> Result<String> {
    let folder = site.path(name);
    std::fs::create_dir(&folder)?;
    std::fs::write(Path::new(&folder).join("ca.crt"), pem)?;
    Ok(folder)
}

#[tokio::test]
#[ignore = "needs skopeo"]
async fn layout_of_skopeo_is_pushed_and_ours_is_read_by_skopeo() -> Result<()> {
    let site = Site::start().await?;
    let target = Target::start().await?;
    let (theirs, ours) = (
        authority(&site, "theirs", &site.source.ca())?,
        authority(&site, "ours", &target.server.ca())?,
    );
    let skopeo = async |arguments: &[&str]| {
        let policy = ["--insecure-policy"];
        run(Path::new("skopeo"), site.home.path(), &[&policy[..], arguments].concat()).await
    };
    // skopeo may write the list of platforms in a form of its own; their manifests stay what they are.
    let parts = |list: &[u8]| -> Result<Vec<Value>> {
        let list: Value = serde_json::from_slice(list)?;
        let entries = list["manifests"].as_array().context("manifests")?.iter();
        Ok(entries.map(|entry| entry["digest"].clone()).collect())
    };
    let pushed = async |name: &str| {
        target
            .images
            .crane(&["manifest", &format!("{}/{name}", target.server.host())])
            .await
    };
    let from = format!("{}/src/toy:v1.0.0", site.source.host());
    let theirs_parts = parts(site.images.crane(&["manifest", &from]).await?.as_bytes())?;
    assert_eq!(theirs_parts.len(), 2);

    // What skopeo writes: an image under a tag, and one without a name.
    let push = |layout: &str, to: &str| site.run(&[&["mirror", "push", layout, to][..], &target.flags()].concat());
    let from = format!("docker://{from}");
    let copy = ["copy", "--all", "--src-cert-dir", &theirs, &from];
    for (layout, name, to, tag) in [("named", ":v7", "from/skopeo", "v7"), ("unnamed", "", "from/skopeo:v8", "v8")] {
        let layout = site.path(layout);
        skopeo(&[&copy[..], &[&format!("oci:{layout}{name}")]].concat()).await?;
        push(&layout, &format!("oci://{}/{to}", target.server.host()))?.good();
        let written = parts(&std::fs::read(Path::new(&layout).join("index.json"))?)?;
        let name = format!("from/skopeo:{tag}");
        assert_eq!(written, [Value::from(target.images.digest(&name).await?)]);
        assert_eq!(parts(pushed(&name).await?.as_bytes())?, theirs_parts);
    }

    // What skopeo reads: our bundle, and what we have pushed of it.
    let bundle = site.path("bundle");
    site.pull(&bundle, &["--driver", "toy=1.0.0"])?.good();
    push(&bundle, &target.prefix())?.good();
    let again = format!("docker://{}/from/bundle:v1", target.server.host());
    let access = ["--dest-cert-dir", &ours, "--dest-authfile", &target.login];
    let bundled = format!("oci:{bundle}:registry.example/toy:v1.0.0");
    skopeo(&[&["copy", "--all"][..], &access, &[&bundled, &again]].concat()).await?;
    assert_eq!(parts(pushed("from/bundle:v1").await?.as_bytes())?, theirs_parts);
    let mirrored = format!("docker://{}/site/vsphere/toy:v1.0.0", target.server.host());
    let inspect = ["inspect", "--raw", "--cert-dir", &ours, "--authfile", &target.login, &mirrored];
    assert_eq!(parts(skopeo(&inspect).await?.as_bytes())?, theirs_parts);
    Ok(())
}
