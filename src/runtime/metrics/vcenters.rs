// SPDX-License-Identifier: Apache-2.0
//! The Prometheus series about each vCenter, encoded from its last answer at each scrape, so that no old label remains.

use super::lock;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use vdo_api::api::VsphereCloudConfigStatus;
use vdo_vsphere::vsphere::Figures;

/// What is known of one vCenter.
#[derive(Debug, Clone, Default)]
struct Known {
    /// Version and build.
    about: Option<[String; 2]>,
    /// When its certificate ends, in seconds since 1970.
    certificate_ends: Option<i64>,
    figures: Figures,
}

/// The vCenters by connection.
#[derive(Debug, Clone, Default)]
pub(super) struct Vcenters(Arc<Mutex<BTreeMap<String, Known>>>);

impl Vcenters {
    /// Takes what the status of a connection says, and the numbers of a new look. Without one, the numbers stay.
    pub fn set(&self, connection: &str, status: &VsphereCloudConfigStatus, figures: Option<Figures>) {
        let mut all = lock(&self.0);
        let known = all.entry(connection.to_owned()).or_default();
        known.about = status.about.as_ref().map(|about| [about.version.clone(), about.build.clone()]);
        let ends = status.certificate.as_ref().and_then(|certificate| certificate.not_after.as_ref());
        known.certificate_ends = ends.map(|time| time.0.as_second());
        if let Some(figures) = figures {
            known.figures = figures;
        }
    }

    pub fn forget(&self, connection: &str) {
        lock(&self.0).remove(connection);
    }
}

/// A sample: the labels besides the connection, and the value.
type Sample<'a> = (Vec<(&'static str, &'a str)>, i64);

/// A series: its name, its help, and its samples of one vCenter.
type Series = (&'static str, &'static str, for<'a> fn(&'a Known) -> Vec<Sample<'a>>);

const SERIES: [Series; 8] = [
    ("vcenter_info", "The version of the vCenter of a connection", |known| {
        let about = known.about.iter();
        about
            .map(|[version, build]| (vec![("version", version.as_str()), ("build", build.as_str())], 1))
            .collect()
    }),
    (
        "vcenter_certificate_not_after_timestamp_seconds",
        "The time at which the certificate of the vCenter expires",
        |known| known.certificate_ends.iter().map(|ends| (vec![], *ends)).collect(),
    ),
    ("nodes", "Nodes by the state of their machine in the vCenter", |known| {
        by("state", &known.figures.nodes)
    }),
    (
        "node_hardware",
        "Nodes by the hardware version of their machine in the vCenter",
        |known| by("version", &known.figures.hardware),
    ),
    ("esxi_hosts", "Hosts that nodes run on, by the version of ESXi", |known| {
        by("version", &known.figures.hosts)
    }),
    (
        "datastore_capacity_bytes",
        "The size of each datastore that a host of the nodes reaches",
        |known| space(known, |(capacity, _)| capacity),
    ),
    (
        "datastore_free_bytes",
        "The free space of each datastore that a host of the nodes reaches",
        |known| space(known, |(_, free)| free),
    ),
    (
        "volumes",
        "Volumes that the vCenter has registered for the cluster, by kind",
        |known| known.figures.volumes.iter().flat_map(|kinds| by("kind", kinds)).collect(),
    ),
];

fn by<'a>(label: &'static str, counts: &'a BTreeMap<String, u64>) -> Vec<Sample<'a>> {
    let sample = |(word, count): (&'a String, &u64)| (vec![(label, word.as_str())], number(*count));
    counts.iter().map(sample).collect()
}

fn space(known: &Known, of: fn((u64, u64)) -> u64) -> Vec<Sample<'_>> {
    let all = known.figures.datastores.iter();
    all.map(|(path, space)| (vec![("datastore", path.as_str())], number(of(*space))))
        .collect()
}

fn number(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

impl Collector for Vcenters {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let all = lock(&self.0).clone();
        for (name, help, samples) in SERIES {
            let mut series = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            for (connection, known) in &all {
                for (mut labels, value) in samples(known) {
                    labels.insert(0, ("connection", connection));
                    ConstGauge::new(value).encode(series.encode_family(&labels)?)?;
                }
            }
        }
        Ok(())
    }
}
