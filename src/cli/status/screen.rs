//! The screen of `status`.

use super::super::args::Format;
use super::super::style::{ago, bad, columns, faint, good, head, table, warn};
use super::picture::{Config, Operator, Picture, nodes_of, state_of};
use crate::api::{ConditionType, Conditions, DriverStatus, Health, Reason, VsphereCloudConfig};
use crate::status::short;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;

/// Draws it.
pub(super) fn draw(picture: &Picture, format: Format, now: Timestamp) -> String {
    let heading = std::iter::once(cluster(picture, now));
    let rows: Vec<_> = heading.chain(picture.connections.iter().map(|c| vcenter(c, now))).collect();
    let mut lines = columns(rows.iter());
    let Some(config) = &picture.config else { return lines };
    if !config.status.drivers.is_empty() {
        lines.push_str(&drivers(config, format));
    }
    for problem in picture.problems() {
        let mark = match (problem.progress, problem.known) {
            (true, _) => warn("…"),
            (false, true) => bad("✗"),
            (false, false) => warn("?"),
        };
        lines.push_str(&format!(
            "  {mark} {} {}\n",
            problem.message,
            faint(&format!("({})", problem.reason))
        ));
        if !problem.remedy.is_empty() {
            lines.push_str(&format!("    {}\n", problem.remedy));
        }
    }
    lines.push_str(&next(picture, config, now));
    lines
}

fn cluster(picture: &Picture, now: Timestamp) -> Vec<String> {
    let nodes = picture
        .nodes
        .map(|n| format!(" · {n} node{}", if n == 1 { "" } else { "s" }))
        .unwrap_or_default();
    let platform = format!("{}{nodes}", picture.kubernetes);
    vec![
        head("CLUSTER"),
        picture.cluster.clone(),
        picture.server.clone(),
        platform,
        format!("{}  {}", head("VDO"), product(picture, now)),
    ]
}

fn product(picture: &Picture, now: Timestamp) -> String {
    let Some(config) = &picture.config else {
        return warn(if picture.defined { "no VDOConfig" } else { "not deployed" });
    };
    let operator = match &picture.operator {
        None => "no operator Deployment".into(),
        Some(Operator { version, trouble: None }) => format!("operator {version}"),
        Some(Operator { version, .. }) => format!("operator {version} {}", bad("not ready")),
    };
    let since = config.since().map(|since| format!(" {}", ago(since, now))).unwrap_or_default();
    let word = match config.status.health {
        Some(Health::Healthy) => good("healthy"),
        Some(Health::Progressing) => warn("progressing"),
        Some(Health::Degraded) => bad("degraded"),
        Some(Health::Blocked) => bad("blocked"),
        Some(Health::Unknown) => warn("unknown"),
        None => warn("not looked at yet"),
    };
    format!("{word}{since} ({operator}, vdoctl {})", env!("CARGO_PKG_VERSION"))
}

fn vcenter(object: &VsphereCloudConfig, now: Timestamp) -> Vec<String> {
    let status = object.status.clone().unwrap_or_default();
    let version = status.about.map_or_else(
        || "version not known".into(),
        |about| format!("{} build {}", about.version, about.build),
    );
    let user = status
        .credential
        .map(|credential| format!("user {}  ", credential.user))
        .unwrap_or_default();
    let ready = Conditions::find(&status.conditions, ConditionType::Ready);
    let since = ready
        .map(|c| format!(" for {}", ago(c.last_transition_time.0, now)))
        .unwrap_or_default();
    let word = match ready.map(|c| c.status.as_str()) {
        Some("True") => format!("{}{since}", good("ok")),
        Some("False") => format!(
            "{} {}{since}",
            bad("not ready"),
            ready.map(|c| c.reason.as_str()).unwrap_or_default()
        ),
        Some(_) => format!(
            "{} {}{since}",
            warn("not known"),
            ready.map(|c| c.reason.as_str()).unwrap_or_default()
        ),
        None => warn("not checked yet"),
    };
    vec![
        head("VCENTER"),
        object.name_any(),
        object.spec.vc_ip.clone(),
        version,
        format!("{user}{word}"),
    ]
}

