// SPDX-License-Identifier: Apache-2.0
//! What becomes of pods: kwok's own stages, and troubles.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

/// The annotation that brings trouble to a running pod; `crash` lets it crash.
pub const TROUBLE: &str = "testbed/trouble";

const OWN: [(&str, &str); 2] = [
    ("pod-image-fails.yaml", include_str!("stages/pod-image-fails.yaml")),
    ("pod-crashes.yaml", include_str!("stages/pod-crashes.yaml")),
];

/// Where the conditions of a stage begin, in kwok's files and in ours.
const MATCH: &str = "    matchExpressions:\n";

/// Pods whose image cannot be pulled must not become ready. Indented as in kwok's file.
const NOT_INVALID: &str = "    - key: '.spec.containers.[].image | select( test(\"^[^/]*[.]invalid(:[0-9]+)?/\") )'
      operator: 'DoesNotExist'
";

/// Pods that use a claim and end by themselves are played by the node agent, which waits for their volumes.
const NOT_WITH_CLAIM: &str =
    "    - key: 'select( .spec.restartPolicy == \"Never\" ) | .spec.volumes[]?.persistentVolumeClaim.claimName | select( . != null )'
      operator: 'DoesNotExist'
";

/// The annotation of a node whose kubelet, played by a test, reports no pod network.
pub const NO_NETWORK: &str = "testbed/no-network";

/// What the kubelet of such a node says.
pub const NO_NETWORK_SAYS: &str = "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:Network \
                                   plugin returns error: cni plugin not initialized";

/// What such a node says of itself stays.
const NOT_WITHOUT_NETWORK: &str = "    - key: '.metadata.annotations[\"testbed/no-network\"]'
      operator: 'DoesNotExist'
";

/// Where it begins what a stage does.
const NEXT: &str = "\n  next:\n";

/// Writes the stage files of one cluster. Pods with an image that begins like one of `images` are left alone; all others become ready after
/// the time that the images are pulled.
pub(crate) fn write(kwok: &[PathBuf], images: &[String], pull: Duration, folder: &Path) -> Result<Vec<PathBuf>> {
    std::fs::create_dir_all(folder)?;
    let not_ours = not_ours(images)?;
    let mut files = Vec::new();
    let mut add = |name: &str, mut text: String| {
        let more = [
            ("pod-ready.yaml", NOT_INVALID),
            ("pod-ready.yaml", NOT_WITH_CLAIM),
            ("pod-", &not_ours),
            ("node-initialize.yaml", NOT_WITHOUT_NETWORK),
        ];
        for (_, expression) in more
            .iter()
            .filter(|(of, expression)| name.starts_with(of) && !expression.is_empty())
        {
            let changed = text.replacen(MATCH, &format!("{MATCH}{expression}"), 1);
            ensure!(changed != text, "stage {name} has another form than expected");
            text = changed;
        }
        if name == "pod-ready.yaml" && !pull.is_zero() {
            let delay = format!("\n  delay:\n    durationMilliseconds: {}{NEXT}", pull.as_millis());
            let changed = text.replacen(NEXT, &delay, 1);
            ensure!(
                changed != text && !text.contains("\n  delay:"),
                "stage {name} has another form than expected"
            );
            text = changed;
        }
        files.push(put(folder, name, &text)?);
        Ok(())
    };
    for source in kwok {
        let text = std::fs::read_to_string(source).with_context(|| format!("kwok stage {}", source.display()))?;
        add(&source.file_name().unwrap_or_default().to_string_lossy(), text)?;
    }
    for (name, text) in OWN {
        add(name, text.to_owned())?;
    }
    Ok(files)
}

/// The condition that no image of a pod begins like one of these.
fn not_ours(images: &[String]) -> Result<String> {
    if images.is_empty() {
        return Ok(String::new());
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || "./:_-".contains(c);
    for image in images {
        ensure!(
            !image.is_empty() && image.chars().all(plain),
            "{image:?} is not beginning of an image reference"
        );
    }
    let any = images.join("|").replace('.', "[.]");
    Ok(format!(
        "    - key: '.spec.containers.[].image | select( test(\"^({any})\") )'\n      operator: 'DoesNotExist'\n"
    ))
}

fn put(folder: &Path, name: &str, text: &str) -> Result<PathBuf> {
    let path = folder.join(name);
    std::fs::write(&path, text).with_context(|| format!("file {}", path.display()))?;
    Ok(path)
}
