// SPDX-License-Identifier: Apache-2.0
//! Parses the SOAP response to a call, or its fault (type, text, missing privilege).

use super::fault::Fault;
use super::http::Answer;
use super::inspection_limits::Budget;
use super::offload::{Unread, offload};
use super::requests::{Method, Operation};
use super::session::Session;
use super::xml::{self, Element, SOAP, Tree};
use crate::vsphere::ProbeError;
use vdo_api::types::plain;

/// As much of a fault's words as is looked through for the password, which they may repeat.
const MAX_WORDS: usize = 64 << 10;

impl Session {
    /// The element of the response, or the fault in its place.
    pub async fn response(&self, method: Method, answer: Answer, budget: &Budget) -> Result<Result<Tree, Fault>, ProbeError> {
        let read = self.response_each(&method.into(), answer, budget, (), |(), _| Ok(())).await?;
        Ok(read.map(|(response, ())| response))
    }

    /// The same, and each element of the operation's list goes through `take` into `taken` and not into the response.
    pub async fn response_each<T: Send + 'static>(
        &self,
        operation: &Operation,
        answer: Answer,
        budget: &Budget,
        mut taken: T,
        take: fn(&mut T, Element) -> Result<(), Unread>,
    ) -> Result<Result<(Tree, T), Fault>, ProbeError> {
        let status = answer.status;
        let unexpected = || ProbeError::Status {
            address: self.endpoint.address(),
            status,
            fault: None,
        };
        // A fault comes as 500; everything else that is not 200 does not come from the vCenter's SOAP service.
        if status != 200 && status != 500 {
            return Err(unexpected());
        }
        let list = operation.list;
        let read = offload(&self.endpoint, budget, move |work| {
            let tree = xml::parse_each(answer.text()?, work, list, &mut taken, take)?;
            Ok((tree, taken))
        });
        let (tree, taken) = match read.await {
            Err(ProbeError::Malformed { .. }) if status == 500 => return Err(unexpected()),
            read => read?,
        };
        let first = tree.map(|root| {
            let mut parts = root.children.into_iter();
            let body = parts
                .find(|child| child.is(SOAP, "Body"))
                .ok_or_else(|| self.malformed("it is not SOAP".to_owned()))?;
            let mut parts = body.children.into_iter();
            parts
                .next()
                .ok_or_else(|| self.malformed(format!("the response to {} is empty", operation.name)))
        })?;
        if first.is(SOAP, "Fault") {
            let fault = fault(&first);
            let words: String = fault.text.chars().take(MAX_WORDS).collect();
            let text = self.credentials.password.hidden_in(&words);
            return Ok(Err(Fault { text, ..fault }));
        }
        if first.namespace != operation.place.namespace || !first.name.ends_with("Response") {
            return Err(self.malformed(format!("it is not a response to {}", operation.name)));
        }
        Ok(Ok((first, taken)))
    }
}

/// The type of a fault is that of its detail; the element's own name is used where the type is missing.
fn fault(element: &Element) -> Fault {
    let detail = element.child("detail").and_then(|detail| detail.children.first());
    let kind = detail.map_or_else(String::new, |detail| {
        let kind = if detail.xsi_type.is_empty() {
            &detail.name
        } else {
            &detail.xsi_type
        };
        kind.strip_suffix("Fault").unwrap_or(kind).to_owned()
    });
    Fault {
        kind,
        text: element.text_of("faultstring"),
        denied: detail.and_then(denied),
    }
}

/// The first privilege that a refused call needs, and the object that it is needed on: newer vCenters list them, older ones name one.
pub fn denied(detail: &Element) -> Option<(String, String)> {
    let listed = detail.child("missingPrivileges");
    let privilege = listed.map_or_else(|| detail.text_of("privilegeId"), |listed| listed.text_of("privilegeIds"));
    let object = listed.and_then(|listed| listed.child("entity")).or_else(|| detail.child("object"));
    let object = object.map(|object| format!("{} {}", plain(&object.kind), plain(object.text.trim())));
    (!privilege.is_empty()).then(|| (plain(&privilege), object.unwrap_or_default()))
}
