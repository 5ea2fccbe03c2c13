// SPDX-License-Identifier: Apache-2.0
//! Packages are hostile until proven otherwise.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    missing_docs,
    reason = "a failing test should stop where it fails"
)]

use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;
use vdo_core::chart::{ArchiveError, archive, open, package};
use vdo_source::fetch::embedded;

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
fn archive_own_package_opens() {
    let files = archive::unpack(&good()).unwrap();
    assert!(files.contains_key("release.yaml") && !files.keys().any(|path| path.starts_with("releases/")));
    assert_eq!(open(&good()).unwrap().label(), "vsphere-csi 3.7.3");
}

type Member = (Vec<u8>, u8, Vec<u8>);

/// A tar archive with headers as given: nothing is checked, and `change` has the last word on the last header.
fn raw(members: &[Member], change: impl Fn(&mut [u8; 512]), checksum: bool) -> Vec<u8> {
    let mut out = Vec::new();
    for (at, (name, kind, content)) in members.iter().enumerate() {
        let mut header = tar::Header::new_ustar();
        header.set_mode(0o644);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(0);
        header.set_size(content.len() as u64);
        let bytes = header.as_mut_bytes();
        bytes[..name.len().min(100)].copy_from_slice(&name[..name.len().min(100)]);
        bytes[156] = *kind;
        if at + 1 == members.len() {
            change(bytes);
        }
        if checksum || at + 1 < members.len() {
            header.set_cksum();
        }
        out.extend(header.as_bytes());
        out.extend(content);
        out.resize(out.len().next_multiple_of(512), 0);
    }
    out.resize(out.len() + 1024, 0);
    out
}

/// The archive of one honest member and this one.
fn second(name: &[u8], kind: u8, content: &[u8]) -> Vec<u8> {
    let members = [
        (b"top/first".to_vec(), b'0', b"1".to_vec()),
        (name.to_vec(), kind, content.to_vec()),
    ];
    gzip(&raw(&members, |_| {}, true))
}

fn changed(change: impl Fn(&mut [u8; 512])) -> Vec<u8> {
    gzip(&raw(&[(b"top/first".to_vec(), b'0', b"1".to_vec())], change, true))
}

fn pax(record: &str) -> Vec<u8> {
    let mut length = record.len() + 3;
    while length != format!("{length} {record}\n").len() {
        length += 1;
    }
    format!("{length} {record}\n").into_bytes()
}

