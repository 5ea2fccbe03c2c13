// SPDX-License-Identifier: Apache-2.0
//! The resolver against an oracle that tries everything: 10,000 small matrices, each asked with its parts in another order.
#![allow(clippy::unwrap_used, missing_docs, reason = "a failing test should stop where it fails")]

use std::collections::BTreeMap;
use std::sync::Arc;
use vdo_api::types::{ChartRef, Digest, DriverName, DriverRole, DriverVersion, KubernetesVersion, VcenterVersion, VersionRange};
use vdo_core::matrix::{
    Confidence, Driver, DriverRequest, Entry, Facts, Feature, Index, Query, Requirement, State, Support, UpdatePolicy, UpgradesFrom,
    Verdict, resolve,
};

/// A generator of numbers that needs no crate: xorshift.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }

    fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, usize::try_from(self.roll(i as u64 + 1)).unwrap());
        }
    }
}

/// A version in the plainest form: what the oracle thinks with.
#[derive(Clone, Debug)]
struct Plain {
    minor: u64,
    kubernetes: (u64, u64),
    vcenter: Option<u64>,
    needs: Option<(u64, u64)>,
    from: Option<u64>,
    snapshots: Option<u64>,
    withdrawn: bool,
    deprecated: bool,
}

#[derive(Debug)]
struct Case {
    drivers: [Vec<Plain>; 2],
    asked: [bool; 2],
    kubernetes: u64,
    vcenters: Vec<u64>,
    installed: [Option<u64>; 2],
    pins: [Option<u64>; 2],
    snapshots: bool,
    policy: UpdatePolicy,
}

const NAMES: [&str; 2] = ["a", "b"];

fn some(dice: &mut Dice, chance: u64, value: impl FnOnce(&mut Dice) -> u64) -> Option<u64> {
    (dice.roll(chance) == 0).then(|| value(dice))
}

fn case(dice: &mut Dice) -> Case {
    let driver = |dice: &mut Dice, needy: bool| -> Vec<Plain> {
        let count = 2 + dice.roll(4);
        let one = |minor: u64, dice: &mut Dice| {
            let low = dice.roll(3);
            let from = dice.roll(5);
            Plain {
                minor,
                kubernetes: (low, low + 1 + dice.roll(3)),
                vcenter: some(dice, 4, |d| d.roll(3)),
                needs: (needy && dice.roll(3) == 0).then(|| (from, from + dice.roll(3))),
                from: (minor > 0).then(|| some(dice, 2, |d| d.roll(minor))).flatten(),
                snapshots: (dice.roll(4) != 0).then(|| dice.roll(2)),
                withdrawn: dice.roll(8) == 0,
                deprecated: dice.roll(5) == 0,
            }
        };
        (0..count).map(|minor| one(minor, dice)).collect()
    };
    let both = dice.roll(4) != 0;
    Case {
        drivers: [driver(dice, false), driver(dice, true)],
        asked: [both || dice.roll(2) == 0, true],
        kubernetes: 1 + dice.roll(4),
        vcenters: (0..dice.roll(3)).map(|_| dice.roll(3)).collect(),
        installed: [some(dice, 2, |d| d.roll(5)), some(dice, 2, |d| d.roll(5))],
        pins: [some(dice, 12, |d| d.roll(5)), some(dice, 12, |d| d.roll(5))],
        snapshots: dice.roll(8) == 0,
        policy: [UpdatePolicy::Compatible, UpdatePolicy::Latest, UpdatePolicy::Disabled][usize::try_from(dice.roll(3)).unwrap()],
    }
}

impl Case {
    fn fits(&self, driver: usize, entry: &Plain) -> bool {
        !entry.withdrawn
            && (entry.kubernetes.0..=entry.kubernetes.1).contains(&self.kubernetes)
            && self.vcenters.iter().all(|vcenter| entry.vcenter.is_none_or(|min| *vcenter >= min))
            && (entry.needs.is_none() || self.asked[0])
            && (!self.snapshots
                || driver == 0
                || entry
                    .snapshots
                    .is_some_and(|min| self.vcenters.iter().all(|vcenter| *vcenter >= min)))
    }

    fn entry(&self, driver: usize, minor: u64) -> Option<&Plain> {
        self.drivers[driver].iter().find(|entry| entry.minor == minor)
    }

