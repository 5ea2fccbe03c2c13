// SPDX-License-Identifier: Apache-2.0
//! Decides during the apply which step may start next, and which steps are not started after a failure.

use super::{Step, dependencies};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// The steps of a plan while it is carried out: which may be started, which are done, and what a failure stops.
///
/// # Guarantees
/// * A step is started once, and only when all that it waits for is done.
/// * After a failure nothing that waits for the step is started, and nothing of a later wave of its driver; all the rest is.
pub struct Schedule<'a> {
    steps: &'a [Step],
    /// How many steps each one still waits for.
    left: Vec<usize>,
    /// Who waits for each.
    followers: Vec<Vec<usize>>,
    /// How many steps come one after the other once a step is done, the longest way.
    behind: Vec<usize>,
    /// What waits for nothing any more, that with the longest way behind it first.
    free: BTreeSet<(Reverse<usize>, usize)>,
    /// The lowest wave of each driver in which something failed.
    failed: BTreeMap<&'a str, u8>,
}

impl<'a> Schedule<'a> {
    /// Nothing is started yet.
    #[must_use]
    pub fn of(steps: &'a [Step]) -> Self {
        let waits = dependencies(steps);
        let (mut followers, mut behind) = (vec![Vec::new(); steps.len()], vec![0; steps.len()]);
        for (step, earlier) in waits.iter().enumerate().rev() {
            for earlier in earlier {
                followers[*earlier].push(step);
                behind[*earlier] = behind[*earlier].max(behind[step] + 1);
            }
        }
        let left: Vec<usize> = waits.iter().map(Vec::len).collect();
        let free = (0..steps.len()).filter(|step| left[*step] == 0);
        Self {
            free: free.map(|step| (Reverse(behind[step]), step)).collect(),
            steps,
            left,
            followers,
            behind,
            failed: BTreeMap::new(),
        }
    }

    /// The next step to start, as its place in the plan; `None` while all that are left wait, and at the end.
    pub fn start(&mut self) -> Option<usize> {
        while let Some((_, step)) = self.free.pop_first() {
            if !self.is_stopped(&self.steps[step]) {
                return Some(step);
            }
        }
        None
    }

    /// A step that was started is done.
    pub fn done(&mut self, step: usize) {
        for follower in std::mem::take(&mut self.followers[step]) {
            self.left[follower] -= 1;
            if self.left[follower] == 0 {
                self.free.insert((Reverse(self.behind[follower]), follower));
            }
        }
    }

    /// A step that was started has failed.
    pub fn failed(&mut self, step: usize) {
        if let Step::Apply { driver, wave, .. } | Step::Replace { driver, wave, .. } = &self.steps[step] {
            let lowest = self.failed.entry(driver).or_insert(*wave);
            *lowest = (*lowest).min(*wave);
        }
    }

    fn is_stopped(&self, step: &Step) -> bool {
        match step {
            Step::Apply { driver, wave, .. } | Step::Replace { driver, wave, .. } => {
                self.failed.get(driver.as_str()).is_some_and(|failed| failed < wave)
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drivers::{CPI, CSI};
    use crate::manifest::Object;
    use crate::plan::{Change, wave};
    use serde_json::json;
    use vdo_api::types::DriverRole;

    fn create(driver: &str, kind: &str, namespace: &str) -> Step {
        let value = json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": kind, "namespace": namespace}});
        let of = if driver == CPI {
            DriverRole::CloudProvider
        } else {
            DriverRole::Storage
        };
        Step::Apply {
            object: Object::new(value).expect("an object"),
            change: Change::Create,
            wave: wave(kind, of),
            driver: driver.into(),
            take: false,
        }
    }

    /// Each step is answered before the next one is started, so what is free is seen in full.
    #[test]
    fn schedule_failed_step_stops_only_its_dependents() {
        let steps = [
            create(CSI, "Service", "ns"),
            create(CPI, "ConfigMap", "kube-system"),
            create(CSI, "ConfigMap", "ns"),
            create(CSI, "Secret", "ns"),
            create(CPI, "DaemonSet", "kube-system"),
            create(CSI, "Deployment", "ns"),
        ];
        let cases: [(&[usize], &[usize]); 5] = [
            (&[], &[0, 1, 2, 3, 4, 5]),
            // A configuration: the other driver goes on, and so does what is of its own wave.
            (&[1], &[0, 1, 2, 3, 5]),
            (&[2], &[0, 1, 2, 3, 4]),
            (&[0], &[0, 1, 2, 3, 4]),
            // The last ones stop no one.
            (&[4, 5], &[0, 1, 2, 3, 4, 5]),
        ];
        for (fails, expected) in cases {
            let (mut schedule, mut started) = (Schedule::of(&steps), Vec::new());
            while let Some(step) = schedule.start() {
                started.push(step);
                if fails.contains(&step) {
                    schedule.failed(step);
                } else {
                    schedule.done(step);
                }
            }
            assert_eq!(started, expected, "{fails:?} fail");
        }
    }

    /// What most waits for goes first, so that the plan is as short as it can be.
    #[test]
    fn schedule_longest_way_starts_first() {
        let steps = [
            create(CPI, "ConfigMap", "kube-system"),
            create(CPI, "DaemonSet", "kube-system"),
            create(CSI, "ConfigMap", "ns"),
            create(CSI, "Deployment", "ns"),
            create(CSI, "ValidatingWebhookConfiguration", ""),
        ];
        let mut schedule = Schedule::of(&steps);
        assert_eq!([schedule.start(), schedule.start(), schedule.start()], [Some(2), Some(0), None]);
    }

    #[test]
    fn schedule_lowest_failed_wave_counts() {
        let steps = [
            create(CSI, "ConfigMap", "ns"),
            create(CSI, "ClusterRoleBinding", ""),
            create(CSI, "RoleBinding", "ns"),
        ];
        let mut schedule = Schedule::of(&steps);
        assert_eq!(schedule.start(), Some(0));
        schedule.failed(0);
        assert_eq!(schedule.start(), None, "a binding is of a later wave");
    }
}
