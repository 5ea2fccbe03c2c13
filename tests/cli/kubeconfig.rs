// SPDX-License-Identifier: Apache-2.0
//! Kubeconfigs that are not as they should be.

use crate::api_server::kubeconfig;
use crate::stopping::hanging_plugin;
use crate::{seen, vdoctl};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

fn status(kubeconfig: &str) -> assert_cmd::Command {
    let mut command = vdoctl(&["status"]);
    command.env("KUBECONFIG", kubeconfig);
    command
}

#[test]
fn kubeconfig_that_is_no_text_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(&path, bytes).expect("written");
        path.display().to_string()
    };
    let good = file("good", kubeconfig("gone", "http://127.0.0.1:1").as_bytes());
    for (number, bytes) in [&b"\xff\xfe\x00"[..], b"\xfe\xff\x00", b"\x80", b"kind: \xff", b"\xff\xfe\x00\xd8"]
        .iter()
        .enumerate()
    {
        let bad = file(&format!("bad{number}"), bytes);
        let expected = format!(
            "exit 5\n--- stdout\n--- stderr\nerror: kubeconfig {bad} is not UTF-8 text\n  \
             Save the kubeconfig as UTF-8, or name another kubeconfig with --kubeconfig or KUBECONFIG.\n"
        );
        assert_eq!(seen(status(&bad)), expected);
        assert_eq!(seen(status(&format!("{good}:{bad}"))), expected, "every file of the list is read");
        assert_eq!(seen(vdoctl(&["status", "--kubeconfig", &bad])), expected);
        assert_eq!(seen(vdoctl(&["status", "--context", "x", "--kubeconfig", &bad])), expected);
        let home = file(".kube/config", bytes);
        let mut at_home = vdoctl(&["status"]);
        at_home.env("HOME", Path::new(&home).ancestors().nth(2).expect("a folder"));
        assert_eq!(seen(at_home), expected.replace(&bad, &home));
    }
}

#[test]
fn kubeconfig_in_other_encodings_and_in_a_pipe_is_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = kubeconfig("gone", "http://127.0.0.1:1");
    let wide: Vec<u8> = [0xff, 0xfe]
        .into_iter()
        .chain(text.encode_utf16().flat_map(u16::to_le_bytes))
        .collect();
    let path = folder.path().join("wide");
    std::fs::write(&path, wide).expect("written");
    let unreachable = "error: cluster gone at http://127.0.0.1:1 cannot be reached";
    let said = seen(status(path.to_str().expect("text")));
    assert!(said.contains(unreachable), "{said}");
    let pipe = folder.path().join("pipe");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
    let writer = pipe.clone();
    let written = std::thread::spawn(move || std::fs::write(writer, text));
    let said = seen(status(pipe.to_str().expect("text")));
    written.join().expect("it ends").expect("written");
    assert!(said.contains(unreachable), "{said}");
}

#[test]
fn plugin_that_hangs_is_named_when_the_time_is_over() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = hanging_plugin(folder.path(), &folder.path().join("sign"));
    for verb in [&["status"][..], &["doctor"], &["status", "--watch"]] {
        let mut command = vdoctl(&[verb, &["--timeout", "2s", "--kubeconfig", &config]].concat());
        command.env("PATH", "/usr/bin:/bin");
        let begin = Instant::now();
        // Ends only once no one holds stderr any more, so that a hanging plugin is not left behind either.
        let said = seen(command);
        println!("{verb:?}: ended after {:?}", begin.elapsed());
        assert!(begin.elapsed() < Duration::from_secs(300), "it was waited for");
        assert_eq!(
            said,
            "exit 7\n--- stdout\n--- stderr\nerror: the credential command \"sh\" of the kubeconfig has not answered \
             within 1.8 s\n  Run this command by hand to see what it waits for.\n  Or wait longer with --timeout.\n"
        );
    }
}

