// SPDX-License-Identifier: Apache-2.0
//! What a hostile server may answer.

use super::evil::{Reply, object, page, pbm, place, response};
use hyper::body::Bytes;
use std::time::Duration;

/// An attack: its name, and the calls that are answered badly.
pub(crate) type Attack = (&'static str, Vec<(&'static str, Reply)>);

const VIEW: &str = "CreateContainerView";
const FIRST: &str = "RetrievePropertiesEx";
const NEXT: &str = "ContinueRetrievePropertiesEx";
const CATEGORIES: &str = "/rest/com/vmware/cis/tagging/category";

fn body(text: impl Into<Bytes>) -> Reply {
    Reply::Body(text.into())
}

/// The same page repeatedly: the first and the next ones.
fn pages(objects: &str, reply: impl Fn(Bytes) -> Reply) -> Vec<(&'static str, Reply)> {
    [FIRST, NEXT]
        .map(|call| (call, reply(page(call, Some("more"), objects).into())))
        .into()
}

/// An identifier of its own for each object would be a page for each request; one is enough for all that is kept in lists.
fn machines(number: usize, name: &str) -> String {
    object("VirtualMachine", "vm-1", &[("name", name), ("parent", "group-d1")]).repeat(number)
}

/// All attacks; `slow` is the time that a slow server takes for an answer.
pub(crate) fn all(slow: Duration) -> Vec<Attack> {
    let mib = |n: usize| n << 20;
    let folders: String = (1..60)
        .map(|i| place("Folder", &format!("group-d{}", i + 1), &"x".repeat(1000), &format!("group-d{i}")))
        .collect();
    let deep = folders + &object("VirtualMachine", "vm-1", &[("name", "m"), ("parent", "group-d60")]).repeat(20_000);
    let privileges = "<privAvailability><privId>System.Read</privId><isGranted>true</isGranted></privAvailability>";
    let privileges = format!(
        "<returnval><entity type=\"Folder\">group-d1</entity>{}</returnval>",
        privileges.repeat(12_000)
    );
    let namespace = format!("<e xmlns=\"{}\">{}</e>", "u".repeat(500_000), "<a/>".repeat(135_000));
    let large_item = format!("<objects>{}</objects>", "<x/>".repeat(49_000));
    let attributes: String = (0..2_000_000).map(|i| format!(" a{i}=''")).collect();
    vec![
        ("namespace before the login", vec![("RetrieveServiceContent", body(namespace))]),
        (
            "empty elements, 60 MB",
            vec![(VIEW, body(response(VIEW, &"<x/>".repeat(15_000_000))))],
        ),
        (
            "empty elements, 20 MB",
            vec![(VIEW, body(response(VIEW, &"<x/>".repeat(5_000_000))))],
        ),
        ("one text of 30 MB", vec![(VIEW, body(response(VIEW, &"x".repeat(mib(30)))))]),
        ("references", vec![(VIEW, body(response(VIEW, &"&lt;".repeat(mib(7)))))]),
        ("attributes", vec![(VIEW, body(response(VIEW, &format!("<a{attributes}/>"))))]),
        ("large items", pages(&large_item.repeat(100), Reply::Body)),
        ("pages without end", pages(&machines(1000, "m"), Reply::Body)),
        ("pages of long names", pages(&machines(1000, &"n".repeat(1000)), Reply::Body)),
        ("slow pages", pages(&machines(1000, "m"), |page| Reply::Late(slow, page))),
        ("paths", vec![(FIRST, body(page(FIRST, None, &deep)))]),
        ("a stop after 3 MB", vec![(FIRST, Reply::Stalls(Bytes::from(vec![b' '; mib(3)])))]),
        ("a stop after 30 MB", vec![(FIRST, Reply::Stalls(Bytes::from(vec![b' '; mib(30)])))]),
        (
            "privileges",
            vec![(
                "HasPrivilegeOnEntities",
                body(response("HasPrivilegeOnEntities", &privileges.repeat(20))),
            )],
        ),
        (
            "policies",
            vec![(
                "PbmRetrieveContent",
                body(pbm(
                    "PbmRetrieveContent",
                    &"<returnval><name>gold</name></returnval>".repeat(800_000),
                )),
            )],
        ),
        (
            "JSON of zeros",
            vec![(CATEGORIES, body(format!("{{\"value\":[{}0]}}", "0,".repeat(mib(10)))))],
        ),
        (
            "JSON of maps",
            vec![(CATEGORIES, body(format!("[{}0]", "{\"a\":{}},".repeat(mib(3)))))],
        ),
        ("deep JSON", vec![(CATEGORIES, body("[".repeat(mib(30))))]),
        (
            "many categories",
            vec![(CATEGORIES, body(format!("{{\"value\":[{}\"c-9\"]}}", "\"c-9\",".repeat(mib(1)))))],
        ),
    ]
}
