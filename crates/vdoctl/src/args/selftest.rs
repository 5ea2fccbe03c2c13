// SPDX-License-Identifier: Apache-2.0
//! `vdoctl selftest` as it is typed.

use clap::{Args, ValueEnum};

/// Arguments of `selftest`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct Selftest {
    /// How the answer is written: table, json, yaml or junit
    #[arg(
        long = "output",
        short = 'o',
        env = "VDO_OUTPUT",
        value_enum,
        hide_possible_values = true,
        value_name = "FORMAT"
    )]
    pub format: Option<SelftestFormat>,
    /// The namespace that the test makes and deletes; refused where it exists and is not of a selftest
    #[arg(long, value_name = "NAME", default_value = "vdo-selftest")]
    pub test_namespace: String,
    /// The StorageClass that is tested; default: the default class of the cluster
    #[arg(long, value_name = "NAME")]
    pub storage_class: Option<String>,
    /// How pods may mount the volume: ReadWriteOnce or ReadWriteMany
    #[arg(
        long,
        value_enum,
        hide_possible_values = true,
        ignore_case = true,
        value_name = "MODE",
        default_value = "ReadWriteOnce"
    )]
    pub access_mode: AccessMode,
    /// Makes every step once in each zone of the CSI driver's topology; needs a class with WaitForFirstConsumer
    #[arg(long)]
    pub zones: bool,
    /// The image of the pods, with sh, sha256sum, df and tail; default: that of the CSI driver on the nodes
    #[arg(long, value_name = "IMAGE")]
    pub image: Option<String>,
    /// Keeps the namespace after a step has failed; the next run deletes it
    #[arg(long)]
    pub keep: bool,
    /// Prints the objects that the test would make, and makes none
    #[arg(long)]
    pub dry_run: bool,
}

/// How the answer of `selftest` is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SelftestFormat {
    /// For people
    #[value(alias = "wide")]
    Table,
    /// For programs, with a stable schema
    Json,
    /// As json, in YAML
    Yaml,
    /// For build servers: a test case for each step
    Junit,
}

/// How pods may mount a volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, strum::IntoStaticStr)]
pub enum AccessMode {
    /// By pods of one node
    #[value(name = "ReadWriteOnce", alias = "rwo")]
    ReadWriteOnce,
    /// By pods of several nodes
    #[value(name = "ReadWriteMany", alias = "rwx")]
    ReadWriteMany,
}
