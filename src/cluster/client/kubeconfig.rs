// SPDX-License-Identifier: Apache-2.0
//! Finds and reads kubeconfig files, lists their contexts, and selects the entries for `--context`, `--cluster` and `--user`.

use super::{ClientError, KubeOptions, server};
use kube::config::{Cluster, Context, KubeConfigOptions, Kubeconfig, KubeconfigError, NamedContext};
use std::path::{Path, PathBuf};
use vdo_api::yaml::YamlError;

/// What can be named in a kubeconfig.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KubeconfigNames {
    /// The contexts.
    pub contexts: Vec<String>,
    /// The clusters.
    pub clusters: Vec<String>,
    /// The users.
    pub users: Vec<String>,
}

impl KubeOptions {
    /// What can be named.
    ///
    /// # Errors
    /// When there is no kubeconfig that can be read.
    pub fn names(&self) -> Result<KubeconfigNames, ClientError> {
        let file = self.read()?;
        Ok(KubeconfigNames {
            contexts: file.contexts.into_iter().map(|known| known.name).collect(),
            clusters: file.clusters.into_iter().map(|known| known.name).collect(),
            users: file.auth_infos.into_iter().map(|known| known.name).collect(),
        })
    }

    /// The contexts of these names, or all where there is no name, each with the others that lead to the same cluster as the same user. What is
    /// no name of a context is a list of names between commas.
    ///
    /// # Errors
    /// When there is no kubeconfig that can be read, or none of its contexts has one of the names.
    pub fn contexts(&self, names: &[String]) -> Result<Vec<(String, Vec<String>)>, ClientError> {
        self.apart(&self.read()?, names)
    }

    fn apart(&self, file: &Kubeconfig, names: &[String]) -> Result<Vec<(String, Vec<String>)>, ClientError> {
        let known = || file.contexts.iter().map(|known| &known.name);
        let whole = |name: &String| known().any(|known| known == name);
        let each = |name: &String| match whole(name) {
            true => vec![name.clone()],
            false => name.split(',').map(str::to_owned).collect(),
        };
        let names: Vec<String> = names.iter().flat_map(each).collect();
        for name in &names {
            check(name, known()).map_err(|(name, known)| ClientError::NoContext { name, known })?;
        }
        let all: Vec<String> = known().cloned().collect();
        let leads_to = |name: &String| {
            let named = file.contexts.iter().find(|known| known.name == *name);
            let context = named.and_then(|known| known.context.as_ref());
            let user = self.user.as_ref().or_else(|| context?.user.as_ref());
            // One that leads nowhere is like no other.
            context.map(|context| (&context.cluster, user)).ok_or_else(|| name.clone())
        };
        let mut found: Vec<(String, Vec<String>)> = Vec::new();
        for name in if names.is_empty() { &all } else { &names } {
            match found.iter_mut().find(|(first, _)| leads_to(first) == leads_to(name)) {
                None => found.push((name.clone(), Vec::new())),
                Some((first, others)) if first != name && !others.contains(name) => others.push(name.clone()),
                Some(_) => {}
            }
        }
        Ok(found)
    }

    /// The file that is named, else those that `KUBECONFIG` lists, else the one in the home directory.
    pub(super) fn read(&self) -> Result<Kubeconfig, ClientError> {
        if let Some(path) = &self.kubeconfig {
            return read(path);
        }
        let paths = listed();
        if paths.is_empty() {
            let home = vdo_system::kube_home().ok_or(ClientError::Kubeconfig(KubeconfigError::FindPath))?;
            return read(&home.join(".kube/config"));
        }
        paths.iter().try_fold(Kubeconfig::default(), |all, path| {
            all.merge(read(path)?).map_err(ClientError::Kubeconfig)
        })
    }

