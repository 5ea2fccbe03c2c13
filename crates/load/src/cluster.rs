// SPDX-License-Identifier: Apache-2.0
//! `vdo-load cluster` (`make deploy`): brings the image into kind, k3d, minikube or a registry, and installs the operator with kubectl.

use crate::cluster_type::{NODES, Node, Place, architectures, nodes, place};
use crate::image;
use crate::programs::{Call, Ended, Input, ask, last_line, say, step};
use crate::settings::{Environment, Settings, Source, environment, read};
use crate::stop::Stop;
use std::path::Path;

/// Where a program that is missing comes from.
const INSTALL: [(&str, &str); 7] = [
    ("docker", "https://docs.docker.com/engine/install/"),
    ("k3d", "https://k3d.io/#installation"),
    ("kind", "https://kind.sigs.k8s.io/docs/user/quick-start/#installation"),
    ("kubectl", "https://kubernetes.io/docs/tasks/tools/"),
    ("minikube", "https://minikube.sigs.k8s.io/docs/start/"),
    ("nerdctl", "https://github.com/containerd/nerdctl/releases"),
    ("podman", "https://podman.io/docs/installation"),
];

/// Builds, loads or pushes, and installs.
///
/// # Errors
/// With everything that is missing, before anything is built; later with the step that failed.
pub fn run() -> Result<(), Stop> {
    let environment = environment();
    let settings = read(&environment)?;
    image::check(&settings)?;
    let context = context()?;
    match &settings.source {
        Source::Named(image) => install(image, None),
        Source::Registry(registry) => {
            let nodes = answered(&context, listed()?)?;
            let built = image::build(&settings, &architectures(nodes.iter().map(|node| node.architecture.as_str()))?)?;
            install(&built.push(registry)?, None)
        }
        Source::Built => built(&settings, &context, &environment),
    }
}

fn built(settings: &Settings, context: &str, environment: &Environment) -> Result<(), Stop> {
    let listed = listed()?;
    let runtime = environment.get("KIND_EXPERIMENTAL_PROVIDER").map(String::as_str);
    let place = place(context, listed.as_deref().ok(), runtime);
    ready(&place, context)?;
    let nodes = answered(context, listed)?;
    let architectures = architectures(nodes.iter().map(|node| node.architecture.as_str()))?;
    let [architecture] = architectures.as_slice() else {
        return Err(Stop::usage(format!(
            "The nodes of context {context} have different architectures, or no node reports an architecture"
        ))
        .try_this("Push the image to a registry that the nodes can reach: make deploy VDO_REGISTRY=registry.example.com/vsphere"));
    };
    let (image, archive) = image::build(settings, &architectures)?.archive(architecture)?;
    say(&format!("== load {image}"));
    let load = load(&place, &archive);
    step(&load).map_err(|stop| stop.try_this(format!("Image {image} is not on every node; nothing was installed.")))?;
    install(&image, Some("Never"))
}

/// The command that brings an archive to all nodes.
fn load(place: &Place, archive: &Path) -> Call {
    let file = archive.display().to_string();
    match place {
        Place::Kind { cluster, runtime } => {
            Call::of("kind", &["load", "image-archive", &file, "--name", cluster]).with("KIND_EXPERIMENTAL_PROVIDER", runtime)
        }
        Place::K3d { cluster } => Call::of("k3d", &["image", "import", &file, "--cluster", cluster]),
        Place::Minikube { profile } => Call::of("minikube", &["--profile", profile, "image", "load", &file]),
        // It is refused before.
        Place::Remote => Call::default(),
    }
}

/// Whether an image can be brought there from this machine.
fn ready(place: &Place, context: &str) -> Result<(), Stop> {
    match place {
        Place::Kind { cluster, runtime } => {
            output(&Call::of("kind", &["version"]))?;
            output(&Call::of(runtime.as_str(), &["info"])).map_err(|stop| stop.try_this(format!("Start {runtime} or its service.")))?;
            let known = output(&Call::of("kind", &["get", "clusters"]).with("KIND_EXPERIMENTAL_PROVIDER", runtime))?;
            listed_there(
                &known,
                cluster,
                &format!("kind has no cluster {cluster} in {runtime}"),
                &format!("kind create cluster --name {cluster}"),
            )
        }
        Place::K3d { cluster } => {
            let known = output(&Call::of("k3d", &["cluster", "list", "--no-headers"]))?;
            listed_there(
                &known,
                cluster,
                &format!("k3d has no cluster {cluster}"),
                &format!("k3d cluster create {cluster}"),
            )
        }
        Place::Minikube { profile } => {
            let start = format!("minikube start --profile {profile}");
            output(&Call::of("minikube", &["--profile", profile, "status"]))
                .map(|_| ())
                .map_err(|stop| stop.try_this(start))
        }
        Place::Remote => Err(Stop::usage(format!(
            "The cluster of context {context} is not a kind, k3d or minikube cluster on this machine, so this command cannot load an image into the cluster"
        ))
        .try_this("Name an image that the cluster can pull:    make deploy VDO_IMAGE=registry.example.com/vsphere/vdo-operator:v1.2.3")
        .try_this("Or push a new image to a registry:          make deploy VDO_REGISTRY=registry.example.com/vsphere")
        .try_this("Or copy a new image to the nodes over SSH:  make deploy-k8s-cluster VDO_NODES=\"root@node1 root@node2\"")),
    }
}

