// SPDX-License-Identifier: Apache-2.0
//! The row of `status` about the matrix: source, version, age and the newest Kubernetes version that it covers.

use super::super::ages::ago;
use super::super::style::{bad, head, warn};
use k8s_openapi::jiff::Timestamp;
use vdo_api::api::MatrixStatus;
use vdo_core::matrix::is_old;
use vdo_source::fetch::MatrixSource;

/// The row of the heading.
pub(super) fn row(matrix: &MatrixStatus, now: Timestamp) -> Vec<String> {
    let signer = match &matrix.signer {
        Some(key) => Some(format!("signed by {}", key.chars().take(19).collect::<String>())),
        // The one in the operator needs no signature.
        None => (matrix.source != MatrixSource::Embedded.to_string()).then(|| warn("unsigned")),
    };
    let generated = matrix.generated.as_ref().map(|at| format!("generated {} ago", ago(at.0, now)));
    let expires = matrix.expires.as_ref().map(|at| match at.0 < now {
        true => bad(&format!("expired {} ago", ago(at.0, now))),
        false => format!("good until {}", at.0.strftime("%Y-%m-%d")),
    });
    let knows = matrix.knows.as_ref().map(|knows| format!("covers {knows}"));
    let old = is_old(matrix.generated.as_ref().map(|at| at.0), now).map(|_| warn("older than six months"));
    let facts: Vec<String> = [signer, generated, expires, knows, old].into_iter().flatten().collect();
    vec![
        head("MATRIX"),
        format!("version {}", matrix.version),
        matrix.source.clone(),
        String::new(),
        facts.join(", "),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn matrix_row_says_whose_it_is_and_how_old() {
        let at = |text: &str| text.parse::<Timestamp>().expect("a time");
        let now = at("2026-11-20T00:00:00Z");
        let key = format!("sha256:{}", "ab".repeat(32));
        for (matrix, expected) in [
            (json!({"source": "embedded"}), ""),
            (
                json!({"source": "embedded", "generated": "2026-11-17T00:00:00Z", "knows": "Kubernetes up to 1.37, released on 2026-08-26"}),
                "generated 3d ago, covers Kubernetes up to 1.37, released on 2026-08-26",
            ),
            (json!({"source": "https://a.test/index.yaml"}), "unsigned"),
            (
                json!({"source": "https://a.test/index.yaml", "signer": key, "generated": "2026-11-17T00:00:00Z", "expires": "2027-05-20T00:00:00Z"}),
                "signed by sha256:abababababab, generated 3d ago, good until 2027-05-20",
            ),
            (
                json!({"source": "configmap://vdo/matrix", "generated": "2026-01-01T00:00:00Z", "expires": "2026-11-18T00:00:00Z"}),
                "unsigned, generated 323d ago, expired 2d ago, older than six months",
            ),
        ] {
            let mut value = json!({"version": 7, "digest": "sha256:aa"});
            for (field, own) in matrix.as_object().expect("fields") {
                value[field] = own.clone();
            }
            let status: MatrixStatus = serde_json::from_value(value).expect("a status");
            let row = row(&status, now);
            let last = row.last().map(|text| anstream::adapter::strip_str(text).to_string());
            assert_eq!(last.as_deref(), Some(expected));
            assert_eq!(row[1..3], ["version 7".to_owned(), status.source]);
        }
    }
}
