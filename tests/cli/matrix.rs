// SPDX-License-Identifier: Apache-2.0
//! What `vdoctl matrix` chooses, refuses and finds.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

use crate::{FROZEN, seen, snap, vdoctl};

#[test]
fn matrix_resolve_each_query_matches_snapshot() {
    snap(
        "resolve_fits",
        &[
            "matrix",
            "resolve",
            "--matrix",
            FROZEN,
            "--kubernetes",
            "v1.34.4",
            "--vcenter",
            "8.0.3",
        ],
    );
    snap(
        "resolve_fits_json",
        &[
            "matrix",
            "resolve",
            "--matrix",
            FROZEN,
            "--kubernetes",
            "1.34",
            "--vcenter",
            "vc1=8.0.3,vc2=7.0.3",
            "--driver",
            "csi",
            "--driver",
            "cpi",
            "-o",
            "json",
        ],
    );
    snap(
        "resolve_nothing_fits",
        &[
            "matrix",
            "resolve",
            "--matrix",
            FROZEN,
            "--kubernetes",
            "1.20",
            "--vcenter",
            "8.0.3",
        ],
    );
    snap(
        "resolve_nothing_fits_json",
        &[
            "matrix",
            "resolve",
            "--matrix",
            FROZEN,
            "--kubernetes",
            "1.20",
            "--vcenter",
            "8.0.3",
            "-o",
            "json",
        ],
    );
    snap(
        "resolve_vcenter_too_old",
        &[
            "matrix",
            "resolve",
            "--matrix",
            FROZEN,
            "--kubernetes",
            "1.34",
            "--vcenter",
            "vc1=8.0.3",
            "--vcenter",
            "old=6.7.0",
        ],
    );
    snap(
        "resolve_pin_does_not_fit",
        &[
            "matrix",
            "resolve",
            "--matrix",
            FROZEN,
            "--kubernetes",
            "1.34",
            "--vcenter",
            "8.0.3",
            "--driver",
            "csi=3.5.1",
            "--driver",
            "cpi",
        ],
    );
}

#[test]
fn matrix_list_wide_matches_snapshot() {
    snap("matrix_list", &["matrix", "list", "--matrix", FROZEN, "-o", "wide"]);
}

/// A matrix with upgrade edges, and one that is past its date and has fields that no one knows.
pub const EDGES: &str = "tests/fixtures/matrix-edges.yaml";

pub const EXPIRED: &str = "tests/fixtures/matrix-expired.yaml";

/// A question to a matrix for one Kubernetes and one vCenter, with more of it typed as in a shell.
pub fn asked(matrix: &'static str, verb: &'static str, kubernetes: &'static str, more: &'static str) -> Vec<&'static str> {
    let mut all = vec!["matrix"];
    all.extend(verb.split(' '));
    all.extend(["--matrix", matrix, "--kubernetes", kubernetes]);
    all.extend(more.split(' ').filter(|part| !part.is_empty()));
    if !more.contains("--vcenter") {
        all.extend(["--vcenter", "8.0.3"]);
    }
    all
}

#[test]
fn matrix_resolve_installed_versions_match_snapshots() {
    let resolve = |name: &str, kubernetes, more| snap(name, &asked(EDGES, "resolve", kubernetes, more));
    // the only way leads through a version that does not fit
    resolve("resolve_no_path", "1.35", "--installed csi=3.0.0 --installed cpi=1.34.0");
    resolve("resolve_leaves", "1.34", "--installed csi=3.0.0,cpi=1.34.0");
    resolve("resolve_steps_down", "1.33", "--installed csi=4.0.0 --driver csi");
    resolve("resolve_other_would_fit", "1.35", "--feature snapshots --installed csi=2.9.0");
    resolve("resolve_one_vcenter", "1.33", "--vcenter 8.0.3 --vcenter 7.0.3 --driver csi=2.9.0");
}

