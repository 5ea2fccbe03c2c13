// SPDX-License-Identifier: Apache-2.0
//! The flags `-f` and `--set` for a change that is not made yet, of `vdoctl plan`, `diff` and `configure drivers`.

use super::Setting;
use clap::Args;
use std::path::PathBuf;

/// What is supposed to be changed before the plan is made.
#[derive(Debug, Clone, Default, PartialEq, Args)]
#[command(next_help_heading = "Change")]
pub struct Preview {
    /// A manifest file as for kubectl apply, with a VDOConfig, VsphereCloudConfigs, Secrets or ConfigMaps; - means stdin
    #[arg(long = "filename", short = 'f', value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Sets a field of the VDOConfig's spec, for example storageProvider.version=3.6.3; the value null removes the field; may be repeated
    #[arg(long = "set", value_name = "FIELD=VALUE")]
    pub settings: Vec<Setting>,
}
