// SPDX-License-Identifier: Apache-2.0
//! How a container of an unpacked image is started: in its own root file system, or beside it where this machine forbids that.

use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use k8s_openapi::api::core::v1::{Container, Pod};

use super::address::{self, Address};
use super::container::redirect;
use super::image::Image;
use super::source::{Source, expand};
use super::volumes::Volumes;
use super::{Site, volumes};
use crate::enter::{Bind, Entry};
use crate::process::Launch;
use crate::workdir::write_private;

/// How the agent runs containers of images.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// In a user namespace and a mount namespace: the image's root file system is theirs, and the pod's user is the only one.
    Namespaces,
    /// As processes of the test's user, with paths that lead to the files outside; why.
    None(String),
}

const ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
const DEVICES: [&str; 5] = ["null", "zero", "full", "random", "urandom"];
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

impl Isolation {
    /// What this machine permits.
    pub(crate) fn possible(launcher: &Path, folder: &Path) -> Self {
        let tried = Command::new(launcher).arg("enter").arg("--try").arg(folder).output();
        let problem = match tried {
            Ok(output) if output.status.success() => return Self::Namespaces,
            Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
            Err(error) => format!("{}: {error}; run `cargo build --workspace`", launcher.display()),
        };
        Self::None(problem)
    }

    /// Prints what this machine does not permit.
    pub(super) fn tell(&self) {
        let Self::None(problem) = self else { return };
        let line = format!("test bed: containers of images run without a root file system of their own ({problem})\n");
        let _ = std::io::stderr().write_all(line.as_bytes());
    }
}

/// The program that becomes containers: `vdo-testbed`, which is this one or lies beside the tests.
pub(crate) fn launcher() -> Result<PathBuf> {
    let this = std::env::current_exe().context("this program")?;
    if this.file_name() == Some(OsStr::new("vdo-testbed")) {
        return Ok(this);
    }
    // Tests are in target/debug/deps.
    let beside = this.ancestors().skip(1).take(2).map(|folder| folder.join("vdo-testbed"));
    beside
        .into_iter()
        .find(|program| program.is_file())
        .with_context(|| format!("vdo-testbed is missing beside {}: run `cargo build --workspace`", this.display()))
}

/// Why a container cannot be created, in the kubelet's word and a sentence.
#[derive(Debug)]
pub(super) struct Refused(pub(super) &'static str, pub(super) String);

/// Everything for one start of a container.
pub(super) struct Start<'a> {
    pub(super) site: &'a Site,
    pub(super) isolation: &'a Isolation,
    pub(super) pod: &'a Pod,
    pub(super) container: &'a Container,
    pub(super) image: &'a Image,
    pub(super) address: &'a Address,
    pub(super) volumes: &'a Volumes,
    /// A folder of this container.
    pub(super) folder: &'a Path,
    pub(super) log: &'a Path,
}