#[test]
fn matrix_explain_why_not_and_what_if_match_snapshots() {
    snap("explain_steps", &asked(EDGES, "explain", "1.34", "--installed csi=3.0.0"));
    snap("why_not", &asked(EDGES, "why-not csi 2.9.0", "1.35", "--driver csi"));
    snap("why_not_minor", &asked(EDGES, "why-not csi 3.5", "1.35", ""));
    snap("why_not_several", &asked(EDGES, "why-not csi 2.9.0", "1.35", "--feature snapshots"));
    snap(
        "what_if",
        &asked(
            EDGES,
            "resolve",
            "1.34",
            "--installed csi=2.9.0,cpi=1.34.0 --what-if-kubernetes 1.36 --what-if-vcenter a=9.0 --vcenter a=8.0.3,b=7.0.3",
        ),
    );
}

#[test]
fn matrix_resolve_json_has_from_and_path() {
    let output = vdoctl(&asked(EDGES, "resolve", "1.34", "--installed csi=2.9.0 -o json"))
        .output()
        .expect("it runs");
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let csi = &json["drivers"][1];
    assert_eq!((&csi["from"], &csi["path"]), (&"2.9.0".into(), &serde_json::json!([])), "{csi:#}");
}

#[test]
fn matrix_expired_or_with_unknown_fields_is_warned_of() {
    snap("matrix_expired", &asked(EXPIRED, "resolve", "1.34", "--installed csi=1.0.0"));
    for verb in ["explain", "why-not csi 2.0.0", "resolve --what-if-kubernetes 1.35"] {
        let text = seen(vdoctl(&asked(EXPIRED, verb, "1.34", "")));
        assert!(
            text.contains("expired at 2020-06-01") && text.contains("did you mean note?"),
            "{verb}: {text}"
        );
    }
    for verb in [&["matrix", "list"][..], &["matrix", "show", "csi", "2.0.0"]] {
        let text = seen(vdoctl(&[verb, &["--matrix", EXPIRED]].concat()));
        assert!(
            text.contains("warning: tests/fixtures/matrix-expired.yaml: this vdoctl does not know"),
            "{text}"
        );
    }
    let text = seen(vdoctl(&asked(FROZEN, "resolve", "1.34", "")));
    assert!(!text.contains("warning"), "{text}");
}

#[test]
fn matrix_resolve_contradicting_flags_are_rejected() {
    for (more, code_, says) in [
        ("--vcenter vc1=8.0.3 --vcenter vc1=7.0.3", 2, "--vcenter is given twice for vc1"),
        (
            "--driver csi=4.0.0 --driver vsphere-csi=3.5.0",
            2,
            "--driver is given twice for vsphere-csi",
        ),
        ("--installed csi=4.0.0,csi=3.5.0", 2, "--installed is given twice for vsphere-csi"),
        (
            "--what-if-vcenter 8.0.4 --what-if-vcenter 9.0",
            2,
            "--what-if-vcenter is given twice for all vCenters",
        ),
        (
            "--driver cpi --feature snapshots",
            2,
            "--feature snapshots belongs to vsphere-csi, and this command does not choose a version of that driver",
        ),
        ("--feature snapshot", 3, "Did you mean snapshots?"),
        ("--installed csi", 2, "--installed csi names no version"),
        ("--driver cpi --installed csi=4.0.0", 0, "--installed vsphere-csi has no effect"),
    ] {
        let arguments = asked(EDGES, "resolve", "1.34", more);
        let output = vdoctl(&arguments).output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code_), "{more}: {said}");
        assert!(said.contains(says), "{more}: {said}");
    }
}