/// Hostile archives: what each tries, its bytes, and a part of the error it has to end with.
fn hostile() -> Vec<(String, Vec<u8>, &'static str)> {
    let mut all: Vec<(String, Vec<u8>, &'static str)> = Vec::new();
    for (expected, names) in [
        ("is absolute", &["/etc/passwd", "/", "//top/x", "/top/first", "///"][..]),
        (
            "leads out of its folder",
            &[
                "..",
                "../x",
                "top/..",
                "top/../x",
                "top/../../x",
                "top/a/../../../x",
                "../top/first",
                "top/a/..",
                "top/.../../x",
            ],
        ),
        (
            "has a backslash or a colon in its name",
            &[
                "C:\\x",
                "C:/x",
                "c:x",
                "top\\x",
                "top/..\\..\\x",
                "\\\\server\\share",
                "top/a:stream",
                "\\x",
                "file:///etc/passwd",
            ],
        ),
        (
            "has an empty path segment",
            &["top//x", "top/./x", "./top/x", "top/", "top/x/", "top/.", "."],
        ),
        (
            "has control characters",
            &["top/a\nb", "top/a\tb", "top/\u{1b}[2J", "top/\u{7f}", "top/a\rb", "top/\u{8}x"],
        ),
        (
            "not ASCII",
            &[
                "top/\u{e9}",
                "top/e\u{301}",
                "top/\u{ff0e}\u{ff0e}/x",
                "top/\u{2215}x",
                "top/\u{202e}lmay",
                "top/\u{feff}x",
                "t\u{f6}p/x",
                "top/\u{2024}\u{2024}/x",
            ],
        ),
        (
            "has special characters in its name",
            &[
                "top/%2e%2e/x",
                "..%2fx",
                "top/*",
                "top/a?",
                "top/a|b",
                "top/<x>",
                "top/\"x\"",
                "~/x",
                "~root/x",
            ],
        ),
        (
            "starts or ends with a blank, or ends with a dot",
            &["top/a.", "top/a ", "top/ a", "top./x", "top /x", " /x", "top/.. /x", "top/..."],
        ),
        ("is not in a folder", &["Chart.yaml", "x"]),
        (
            "not in the same folder as the first file",
            &["other/x", "Top/x", "top2/first", "to/p/x"],
        ),
        ("appears twice;", &["top/first"]),
        ("in capital and small letters", &["top/First", "top/FIRST"]),
        ("lies below a file", &["top/first/x", "top/first/x/y", "top/FIRST/x"]),
        ("is nested too deep", &["top/1/2/3/4/5/6/7/8", "top/a/a/a/a/a/a/a/a/a/a/a/a"]),
    ] {
        for name in names {
            all.push((format!("name {name:?}"), second(name.as_bytes(), b'0', b""), expected));
        }
    }
    all.push(("name that is not UTF-8".into(), second(b"top/\xff", b'0', b""), "is not UTF-8"));
    all.push(("overlong dots".into(), second(b"top/\xc0\xae\xc0\xae/x", b'0', b""), "is not UTF-8"));
    all.push((
        "name behind a NUL".into(),
        second(b"top/a\0/../x", b'0', b""),
        "other data after its name",
    ));
    all.push(("no name".into(), second(b"", b'0', b""), "has no name"));
    for (kind, expected) in [
        (b'1', "is a link"),
        (b'2', "is a link"),
        (b'3', "device or a pipe"),
        (b'4', "device or a pipe"),
        (b'6', "device or a pipe"),
        (b'7', "not a regular file"),
        (b'S', "is a sparse file"),
        (b'D', "not a regular file"),
        (b'M', "not a regular file"),
        (b'V', "not a regular file"),
        (b'N', "not a regular file"),
        (b's', "not a regular file"),
        (b'Z', "not a regular file"),
        (0xff, "not a regular file"),
        (b'L', "header of another member"),
        (b'K', "header of another member"),
        (b'x', "header of another member"),
        (b'g', "header of another member"),
    ] {
        all.push((format!("kind {:?}", char::from(kind)), second(b"top/x", kind, b""), expected));
    }
    for record in [
        "path=/etc/passwd",
        "path=../x",
        "size=99999999999",
        "linkpath=/etc/passwd",
        "GNU.sparse.name=/etc/passwd",
        "GNU.sparse.realsize=99999999",
        "hdrcharset=BINARY",
        "comment=hello",
    ] {
        for kind in *b"xg" {
            let members = [
                (b"top/PaxHeaders/x".to_vec(), kind, pax(record)),
                (b"top/x".to_vec(), b'0', b"1".to_vec()),
            ];
            let label = format!("PAX {} {record}", char::from(kind));
            all.push((label, gzip(&raw(&members, |_| {}, true)), "header of another member"));
        }
    }
    let long = [
        (b"././@LongLink".to_vec(), b'L', b"../../etc/passwd\0".to_vec()),
        (b"top/x".to_vec(), b'0', b"1".to_vec()),
    ];
    all.push(("GNU long name".into(), gzip(&raw(&long, |_| {}, true)), "header of another member"));
    all.push(("folder with content".into(), second(b"top/x/", b'5', b"1"), "folder with content"));
    all.push(("folder outside".into(), second(b"../x/", b'5', b""), "leads out of its folder"));
    all.push(("absolute folder".into(), second(b"/x/", b'5', b""), "is absolute"));
    all.push((
        "folder of another top".into(),
        second(b"other/", b'5', b""),
        "not in the same folder as the first file",
    ));
    all.push((
        "folder that is a file".into(),
        second(b"top/first/", b'5', b""),
        "both a file and a folder",
    ));
    all.push((
        "path in the prefix".into(),
        changed(|header| header[345..348].copy_from_slice(b"../")),
        "leads out of its folder",
    ));
    all.push((
        "long path".into(),
        changed(|header| {
            header[..100].fill(b'a');
            header[345..450].fill(b'b');
        }),
        "too long",
    ));
    all.push((
        "size of eight exbibytes".into(),
        changed(|header| header[124..136].copy_from_slice(&[0x80, 0, 0, 0, 0x7f, 255, 255, 255, 255, 255, 255, 255])),
        "a file is limited to",
    ));
    all.push((
        "size in letters".into(),
        changed(|header| header[124..136].fill(b'z')),
        "no readable size",
    ));
    all.push((
        "size beyond the end".into(),
        changed(|header| header[124..136].copy_from_slice(b"00000100000\0")),
        "a member is cut off",
    ));
    let wrong = raw(
        &[(b"top/first".to_vec(), b'0', vec![])],
        |header| header[148..156].copy_from_slice(b"000001\0 "),
        false,
    );
    all.push(("wrong checksum".into(), gzip(&wrong), "checksum of a member's header"));
    let honest = raw(&[(b"top/first".to_vec(), b'0', b"1".to_vec())], |_| {}, true);
    all.push(("no mark of the end".into(), gzip(&honest[..1024]), "no end-of-archive mark"));
    all.push(("half a header".into(), gzip(&honest[..300]), "no end-of-archive mark"));
    all.push(("cut in a member".into(), gzip(&honest[..600]), "a member is cut off"));
    let mut behind = honest.clone();
    behind.extend(&honest);
    all.push((
        "a second archive behind".into(),
        gzip(&behind),
        "data after its end-of-archive mark",
    ));
    all.push(("nothing".into(), Vec::new(), "not a gzipped tar archive"));
    all.push(("no gzip".into(), honest.clone(), "not a gzipped tar archive"));
    all.push(("a web page".into(), b"<html>login</html>".to_vec(), "not a gzipped tar archive"));
    let packed = gzip(&honest);
    all.push(("cut gzip".into(), packed[..packed.len() - 9].to_vec(), "not a gzipped tar archive"));
    for (label, at) in [("wrong CRC", 8), ("wrong length", 4)] {
        let mut bytes = packed.clone();
        let at = bytes.len() - at;
        bytes[at] ^= 1;
        all.push((label.into(), bytes, "not a gzipped tar archive"));
    }
    all.push((
        "garbage behind gzip".into(),
        [&packed[..], b"x"].concat(),
        "after the end of the gzip data",
    ));
    all.push((
        "zeroes behind gzip".into(),
        [&packed[..], &[0; 512]].concat(),
        "after the end of the gzip data",
    ));
    all.push((
        "two gzip members".into(),
        [&packed[..], &packed[..]].concat(),
        "after the end of the gzip data",
    ));
    all.push(("empty archive".into(), gzip(&[0; 1024]), "the package is empty"));
    all.push((
        "only a folder".into(),
        gzip(&raw(&[(b"top/".to_vec(), b'5', vec![])], |_| {}, true)),
        "the package is empty",
    ));
    all.push(("text in gzip".into(), gzip(&[b'a'; 2048]), "checksum of a member's header"));
    all.push(("gzip in gzip".into(), gzip(&packed), "no end-of-archive mark"));
    let member = |name: String| (name.into_bytes(), b'0', Vec::new());
    let many: Vec<Member> = (0..=archive::FILES_LIMIT).map(|i| member(format!("top/{i}"))).collect();
    all.push(("many members".into(), gzip(&raw(&many, |_| {}, true)), "the number of members"));
    let folders: Vec<Member> = (0..=archive::FILES_LIMIT)
        .map(|i| (format!("top/{i}/").into_bytes(), b'5', vec![]))
        .collect();
    all.push(("many folders".into(), gzip(&raw(&folders, |_| {}, true)), "the number of members"));
    all.push((
        "large file".into(),
        second(b"top/x", b'0', &vec![b'a'; archive::FILE_LIMIT + 1]),
        "a file is limited",
    ));
    let full: Vec<Member> = (0..17)
        .map(|i| (format!("top/{i}").into_bytes(), b'0', vec![b'a'; archive::FILE_LIMIT]))
        .collect();
    all.push(("large content".into(), gzip(&raw(&full, |_| {}, true)), "its unpacked content"));
    all.push(("zeroes without end".into(), gzip(&vec![0; 64 << 20]), "its unpacked content"));
    all.push(("large package".into(), vec![0; archive::PACKED_LIMIT + 1], "the package is limited"));
    all
}

#[test]
fn archive_each_hostile_package_fails_with_own_error() {
    let all = hostile();
    for (label, bytes, expected) in &all {
        match archive::unpack(bytes) {
            Ok(files) => panic!("{label}: accepted as {:?}", files.keys()),
            Err(error) => assert!(error.to_string().contains(expected), "{label}: expected {expected:?}, got: {error}"),
        }
    }
    assert!(all.len() >= 100, "only {}", all.len());
}

/// Good archives, as other tools write them too: what differs is how, not what.
fn harmless() -> Vec<(String, Vec<u8>)> {
    let file = |name: &str| (name.as_bytes().to_vec(), b'0', b"1".to_vec());
    let mut all: Vec<(String, Vec<u8>)> = Vec::new();
    for name in [
        "top/x",
        "top/Chart.yaml",
        "top/templates/a.yaml",
        "top/templates/_helpers.yaml",
        "top/a-b_c.d",
        "top/.helmignore",
        "top/1/2/3/4/5/6/7",
        "top/it's",
        "top/a b",
        "top/a..b",
        "top/..a",
        "top/-x",
        "top/a,b",
        "top/a+b=c",
        "top/(x)",
        "top/#x",
        "top/@x",
        "top/x!",
        "top/[x]",
        "top/$x",
    ] {
        all.push((format!("name {name}"), gzip(&raw(&[file(name)], |_| {}, true))));
    }
    let one = |change: &dyn Fn(&mut [u8; 512])| raw(&[file("top/x")], change, true);
    for level in 0..=9 {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::new(level));
        encoder.write_all(&one(&|_| {})).unwrap();
        all.push((format!("compression {level}"), encoder.finish().unwrap()));
    }
    all.push(("old kind of file".into(), gzip(&one(&|header| header[156] = 0))));
    all.push((
        "executable".into(),
        gzip(&one(&|header| header[100..108].copy_from_slice(b"0000755\0"))),
    ));
    all.push((
        "set user id".into(),
        gzip(&one(&|header| header[100..108].copy_from_slice(b"0004755\0"))),
    ));
    all.push(("owner".into(), gzip(&one(&|header| header[265..269].copy_from_slice(b"root")))));
    all.push((
        "time".into(),
        gzip(&one(&|header| header[136..148].copy_from_slice(b"14000000000\0"))),
    ));
    all.push(("prefix".into(), gzip(&one(&|header| header[345..349].copy_from_slice(b"base")))));
    let folder = (b"top/".to_vec(), b'5', vec![]);
    all.push(("with its folder".into(), gzip(&raw(&[folder.clone(), file("top/x")], |_| {}, true))));
    let inner = (b"top/a/".to_vec(), b'5', vec![]);
    all.push((
        "with folders twice".into(),
        gzip(&raw(&[folder.clone(), inner.clone(), inner.clone(), file("top/a/x")], |_| {}, true)),
    ));
    all.push((
        "folder after its file".into(),
        gzip(&raw(&[file("top/a/x"), inner, folder], |_| {}, true)),
    ));
    let mut padded = one(&|_| {});
    padded.resize(10_240, 0);
    all.push(("padded to a record".into(), gzip(&padded)));
    let mut encoder = flate2::GzBuilder::new()
        .filename("x.tar")
        .comment("c")
        .extra(b"Helm".to_vec())
        .mtime(7)
        .write(Vec::new(), Compression::best());
    encoder.write_all(&one(&|_| {})).unwrap();
    all.push(("gzip with a header".into(), encoder.finish().unwrap()));
    let most: Vec<Member> = (0..archive::FILES_LIMIT).map(|i| file(&format!("top/{i}"))).collect();
    all.push(("as many as allowed".into(), gzip(&raw(&most, |_| {}, true))));
    let large = (b"top/x".to_vec(), b'0', vec![b'a'; archive::FILE_LIMIT]);
    all.push(("as large as allowed".into(), gzip(&raw(&[large], |_| {}, true))));
    all.push(("our own".into(), good()));
    all
}

#[test]
fn archive_each_valid_variant_is_read() {
    let all = harmless();
    for (label, bytes) in &all {
        match archive::unpack(bytes) {
            Ok(files) => assert!(!files.is_empty(), "{label}"),
            Err(error) => panic!("{label}: {error}"),
        }
    }
    assert!(all.len() >= 40, "only {}", all.len());
}

#[test]
fn archive_empty_or_chartless_package_is_error() {
    assert!(matches!(archive::unpack(&packed(&[])), Err(ArchiveError::Empty)));
    assert!(matches!(
        open(&packed(&[(b"top/x", tar::EntryType::Regular, b"")])),
        Err(ArchiveError::Chart(_))
    ));
}

#[test]
fn archive_truncated_or_flipped_package_never_panics() {
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