/// A kubeconfig has tokens, and a command writes them: no error repeats what either of them contains.
#[test]
fn kubeconfig_and_command_without_credentials_are_named_and_show_no_secret() {
    const SECRET: &str = "t0ken-of-mine";
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name).display().to_string();
        std::fs::write(&path, text).expect("written");
        path
    };
    let exec = |command: &str, script: &str| {
        let exec = json!({"apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never", "command": command, "args": ["-c", script]});
        json!({"exec": exec})
    };
    let user = |user: Value| {
        let mut config: Value = serde_json::from_str(&kubeconfig("far", "http://127.0.0.1:1")).expect("JSON");
        config["users"][0]["user"] = user;
        config.to_string()
    };
    let unreadable = folder.path().join("nowhere").display().to_string();
    for (name, text, says) in [
        (
            "absent",
            user(exec("no-such-login", SECRET)),
            "the credential command \"no-such-login\" of the kubeconfig is not installed\n  Install this command",
        ),
        (
            "failing",
            user(exec("sh", &format!("echo {SECRET}; echo {SECRET} >&2; exit 3"))),
            "ended with exit status: 3\n  Run this command by hand",
        ),
        (
            "other",
            user(exec("sh", &format!("echo {SECRET}"))),
            "returned no credentials\n  Run this command by hand",
        ),
        ("file", user(json!({"tokenFile": unreadable})), "the token file"),
        (
            "lines",
            user(json!({"token": format!("{SECRET}\n")})),
            "the token that the kubeconfig refers to contains a character that is not allowed in a token",
        ),
        (
            "provider",
            user(json!({"auth-provider": {"name": "oidc", "config": {"id-token": format!("{SECRET}\n")}}})),
            "the token that the kubeconfig refers to contains a character that is not allowed in a token",
        ),
        (
            "cut",
            format!("users:\n- name: u\n  user:\n    token: {SECRET}\n    client-key-data: [\n"),
            "cannot be read: line ",
        ),
        (
            "list",
            format!("users:\n- name: u\n  user:\n    token: [{SECRET}]\n"),
            "cannot be read: line 4, column 12: ",
        ),
        ("word", format!("users: {SECRET}\n"), "cannot be read: line 1, column 8: "),
        (
            "key",
            user(json!({"client-certificate-data": SECRET, "client-key-data": SECRET})),
            "certificate",
        ),
    ] {
        let path = file(name, &text);
        for verb in [
            &["status"][..],
            &["status", "-o", "json"],
            &["__complete", "status", "--context", ""],
            &["doctor"],
        ] {
            let mut command = vdoctl(verb);
            command.env("KUBECONFIG", &path).env("PATH", "/usr/bin:/bin");
            let said = seen(command);
            assert!(!said.contains(SECRET) && !said.contains("panicked"), "{name}: {said}");
            if verb == ["status"] {
                assert!(said.starts_with("exit 5") && said.contains(says), "{name}: {said}");
            }
        }
    }
}

/// A proxy, or the page of a login, in the place of an API server: it is said, and nothing of the page is shown.
#[test]
fn server_that_is_no_api_server_is_named_without_its_page() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("config").display().to_string();
    for (answer, says) in [
        (
            "200 OK",
            "cannot be reached: the answer does not come from an API server\n  A proxy or a login page may answer",
        ),
        (
            "302 Found",
            "cannot be reached: the answer does not come from an API server\n  A proxy or a login page may answer",
        ),
        (
            "502 Bad Gateway",
            "cannot be reached: the answer with HTTP status 502 does not come from an API server\n  A proxy",
        ),
        (
            "401 Unauthorized",
            "cannot be reached: the answer with HTTP status 401 does not come from an API server\n  A proxy",
        ),
        (
            "403 Forbidden",
            "cannot be reached: the answer with HTTP status 403 does not come from an API server\n  A proxy",
        ),
        (
            "404 Not Found",
            "cannot be reached: the answer with HTTP status 404 does not come from an API server\n  A proxy",
        ),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let page = "<html>Log in, t0ken-of-mine</html>";
                let mut lines = BufReader::new(&stream).lines();
                while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
                let head = format!("HTTP/1.1 {answer}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", page.len());
                let _ = stream.write_all((head + page).as_bytes());
            }
        });
        std::fs::write(&path, kubeconfig("far", &format!("http://{address}"))).expect("written");
        let said = seen(status(&path));
        assert!(said.starts_with("exit 5\n") && said.contains(says), "{answer}: {said}");
        assert!(!said.contains("t0ken") && !said.contains("html"), "{said}");
    }
}

/// kubectl takes an address without a scheme. One with a password is refused, as every message about the cluster would show it.
#[test]
fn server_of_a_kubeconfig_may_lack_its_scheme_and_has_no_password() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("config").display().to_string();
    for (server, says) in [
        ("127.0.0.1:1", "cluster far at http://127.0.0.1:1 cannot be reached"),
        (
            "https://me:hunter2@127.0.0.1:1",
            "the server of cluster \"c\" in the kubeconfig is not the address of an API server",
        ),
        (
            "https://127.0.0.1:1/?token=hunter2",
            "the server of cluster \"c\" in the kubeconfig is not the address of an API server",
        ),
        (
            "ftp://127.0.0.1:1",
            "the server of cluster \"c\" in the kubeconfig is not the address of an API server",
        ),
    ] {
        std::fs::write(&path, kubeconfig("far", server)).expect("written");
        let said = seen(status(&path));
        assert!(said.starts_with("exit 5") && said.contains(says), "{server}: {said}");
        assert!(!said.contains("hunter2") && !said.contains("panicked"), "{said}");
    }
}

#[test]
fn kubeconfig_that_is_no_yaml_is_named_with_the_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("config").display().to_string();
    std::fs::write(&path, "apiVersion: v1\nkind: Config\nclusters: [\nusers: {\n").expect("written");
    for said in [seen(status(&path)), seen(vdoctl(&["status", "--kubeconfig", &path]))] {
        assert!(
            said.starts_with("exit 5") && said.contains(&format!("kubeconfig {path} cannot be read")),
            "{said}"
        );
        assert!(said.contains("line 4") || said.contains("line 5"), "the line is not named: {said}");
    }
}

