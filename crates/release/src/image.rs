// SPDX-License-Identifier: Apache-2.0
//! `vdo-release image`: builds the operator's multi-platform image as an OCI layout, with labels and attached bills of materials.

use crate::layer::File;
use crate::{elf, image_files, layer, output};
use anyhow::{Context, Result, anyhow, bail};
use std::collections::BTreeMap;
use std::path::PathBuf;
use vdo_api::types::Digest;
use vdo_oci::layout::Layout;
use vdo_oci::oci::{Annotations, ContainerConfig, Descriptor, History, ImageConfig, Index, Manifest, Platform, REF_NAME, RootFs, media};

const REPOSITORY: &str = "https://github.com/vdo-project/vdo";

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The operator's program for a platform; once for each platform. The program is statically linked, or --file adds its loader and
    /// libraries
    #[arg(long = "program", value_name = "PLATFORM=FILE", required = true, value_parser = output::by_platform)]
    programs: Vec<(Platform, PathBuf)>,
    /// The bill of materials (CycloneDX JSON) of a platform's program; attached to its image
    #[arg(long = "sbom", value_name = "PLATFORM=FILE", value_parser = output::by_platform)]
    sboms: Vec<(Platform, PathBuf)>,
    /// An executable file to add to each image
    #[arg(long = "file", value_name = "PATH=FILE", value_parser = output::by_path)]
    files: Vec<(String, PathBuf)>,
    /// Root certificates in PEM to put into the image instead of Mozilla's
    #[arg(long, value_name = "FILE")]
    ca_certificates: Option<PathBuf>,
    /// Folder of the layout; a folder that contains a layout is replaced
    #[arg(long, value_name = "DIR")]
    output: PathBuf,
    /// Name and tag of the image
    #[arg(long, value_name = "NAME:TAG", value_parser = reference)]
    reference: Reference,
    /// The commit that the program was built from
    #[arg(long, value_name = "COMMIT")]
    revision: Option<String>,
    /// Time stamp of all files and of the image, in seconds since 1970
    #[arg(long, value_name = "SECONDS", env = "SOURCE_DATE_EPOCH", default_value_t = 0)]
    created: u64,
}

/// A name with a tag.
#[derive(Debug, Clone)]
pub struct Reference {
    pub whole: String,
    pub tag: String,
}

impl Reference {
    /// What names an image in the index of a layout.
    pub fn annotations(&self) -> Annotations {
        [
            (REF_NAME, &self.tag),
            // containerd and Docker take the whole name from here.
            ("io.containerd.image.name", &self.whole),
        ]
        .map(|(key, value)| (key.to_owned(), value.clone()))
        .into()
    }
}

/// A name with a tag, as the distribution specification spells tags.
pub fn reference(text: &str) -> Result<Reference> {
    let (name, tag) = text
        .rsplit_once(':')
        .filter(|(_, tag)| !tag.contains('/'))
        .ok_or_else(|| anyhow!("write NAME:TAG"))?;
    let is_tag = |(at, b): (usize, u8)| b.is_ascii_alphanumeric() || b == b'_' || (at > 0 && (b == b'.' || b == b'-'));
    if name.is_empty() || tag.is_empty() || tag.len() > 128 || !tag.bytes().enumerate().all(is_tag) {
        bail!("a tag has up to 128 letters, digits, dots, dashes and underscores, and begins with neither dot nor dash");
    }
    Ok(Reference {
        whole: text.to_owned(),
        tag: tag.to_owned(),
    })
}

pub fn run(args: &Args) -> Result<()> {
    let programs: BTreeMap<&Platform, &PathBuf> = args.programs.iter().map(|(platform, path)| (platform, path)).collect();
    if programs.len() < args.programs.len() {
        bail!("--program names a platform twice");
    }
    if let Some((platform, _)) = args.sboms.iter().find(|(platform, _)| !programs.contains_key(platform)) {
        bail!("--sbom names {platform}, for which there is no --program");
    }
    let created = output::rfc3339(args.created)?;
    let certificates = image_files::certificates(args.ca_certificates.as_deref())?;

    output::replace(&args.output, "oci-layout", |folder| {
        let layout = Layout::create(folder)?;
        let mut images = Vec::new();
        for (platform, path) in &programs {
            let program = output::read(path)?;
            let holds = |path: &str| args.files.iter().any(|(held, _)| format!("/{held}") == path);
            elf::check(&program, platform, holds).with_context(|| format!("{} cannot be the program of {platform}", path.display()))?;
            images.push(one(args, &layout, platform, program, &certificates, &created)?);
        }
        let mut index = layout.write_json(media::INDEX, &Index::new(images))?;
        let mut attached = Vec::new();
        for (platform, path) in args
            .sboms
            .iter()
            .map(|(platform, path)| (platform, path))
            .collect::<BTreeMap<_, _>>()
        {
            attached.push(attach(&layout, &output::read(path)?, platform, &index)?);
        }
        index.annotations = args.reference.annotations();
        output::line(&format!("image {} {}", args.reference.whole, index.digest))?;
        let all = [vec![index], attached].concat();
        layout.set_index(&Index::new(all))?;
        // What was written is what is read.
        let blobs = layout.verify()?;
        output::line(&format!("  {blobs} blobs in {}", args.output.display()))
    })
}

