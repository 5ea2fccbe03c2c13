use super::{Among, NodeReport, Privileges, SharedDatastores};
use crate::api::{AboutStatus, CertificateStatus, ConditionType, Reason};
use serde::Serialize;

/// Everything that one look at a vSphere connection has shown, as data: for a status, a screen or a file.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ConnectionReport {
    /// The stages in the order in which they are reached. Those after the first that does not hold are Unknown.
    pub stages: Vec<Stage>,
    /// What the vCenter says of itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub about: Option<AboutStatus>,
    /// The certificate that it presented.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificate: Option<CertificateStatus>,
    /// The nodes and their machines; those with findings first.
    pub nodes: Vec<NodeReport>,
    /// What the account may do, against what it has to.
    pub privileges: Privileges,
    /// The datastores that all hosts of the nodes reach, by topology segment.
    pub shared: Vec<SharedDatastores>,
}

impl ConnectionReport {
    /// The first stage that keeps the connection from being ready. Stages that only inform are passed over.
    #[must_use]
    pub fn first_failure(&self) -> Option<&Stage> {
        self.stages.iter().find(|stage| stage.status != Some(true) && !stage.informs())
    }

    /// Tells what only shows among other connections, too.
    pub fn stand(&mut self, among: Among) {
        let stages = std::mem::take(&mut self.stages);
        self.stages = stages.into_iter().map(|stage| among.instead_of(stage)).collect();
        self.stages.push(among.distinct);
    }

    /// A stage by its condition.
    #[must_use]
    pub fn stage(&self, kind: ConditionType) -> Option<&Stage> {
        self.stages.iter().find(|stage| stage.kind == kind)
    }
}

/// One stage of the check of a connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Stage {
    /// The condition under which it is published.
    #[serde(rename = "type")]
    pub kind: ConditionType,
    /// Whether it holds; `None` when that is not known.
    pub status: Option<bool>,
    /// Why. One that holds can have a reason too, which then informs.
    pub reason: Reason,
    /// What was found, about which object.
    pub message: String,
    /// What to do; empty when there is nothing to do.
    pub remedy: String,
    /// More findings of the same stage, the worst first. The first is the one that reason and message tell.
    pub findings: Vec<Finding>,
}

impl Stage {
    /// It holds.
    #[must_use]
    pub fn passed(kind: ConditionType, message: impl Into<String>) -> Self {
        Self {
            kind,
            status: Some(true),
            reason: Reason::Healthy,
            message: message.into(),
            remedy: String::new(),
            findings: vec![],
        }
    }

    /// It could not be looked at.
    #[must_use]
    pub fn unknown(kind: ConditionType, message: impl Into<String>) -> Self {
        Self {
            status: None,
            reason: Reason::NotChecked,
            ..Self::passed(kind, message)
        }
    }

    /// It does not hold, or cannot be told when `status` is `None`.
    #[must_use]
    pub fn failed(
        kind: ConditionType,
        status: Option<bool>,
        reason: Reason,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            status,
            reason,
            remedy: remedy.into(),
            ..Self::passed(kind, message)
        }
    }

    /// It holds when there are no findings; else the first one speaks for all.
    #[must_use]
    pub fn of(kind: ConditionType, passed: impl Into<String>, findings: Vec<Finding>) -> Self {
        match findings.first() {
            None => Self::passed(kind, passed),
            Some(first) => {
                let more = findings.len() - 1;
                let more = if more > 0 { format!(" (and {more} more)") } else { String::new() };
                let message = format!("{}{more}", first.message);
                Self {
                    findings: findings.clone(),
                    ..Self::failed(kind, Some(false), first.reason, message, first.remedy.clone())
                }
            }
        }
    }

    /// Whether it tells something and keeps nothing from being ready: not every node is a machine of this vCenter, and zones
    /// are the administrator's to choose.
    #[must_use]
    pub fn informs(&self) -> bool {
        matches!(
            self.kind,
            ConditionType::NodesFound | ConditionType::TopologyConsistent | ConditionType::Distinct
        )
    }

    /// The text of its condition: what was found, and what to do.
    #[must_use]
    pub fn text(&self) -> String {
        if self.remedy.is_empty() {
            return self.message.clone();
        }
        format!("{}. {}", self.message.trim_end_matches('.'), self.remedy)
    }
}

/// Something that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// What kind of thing.
    pub reason: Reason,
    /// What was found, about which object.
    pub message: String,
    /// What to do about it.
    pub remedy: String,
}

impl Finding {
    /// A finding.
    #[must_use]
    pub fn new(reason: Reason, message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            reason,
            message: message.into(),
            remedy: remedy.into(),
        }
    }
}

/// A word for a command line: in quotes where a shell would take it apart.
pub(super) fn shell(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '-' | '_' | '%' | '@' | ':');
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// At most five names, and how many more there are.
pub(super) fn some<T: AsRef<str>>(names: &[T]) -> String {
    const SHOWN: usize = 5;
    let more = names.len().saturating_sub(SHOWN);
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    let shown: Vec<&str> = names.iter().take(SHOWN).map(AsRef::as_ref).collect();
    shown.join(", ") + &rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shell_word_special_characters_are_quoted() {
        for (word, shown) in [
            ("/DC0/vm/w-1", "/DC0/vm/w-1"),
            ("/DC 0/vm/w", "'/DC 0/vm/w'"),
            ("it's", r"'it'\''s'"),
            ("X\\k8s", "'X\\k8s'"),
            ("$(id)", "'$(id)'"),
            ("", "''"),
        ] {
            assert_eq!(shell(word), shown);
        }
    }

    #[test]
    fn connection_report_first_failure_skips_informing_stages() {
        let finding = |reason| Finding::new(reason, format!("{reason} here."), "Mend it.");
        let two = vec![finding(Reason::NodeNotFound), finding(Reason::NodeAmbiguous)];
        let nodes = Stage::of(ConditionType::NodesFound, "all", two.clone());
        assert_eq!(nodes.text(), "NodeNotFound here. (and 1 more). Mend it.");
        let storage = Stage::of(ConditionType::StorageFound, "all", two[..1].to_vec());
        assert_eq!(storage.text(), "NodeNotFound here. Mend it.");
        let mut report = ConnectionReport {
            stages: vec![Stage::passed(ConditionType::Resolved, "ok"), nodes, storage],
            ..ConnectionReport::default()
        };
        assert_eq!(report.first_failure().map(|s| s.kind), Some(ConditionType::StorageFound));
        report.stages.pop();
        assert_eq!(report.first_failure(), None);
        report
            .stages
            .push(Stage::unknown(ConditionType::Authorized, "an earlier check failed"));
        assert_eq!(report.first_failure().map(|s| s.status), Some(None), "Unknown is not True");
    }
}