#[test]
fn context_that_is_not_there_lists_those_that_are() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("config").display().to_string();
    std::fs::write(&path, kubeconfig("blue", "http://127.0.0.1:1")).expect("written");
    let said = seen(vdoctl(&["status", "--kubeconfig", &path, "--context", "blu"]));
    assert_eq!(
        said,
        "exit 5\n--- stdout\n--- stderr\nerror: the kubeconfig has no context \"blu\"\n  Did you mean blue? The contexts are: blue.\n"
    );
}

/// What is wrong with a proxy is said without its address where that may hold a password.
#[test]
fn proxy_that_cannot_be_used_is_named_by_where_it_is_set() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |proxy: &str| {
        let path = folder.path().join("config").display().to_string();
        let mut config: Value = serde_json::from_str(&kubeconfig("far", "https://192.0.2.7:6443")).expect("JSON");
        config["clusters"][0]["cluster"]["proxy-url"] = json!(proxy);
        std::fs::write(&path, config.to_string()).expect("written");
        path
    };
    for (proxy, variable, says) in [
        (
            "ftp://u:hunter2@p.test",
            "",
            "proxy-url in the kubeconfig is not the address of a proxy",
        ),
        (
            "http://u:hunter2@p p",
            "",
            "proxy-url in the kubeconfig is not the address of a proxy",
        ),
        ("", "socks4://u:hunter2@p.test", "HTTPS_PROXY is not the address of a proxy"),
        ("", "http://u:hunter2@p p", "HTTPS_PROXY is not the address of a proxy"),
        (
            "http://u:hunter2@127.0.0.1:1",
            "",
            "far at https://192.0.2.7:6443 cannot be reached: proxy http://127.0.0.1:1 (proxy-url in the kubeconfig) cannot be reached",
        ),
        (
            "",
            "u:hunter2@127.0.0.1:1",
            "far at https://192.0.2.7:6443 cannot be reached: proxy http://127.0.0.1:1 (HTTPS_PROXY) cannot be reached",
        ),
    ] {
        let mut command = status(&file(proxy));
        command.env("HTTPS_PROXY", variable);
        let said = seen(command);
        assert!(
            said.starts_with("exit 5\n") && said.contains(says) && !said.contains("hunter2"),
            "{proxy} {variable}: {said}"
        );
    }
}

#[test]
fn kubeconfig_of_the_environment_that_is_not_there_is_named() {
    let said = seen(status("/nope:/nowhere"));
    assert_eq!(
        said,
        "exit 5\n--- stdout\n--- stderr\nerror: no cluster is configured: KUBECONFIG names /nope, /nowhere, which cannot be read, and vdoctl \
         does not run in a pod\n  Name a kubeconfig with --kubeconfig or KUBECONFIG.\n"
    );
}

/// A server whose certificate is that of an authority, and a kubeconfig that trusts it.
fn of_an_authority(folder: &Path) -> String {
    let mut params = rcgen::CertificateParams::new(vec!["127.0.0.1".to_owned()]).expect("a name");
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let key = rcgen::KeyPair::generate().expect("a key");
    let certificate = params.self_signed(&key).expect("a certificate");
    let config = rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.der().clone()],
            rustls::pki_types::PrivateKeyDer::Pkcs8(key.serialize_der().into()),
        )
        .expect("a configuration");
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let config = Arc::new(config);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut connection = rustls::ServerConnection::new(config.clone()).expect("a connection");
            // The client ends it.
            let _ = connection.complete_io(&mut stream);
        }
    });
    let authority = folder.join("ca.crt");
    std::fs::write(&authority, certificate.pem()).expect("written");
    let mut file: Value = serde_json::from_str(&kubeconfig("c", &format!("https://{address}"))).expect("JSON");
    file["clusters"][0]["cluster"]["certificate-authority"] = json!(authority);
    let path = folder.join("config");
    std::fs::write(&path, file.to_string()).expect("written");
    path.display().to_string()
}

/// What fails on the way is said in words, and what to do is about that.
#[test]
fn api_server_out_of_reach_and_with_a_wrong_certificate_have_their_own_remedies() {
    let folder = tempfile::tempdir().expect("a folder");
    let gone = folder.path().join("gone");
    std::fs::write(&gone, kubeconfig("gone", "http://127.0.0.1:1")).expect("written");
    let wrong = of_an_authority(folder.path());
    for (config, cause, remedy) in [
        (
            gone.display().to_string(),
            "cannot be reached: Connection refused",
            "Check that the API server runs",
        ),
        (
            wrong,
            "cannot be reached: its certificate is the certificate of an authority",
            "certificate-authority-data",
        ),
    ] {
        let said = seen(status(&config));
        assert!(said.contains(cause) && said.contains(remedy), "{said}");
        assert!(!crate::width::LEAKS.iter().any(|leak| said.contains(leak)), "{said}");
    }
}