impl Start<'_> {
    /// What is to be launched.
    pub(super) async fn launch(&self) -> Result<Launch, Refused> {
        let config = |error: anyhow::Error| Refused("CreateContainerConfigError", format!("{error:#}"));
        let (uid, gid) = self.user().map_err(config)?;
        let (argv, env) = self.command().await.map_err(config)?;
        volumes::folder(self.folder).map_err(config)?;
        let launch = match self.isolation {
            Isolation::Namespaces => self.inside(uid, gid, argv, env),
            Isolation::None(_) => self.outside(argv, env),
        };
        launch.map_err(|error| Refused("CreateContainerError", format!("{error:#}")))
    }

    /// The user and group that the container, the pod or the image wants, in this order.
    fn user(&self) -> Result<(u32, u32)> {
        let container = self.container.security_context.as_ref();
        let pod = self.pod.spec.as_ref().and_then(|spec| spec.security_context.as_ref());
        let number = |id: i64| u32::try_from(id).context("a user or group out of range");
        let wanted = container.and_then(|c| c.run_as_user).or(pod.and_then(|p| p.run_as_user));
        let group = container.and_then(|c| c.run_as_group).or(pod.and_then(|p| p.run_as_group));
        let of_image = self.image.user();
        let uid = match wanted {
            Some(id) => number(id)?,
            None => of_image
                .as_ref()
                .map(|(uid, _)| *uid)
                .map_err(|error| anyhow::anyhow!("{error:#}"))?,
        };
        let gid = match group {
            Some(id) => number(id)?,
            None => of_image.map_or(0, |(_, gid)| gid),
        };
        let non_root = container.and_then(|c| c.run_as_non_root).or(pod.and_then(|p| p.run_as_non_root));
        if non_root == Some(true) && uid == 0 {
            bail!("container has runAsNonRoot and image will run as root");
        }
        Ok((uid, gid))
    }

    /// Program with arguments, and variables, as they are inside of the container.
    async fn command(&self) -> Result<(Vec<String>, Vec<(String, String)>)> {
        let server: http::Uri = self.site.server.parse()?;
        let mut env: Vec<(String, String)> = vec![
            ("PATH".into(), PATH.into()),
            ("HOSTNAME".into(), self.pod.metadata.name.clone().unwrap_or_default()),
            ("KUBERNETES_SERVICE_HOST".into(), server.host().unwrap_or_default().into()),
            ("KUBERNETES_SERVICE_PORT".into(), server.port_u16().unwrap_or(443).to_string()),
        ];
        for variable in self.image.config.env.iter().flatten() {
            let (name, value) = variable.split_once('=').unwrap_or((variable, ""));
            set(&mut env, name, value.to_owned());
        }
        let source = Source::new(&self.site.client, self.pod);
        for variable in self.container.env.iter().flatten() {
            if let Some(value) = source.variable(variable).await? {
                let value = expand(&value, &env);
                set(&mut env, &variable.name, value);
            }
        }
        let config = &self.image.config;
        let own = |list: &Option<Vec<String>>| list.clone().filter(|list| !list.is_empty());
        let (command, args) = (own(&self.container.command), own(&self.container.args));
        // A command of the container's takes the place of entrypoint and arguments of the image.
        let args = args.or_else(|| config.cmd.clone().filter(|_| command.is_none()));
        let command = command.or_else(|| own(&config.entrypoint)).unwrap_or_default();
        let mut argv: Vec<String> = command.iter().chain(args.iter().flatten()).map(|word| expand(word, &env)).collect();
        address::narrow(&self.address.ports, &mut argv, &mut env);
        Ok((argv, env))
    }

    fn mounts(&self) -> impl Iterator<Item = Bind> {
        let read_only = |name: &str| {
            let volumes = self.pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
            // The kubelet writes configuration and tokens, the container only reads them.
            !volumes.into_iter().any(|volume| volume.name == name && volume.empty_dir.is_some())
        };
        self.container.volume_mounts.iter().flatten().map(move |mount| {
            let place = self.volumes.path(&mount.name);
            Bind {
                source: mount.sub_path.as_ref().map_or(place.clone(), |sub| place.join(sub)),
                target: mount.mount_path.clone().into(),
                read_only: mount.read_only == Some(true) || read_only(&mount.name),
            }
        })
    }

    fn inside(&self, uid: u32, gid: u32, argv: Vec<String>, env: Vec<(String, String)>) -> Result<Launch> {
        let root = self.folder.join("root");
        copy(&self.image.root, &root).context("root file system")?;
        let plain = |source: PathBuf, target: PathBuf| Bind {
            source,
            target,
            read_only: false,
        };
        let mut mounts = vec![plain("/proc".into(), "/proc".into())];
        mounts.extend(DEVICES.map(|device| plain(Path::new("/dev").join(device), Path::new("/dev").join(device))));
        for (file, text) in self.files_of_the_kubelet() {
            let source = self.folder.join(file);
            std::fs::write(&source, text)?;
            mounts.push(plain(source, Path::new("/etc").join(file)));
        }
        mounts.extend(self.mounts());
        // Outer ones first, so that inner ones are seen.
        mounts.sort_by_key(|bind| bind.target.components().count());
        for bind in &mounts {
            mount_point(&root, bind).with_context(|| format!("mount point {}", bind.target.display()))?;
        }
        let security = self.container.security_context.as_ref();
        let entry = Entry {
            root,
            mounts,
            read_only: security.and_then(|s| s.read_only_root_filesystem) == Some(true),
            uid,
            gid,
            privilege_escalation: security.and_then(|s| s.allow_privilege_escalation) != Some(false),
            dir: self
                .image
                .config
                .working_dir
                .clone()
                .filter(|dir| !dir.is_empty())
                .unwrap_or_else(|| "/".into())
                .into(),
            argv,
            env,
        };
        let file = self.folder.join("entry.json");
        let _ = std::fs::remove_file(&file);
        write_private(&file, serde_json::to_vec(&entry)?)?;
        Ok(Launch::new(&self.container.name, &self.site.launcher, self.log)
            .arg("enter")
            .arg(&file)
            .only_env(Vec::new()))
    }

    /// As [`Self::inside`], for a program that finds its files at other paths: those in its arguments and variables are changed, and its
    /// service account comes as a kubeconfig.
    fn outside(&self, argv: Vec<String>, mut env: Vec<(String, String)>) -> Result<Launch> {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let mut mounts: Vec<(String, String)> = self
            .mounts()
            .map(|bind| (text(&bind.target).trim_end_matches('/').to_owned(), text(&bind.source)))
            .collect();
        mounts.sort_by_key(|(path, _)| std::cmp::Reverse(path.len()));
        if let Some((_, account)) = mounts.iter().find(|(target, _)| target == ACCOUNT) {
            let account = Path::new(account);
            let config = serde_json::json!({
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{ "name": "pod", "cluster": { "server": self.site.server, "certificate-authority": account.join("ca.crt") } }],
                "users": [{ "name": "pod", "user": { "tokenFile": account.join("token") } }],
                "contexts": [{ "name": "pod", "context": { "cluster": "pod", "user": "pod" } }],
                "current-context": "pod",
            });
            let kubeconfig = self.folder.join("kubeconfig");
            write_private(&kubeconfig, config.to_string())?;
            set(&mut env, "VDO_KUBECONFIG", text(&kubeconfig));
        }
        let (program, args) = argv.split_first().context("neither the container nor its image names a program")?;
        let program = self.image.root.join(program.trim_start_matches('/'));
        let env = env.into_iter().map(|(name, value)| (name, redirect(&value, &mounts))).collect();
        let launch = Launch::new(&self.container.name, program, self.log).only_env(env);
        Ok(args.iter().fold(launch, |launch, arg| launch.arg(redirect(arg, &mounts))))
    }

    fn files_of_the_kubelet(&self) -> [(&'static str, String); 3] {
        let name = self.pod.metadata.name.clone().unwrap_or_default();
        [
            ("hosts", format!("127.0.0.1\tlocalhost\n{}\t{name}\n", self.address.ip)),
            ("hostname", format!("{name}\n")),
            ("resolv.conf", std::fs::read_to_string("/etc/resolv.conf").unwrap_or_default()),
        ]
    }
}

