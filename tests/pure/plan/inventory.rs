//! An inventory that outgrows one ConfigMap: whenever the process is killed, what is stored is one inventory as a whole.

use super::simulation::set;
use std::collections::BTreeMap;
use vdo::plan::{CHUNK, Entry, Inventory, Keep, Kept};
use vdo::types::ObjectId;

const NAME: &str = "vdo-inventory";

/// The ConfigMaps of a namespace, as far as they are an inventory.
#[derive(Clone, Default)]
struct Store {
    index: Option<BTreeMap<String, String>>,
    chunks: BTreeMap<String, String>,
}

impl Store {
    fn carry(&mut self, write: &Keep) {
        match write {
            Keep::Chunk { name, text } => drop(self.chunks.insert(name.clone(), text.clone())),
            Keep::Index(data) => self.index = Some(data.clone()),
            Keep::Drop { name } => drop(self.chunks.remove(name)),
        }
    }

    fn read(&self) -> Inventory {
        let Some(index) = &self.index else { return Inventory::default() };
        Inventory::parse(NAME, index, &self.chunks).expect("it can be read")
    }

    /// Whether it is this inventory that counts, with all that it consists of.
    fn holds(&self, kept: Option<&Kept>) -> bool {
        match (&self.index, kept) {
            (Some(index), Some(kept)) => *index == kept.index && kept.chunks.iter().all(|(name, text)| self.chunks.get(name) == Some(text)),
            (index, kept) => index.is_none() && kept.is_none(),
        }
    }

    /// As far as the writes until a kill.
    fn store(&mut self, kept: &Kept, kill: usize) -> usize {
        let writes = kept.writes(&self.chunks);
        writes.iter().take(kill).for_each(|write| self.carry(write));
        writes.len()
    }
}

fn inventory(entries: usize, from: usize) -> Inventory {
    let entry = |i: usize| Entry {
        api_version: "admissionregistration.k8s.io/v1".into(),
        driver: "vsphere-csi".into(),
        wave: u8::try_from(i % 7).expect("small"),
        adopted: i.is_multiple_of(3),
        uid: Some(format!("4201f8cd-1b9d-0f4c-8a3e-{i:012}")),
        applied: Some(format!("{i:016}")),
    };
    let id = |i: usize| {
        ObjectId::new(
            "admissionregistration.k8s.io",
            "ValidatingWebhook",
            "",
            format!("an-object-of-a-driver-{i:05}"),
        )
    };
    Inventory {
        objects: (from..from + entries).map(|i| (id(i), entry(i))).collect(),
        cluster_id: Some(set()),
        approved: Some("state".into()),
    }
}

/// A small one, one that needs several parts, and two that share some of its entries.
fn inventories() -> [Inventory; 4] {
    [
        inventory(26, 0),
        inventory(10_000, 0),
        inventory(9_000, 500),
        inventory(2_000, 9_990),
    ]
}

#[test]
fn inventory_killed_between_writes_stays_whole() {
    let all = inventories();
    let kept = all.each_ref().map(|inventory| inventory.kept(NAME));
    let [small, large, narrowed, shifted] = kept.each_ref();
    for (from, to, after) in [
        (None, large, narrowed),
        (Some(small), large, small),
        (Some(large), narrowed, large),
        (Some(large), shifted, narrowed),
        (Some(narrowed), small, large),
        (Some(large), large, small),
    ] {
        let mut start = Store::default();
        if let Some(from) = from {
            start.store(from, usize::MAX);
        }
        let writes = start.clone().store(to, 0);
        for kill in 0..=writes {
            let mut store = start.clone();
            store.store(to, kill);
            assert!(
                store.holds(from) || store.holds(Some(to)),
                "killed after {kill} of {writes} writes it is neither"
            );
            // The next run goes on, to the same end or to another one, and leaves nothing behind.
            for end in [to, after] {
                let mut store = store.clone();
                store.store(end, usize::MAX);
                assert!(store.holds(Some(end)), "killed after {kill} of {writes} writes");
                assert_eq!(store.chunks.len(), end.chunks.len(), "something is left");
            }
        }
    }
}

#[test]
fn inventory_stored_one_after_another_is_read_as_written() {
    let all = inventories();
    let kept = all.each_ref().map(|inventory| inventory.kept(NAME));
    let mut store = Store::default();
    for (inventory, kept) in all.iter().zip(&kept) {
        store.store(kept, usize::MAX);
        assert!(store.read() == *inventory, "it is not read as it was written");
    }
}

#[test]
fn inventory_chunks_fit_into_configmap_limit() {
    for (entries, parts) in [(0, 0..=0), (26, 0..=0), (1_500, 0..=0), (10_000, 5..=7)] {
        let inventory = inventory(entries, 0);
        let kept = inventory.kept(NAME);
        assert!(
            parts.contains(&kept.chunks.len()),
            "{entries} entries in {} parts",
            kept.chunks.len()
        );
        let size = |data: &BTreeMap<String, String>| data.values().map(String::len).sum::<usize>();
        assert!(size(&kept.index) <= CHUNK + 1_000 && kept.chunks.values().all(|text| text.len() <= CHUNK + 4));
        assert_eq!(
            kept.index["objects"].is_empty(),
            !kept.chunks.is_empty(),
            "a part is never taken for the whole"
        );
        assert!(Inventory::parse(NAME, &kept.index, &kept.chunks).expect("readable") == inventory);
    }
}

#[test]
fn inventory_missing_or_changed_chunk_is_error() {
    let kept = inventory(10_000, 0).kept(NAME);
    let first = kept.chunks.keys().next().expect("a part");
    let mut chunks = kept.chunks.clone();
    let text = chunks.remove(first).expect("its text");
    let said = |chunks: &BTreeMap<String, String>| {
        let error = Inventory::parse(NAME, &kept.index, chunks).expect_err("damaged");
        vdo::api::chain(&error)
    };
    let missing = said(&chunks);
    assert!(
        missing.contains(first.as_str()) && missing.contains("is not there") && missing.contains("delete it"),
        "{missing}"
    );
    chunks.insert(first.clone(), text.replacen("vsphere-csi", "vsphere-cpi", 1));
    assert!(said(&chunks).contains("was changed by somebody"));
}
