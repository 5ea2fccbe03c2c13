// SPDX-License-Identifier: Apache-2.0
//! The test bed: what the operator meets in life, on one machine and without a network.
//!
//! * [`Cluster`]: real etcd, kube-apiserver, kube-controller-manager and kube-scheduler; nodes and pods played by kwok.
//! * [`Vcenter`]: a simulated vCenter with named virtual machines, a checked password and certificates of any kind.
//! * [`soap`]: a proxy in front of it, for what it is too kind to do.
//! * [`NodeAgent`]: runs the real vSphere cloud provider for its pods, registers the CSI driver on nodes, and runs containers of images.
//! * [`AuditLog`]: what was asked of the API server.
//! * [`WebServer`]: files behind TLS, and everything that a server can do wrong.
//! * [`Gateway`]: leads connections to an API server, by CONNECT and SOCKS; [`Squid`] and [`Microsocks`] are real ones.
//! * [`Proxy`]: numbers the writes of a client and makes its requests fail.
//! * [`RegistryServer`]: real registries of images and charts.
//! * [`Helm`]: the real one.
//! * [`former`]: the drivers as other tools bring them.
//! * [`Olm`]: the real OLM v0 with a catalog; the validators of bundles.
//! * [`Sanity`]: csi-sanity, which calls a CSI driver as its specification allows.
//! * [`Binaries`]: builds all that from Go modules, once.
//!
//! Nothing of it survives the process that started it, however that ends.

mod agent;
mod apply;
mod audit;
mod binaries;
mod body;
mod clock;
mod cluster;
mod cns;
mod csi;
pub mod demo;
mod enter;
mod etcd;
#[path = "../../common/executable.rs"]
mod executable;
pub mod former;
mod gateway;
mod helm;
mod images;
mod kubeconfig;
mod layout;
mod logs;
mod microsocks;
mod mirror;
mod nodes;
mod olm;
mod olm_v1;
mod oracle;
mod own_programs;
mod pki;
mod ports;
mod process;
mod proxy;
mod registry;
mod sanity;
pub mod soap;
mod squid;
mod stages;
mod upstream_programs;
mod vcenter;
mod wait;
mod web;
mod workdir;

pub use agent::{ContainerRun, CpiRun, CsiPlugin, Isolation, NodeAgent};
pub use apply::{FIELD_MANAGER, apply};
pub use audit::{AuditLog, Entry, Mark, Requests};
pub use binaries::Binaries;
pub use clock::Clock;
pub use cluster::{Cluster, ClusterOptions};
pub use csi::{CSI_IMAGES, CsiVersion, start_snapshots};
pub use enter::{enter, try_out, with_token};
pub use executable::write_program;
pub use gateway::Gateway;
pub use helm::Helm;
pub use images::{TestImages, crane};
pub use kubeconfig::client;
pub use microsocks::Microsocks;
pub use mirror::Mirror;
pub use nodes::{NodeOptions, UNINITIALIZED};
pub use olm::{CATALOG, Fault, OLM_NAMESPACE, Olm, bundle_faults, opm, scorecard};
pub use olm_v1::{OLM_V1, OLM_V1_NAMESPACE, OlmV1};
pub use oracle::{Grammar, Health, admitted, argocd_health, kstatus, parsed, parsed_many};
pub use own_programs::{ensure_fresh, vdo_release, vdoctl};
pub use pki::{Authority, Leaf, Validity};
pub use process::{Launch, Process};
pub use proxy::{Act, Call, Cut, Handled, Proxy};
pub use registry::{LOGIN, RegistryAuth, RegistryKind, RegistryServer, oras, run};
pub use sanity::{Sanity, SanityCase};
pub use squid::Squid;
pub use stages::{NO_NETWORK, NO_NETWORK_SAYS, TROUBLE};
pub use upstream_programs::{KUBERNETES_VERSION, MINORS, Minor, Part};
pub use vcenter::{Gate, Logins, Vcenter, VcenterOptions, Vm};
pub use wait::{PATIENCE, Probe, until};
pub use web::{Asked, WebAnswer, WebServer};
