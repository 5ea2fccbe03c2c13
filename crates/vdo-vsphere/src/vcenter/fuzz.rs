// SPDX-License-Identifier: Apache-2.0
//! Entry point for the fuzzer: parses any bytes as XML, as a page of an inventory and as JSON, within the memory limit.

use super::inspection_limits::{Budget, Limits, Pool};
use super::inventory_objects::{Gathered, Item};
use super::offload::{Unread, Work};
use super::{tags, xml};
use crate::vsphere::ManagedObject;

/// Reads an answer as a document, as a page of an inventory, and as JSON. The texts tell how each ended.
pub fn answer(bytes: &[u8]) -> [Result<(), String>; 3] {
    let pool = Pool::new(8 << 20);
    let work = Work::with(Budget::new(Limits::default(), &pool));
    let text = || std::str::from_utf8(bytes).map_err(|_| Unread::from("it is not UTF-8 text"));
    let document = text().and_then(|text| xml::parse(text, &work).map(drop));
    let page = text().and_then(|text| page(text, &work));
    let json = tags::json(bytes, &work).map(drop);
    [document, page, json].map(|read| read.map_err(|unread| format!("{unread:?}")))
}

fn page(text: &str, work: &Work) -> Result<(), Unread> {
    let root = ManagedObject {
        kind: "Folder".into(),
        id: "group-d1".into(),
    };
    let mut gathered = Gathered::new(root, work.hold());
    xml::parse_each(text, work, "objects", &mut gathered, |gathered, mut object| {
        Item::of(&mut object)?.map_or(Ok(()), |item| gathered.take(item))
    })?;
    gathered.finish(work).map(drop)
}
