// SPDX-License-Identifier: Apache-2.0
//! How a vCenter is trusted, written as each version of a driver reads it.

use super::{PEM, connection, cpi_options, csi_text, read_gcfg, version};
use vdo_core::driverconfig::csi::{self, CsiOptions};
use vdo_core::driverconfig::{ConfigError, Connection, Thumbprint, Trust, cpi};

#[test]
fn csi_config_before_3_3_different_trust_is_rejected() {
    let mut one = connection("vc1", "one.example.com");
    one.trust = Trust::CaBundle(PEM.into());
    let two = connection("vc2", "two.example.com");
    let mut options = CsiOptions::new("cluster");
    options.topology_categories = vec!["zone".into()];
    let old = csi::render(&version("3.2.0"), &options, &[one.clone(), two.clone()]);
    assert_eq!(
        old,
        Err(ConfigError::OneTrustForAll {
            version: version("3.2.0"),
            count: 2
        })
    );
}

#[test]
fn csi_config_before_3_3_insecure_stays_per_vcenter() {
    let mut one = connection("vc1", "one.example.com");
    one.trust = Trust::CaBundle(PEM.into());
    let mut two = connection("vc2", "two.example.com");
    let mut options = CsiOptions::new("cluster");
    options.topology_categories = vec!["zone".into()];
    two.trust = Trust::Insecure;
    let text = csi_text("3.2.0", &options, &[one.clone(), two.clone()]);
    let read = read_gcfg(&text).unwrap();
    assert_eq!(read[&("global".into(), String::new(), "ca-file".into())], "/etc/cloud/vc1.ca.pem");
    assert_eq!(
        read[&("virtualcenter".into(), "two.example.com".into(), "insecure-flag".into())],
        "true"
    );
    assert!(
        !read.contains_key(&("global".into(), String::new(), "insecure-flag".into())),
        "Global insecure would win everywhere"
    );
}

/// What the file says of one vCenter, or of all in `[Global]`, as the driver's own parser reads it.
fn trust_read(text: &str) -> (serde_json::Value, serde_json::Value) {
    let read = vdo_testbed::parsed_many(vdo_testbed::Grammar::Csi, &[text.to_owned()])
        .unwrap()
        .remove(0);
    let trust = |part: &serde_json::Value| serde_json::json!([part["ca-file"], part["thumbprint"], part["insecure-flag"]]);
    (trust(&read["Global"]), trust(&read["VirtualCenter"]["one.example.com"]))
}

/// Upstream's syncer connects on two paths, one of which reads `[Global]` alone.
#[test]
fn csi_config_from_3_3_common_trust_is_also_in_global() {
    let print = Thumbprint::sha256(b"certificate");
    for (trust, expected) in [
        (Trust::CaBundle(PEM.into()), "/etc/cloud/vc1.ca.pem".to_owned()),
        (Trust::Thumbprint(print.clone()), print.to_string()),
        (Trust::Insecure, "true".to_owned()),
    ] {
        for release in ["3.3.0", "3.3.1", "3.7.3"] {
            let mut one = connection("vc1", "one.example.com");
            one.trust = trust.clone();
            let (global, own) = trust_read(&csi_text(release, &CsiOptions::new("cluster"), &[one]));
            assert_eq!(global, own, "{release} with {trust:?}");
            assert!(global.to_string().contains(&expected), "{release}: {expected} is not in {global}");
        }
    }
    // Several connections with one bundle: the same certificates from either file.
    let mut both = [connection("vc1", "one.example.com"), connection("vc2", "two.example.com")];
    both.iter_mut()
        .for_each(|connection| connection.trust = Trust::CaBundle(PEM.into()));
    let mut options = CsiOptions::new("cluster");
    options.topology_categories = vec!["zone".into()];
    let (global, own) = trust_read(&csi_text("3.7.3", &options, &both));
    assert_eq!(global, own);
    assert_eq!(csi::differing_trust(&both), Vec::<&str>::new());
}

#[test]
fn csi_config_from_3_3_different_trust_leaves_global_without_trust() {
    let mut both = [connection("vc1", "one.example.com"), connection("vc2", "two.example.com")];
    both[0].trust = Trust::CaBundle(PEM.into());
    let mut options = CsiOptions::new("cluster");
    options.topology_categories = vec!["zone".into()];
    let (global, own) = trust_read(&csi_text("3.7.3", &options, &both));
    let nothing = trust_read(&csi_text("3.7.3", &options, &both[1..])).0;
    assert_eq!(global, nothing);
    assert_ne!(own, nothing);
    assert_eq!(csi::differing_trust(&both), ["vc1", "vc2"]);
    both[1].trust = Trust::Insecure;
    assert_eq!(
        trust_read(&csi_text("3.7.3", &options, &both)).0,
        nothing,
        "insecure for one is insecure for all"
    );
}

/// CSI 3.2.0 and CPI 1.29.1 and older call a SHA-256 thumbprint a mismatch.
#[test]
fn driver_config_sha256_thumbprint_is_sha1_for_old_versions() {
    let (sha1, sha256) = (Thumbprint::from_sha1([0xAB; 20]), Thumbprint::sha256(b"certificate"));
    let pinned = |trust: &Thumbprint, known: Option<&Thumbprint>| Connection {
        trust: Trust::Thumbprint(trust.clone()),
        sha1: known.cloned(),
        ..connection("vc1", "one.example.com")
    };
    let csi = |release: &str, one: Connection| csi::render(&version(release), &CsiOptions::new("cluster"), &[one]);
    let cpi = |release: &str, one: Connection| cpi::render(&version(release), &cpi_options(), &[one]);
    for (csi_release, cpi_release, given, expected) in [
        ("2.7.0", "1.25.0", &sha256, &sha1),
        ("3.2.0", "1.28.1", &sha256, &sha1),
        ("3.2.0", "1.29.1", &sha256, &sha1),
        ("3.2.0", "1.29.1", &sha1, &sha1),
        ("3.3.0", "1.29.2", &sha256, &sha256),
        ("3.7.3", "1.30.0", &sha256, &sha256),
        ("3.7.3", "1.34.0", &sha1, &sha1),
    ] {
        let data = csi(csi_release, pinned(given, Some(&sha1))).unwrap();
        let text = data[csi::FILE].expose();
        assert!(text.contains(&format!("thumbprint = \"{expected}\"")), "CSI {csi_release}:\n{text}");
        let conf = cpi(cpi_release, pinned(given, Some(&sha1))).unwrap().conf;
        assert!(conf.contains(&format!("thumbprint: \"{expected}\"")), "CPI {cpi_release}:\n{conf}");
    }
    for error in [
        csi("3.2.0", pinned(&sha256, None)).unwrap_err(),
        cpi("1.29.1", pinned(&sha256, None)).unwrap_err(),
    ] {
        assert!(error.to_string().contains("compares SHA-1 thumbprints only"), "{error}");
    }
    assert!(csi("3.3.0", pinned(&sha256, None)).is_ok() && cpi("1.29.2", pinned(&sha256, None)).is_ok());
}
