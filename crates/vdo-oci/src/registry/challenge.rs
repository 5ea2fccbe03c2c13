// SPDX-License-Identifier: Apache-2.0
//! Parses the header `WWW-Authenticate`, by which a registry requests basic authentication or a token (pure).

/// What a registry asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Challenge {
    /// A name and a password with every request.
    Basic,
    /// A token from elsewhere.
    Bearer {
        /// Where tokens come from.
        realm: String,
        /// For whom they are.
        service: Option<String>,
    },
}

impl Challenge {
    /// The first one that is understood; a token is better than a password.
    pub(super) fn parse<'a>(headers: impl Iterator<Item = &'a str>) -> Option<Self> {
        let mut basic = None;
        for header in headers {
            let (scheme, rest) = header.trim().split_once(' ').unwrap_or((header.trim(), ""));
            if scheme.eq_ignore_ascii_case("basic") {
                basic = Some(Self::Basic);
            }
            if scheme.eq_ignore_ascii_case("bearer") {
                let parameters = parameters(rest);
                let value = |name: &str| {
                    let found = parameters.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
                    found.map(|(_, value)| value.clone())
                };
                if let Some(realm) = value("realm") {
                    return Some(Self::Bearer {
                        realm,
                        service: value("service"),
                    });
                }
            }
        }
        basic
    }
}

/// `name="value", name=value` (RFC 9110, section 11.2).
fn parameters(text: &str) -> Vec<(String, String)> {
    let mut all = Vec::new();
    let mut rest = text;
    while let Some((name, after)) = rest.split_once('=') {
        let name = name.trim_start_matches([',', ' ', '\t']).trim_end().to_owned();
        let after = after.trim_start();
        let (value, next) = match after.strip_prefix('"') {
            Some(quoted) => until_quote(quoted),
            None => {
                let (value, next) = after.split_once(',').unwrap_or((after, ""));
                (value.trim_end().to_owned(), next)
            }
        };
        all.push((name, value));
        rest = next;
    }
    all
}

/// What stands before the closing quote, and what follows it.
fn until_quote(text: &str) -> (String, &str) {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, c)) = characters.next() {
        match c {
            '"' => return (value, &text[at + 1..]),
            '\\' => value.extend(characters.next().map(|(_, c)| c)),
            c => value.push(c),
        }
    }
    (value, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenge_is_read_as_registries_write_it() {
        let bearer = |realm: &str, service: Option<&str>| {
            Some(Challenge::Bearer {
                realm: realm.into(),
                service: service.map(Into::into),
            })
        };
        for (headers, expected) in [
            (vec![], None),
            (vec!["Negotiate"], None),
            (vec!["Basic realm=\"r\""], Some(Challenge::Basic)),
            (
                vec!["Bearer realm=\"https://a.test/token\",service=\"r.test\",scope=\"repository:x:pull,push\""],
                bearer("https://a.test/token", Some("r.test")),
            ),
            (
                vec!["bearer Service=r.test , realm=\"https://a.test/t?a=\\\"b\\\",c\""],
                bearer("https://a.test/t?a=\"b\",c", Some("r.test")),
            ),
            (
                vec!["Basic realm=x", "Bearer realm=\"https://a.test/\""],
                bearer("https://a.test/", None),
            ),
            (vec!["Bearer error=\"invalid_token\""], None),
            (vec!["Bearer realm=\"never closed"], bearer("never closed", None)),
        ] {
            assert_eq!(Challenge::parse(headers.iter().copied()), expected, "{headers:?}");
        }
    }
}
