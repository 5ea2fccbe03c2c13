// SPDX-License-Identifier: Apache-2.0
//! What the value `caBundle` of the operator's chart rests on: `SSL_CERT_FILE` names the system's authorities.

use super::ask;
use super::server::{Authority, serve, soap};
use std::process::Command;
use vdo_api::types::Trust;
use vdo_vsphere::vsphere::ProbeError;

/// The environment belongs to a whole process, so the test runs itself once more with it.
#[test]
#[expect(clippy::disallowed_methods, reason = "the test reads what it gave itself")]
fn probe_system_trust_is_the_file_that_ssl_cert_file_names() {
    const TEST: &str = "probe::system_trust::probe_system_trust_is_the_file_that_ssl_cert_file_names";
    const FILE: &str = "SSL_CERT_FILE";
    const CHILD: &str = "VDO_TEST_SYSTEM_TRUST";
    if std::env::var_os(CHILD).is_some() {
        let file = std::env::var_os(FILE).expect("the parent sets it");
        return tokio::runtime::Runtime::new().unwrap().block_on(async {
            let trusted = Authority::new("right");
            std::fs::write(file, &trusted.pem).unwrap();
            let server = serve(Some(&trusted.sign(&["localhost"], |_| {})), soap("VirtualCenter", "8.0.3")).await;
            ask("localhost", server.port, Trust::SystemRoots).await.unwrap();
            // And nothing else: it takes the place of what the machine has.
            let other = serve(
                Some(&Authority::new("other").sign(&["localhost"], |_| {})),
                soap("VirtualCenter", "8.0.3"),
            )
            .await;
            let error = ask("localhost", other.port, Trust::SystemRoots).await.unwrap_err();
            assert!(matches!(error, ProbeError::UnknownIssuer { .. }), "{error:?}");
        });
    }
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(std::env::current_exe().unwrap())
        .args([TEST, "--exact"])
        .env(CHILD, "1")
        .env(FILE, folder.path().join("ca.crt"))
        .env_remove("SSL_CERT_DIR")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}
