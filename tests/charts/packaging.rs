// SPDX-License-Identifier: Apache-2.0
//! A package is the same bytes, no matter who builds it, and Helm reads it.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    missing_docs,
    reason = "a failing test should stop where it fails"
)]

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};
use vdo_api::types::Digest;
use vdo_core::chart::{self, Source};
use vdo_source::fetch::embedded;
use vdo_testbed::{Binaries, Part};

use crate::generate::matrix;
use crate::sample::some_or_all;

/// Copies a folder, the files in reverse order, with other modes and times.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    let mut entries: Vec<_> = fs::read_dir(from).unwrap().map(Result::unwrap).collect();
    entries.sort_by_key(|entry| std::cmp::Reverse(entry.file_name()));
    for entry in entries {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), &target).unwrap();
            let file = fs::File::options().write(true).open(&target).unwrap();
            file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_007))
                .unwrap();
            fs::set_permissions(&target, Permissions::from_mode(0o600)).unwrap();
        }
    }
}

#[test]
fn package_file_order_times_and_modes_give_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    for driver in ["vsphere-cpi", "vsphere-csi"] {
        let original = Path::new(env!("CARGO_MANIFEST_DIR")).join("charts").join(driver);
        let copied = folder.path().join(driver);
        copy(&original, &copied);
        let (original, copied): (Source, Source) = (matrix::source(&original).unwrap(), matrix::source(&copied).unwrap());
        for version in original.versions() {
            let package = |source: &Source| Digest::of(&chart::package(source, &version).unwrap());
            assert_eq!(package(&original), package(&copied), "{driver} {version}");
        }
    }
}

#[test]
fn package_umask_time_zone_and_locale_give_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    for driver in ["vsphere-cpi", "vsphere-csi"] {
        let source = &embedded::sources()[driver];
        let version = source.versions().last().unwrap().to_string();
        let expected = Digest::of(&chart::package(source, &version.parse().unwrap()).unwrap());
        for (umask, zone, locale) in [
            ("000", "UTC", "C"),
            ("077", "Pacific/Kiritimati", "tr_TR.UTF-8"),
            ("027", "America/St_Johns", "de_DE.ISO-8859-1"),
        ] {
            let file = folder.path().join(format!("{driver}-{umask}.tgz"));
            let status = Command::new("sh")
                .args([
                    "-c",
                    "umask $0 && exec \"$@\"",
                    umask,
                    vdo_testbed::vdoctl(),
                    "chart",
                    "package",
                    driver,
                ])
                .args(["--version", &version, "-o"])
                .arg(&file)
                .envs([("TZ", zone), ("LANG", locale), ("LC_ALL", locale)])
                .status()
                .unwrap();
            assert!(status.success(), "{driver} {umask}");
            assert_eq!(Digest::of(&fs::read(&file).unwrap()), expected, "{driver}: {umask} {zone} {locale}");
        }
    }
}

#[test]
fn package_of_a_chart_is_readable_by_helm() {
    let helm = Binaries::ensure(&[Part::Helm]).unwrap().path(Part::Helm);
    let folder = tempfile::tempdir().unwrap();
    let sources = embedded::sources();
    let of = |(driver, source)| Source::versions(source).into_iter().map(move |version| (driver, source, version));
    let all: Vec<_> = sources.iter().flat_map(of).collect();
    for (driver, source, version) in some_or_all("packages for Helm", &all, 12) {
        let file = folder.path().join(format!("{driver}-{version}.tgz"));
        fs::write(&file, chart::package(source, &version).unwrap()).unwrap();
        let show = |what: &str| {
            let output = Command::new(&helm).args(["show", what]).arg(&file).output().unwrap();
            let text = String::from_utf8(output.stdout).unwrap();
            assert!(
                output.status.success(),
                "{driver} {version}: {}",
                String::from_utf8_lossy(&output.stderr)
            );
            vdo_api::yaml::load_value(&text).unwrap()
        };
        let shown = show("chart");
        assert_eq!(shown["name"], driver.as_str());
        assert_eq!(shown["version"], version.to_string());
        let opened = chart::open(&fs::read(&file).unwrap()).unwrap();
        assert_eq!(show("values"), opened.values, "{driver} {version}");
    }
}
