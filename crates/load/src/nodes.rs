// SPDX-License-Identifier: Apache-2.0
//! `vdo-load nodes` (`make deploy-k8s-cluster`): copies the image to each node over SSH, and installs the operator on a control-plane node.

use crate::cluster_type::architectures;
use crate::image;
use crate::node::{Node, facts, import, is_host, is_user, judge, parse, probe};
use crate::programs::{Call, Ended, Input, ask, say};
use crate::settings::{Environment, Settings, Source, environment, read};
use crate::ssh::{self, PASSWORD};
use crate::stop::Stop;
use std::collections::BTreeMap;
use std::path::PathBuf;

const ADDRESS: &str = "K8S_MASTER_IP";
const USER: &str = "K8S_MASTER_SSH_USER";

/// Finds kubectl and its configuration as deploy/deploy.sh does on a node, so that they are known to be there before anything is built.
const CONTROL_PLANE: &str = r#"PATH=$PATH:/usr/local/bin:/var/lib/rancher/rke2/bin
command -v kubectl >/dev/null || { echo "kubectl is missing on the node" >&2; exit 2; }
admin=/etc/kubernetes/admin.conf
if [ -z "${KUBECONFIG:-}" ] && [ ! -e "$HOME/.kube/config" ] && [ -r "$admin" ]; then export KUBECONFIG="$admin"; fi
kubectl get nodes --request-timeout=20s --selector=node-role.kubernetes.io/control-plane --output=name"#;

/// Builds, carries and installs.
///
/// # Errors
/// With everything that is missing, before anything is built; later with the node that failed.
pub fn run() -> Result<(), Stop> {
    let environment = environment();
    let settings = read(&environment)?;
    image::check(&settings)?;
    let (master, nodes) = asked(&environment)?;
    let image = match &settings.source {
        Source::Named(image) => return install(&master, image, None),
        Source::Registry(registry) => {
            control_plane(&master)?;
            let found = probed(std::slice::from_ref(&master))?;
            let architectures = architectures(found.iter().map(|(_, one)| one.as_str()))?;
            return install(&master, &image::build(&settings, &architectures)?.push(registry)?, None);
        }
        Source::Built => carry(&settings, &master, &nodes)?,
    };
    install(&master, &image, Some("Never"))
}

/// The control-plane node with kubectl, and the nodes that get the image.
fn asked(environment: &Environment) -> Result<(Node, Vec<Node>), Stop> {
    let missing: Vec<&str> = [ADDRESS, USER]
        .into_iter()
        .filter(|name| !environment.contains_key(*name))
        .collect();
    if !missing.is_empty() {
        return Err(Stop::usage(format!("These variables are not set in the environment: {}", missing.join(" ")))
            .try_this(format!("{ADDRESS} is the address of a control-plane node with kubectl, and {USER} is a user of this node."))
            .try_this(format!(
                "The user logs in with a key, or with the password in {PASSWORD}. Type the password into this command, so that no shell \
                 history contains it:"
            ))
            .try_this(format!("read -rs {PASSWORD} && export {PASSWORD}")));
    }
    let of = |name: &str| environment.get(name).cloned().unwrap_or_default();
    let (host, user) = (of(ADDRESS), of(USER));
    if !is_host(&host) {
        return Err(Stop::usage(format!("{ADDRESS} is neither an address nor a name: {host}")));
    }
    if !is_user(&user) {
        return Err(Stop::usage(format!("{USER} is not a user name: {user}")));
    }
    let password = environment.contains_key(PASSWORD);
    let master = Node { user, host, password };
    let mut nodes = parse(&of("VDO_NODES"))?;
    for node in &mut nodes {
        // The password is for this user of this node, and for no other.
        node.password = password && node.name() == master.name();
    }
    if nodes.is_empty() {
        nodes.push(master.clone());
    }
    Ok((master, nodes))
}

