// SPDX-License-Identifier: Apache-2.0
//! Tests the stored form of the inventory: round trips, damaged parts, older and newer forms, and the size limit.

use super::*;
use crate::plan::Outcome;

fn parse(data: &BTreeMap<String, String>) -> Result<Inventory, InventoryError> {
    let stored = Stored {
        data: data.clone(),
        binary: BTreeMap::new(),
    };
    Inventory::parse("i", &stored)
}

fn config_map(name: &str, data: &str) -> Object {
    let value = serde_json::json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"key": data}});
    Object::new(value).expect("an object")
}

#[test]
fn inventory_written_then_parsed_is_equal() {
    let entry = |uid: Option<&str>| Entry {
        api_version: "apps/v1".into(),
        driver: "d".into(),
        wave: 3,
        uid: uid.map(Into::into),
        applied: uid.map(Into::into),
    };
    let inventory = Inventory {
        objects: ById::from_iter([
            (ObjectId::new("apps", "DaemonSet", "ns", "a"), entry(Some("u"))),
            (ObjectId::new("storage.k8s.io", "CSIDriver", "", "c"), entry(None)),
        ]),
        cluster_id: Some("id".into()),
        approved: Some("state".into()),
        history: BTreeMap::from([("d".into(), vec![Revision::of(3, PackedObjects::of([config_map("a", "x")].iter()))])]),
        matrix: Some(StoredMatrix::of(("s".into(), 7, None), (b"index", None, None), BTreeMap::new()).into()),
        embedded: Some(StoredMatrix::of(("embedded".into(), 8, None), (b"own", None, None), BTreeMap::new()).into()),
    };
    assert_eq!(Inventory::parse("i", &inventory.stored()).expect("readable"), inventory);
    let secret = Stored::of_secret(inventory.stored().secret());
    assert_eq!(secret, inventory.stored());
    let empty = Inventory::default();
    assert_eq!(Inventory::parse("i", &empty.stored()).expect("empty"), empty);
}

#[test]
fn inventory_in_secret_that_is_not_text_is_error() {
    let data = |value: &str| BTreeMap::from([("objects".to_owned(), value.to_owned())]);
    assert!(Inventory::parse("i", &Stored::of_secret(data(&STANDARD.encode("[]")))).is_ok());
    for value in ["[]", "/w==", ""] {
        assert!(Inventory::parse("i", &Stored::of_secret(data(value))).is_err(), "{value}");
    }
}

#[test]
fn inventory_changed_part_is_error() {
    let inventory = Inventory {
        history: BTreeMap::from([("d".into(), vec![Revision::of(3, PackedObjects::of([config_map("a", "x")].iter()))])]),
        ..Inventory::default()
    };
    let other = PackedObjects::of([config_map("a", "y")].iter());
    for text in [STANDARD.encode(other.bytes()), "no base64".into(), String::new()] {
        let mut stored = inventory.stored();
        stored.binary.values_mut().for_each(|value| *value = text.clone());
        let error = Inventory::parse("i", &stored).expect_err("changed");
        let said = vdo_api::api::chain(&error);
        assert!(
            said.contains("inventory in i cannot be read") && said.contains("another user changed it"),
            "{said}"
        );
    }
}

/// Objects that are missing are stored again when the driver is healthy; an old revision without any is no use.
#[test]
fn inventory_without_a_part_keeps_the_newest_revision_only() {
    let revision = |number: u64, text: &str| Revision {
        outcome: Outcome::Deployed,
        ..Revision::of(number, PackedObjects::of([config_map("a", text)].iter()))
    };
    let inventory = Inventory {
        history: [("d".into(), vec![revision(1, "x"), revision(2, "y"), revision(3, "z")])].into(),
        ..Inventory::default()
    };
    let without = |keeps: &dyn Fn(&str) -> bool| {
        let mut stored = inventory.stored();
        stored.binary.retain(|key, _| keeps(key));
        let read = Inventory::parse("i", &stored).expect("readable");
        let reported = read.history["d"].iter().map(|r| (r.number, r.outcome, r.is_known()));
        reported.collect::<Vec<_>>()
    };
    let newest = part("d", &revision(3, "z").objects);
    let (good, open) = (Outcome::Deployed, Outcome::Progressing);
    assert_eq!(without(&|_| true), [(1, good, true), (2, good, true), (3, good, true)]);
    assert_eq!(without(&|key| key == newest), [(3, good, true)]);
    assert_eq!(without(&|key| key != newest), [(1, good, true), (2, good, true), (3, open, false)]);
    assert_eq!(without(&|_| false), [(3, open, false)]);
    let mut stored = inventory.stored();
    stored.data.insert(HISTORY.into(), "{".into());
    let error = Inventory::parse("i", &stored).expect_err("damaged");
    assert!(vdo_api::api::chain(&error).contains("its history cannot be read"), "{error:?}");
}

/// An operator that knew no revisions kept what it had applied last of each driver.
#[test]
fn inventory_without_history_has_a_first_revision_of_each_driver() {
    let last = PackedObjects::of([config_map("a", "x")].iter());
    let inventory = Inventory {
        history: [("d".into(), vec![Revision::of(3, last.clone())])].into(),
        ..Inventory::default()
    };
    let mut stored = inventory.stored();
    stored.data.remove(HISTORY);
    let read = Inventory::parse("i", &stored).expect("readable");
    assert_eq!(read.history, [("d".to_owned(), vec![Revision::of(1, last)])].into());
}

