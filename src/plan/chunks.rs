//! How an inventory is kept: in one ConfigMap, or, where it outgrows that, in several which the first one names.

use super::Inventory;
use super::inventory::{Damage, InventoryError};
use crate::types::Digest;
use std::collections::{BTreeMap, BTreeSet};

/// How much text of an inventory one ConfigMap takes. The API server refuses more than 1 MiB; the rest is left to metadata.
pub const CHUNK: usize = 512 * 1024;

const OBJECTS: &str = "objects";
const CHUNKS: &str = "chunks";

/// An inventory as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// The data of the ConfigMap by which everything is found.
    pub index: BTreeMap<String, String>,
    /// The other ConfigMaps: name and text. A name says what is in it, so none is ever changed.
    pub chunks: BTreeMap<String, String>,
}

/// One write of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Keep {
    /// A part, which nothing refers to yet.
    Chunk {
        /// Its name.
        name: String,
        /// Its text.
        text: String,
    },
    /// The ConfigMap by which everything is found. From this write on the new inventory counts.
    Index(BTreeMap<String, String>),
    /// Delete a part that nothing refers to any more.
    Drop {
        /// Its name.
        name: String,
    },
}

impl Kept {
    /// The writes, in the order in which the process may be killed between any two of them: at every instant either the old
    /// inventory or the new one is there as a whole. `present` is every part that is there, whoever left it, with its text.
    #[must_use]
    pub fn writes(&self, present: &BTreeMap<String, String>) -> Vec<Keep> {
        let new = self.chunks.iter().filter(|(name, text)| present.get(*name) != Some(text));
        let new = new.map(|(name, text)| Keep::Chunk {
            name: name.clone(),
            text: text.clone(),
        });
        let old = present.keys().filter(|name| !self.chunks.contains_key(*name));
        let old = old.map(|name| Keep::Drop { name: name.clone() });
        new.chain([Keep::Index(self.index.clone())]).chain(old).collect()
    }
}

impl Inventory {
    /// How it is kept under this name.
    #[must_use]
    pub fn kept(&self, name: &str) -> Kept {
        let lines = self.lines();
        let mut index = self.rest();
        let mut parts: Vec<Vec<String>> = vec![Vec::new()];
        let mut size = 0;
        for line in lines {
            size += line.len() + 2;
            if size > CHUNK {
                parts.push(Vec::new());
                size = line.len() + 2;
            }
            if let Some(part) = parts.last_mut() {
                part.push(line);
            }
        }
        let mut texts = parts.iter().map(|part| format!("[\n{}\n]", part.join(",\n")));
        // Both keys are always written, so that neither outlives its time because somebody else has set it once.
        if parts.len() == 1 {
            index.insert(OBJECTS.to_owned(), texts.next().unwrap_or_default());
            index.insert(CHUNKS.to_owned(), String::new());
            return Kept {
                index,
                chunks: BTreeMap::new(),
            };
        }
        let chunks: BTreeMap<String, String> = texts.map(|text| (chunk_name(name, &text), text)).collect();
        let names: Vec<&str> = chunks.keys().map(String::as_str).collect();
        index.insert(OBJECTS.to_owned(), String::new());
        index.insert(CHUNKS.to_owned(), names.join("\n"));
        Kept { index, chunks }
    }

    /// The names of the other ConfigMaps that the first one refers to.
    #[must_use]
    pub fn chunk_names(index: &BTreeMap<String, String>) -> BTreeSet<String> {
        let names = index.get(CHUNKS).map(|names| names.lines().map(str::to_owned).collect());
        names.unwrap_or_default()
    }

    /// Reads the data of the ConfigMap by which it is found, with those it refers to.
    ///
    /// # Errors
    /// When a part is missing, or not what was written.
    pub fn parse(name: &str, index: &BTreeMap<String, String>, chunks: &BTreeMap<String, String>) -> Result<Self, InventoryError> {
        let damaged = |damage| InventoryError::new(name, damage);
        let mut all = Self::with_rest(index);
        let names = Self::chunk_names(index);
        if names.is_empty() {
            let text = index.get(OBJECTS).map_or("", String::as_str);
            all.read(text).map_err(|error| damaged(Damage::Text(error)))?;
        }
        for chunk in names {
            let text = chunks.get(&chunk).ok_or_else(|| damaged(Damage::Missing(chunk.clone())))?;
            if chunk_name(name, text) != chunk {
                return Err(damaged(Damage::Changed(chunk)));
            }
            all.read(text).map_err(|error| damaged(Damage::Text(error)))?;
        }
        Ok(all)
    }
}

/// A part is called after what is in it.
fn chunk_name(name: &str, text: &str) -> String {
    format!("{name}-{}", &Digest::of(text.as_bytes()).hex()[..16])
}
