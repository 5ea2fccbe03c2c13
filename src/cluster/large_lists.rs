// SPDX-License-Identifier: Apache-2.0
//! Lists thousands of objects of one kind in large pages, deserialized as a type with few fields, for commands of `vdoctl`.

use super::bounded_deserialize::WHOLE;
use super::request_timeout::timed;
use super::{ClusterError, api};
use kube::Client;
use kube::api::{ListParams, ObjectList};
use kube::core::Request;
use serde::de::DeserializeOwned;
use vdo_api::types::ObjectId;

/// Objects of a page. A claim, a volume or an attachment has two to three kilobytes; pages that are too large become smaller by themselves.
const PAGE: u32 = 1_700;

/// Pages of one list. One that goes on for ever is not read for ever: no cluster has millions of objects of a kind.
const PAGES: usize = 1_000;
/// How often a list is begun: the API server forgets where a reader was after some minutes.
const ATTEMPTS: usize = 3;

/// All objects of a kind in all namespaces that a field selector shows; an empty one shows every object. A list of which the API server
/// has forgotten the place begins from the start.
///
/// # Errors
/// When a request fails, or the list is not finished.
pub async fn list_as<T: DeserializeOwned + Clone>(
    client: &Client,
    api_version: &str,
    kind: &str,
    selector: &str,
) -> Result<Vec<T>, ClusterError> {
    for _ in 0..ATTEMPTS {
        match pages(client, api_version, kind, selector).await {
            Err(ClusterError::Refused { source, .. }) if source.code == EXPIRED => {}
            read => return read,
        }
    }
    Err(unfinished(kind, format!("the continue token expired {ATTEMPTS} times")))
}

/// The status of an answer whose place in the list is too old.
const EXPIRED: u16 = 410;

fn unfinished(kind: &str, why: String) -> ClusterError {
    let what = kind.to_owned();
    ClusterError::Unfinished { what, why }
}

async fn pages<T: DeserializeOwned + Clone>(
    client: &Client,
    api_version: &str,
    kind: &str,
    selector: &str,
) -> Result<Vec<T>, ClusterError> {
    let group = api_version.rsplit_once('/').map_or("", |(group, _)| group);
    let id = ObjectId::new(group, kind, "", "");
    let resource = api::<WHOLE>(client, api_version, kind, "");
    let mut params = ListParams::default().limit(PAGE);
    if !selector.is_empty() {
        params = params.fields(selector);
    }
    let mut all = Vec::new();
    for _ in 0..PAGES {
        let request = Request::new(resource.resource_url())
            .list(&params)
            .map_err(kube::Error::BuildRequest);
        let page = async { client.request::<ObjectList<T>>(request?).await };
        let page = timed("list", api_version, &id, page).await?;
        all.extend(page.items);
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => return Ok(all),
        }
    }
    Err(unfinished(kind, format!("it has more than {PAGES} pages")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::{Request as Http, Response, StatusCode};
    use kube::client::Body;
    use serde::Deserialize;
    use serde_json::{Value, json};
    use std::convert::Infallible;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tower::service_fn;

    #[derive(Clone, Deserialize)]
    struct Name {
        metadata: Value,
    }

    /// An API server with pages of one claim; the token of a page is its number. `answers` has what comes for the request of this number.
    fn server(answers: fn(usize, &str) -> (StatusCode, Value)) -> (Client, Arc<AtomicUsize>) {
        let asked = Arc::new(AtomicUsize::new(0));
        let count = asked.clone();
        let service = service_fn(move |request: Http<Body>| {
            let number = count.fetch_add(1, Ordering::SeqCst);
            let query = request.uri().query().unwrap_or_default();
            let token = query.split('&').find_map(|part| part.strip_prefix("continue=")).unwrap_or_default();
            let (status, value) = answers(number, token);
            let body = Body::from(value.to_string().into_bytes());
            std::future::ready(Ok::<_, Infallible>(
                Response::builder().status(status).body(body).expect("an answer"),
            ))
        });
        (Client::new(service, "default"), asked)
    }

    fn page(name: &str, next: &str) -> (StatusCode, Value) {
        let list = json!({"kind": "List", "apiVersion": "v1", "metadata": {"continue": next}, "items": [{"metadata": {"name": name}}]});
        (StatusCode::OK, list)
    }

    fn expired() -> (StatusCode, Value) {
        let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Expired", "code": 410,
            "message": "The provided continue parameter is too old to display a consistent list result."});
        (StatusCode::GONE, status)
    }

    async fn listed(answers: fn(usize, &str) -> (StatusCode, Value)) -> (Result<Vec<String>, String>, usize) {
        let (client, asked) = server(answers);
        let found = list_as::<Name>(&client, "v1", "PersistentVolumeClaim", "").await;
        let name = |one: Name| one.metadata["name"].as_str().unwrap_or_default().to_owned();
        let found = found
            .map(|all| all.into_iter().map(name).collect())
            .map_err(|error| error.to_string());
        (found, asked.load(Ordering::SeqCst))
    }

    #[tokio::test]
    async fn list_whose_place_expired_begins_from_the_start() {
        let once = listed(|number, token| match (number, token) {
            (1, _) => expired(),
            (_, "") => page("a", "1"),
            _ => page("b", ""),
        });
        assert_eq!(once.await, (Ok(vec!["a".to_owned(), "b".to_owned()]), 4));
        let always = listed(|_, token| if token.is_empty() { page("a", "1") } else { expired() });
        let message = "the API server did not finish the list of PersistentVolumeClaim: the continue token expired 3 times";
        assert_eq!(always.await, (Err(message.to_owned()), 6));
    }

    #[tokio::test]
    async fn list_without_an_end_is_not_read_for_ever() {
        let message = "the API server did not finish the list of PersistentVolumeClaim: it has more than 1000 pages";
        assert_eq!(listed(|_, _| page("a", "1")).await, (Err(message.to_owned()), 1_000));
    }
}
