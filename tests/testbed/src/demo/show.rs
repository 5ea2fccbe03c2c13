// SPDX-License-Identifier: Apache-2.0
//! The demonstration: from nothing to healthy drivers, step by step, with everything left up to be looked at.

use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, anyhow, bail, ensure};

use super::former::Former;
use super::screen::Screen;
use super::{Options, ServedImage, State, programs, rest, story, volume};
use crate::Cluster;
use crate::audit::{AuditLog, Entry, Mark};

pub(super) const NAMESPACE: &str = "vmware-system-vdo";
/// How `vdoctl plan` and `vdoctl adopt` end where something is to be done.
pub(super) const TO_DO: i32 = 1;
const OPERATOR: &str = "system:serviceaccount:vmware-system-vdo:vdo-operator";

/// Shows it. Where everything is as it should be, nothing is written.
pub async fn show(options: &Options) -> Result<()> {
    let mut show = Show {
        screen: Screen::new(),
        dir: options.dir.clone(),
        step: "tools",
    };
    let outcome = tokio::select! {
        outcome = show.run(options) => outcome,
        _ = tokio::signal::ctrl_c() => Err(anyhow!("interrupted")),
    };
    outcome.map_err(|error| {
        show.screen.clear();
        show.explained(&error)
    })
}

struct Show {
    screen: Screen,
    dir: PathBuf,
    step: &'static str,
}

impl Show {
    async fn run(&mut self, options: &Options) -> Result<()> {
        let programs = tools()?;
        let (served, image) = image(&programs)?;
        let unconfined = volume::hindered(&self.dir)?;
        let options = &Options {
            images: vec![served],
            csi: unconfined.is_none(),
            ..options.clone()
        };
        self.step = "programs of the test bed";
        programs::ensure_all(&mut self.screen, &options.parts()).await?;

        self.step = "test bed";
        let doing = match super::running(&self.dir)? {
            true => "looking at the test bed that runs",
            false => "starting etcd, API server, controllers, scheduler, nodes and vCenter",
        };
        let (state, found) = self.screen.during(doing, super::find_or_start(options)).await?;
        let client = crate::client(&state.kubeconfig).await?;
        let kubernetes = client.apiserver_version().await?;
        self.screen.done(format!(
            "test bed {}: Kubernetes {} with {} nodes, vCenter {}",
            if found { "found" } else { "started" },
            kubernetes.git_version,
            state.nodes.len(),
            state.vcenter.version,
        ));
        if found {
            let waiting = "waiting until the operator has asked the vCenter about the nodes";
            self.screen.during(waiting, rest::until_nodes_are_known(&client, NAMESPACE)).await?;
        }
        let audit = AuditLog::new(state.audit_log.clone(), client.clone());
        let begin = audit.mark().await?;

        self.step = "vdoctl deploy";
        self.deploy(&state, &programs, &image)?;

        let tools = Tools::lay_out(&state, &programs)?;
        if let Some(former) = options.from {
            self.step = "taking over";
            self.take_over(former, &tools).await?;
        }
        self.step = "a volume";
        match unconfined {
            None if state.csi => self.volume(&tools)?,
            None => self
                .screen
                .text("\nThis test bed was started without the controller of the CSI driver,\nso that no claim is bound."),
            Some(problem) => self.screen.text(format!(
                "\nNo claim is bound: this machine permits no user and mount namespaces\nfor the controller of the CSI driver ({problem})."
            )),
        }
        self.step = "what to see";
        story::look(&mut self.screen, &tools, kubernetes.minor.parse().context("minor of Kubernetes")?)?;
        // Where the demonstration only looks, it writes nothing.
        if !found {
            self.step = "a fault and its remedy";
            story::fault(&mut self.screen, &tools, &state).await?;
        }
        self.hints(&tools)?;
        self.writes(&audit, begin).await
    }

    /// Installs the operator and the drivers as an administrator would.
    fn deploy(&mut self, state: &State, programs: &Path, image: &str) -> Result<()> {
        let vcenter = &state.vcenter;
        let (address, password, authority) = (
            format!("{}:{}", vcenter.host, vcenter.port),
            vcenter.password_file.display().to_string(),
            vcenter.ca_file.display().to_string(),
        );
        // The reference with its digest is longer than a line.
        let file = self.dir.join("image");
        std::fs::write(&file, image).with_context(|| format!("file {}", file.display()))?;
        let same = |value: &str| quoted(Path::new(value));
        // Each flag with its value, and how a person would type that.
        let args = [
            ("--vcenter", address.as_str(), same(&address)),
            ("--user", &vcenter.user, same(&vcenter.user)),
            ("--password-file", &password, same(&password)),
            ("--ca-file", &authority, same(&authority)),
            ("--image", image, format!("\"$(cat {})\"", quoted(&file))),
        ];
        let shown: Vec<String> = args.iter().map(|(flag, _, typed)| format!("    {flag} {typed}")).collect();
        self.screen.text(format!("\n$ vdoctl deploy \\\n{}", shown.join(" \\\n")));
        let mut command = Command::new(programs.join("vdoctl"));
        command.arg("deploy").args(args.iter().flat_map(|(flag, value, _)| [flag, value]));
        let status = command.env("VDO_KUBECONFIG", &state.kubeconfig).stdin(Stdio::null()).status()?;
        let containers = super::state(&self.dir).map(|state| state.containers).unwrap_or_default();
        let logs = || {
            containers
                .iter()
                .map(|run| format!("\nlog: {}", run.log.display()))
                .collect::<String>()
        };
        ensure!(status.success(), "it ended with {status}{}", logs());
        Ok(())
    }