#[test]
fn inventory_larger_than_a_secret_is_refused() {
    let entry = |driver: &str| Entry {
        api_version: "v1".into(),
        driver: driver.into(),
        wave: 2,
        uid: Some("4201f8cd-1b9d-0f4c-8a3e-000000000000".into()),
        applied: Some("0123456789abcdef".into()),
    };
    let of = |count: usize| Inventory {
        objects: (0..count)
            .map(|n| {
                (
                    ObjectId::new("", "ConfigMap", "ns", format!("object-{n}")),
                    entry(if n < 3 { "few" } else { "many" }),
                )
            })
            .collect(),
        ..Inventory::default()
    };
    assert_eq!(of(2_000).fits("i"), Ok(()));
    let error = of(10_000).fits("i").expect_err("too large");
    assert_eq!((error.name.as_str(), error.driver.as_str()), ("i", "many"));
    assert!(error.size > Inventory::MOST);
}

#[test]
fn inventory_of_before_forgets_what_the_administrator_brings() {
    let line =
        |group: &str, kind: &str| format!(r#"{{"group":"{group}","kind":"{kind}","name":"x","apiVersion":"v1","driver":"d","wave":1}}"#);
    let lines = [
        line("", "Namespace"),
        line("rbac.authorization.k8s.io", "ClusterRole"),
        line("apps", "DaemonSet"),
    ];
    let read = parse(&BTreeMap::from([("objects".into(), format!("[{}]", lines.join(",")))])).expect("readable");
    let kinds: Vec<&str> = read.objects.keys().map(ObjectId::kind).collect();
    assert_eq!(kinds, ["DaemonSet"]);
}

#[test]
fn inventory_of_newer_schema_is_refused_and_says_what_to_run() {
    let data = |schema: &str| BTreeMap::from([("schema".to_owned(), schema.to_owned()), ("objects".to_owned(), "[]".to_owned())]);
    assert_eq!(Inventory::default().stored().data["schema"], FORM.to_string());
    assert!(parse(&data("1")).is_ok());
    for schema in [
        (FORM + 1).to_string(),
        "99".into(),
        "v2".into(),
        String::new(),
        "99999999999".into(),
    ] {
        let error = parse(&data(&schema)).expect_err("newer");
        let said = vdo_api::api::chain(&error);
        assert!(said.contains(&format!("its schema is {schema:?}")), "{said}");
        assert!(error.is_newer() && said.contains("applyset.kubernetes.io/tooling"), "{said}");
    }
    let damaged = parse(&BTreeMap::from([("objects".into(), "[{".into())])).expect_err("damaged");
    assert!(!damaged.is_newer());
}

#[test]
fn inventory_damaged_data_is_error() {
    for data in [
        BTreeMap::from([("objects".into(), "[{".into())]),
        BTreeMap::from([("objects".into(), String::new())]),
        BTreeMap::from([("clusterId".into(), "id".into())]),
        BTreeMap::new(),
    ] {
        assert!(parse(&data).is_err(), "{data:?}");
    }
}

#[test]
fn inventory_of_the_largest_size_fits() {
    let of = |size: usize| Inventory {
        cluster_id: Some("x".repeat(size)),
        ..Inventory::default()
    };
    assert!((900 << 10..1 << 20).contains(&Inventory::MOST), "a ConfigMap takes less than 1 MiB");
    let rest = Inventory::MOST - of(0).stored().data.values().map(String::len).sum::<usize>();
    assert_eq!(of(rest).fits("i"), Ok(()));
    assert_eq!(of(rest + 1).fits("i").map_err(|error| error.size), Err(Inventory::MOST + 1));
}

/// The driver of which most is kept is named: its lines in the list, and what was applied of it last.
#[test]
fn inventory_too_large_names_driver_with_largest_part() {
    let text: String = (0..20).map(|n: u8| vdo_api::types::Digest::of(&[n]).hex()).collect();
    let last = PackedObjects::of([config_map("a", &text)].iter());
    let lines = last.bytes().len() / 250;
    let of = |listed: usize| {
        let entry = |driver: &str| Entry {
            api_version: "v1".into(),
            driver: driver.into(),
            wave: 2,
            uid: None,
            applied: None,
        };
        let drivers = std::iter::repeat_n("listed", listed).chain(["kept"]);
        let inventory = Inventory {
            objects: drivers
                .enumerate()
                .map(|(n, driver)| (ObjectId::new("", "ConfigMap", "ns", format!("o{n}")), entry(driver)))
                .collect(),
            cluster_id: Some("x".repeat(Inventory::MOST)),
            history: BTreeMap::from([("kept".into(), vec![Revision::of(1, last.clone())])]),
            ..Inventory::default()
        };
        inventory.fits("i").expect_err("too large").driver
    };
    assert!(lines > 1, "{}", last.bytes().len());
    assert_eq!(of(lines + 1), "kept", "one line of its own, and what is kept");
    assert_eq!(of(lines + 2), "listed");
}

#[test]
fn applied_is_the_first_sixteen_digits_of_the_digest() {
    let of = |text: &str| {
        let metadata = serde_json::json!({"name": "c", "annotations": {vdo_api::api::APPLIED_ANNOTATION: text}});
        let value = serde_json::json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata});
        applied(&Object::new(value).expect("an object")).map(str::to_owned)
    };
    assert_eq!(of("sha256:0123456789abcdef0123").as_deref(), Some("0123456789abcdef"));
    assert_eq!(of("0123456789abcdef0123").as_deref(), Some("0123456789abcdef"));
    assert_eq!(of("sha256:0123"), None);
    assert_eq!(applied(&config_map("a", "x")), None);
}
