// SPDX-License-Identifier: Apache-2.0
//! Reads, creates and deletes users of a vCenter's own domain in the SSO service, and sets passwords; logs in there with a SAML token.

use super::changes::UserCall;
use crate::accounts::{ChangeError, PasswordPolicy, Person, Principal, Step};
use hyper::header::HeaderValue;
use jiff::{SignedDuration, Timestamp};
use std::borrow::Cow;
use vdo_api::types::{Secret, plain};
use vdo_vsphere::vcenter::raw::{Element, Held, Operation, Place, Tree, Unread, element, xml};
use vdo_vsphere::vcenter::{Budget, Session};
use vdo_vsphere::vsphere::{ManagedObject, SessionError};

/// How long the token is good for: as long as it takes to log in with it.
const LIFE: SignedDuration = SignedDuration::from_mins(5);
/// Users in one answer: all of them. The service knows no pages; what one answer may cost is bounded by its bytes and by memory.
const ALL: i32 = i32::MAX;
/// What a user costs in memory besides its texts.
const COST: usize = 96;

const WSSE: &str = "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-wssecurity-secext-1.0.xsd";
const WSU: &str = "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-wssecurity-utility-1.0.xsd";
const TRUST: &str = "http://docs.oasis-open.org/ws-sx/ws-trust/200512";

/// A login to the service of the users of one domain.
pub(super) struct Users {
    domain: String,
    cookie: Option<HeaderValue>,
}

/// The domain of a user.
pub(super) fn domain_of(user: &str) -> String {
    user.parse::<Principal>().map(|principal| principal.domain).unwrap_or_default()
}

impl Users {
    /// Gets a token for the account of a session, and logs in with it.
    pub(super) async fn open(session: &Session, domain: &str, now: Timestamp) -> Result<Self, ChangeError> {
        let good = !domain.is_empty() && domain.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_'));
        if !good {
            return Err(ChangeError::Refused {
                address: session.endpoint.address(),
                what: "manage users".into(),
                kind: "InvalidArgument".into(),
                text: format!("{domain:?} is not a domain"),
            });
        }
        let assertion = token(session, domain, now).await?;
        let mut users = Self {
            domain: domain.to_owned(),
            // In this one's own session, which begins as the other's.
            cookie: session.live.lock().await.as_ref().and_then(|live| live.cookie.clone()),
        };
        users.call(session, UserCall::Login, "", &security(now, &assertion)).await?;
        Ok(users)
    }

    pub(super) fn domain(&self) -> &str {
        &self.domain
    }

    pub(super) async fn find(&mut self, session: &Session, principal: &Principal) -> Result<Option<Person>, ChangeError> {
        let id = element("name", &principal.name) + &element("domain", &principal.domain);
        let found = self
            .call(session, UserCall::FindPersonUser, &format!("<userId>{id}</userId>"), "")
            .await?;
        Ok(found.child("returnval").map(person).filter(|person| !person.name.is_empty()))
    }

    pub(super) async fn list(&mut self, session: &Session, text: &str) -> Result<Vec<Person>, ChangeError> {
        let criteria = element("searchString", text) + &element("domain", &self.domain);
        let arguments = format!("<criteria>{criteria}</criteria>{}", element("limit", &ALL.to_string()));
        let taken = (vec![], Budget::default().hold());
        let answer = self
            .exchange(session, UserCall::FindPersonUsers, &arguments, "", taken, keep)
            .await?;
        Ok(answer.1.0)
    }

    pub(super) async fn policy(&mut self, session: &Session) -> Result<PasswordPolicy, ChangeError> {
        match self.call(session, UserCall::GetLocalPasswordPolicy, "", "").await {
            Ok(found) => Ok(found
                .child("returnval")
                .and_then(|all| all.child("passwordFormat"))
                .map(policy)
                .unwrap_or_default()),
            Err(ChangeError::NoUserManager { .. } | ChangeError::Refused { .. }) => Ok(PasswordPolicy::default()),
            Err(error) => Err(error),
        }
    }