    /// The same drivers once more, as another tool brings them, and what an administrator does to take them over.
    async fn take_over(&mut self, former: Former, tools: &Tools) -> Result<()> {
        let tool = former.said();
        let done = self.dir.join("vdo.yaml");
        if done.is_file() {
            self.screen.done(format!("drivers of {tool} were taken over before"));
            return Ok(());
        }
        let doing = format!("installing the drivers as {tool} brings them, in place of those of VDO");
        self.screen.during(&doing, former.install(tools, &self.dir)).await?;
        self.screen.done(format!(
            "{tool} has installed the drivers; VDO has its operator and a connection here, and no VDOConfig"
        ));
        former.taken_over(tools, &self.dir, &mut self.screen)
    }

    /// A claim, as a user of the cluster would make it, is bound by the driver.
    fn volume(&mut self, tools: &Tools) -> Result<()> {
        self.screen
            .text("\nThe CSI controller is not simulated: it runs with the programs of CSI 3.7.0,\nand creates volumes in the vCenter:");
        let file = volume::write(&self.dir)?;
        let file = file.to_str().context("the folder's name is not text")?;
        story::typed(&mut self.screen, tools, &story::line("kubectl", &["apply", "-f", file]), &[0])?;
        tools.run("kubectl", &volume::WAIT)?;
        story::typed(&mut self.screen, tools, volume::SHOW, &[0])
    }

    /// What to try.
    fn hints(&mut self, tools: &Tools) -> Result<()> {
        let (kubeconfig, bin) = (quoted(&tools.kubeconfig), quoted(&tools.bin));
        let logs = super::state(&self.dir)?.node_agent;
        self.screen.text(format!(
            "
Everything stays up. To look around:
  export KUBECONFIG={kubeconfig}
  export PATH={bin}:$PATH
and then, for example:
  # every check there is, and each node with its virtual machine
  vdoctl doctor
  vdoctl doctor nodes
  # damage is repaired: the Service is back within a second
  kubectl delete service vsphere-csi-controller -n vmware-system-csi
  kubectl get service -n vmware-system-csi
  # another version of the CSI driver
  vdoctl upgrade apply --to csi=3.7.0
Logs of the operator and the drivers: {}
End it all: {}
",
            quoted(&logs),
            self.stop(),
        ));
        Ok(())
    }

    /// Who wrote during this run: the audit log knows.
    async fn writes(&mut self, audit: &AuditLog, begin: Mark) -> Result<()> {
        // Whether someone may do a thing is asked with a create that stores nothing.
        let writes = |entry: &Entry| entry.writes() && !entry.resource.ends_with("reviews") && entry.resource != "leases";
        let writes = audit.since(begin).await?.only(writes);
        let (demo, operator) = (writes.clone().of(Cluster::ADMIN).len(), writes.of(OPERATOR).len());
        self.screen.text(match demo + operator {
            0 => String::from("Everything was as it should be: 0 writes by the operator and this demo."),
            1 => format!("1 write, by {}.", if demo == 1 { "this demo" } else { "the operator" }),
            all => format!("{all} writes: {operator} by the operator, {demo} by this demo.\nRun it again: there will be none."),
        });
        Ok(())
    }

    /// The error with what helps to understand it.
    fn explained(&self, error: &anyhow::Error) -> anyhow::Error {
        let mut text = format!("step \"{}\": {error:#}\n", self.step);
        let up = super::running(&self.dir).unwrap_or(false);
        if !up && self.step != "test bed" {
            return anyhow!(text);
        }
        let logs = ["testbed.log", "cluster/kube-apiserver.log"].map(|log| self.dir.join(log));
        for log in logs.iter().filter(|log| log.is_file()) {
            text.push_str(&format!("\nlog: {}", log.display()));
        }
        if up && let Ok(state) = super::state(&self.dir) {
            let kubeconfig = quoted(&state.kubeconfig);
            text.push_str(&format!("\nThe cluster is left up to be looked at: export KUBECONFIG={kubeconfig}"));
        }
        if up {
            text.push_str(&format!("\nRun the demo again to go on, or end it all: {}", self.stop()));
        }
        anyhow!(text)
    }