/// Whether a cluster is in a list: the first word of a line.
fn listed_there(list: &str, cluster: &str, missing: &str, create: &str) -> Result<(), Stop> {
    match list.lines().any(|line| line.split_whitespace().next() == Some(cluster)) {
        true => Ok(()),
        false => Err(Stop::usage(missing).try_this(create)),
    }
}

/// What a program prints.
fn output(call: &Call) -> Result<String, Stop> {
    match ask(call, Input::None)? {
        Ended::Well(text) => Ok(text),
        Ended::Missing => Err(missing(&call.program)),
        Ended::Badly(_, said) => {
            let command = format!("{} {}", call.program, call.arguments.join(" "));
            Err(Stop::refused(format!("{command}: {}", last_line(&said))))
        }
    }
}

fn missing(program: &str) -> Stop {
    let stop = Stop::usage(format!("{program} is missing on this machine"));
    match INSTALL.iter().find(|(name, _)| *name == program) {
        Some((_, at)) => stop.try_this(format!("Install it: {at}")),
        None => stop,
    }
}

/// The current context.
fn context() -> Result<String, Stop> {
    match ask(&Call::of("kubectl", &["config", "current-context"]), Input::None)? {
        Ended::Well(context) => Ok(context),
        Ended::Missing => Err(missing("kubectl")),
        Ended::Badly(..) => {
            let contexts = output(&Call::of("kubectl", &["config", "get-contexts", "--output", "name"]))?;
            let kind = ask(&Call::of("kind", &["version"]), Input::None)? != Ended::Missing;
            Err(no_context(&contexts, kind))
        }
    }
}

fn no_context(contexts: &str, kind: bool) -> Stop {
    let stop = Stop::refused("There is no current context");
    match (contexts.lines().next(), kind) {
        (Some(_), _) => stop.try_this(format!(
            "Choose a context: kubectl config use-context {}",
            contexts.lines().collect::<Vec<_>>().join("|")
        )),
        (None, true) => stop.try_this("Create a cluster: kind create cluster"),
        (None, false) => stop.try_this("Set KUBECONFIG to the kubeconfig of your cluster, or install kind: https://kind.sigs.k8s.io"),
    }
}

/// The nodes of the cluster, or why they are unknown.
fn listed() -> Result<Result<Vec<Node>, String>, Stop> {
    let call = Call::of("kubectl", &["get", "nodes", "--request-timeout=20s", "--output", NODES]);
    Ok(match ask(&call, Input::None)? {
        Ended::Well(text) => Ok(nodes(&text)),
        Ended::Missing => return Err(missing("kubectl")),
        Ended::Badly(_, said) => Err(last_line(&said).to_owned()),
    })
}

fn answered(context: &str, nodes: Result<Vec<Node>, String>) -> Result<Vec<Node>, Stop> {
    nodes.map_err(|why| {
        Stop::refused(format!("The cluster of context {context} does not list its nodes: {why}"))
            .try_this("To see the error, run: kubectl get nodes")
    })
}

/// Applies the manifests with this image.
fn install(image: &str, pull_policy: Option<&str>) -> Result<(), Stop> {
    let call = Call::of("deploy/deploy.sh", &["deploy"]).with("VDO_IMAGE", image);
    step(&match pull_policy {
        Some(policy) => call.with("VDO_PULL_POLICY", policy),
        None => call,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cluster_no_context_leads_to_the_next_command() {
        for (contexts, kind, part) in [
            ("a\nb", true, "kubectl config use-context a|b"),
            ("", true, "kind create cluster"),
            ("", false, "KUBECONFIG"),
        ] {
            let text = no_context(contexts, kind).to_string();
            assert!(text.contains(part), "{text}");
        }
    }

    #[test]
    fn cluster_is_found_in_a_list_by_its_whole_name() {
        let look = |list: &str| listed_there(list, "dev", "no dev", "create").map_err(|stop| stop.to_string());
        assert_eq!(look("prod\ndev"), Ok(()));
        assert_eq!(look("dev   1/1   0/0   true"), Ok(()));
        for other in ["", "dev2", "my dev"] {
            assert_eq!(look(other), Err("no dev\ncreate".into()), "{other:?}");
        }
    }
}
