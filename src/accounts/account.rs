use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// What the description of a user of ours begins with.
const PREFIX: &str = "Made by vdoctl users";

/// What makes a user ours: its description names the cluster and the drivers that it is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// The UID of the cluster's kube-system namespace.
    pub cluster: String,
    /// The drivers, in short, such as `cpi`.
    pub drivers: BTreeSet<String>,
}

impl Mark {
    /// The two names that an account has in turn: a rotation makes the other one and deletes the one before.
    #[must_use]
    pub fn names(&self) -> [String; 2] {
        let drivers: Vec<&str> = self.drivers.iter().map(String::as_str).collect();
        let cluster: String = self.cluster.chars().filter(char::is_ascii_alphanumeric).take(8).collect();
        ["a", "b"].map(|turn| format!("vdo-{}-{cluster}-{turn}", drivers.join("-")))
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let drivers: Vec<&str> = self.drivers.iter().map(String::as_str).collect();
        write!(f, "{PREFIX} for {} of cluster {}", drivers.join(","), self.cluster)
    }
}

impl FromStr for Mark {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let rest = text
            .trim()
            .strip_prefix(PREFIX)
            .and_then(|rest| rest.strip_prefix(" for "))
            .ok_or(())?;
        let (drivers, cluster) = rest.split_once(" of cluster ").ok_or(())?;
        let drivers: BTreeSet<String> = drivers.split(',').filter(|one| !one.is_empty()).map(str::to_owned).collect();
        let known = !drivers.is_empty() && !cluster.is_empty() && !cluster.contains(' ');
        known
            .then(|| Self {
                cluster: cluster.to_owned(),
                drivers,
            })
            .ok_or(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn account_mark_is_read_back() {
        let mark = Mark {
            cluster: "0c9c2a4e-7d1b-4a7e-9a50-3f5d1f2e7b11".into(),
            drivers: ["csi".to_owned(), "cpi".into()].into(),
        };
        assert_eq!(mark.to_string().parse(), Ok(mark.clone()));
        assert_eq!(mark.names(), ["vdo-cpi-csi-0c9c2a4e-a", "vdo-cpi-csi-0c9c2a4e-b"]);
        for text in [
            "",
            "an account of the storage team",
            "Made by vdoctl users",
            "Made by vdoctl users for  of cluster x",
        ] {
            assert_eq!(text.parse::<Mark>(), Err(()), "{text}");
        }
    }
}