    /// The entries that are asked for. Without any context a cluster that is named is enough, as for kubectl.
    pub(super) fn entries(&self, file: &mut Kubeconfig) -> Result<KubeConfigOptions, ClientError> {
        let context = self.context.clone().or_else(|| file.current_context.clone());
        let current = context.as_ref().filter(|name| !file.contexts.is_empty() && !name.is_empty());
        if let Some(name) = self.context.as_ref().or(current) {
            check(name, file.contexts.iter().map(|known| &known.name)).map_err(|(name, known)| ClientError::NoContext { name, known })?;
        }
        let entry = |kind| move |(name, known)| ClientError::NoEntry { kind, name, known };
        if let Some(name) = &self.cluster {
            check(name, file.clusters.iter().map(|known| &known.name)).map_err(entry("cluster"))?;
        }
        if let Some(name) = &self.user {
            check(name, file.auth_infos.iter().map(|known| &known.name)).map_err(entry("user"))?;
        }
        let mut options = KubeConfigOptions {
            context,
            cluster: self.cluster.clone(),
            user: self.user.clone(),
        };
        if let Some(cluster) = &self.cluster
            && options.context.as_ref().is_none_or(String::is_empty)
        {
            let context = Context {
                cluster: cluster.clone(),
                ..Context::default()
            };
            let (name, context) = (String::new(), Some(context));
            options.context = Some(name.clone());
            file.contexts.push(NamedContext {
                name,
                context,
                ..NamedContext::default()
            });
        }
        Ok(options)
    }
}

/// The files that `KUBECONFIG` names.
#[expect(clippy::disallowed_methods, reason = "KUBECONFIG means here what it means for kubectl")]
pub(super) fn listed() -> Vec<PathBuf> {
    let listed = std::env::var_os("KUBECONFIG").unwrap_or_default();
    std::env::split_paths(&listed).filter(|path| !path.as_os_str().is_empty()).collect()
}

/// The cluster that these options lead to.
pub(super) fn cluster<'a>(file: &'a Kubeconfig, options: &KubeConfigOptions) -> Option<&'a Cluster> {
    let name = named(file, options).0?;
    file.clusters.iter().find(|known| known.name == name)?.cluster.as_ref()
}

/// The names of the cluster and of the user that these options lead to.
fn named(file: &Kubeconfig, options: &KubeConfigOptions) -> (Option<String>, Option<String>) {
    let context = file.contexts.iter().find(|known| Some(&known.name) == options.context.as_ref());
    let context = context.and_then(|known| known.context.as_ref());
    let cluster = options.cluster.clone().or_else(|| Some(context?.cluster.clone()));
    (cluster, options.user.clone().or_else(|| context?.user.clone()))
}

/// Writes the address of the cluster with its scheme.
pub(super) fn complete(file: &mut Kubeconfig, options: &KubeConfigOptions) -> Result<(), ClientError> {
    let (Some(name), user) = named(file, options) else { return Ok(()) };
    let users = &file.auth_infos;
    let user = users.iter().find(|known| Some(&known.name) == user.as_ref());
    let user = user.and_then(|known| known.auth_info.as_ref());
    let cluster = file.clusters.iter_mut().find(|known| known.name == name);
    let Some(cluster) = cluster.and_then(|known| known.cluster.as_mut()) else {
        return Ok(());
    };
    if let Some(written) = &cluster.server {
        let address = server::address(written, cluster, user);
        cluster.server = Some(address.ok_or(ClientError::Server { cluster: name })?);
    }
    Ok(())
}

/// Whether a name is known; if not, it is given back with those that are.
fn check<'a>(name: &str, known: impl Iterator<Item = &'a String>) -> Result<(), (String, Vec<String>)> {
    let known: Vec<String> = known.cloned().collect();
    if known.iter().any(|known| known == name) {
        Ok(())
    } else {
        Err((name.to_owned(), known))
    }
}

