// SPDX-License-Identifier: Apache-2.0
//! Decides which proxy the client uses for an API server, from kubeconfig, `HTTPS_PROXY` and `NO_PROXY`, by the rules of kubectl.

use hyper::Uri;
use hyper::header::HeaderValue;
use hyper_util::client::proxy::matcher::Matcher;
use std::fmt;
use std::net::IpAddr;

/// The variables of the environment that name proxies, as Go's programs read them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Environment {
    https: String,
    http: String,
    no: String,
}

impl Environment {
    /// The one of this process.
    #[expect(
        clippy::disallowed_methods,
        reason = "the variables mean here what they mean for kubectl; for --help they are not flags"
    )]
    pub(super) fn read() -> Self {
        Self::of(|name| std::env::var(name).ok())
    }

    /// Capital letters win; an empty variable is none.
    fn of(value: impl Fn(&str) -> Option<String>) -> Self {
        let first = |names: [&str; 2]| names.into_iter().filter_map(&value).find(|value| !value.is_empty());
        Self {
            https: first(["HTTPS_PROXY", "https_proxy"]).unwrap_or_default(),
            http: first(["HTTP_PROXY", "http_proxy"]).unwrap_or_default(),
            no: first(["NO_PROXY", "no_proxy"]).unwrap_or_default(),
        }
    }
}

/// Where a proxy is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProxyOrigin {
    /// The cluster of the kubeconfig.
    Kubeconfig,
    /// A variable of the environment.
    Variable(&'static str),
}

impl fmt::Display for ProxyOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Kubeconfig => "proxy-url in the kubeconfig",
            Self::Variable(name) => name,
        })
    }
}

/// A proxy, and how it knows who asks. Its `Debug` and `Display` show no login.
#[derive(Clone)]
pub(super) struct Proxy {
    /// Its address with a port and without a login.
    pub address: Uri,
    /// Where it is named.
    pub origin: ProxyOrigin,
    /// For an HTTP proxy.
    pub basic: Option<HeaderValue>,
    /// For SOCKS: user and password.
    pub login: Option<(String, String)>,
}

impl fmt::Display for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let authority = self.address.authority().map(ToString::to_string).unwrap_or_default();
        write!(f, "{}://{authority}", self.address.scheme_str().unwrap_or_default())
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self} ({})", self.origin)
    }
}

impl Proxy {
    /// Whether it speaks SOCKS and not HTTP.
    pub(super) fn is_socks(&self) -> bool {
        self.address.scheme_str().is_some_and(|scheme| scheme.starts_with("socks"))
    }

    /// A proxy that is named like this; `None` where it is not an address of one.
    fn of(text: &str, origin: ProxyOrigin) -> Option<Self> {
        let anywhere = Uri::from_static("https://any.invalid/");
        let read = Matcher::builder().all(text).build().intercept(&anywhere)?;
        let (scheme, usual) = match read.uri().scheme_str()? {
            "http" => ("http", 80),
            "https" => ("https", 443),
            "socks5" | "socks5h" => ("socks5", 1080),
            _ => return None,
        };
        let host = read.uri().host().filter(|host| !host.is_empty())?;
        let port = read.uri().port_u16().unwrap_or(usual);
        let address = Uri::builder()
            .scheme(scheme)
            .authority(format!("{host}:{port}"))
            .path_and_query("/");
        let login = read.raw_auth().map(|(user, password)| (user.to_owned(), password.to_owned()));
        Some(Self {
            address: address.build().ok()?,
            origin,
            basic: read.basic_auth().cloned(),
            login,
        })
    }
}

/// The proxy for this API server. That of the kubeconfig holds for every server; those of the environment neither for this machine nor for what
/// `NO_PROXY` lists. A pod, which has its API server within reach, has none, and so has who gives no environment.
///
/// # Errors
/// Where a proxy is named that would be used and is not an address of one; the address is not repeated, because a password may be in it.
pub(super) fn proxy_for(server: &Uri, named: Option<&str>, environment: Option<&Environment>) -> Result<Option<Proxy>, ProxyOrigin> {
    let (text, origin) = match (named.filter(|named| !named.is_empty()), environment) {
        (Some(named), _) => (named, ProxyOrigin::Kubeconfig),
        (None, None) => return Ok(None),
        (None, Some(environment)) => {
            let (text, name) = match server.scheme_str() {
                Some("http") => (&environment.http, "HTTP_PROXY"),
                _ => (&environment.https, "HTTPS_PROXY"),
            };
            if text.is_empty() || is_direct(server, &environment.no) {
                return Ok(None);
            }
            (text.as_str(), ProxyOrigin::Variable(name))
        }
    };
    Proxy::of(text, origin).map(Some).ok_or(origin)
}

