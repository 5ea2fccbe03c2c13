//! Layouts of other tools, and ours in their hands.

use super::{Site, Target};
use anyhow::Result;
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
