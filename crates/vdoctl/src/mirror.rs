// SPDX-License-Identifier: Apache-2.0
//! `vdoctl mirror`: calls its verbs, shows the progress of transfers, and parses the place `oci://HOST/PREFIX` of a mirror in a registry.
//!
//! ```text
//!   source --collect--> Stock (versions, charts, references) --find--> images --pull--> bundle --push--> registry
//!                                                                      images -------copy-------------> registry
//! ```

mod bundle;
mod cluster;
mod collect;
mod copy;
mod find;
mod narrow;
mod prune;
mod pull;
mod push;
pub(super) mod registries;
mod remote;
mod use_in_cluster;
mod verify;

use super::args::{Format, Global, Mirror as Args, MirrorVerb};
use super::printer::Printer;
use super::progress::Progress;
use super::registry::reference;
use super::{Answer, CliError, Exit};
use std::io::{self, IsTerminal as _};
use std::pin::pin;
use std::time::Duration;
use vdo_api::types::{Later as _, count};
use vdo_core::mirror_lock::MATRIX;
use vdo_oci::layout::LayoutError;
use vdo_oci::registry::Reference;
use vdo_oci::transfer::{Meter, TransferError};

pub(super) async fn run(args: &Args, global: &Global, printer: &mut Printer) -> Result<Answer, CliError> {
    match &args.verb {
        MirrorVerb::Pull(args) => pull::run(args, global, &mut progress(printer, args.output.format)).await,
        MirrorVerb::Verify(args) => verify::run(args, global).await,
        MirrorVerb::Push(args) => push::run(args, global, &mut progress(printer, args.output.format)).await,
        MirrorVerb::Copy(args) => copy::run(args, global, &mut progress(printer, args.output.format)).await,
        MirrorVerb::Prune(args) => prune::run(args),
    }
}

fn progress(printer: &Printer, format: Option<Format>) -> Progress {
    Progress::new(printer, format.unwrap_or(Format::Table))
}

/// Shows how far something is, until it is done.
async fn watched<T>(progress: &mut Progress, meter: &Meter, what: &str, work: impl Future<Output = T>) -> T {
    // A pipe keeps every line.
    let period = if io::stdout().is_terminal() {
        Duration::from_millis(500)
    } else {
        Duration::from_secs(10)
    };
    let mut work = pin!(work);
    let mut ticks = tokio::time::interval_at(tokio::time::Instant::now().later(period), period);
    loop {
        tokio::select! {
            biased;
            done = &mut work => return done,
            _ = ticks.tick() => {
                let line = match meter.read() {
                    (_, _, 0) => what.to_owned(),
                    (blobs, moved, total) => format!("{what}: {} of {}, {} complete", size(moved), size(total), count(blobs as usize, "blob")),
                };
                progress.waiting(&[line]);
            }
        }
    }
}

/// Bytes for people, in powers of 1024.
fn size(bytes: u64) -> String {
    let mut value = bytes as f64;
    for unit in ["B", "KiB", "MiB"] {
        if value < 1024.0 {
            return if unit == "B" {
                format!("{bytes} B")
            } else {
                format!("{value:.1} {unit}")
            };
        }
        value /= 1024.0;
    }
    format!("{value:.1} GiB")
}

fn failed(error: &TransferError) -> CliError {
    let missing = matches!(error, TransferError::Registry(error) if error.is_missing());
    CliError::of(if missing { Exit::NotFound } else { Exit::Refused }, error)
}

fn unreadable(error: &LayoutError) -> CliError {
    let exit = match error {
        LayoutError::None { .. } => Exit::NotFound,
        _ => Exit::Refused,
    };
    CliError::of(exit, error)
}

/// Where a mirror is in a registry: `HOST/PREFIX`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Prefix(String);

impl Prefix {
    fn parse(text: &str) -> Result<Self, CliError> {
        let wrong = || {
            CliError::new(
                Exit::Usage,
                format!("{text} is not a prefix of a registry"),
                "Write oci://HOST/PREFIX.",
            )
        };
        let rest = text.strip_prefix("oci://").ok_or_else(wrong)?.trim_end_matches('/');
        let prefix = Self(rest.to_owned());
        // What is a prefix is one of a reference.
        let known = prefix.at(MATRIX).map_err(|_| wrong())?;
        (known.tag.is_some() && !rest.is_empty()).then_some(prefix).ok_or_else(wrong)
    }

    /// Something below it.
    fn at(&self, path: &str) -> Result<Reference, CliError> {
        reference(&format!("oci://{}/{path}", self.0))
    }

    /// Where the matrix lies.
    fn matrix(&self) -> Result<Reference, CliError> {
        self.at(MATRIX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_written_for_people() {
        for (bytes, expected) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (5 << 20, "5.0 MiB"),
            (3 << 30, "3.0 GiB"),
        ] {
            assert_eq!(size(bytes), expected);
        }
    }

    #[test]
    fn prefix_is_a_host_and_a_path_without_a_tag() {
        for (text, expected) in [
            ("oci://r.example/vsphere", Some("r.example/vsphere")),
            ("oci://r.example:5000/a/b/", Some("r.example:5000/a/b")),
            ("oci://r.example", Some("r.example")),
            ("oci://r.example/a:1", None),
            ("r.example/a", None),
            ("oci://", None),
        ] {
            assert_eq!(Prefix::parse(text).ok().map(|prefix| prefix.0).as_deref(), expected, "{text}");
        }
    }
}