/// Whether a server is reached without the proxies of the environment.
fn is_direct(server: &Uri, excluded: &str) -> bool {
    let host = server.host().unwrap_or_default().trim_matches(['[', ']']);
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    let ip = host.parse::<IpAddr>().ok().map(|ip| ip.to_canonical());
    let loopback = host == "localhost" || host.ends_with(".localhost") || ip.is_some_and(|ip| ip.is_loopback());
    let port = server
        .port_u16()
        .unwrap_or(if server.scheme_str() == Some("http") { 80 } else { 443 });
    loopback || excluded.split(',').any(|entry| excludes(entry, &host, ip, port))
}

/// Whether an entry of `NO_PROXY` is about this host: `*`, a network, an address, a domain with all below it, or `.domain` for what is below
/// it alone; addresses and domains also with a port.
fn excludes(entry: &str, host: &str, ip: Option<IpAddr>, port: u16) -> bool {
    let entry = entry.trim().to_ascii_lowercase();
    if entry == "*" {
        return true;
    }
    if let Some((network, bits)) = entry.split_once('/')
        && let (Ok(network), Ok(bits)) = (network.parse(), bits.parse())
    {
        return ip.is_some_and(|ip| is_in(ip, network, bits));
    }
    let (name, of_port) = match entry.rsplit_once(':') {
        Some((name, number)) if !name.contains(':') || name.ends_with(']') => (name, Some(number)),
        _ => (entry.as_str(), None),
    };
    if of_port.is_some_and(|number| number.parse() != Ok(port)) {
        return false;
    }
    let name = name.trim_matches(['[', ']']);
    if let Ok(address) = name.parse::<IpAddr>() {
        return ip == Some(address.to_canonical());
    }
    let name = name.strip_prefix('*').filter(|rest| rest.starts_with('.')).unwrap_or(name);
    match name.strip_prefix('.') {
        _ if name.is_empty() => false,
        Some(_) => host.ends_with(name),
        None => host == name || host.strip_suffix(name).is_some_and(|rest| rest.ends_with('.')),
    }
}