fn set(env: &mut Vec<(String, String)>, name: &str, value: String) {
    env.retain(|(known, _)| known != name);
    env.push((name.to_owned(), value));
}

/// A copy of an image's files for one container: folders of its own, in which mount points can be made, and hard links.
fn copy(from: &Path, to: &Path) -> Result<()> {
    let _ = std::fs::remove_dir_all(to);
    let mode = std::fs::metadata(from)?.permissions().mode();
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type()?;
        if kind.is_dir() {
            copy(&source, &target)?;
        } else if kind.is_symlink() {
            std::os::unix::fs::symlink(std::fs::read_link(&source)?, &target)?;
        } else {
            std::fs::hard_link(&source, &target).with_context(|| format!("file {}", target.display()))?;
        }
    }
    // Writable for its owner, who makes the mount points.
    std::fs::set_permissions(to, std::fs::Permissions::from_mode(mode | 0o700))?;
    Ok(())
}

fn mount_point(root: &Path, bind: &Bind) -> Result<()> {
    let target = root.join(bind.target.strip_prefix("/").context("a relative path")?);
    if std::fs::metadata(&bind.source)?.is_dir() {
        return volumes::folder(&target);
    }
    volumes::folder(target.parent().unwrap_or(root))?;
    if !target.exists() {
        std::fs::write(&target, "")?;
    }
    Ok(())
}
