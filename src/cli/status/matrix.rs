//! The matrix in the screen of `status`: which one it is, whose, and how old.

use super::super::style::{ago, bad, head, warn};
use crate::api::MatrixStatus;
use crate::fetch::MatrixSource;
use k8s_openapi::jiff::Timestamp;

/// The row of the heading, where it is another one than that of the operator.
pub(super) fn row(matrix: &MatrixStatus, now: Timestamp) -> Option<Vec<String>> {
    if matrix.source == MatrixSource::Embedded.to_string() {
        return None;
    }
    let signer = match &matrix.signer {
        Some(key) => format!("signed by {}", key.chars().take(19).collect::<String>()),
        None => warn("unsigned"),
    };
    let generated = matrix.generated.as_ref().map(|at| format!("generated {} ago", ago(at.0, now)));
    let expires = matrix.expires.as_ref().map(|at| match at.0 < now {
        true => bad(&format!("expired {} ago", ago(at.0, now))),
        false => format!("good until {}", at.0.strftime("%Y-%m-%d")),
    });
    let facts: Vec<String> = [Some(signer), generated, expires].into_iter().flatten().collect();
    Some(vec![
        head("MATRIX"),
        format!("version {}", matrix.version),
        matrix.source.clone(),
        String::new(),
        facts.join(", "),
    ])
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
            (json!({"source": "embedded"}), None),
            (json!({"source": "https://a.test/index.yaml"}), Some("unsigned")),
            (
                json!({"source": "https://a.test/index.yaml", "signer": key, "generated": "2026-11-17T00:00:00Z", "expires": "2027-05-20T00:00:00Z"}),
                Some("signed by sha256:abababababab, generated 3d ago, good until 2027-05-20"),
            ),
            (
                json!({"source": "configmap://vdo/matrix", "generated": "2026-01-01T00:00:00Z", "expires": "2026-11-18T00:00:00Z"}),
                Some("unsigned, generated 323d ago, expired 2d ago"),
            ),
        ] {
            let mut value = json!({"version": 7, "digest": "sha256:aa"});
            for (field, own) in matrix.as_object().expect("fields") {
                value[field] = own.clone();
            }
            let status: MatrixStatus = serde_json::from_value(value).expect("a status");
            let row = row(&status, now);
            let last = row.as_ref().and_then(|row| row.last());
            let last = last.map(|text| anstream::adapter::strip_str(text).to_string());
            assert_eq!(last.as_deref(), expected);
            if let Some(row) = row {
                assert_eq!(row[1..3], ["version 7".to_owned(), status.source]);
            }
        }
    }
}
