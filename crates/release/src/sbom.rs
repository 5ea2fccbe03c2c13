//! `vdo-release sbom`: a bill of materials in SPDX 2.3 JSON. The same lock file gives the same bytes.

use crate::dependencies::{Dependencies, Key, Source};
use crate::output;
use anyhow::Result;
use serde_json::{Value, json};
use std::path::PathBuf;
use vdo_api::types::Digest;

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    source: Source,
    /// The compiler, as `rustc --version` prints it: its standard library is in every program
    #[arg(long, value_name = "TEXT")]
    rustc: Option<String>,
    /// When the program was built, in seconds since 1970
    #[arg(long, value_name = "SECONDS", env = "SOURCE_DATE_EPOCH", default_value_t = 0)]
    created: u64,
    /// File to write
    #[arg(long, value_name = "FILE")]
    output: PathBuf,
}

pub fn run(args: &Args) -> Result<()> {
    let dependencies = args.source.read()?;
    let created = output::rfc3339(args.created)?;
    let document = document(&dependencies, &args.source.target, args.rustc.as_deref(), &created);
    let text = format!("{document:#}\n");
    output::write(&args.output, text.as_bytes())?;
    output::line(&format!(
        "  bill of materials: {} crates in {}",
        dependencies.packages.len(),
        args.output.display()
    ))
}

fn id(key: &Key) -> String {
    let word = |text: &str| text.replace(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '.', "-");
    format!("SPDXRef-crate-{}-{}", word(&key.0), word(&key.1))
}

fn document(dependencies: &Dependencies, target: &str, rustc: Option<&str>, created: &str) -> Value {
    let mut packages: Vec<Value> = dependencies
        .packages
        .iter()
        .map(|(key, known)| {
            let mut package = json!({
                "SPDXID": id(key),
                "name": key.0,
                "versionInfo": key.1,
                "downloadLocation": known.repository.as_deref().filter(|at| at.starts_with("https://")).unwrap_or("NOASSERTION"),
                "filesAnalyzed": false,
                "licenseConcluded": "NOASSERTION",
                "licenseDeclared": known.license.as_deref().unwrap_or("NOASSERTION"),
                "copyrightText": "NOASSERTION",
            });
            if let Some(checksum) = &known.checksum {
                package["checksums"] = json!([{"algorithm": "SHA256", "checksumValue": checksum}]);
                package["externalRefs"] = json!([{
                    "referenceCategory": "PACKAGE-MANAGER",
                    "referenceType": "purl",
                    "referenceLocator": format!("pkg:cargo/{}@{}", key.0, key.1.replace('+', "%2B")),
                }]);
            }
            package
        })
        .collect();
    let root = id(&dependencies.root);
    let mut relationships = vec![json!({
        "spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": root,
    })];
    let mut relate = |a: &str, kind: &str, b: &str| {
        relationships.push(json!({"spdxElementId": a, "relationshipType": kind, "relatedSpdxElement": b}));
    };
    for (a, b) in &dependencies.edges {
        relate(&id(a), "DEPENDS_ON", &id(b));
    }
    for key in dependencies.packages.keys().filter(|key| **key != dependencies.root) {
        if !dependencies.edges.iter().any(|(_, used)| used == key) {
            relate(&root, "CONTAINS", &id(key));
        }
    }
    if let Some(version) = rustc {
        relate(&root, "STATIC_LINK", "SPDXRef-rust-std");
        packages.push(json!({
            "SPDXID": "SPDXRef-rust-std",
            "name": "rust-std",
            "versionInfo": version,
            "downloadLocation": "NOASSERTION",
            "filesAnalyzed": false,
            "licenseConcluded": "NOASSERTION",
            "licenseDeclared": "MIT OR Apache-2.0",
            "copyrightText": "NOASSERTION",
            "comment": format!("The standard library of Rust for {target}, with the C library that it brings there."),
        }));
    }
    let (name, version) = &dependencies.root;
    let content = json!([packages, relationships]).to_string();
    json!({
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": format!("{name}-{version}-{target}"),
        // Unique for each content and the same for the same one.
        "documentNamespace": format!("https://github.com/vdo-project/vdo/spdx/{name}-{version}-{target}-{}", Digest::of(content.as_bytes()).hex()),
        "creationInfo": {"created": created, "creators": [concat!("Tool: vdo-release-", env!("CARGO_PKG_VERSION"))]},
        "packages": packages,
        "relationships": relationships,
    })
}
