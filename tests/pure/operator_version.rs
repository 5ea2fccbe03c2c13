// SPDX-License-Identifier: Apache-2.0
//! An operator of another version that renders the same writes nothing, and shares the Lease with this one: what is rendered, planned and
//! elected does not know the version.

use crate::sources::product_texts;

/// Where the version is only shown, or compared with the one of a Deployment; and the record of an inventory, which is stored with the
/// next change and not because of it.
const MAY_KNOW: [&str; 6] = [
    "crates/vdo-core/src/install",
    "crates/vdo-oci/src/web",
    "crates/vdo-vsphere/src/vcenter/http.rs",
    "crates/vdoctl/",
    "src/controller.rs",
    "src/runtime",
];
const RECORD: &str = "src/reconcile/apply/state_secret.rs";

#[test]
fn operator_version_decides_nothing_that_is_written_to_drivers() {
    let knowing = product_texts().into_iter().filter(|(_, text)| text.contains("CARGO_PKG_VERSION"));
    let names: Vec<String> = knowing.map(|(path, _)| path).collect();
    let may = |name: &&String| MAY_KNOW.iter().any(|may| name.starts_with(may));
    let others: Vec<&String> = names.iter().filter(|name| !may(name)).collect();
    assert_eq!(others, [RECORD]);
}