    /// Whether some chain of fitting versions leads there, by trying all chains.
    fn reachable(&self, driver: usize, from: u64, to: &Plain) -> bool {
        if to.from.is_none_or(|min| min <= from) {
            return true;
        }
        self.drivers[driver]
            .iter()
            .filter(|step| step.minor > from && step.minor < to.minor && self.fits(driver, step))
            .any(|step| step.from.is_none_or(|min| min <= from) && self.reachable(driver, step.minor, to))
    }

    /// The versions that may be taken, best first, each with whether its own needs do not count.
    fn allowed(&self, driver: usize) -> Vec<(&Plain, bool)> {
        let installed = self.installed[driver];
        let reach = |entry: &Plain| installed.is_none_or(|from| entry.minor <= from || self.reachable(driver, from, entry));
        if let Some(pin) = self.pins[driver] {
            let pinned = self.entry(driver, pin);
            return pinned
                .into_iter()
                .filter(|entry| self.fits(driver, entry) && reach(entry))
                .map(|entry| (entry, false))
                .collect();
        }
        if let (UpdatePolicy::Disabled, Some(version)) = (self.policy, installed) {
            return self.entry(driver, version).into_iter().map(|entry| (entry, true)).collect();
        }
        let stays = installed.is_some_and(|version| self.entry(driver, version).is_none_or(|entry| self.fits(driver, entry)));
        let older = |entry: &Plain| stays && installed.is_some_and(|version| entry.minor < version);
        let mut all: Vec<&Plain> = self.drivers[driver]
            .iter()
            .filter(|entry| self.fits(driver, entry) && !older(entry) && reach(entry))
            .collect();
        let kept = |entry: &Plain| self.policy == UpdatePolicy::Compatible && installed == Some(entry.minor);
        all.sort_by_key(|entry| (!kept(entry), entry.deprecated, std::cmp::Reverse(entry.minor)));
        all.into_iter().map(|entry| (entry, false)).collect()
    }

    /// The best pair by trying every pair: the first driver's rank counts first.
    fn oracle(&self) -> Option<Vec<u64>> {
        let second = self.allowed(1);
        if !self.asked[0] {
            return second.first().map(|(entry, _)| vec![entry.minor]);
        }
        let mut pairs = Vec::new();
        for (i, (a, _)) in self.allowed(0).iter().enumerate() {
            for (j, (b, forced)) in second.iter().enumerate() {
                if *forced || b.needs.is_none_or(|(min, max)| (min..=max).contains(&a.minor)) {
                    pairs.push((i, j, vec![a.minor, b.minor]));
                }
            }
        }
        pairs.into_iter().min().map(|(_, _, versions)| versions)
    }

    fn index(&self, dice: &mut Dice) -> Index {
        let mut drivers = BTreeMap::new();
        for (name, entries) in NAMES.iter().zip(&self.drivers) {
            let mut versions: Vec<Entry> = entries.iter().map(entry).collect();
            dice.shuffle(&mut versions);
            let role = DriverRole::Other;
            drivers.insert((*name).to_owned(), Driver { role, versions });
        }
        Index {
            version: 1,
            generated: None,
            expires: None,
            sources: BTreeMap::new(),
            preconditions: BTreeMap::new(),
            vcenter_builds: Vec::new(),
            released: Default::default(),
            stated_digests: Default::default(),
            privileges: None,
            drivers,
            unknown_fields: Vec::new(),
        }
    }
}

fn version(minor: u64) -> DriverVersion {
    format!("1.{minor}.0").parse().unwrap()
}

fn range(min: Option<String>, max: Option<String>) -> VersionRange {
    VersionRange::new(min.as_deref(), max.as_deref()).unwrap()
}