    pub(super) async fn change(&mut self, session: &Session, step: &Step, password: &Secret) -> Result<(), ChangeError> {
        let bare = |user: &str| user.parse::<Principal>().map(|principal| principal.name).unwrap_or_default();
        let (call, arguments) = match step {
            Step::CreateUser { user, description } => {
                let details = element("description", description);
                let arguments = element("userName", &bare(user))
                    + &format!("<userDetails>{details}</userDetails>")
                    + &element("password", password.expose());
                (UserCall::CreateLocalPersonUser, arguments)
            }
            Step::SetPassword { user } => {
                let arguments = element("userName", &bare(user)) + &element("newPassword", password.expose());
                (UserCall::ResetLocalPersonUserPassword, arguments)
            }
            Step::DeleteUser { user } => (UserCall::DeleteLocalPrincipal, element("principalName", &bare(user))),
            _ => return Ok(()),
        };
        match self.call(session, call, &arguments, "").await {
            Err(error) if call == UserCall::DeleteLocalPrincipal && error.is_not_found() => Ok(()),
            // A server may repeat what it was sent.
            Err(ChangeError::Refused { address, kind, text, .. }) => Err(ChangeError::Refused {
                address,
                what: step.to_string(),
                kind,
                text: password.hidden_in(&text),
            }),
            result => result.map(|_| ()),
        }
    }

    pub(super) async fn close(&mut self, session: &Session) {
        if let Err(error) = self.call(session, UserCall::Logout, "", "").await {
            tracing::debug!(%error, "the session with the user service could not be closed; the session expires by itself");
        }
    }

    async fn call(&mut self, session: &Session, call: UserCall, arguments: &str, header: &str) -> Result<Tree, ChangeError> {
        Ok(self.exchange(session, call, arguments, header, (), |(), _| Ok(())).await?.0)
    }

    async fn exchange<T: Send + 'static>(
        &mut self,
        session: &Session,
        call: UserCall,
        arguments: &str,
        header: &str,
        taken: T,
        take: fn(&mut T, Element) -> Result<(), Unread>,
    ) -> Result<(Tree, T), ChangeError> {
        let budget = Budget::default();
        let operation = call.of(&self.domain);
        let (kind, id) = call.service();
        let this = ManagedObject {
            kind: kind.into(),
            id: id.into(),
        };
        let mut live = session.live.lock().await;
        let mut caller = session.caller(&mut live, &budget)?;
        let request = operation.envelope(&this, arguments, header);
        let answer = caller.post(&operation, request, self.cookie.as_ref()).await?;
        if let Some(cookie) = &answer.cookie {
            self.cookie = Some(cookie.clone());
        }
        let read = session.response_each(&operation, answer, &budget, taken, take).await;
        let read = read.map_err(SessionError::from)?;
        read.map_err(|fault| {
            let (address, user) = (session.endpoint.address(), session.credentials.user.clone());
            match fault.kind.as_str() {
                "NotAuthenticated" | "SsoFaultNotAuthenticated" => ChangeError::Session(SessionError::Lost { address, user }),
                "NoPermission" | "SsoFaultNoPermission" => ChangeError::NoUserManager {
                    address,
                    user,
                    domain: self.domain.clone(),
                },
                _ => ChangeError::Refused {
                    address,
                    what: format!("carry out {}", operation.name),
                    kind: plain(&fault.kind),
                    text: plain(&fault.text),
                },
            }
        })
    }
}

fn keep((all, held): &mut (Vec<Person>, Held), one: Element) -> Result<(), Unread> {
    let person = person(&one);
    held.grow(COST + person.name.len() + person.description.len())?;
    all.push(person);
    Ok(())
}

fn person(one: &Element) -> Person {
    let is = |name: &str| one.text_of(name) == "true";
    Person {
        name: one.child("id").map(|id| plain(&id.text_of("name"))).unwrap_or_default(),
        description: one
            .child("details")
            .map(|details| plain(&details.text_of("description")))
            .unwrap_or_default(),
        locked: is("locked"),
        disabled: is("disabled"),
    }
}

