// SPDX-License-Identifier: Apache-2.0
//! `vdo-release chart`: packages the operator's Helm chart reproducibly, without the files in `.helmignore`, with the image of `--image`.

use crate::layer::File;
use crate::{archive, folder, output};
use anyhow::{Context, Result, anyhow, bail};
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub struct ChartArgs {
    /// Folder of the chart
    #[arg(long, value_name = "DIR")]
    source: PathBuf,
    /// The version that Chart.yaml must contain
    #[arg(long, value_name = "VERSION")]
    version: String,
    /// The name of the operator's image, if it differs from the name in values.yaml
    #[arg(long, value_name = "NAME")]
    image: Option<String>,
    /// Folder for NAME-VERSION.tgz
    #[arg(long, value_name = "DIR")]
    output: PathBuf,
    /// Time stamp of all files, in seconds since 1970
    #[arg(long, value_name = "SECONDS", env = "SOURCE_DATE_EPOCH", default_value_t = 0)]
    created: u64,
}

/// Packages a Helm chart, as `helm package` does, but with the same bytes for the same files.
pub fn chart(args: &ChartArgs) -> Result<()> {
    let ignored = args.source.join(".helmignore");
    let ignored = match ignored.exists() {
        true => patterns(&String::from_utf8_lossy(&output::read(&ignored)?))?,
        false => Vec::new(),
    };
    // Hidden files are for those who write the chart.
    let is_left_out = |name: &str, is_folder| name.starts_with('.') || ignored.iter().any(|pattern| pattern.matches(name, is_folder));
    let mut sources = folder::contents(&args.source, |name, is_folder| !is_left_out(name, is_folder))?;
    let metadata = sources
        .get("Chart.yaml")
        .ok_or_else(|| anyhow!("{} has no Chart.yaml", args.source.display()))?;
    let metadata = vdo_api::yaml::load_value(&String::from_utf8_lossy(metadata)).context("Chart.yaml cannot be read")?;
    let field = |key: &str| metadata.get(key).and_then(|value| value.as_str()).unwrap_or_default();
    let (name, version) = (field("name"), field("version"));
    if name.is_empty() || name.contains('/') || version != args.version {
        bail!(
            "Chart.yaml names {name:?} {version:?} and not the version {}; correct it there",
            args.version
        );
    }
    if let Some(image) = &args.image {
        let values = sources
            .get_mut("values.yaml")
            .ok_or_else(|| anyhow!("the chart has no values.yaml"))?;
        *values = with_image(&String::from_utf8_lossy(values), image)?.into_bytes();
    }
    let files = sources
        .into_iter()
        .map(|(path, bytes)| (format!("{name}/{path}"), File { bytes, executable: false }));
    let to = args.output.join(format!("{name}-{version}.tgz"));
    let packed = archive::write(&files.collect(), args.created, &to)?;
    output::line(&format!("  {name}-{version}.tgz: {}", output::size(packed)))
}

/// The default values with another image: the repository below `image`, and every other line as it is.
fn with_image(values: &str, image: &str) -> Result<String> {
    let (before, rest) = values
        .split_once("\n  repository: ")
        .filter(|(before, _)| before.lines().rfind(|line| !line.trim_start().starts_with('#')) == Some("image:"))
        .ok_or_else(|| anyhow!("values.yaml does not begin the image with its repository"))?;
    let (_, after) = rest.split_once('\n').unwrap_or_default();
    Ok(format!("{before}\n  repository: {image}\n{after}"))
}

/// A line of `.helmignore`.
#[derive(Debug, PartialEq, Eq)]
enum Pattern {
    /// `NAME/`
    Folder(String),
    /// `NAME`
    Named(String),
    /// `*END`
    Ending(String),
}

impl Pattern {
    fn matches(&self, name: &str, is_folder: bool) -> bool {
        match self {
            Self::Folder(folder) => is_folder && folder == name,
            Self::Named(other) => other == name,
            Self::Ending(end) => name.ends_with(end),
        }
    }
}

/// The lines of `.helmignore`. Helm knows more kinds; a line of these is refused, because the package would not be Helm's.
fn patterns(text: &str) -> Result<Vec<Pattern>> {
    let mut patterns = Vec::new();
    for line in text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
    {
        let word = line.strip_suffix('/').unwrap_or(line);
        let word = word.strip_prefix('*').unwrap_or(word);
        patterns.push(match (line.strip_prefix('*'), line.strip_suffix('/')) {
            _ if word.is_empty() || word.contains(['*', '?', '[', '!', '/', '\\']) => {
                bail!(".helmignore: {line:?} is not understood; write NAME, NAME/ or *END")
            }
            (Some(_), Some(_)) => bail!(".helmignore: {line:?} is not understood; write NAME, NAME/ or *END"),
            (Some(end), None) => Pattern::Ending(end.to_owned()),
            (None, Some(folder)) => Pattern::Folder(folder.to_owned()),
            (None, None) => Pattern::Named(line.to_owned()),
        });
    }
    Ok(patterns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chart_values_lead_to_another_image_and_say_the_same_otherwise() {
        let values = "# values\n\nimage:\n  # where\n  repository: ghcr.io/a/b\n  tag: \"\"\nother: 1\n";
        let changed = with_image(values, "r:5000/x/b").expect("values");
        assert_eq!(changed, values.replace("ghcr.io/a/b", "r:5000/x/b"));
        assert!(with_image("image: {}\n", "x").is_err());
        assert!(with_image("other:\n  repository: a\n", "x").is_err());
    }

    #[test]
    fn helmignore_lines_are_matched_by_name_and_others_are_rejected() {
        let lines = patterns("# a comment\n\nci/\n*~\nnotes\n").expect("patterns");
        let ignored = |name, is_folder| lines.iter().any(|line| line.matches(name, is_folder));
        assert!(ignored("ci", true) && ignored("a.yaml~", false) && ignored("notes", false));
        assert!(!ignored("ci", false) && !ignored("ci-values", true) && !ignored("a.yaml", false));
        for wrong in ["!keep", "a/b", "a*b", "*/", "**", "/", "[ab]", "*.d/", "**a", "a//"] {
            assert!(patterns(wrong).is_err(), "{wrong:?} was accepted");
        }
    }
}