fn entry(plain: &Plain) -> Entry {
    let support = |range| Support {
        range,
        evidence: Vec::new(),
        confidence: Confidence::Unverified,
        note: None,
    };
    let vcenter = |min: Option<u64>| range(min.map(|v| format!("8.0.{v}")), None);
    let requires = plain.needs.map(|(min, max)| Requirement {
        driver: "a".to_owned(),
        min: Some(version(min)),
        max: Some(version(max)),
        reason: None,
        when: None,
        evidence: Vec::new(),
    });
    let snapshots = plain.snapshots.map(|min| Feature {
        vsphere: vcenter(Some(min)),
        evidence: Vec::new(),
        note: None,
    });
    let verdict = Verdict {
        reason: "old".to_owned(),
        since: None,
        instead: None,
    };
    Entry {
        version: version(plain.minor),
        chart: ChartRef {
            urls: vec!["charts/x.tgz".to_owned()],
            digest: Digest::of(b""),
        },
        images: Vec::new(),
        is_here: true,
        facts: Arc::new(Facts {
            manifests: Vec::new(),
            kubernetes: support(range(
                Some(format!("1.{}", plain.kubernetes.0)),
                Some(format!("1.{}", plain.kubernetes.1)),
            )),
            vsphere: support(vcenter(plain.vcenter)),
            requires: requires.into_iter().collect(),
            features: snapshots.map(|feature| ("snapshots".to_owned(), feature)).into_iter().collect(),
            upgrades_from: plain.from.map(|from| UpgradesFrom {
                min: Some(version(from)),
                preconditions: Vec::new(),
                irreversible: false,
            }),
            state: match (plain.withdrawn, plain.deprecated) {
                (true, _) => State::Withdrawn(verdict),
                (false, true) => State::Deprecated(verdict),
                (false, false) => State::Good,
            },
        }),
    }
}

#[test]
fn resolve_random_matrices_agree_with_oracle() {
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    let (mut chosen, mut stepped) = (0, 0);
    for round in 0..10_000 {
        let case = case(&mut dice);
        let index = case.index(&mut dice);
        let kubernetes: KubernetesVersion = format!("v1.{}.3", case.kubernetes).parse().unwrap();
        let mut vcenters: Vec<(String, VcenterVersion)> = case
            .vcenters
            .iter()
            .enumerate()
            .map(|(i, v)| (format!("vc{i}"), format!("8.0.{v}").parse().unwrap()))
            .collect();
        dice.shuffle(&mut vcenters);
        let request = |driver: usize| DriverRequest {
            pin: case.pins[driver].map(version),
            allow_incompatible: false,
            features: (case.snapshots && driver == 1)
                .then(|| ("snapshots".to_owned(), "someone".to_owned()))
                .into_iter()
                .collect(),
            ..DriverRequest::default()
        };
        let asked = (0..2).filter(|driver| case.asked[*driver]);
        let drivers: BTreeMap<DriverName, DriverRequest> = asked.map(|driver| (NAMES[driver].to_owned(), request(driver))).collect();
        let installed = NAMES
            .iter()
            .zip(case.installed)
            .filter_map(|(name, v)| Some(((*name).to_owned(), version(v?))))
            .collect();
        let query = Query {
            kubernetes: &kubernetes,
            vcenters: &vcenters,
            drivers: &drivers,
            installed: &installed,
            policy: case.policy,
        };
        let found = resolve(&index, &query);
        let targets = found
            .as_ref()
            .ok()
            .map(|r| r.picks.values().map(|pick| pick.target.clone()).collect::<Vec<_>>());
        let expected = case.oracle().map(|versions| versions.into_iter().map(version).collect::<Vec<_>>());
        assert_eq!(targets, expected, "round {round}: {case:#?}\n{found:#?}");
        chosen += usize::from(expected.is_some());
        for (name, pick) in found.iter().flat_map(|r| &r.picks) {
            // every step of a path is a supported edge from the one before, and fits
            let driver = NAMES.iter().position(|known| known == name).unwrap();
            let mut here = case.installed[driver];
            let by_hand = case.policy == UpdatePolicy::Disabled && case.pins[driver].is_none();
            for step in pick.path.iter().map(|step| &step.version) {
                let entry = case.drivers[driver].iter().find(|entry| version(entry.minor) == *step).unwrap();
                assert!(by_hand || case.fits(driver, entry), "round {round}");
                assert!(entry.from.is_none_or(|min| here.is_some_and(|here| min <= here)), "round {round}");
                here = Some(entry.minor);
            }
            stepped += usize::from(pick.path.len() > 1);
        }
    }
    // a generator that makes only trivial cases would prove nothing
    assert!((2_000..8_000).contains(&chosen), "{chosen} have a choice");
    assert!(stepped > 50, "{stepped} paths have several steps");
}
