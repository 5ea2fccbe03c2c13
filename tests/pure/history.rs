// SPDX-License-Identifier: Apache-2.0
//! How much room the history takes.

use vdo_core::chart::{self, Context};
use vdo_core::manifest::{Object, Owner, stamp};
use vdo_core::plan::{Inventory, PackedObjects, Revision};
use vdo_source::fetch::embedded;

/// Five revisions, the running and the last good one: each another version, so that no two are alike.
#[test]
fn history_of_all_drivers_takes_less_than_a_fifth_of_what_etcd_allows() {
    let mut inventory = Inventory::default();
    for (driver, source) in embedded::sources() {
        let versions: Vec<_> = source.versions().into_iter().rev().take(7).collect();
        for (number, version) in versions.iter().enumerate() {
            let chart = chart::open(&chart::package(&source, version).expect("a package")).expect("a chart");
            let rendered = chart::render(&chart, &chart::everything(&chart), &Context::default()).expect("objects");
            let mut objects: Vec<Object> = rendered.into_iter().map(|object| Object::new(object).expect("an object")).collect();
            let owner = Owner {
                apply_set: "applyset".into(),
                driver: driver.clone(),
                version: version.to_string(),
                salt: "salt".into(),
            };
            stamp(&mut objects, &owner);
            let revision = Revision::of(number as u64 + 1, PackedObjects::of(objects.iter()));
            inventory.history.entry(driver.clone()).or_default().push(revision);
        }
    }
    let stored = inventory.stored();
    let size: usize = stored.data.values().chain(stored.binary.values()).map(String::len).sum();
    println!("seven revisions of each driver take {size} bytes");
    assert!(
        stored.binary.len() == 18 && size < 200 << 10,
        "{} parts, {size} bytes",
        stored.binary.len()
    );
    assert_eq!(Inventory::parse("i", &stored).expect("readable"), inventory);
}