/// The architecture of each node.
fn probed(nodes: &[Node]) -> Result<Vec<(&Node, String)>, Stop> {
    let (mut found, mut stops) = (Vec::new(), Vec::new());
    for node in nodes {
        match ssh::run(node, &probe(), Input::None).and_then(|printed| judge(node, &facts(&printed))) {
            Ok(architecture) => found.push((node, architecture)),
            Err(stop) => stops.push(stop),
        }
    }
    match Stop::all(stops) {
        Some(stop) => Err(stop.try_this("Nothing was built and nothing was changed.")),
        None => Ok(found),
    }
}

/// The control-plane nodes, by the kubectl of one of them.
fn control_plane(master: &Node) -> Result<Vec<String>, Stop> {
    let printed = ssh::run(master, CONTROL_PLANE, Input::None)?;
    Ok(printed.lines().map(|name| name.trim_start_matches("node/").to_owned()).collect())
}

/// The operator may run on every control-plane node, and nowhere else.
fn enough(named: usize, control_plane: &[String]) -> Result<(), Stop> {
    match named < control_plane.len() {
        true => Err(Stop::usage(format!(
            "The operator may run on each of {} control-plane nodes ({}), but only {named} of the nodes would get the image",
            control_plane.len(),
            control_plane.join(", ")
        ))
        .try_this("Name all control-plane nodes: make deploy-k8s-cluster VDO_NODES=\"root@node1 root@node2 root@node3\"")),
        false => Ok(()),
    }
}

/// Builds the image and brings it to every node; gives its name.
fn carry(settings: &Settings, master: &Node, nodes: &[Node]) -> Result<String, Stop> {
    let found = probed(nodes)?;
    enough(nodes.len(), &control_plane(master)?)?;
    let architectures = architectures(found.iter().map(|(_, one)| one.as_str()))?;
    let built = image::build(settings, &architectures)?;
    let mut name = String::new();
    let mut archives: BTreeMap<String, PathBuf> = BTreeMap::new();
    for architecture in architectures {
        let (image, archive) = built.archive(&architecture)?;
        name = image;
        archives.insert(architecture, archive);
    }
    for (node, architecture) in found {
        let Some(archive) = archives.get(&architecture) else { continue };
        say(&format!("== copy {name} to node {}", node.name()));
        ssh::run(node, &import(&name), Input::File(archive)).map_err(|stop| {
            stop.try_this(format!(
                "Image {name} is not on every node; nothing was installed. Run the same command again to continue."
            ))
        })?;
    }
    Ok(name)
}

/// Applies the manifests with this image, with the kubectl of the node.
fn install(master: &Node, image: &str, pull_policy: Option<&str>) -> Result<(), Stop> {
    say(&format!("== deploy the operator: over SSH, with the kubectl of {}", master.host));
    let call = |what: &str| {
        let call = Call::of("deploy/deploy.sh", &[what]).with("VDO_IMAGE", image);
        call.with("VDO_PULL_POLICY", pull_policy.unwrap_or_default())
    };
    let script = printed(&call("node-script"))?;
    let applied = ssh::run(master, &script, Input::Of(&call("manifests")));
    let applied = applied.map_err(|stop| {
        stop.try_this(format!(
            "The operator is not deployed, because ssh or kubectl failed on {}.",
            master.host
        ))
    })?;
    say(&applied);
    say(&format!(
        "The operator is deployed. Next, create a vSphere connection and a VDOConfig: run vdoctl deploy --image {image}, or use \
         deploy/samples."
    ));
    Ok(())
}

fn printed(call: &Call) -> Result<String, Stop> {
    match ask(call, Input::None)? {
        Ended::Well(text) => Ok(text),
        Ended::Badly(_, said) => Err(Stop::usage(said)),
        Ended::Missing => Err(Stop::usage(format!("{} is missing", call.program)).try_this("Run make in the repository of VDO.")),
    }
}
