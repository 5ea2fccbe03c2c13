// SPDX-License-Identifier: Apache-2.0
//! Archives of vdoctl that lie beside an index.

use super::hostile::{Image, Stage};
use anyhow::Result;
use std::fs;
use vdo_api::types::Digest;
use vdo_oci::oci::media;

#[tokio::test(flavor = "multi_thread")]
async fn programs_on_a_web_server_go_along_with_their_sums_when_they_are_what_these_say() -> Result<()> {
    let stage = Stage::new().await?;
    Image::new(media::LAYER_GZIP)?.serve(&stage.server);
    let archive = b"an archive of vdoctl";
    super::archive(&stage.publisher.matrix(), archive)?;
    for (path, bytes) in stage.publisher.files() {
        let path = path.strip_prefix(stage.publisher.matrix())?.display().to_string();
        stage.server.put(&format!("/matrix/{path}"), bytes);
    }
    let credentials = stage.home.path().join("credentials");
    fs::create_dir(&credentials)?;
    fs::write(credentials.join("ca.crt"), stage.server.authority().pem())?;
    let mut arguments = stage.arguments();
    let source = arguments
        .iter()
        .position(|argument| *argument == stage.publisher.matrix())
        .unwrap_or_default();
    arguments[source] = stage.server.url("/matrix/index.yaml");
    arguments.extend(["--matrix-credentials".to_owned(), credentials.display().to_string()]);
    let name = "/matrix/vdoctl-linux-amd64.tar.gz";
    stage.server.put(name, &b"something else"[..]);
    let refused = stage.run(arguments.clone()).await?;
    assert_eq!(refused.code, 4, "{}", refused.out);
    assert!(
        refused.err.contains("vdoctl-linux-amd64.tar.gz") && refused.err.contains("its checksum differs from SHA256SUMS"),
        "{}",
        refused.err
    );
    stage.server.remove(name);
    let refused = stage.run(arguments.clone()).await?;
    assert!(refused.code == 4 && refused.err.contains("the file is missing"), "{}", refused.err);
    stage.server.put(name, &archive[..]);
    stage.run(arguments).await?.good();
    stage.verify()?.good();
    let blobs = stage.home.path().join("bundle/blobs/sha256");
    assert_eq!(fs::read(blobs.join(Digest::of(archive).hex()))?, archive);
    let sums = fs::read(std::path::Path::new(&stage.publisher.matrix()).join("SHA256SUMS"))?;
    assert!(blobs.join(Digest::of(&sums).hex()).is_file());
    Ok(())
}
