// SPDX-License-Identifier: Apache-2.0
//! The flags of `vdoctl selftest` with their help: `--storage-class`, `--access-mode`, `--zones`, `--image`, `--keep`, `-o junit`.

use clap::{Args, ValueEnum};

/// Arguments of `selftest`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct Selftest {
    /// The output format: table, json, yaml or junit
    #[arg(
        long = "output",
        short = 'o',
        env = "VDO_OUTPUT",
        value_enum,
        hide_possible_values = true,
        value_name = "FORMAT"
    )]
    pub format: Option<SelftestFormat>,
    /// The namespace that the test creates and deletes; an existing namespace is accepted only if a selftest created it
    #[arg(long, value_name = "NAME", default_value = "vdo-selftest")]
    pub test_namespace: String,
    /// The StorageClass to test; default: the default StorageClass of the cluster
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
    /// Runs every step once in each zone of the CSI driver's topology; requires a StorageClass with WaitForFirstConsumer
    #[arg(long)]
    pub zones: bool,
    /// The image of the test pods, which needs sh, sha256sum, df, tail and sync; default: the image of the CSI driver on the nodes
    #[arg(long, value_name = "IMAGE")]
    pub image: Option<String>,
    /// Keeps the namespace if a step fails; the next run deletes the namespace
    #[arg(long)]
    pub keep: bool,
    /// Prints the objects that the test would create, and creates none of them
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
    /// The same data as json, in YAML
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
