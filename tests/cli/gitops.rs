// SPDX-License-Identifier: Apache-2.0
//! `vdoctl deploy --gitops`: what it refuses, and what becomes of Secrets. No cluster is asked.

use crate::vdoctl;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Output;
use vdo_testbed::write_program;

const PASSWORD: &str = "a \"password\" with 'quotes'";
const ENCODED: &str = "YSAicGFzc3dvcmQiIHdpdGggJ3F1b3Rlcyc=";
const SECRET: &str = "config/secret-vc1-credentials.yaml";

/// Runs it with these programs on PATH and no others of ours.
fn deploy(base: &Path, more: &[&str]) -> Output {
    deploy_command(base, more).output().expect("it runs")
}

fn deploy_command(base: &Path, more: &[&str]) -> assert_cmd::Command {
    let folder = base.join("vdo").display().to_string();
    let vcenter = [
        "deploy",
        "--vcenter",
        "vcenter.example.com",
        "--user=k8s@vsphere.local",
        "--gitops",
        &folder,
    ];
    let path = format!("{}:/usr/bin:/bin", base.join("bin").display());
    let mut command = vdoctl(&[&vcenter[..], more].concat());
    command.env("PATH", path);
    command
}

/// The exit code, and what was written to both streams.
fn ended(output: &Output) -> (Option<i32>, String) {
    let texts = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    (output.status.code(), texts.concat())
}

fn written(path: &Path, text: &str, mode: u32) -> String {
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    std::fs::write(path, text).expect("written");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("a mode");
    path.display().to_string()
}

#[test]
fn gitops_folder_with_other_content_is_refused_and_the_same_flags_write_nothing() {
    let base = tempfile::tempdir().expect("a folder");
    let folder = base.path().join("vdo");
    let (code, said) = ended(&deploy(base.path(), &[]));
    assert!(
        code == Some(0) && said.contains("Secret vmware-system-vdo/vc1-credentials with password and username"),
        "{said}"
    );
    let (code, said) = ended(&deploy(base.path(), &["-o", "json"]));
    assert!(code == Some(0) && said.contains("0 files written"), "{said}");
    let list = std::fs::read_to_string(folder.join(".vdoctl.sha256")).expect("a list");
    assert!(list.lines().count() > 8 && list.contains("  config/vdoconfig.yaml\n"), "{list}");

    written(&folder.join("config/vdoconfig.yaml"), "edited", 0o644);
    let (code, said) = ended(&deploy(base.path(), &[]));
    assert!(
        code == Some(4) && said.contains("config/vdoconfig.yaml (changed)") && said.contains("rm "),
        "{said}"
    );
    std::fs::remove_file(folder.join("config/vdoconfig.yaml")).expect("removed");
    let (code, said) = ended(&deploy(base.path(), &["--update-policy", "Latest"]));
    assert!(code == Some(0) && said.contains("1 file written"), "{said}");
    written(&folder.join("kustomization.yml"), "other", 0o644);
    assert!(ended(&deploy(base.path(), &[])).1.contains("kustomization.yml"));

    for more in [&["--dry-run"][..], &["--no-wait"], &["--ignore-checks"]] {
        assert_eq!(ended(&deploy(base.path(), more)).0, Some(2), "{more:?} is for a cluster");
    }
    let output = vdoctl(&["deploy", "--sops"]).output().expect("it runs");
    assert_eq!(output.status.code(), Some(2), "without a folder there is nothing to encrypt");
}

#[test]
fn gitops_secret_is_encrypted_or_nothing_is_written() {
    let base = tempfile::tempdir().expect("a folder");
    let folder = base.path().join("vdo");
    let file = written(&base.path().join("password"), &format!("{PASSWORD}\n"), 0o600);
    let (code, said) = ended(&deploy(base.path(), &["--sops", "--password-file", &file]));
    assert!(
        code == Some(2) && said.contains("sops is not on PATH") && !folder.exists(),
        "{said}"
    );
    written(&folder.join(".sops.yaml"), "creation_rules: []\n", 0o644);
    let (code, said) = ended(&deploy(base.path(), &["--password-file", &file]));
    assert!(code == Some(0) && said.contains("this machine has no sops"), "{said}");
    assert!(folder.join("secrets.example.yaml").is_file() && !folder.join(SECRET).exists());

    // It fails, answers with plain text, or with a Secret of another name.
    let sops = base.path().join("bin/sops");
    for script in [
        "#!/bin/sh\nexit 3\n",
        "#!/bin/sh\n[ $1 = encrypt ] && cat /dev/stdin && printf 'sops: {}\\n'\n",
        "#!/bin/sh\n[ $1 = encrypt ] && sed 's/^  password: .*/  password: x/; s/^  name: .*/  name: other/' /dev/stdin && printf 'sops: {}\\n'\n",
    ] {
        write_program(&sops, script).expect("a program");
        let (code, said) = ended(&deploy(base.path(), &["--password-file", &file]));
        assert!(
            code == Some(4) && said.contains("sops did not encrypt") && said.contains("nothing was written"),
            "{script}: {said}"
        );
        assert!(!said.contains(PASSWORD) && !said.contains(ENCODED), "{said}");
        assert!(!folder.join(SECRET).exists(), "{script}");
    }
    write_program(
        &sops,
        "#!/bin/sh\n[ $1 = encrypt ] && sed 's/^  \\(password\\|username\\): .*/  \\1: ENC/' /dev/stdin && printf 'sops: {}\\n'\n",
    )
    .expect("a program");
    let (code, said) = ended(&deploy(base.path(), &["--password-file", &file]));
    assert!(code == Some(0), "{said}");
    let text = std::fs::read_to_string(folder.join(SECRET)).expect("a Secret");
    assert!(text.contains("password: ENC") && !text.contains(ENCODED), "{text}");
    assert!(!folder.join("secrets.example.yaml").exists(), "it is in the folder");
    // This sops decrypts nothing, so what is there is replaced.
    let (code, said) = ended(&deploy(base.path(), &["--password-file", &file]));
    assert!(code == Some(0) && said.contains("0 files written"), "it encrypts alike: {said}");
}

