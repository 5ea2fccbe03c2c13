// SPDX-License-Identifier: Apache-2.0
//! Builds the operator's image or uses VDO_IMAGE_LAYOUT, packs it as an archive for one architecture, and pushes it to a registry.

use crate::programs::{Call, Ended, Input, ask, last_line, say, step};
use crate::settings::Settings;
use crate::stop::Stop;
use std::path::{Path, PathBuf};

/// The name of an image that no registry has. Its tag says what is in it, so a changed image is another image to the cluster.
const LOCAL: &str = "localhost/vdo-operator";

/// The image of the operator, in a folder of the form of OCI.
#[derive(Debug)]
pub struct Built {
    layout: PathBuf,
    /// The program that reads it.
    release: PathBuf,
}

/// The folder of what cargo builds: this program is in `debug` there.
fn target() -> Result<PathBuf, Stop> {
    let own = std::env::current_exe().map_err(|error| Stop::refused(format!("the path of this program is unknown: {error}")))?;
    let target = own.parent().and_then(Path::parent);
    target
        .map(Path::to_owned)
        .ok_or_else(|| Stop::refused(format!("{} is not in a target folder of cargo", own.display())))
}

/// Says what is wrong with a layout that was named, before anything else is done.
///
/// # Errors
/// When there is none.
pub fn check(settings: &Settings) -> Result<(), Stop> {
    match &settings.layout {
        Some(layout) if !layout.join("oci-layout").is_file() => Err(Stop::usage(format!(
            "VDO_IMAGE_LAYOUT is not an image layout: {}",
            layout.display()
        ))
        .try_this("make image builds the layout target/image")),
        _ => Ok(()),
    }
}

/// Generates and builds, unless there is a layout already.
///
/// # Errors
/// When a step fails.
pub fn build(settings: &Settings, architectures: &[String]) -> Result<Built, Stop> {
    let target = target()?;
    let release = target.join("debug/vdo-release");
    if let Some(layout) = settings.layout.clone() {
        return match release.is_file() {
            true => Ok(Built { layout, release }),
            false => Err(Stop::usage(format!("{} is missing", release.display())).try_this("cargo build --workspace")),
        };
    }
    say("== generate");
    step(&Call::of("make", &["generate"]))?;
    say("== build the image");
    step(&Call::of("crates/release/build.sh", &["image"]).with("VDO_ARCHITECTURES", architectures.join(" ")))?;
    let layout = target.join("image");
    Ok(Built { layout, release })
}

impl Built {
    /// Packs the image of one architecture into a file that `docker load`, `podman load`, `kind load image-archive`, `k3d image import`,
    /// `minikube image load` and `ctr images import` take, beside the layout. Gives the name of the image and the file.
    ///
    /// # Errors
    /// When it is not built for this architecture, or the file cannot be written.
    pub fn archive(&self, architecture: &str) -> Result<(String, PathBuf), Stop> {
        let file = self.layout.with_file_name(format!("image-{architecture}.tar"));
        let call = Call::of(self.release.display().to_string(), &["image-archive", "--name", LOCAL])
            .and("--layout", self.layout.display().to_string())
            .and("--platform", format!("linux/{architecture}"))
            .and("--output", file.display().to_string());
        Ok((self.named(&call)?, file))
    }

    /// Pushes the image with every architecture, and gives its name.
    ///
    /// # Errors
    /// When the registry refuses.
    pub fn push(&self, registry: &str) -> Result<String, Stop> {
        say(&format!("== push the image to {registry}"));
        let call = Call::of(self.release.display().to_string(), &["image-push"])
            .and("--layout", self.layout.display().to_string())
            .and("--to", format!("{registry}/vdo-operator"));
        self.named(&call)
    }

    /// Runs a command of vdo-release that prints the name of the image in its last line.
    fn named(&self, call: &Call) -> Result<String, Stop> {
        match ask(call, Input::None)? {
            Ended::Well(printed) => Ok(last_line(&printed).to_owned()),
            Ended::Badly(_, said) => Err(Stop::refused(said).try_this("The cluster is unchanged.")),
            Ended::Missing => Err(Stop::refused(format!("{} is missing", self.release.display()))),
        }
    }
}
