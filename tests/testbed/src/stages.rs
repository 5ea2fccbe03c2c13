//! What becomes of pods: kwok's own stages, and troubles.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

/// The annotation that brings trouble to a running pod; `crash` lets it crash.
pub const TROUBLE: &str = "testbed/trouble";

const OWN: [(&str, &str); 2] = [
    ("pod-image-fails.yaml", include_str!("stages/pod-image-fails.yaml")),
    ("pod-crashes.yaml", include_str!("stages/pod-crashes.yaml")),
];

/// Pods whose image cannot be pulled must not become ready. Indented as in kwok's file.
const NOT_INVALID: &str = "    matchExpressions:
    - key: '.spec.containers.[].image | select( test(\"^[^/]*[.]invalid(:[0-9]+)?/\") )'
      operator: 'DoesNotExist'
";

/// Writes the stage files of one cluster.
pub(crate) fn write(kwok: &[PathBuf], folder: &Path) -> Result<Vec<PathBuf>> {
    std::fs::create_dir_all(folder)?;
    let mut files = Vec::new();
    for source in kwok {
        let mut text = std::fs::read_to_string(source).with_context(|| format!("kwok stage {}", source.display()))?;
        if source.ends_with("pod-ready.yaml") {
            let changed = text.replacen("    matchExpressions:\n", NOT_INVALID, 1);
            ensure!(changed != text, "kwok stage {} has another form than expected", source.display());
            text = changed;
        }
        files.push(put(folder, &source.file_name().unwrap_or_default().to_string_lossy(), &text)?);
    }
    for (name, text) in OWN {
        files.push(put(folder, name, text)?);
    }
    Ok(files)
}

fn put(folder: &Path, name: &str, text: &str) -> Result<PathBuf> {
    let path = folder.join(name);
    std::fs::write(&path, text).with_context(|| format!("file {}", path.display()))?;
    Ok(path)
}
