//! An operator of another version that renders the same writes nothing, and shares the Lease with this one: what is rendered, planned and
//! elected does not know the version.

use std::path::{Path, PathBuf};

/// Where the version is only shown, or compared with the one of a Deployment; and the record of an inventory, which is stored with the
/// next change and not because of it.
const MAY_KNOW: [&str; 6] = ["cli", "runtime", "install", "controller.rs", "web", "vcenter/http.rs"];
const RECORD: &str = "reconcile/apply/inventory.rs";

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        match path.is_dir() {
            true => sources(&path, found),
            false => found.push(path),
        }
    }
}

#[test]
fn operator_version_decides_nothing_that_is_written_to_drivers() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut all = Vec::new();
    sources(&root, &mut all);
    let knows = |path: &PathBuf| std::fs::read_to_string(path).expect("text").contains("CARGO_PKG_VERSION");
    let knowing = all.into_iter().filter(knows);
    let names: Vec<PathBuf> = knowing.map(|path| path.strip_prefix(&root).expect("inside").to_owned()).collect();
    let may = |name: &&PathBuf| MAY_KNOW.iter().any(|may| name.starts_with(may));
    let others: Vec<&PathBuf> = names.iter().filter(|name| !may(name)).collect();
    assert_eq!(others, [Path::new(RECORD)]);
}
