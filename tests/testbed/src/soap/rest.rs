// SPDX-License-Identifier: Apache-2.0
//! The newer dialect of the REST service, as its documents say it, in front of a server that knows only the older one.

use hyper::body::Bytes;
use serde_json::Value;

/// The older path for a newer one; `None` for what is neither.
pub(super) fn older(path: &str) -> Option<String> {
    let rest = path.strip_prefix("/api/")?;
    if rest == "session" {
        return Some("/rest/com/vmware/cis/session".into());
    }
    let rest = rest.strip_prefix("cis/tagging/")?.replace("?action=", "?~action=");
    // `category/ID` was `category/id:ID`.
    let named = match rest.split_once('/') {
        Some((what, id)) => format!("{what}/id:{id}"),
        None => rest,
    };
    Some(format!("/rest/com/vmware/cis/tagging/{named}"))
}

/// Whether a path is one of the older dialect.
pub(super) fn is_older(path: &str) -> bool {
    path.starts_with("/rest/")
}

/// The older path and body of a newer request, where these differ by more than the base of the path.
pub(super) fn older_request(method: &http::Method, path: &str, body: &Bytes) -> Option<(String, Bytes)> {
    let rest = path.strip_prefix("/api/cis/tagging/")?;
    let value: Value = serde_json::from_slice(body).unwrap_or_default();
    match rest {
        "category" | "tag" if *method == http::Method::POST => {
            let body = serde_json::json!({"create_spec": value}).to_string();
            Some((older(path)?, body.into()))
        }
        "tag?action=list-tags-for-category" => {
            let category = value["category_id"].as_str()?;
            let path = format!("/rest/com/vmware/cis/tagging/tag/id:{category}?~action=list-tags-for-category");
            Some((path, Bytes::new()))
        }
        _ => None,
    }
}

/// An answer without the wrapping of the older dialect.
pub(super) fn unwrapped(body: &Bytes) -> Bytes {
    match serde_json::from_slice::<Value>(body) {
        Ok(mut value) if value.get("value").is_some() => value["value"].take().to_string().into(),
        _ => body.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tag_api_path_is_translated_to_older_dialect() {
        for (new, old) in [
            ("/api/session", Some("/rest/com/vmware/cis/session")),
            ("/api/cis/tagging/category", Some("/rest/com/vmware/cis/tagging/category")),
            ("/api/cis/tagging/tag/urn:x", Some("/rest/com/vmware/cis/tagging/tag/id:urn:x")),
            (
                "/api/cis/tagging/tag-association?action=list-attached-tags-on-objects",
                Some("/rest/com/vmware/cis/tagging/tag-association?~action=list-attached-tags-on-objects"),
            ),
            ("/sdk", None),
        ] {
            assert_eq!(older(new).as_deref(), old);
        }
    }

    #[test]
    fn tag_api_answer_is_unwrapped_from_value() {
        assert_eq!(
            unwrapped(&Bytes::from_static(b"{\"value\":[\"a\"]}")),
            Bytes::from_static(b"[\"a\"]")
        );
    }
}
