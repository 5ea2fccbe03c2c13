//! Packages are hostile until proven otherwise.
#![allow(clippy::unwrap_used, missing_docs, reason = "a failing test should stop where it fails")]

use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;
use vdo::chart::{ArchiveError, archive, open, package};
use vdo::fetch::embedded;

/// A package of members as an attacker would write them: the name goes into the header unchecked.
fn packed(members: &[(&[u8], tar::EntryType, &[u8])]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, kind, content) in members {
        let mut header = tar::Header::new_old();
        header.as_mut_bytes()[..name.len()].copy_from_slice(name);
        header.set_entry_type(*kind);
        header.set_mode(0o644);
        header.set_size(content.len() as u64);
        header.set_cksum();
        builder.append(&header, *content).unwrap();
    }
    gzip(&builder.into_inner().unwrap())
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn good() -> Vec<u8> {
    package(&embedded::sources()["vsphere-csi"], &"3.7.3".parse().unwrap()).unwrap()
}

#[test]
fn our_own_packages_open() {
    let files = archive::unpack(&good()).unwrap();
    assert!(files.contains_key("release.yaml") && !files.keys().any(|path| path.starts_with("releases/")));
    assert_eq!(open(&good()).unwrap().label(), "vsphere-csi 3.7.3");
}

#[test]
fn members_that_could_do_harm_are_refused() {
    let regular = tar::EntryType::Regular;
    let cases: Vec<(&[u8], tar::EntryType, &str)> = vec![
        (b"/etc/cron.d/x", regular, "is absolute"),
        (b"top/../../x", regular, "leaves its folder"),
        (b"top/./x", regular, "has an empty path segment"),
        (b"top//x", regular, "has an empty path segment"),
        (b"C:\\x", regular, "is written for another system"),
        (b"top/..\\x", regular, "is written for another system"),
        (b"C:/x", regular, "is written for another system"),
        (b"top/a\nb", regular, "has control characters in its name"),
        (b"top/\xff", regular, "is not UTF-8"),
        (b"Chart.yaml", regular, "has no folder"),
        (b"top/link", tar::EntryType::Symlink, "is not a regular file"),
        (b"top/link", tar::EntryType::Link, "is not a regular file"),
        (b"top/pipe", tar::EntryType::Fifo, "is not a regular file"),
        (b"top/disk", tar::EntryType::Block, "is not a regular file"),
        (b"other/x", regular, "lies outside the first member's folder"),
        (b"top/first", regular, "appears twice"),
    ];
    for (name, kind, expected) in cases {
        let bytes = packed(&[(b"top/first", regular, b"1"), (name, kind, b"")]);
        match archive::unpack(&bytes) {
            Err(ArchiveError::Refused { reason, .. }) => assert_eq!(reason, expected, "{:?}", String::from_utf8_lossy(name)),
            other => assert!(false_with(&other), "{:?} gave {other:?}", String::from_utf8_lossy(name)),
        }
    }
}

fn false_with<T>(_: &T) -> bool {
    false
}

#[test]
fn sizes_are_limited() {
    let regular = tar::EntryType::Regular;
    let large = vec![b'a'; archive::FILE_LIMIT + 1];
    let names: Vec<Vec<u8>> = (0..=archive::FILES_LIMIT).map(|i| format!("top/{i}").into_bytes()).collect();
    let many: Vec<(&[u8], tar::EntryType, &[u8])> = names.iter().map(|name| (name.as_slice(), regular, &b""[..])).collect();
    for bytes in [
        packed(&[(b"top/a", regular, &large)]),
        packed(&many),
        gzip(&vec![0; archive::UNPACKED_LIMIT + 1]), // 16 MiB of zeroes in 70 KiB
        vec![0; archive::PACKED_LIMIT + 1],
    ] {
        assert!(matches!(archive::unpack(&bytes), Err(ArchiveError::TooLarge { .. })));
    }
}

#[test]
fn broken_packages_are_errors_not_panics() {
    assert!(matches!(archive::unpack(&packed(&[])), Err(ArchiveError::Empty)));
    assert!(matches!(
        open(&packed(&[(b"top/x", tar::EntryType::Regular, b"")])),
        Err(ArchiveError::Chart(_))
    ));
    let good = good();
    for cut in [0, 5, 10, 600, good.len() / 2, good.len() - 4] {
        assert!(open(&good[..cut]).is_err(), "cut at {cut}");
    }
    for at in (0..good.len()).step_by(97) {
        let mut bytes = good.clone();
        bytes[at] ^= 0x20;
        drop(open(&bytes)); // an error or, in a comment, none; never a panic
    }
}