    fn stop(&self) -> String {
        if self.dir == Path::new(".demo") {
            return "make demo-stop".into();
        }
        let own = std::env::current_exe().unwrap_or_else(|_| "vdo-testbed".into());
        format!("{} down --dir {}", quoted(&own), quoted(&self.dir))
    }
}

/// The commands that a person would use, in a folder for the path.
#[derive(Clone)]
pub(super) struct Tools {
    bin: PathBuf,
    pub(super) kubeconfig: PathBuf,
    /// Variables beside those of the kubeconfig.
    env: Vec<(&'static str, PathBuf)>,
}

impl Tools {
    fn lay_out(state: &State, programs: &Path) -> Result<Self> {
        let bin = state.kubeconfig.with_file_name("bin");
        let vdoctl = programs.join("vdoctl");
        std::fs::create_dir_all(&bin)?;
        for (name, target) in [
            ("kubectl", state.binaries.join("kubectl")),
            ("vdoctl", vdoctl.clone()),
            ("kubectl-vdo", vdoctl),
        ] {
            let _ = std::fs::remove_file(bin.join(name));
            std::os::unix::fs::symlink(&target, bin.join(name)).with_context(|| format!("link to {}", target.display()))?;
        }
        Ok(Self {
            bin,
            kubeconfig: state.kubeconfig.clone(),
            env: Vec::new(),
        })
    }

    /// The same, with one more variable in the environment.
    pub(super) fn with(&self, name: &'static str, path: &Path) -> Self {
        let mut with = self.clone();
        with.env.push((name, path.to_owned()));
        with
    }

    pub(super) fn run(&self, program: &str, args: &[&str]) -> Result<String> {
        match self.ended(program, args)? {
            (0, text) => Ok(text),
            (code, text) => bail!("{program} {} failed ({code}): {text}", args.join(" ")),
        }
    }

    /// The exit code of a command, and what it prints.
    pub(super) fn ended(&self, program: &str, args: &[&str]) -> Result<(i32, String)> {
        let mut command = self.command(program);
        command.args(args);
        let output = command.output().with_context(|| format!("cannot run {program}"))?;
        let code = output.status.code().with_context(|| format!("{program} was killed"))?;
        let said = if code == 0 { Vec::new() } else { output.stderr };
        let text = String::from_utf8_lossy(&[output.stdout, said].concat()).trim_end().to_owned();
        Ok((code, text))
    }

    /// Runs a command line with the terminal as its own, so that it fits its width, and gives the exit code. Messages go to stdout as well, in
    /// their order.
    pub(super) fn typed(&self, line: &str) -> Result<i32> {
        let words = shlex::split(&line.replace("\\\n", "")).with_context(|| format!("command line {line}"))?;
        let (program, args) = words.split_first().context("empty command line")?;
        let mut command = self.command(program);
        let messages = std::io::stdout().as_fd().try_clone_to_owned()?;
        command.args(args).stdin(Stdio::null()).stderr(messages);
        let status = command.status().with_context(|| format!("cannot run {program}"))?;
        status.code().with_context(|| format!("{program} was killed"))
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.bin.join(program));
        command.env("KUBECONFIG", &self.kubeconfig).env("VDO_KUBECONFIG", &self.kubeconfig);
        command.envs(self.env.iter().map(|(name, path)| (name, path)));
        command
    }
}

/// Looks for what is needed, and gives the folder of the project's own programs.
fn tools() -> Result<PathBuf> {
    for (tool, package) in [("setsid", "util-linux"), ("sh", "dash")] {
        ensure!(found(tool), "{tool} is missing. On Debian: apt install {package}");
    }
    let own = std::env::current_exe()?;
    let folder = own.parent().context("this program is in no folder")?;
    for program in ["vdo-operator", "vdoctl"] {
        ensure!(
            folder.join(program).is_file(),
            "{program} is not in {}. Build it: cargo build --workspace",
            folder.display()
        );
    }
    Ok(folder.to_owned())
}

/// The operator's image that was built last, and its reference with the digest: another build is another version to the cluster.
fn image(programs: &Path) -> Result<(ServedImage, String)> {
    let layout = programs.parent().unwrap_or(programs).join("testbed-image");
    let missing = || format!("the operator's image is not in {}. Build it: make operator-image", layout.display());
    let index = std::fs::read(layout.join("index.json")).with_context(missing)?;
    let index: serde_json::Value = serde_json::from_slice(&index)?;
    let entry = &index["manifests"][0];
    let reference = entry["annotations"]["io.containerd.image.name"].as_str().with_context(missing)?;
    let digest = entry["digest"].as_str().with_context(missing)?;
    let pinned = format!("{reference}@{digest}");
    let served = ServedImage {
        reference: reference.to_owned(),
        layout,
    };
    Ok((served, pinned))
}

/// Whether a program is on the path.
pub(super) fn found(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// A path as a shell reads it.
pub(super) fn quoted(path: &Path) -> String {
    let path = path.display().to_string();
    shlex::try_quote(&path).map_or(path.clone(), Into::into)
}
