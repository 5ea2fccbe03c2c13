// SPDX-License-Identifier: Apache-2.0
//! What the fuzzer does with any bytes. The tests include this file: `tests/pure/seeds.rs` does
//! the same with the seeds.
//!
//! Each function ends with what became of the bytes, as words; a panic is a finding, and so is a run that takes long or much memory.

pub mod readers;

use std::collections::BTreeMap;
use std::io::Write as _;
use vdo_api::types::{DriverVersion, Secret};
use vdo_core::chart::{self, Context};
use vdo_core::driverconfig::cpi::{self, CpiOptions};
use vdo_core::driverconfig::csi::{self, CsiOptions};
use vdo_core::driverconfig::{Connection, Trust};
use vdo_core::matrix::Index;

/// Why the bytes were refused.
pub type Outcome = Result<(), String>;

fn words(error: impl std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        text = format!("{text}: {source}");
        next = source.source();
    }
    text
}

fn text(bytes: &[u8]) -> Result<&str, String> {
    std::str::from_utf8(bytes).map_err(|error| error.to_string())
}

/// A tar archive as the package of a chart, which is rendered when it opens. It is compressed here: the fuzzer knows no checksums.
pub fn archive(bytes: &[u8]) -> Outcome {
    let mut package = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
    package.write_all(bytes).map_err(words)?;
    let chart = chart::open(&package.finish().map_err(words)?).map_err(words)?;
    chart::render(&chart, &serde_json::Value::Null, &Context::default()).map_err(words)?;
    Ok(())
}

/// A matrix index, of this format or the original operator's.
pub fn index(bytes: &[u8]) -> Outcome {
    Index::parse(bytes).map(drop).map_err(words)
}

/// Fields with `¦` between: user, password, server, datacenters (with commas), cluster id, distribution, topology categories. The drivers'
/// files say just that, or are refused.
pub fn config(bytes: &[u8]) -> Outcome {
    let mut fields = text(bytes)?.split('¦').map(str::to_owned);
    let mut field = || fields.next().unwrap_or_default();
    let list = |text: String| {
        text.split(',')
            .filter(|name| !name.is_empty())
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let connection = Connection {
        name: "vc1".into(),
        user: field(),
        password: Secret::new(field()),
        server: field(),
        port: 443,
        datacenters: list(field()),
        trust: Trust::SystemRoots,
        sha1: None,
    };
    let options = CsiOptions {
        cluster_id: field(),
        cluster_distribution: Some(field()).filter(|text| !text.is_empty()),
        topology_categories: list(field()),
        ..CsiOptions::default()
    };
    let given = std::slice::from_ref(&connection);
    let csi = csi(
        &connection,
        &options,
        csi::render(&version("3.1.1")?, &options, given).map_err(words),
    );
    let cpi = cpi(&connection, cpi::render(&version("1.34.0")?, &cpi_options(), given).map_err(words));
    csi.and(cpi)
}

fn version(text: &str) -> Result<DriverVersion, String> {
    text.parse().map_err(words)
}

fn cpi_options() -> CpiOptions {
    CpiOptions {
        secret_name: "vsphere-cloud-secret".into(),
        secret_namespace: "kube-system".into(),
        ..CpiOptions::default()
    }
}

fn csi(connection: &Connection, options: &CsiOptions, files: Result<BTreeMap<String, Secret>, String>) -> Outcome {
    let read = readers::read_gcfg(files?[csi::FILE].expose()).expect("the driver reads the file");
    let of = |section: &str, sub: &str, key: &str| read.get(&(section.into(), sub.into(), key.into())).map_or("", String::as_str);
    let vcenter = |key| of("virtualcenter", &connection.server, key);
    assert_eq!(vcenter("user"), connection.user);
    assert_eq!(vcenter("password"), connection.password.expose());
    assert_eq!(vcenter("datacenters"), connection.datacenters.join(","));
    assert_eq!(of("global", "", "cluster-id"), options.cluster_id);
    assert_eq!(
        of("global", "", "cluster-distribution"),
        options.cluster_distribution.as_deref().unwrap_or_default()
    );
    assert_eq!(of("labels", "", "topology-categories"), options.topology_categories.join(","));
    let sections = read
        .keys()
        .filter(|(section, ..)| section == "virtualcenter")
        .map(|(_, sub, _)| sub);
    assert!(
        sections.clone().all(|sub| *sub == connection.server),
        "another vCenter is in the file"
    );
    Ok(())
}

fn cpi(connection: &Connection, config: Result<cpi::CpiConfig, String>) -> Outcome {
    let config = config?;
    let read = vdo_api::yaml::load_value(&config.conf).expect("the driver reads the file");
    let vcenters = read["vcenter"].as_object().expect("vCenters");
    assert_eq!(vcenters.len(), 1);
    let vcenter = &vcenters["vc1"];
    assert_eq!(vcenter["server"], connection.server);
    let names: Vec<_> = vcenter["datacenters"].as_array().into_iter().flatten().collect();
    assert!(names.iter().copied().eq(connection.datacenters.iter()), "{names:?}");
    let meant = (connection.user.clone(), connection.password.expose().to_owned());
    assert_eq!(
        readers::read_cpi_secret(&config.secret),
        BTreeMap::from([(connection.server.clone(), meant)])
    );
    Ok(())
}
