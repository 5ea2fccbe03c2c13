// SPDX-License-Identifier: Apache-2.0
//! vdoctl for Windows, as far as wine shows it: the same command line here and there, from a folder whose name has blanks and letters beyond
//! ASCII. What wine cannot show is in docs/windows-and-macos.md.

use crate::api_server::kubeconfig;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// The files of two users of one machine: a folder for vdoctl here, and one for vdoctl.exe.
struct Desks(tempfile::TempDir);

const FOLDER: &str = "Ordner für 東京";

impl Desks {
    fn new() -> Self {
        let top = tempfile::tempdir().expect("a folder");
        for desk in ["linux", "windows"] {
            fs::create_dir_all(top.path().join(desk).join(FOLDER)).expect("a folder");
        }
        Self(top)
    }

    fn here(&self) -> PathBuf {
        self.0.path().join("linux").join(FOLDER)
    }

    fn there(&self) -> PathBuf {
        self.0.path().join("windows").join(FOLDER)
    }

    /// Writes a file for both.
    fn file(&self, name: &str, content: &[u8]) {
        for folder in [self.here(), self.there()] {
            let path = folder.join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, content).expect("written");
        }
    }

    /// Runs a command line here and there; `@/` in it is the folder. Both end in the same way and say the same, but for the names of files.
    fn same(&self, arguments: &[&str]) -> Output {
        let (unix, dos) = (self.here().display().to_string(), dos(&self.there()));
        let with = |folder: &str, separator: &str| -> Vec<String> {
            let full = |argument: &&str| match argument.split_once("@/") {
                Some((before, name)) => format!("{before}{folder}{separator}{}", name.replace('/', separator)),
                None => (*argument).to_owned(),
            };
            arguments.iter().map(full).collect()
        };
        let mut command = Command::new(vdo_testbed::vdoctl());
        command.env_clear().args(with(&unix, "/"));
        let expected = command.output().expect("vdoctl starts");
        let found = windows(&with(&dos, "\\"), &[]);
        let times = regex::Regex::new(r"\d{4}-\d{2}-\d{2}T[\d:]+Z").expect("a pattern");
        let text = |output: &Output, folder: &str| {
            let text = format!(
                "{:?}\n{}{}",
                output.status.code(),
                String::from_utf8_lossy(&output.stdout),
                String::from_utf8_lossy(&output.stderr)
            );
            // The two do not write in the same second.
            let text = times.replace_all(&text, "TIME");
            text.replace(folder, "@").replace('\\', "/").replace("vdoctl.exe", "vdoctl")
        };
        assert_eq!(text(&found, &dos), text(&expected, &unix), "{arguments:?}");
        found
    }
}

/// A path as programs under wine see it.
fn dos(path: &Path) -> String {
    format!("Z:{}", path.display().to_string().replace('/', "\\"))
}

/// A Windows of this run of the tests, which is made once.
fn prefix() -> &'static Path {
    static MADE: OnceLock<tempfile::TempDir> = OnceLock::new();
    let made = MADE.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a folder");
        let output = under_wine(folder.path())
            .args(["wineboot", "--init"])
            .output()
            .expect("wine starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        folder
    });
    made.path()
}

fn under_wine(prefix: &Path) -> Command {
    let mut command = Command::new("wine");
    command.env_clear().env("PATH", "/usr/bin:/bin").env("LC_ALL", "C.UTF-8");
    // Nothing is shown, and nothing but the program itself speaks.
    command.env("WINEPREFIX", prefix).env("HOME", prefix).env("WINEDEBUG", "-all");
    command.env("WINEDLLOVERRIDES", "mscoree,mshtml=");
    command
}

/// What vdoctl.exe says to a command line, in this environment.
fn windows(arguments: &[String], environment: &[(&str, &str)]) -> Output {
    let here = Path::new(vdo_testbed::vdoctl());
    let target = here.ancestors().nth(2).expect("the target folder");
    let program = target.join("x86_64-pc-windows-gnu/debug/vdoctl.exe");
    assert!(program.is_file(), "{} is missing: tests/windows.sh build", program.display());
    let mut command = under_wine(prefix());
    command.arg(program).args(arguments).envs(environment.iter().copied());
    command.output().expect("wine starts")
}

fn said(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    text(&output.stdout) + &text(&output.stderr)
}

/// Every file below a folder.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let (mut all, mut folders) = (BTreeMap::new(), vec![folder.to_owned()]);
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).expect("below it").display().to_string();
                all.insert(name, fs::read(&path).expect("a file"));
            }
        }
    }
    all
}

#[test]
#[ignore = "needs wine, and vdoctl.exe of tests/windows.sh build"]
fn vdoctl_exe_says_what_vdoctl_says() {
    let desks = Desks::new();
    desks.file("values ü.yaml", b"controller: {replicas: 2}\r\n");
    desks.file("broken.yaml", b"a: [");
    for arguments in [
        &["--help"][..],
        &["matrix", "--help"],
        &["version", "--client"],
        &["matrix", "list"],
        &["matrix", "resolve", "--kubernetes", "1.34", "--vcenter", "8.0.3"],
        &["matrix", "resolve", "--kubernetes", "1.2", "--vcenter", "8.0.3"],
        &["explain", "VolumesInUse"],
        &["completion", "powershell"],
        &["__complete", "matrix", "why-not", "csi", "3.7"],
        &["stats"],
        &["chart", "render", "csi", "--version", "3.7.3", "-f", "@/values ü.yaml"],
        &["chart", "render", "csi", "--version", "3.7.3", "-f", "@/broken.yaml"],
    ] {
        desks.same(arguments);
    }
}