fn drivers(config: &Config, format: Format) -> String {
    let wide = format == Format::Wide;
    let mut heading = vec!["DRIVER", "VERSION", "NEWEST FIT", "PODS", "NODES", "STATE"];
    if wide {
        heading.extend(["OBJECTS", "BECAUSE"]);
    }
    let dash = |text: &str| if text.is_empty() { "-".to_owned() } else { text.to_owned() };
    let rows: Vec<Vec<String>> = config
        .status
        .drivers
        .iter()
        .map(|driver| {
            let nodes = nodes_of(&driver.name, &config.status).map_or_else(|| "-".into(), |(ready, total)| format!("{ready}/{total}"));
            let state = match state_of(driver, &config.status) {
                "healthy" => good("healthy"),
                "degraded" => bad("degraded"),
                other => warn(other),
            };
            let mut row = vec![
                short(&driver.name).to_owned(),
                versions(driver),
                dash(&driver.available),
                dash(&driver.pods),
                nodes,
                state,
            ];
            if wide {
                row.extend([driver.objects.to_string(), driver.because.clone()]);
            }
            row
        })
        .collect();
    table(&heading, &rows)
}

/// The version that is wanted, and before it the one that runs meanwhile.
fn versions(driver: &DriverStatus) -> String {
    match driver.running.as_str() {
        "" => driver.version.clone(),
        running if running == driver.version => driver.version.clone(),
        running => format!("{running} → {}", driver.version),
    }
}

/// What comes next: what the operator does, what somebody has to do, or what could be done.
fn next(picture: &Picture, config: &Config, now: Timestamp) -> String {
    let mut lines = Vec::new();
    if let Some(Operator {
        trouble: Some(trouble), ..
    }) = &picture.operator
    {
        lines.push(format!("The operator does not run as it should, so this may be old: {trouble}."));
    }
    if !config.current && config.status.health.is_some() {
        lines.push("The operator has not yet acted on the newest change of the VDOConfig.".into());
    }
    match config.status.health {
        None => lines.push(format!(
            "The operator has not looked at VDOConfig {} yet. Does it run? kubectl -n {} get pods",
            config.id,
            config.id.split('/').next().unwrap_or_default()
        )),
        Some(Health::Healthy) => lines.extend(config.upgradeable().map(|c| {
            format!(
                "{}: {}.",
                if c.status == "True" { "Upgradeable" } else { "Not upgradeable" },
                c.message
            )
        })),
        Some(Health::Progressing) if config.deleting => {
            lines.push("The drivers are being removed; `vdoctl status --watch` follows it.".into())
        }
        Some(Health::Progressing) => {
            lines.push("Nothing to do: the operator goes on by itself; `vdoctl status --watch` follows it.".into())
        }
        Some(Health::Blocked) => lines.push("The operator goes on when the above is put right.".into()),
        Some(Health::Degraded | Health::Unknown) => lines.push("What runs is left as it is; the operator keeps trying.".into()),
    }
    // A driver that the specification does not name, or removes.
    let told = [Reason::NotRequested, Reason::Removed].map(Reason::as_str);
    for kind in [ConditionType::CloudProviderReady, ConditionType::StorageReady] {
        let found = Conditions::find(&config.status.conditions, kind).filter(|c| told.contains(&c.reason.as_str()));
        let installed = |c: &&Condition| c.status != "Unknown" || c.reason == Reason::Removed.as_str();
        lines.extend(found.filter(installed).map(|c| format!("{}.", c.message)));
    }
    if let Some(attempt) = &config.status.next_attempt {
        let wait = attempt.at.0.as_second() - now.as_second();
        lines.push(if wait > 0 {
            format!("Next attempt in {wait} s ({}).", attempt.because)
        } else {
            format!("The next attempt is due ({}).", attempt.because)
        });
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}