/// Charts beside an index are opened: the package, its version and its images are what the index says.
#[test]
fn matrix_lint_charts_beside_index_are_checked() {
    let folder = tempfile::tempdir().expect("a folder");
    let charts = folder.path().join("charts");
    std::fs::create_dir(&charts).expect("a folder");
    let package = vdoctl(&["chart", "package", "cpi", "--version", "1.34.0", "-o", "-"])
        .output()
        .expect("it runs")
        .stdout;
    std::fs::write(charts.join("cpi.tgz"), &package).expect("written");
    std::fs::write(charts.join("junk.tgz"), "junk").expect("written");
    let image = seen(vdoctl(&["chart", "images", "cpi", "--version", "1.34.0"]));
    let image = image.lines().find(|line| line.contains('/')).expect("an image").trim();
    let digest = vdo_api::types::Digest::of(&package).hex();
    let junk = vdo_api::types::Digest::of(b"junk").hex();
    let wrong = "0".repeat(64);
    let index = folder.path().join("index.yaml");
    let lint = |version: &str, url: &str, sha256: &str, images: serde_json::Value| {
        let entry = serde_json::json!({
            "version": version, "chart": {"urls": [url], "sha256": sha256}, "images": images,
            "kubernetes": {"min": "1.34", "max": "1.34", "confidence": "unverified"},
            "vsphere": {"min": null, "max": null, "confidence": "unverified"},
        });
        let text = serde_json::json!({
            "apiVersion": "vdo.vmware.com/matrix/v1", "kind": "CompatibilityMatrix", "version": 1,
            "drivers": {"vsphere-cpi": {"role": "cloud-provider", "versions": [entry]}},
        });
        std::fs::write(&index, vdo_api::yaml::dump(&text).expect("YAML")).expect("written");
        let output = vdoctl(&["matrix", "lint"]).arg(folder.path()).output().expect("it runs");
        (
            output.status.code().expect("a code"),
            String::from_utf8(output.stdout).expect("text"),
        )
    };
    let name = image.rsplit('/').next().and_then(|last| last.split(':').next()).expect("a name");
    let listed = vdo_core::matrix::Index::parse(vdo_source::fetch::embedded::index()).expect("an index");
    let entry = listed.drivers["vsphere-cpi"]
        .entry(&"1.34.0".parse().expect("a version"))
        .expect("an entry")
        .clone();
    let good = serde_json::json!(entry.images);
    let mut strange = good.clone();
    strange[0]["ref"] = "example.com/other:1".into();
    let mut renamed = good.clone();
    renamed[0]["name"] = "else".into();
    for (version, url, sha256, images, says) in [
        ("1.34.0", "charts/cpi.tgz", &digest, &good, &["no mistakes, 1 chart checked"][..]),
        (
            "1.34.0",
            "charts/cpi.tgz",
            &wrong,
            &good,
            &["1.34.0 chart.sha256: ", "has the SHA-256", digest.as_str()],
        ),
        (
            "1.34.0",
            "charts/none.tgz",
            &digest,
            &good,
            &["chart.urls: there is no chart at charts/none.tgz"],
        ),
        (
            "1.34.0",
            "https://example.com/cpi.tgz",
            &digest,
            &good,
            &["1 chart elsewhere, not checked"],
        ),
        ("1.34.0", "charts/junk.tgz", &junk, &good, &["chart: the package cannot be opened"]),
        (
            "1.33.1",
            "charts/cpi.tgz",
            &digest,
            &good,
            &["the package is the chart of vsphere-cpi 1.34.0, not of vsphere-cpi 1.33.1"],
        ),
        (
            "1.34.0",
            "charts/cpi.tgz",
            &digest,
            &strange,
            &[
                "images.0.ref: the chart does not render example.com/other:1",
                "images: the chart renders ",
                name,
            ],
        ),
        (
            "1.34.0",
            "charts/cpi.tgz",
            &digest,
            &renamed,
            &["images.0.name: the chart has no image \"else\""],
        ),
    ] {
        let (code, said) = lint(version, url, sha256, images.clone());
        let clean = said.contains("no mistakes");
        assert_eq!(code, i32::from(!clean), "{said}");
        for part in says {
            assert!(said.contains(part), "{part} is not said of {version} at {url}: {said}");
        }
        for line in said.lines().filter(|line| line.contains("drivers.")) {
            let rest = line.split_once("index.yaml:").expect("the file").1;
            let number = rest.split(':').next().unwrap_or_default();
            assert!(number.parse::<u64>().is_ok(), "no line number: {line}");
        }
    }
}

