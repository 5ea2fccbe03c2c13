// SPDX-License-Identifier: Apache-2.0
//! Builds the programs of the test bed, one after the other, and says how long it will take.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use super::screen::Screen;
use super::show::found;
use super::{CSI, PARTS};
use crate::{Binaries, Part};

/// Builds what the demonstration needs, beside the rest of the project.
pub async fn build() -> Result<()> {
    let parts: Vec<Part> = PARTS.into_iter().chain(CSI[0].parts()).collect();
    ensure_all(&mut Screen::of_lines(), &parts).await
}

/// Builds those that are missing.
pub(super) async fn ensure_all(screen: &mut Screen, parts: &[Part]) -> Result<()> {
    let binaries = Binaries::ensure_quietly(&[])?;
    let missing: Vec<Part> = parts.iter().copied().filter(|part| !binaries.path(*part).is_file()).collect();
    if missing.is_empty() {
        screen.done("programs of the test bed are built");
        return Ok(());
    }
    ensure!(
        found("go"),
        "go is missing, and {} programs have to be built with it. Install Go 1.26 or newer: https://go.dev/dl/",
        missing.len()
    );
    screen.text(format!(
        "{} programs of the test bed are missing in\n{}\nAll take about twenty minutes on two cores, a minute when Go has them cached.",
        missing.len(),
        binaries.folder().display()
    ));
    let begun = Instant::now();
    for (n, part) in missing.iter().copied().enumerate() {
        let what = format!("{} ({} of {})", part.file_name(), n + 1, missing.len());
        let built = tokio::task::spawn_blocking(move || Binaries::ensure_quietly(&[part]));
        screen.during(&format!("building {what}"), built).await??;
        let (done, left) = missing.split_at(n + 1);
        screen.done(format!("built {what}{}", time_left(begun.elapsed(), done, left)));
    }
    Ok(())
}

/// How many Go packages a program needs beside those of the programs before it, which is roughly what its build takes: as `go list -deps`
/// counts them, in the order in which the demonstration builds them.
fn packages(part: Part) -> u32 {
    match part {
        Part::Vcsim => 274,
        Part::Etcd => 368,
        Part::Apiserver => 1592,
        Part::ControllerManager => 375,
        Part::Kubectl => 195,
        Part::Kwok => 685,
        Part::Cpi => 979,
        Part::CsiDriver => 407,
        Part::CsiSyncer => 103,
        Part::CsiAttacher => 365,
        // Each of the others has fewer than 50.
        _ => 20,
    }
}

/// How long the rest takes when it goes on as before, as the end of a message.
fn time_left(elapsed: Duration, done: &[Part], left: &[Part]) -> String {
    let count = |parts: &[Part]| parts.iter().map(|part| packages(*part)).sum::<u32>();
    let seconds = elapsed.as_secs() * u64::from(count(left)) / u64::from(count(done).max(1));
    match (left, seconds) {
        ([], _) => String::new(),
        (_, 0..60) => ", less than a minute left".into(),
        _ => format!(", about {} min left", seconds.div_ceil(60)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_left_follows_the_packages_that_are_left() {
        let (small, large) = (Part::Vcsim, Part::Apiserver);
        for (seconds, done, left, expected) in [
            (60, &[small][..], &[][..], ""),
            (60, &[small], &[large], ", about 6 min left"),
            (60, &[large], &[small], ", less than a minute left"),
            (600, &[large, small], &[Part::Cpi], ", about 6 min left"),
        ] {
            assert_eq!(time_left(Duration::from_secs(seconds), done, left), expected);
        }
    }
}