/// Reads one file. kube's own reader takes paths in the file as being beside it, but it does not survive every content.
fn read(path: &Path) -> Result<Kubeconfig, ClientError> {
    let unreadable = |error| ClientError::Kubeconfig(KubeconfigError::ReadConfig(error, path.to_owned()));
    let bytes = std::fs::read(path).map_err(unreadable)?;
    let text = text(&bytes).ok_or_else(|| ClientError::NotText { path: path.to_owned() })?;
    // A pipe can be read only once, and nothing is beside it.
    let file = if path.is_file() {
        Kubeconfig::read_from(path)
    } else {
        Kubeconfig::from_yaml(&text)
    };
    let mut file = file.map_err(|error| ClientError::NotKubeconfig {
        path: path.to_owned(),
        problem: match error {
            KubeconfigError::Parse(error) => unquoted(&YamlError::from(*error).to_string()),
            error => error.to_string(),
        },
    })?;
    let users = file.auth_infos.iter_mut().filter_map(|user| user.auth_info.as_mut());
    for command in users.filter_map(|user| user.exec.as_mut()?.command.as_mut()) {
        *command = vdo_system::program(command);
    }
    Ok(file)
}

/// What a parser says, without the values that it repeats.
fn unquoted(message: &str) -> String {
    let mut quote = None;
    let keep = |c: &char| match (quote, *c) {
        (None, '"' | '`') => {
            quote = Some(*c);
            true
        }
        (Some(open), c) if c == open => {
            quote = None;
            true
        }
        (open, _) => open.is_none(),
    };
    message.chars().filter(keep).collect()
}

