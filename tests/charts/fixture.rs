// SPDX-License-Identifier: Apache-2.0
//! The charts of this repository, and what they render.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use crate::generate::matrix;
use serde_json::Value;
use std::borrow::Borrow;
use std::path::Path;
use vdo_api::types::DriverVersion;
use vdo_core::chart::{self, Chart, Context, Source};

pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The source of a driver's charts.
pub fn source(driver: &str) -> Source {
    matrix::source(&root().join("charts").join(driver)).unwrap()
}

/// One release of a source, packaged and opened.
pub fn release(source: &Source, version: &DriverVersion) -> Chart {
    chart::open(&chart::package(source, version).unwrap()).unwrap()
}

pub fn chart(driver: &str, version: &str) -> Chart {
    release(&source(driver), &version.parse().unwrap())
}

/// What a chart renders without a cluster.
pub fn render(chart: &Chart, values: impl Borrow<Value>) -> Vec<Value> {
    chart::render(chart, values.borrow(), &Context::default()).unwrap_or_else(|error| panic!("{}", chain(&error)))
}

/// An error with all its causes.
pub fn chain(error: &dyn std::error::Error) -> String {
    error
        .source()
        .map_or(error.to_string(), |source| format!("{error}: {}", chain(source)))
}

pub fn find<'a>(objects: &'a [Value], kind: &str, name: &str) -> &'a Value {
    let found = objects.iter().find(|o| o["kind"] == kind && o["metadata"]["name"] == name);
    found.unwrap_or_else(|| panic!("no {kind} {name}"))
}