/// A sentence instead of a long list, and a command instead of a guess.
#[test]
fn matrix_verbs_that_lack_something_say_what_to_type() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("passwd");
    std::fs::write(&file, "root:x:0:0:root:/root:/bin/bash\n").expect("written");
    let said = seen(vdoctl(&["matrix", "lint", &file.display().to_string()]));
    assert!(
        said.starts_with("exit 1\n") && said.contains("this is not a matrix index"),
        "{said}"
    );
    assert!(said.lines().count() < 12, "{said}");

    let said = seen(vdoctl(&["matrix", "show", "csi", "--matrix", FROZEN]));
    let newest = said
        .split("The newest versions: ")
        .nth(1)
        .unwrap_or_default()
        .lines()
        .next()
        .unwrap_or_default();
    assert!(
        said.starts_with("exit 2\n") && said.contains("no version of vsphere-csi is named"),
        "{said}"
    );
    assert!(newest.matches(", ").count() == 2 && !newest.contains(" and "), "{said}");
    assert!(said.contains("\n  All versions: vdoctl matrix list csi\n"), "{said}");
    let first = newest.split(',').next().unwrap_or_default();
    let example = seen(vdoctl(&["matrix", "show", "csi", first, "--matrix", FROZEN]));
    assert!(example.starts_with("exit 0\n"), "{example}");
    let said = seen(vdoctl(&["matrix", "show", "csi", "3.7"]));
    let nearest = said.contains("\n  The nearest versions: 3.7.3, 3.7.2, ") && !said.contains(" and 3.7");
    assert!(said.starts_with("exit 3\n") && nearest, "{said}");
}

#[test]
fn matrix_file_not_utf8_is_rejected() {
    let folder = tempfile::tempdir().expect("a folder");
    let index = folder.path().join("index.yaml");
    // what is not text is bad input as any other
    std::fs::write(&index, [0xff, 0xfe]).expect("written");
    for arguments in [&["matrix", "lint"][..], &["matrix", "list", "--matrix"]] {
        let output = vdoctl(arguments).arg(&index).output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(4), "{said}");
        assert!(said.contains("not UTF-8 text"), "{said}");
    }
}

/// Quadratic work would take hours here.
#[test]
fn matrix_with_a_hundred_thousand_unknown_fields_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("index.json");
    let fields: String = (0..150_000).map(|number| format!(",\"k{number}\":1")).collect();
    let index = format!("{{\"apiVersion\":\"vdo.vmware.com/matrix/v1\",\"kind\":\"CompatibilityMatrix\"{fields}}}");
    std::fs::write(&path, index).expect("written");
    let file = path.to_str().expect("text");
    let refused = seen(vdoctl(&["matrix", "list", "--matrix", file]));
    assert!(
        refused.starts_with("exit 4\n") && refused.contains("more than 100 fields that this version of VDO does not know"),
        "{refused}"
    );
    assert!(seen(vdoctl(&["matrix", "lint", file])).starts_with("exit 1\n"));
}

/// A proxy stands between, except to this machine itself; its password is never shown.
#[test]
fn matrix_on_a_server_is_asked_for_through_the_proxy_of_the_environment() {
    let run = |address: &str, proxy: &str| {
        let mut command = vdoctl(&["matrix", "list", "--matrix", address]);
        command.env("HTTPS_PROXY", proxy).env_remove("NO_PROXY").env_remove("no_proxy");
        seen(command)
    };
    // Nothing listens at either port.
    let reported = run("https://matrix.invalid/index.yaml", "http://user:p4ss-W0rd@127.0.0.1:9");
    assert!(
        reported.starts_with("exit 4\n") && reported.contains("cannot be reached"),
        "{reported}"
    );
    assert!(
        reported.contains("Connection refused") && !reported.contains("dns") && !reported.contains("p4ss"),
        "{reported}"
    );
    let leak = crate::width::LEAKS.iter().find(|leak| reported.contains(**leak));
    assert_eq!(leak, None, "{reported}");
    // As curl reads it: names with everything below them, addresses and networks, and all.
    for (address, passed_by, direct) in [
        ("https://matrix.invalid/i.yaml", "a.test,matrix.invalid", true),
        ("https://matrix.invalid/i.yaml", ".invalid", true),
        ("https://matrix.invalid/i.yaml", "invalid", true),
        ("https://matrix.invalid/i.yaml", "*", true),
        ("https://matrix.invalid/i.yaml", "trix.invalid", false),
        ("https://192.0.2.7:9/i.yaml", "192.0.2.8", false),
        ("https://192.0.2.7:9/i.yaml", "198.51.100.0/24", false),
    ] {
        let mut command = vdoctl(&["matrix", "list", "--matrix", address]);
        command.env("HTTPS_PROXY", "http://127.0.0.1:9").env("NO_PROXY", passed_by);
        let reported = seen(command);
        assert_eq!(!reported.contains("Connection refused"), direct, "{passed_by}: {reported}");
    }
    for host in ["localhost", "127.0.0.1", "[::1]"] {
        let reported = run(&format!("https://{host}:9/index.yaml"), "http://proxy.invalid:3128");
        assert!(reported.starts_with("exit 4\n") && !reported.contains("dns"), "{reported}");
    }
}