fn policy(format: &Element) -> PasswordPolicy {
    let normal = PasswordPolicy::default();
    let number = |of: Option<&Element>, name: &str, normal: usize| of.and_then(|of| of.text_of(name).parse().ok()).unwrap_or(normal);
    let (length, letters) = (format.child("lengthRestriction"), format.child("alphabeticRestriction"));
    PasswordPolicy {
        min_length: number(length, "minLength", normal.min_length),
        max_length: number(length, "maxLength", normal.max_length),
        min_letters: number(letters, "minAlphabeticCount", normal.min_letters),
        min_upper: number(letters, "minUppercaseCount", normal.min_upper),
        min_lower: number(letters, "minLowercaseCount", normal.min_lower),
        min_digits: number(Some(format), "minNumericCount", normal.min_digits),
        min_special: number(Some(format), "minSpecialCharCount", normal.min_special),
        max_repeated: number(Some(format), "maxIdenticalAdjacentCharacters", normal.max_repeated),
    }
}

/// A proof of who asks, as WS-Security has it: `inside` is a user name with a password, or a token.
fn security(now: Timestamp, inside: &str) -> String {
    let (from, until) = lifetime(now);
    format!(
        r#"<wsse:Security xmlns:wsse="{WSSE}" xmlns:wsu="{WSU}"><wsu:Timestamp wsu:Id="time"><wsu:Created>{from}</wsu:Created><wsu:Expires>{until}</wsu:Expires></wsu:Timestamp>{inside}</wsse:Security>"#
    )
}

fn lifetime(now: Timestamp) -> (String, String) {
    let until = now.checked_add(LIFE).unwrap_or(now);
    let written = |time: Timestamp| time.strftime("%Y-%m-%dT%H:%M:%S.000Z").to_string();
    (written(now), written(until))
}

/// Asks the token service for a bearer token that is valid for a few minutes.
async fn token(session: &Session, domain: &str, now: Timestamp) -> Result<String, ChangeError> {
    let (from, until) = lifetime(now);
    let credentials = &session.credentials;
    let name = element("wsse:Username", &credentials.user) + &element("wsse:Password", credentials.password.expose());
    let header = security(now, &format!("<wsse:UsernameToken>{name}</wsse:UsernameToken>"));
    let body = format!(
        concat!(
            r#"<RequestSecurityToken xmlns="{trust}" xmlns:wsu="{wsu}"><TokenType>urn:oasis:names:tc:SAML:2.0:assertion</TokenType>"#,
            "<RequestType>{trust}/Issue</RequestType><Lifetime><wsu:Created>{from}</wsu:Created><wsu:Expires>{until}</wsu:Expires></Lifetime>",
            r#"<Renewing Allow="false" OK="false"/><Delegatable>false</Delegatable><KeyType>{trust}/Bearer</KeyType>"#,
            "<SignatureAlgorithm>http://www.w3.org/2001/04/xmldsig-more#rsa-sha256</SignatureAlgorithm></RequestSecurityToken>"
        ),
        trust = TRUST,
        wsu = WSU,
        from = from,
        until = until
    );
    let request = format!(
        r#"<?xml version="1.0" encoding="UTF-8"?><Envelope xmlns="{}"><Header>{header}</Header><Body>{body}</Body></Envelope>"#,
        xml::SOAP
    );
    let operation = Operation {
        name: "RequestSecurityToken",
        list: "",
        place: Place {
            path: Cow::Owned(format!("/sts/STSService/{domain}")),
            namespace: "",
            action: concat!("\"", "http://docs.oasis-open.org/ws-sx/ws-trust/200512/RST/Issue", "\""),
        },
    };
    let budget = Budget::default();
    let mut live = session.live.lock().await;
    let mut caller = session.caller(&mut live, &budget)?;
    let answer = caller.post(&operation, request, None).await?;
    let (address, user) = (session.endpoint.address(), credentials.user.clone());
    let refused = |text: &str| ChangeError::TokenRefused {
        address: address.clone(),
        user: user.clone(),
        text: plain(&credentials.password.hidden_in(text)),
    };
    let (status, text) = (answer.status, answer.text().unwrap_or_default().to_owned());
    let whole = caller.offload(move |work| xml::parse(&text, work).map(|_| text)).await;
    match (status, whole) {
        (200, Ok(text)) => inside(&text)
            .map(str::to_owned)
            .ok_or_else(|| refused("the answer contains no token")),
        (_, Ok(text)) => Err(refused(between(&text, "faultstring").unwrap_or("it answers with an error"))),
        (_, Err(_)) => Err(refused(&format!("it answers with status {status}"))),
    }
}

