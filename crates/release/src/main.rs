// SPDX-License-Identifier: Apache-2.0
//! Builds the published files of VDO. `make image` and `make release` call it; docs/release.md lists the files.

mod archive;
mod bom;
mod built;
mod bundle;
mod catalog;
mod chart_package;
mod data_image;
mod elf;
mod executable;
mod folder;
mod image;
mod image_archive;
mod image_files;
mod install_yaml;
mod krew;
mod layer;
mod matrix;
mod notes;
mod output;
mod publish;
mod registry;
mod sign;
mod sums;
mod zip;

use anyhow::Result;
use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Builds the published files of VDO. The same input gives the same bytes.
#[derive(Debug, Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Packs the operator into an OCI image layout
    Image(image::Args),
    /// Writes the image of one platform as a file that kind, k3d, minikube, docker, podman and containerd load
    ImageArchive(image_archive::Args),
    /// Pushes the image to a registry, under a tag that is computed from its content
    ImagePush(publish::PushArgs),
    /// Writes the input of deploy/Containerfile, for builds with a container tool
    Context(image_files::Args),
    /// Packs a program and its text files into an archive
    Archive(archive::Args),
    /// Packages the operator's Helm chart
    Chart(chart_package::ChartArgs),
    /// Completes a bill of materials of cargo-cyclonedx
    Bom(bom::Args),
    /// Writes the changelog's section for a version
    Notes(notes::Args),
    /// Writes one file for kubectl from the files that deploy/kustomization.yaml lists
    InstallYaml(install_yaml::Args),
    /// Writes the bundle from which OLM installs the operator
    Bundle(bundle::Args),
    /// Packs a bundle into an OCI image layout
    BundleImage(catalog::BundleArgs),
    /// Writes a catalog of bundles for OLM, and packs it into an OCI image layout
    Catalog(catalog::Args),
    /// Writes the manifest for krew
    Krew(krew::Args),
    /// Writes the matrix and its charts as a folder, signed with the key in VDO_SIGNING_KEY
    Matrix(matrix::Args),
    /// Publishes all artifacts of a version in a registry. Existing artifacts are not sent again, and a published version is not replaced
    Publish(publish::Args),
    /// Writes SHA256SUMS
    Sums(sums::Args),
    /// Signs files with the key in VDO_SIGNING_KEY
    Sign(sign::Args),
}

fn run(command: &Command) -> Result<()> {
    match command {
        Command::Image(args) => image::run(args),
        Command::ImageArchive(args) => image_archive::run(args),
        Command::ImagePush(args) => publish::push(args),
        Command::Context(args) => image_files::context(args),
        Command::Archive(args) => archive::run(args),
        Command::Chart(args) => chart_package::chart(args),
        Command::Bom(args) => bom::run(args),
        Command::Notes(args) => notes::run(args),
        Command::InstallYaml(args) => install_yaml::run(args),
        Command::Bundle(args) => bundle::run(args),
        Command::BundleImage(args) => catalog::pack_bundle(args),
        Command::Catalog(args) => catalog::run(args),
        Command::Krew(args) => krew::run(args),
        Command::Matrix(args) => matrix::run(args),
        Command::Publish(args) => publish::run(args),
        Command::Sums(args) => sums::run(args),
        Command::Sign(args) => sign::run(args),
    }
}

#[expect(clippy::print_stderr, reason = "the one place that reports an error")]
fn main() -> ExitCode {
    match run(&Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("vdo-release: {error:#}");
            ExitCode::FAILURE
        }
    }
}