/// The signature is found beside the index, follows it byte by byte, and its key is never shown.
#[test]
fn matrix_signed_is_verified_and_changed_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (index, key, public) = (path("index.yaml"), path("a key.pem"), path("trusted"));
    let pem = rcgen::KeyPair::generate().expect("a key").serialize_pem();
    let body = pem.lines().nth(1).expect("a line").to_owned();
    std::fs::copy(FROZEN, &index).expect("an index");
    std::fs::write(&key, &pem).expect("a key");
    std::fs::set_permissions(&key, Permissions::from_mode(0o644)).expect("readable by others, whatever the umask is");
    std::fs::create_dir(&public).expect("a folder");
    let parsed = vdo_source::signature::PrivateKey::parse(&vdo_api::types::Secret::new(pem)).expect("a key");
    std::fs::write(format!("{public}/publisher.pub"), parsed.public().pem()).expect("a public key");
    let run = |arguments: &[&str]| {
        let output = vdoctl(arguments).output().expect("it runs");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
        let (code, out, err) = (output.status.code().expect("a code"), text(output.stdout), text(output.stderr));
        assert!(!out.contains(&body) && !err.contains(&body), "the key is shown");
        (code, out, err)
    };
    let verify = |more: &[&str]| {
        run(&[
            &["matrix", "verify", folder.path().to_str().expect("text"), "--keys", &public],
            more,
        ]
        .concat())
    };

    let (code, _, err) = verify(&[]);
    assert!(
        code == 4 && err.contains("not signed") && err.contains("vdoctl matrix sign"),
        "{code} {err}"
    );
    let (code, out, err) = run(&["matrix", "sign", &index, "--key-file", &key]);
    let fingerprint = parsed.public().fingerprint().to_string();
    assert!(code == 0 && out.contains(&fingerprint), "{code} {out}{err}");
    assert!(err.contains("chmod 600"), "others may read the key: {err}");
    let (code, out, _) = verify(&["-o", "json"]);
    assert!(
        code == 0 && out.contains(&fingerprint) && out.contains("MatrixVerify"),
        "{code} {out}"
    );
    // Both forms are there; the bundle counts alone, too.
    std::fs::remove_file(format!("{index}.sig")).expect("the bare signature");
    assert_eq!(verify(&[]).0, 0);
    let listed = run(&["matrix", "list", "--matrix", &index, "--matrix-keys", &public]);
    assert_eq!(listed.0, 0, "{}", listed.2);

    let text = std::fs::read_to_string(&index).expect("the index");
    std::fs::write(&index, text.replace('\n', "\r\n")).expect("the index");
    let (code, _, err) = verify(&[]);
    assert!(code == 4 && err.contains("changed after it was signed"), "{code} {err}");
    let (code, _, err) = run(&["matrix", "list", "--matrix", &index, "--matrix-keys", &public]);
    assert!(code == 4 && err.contains("not trusted"), "{code} {err}");

    std::fs::remove_file(format!("{public}/publisher.pub")).expect("the key");
    let (code, _, err) = verify(&[]);
    assert!(code == 2 && err.contains("there is no key"), "{code} {err}");
    let (code, _, err) = run(&["matrix", "sign", &index, "--key-file", &index]);
    assert!(code == 2 && err.contains("not PEM"), "{code} {err}");
}