/// What the real program encrypts with a key of age is what it decrypts with it, a second run leaves the file, and a rule that encrypts
/// another part of the Secret is not enough.
#[test]
#[ignore = "needs sops 3 on PATH (vdo-testbed build sops)"]
fn gitops_secret_of_sops_is_decrypted_by_its_key_alone() {
    // A key of this test alone.
    const RECIPIENT: &str = "age1jkkskaq0qy7l6uxazw6qm2ux4j9dv473vt44ln7j3p3hn0r4q9zqy6fkt8";
    const KEY: &str = "AGE-SECRET-KEY-1H9GFKJRPNRL82EUXE664XEUPZDNNGAN07J9DX2W9GVTTN2PZ8RSSM84494";
    let base = tempfile::tempdir().expect("a folder");
    let folder = base.path().join("vdo");
    let bin = base.path().join("bin");
    std::fs::create_dir_all(&bin).expect("a folder");
    let search = std::process::Command::new("sh")
        .args(["-c", "command -v sops"])
        .output()
        .expect("a shell");
    let program = String::from_utf8(search.stdout).expect("text");
    std::os::unix::fs::symlink(program.trim(), bin.join("sops")).expect("a link");
    let password = written(&base.path().join("password"), &format!("{PASSWORD}\n"), 0o600);
    written(&folder.join(".sops.yaml"), &format!("creation_rules:\n- age: {RECIPIENT}\n"), 0o644);
    let keys = written(&base.path().join("keys.txt"), &format!("{KEY}\n"), 0o600);
    let decrypt = |key_file: &str| {
        let mut sops = std::process::Command::new(bin.join("sops"));
        sops.args(["decrypt", SECRET]).current_dir(&folder).env("HOME", base.path());
        sops.env("SOPS_AGE_KEY_FILE", key_file).output().expect("sops starts")
    };

    let (code, said) = ended(&deploy(base.path(), &["--password-file", &password]));
    assert_eq!(code, Some(0), "{said}");
    let text = std::fs::read_to_string(folder.join(SECRET)).expect("the Secret");
    assert!(
        text.contains("ENC[") && !text.contains(ENCODED) && !text.contains(PASSWORD),
        "{text}"
    );
    let plain = decrypt(&keys);
    assert!(plain.status.success(), "{}", String::from_utf8_lossy(&plain.stderr));
    let plain = vdo_api::yaml::load_value(&String::from_utf8(plain.stdout).expect("text")).expect("YAML");
    assert_eq!((&plain["kind"], &plain["data"]["password"]), (&"Secret".into(), &ENCODED.into()));
    assert!(!decrypt("/dev/null").status.success(), "it is readable without the key");

    let mut again = deploy_command(base.path(), &["--password-file", &password]);
    let again = again.env("SOPS_AGE_KEY_FILE", &keys).output().expect("it runs");
    assert_eq!(again.status.code(), Some(0), "{:?}", ended(&again));
    assert_eq!(
        std::fs::read_to_string(folder.join(SECRET)).expect("the Secret"),
        text,
        "nothing has changed"
    );

    // No key at all.
    std::fs::remove_file(folder.join(SECRET)).expect("removed");
    written(&folder.join(".sops.yaml"), "creation_rules: []\n", 0o644);
    let (code, said) = ended(&deploy(base.path(), &["--sops", "--password-file", &password]));
    assert!(
        code == Some(4) && said.contains("sops did not encrypt") && !folder.join(SECRET).exists(),
        "{said}"
    );
}
