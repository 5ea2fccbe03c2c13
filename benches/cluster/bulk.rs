// SPDX-License-Identifier: Apache-2.0
//! A matrix whose storage driver has as many objects as are wanted: the real chart, and plain objects that cost nothing once they are there.

use anyhow::{Context, Result};
use std::fmt::Write as _;
use std::path::Path;
use vdo_api::types::{Digest, DriverVersion};
use vdo_core::chart;
use vdo_core::drivers::CSI;
use vdo_core::matrix::Index;
use vdo_source::fetch::embedded;

/// Objects of one template; a template may only work so much.
const EACH: usize = 100;

/// Writes the index and the chart into a folder. This version of the storage driver gets more objects: half of them are ConfigMaps, the others
/// ServiceAccounts.
pub fn write(folder: &Path, version: &str, more: usize) -> Result<()> {
    let version: DriverVersion = version.parse()?;
    let index = Index::parse(embedded::index())?;
    let entry = index.drivers.get(CSI).and_then(|driver| driver.entry(&version));
    let known = entry.context("the CSI driver in the matrix")?.chart.clone();
    let mut source = embedded::sources().remove(CSI).context("the CSI chart")?;
    for (number, first) in (0..more).step_by(EACH).enumerate() {
        let text = template(number, EACH.min(more - first))?;
        source.files.insert(format!("templates/bulk-{number:03}.yaml"), text.into_bytes());
    }
    let package = chart::package(&source, &version)?;
    let place = folder.join(known.urls.first().context("where the chart is")?);
    std::fs::create_dir_all(place.parent().context("a folder")?)?;
    std::fs::write(&place, &package)?;
    let text = std::str::from_utf8(embedded::index())?;
    std::fs::write(
        folder.join("index.yaml"),
        text.replace(&known.digest.hex(), &Digest::of(&package).hex()),
    )?;
    Ok(())
}

/// The name of a ConfigMap of these objects.
pub fn config_map(number: usize) -> String {
    format!("bulk-{}-{}", number / (EACH / 2), number % (EACH / 2) * 2)
}

fn template(number: usize, count: usize) -> Result<String> {
    let mut text = String::new();
    writeln!(text, "{{% for i in range({count}) %}}")?;
    text.push_str("---\napiVersion: v1\nkind: {{ \"ServiceAccount\" if i % 2 else \"ConfigMap\" }}\n");
    writeln!(
        text,
        "metadata:\n  name: {{{{ \"bulk-{number}-\" ~ i }}}}\n  namespace: {{{{ values.namespace }}}}\n  labels: {{app.kubernetes.io/name: bulk}}"
    )?;
    text.push_str("{% if i % 2 == 0 %}\ndata:\n  number: {{ \"\" ~ i }}\n  endpoint: https://storage.example.com:8443/v1/volumes\n");
    text.push_str("  policy: keep three copies in different racks\n{% endif %}\n{% endfor %}\n");
    Ok(text)
}
