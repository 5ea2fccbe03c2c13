// SPDX-License-Identifier: Apache-2.0
//! The shell scripts that check a node and import an image into its containerd or CRI-O, and the parser of the entries `user@host`.

use crate::stop::Stop;

/// A machine and the user there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// The user.
    pub user: String,
    /// Its address or name.
    pub host: String,
    /// Whether the user logs in with the password in the environment; otherwise with a key.
    pub password: bool,
}

impl Node {
    /// How ssh names it.
    pub fn name(&self) -> String {
        format!("{}@{}", self.user, self.host)
    }
}

/// Reads `user@host …`.
///
/// # Errors
/// When one is none.
pub fn parse(list: &str) -> Result<Vec<Node>, Stop> {
    list.split_whitespace()
        .map(|text| {
            let (user, host) = text.rsplit_once('@').unwrap_or_default();
            match is_user(user) && is_host(host) {
                true => Ok(Node {
                    user: user.to_owned(),
                    host: host.to_owned(),
                    password: false,
                }),
                false => Err(Stop::usage(format!("VDO_NODES contains {text} instead of USER@ADDRESS"))
                    .try_this("Write user@host, such as root@10.0.0.11.")),
            }
        })
        .collect()
}

/// Whether it can be an address or a name: no option of ssh, nothing for a shell.
pub fn is_host(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == ':')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || ".:-".contains(c))
}

/// Whether it can be the name of a user.
pub fn is_user(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "._@-".contains(c))
}

/// Finds root, the container runtime of the kubelet, its client and its folder: `$root`, `$runtime`, `$client`, `$data`.
const FIND: &str = r#"set -eu
PATH=$PATH:/usr/local/bin:/usr/sbin:/sbin:/var/lib/rancher/rke2/bin
root=
[ "$(id -u)" = 0 ] || root="sudo -n"
runtime=none client=none data=/
k3s=/run/k3s/containerd/containerd.sock
if [ -S /run/crio/crio.sock ]; then
    runtime=crio data=/var/lib/containers
    for name in podman skopeo; do command -v "$name" >/dev/null && client=$(command -v "$name") && break; done
elif [ -S "$k3s" ] || [ -S /run/containerd/containerd.sock ]; then
    runtime=containerd data=/var/lib/containerd address=/run/containerd/containerd.sock
    if [ -S "$k3s" ]; then address=$k3s; [ -d /var/lib/rancher/rke2/agent/containerd ] && data=/var/lib/rancher/rke2 || data=/var/lib/rancher/k3s; fi
    if command -v ctr >/dev/null; then client="$(command -v ctr) --address $address"
    elif command -v k3s >/dev/null; then client="$(command -v k3s) ctr --address $address"; fi
fi
"#;

/// What a node is asked before anything is built.
pub fn probe() -> String {
    format!(
        r#"{FIND}$root true 2>/dev/null || runtime=refused
[ -d "$data" ] || data=/
set -- $(df -Pk "$data" | tail -n 1)
echo "machine $(uname -m)"
echo "runtime $runtime"
echo "client $client"
echo "free $4"
echo "data $data"
"#
    )
}

/// Takes an archive from standard input and gives it to the runtime; then the image is there.
pub fn import(image: &str) -> String {
    format!(
        r#"{FIND}image={image}
case $runtime in
containerd)
    $root $client -n k8s.io images import - >/dev/null
    $root $client -n k8s.io images ls -q | grep -Fqx "$image" || {{ echo "$client has not imported $image" >&2; exit 1; }}
    ;;
crio)
    archive=$(mktemp)
    trap 'rm -f "$archive"' EXIT
    cat >"$archive"
    case $client in
    */podman)
        $root "$client" load --quiet --input "$archive" >/dev/null
        $root "$client" image exists "$image" || {{ echo "$client has not imported $image" >&2; exit 1; }}
        ;;
    *) $root "$client" copy --quiet "docker-archive:$archive" "containers-storage:$image" ;;
    esac
    ;;
esac
"#
    )
}

/// What a node says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Facts {
    machine: String,
    runtime: String,
    client: String,
    data: String,
    /// Kilobytes.
    free: u64,
}

