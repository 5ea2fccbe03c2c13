// SPDX-License-Identifier: Apache-2.0
//! Charts: archives, values, rendering, and what the drivers themselves ship.
#![allow(missing_docs, reason = "tests")]

mod add_release;
mod archive;
#[path = "../common/attacks.rs"]
mod attacks;
mod classes;
mod content;
#[path = "../common/contents.rs"]
mod contents;
mod drains;
mod fixture;
#[path = "../common/follow.rs"]
mod follow;
#[path = "../../examples/generate/parts.rs"]
mod generate;
mod import;
mod oci;
mod operator_chart;
mod packaging;
mod render;
mod resources;
mod rights;
mod rollout;
#[path = "../common/sample.rs"]
mod sample;
mod source;
mod specification;
mod template_limits;
mod upstream;
mod values;
