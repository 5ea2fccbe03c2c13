// SPDX-License-Identifier: Apache-2.0
//! What the fields of a specification become in the values of a driver's chart.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use serde_json::{Value, json};
use vdo_api::api::{BindingMode, CloudProvider, FileVolumes, Images, IpFamily, StorageClass, StorageProvider, VDOConfigSpec};
use vdo_core::chart::{self, Chart};
use vdo_core::drivers;

fn chart(name: &str, version: &str) -> Result<Chart, Box<dyn std::error::Error>> {
    let sources = vdo_source::fetch::embedded::sources();
    let (_, source) = sources.iter().find(|(driver, _)| *driver == name).ok_or("no such chart")?;
    Ok(chart::open(&chart::package(source, &version.parse()?)?)?)
}

fn values_of(spec: &VDOConfigSpec, chart: &Chart) -> Result<Value, Box<dyn std::error::Error>> {
    let values = drivers::values(spec, chart, None);
    chart::accepted(chart, &values)?;
    Ok(values)
}

#[test]
fn chart_values_default_spec_sets_images_and_replicas() -> Result<(), Box<dyn std::error::Error>> {
    let csi = chart("vsphere-csi", "3.7.3")?;
    let cpi = chart("vsphere-cpi", "1.34.0")?;
    let spec = VDOConfigSpec::default();
    let plain = json!({"images": {"useRepublished": true}, "controller": {"replicas": "auto"}, "podDisruptionBudgets": true});
    assert_eq!(values_of(&spec, &csi)?, plain);
    assert_eq!(values_of(&spec, &cpi)?, json!({"images": {"useRepublished": true}}));
    Ok(())
}

/// A mirror holds the references that the matrix lists.
#[test]
fn chart_values_image_registry_in_spec_is_used() -> Result<(), Box<dyn std::error::Error>> {
    let cpi = chart("vsphere-cpi", "1.34.0")?;
    let spec = VDOConfigSpec {
        images: Some(Images {
            registry: Some("mirror.example".into()),
            ..Images::default()
        }),
        ..VDOConfigSpec::default()
    };
    assert_eq!(values_of(&spec, &cpi)?, json!({"images": {"registry": "mirror.example"}}));
    Ok(())
}

#[test]
fn chart_values_storage_classes_in_spec_are_rendered() -> Result<(), Box<dyn std::error::Error>> {
    let csi = chart("vsphere-csi", "3.7.3")?;
    let spec = VDOConfigSpec {
        storage_provider: Some(StorageProvider {
            storage_classes: vec![StorageClass {
                name: "gold".into(),
                storage_policy: Some("Gold".into()),
                binding_mode: Some(BindingMode::Immediate),
                ..StorageClass::default()
            }],
            ..StorageProvider::default()
        }),
        ..VDOConfigSpec::default()
    };
    let values = values_of(&spec, &csi)?;
    let expected = json!([{"name": "gold", "storagePolicy": "Gold", "bindingMode": "Immediate"}]);
    assert_eq!(values["storageClasses"], expected);
    Ok(())
}

/// The CPI starts with two families of addresses only where that is allowed.
#[test]
fn chart_values_of_two_ip_families_allow_them() -> Result<(), Box<dyn std::error::Error>> {
    let cpi = chart("vsphere-cpi", "1.34.0")?;
    for (families, expected) in [
        (vec![], json!(null)),
        (vec![IpFamily::IPv6], json!(null)),
        (vec![IpFamily::IPv6, IpFamily::IPv4], json!({"ENABLE_ALPHA_DUAL_STACK": "true"})),
    ] {
        let spec = VDOConfigSpec {
            cloud_provider: Some(CloudProvider {
                ip_families: families,
                ..CloudProvider::default()
            }),
            ..VDOConfigSpec::default()
        };
        assert_eq!(values_of(&spec, &cpi)?["env"], expected);
    }
    Ok(())
}

/// An option without an effect is named with its field, the version and the reason.
#[test]
fn options_that_a_version_cannot_use_are_named() -> Result<(), Box<dyn std::error::Error>> {
    let spec = VDOConfigSpec {
        storage_provider: Some(StorageProvider {
            file_volumes: Some(FileVolumes {
                vsan_data_store_url: vec!["ds:///vmfs/volumes/vsan:1/".into()],
                ..FileVolumes::default()
            }),
            features: [("high-pv-node-density", true), ("csi-transaction-support", false)]
                .map(|(state, on)| (state.to_owned(), on))
                .into(),
            values: serde_json::from_value(json!({"featureStates": {"csi-transaction-support": true}}))?,
            ..StorageProvider::default()
        }),
        ..VDOConfigSpec::default()
    };
    let unknown = |option: &str, version: &str| {
        format!("spec.storageProvider.{option} has no effect with CSI {version}: the version has no feature state of this name")
    };
    let url = "spec.storageProvider.fileVolumes.vsanDataStoreUrl has no effect with CSI 3.7.3: CSI 3.2.0 and later put file \
               shares on the datastores of the clusters that have the vSAN file service";
    for (version, expected) in [
        (
            "3.1.0",
            vec![
                unknown("features[high-pv-node-density]", "3.1.0"),
                unknown("values.featureStates[csi-transaction-support]", "3.1.0"),
            ],
        ),
        (
            "3.7.3",
            vec![url.to_owned(), unknown("values.featureStates[csi-transaction-support]", "3.7.3")],
        ),
    ] {
        assert_eq!(drivers::ignored(&spec, &chart("vsphere-csi", version)?), expected);
    }
    assert!(drivers::ignored(&spec, &chart("vsphere-cpi", "1.34.0")?).is_empty());
    Ok(())
}
