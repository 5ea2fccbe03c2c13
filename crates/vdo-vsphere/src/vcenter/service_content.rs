// SPDX-License-Identifier: Apache-2.0
//! The request `RetrieveServiceContent`, which needs no login, and its answer: version, build, instance UUID; recognises ESXi hosts.

use super::Endpoint;
use super::http::Answer;
use super::inspection_limits::Budget;
use super::offload::offload;
use super::xml::{self, Element, Tree};
use crate::vsphere::ProbeError;
use vdo_api::types::{VcenterVersion, plain};

/// The oldest dialect of the supported vCenters; newer ones answer it too, while a dialect newer than the server is an error.
pub(super) const ACTION: &str = "urn:vim25/6.7";

pub(super) use super::xml::{SOAP, VIM};

/// Asks for the content of the service instance.
pub(super) const RETRIEVE_SERVICE_CONTENT: &str = concat!(
    r#"<?xml version="1.0" encoding="UTF-8"?><Envelope xmlns="http://schemas.xmlsoap.org/soap/envelope/"><Body>"#,
    r#"<RetrieveServiceContent xmlns="urn:vim25"><_this type="ServiceInstance">ServiceInstance</_this></RetrieveServiceContent>"#,
    r"</Body></Envelope>"
);

/// `AboutInfo`, as far as it is of use.
#[derive(Debug)]
pub(super) struct About {
    pub(super) version: VcenterVersion,
    pub(super) build: String,
    pub(super) api_type: String,
    pub(super) api_version: String,
    pub(super) instance_uuid: String,
    pub(super) full_name: String,
}

/// Reads the answer: what the service says about itself, and all of its content.
pub(super) async fn about(endpoint: &Endpoint, budget: &Budget, answer: Answer) -> Result<(About, Tree), ProbeError> {
    let address = || endpoint.address();
    let not_vcenter = |because: &str| ProbeError::NotVcenter {
        address: address(),
        because: because.to_owned(),
    };
    let status = answer.status;
    match status {
        300..=399 => return Err(not_vcenter("it redirects /sdk to another address, and redirects are not followed")),
        404 | 405 | 410 | 501 => return Err(not_vcenter("it has no service at /sdk")),
        _ => {}
    }
    let read = offload(endpoint, budget, move |work| {
        let text = answer.text()?;
        (!is_web_page(text)).then(|| xml::parse(text, work)).transpose()
    });
    let read = read.await;
    if status != 200 {
        let fault = read.ok().flatten().and_then(|tree| fault(&tree));
        return Err(ProbeError::Status {
            address: address(),
            status,
            fault,
        });
    }
    let tree = read?.ok_or_else(|| not_vcenter("it answers with a web page"))?;
    if !tree.is(SOAP, "Envelope") {
        return Err(not_vcenter("its answer is not SOAP"));
    }
    if let Some(fault) = fault(&tree) {
        return Err(ProbeError::Status {
            address: address(),
            status,
            fault: Some(fault),
        });
    }
    let silent = || not_vcenter("its SOAP answer says nothing about a vSphere service");
    let content = tree.map(|root| content(root).ok_or_else(silent))?;
    let about = content.child("about").ok_or_else(silent)?;
    let about = judged(endpoint, about)?;
    Ok((about, content))
}

/// What the answer holds.
fn content(root: Element) -> Option<Element> {
    let body = root.children.into_iter().find(|child| child.name == "Body")?;
    let mut parts = body.children.into_iter();
    let response = parts.find(|child| child.is(VIM, "RetrieveServiceContentResponse"))?;
    response.children.into_iter().find(|child| child.name == "returnval")
}

fn judged(endpoint: &Endpoint, about: &Element) -> Result<About, ProbeError> {
    let address = || endpoint.address();
    let not_vcenter = |because: String| ProbeError::NotVcenter {
        address: address(),
        because,
    };
    let api_type = plain(&about.text_of("apiType"));
    match api_type.as_str() {
        "VirtualCenter" => {}
        "HostAgent" => {
            return Err(ProbeError::EsxHost {
                address: address(),
                full_name: plain(&about.text_of("fullName")),
            });
        }
        other => return Err(not_vcenter(format!("it calls itself {other:?}"))),
    }
    let version = plain(&about.text_of("version"));
    let version = version
        .parse()
        .map_err(|error: vdo_api::types::ParseVersionError| ProbeError::Malformed {
            address: address(),
            because: error.to_string(),
        })?;
    Ok(About {
        version,
        build: plain(&about.text_of("build")),
        api_type,
        api_version: plain(&about.text_of("apiVersion")),
        instance_uuid: plain(&about.text_of("instanceUuid")),
        full_name: plain(&about.text_of("fullName")),
    })
}

fn is_web_page(text: &str) -> bool {
    let start: String = text
        .trim_start_matches('\u{feff}')
        .trim_start()
        .chars()
        .take(14)
        .collect::<String>()
        .to_ascii_lowercase();
    start.starts_with("<!doctype html") || start.starts_with("<html")
}

fn fault(tree: &Element) -> Option<String> {
    let fault = tree.child("Body")?.children.iter().find(|child| child.is(SOAP, "Fault"))?;
    Some(plain(&fault.text_of("faultstring")))
}
