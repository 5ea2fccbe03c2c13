// SPDX-License-Identifier: Apache-2.0
//! Asks the API server what an account may do (SelfSubjectRulesReview, SubjectAccessReview), and names the missing RBAC rule.

use super::request_timeout::timed;
use super::{ClusterError, resource};
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, ResourceRule, SelfSubjectRulesReview, SelfSubjectRulesReviewSpec, SubjectAccessReview, SubjectAccessReviewSpec,
};
use kube::Client;
use kube::api::{Api, PostParams};
use vdo_api::types::ObjectId;
use vdo_core::plan::Claim;

/// What the caller may do in a namespace, whether it exists or not (SelfSubjectRulesReview).
#[derive(Debug)]
pub struct Permissions {
    rules: Vec<ResourceRule>,
    /// The API server could not list everything, so that what is missing may exist.
    incomplete: bool,
}

/// The rights in the whole cluster are part of the answer for every namespace, and for a namespace without roles they are all of it.
const NOWHERE: &str = "vdo-no-such-namespace";

/// Asks for one's own rights in a namespace, or with an empty one in the whole cluster: one request, whatever is going to be done there.
///
/// # Errors
/// When the request fails.
pub async fn rights(client: &Client, namespace: &str) -> Result<Permissions, ClusterError> {
    let review = SelfSubjectRulesReview {
        spec: SelfSubjectRulesReviewSpec {
            namespace: Some(if namespace.is_empty() { NOWHERE } else { namespace }.to_owned()),
        },
        ..SelfSubjectRulesReview::default()
    };
    let id = ObjectId::new("authorization.k8s.io", "SelfSubjectRulesReview", "", namespace);
    let api: Api<SelfSubjectRulesReview> = Api::all(client.clone());
    let answer = timed(
        "create",
        "authorization.k8s.io/v1",
        &id,
        api.create(&PostParams::default(), &review),
    )
    .await?;
    let status = answer.status.unwrap_or_default();
    Ok(Permissions {
        rules: status.resource_rules,
        // Before Kubernetes 1.34 the node authorizer answered that to everyone, and it grants only nodes anything.
        incomplete: status.incomplete
            && status.evaluation_error.as_deref() != Some("node authorizer does not support user rule resolution"),
    })
}

/// Whether another user may do this (SubjectAccessReview).
///
/// # Errors
/// When the request fails; it needs a right of its own.
pub async fn may(client: &Client, claim: &Claim) -> Result<bool, ClusterError> {
    let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    let review = SubjectAccessReview {
        spec: SubjectAccessReviewSpec {
            user: Some(claim.user.clone()),
            groups: Some(groups(&claim.user)),
            resource_attributes: Some(ResourceAttributes {
                verb: text(claim.verb),
                group: text(claim.group),
                resource: text(claim.resource),
                subresource: text(claim.subresource),
                namespace: text(claim.namespace),
                ..ResourceAttributes::default()
            }),
            ..SubjectAccessReviewSpec::default()
        },
        ..SubjectAccessReview::default()
    };
    let id = ObjectId::new("authorization.k8s.io", "SubjectAccessReview", "", &claim.user);
    let api: Api<SubjectAccessReview> = Api::all(client.clone());
    let options = PostParams::default();
    let asked = api.create(&options, &review);
    let answer = timed("create", "authorization.k8s.io/v1", &id, asked).await?;
    Ok(answer.status.is_some_and(|status| status.allowed))
}

/// The groups of a service account, without which rights that a whole namespace or all accounts have are not seen.
fn groups(user: &str) -> Vec<String> {
    let namespace = user.strip_prefix("system:serviceaccount:").and_then(|rest| rest.split_once(':'));
    let own = namespace.map(|(namespace, _)| format!("system:serviceaccounts:{namespace}"));
    let all = ["system:serviceaccounts", "system:authenticated"].map(str::to_owned);
    own.into_iter().chain(all).collect()
}

impl Permissions {
    /// The first of these verbs that is not allowed for an object, as an error that names the rule. What is not known is allowed.
    ///
    /// # Errors
    /// With that verb.
    pub fn require(&self, verbs: &[&str], api_version: &str, id: &ObjectId) -> Result<(), ClusterError> {
        match verbs.iter().find(|verb| !self.incomplete && !self.grants(verb, api_version, id)) {
            Some(verb) => Err(ClusterError::lacking(verb, api_version, id)),
            None => Ok(()),
        }
    }