/// The token in an answer, byte by byte: it is signed.
fn inside(text: &str) -> Option<&str> {
    between(text, "RequestedSecurityToken")
        .map(str::trim)
        .filter(|token| token.starts_with('<'))
}

/// What stands in the first element of this local name, in a document that is known to be whole.
fn between<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let mut rest = text;
    while let Some(at) = rest.find(name) {
        let (before, after) = rest.split_at(at);
        let prefix = before.rsplit('<').next().filter(|_| before.contains('<')).unwrap_or(" ");
        let is_start = prefix.is_empty() || (prefix.ends_with(':') && !prefix.contains(['/', ' ', '>']));
        if is_start {
            let content = after.split_once('>')?.1;
            let end = content.find(&format!("</{prefix}{name}>"))?;
            return Some(&content[..end]);
        }
        rest = &after[name.len()..];
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use vdo_vsphere::vcenter::raw::Work;

    /// A document that is known to be right.
    fn whole(text: &str) -> Element {
        xml::parse(text, &Work::with(Budget::default())).expect("XML").root
    }

    #[test]
    fn sso_token_is_taken_byte_by_byte() {
        let token = r#"<saml2:Assertion xmlns:saml2="urn:x" ID="_1"><a b='c'/>  &lt;</saml2:Assertion>"#;
        for (open, close) in [
            ("ns2:RequestedSecurityToken", "ns2:RequestedSecurityToken"),
            ("RequestedSecurityToken x='y'", "RequestedSecurityToken"),
        ] {
            let text = format!("<e><RequestedSecurityTokenReference/><r><{open}>\n{token}</{close}></r></e>");
            let text = text.replace("<RequestedSecurityTokenReference/>", "");
            assert_eq!(inside(&text), Some(token), "{text}");
        }
        assert_eq!(inside("<e>RequestedSecurityToken</e>"), None);
        assert_eq!(between("<e><faultstring>no &lt;</faultstring></e>", "faultstring"), Some("no &lt;"));
    }

    #[test]
    fn sso_policy_of_an_answer_is_read() {
        let text = concat!(
            "<passwordFormat><lengthRestriction><minLength>12</minLength><maxLength>64</maxLength></lengthRestriction>",
            "<alphabeticRestriction><minAlphabeticCount>4</minAlphabeticCount><minUppercaseCount>2</minUppercaseCount><minLowercaseCount>2</minLowercaseCount></alphabeticRestriction>",
            "<minNumericCount>3</minNumericCount><minSpecialCharCount>2</minSpecialCharCount><maxIdenticalAdjacentCharacters>1</maxIdenticalAdjacentCharacters></passwordFormat>"
        );
        let expected = PasswordPolicy {
            min_length: 12,
            max_length: 64,
            min_letters: 4,
            min_upper: 2,
            min_lower: 2,
            min_digits: 3,
            min_special: 2,
            max_repeated: 1,
        };
        assert_eq!(policy(&whole(text)), expected);
        assert_eq!(policy(&whole("<passwordFormat/>")), PasswordPolicy::default());
    }

    #[test]
    fn sso_person_of_an_answer_is_read() {
        let text = "<returnval><id><name>k8s</name><domain>d</domain></id><details><description>Ours</description></details><disabled>false</disabled><locked>true</locked></returnval>";
        let found = person(&whole(text));
        assert_eq!(
            (found.name.as_str(), found.description.as_str(), found.locked, found.disabled),
            ("k8s", "Ours", true, false)
        );
    }
}
