// SPDX-License-Identifier: Apache-2.0
//! Settings with a field of their own, as the parser of the driver reads them.

use super::{connection, csi_text};
use serde_json::json;
use std::collections::BTreeMap;
use vdo_core::driverconfig::csi::{CsiOptions, SnapshotLimits, Tuning};

#[test]
fn csi_config_settings_are_what_the_driver_reads() {
    let options = CsiOptions {
        file_share_clusters: BTreeMap::from([("vc1".to_owned(), vec!["domain-c8".to_owned(), "domain-c9".to_owned()])]),
        migration_datastore_url: Some("ds:///vmfs/volumes/a b/".into()),
        snapshots: SnapshotLimits {
            per_volume: None,
            vsan: Some(4),
            vvol: Some(5),
        },
        tuning: Tuning {
            query_limit: Some(500),
            list_volume_threshold: Some(20),
            auth_check_minutes: Some(10),
            preferred_datastores_minutes: Some(15),
        },
        ..CsiOptions::new("cluster-1")
    };
    let file = csi_text("3.7.3", &options, &[connection("vc1", "vc.example.com")]);
    let read = vdo_testbed::parsed(vdo_testbed::Grammar::Csi, &file).unwrap();
    for (section, key, expected) in [
        ("/Global", "query-limit", json!(500)),
        ("/Global", "list-volume-threshold", json!(20)),
        ("/Global", "csi-auth-check-intervalinmin", json!(10)),
        ("/Global", "csi-fetch-preferred-datastores-intervalinmin", json!(15)),
        (
            "/VirtualCenter/vc.example.com",
            "targetvSANFileShareClusters",
            json!("domain-c8,domain-c9"),
        ),
        (
            "/VirtualCenter/vc.example.com",
            "migration-datastore-url",
            json!("ds:///vmfs/volumes/a b/"),
        ),
        ("/Snapshot", "granular-max-snapshots-per-block-volume-vsan", json!(4)),
        ("/Snapshot", "granular-max-snapshots-per-block-volume-vvol", json!(5)),
    ] {
        let found = read.pointer(section).and_then(|section| section.get(key));
        assert_eq!(found, Some(&expected), "{section} {key}");
    }
}
