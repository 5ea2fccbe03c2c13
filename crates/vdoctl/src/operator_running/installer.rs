// SPDX-License-Identifier: Apache-2.0
//! Finds the tool that installed the operator (Helm, OLM with its Subscription, …), and the command that removes the operator.

use super::super::context::Context;
use super::super::views::version::InstallerView;
use serde_json::Value;
use vdo::cluster::{Select, Watch, list};
use vdo_core::install::Manager;
use vdo_core::manifest::Object;

/// Who installed the operator.
#[derive(Debug, Clone)]
pub(in super::super) struct Installer {
    pub manager: Manager,
    /// The Subscription that it comes from, with its channel, where that may be seen.
    subscription: Option<(String, String)>,
}

impl Installer {
    /// From the Deployment of an operator; `None` where no program looks after it.
    pub(in super::super) async fn find(context: &Context, deployment: &Object) -> Option<Self> {
        let manager = Manager::of(deployment)?;
        let subscription = match &manager {
            Manager::ClusterServiceVersion(name) => subscription(context, deployment.namespace(), name).await,
            Manager::Helm(_) | Manager::ClusterExtension(_) => None,
        };
        Some(Self { manager, subscription })
    }

    /// The command that removes the operator.
    pub(in super::super) fn removal(&self, namespace: &str) -> String {
        let subscription = self.subscription.as_ref().map(|(name, _)| name.as_str());
        self.manager.removal(namespace, subscription)
    }

    pub(in super::super) fn view(&self) -> InstallerView {
        let (kind, name) = match &self.manager {
            Manager::Helm(name) => ("Release", name),
            Manager::ClusterServiceVersion(name) => ("ClusterServiceVersion", name),
            Manager::ClusterExtension(name) => ("ClusterExtension", name),
        };
        let of_subscription = |part: fn(&(String, String)) -> &String| self.subscription.as_ref().map(part).cloned();
        InstallerView {
            kind: kind.to_owned(),
            name: name.clone(),
            subscription: of_subscription(|(name, _)| name),
            channel: of_subscription(|(_, channel)| channel),
        }
    }
}

/// The Subscription whose operator this ClusterServiceVersion is. Who may not see it does without.
async fn subscription(context: &Context, namespace: &str, csv: &str) -> Option<(String, String)> {
    let all = Watch::new("operators.coreos.com/v1alpha1", "Subscription", namespace, Select::All);
    let all = list(&context.ports.client, &all).await.ok()?;
    let is_of_it = |object: &&Object| {
        ["/status/installedCSV", "/status/currentCSV"]
            .iter()
            .any(|pointer| object.text(pointer) == csv)
    };
    let found = all.iter().find(is_of_it)?;
    let channel = found.value().pointer("/spec/channel").and_then(Value::as_str).unwrap_or_default();
    Some((found.name().to_owned(), channel.to_owned()))
}

impl InstallerView {
    /// The name of the program.
    pub(in super::super) fn program(&self) -> &'static str {
        if self.kind == "Release" { "Helm" } else { "OLM" }
    }

    /// For people: the program and what it knows the operator by.
    pub(in super::super) fn text(&self) -> String {
        let subscription = self
            .subscription
            .as_ref()
            .map(|name| format!(" of Subscription {name}"))
            .unwrap_or_default();
        let channel = self.channel.as_ref().filter(|channel| !channel.is_empty());
        let channel = channel.map(|channel| format!(", channel {channel}")).unwrap_or_default();
        format!("{}: {} {}{subscription}{channel}", self.program(), self.kind, self.name)
    }
}