/// Whether an address is in a network, given by an address of it and how many bits these have in common.
fn is_in(ip: IpAddr, network: IpAddr, bits: u32) -> bool {
    let (ip, network, width) = match (ip, network) {
        (IpAddr::V4(ip), IpAddr::V4(network)) => (u128::from(ip.to_bits()), u128::from(network.to_bits()), 32_u32),
        (IpAddr::V6(ip), IpAddr::V6(network)) => (ip.to_bits(), network.to_bits(), 128),
        _ => return false,
    };
    let rest = width.checked_sub(bits);
    rest.is_some_and(|rest| ip.checked_shr(rest).unwrap_or(0) == network.checked_shr(rest).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(https: &str, http: &str, no: &str) -> Environment {
        let (https, http, no) = (https.into(), http.into(), no.into());
        Environment { https, http, no }
    }

    fn found(server: &str, named: Option<&str>, environment: Option<&Environment>) -> String {
        match proxy_for(&server.parse().expect("an address"), named, environment) {
            Ok(None) => "direct".into(),
            Ok(Some(proxy)) => format!("{proxy:?}"),
            Err(origin) => format!("unusable: {origin}"),
        }
    }

    #[test]
    fn proxy_of_kubeconfig_wins_and_environment_is_subject_to_exclusions() {
        let both = environment("http://u:p@env:3128", "http://plain", "excluded.test");
        let only = environment("socks5://env", "", "");
        let broken = environment("ftp://env", "", "excluded.test");
        for (server, named, environment, expected) in [
            ("https://a.test:6443", None, None, "direct"),
            ("https://a.test:6443", Some(""), None, "direct"),
            ("https://a.test:6443", None, Some(&both), "http://env:3128 (HTTPS_PROXY)"),
            ("http://a.test:8080", None, Some(&both), "http://plain:80 (HTTP_PROXY)"),
            ("http://a.test:8080", None, Some(&only), "direct"),
            ("https://a.test", None, Some(&only), "socks5://env:1080 (HTTPS_PROXY)"),
            ("https://excluded.test", None, Some(&both), "direct"),
            ("https://127.0.0.1:6443", None, Some(&both), "direct"),
            (
                "https://a.test",
                Some("https://k"),
                Some(&both),
                "https://k:443 (proxy-url in the kubeconfig)",
            ),
            // A pod, and who does not look into the environment, still has the proxy that the kubeconfig names.
            (
                "https://a.test",
                Some("socks5h://u:p@k:1"),
                None,
                "socks5://k:1 (proxy-url in the kubeconfig)",
            ),
            (
                "https://excluded.test",
                Some("http://k"),
                Some(&both),
                "http://k:80 (proxy-url in the kubeconfig)",
            ),
            (
                "https://127.0.0.1:6443",
                Some("http://[::1]:9"),
                Some(&both),
                "http://[::1]:9 (proxy-url in the kubeconfig)",
            ),
            (
                "https://a.test",
                Some("k:3128"),
                None,
                "http://k:3128 (proxy-url in the kubeconfig)",
            ),
            ("https://a.test", Some("socks4://k"), None, "unusable: proxy-url in the kubeconfig"),
            ("https://a.test", Some("http://"), None, "unusable: proxy-url in the kubeconfig"),
            ("https://a.test", None, Some(&broken), "unusable: HTTPS_PROXY"),
            ("https://excluded.test", None, Some(&broken), "direct"),
        ] {
            assert_eq!(found(server, named, environment), expected, "{server} {named:?} {environment:?}");
        }
    }

    #[test]
    fn proxy_login_is_decoded_and_never_shown() {
        let of = |text: &str| Proxy::of(text, ProxyOrigin::Kubeconfig).expect("a proxy");
        let http = of("http://me:p%40ss@p:3128");
        assert_eq!(http.basic.as_ref().expect("a login").as_bytes(), b"Basic bWU6cEBzcw==");
        let socks = of("socks5://me:p%40ss@p");
        assert_eq!(socks.login, Some(("me".into(), "p@ss".into())));
        assert!(socks.is_socks() && !http.is_socks());
        for proxy in [http, socks] {
            let shown = format!("{proxy} {proxy:?}");
            assert!(!shown.contains("ss@") && !shown.contains("me"), "{shown}");
        }
    }

    #[test]
    fn exclusion_matches_as_in_go() {
        for (entries, server, expected) in [
            ("", "https://a.test", false),
            (",, ,", "https://a.test", false),
            ("*", "https://a.test", true),
            ("b.test, A.Test", "https://a.test", true),
            ("a.test", "https://x.a.test", true),
            ("a.test", "https://xa.test", false),
            ("a.test", "https://A.TEST.", true),
            (".a.test", "https://a.test", false),
            (".a.test", "https://x.a.test", true),
            ("*.a.test", "https://x.a.test", true),
            ("*.a.test", "https://a.test", false),
            ("a.test:6443", "https://a.test:6443", true),
            ("a.test:443", "https://a.test:6443", false),
            ("a.test:443", "https://a.test", true),
            ("10.0.0.0/8", "https://10.1.2.3:6443", true),
            ("10.0.0.0/8", "https://11.1.2.3:6443", false),
            ("0.0.0.0/0", "https://11.1.2.3:6443", true),
            ("10.0.0.0/33", "https://10.0.0.0:6443", false),
            ("10.0.0.0/8", "https://a.test", false),
            ("10.1.2.3", "https://10.1.2.3", true),
            ("10.1.2.3:443", "https://10.1.2.3:6443", false),
            ("fd00::/8", "https://[fd01::1]:6443", true),
            ("fd01::1", "https://[fd01::1]:6443", true),
            ("[fd01::1]:6443", "https://[fd01::1]:6443", true),
            ("[fd01::1]:443", "https://[fd01::1]:6443", false),
            ("fd00::/8", "https://10.1.2.3", false),
            (".", "https://a.test", false),
            ("", "https://localhost:6443", true),
            ("", "https://x.localhost:6443", true),
            ("", "https://127.8.9.10", true),
            ("", "https://[::1]", true),
            ("", "https://[::ffff:127.0.0.1]", true),
        ] {
            let server: Uri = server.parse().expect("an address");
            assert_eq!(is_direct(&server, entries), expected, "{entries:?} {server}");
        }
    }

    #[test]
    fn environment_takes_capital_letters_first_and_no_empty_variables() {
        let set = [
            ("HTTPS_PROXY", ""),
            ("https_proxy", "http://small"),
            ("HTTP_PROXY", "http://large"),
            ("http_proxy", "http://x"),
            ("no_proxy", "a"),
        ];
        let read = Environment::of(|name| set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()));
        assert_eq!(read, environment("http://small", "http://large", "a"));
    }
}