#[test]
#[ignore = "needs wine, and vdoctl.exe of tests/windows.sh build"]
fn vdoctl_exe_writes_the_files_that_vdoctl_writes() {
    let desks = Desks::new();
    let key = rcgen::KeyPair::generate().expect("a key");
    desks.file("key.pem", key.serialize_pem().as_bytes());
    desks.file("keys/key.pub", key.public_key_pem().as_bytes());
    for folder in [desks.here(), desks.there()] {
        fs::set_permissions(folder.join("key.pem"), fs::Permissions::from_mode(0o600)).expect("a mode");
    }
    desks.same(&["matrix", "init", "@/eine Matrix"]);
    desks.same(&["matrix", "lint", "@/eine Matrix"]);
    desks.same(&["matrix", "list", "--matrix", "@/eine Matrix/index.yaml"]);
    desks.same(&["matrix", "deprecate", "csi", "3.7.3", "--reason", "älter", "--to", "@/eine Matrix"]);
    let (mut there, mut here) = (files(&desks.there()), files(&desks.here()));
    // It has the time at which it was written.
    for files in [&mut there, &mut here] {
        files.remove("eine Matrix/index.yaml").expect("the index");
    }
    assert!(there.len() > 59, "{:?}", there.keys());
    assert_eq!(there, here, "every file, and none that is half written");
    // A signature has a random part, so each is verified.
    desks.same(&["matrix", "sign", "@/eine Matrix/index.yaml", "--key-file", "@/key.pem"]);
    desks.same(&["matrix", "verify", "@/eine Matrix", "--keys", "@/keys"]);
}

#[test]
#[ignore = "needs wine, and vdoctl.exe of tests/windows.sh build"]
fn vdoctl_exe_reads_kubeconfigs_as_kubectl_does() {
    let desks = Desks::new();
    desks.file("a b.yaml", kubeconfig("blau", "http://127.0.0.1:1").as_bytes());
    desks.file("ü.yaml", kubeconfig("grün", "http://127.0.0.1:1").as_bytes());
    desks.file(".kube/config", kubeconfig("daheim", "http://127.0.0.1:1").as_bytes());
    desks.file("broken", b"\x80");
    let path = |name: &str| format!("{}\\{name}", dos(&desks.there()));
    let contexts = |environment: &[(&str, &str)]| {
        let words = ["__complete", "status", "--context", ""].map(str::to_owned);
        let output = windows(&words, environment);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.lines()
            .filter(|line| !line.starts_with(':'))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let list = format!("{};{}", path("a b.yaml"), path("ü.yaml"));
    assert_eq!(contexts(&[("KUBECONFIG", &list)]), ["blau", "grün"]);
    assert_eq!(contexts(&[("WINEHOME", &dos(&desks.there()))]), ["daheim"]);
    let unreachable = windows(&["status".into()], &[("KUBECONFIG", &path("a b.yaml"))]);
    assert_eq!(unreachable.status.code(), Some(5), "{}", said(&unreachable));
    assert!(
        said(&unreachable).contains("http://127.0.0.1:1 cannot be reached"),
        "{}",
        said(&unreachable)
    );
    let broken = windows(&["status".into()], &[("KUBECONFIG", &path("broken"))]);
    let expected = format!("error: kubeconfig {} is not UTF-8 text", path("broken"));
    assert!(said(&broken).starts_with(&expected), "{}", said(&broken));
}

/// A command of the kubeconfig is found as a shell finds it, also where it is a batch file, such as az.
#[test]
#[ignore = "needs wine, and vdoctl.exe of tests/windows.sh build"]
fn vdoctl_exe_runs_the_command_of_a_kubeconfig() {
    let desks = Desks::new();
    let token = r#"{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"t0ken"}}"#;
    // The folder of the batch file itself, as such a file is not read as UTF-8.
    desks.file(
        "login-tool.cmd",
        format!("@echo off\r\necho x> \"%~dp0ran\"\r\necho {token}\r\n").as_bytes(),
    );
    let exec = r#"{"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "login-tool", "interactiveMode": "Never"}}"#;
    let text = kubeconfig("c", "http://127.0.0.1:1").replace(r#""user":{}"#, &format!(r#""user":{exec}"#));
    assert!(text.contains("login-tool"), "{text}");
    desks.file("config", text.as_bytes());
    let config = format!("{}\\config", dos(&desks.there()));
    let output = windows(&["status".into()], &[("KUBECONFIG", &config), ("WINEPATH", &dos(&desks.there()))]);
    assert!(said(&output).contains("http://127.0.0.1:1 cannot be reached"), "{}", said(&output));
    assert!(desks.there().join("ran").is_file(), "the command did not run: {}", said(&output));
}