/// The image of one platform.
fn one(args: &Args, layout: &Layout, platform: &Platform, program: Vec<u8>, certificates: &str, created: &str) -> Result<Descriptor> {
    let program_size = program.len() as u64;
    let mut files = image_files::files(program, certificates);
    for (path, file) in &args.files {
        let bytes = output::read(file)?;
        files.insert(path.clone(), File { bytes, executable: true });
    }
    let mut blob = layout.blob()?;
    let unpacked = layer::write(&files, args.created, &mut blob)?;
    let layer = blob.finish(media::LAYER_GZIP)?;
    let diff_id = unpacked.diff_id;
    // crates/release/build.sh reads these lines.
    output::line(&format!(
        "  {platform}: program {}, layer {} {}, unpacked {diff_id} {}",
        output::size(program_size),
        layer.digest,
        output::size(layer.size),
        output::size(unpacked.size),
    ))?;
    let container = ContainerConfig {
        user: image_files::USER.to_owned(),
        env: Vec::new(),
        entrypoint: vec![format!("/{}", image_files::PROGRAM)],
        labels: labels(args, created),
    };
    of_layer(layout, platform, (layer, diff_id), container, (created, "vdo-release image"))
}

/// The image of one platform with this layer, which has the second digest when it is unpacked; and when it was made, by what.
pub fn of_layer(
    layout: &Layout,
    platform: &Platform,
    (layer, diff_id): (Descriptor, Digest),
    container: ContainerConfig,
    (created, created_by): (&str, &str),
) -> Result<Descriptor> {
    let config = ImageConfig {
        created: Some(created.to_owned()),
        architecture: platform.architecture.clone(),
        os: platform.os.clone(),
        variant: platform.variant.clone(),
        config: container,
        rootfs: RootFs {
            kind: "layers".to_owned(),
            diff_ids: vec![diff_id],
        },
        history: vec![History {
            created: Some(created.to_owned()),
            created_by: created_by.to_owned(),
        }],
    };
    let config = layout.write_json(media::CONFIG, &config)?;
    let mut image = layout.write_json(media::MANIFEST, &Manifest::image(config, vec![layer]))?;
    image.platform = Some(platform.clone());
    Ok(image)
}

fn labels(args: &Args, created: &str) -> Annotations {
    let of = |key: &str, value: &str| (format!("org.opencontainers.image.{key}"), value.to_owned());
    let mut labels = Annotations::from([
        of("title", "vdo-operator"),
        of(
            "description",
            "Chooses, installs, configures and watches the vSphere cloud provider and CSI driver",
        ),
        of("licenses", "Apache-2.0"),
        of("source", REPOSITORY),
        of("documentation", REPOSITORY),
        of("version", &args.reference.tag),
        of("created", created),
    ]);
    labels.extend(args.revision.iter().map(|revision| of("revision", revision)));
    labels
}

/// Stores a platform's bill of materials as an artifact that refers to the index. Not to the platform's image: oras 1.2 copies an index
/// whose images have referrers without the index.
fn attach(layout: &Layout, sbom: &[u8], platform: &Platform, index: &Descriptor) -> Result<Descriptor> {
    serde_json::from_slice::<serde_json::Value>(sbom).context("the bill of materials is not JSON")?;
    let name = format!("vdo-operator-{}.cdx.json", platform.to_string().replace('/', "-"));
    let mut blob = layout.write(media::CYCLONEDX, sbom)?;
    blob.annotations = Annotations::from([("org.opencontainers.image.title".to_owned(), name)]);
    layout.write(media::EMPTY, b"{}")?;
    let manifest = layout.write_json(media::MANIFEST, &Manifest::referrer(media::CYCLONEDX, blob, index.clone()))?;
    Ok(Descriptor {
        artifact_type: Some(media::CYCLONEDX.to_owned()),
        ..manifest
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reference_tag_is_after_the_last_colon_and_not_a_port() {
        let good = reference("registry:5000/vdo/vdo-operator:v0.1.0").expect("a reference");
        assert_eq!((good.tag.as_str(), good.whole.len()), ("v0.1.0", 37));
        for bad in [
            "",
            "vdo",
            ":v1",
            "vdo:",
            "registry:5000/vdo",
            "vdo:a b",
            "vdo:-1",
            "vdo:.1",
            "vdo:a/b",
        ] {
            assert!(reference(bad).is_err(), "{bad:?} was accepted");
        }
    }
}
