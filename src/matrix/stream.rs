//! An index in JSON, read entry by entry: of 100,000 versions no more than one stands in memory in the form in which it is written, and
//! versions of which the same is known share it.

use super::format::{RawEntry, RawIndex};
use super::index::{Entry, Facts};
use super::parse::entry;
use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

/// The versions of a driver, as they are kept.
pub(super) struct Entries(pub Vec<Entry>);

/// Reads an index that is JSON, well-formed, and has no field that this build does not know. `None`: it is not, and the slower reader
/// says what it is.
pub(super) fn read(text: &str) -> Option<RawIndex<Entries>> {
    text.trim_start()
        .starts_with('{')
        .then(|| serde_json::from_str(text).ok())
        .flatten()
}

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Entries;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of versions")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut versions: A) -> Result<Entries, A::Error> {
                let mut known = Known::default();
                let mut entries = Vec::new();
                while let Some(raw) = versions.next_element::<RawEntry>()? {
                    let mut entry = entry(raw).map_err(A::Error::custom)?;
                    known.share(&mut entry);
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }
        deserializer.deserialize_seq(Reader)
    }
}

/// What is known of versions, each once.
#[derive(Default)]
pub(super) struct Known(HashSet<Arc<Facts>>);

impl Known {
    /// Lets an entry have what another one has, if it is the same.
    pub(super) fn share(&mut self, entry: &mut Entry) {
        match self.0.get(&entry.facts) {
            Some(known) => entry.facts = known.clone(),
            None => {
                self.0.insert(entry.facts.clone());
            }
        }
    }
}