/// UTF-8; or UTF-16 as some shells write it, with its mark.
fn text(bytes: &[u8]) -> Option<String> {
    let wide = |bytes: &[u8], number: fn([u8; 2]) -> u16| {
        let (pairs, rest) = bytes.as_chunks::<2>();
        let text = String::from_utf16(&pairs.iter().copied().map(number).collect::<Vec<_>>()).ok();
        text.filter(|_| rest.is_empty())
    };
    match bytes {
        [0xff, 0xfe, bytes @ ..] => wide(bytes, u16::from_le_bytes),
        [0xfe, 0xff, bytes @ ..] => wide(bytes, u16::from_be_bytes),
        [0xef, 0xbb, 0xbf, bytes @ ..] | bytes => String::from_utf8(bytes.to_vec()).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;
    use vdo_api::api::chain;

    const FILE: &str = "{current-context: one, clusters: [{name: a, cluster: {server: 'https://a.test', proxy-url: 'http://b.test'}}, \
                        {name: b, cluster: {server: 'https://b.test'}}], users: [{name: u, user: {}}, {name: v, user: {}}], \
                        contexts: [{name: one, context: {cluster: a, user: u}}, {name: two, context: {cluster: b, user: u}}]}";

    #[test]
    fn message_of_a_parser_is_repeated_without_values() {
        for (said, repeated) in [
            ("missing field `server`", "missing field ``"),
            (
                r#"invalid type: string "s3cret", expected a map"#,
                r#"invalid type: string "", expected a map"#,
            ),
            (r#"unknown "a `b" and `c "d`"#, r#"unknown "" and ``"#),
            (r#"cut off "s3cr"#, r#"cut off ""#),
            ("no value at line 1 column 2", "no value at line 1 column 2"),
        ] {
            assert_eq!(unquoted(said), repeated);
        }
    }

    #[test]
    fn entries_are_those_that_are_named_else_of_the_context() {
        let given = |context: &str, cluster: &str, user: &str| {
            let some = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
            KubeOptions {
                context: some(context),
                cluster: some(cluster),
                user: some(user),
                ..KubeOptions::default()
            }
        };
        let bare = "{clusters: [{name: a, cluster: {server: 'https://a.test'}}], users: [{name: u, user: {}}]}";
        for (file, options, expected) in [
            (FILE, given("", "", ""), "https://a.test"),
            (FILE, given("two", "", ""), "https://b.test"),
            (FILE, given("one", "b", "v"), "https://b.test"),
            (bare, given("", "a", "u"), "https://a.test"),
            (bare, given("", "", ""), "none"),
            (
                FILE,
                given("on", "", ""),
                "the kubeconfig has no context \"on\". Did you mean one? The contexts are: one, two.",
            ),
            (
                FILE,
                given("", "zebra", ""),
                "the kubeconfig has no cluster \"zebra\". Name a cluster with --kube-cluster: a, b.",
            ),
            (
                FILE,
                given("", "", "uu"),
                "the kubeconfig has no user \"uu\". Did you mean u? Name a user with --kube-user: u, v.",
            ),
            (
                "{}",
                given("", "c", ""),
                "the kubeconfig has no cluster \"c\". The kubeconfig has no clusters: name another kubeconfig with --kubeconfig or KUBECONFIG.",
            ),
        ] {
            let mut file = Kubeconfig::from_yaml(file).expect("a kubeconfig");
            let found = match options.entries(&mut file) {
                Ok(entries) => cluster(&file, &entries).map_or("none".into(), |found| found.server.clone().unwrap_or_default()),
                Err(error) => chain(&error),
            };
            assert_eq!(found, expected, "{options:?}");
        }
    }

    #[test]
    fn contexts_of_one_cluster_and_user_are_one() {
        let file = "{clusters: [{name: a, cluster: {}}, {name: b, cluster: {}}], contexts: [{name: one, context: {cluster: a, user: u}}, \
                    {name: two, context: {cluster: b, user: u}}, {name: apps, context: {cluster: a, user: u, namespace: apps}}, \
                    {name: admin, context: {cluster: a, user: v}}, {name: 'a,b', context: {cluster: c}}]}";
        let file = Kubeconfig::from_yaml(file).expect("a kubeconfig");
        let given = |user: Option<&str>| KubeOptions {
            user: user.map(Into::into),
            ..KubeOptions::default()
        };
        for (user, names, expected) in [
            (None, &[][..], "one=apps two= admin= a,b="),
            (Some("v"), &[], "one=apps,admin two= a,b="),
            (None, &["two", "one", "two"], "two= one="),
            (None, &["two,one", "a,b"], "two= one= a,b="),
            (
                None,
                &["two,"],
                "the kubeconfig has no context \"\". The contexts are: one, two, apps, admin, a,b.",
            ),
            (None, &["apps", "one", "apps", "one"], "apps=one"),
            (
                None,
                &["one", "tow"],
                "the kubeconfig has no context \"tow\". Did you mean two? The contexts are: one, two, apps, admin, a,b.",
            ),
        ] {
            let names: Vec<String> = names.iter().map(ToString::to_string).collect();
            let found = match given(user).apart(&file, &names) {
                Ok(found) => found
                    .iter()
                    .map(|(name, others)| format!("{name}={}", others.join(",")))
                    .collect::<Vec<_>>()
                    .join(" "),
                Err(error) => chain(&error),
            };
            assert_eq!(found, expected, "{user:?} {names:?}");
        }
    }

    #[test]
    fn kubeconfig_text_is_read_in_every_encoding_of_kubectl() {
        let plain = "kind: Config # Füße";
        let wide = |mark: [u8; 2], number: fn(u16) -> [u8; 2]| [mark.to_vec(), plain.encode_utf16().flat_map(number).collect()].concat();
        for bytes in [
            plain.as_bytes().to_vec(),
            [b"\xef\xbb\xbf", plain.as_bytes()].concat(),
            wide([0xff, 0xfe], u16::to_le_bytes),
            wide([0xfe, 0xff], u16::to_be_bytes),
        ] {
            assert_eq!(text(&bytes).as_deref(), Some(plain), "{bytes:?}");
        }
    }

    #[test]
    fn kubeconfig_bytes_that_are_no_text_are_none() {
        for bytes in [
            &b"\xff\xfe\x00"[..],
            b"\xfe\xff\x00",
            b"\xff\xfe\x00\xd8",
            b"a\xff",
            b"\xef\xbb\xbf\xff",
            b"\x80",
        ] {
            assert_eq!(text(bytes), None, "{bytes:?}");
        }
    }

    #[test]
    fn kubeconfig_pipe_is_read_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("pipe");
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
        let writer = path.clone();
        let written = thread::spawn(move || std::fs::write(writer, "current-context: here\n"));
        assert_eq!(read(&path).expect("a kubeconfig").current_context.as_deref(), Some("here"));
        written.join().expect("it ends").expect("written");
    }
}