    /// The first of these verbs that is not allowed on a resource, whatever its name or with this one, as the words of a rule. What is not
    /// known is allowed.
    #[must_use]
    pub fn refused(&self, verbs: &[&str], group: &str, resource: &str, name: Option<&str>) -> Option<String> {
        let verb = verbs
            .iter()
            .find(|verb| !self.incomplete && !self.has(verb, group, resource, name))?;
        let of = if group.is_empty() { String::new() } else { format!(".{group}") };
        Some(format!(
            "{verb} {resource}{of}{}",
            name.map(|name| format!(" {name}")).unwrap_or_default()
        ))
    }

    fn has(&self, verb: &str, group: &str, resource: &str, name: Option<&str>) -> bool {
        let has = |list: &[String], word: &str| list.iter().any(|entry| entry == "*" || entry == word);
        self.rules.iter().any(|rule| {
            let names = rule.resource_names.as_deref().unwrap_or_default();
            has(&rule.verbs, verb)
                && has(rule.api_groups.as_deref().unwrap_or_default(), group)
                && has(rule.resources.as_deref().unwrap_or_default(), resource)
                && (names.is_empty() || name.is_some_and(|name| names.iter().any(|known| known == name)))
        })
    }

    /// Whether a verb is known to be allowed for an object.
    #[must_use]
    pub(super) fn grants(&self, verb: &str, api_version: &str, id: &ObjectId) -> bool {
        let resource = resource(api_version, id.kind());
        self.has(verb, &resource.group, &resource.plural, Some(&id.name))
    }
}

/// A word in `User "x" cannot patch resource "y/status"`: what stands after these words.
pub(super) fn denied<'a>(message: &'a str, after: &str, end: char) -> Option<&'a str> {
    message.split(after).nth(1)?.split(end).next()
}

/// The rule that would allow this, in the form of a Role. The server says which part of an object it is about; the kind does not.
pub(super) fn rule(api_version: &str, id: &ObjectId, verb: &str, denied: Option<&str>) -> String {
    let plural = denied.map_or_else(|| resource(api_version, id.kind()).plural, str::to_owned);
    let names = if id.name.is_empty() {
        String::new()
    } else {
        format!(", resourceNames: [{}]", id.name)
    };
    let place = if id.namespace.is_empty() {
        "ClusterRole".into()
    } else {
        format!("Role in namespace {}", id.namespace)
    };
    format!(
        "{{apiGroups: [\"{}\"], resources: [{plural}], verbs: [{verb}]{names}}} ({place})",
        id.group()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rights(names: &[&str], verbs: &[&str], incomplete: bool) -> Permissions {
        let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        Permissions {
            rules: vec![ResourceRule {
                api_groups: Some(owned(&["apps"])),
                resource_names: Some(owned(names)),
                resources: Some(owned(&["deployments"])),
                verbs: owned(verbs),
            }],
            incomplete,
        }
    }

    #[test]
    fn rbac_require_missing_verb_or_name_is_reported() {
        let id = ObjectId::new("apps", "Deployment", "csi", "controller");
        let missing = |rights: Permissions| {
            rights
                .require(&["patch", "create"], "apps/v1", &id)
                .err()
                .map(|e| vdo_api::api::chain(&e))
                .unwrap_or_default()
        };
        assert_eq!(missing(rights(&["controller"], &["create", "patch"], false)), "");
        assert_eq!(missing(rights(&[], &["*"], false)), "");
        assert!(missing(rights(&["controller"], &["create"], false)).contains("may not patch Deployment csi/controller"));
        assert!(missing(rights(&["other"], &["create", "patch"], false)).contains("resourceNames: [controller]"));
        assert_eq!(missing(rights(&["other"], &[], true)), "");
    }

    #[test]
    fn rbac_rule_denied_subresource_is_named() {
        let message = r#"pods "p" is forbidden: User "u" cannot get resource "pods/log" in API group "" in the namespace "n""#;
        assert_eq!(
            (denied(message, " cannot ", ' '), denied(message, " resource \"", '"')),
            (Some("get"), Some("pods/log"))
        );
        let of = |name: &str, denied| rule("v1", &ObjectId::new("", "Pod", "n", name), "get", denied);
        assert_eq!(
            of("", Some("pods/log")),
            "{apiGroups: [\"\"], resources: [pods/log], verbs: [get]} (Role in namespace n)"
        );
        assert!(of("p", None).contains("resources: [pods], verbs: [get], resourceNames: [p]"));
        // Secrets are watched by name, and the right to see one must not become the right to see all.
        let secret = ObjectId::new("", "Secret", "n", "s");
        assert!(rule("v1", &secret, "list", None).contains("verbs: [list], resourceNames: [s]"));
    }
}
