// SPDX-License-Identifier: Apache-2.0
//! Which versions are taken, and what is said when there are none.

use super::Site;
use anyhow::{Context as _, Result};
use serde_json::json;

#[tokio::test]
async fn selection_of_platforms_keeps_a_digest_of_its_own_and_reports_it() -> Result<()> {
    let site = Site::start().await?;
    let bundle = site.path("bundle");
    let one = site
        .pull(&bundle, &["--driver", "toy=1.0.0", "--platform", "linux/arm64", "-o", "json"])?
        .good()
        .json();
    let all = site
        .pull(&site.path("all"), &["--driver", "toy=1.0.0", "-o", "json"])?
        .good()
        .json();
    assert!(one["bytes"].as_u64() < all["bytes"].as_u64());
    let digest = |json: &serde_json::Value| json["images"][1]["digest"].as_str().map(str::to_owned);
    assert_ne!(digest(&one), digest(&all));
    assert_eq!(digest(&all), Some(site.images.digest("src/toy:v1.0.0").await?));
    // Publishers may sign the manifest for a platform, too.
    let signature = digest(&one).context("a digest")?.replace(':', "-");
    site.images.make(&format!("src/toy:{signature}.sig"), "a signature").await?;
    let signed = site.path("signed");
    site.pull(&signed, &["--driver", "toy=1.0.0", "--platform", "linux/arm64"])?.good();
    let index = std::fs::read_to_string(std::path::Path::new(&signed).join("index.json"))?;
    assert!(index.contains(&format!("registry.example/toy:{signature}.sig")), "{index}");
    site.run(&["mirror", "verify", &bundle])?.good();
    let none = site.pull(&bundle, &["--driver", "toy=1.0.0", "--platform", "linux/s390x"])?;
    assert_eq!(none.code, 4, "{}", none.err);
    assert!(
        none.err
            .contains("is not available for linux/s390x; it is available for linux/amd64, linux/arm64"),
        "{}",
        none.err
    );
    site.run(&["mirror", "verify", &bundle])?.good();
    Ok(())
}

#[tokio::test]
async fn selection_that_names_nothing_says_what_there_is() -> Result<()> {
    let site = Site::start().await?;
    let bundle = site.path("bundle");
    for (flags, code, said) in [
        (&[][..], 2, "no driver version is selected"),
        (&["--driver", "toy=2.*"], 2, "the matrix has 1.1.0, 1.0.1, 1.0.0"),
        (&["--driver", "tyo"], 3, "Did you mean toy?"),
        (&["--kubernetes", "1.20"], 2, "none of the 3 versions"),
        (&["--driver", "toy=a.b"], 2, "does not select versions of a driver"),
        (&["--all", "--platform", "amd64"], 2, "is not a platform"),
        (&["--all", "--from", "registry.example"], 2, "does not replace a registry"),
    ] {
        let refused = site.pull(&bundle, flags)?;
        assert_eq!(refused.code, code, "{flags:?}: {}", refused.err);
        assert!(refused.err.contains(said), "{flags:?}: {}", refused.err);
    }
    assert!(!std::path::Path::new(&bundle).exists(), "something was written");
    Ok(())
}

#[tokio::test]
async fn selection_dry_run_lists_images_and_sizes_and_writes_nothing() -> Result<()> {
    let site = Site::start().await?;
    let bundle = site.path("bundle");
    let shown = site.pull(&bundle, &["--all", "--dry-run"])?.good();
    for words in [
        "IMAGE",
        "registry.example/sidecars/sidecar:v1",
        "KiB",
        "would be pulled: 4 images in",
    ] {
        assert!(shown.out.contains(words), "{words}: {}", shown.out);
    }
    assert!(!std::path::Path::new(&bundle).exists(), "a dry run has written");
    let data = site.pull(&bundle, &["--all", "--dry-run", "-o", "json"])?.good().json();
    assert_eq!((&data["dryRun"], &data["kind"]), (&json!(true), &json!("MirrorPull")));
    Ok(())
}

/// On a terminal of 80 columns each image is one row, with its size before its name.
#[tokio::test]
async fn selection_dry_run_on_a_terminal_has_a_row_for_each_image() -> Result<()> {
    let site = Site::start().await?;
    let (bundle, flags) = (site.path("bundle"), site.flags());
    let mut command = std::process::Command::new(vdo_testbed::vdoctl());
    command.env_clear().env("TERM", "xterm").env("HOME", site.home.path());
    command.args(["mirror", "pull", &bundle, "--all", "--dry-run"]).args(flags);
    let shown = crate::pty::screen_of(command, 80);
    let rows: Vec<&str> = shown.lines().filter(|line| line.contains("registry.example/")).collect();
    assert!(rows.len() >= 4, "{shown}");
    for row in rows {
        let (size, image) = (row.find("iB "), row.find("registry.example/"));
        assert!(
            size.is_some() && size < image && row.trim_end().chars().count() <= 80,
            "{row:?} of\n{shown}"
        );
    }
    Ok(())
}

#[test]
fn verify_of_a_cluster_takes_no_password_for_every_registry() {
    let said = crate::seen(crate::vdoctl(&[
        "mirror",
        "verify",
        "--cluster",
        "--username",
        "me",
        "--password-stdin",
    ]));
    assert!(said.starts_with("exit 2") && said.contains("cannot be used with"), "{said}");
}