/// Reads what [`probe`] printed.
pub fn facts(printed: &str) -> Facts {
    let of = |key: &str| {
        let line = printed.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' '));
        line.unwrap_or_default().trim().to_owned()
    };
    Facts {
        machine: of("machine"),
        runtime: of("runtime"),
        client: of("client"),
        data: of("data"),
        free: of("free").parse().unwrap_or_default(),
    }
}

/// Kilobytes that must be free where a node keeps images: the archive, the compressed layer and the unpacked one are 10, 10 and 20 MB.
const NEEDED: u64 = 100_000;

/// The architecture of a node that can take an image.
///
/// # Errors
/// When it cannot: with the reason and what to do.
pub fn judge(node: &Node, facts: &Facts) -> Result<String, Stop> {
    let name = node.name();
    let lacks = |what: String| Stop::refused(format!("Node {name}: {what}"));
    match facts.runtime.as_str() {
        "containerd" | "crio" => {}
        "refused" => {
            return Err(
                lacks(format!("user {} is not root and cannot use sudo without a password", node.user)).try_this(
                    "Name root as the user of the node (root@NODE in VDO_NODES, or K8S_MASTER_SSH_USER=root), or allow this user to use sudo without a password during the installation.",
                ),
            );
        }
        _ => {
            return Err(lacks("no socket of containerd or CRI-O was found at a known path".into())
                .try_this("Push the image to a registry instead: make deploy VDO_REGISTRY=registry.example.com/vsphere"));
        }
    }
    if facts.client == "none" {
        let wanted = if facts.runtime == "crio" { "podman or skopeo" } else { "ctr" };
        return Err(lacks(format!(
            "the import of an image into {} needs {wanted}, which is not installed",
            facts.runtime
        ))
        .try_this(format!("Install {wanted} on the node.")));
    }
    if facts.free < NEEDED {
        return Err(lacks(format!(
            "{} MB are free in {}, and the image needs {} MB",
            facts.free / 1000,
            facts.data,
            NEEDED / 1000
        ))
        .try_this("Remove images that no container uses: crictl rmi --prune"));
    }
    match facts.machine.as_str() {
        "x86_64" => Ok("amd64".into()),
        "aarch64" => Ok("arm64".into()),
        other => Err(lacks(format!(
            "the node has the architecture {other:?}, but images are built only for x86_64 and aarch64"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_users_with_addresses_and_nothing_for_a_shell() {
        let names = |list: &str| parse(list).map(|nodes| nodes.iter().map(Node::name).collect::<Vec<_>>());
        assert_eq!(
            names("root@n1  ubuntu@fd00::1"),
            Ok(vec!["root@n1".into(), "ubuntu@fd00::1".into()])
        );
        assert_eq!(names(""), Ok(vec![]));
        for bad in ["n1", "@n1", "root@", "-oProxyCommand=id@n1", "root@-n1", "root@n1;id", "$(id)@n1"] {
            let error = names(bad).expect_err("refused").to_string();
            assert!(error.contains(bad) && error.contains("user@host"), "{error}");
        }
    }

    #[test]
    fn node_says_what_it_lacks_before_anything_is_built() {
        let node = Node {
            user: "ubuntu".into(),
            host: "n1".into(),
            password: false,
        };
        let judged = |text: &str| judge(&node, &facts(text)).map_err(|stop| stop.to_string());
        let good = "machine aarch64\nruntime containerd\nclient /usr/bin/ctr --address /run/x\nfree 4000000\ndata /var/lib/containerd\n";
        assert_eq!(judged(good), Ok("arm64".into()));
        assert_eq!(judged(&good.replace("aarch64", "x86_64")), Ok("amd64".into()));
        for (from, to, part) in [
            ("runtime containerd", "runtime none", "no socket of containerd or CRI-O"),
            ("runtime containerd", "runtime refused", "user ubuntu is not root"),
            ("client /usr/bin/ctr", "client none\nx", "needs ctr, which is not installed"),
            ("free 4000000", "free 99999", "99 MB are free in /var/lib/containerd"),
            ("aarch64", "s390x", "s390x"),
        ] {
            let error = judged(&good.replace(from, to)).expect_err("refused");
            assert!(error.starts_with("Node ubuntu@n1: ") && error.contains(part), "{error}");
        }
    }
}
