use crate::types::shared;
use std::sync::Arc;

/// Labels. The nodes of a cluster have mostly the same ones, so they share the texts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Labels(Box<[(Arc<str>, Arc<str>)]>);

impl Labels {
    /// The value of a label.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        let (_, value) = self.0.iter().find(|(own, _)| **own == *key)?;
        Some(value)
    }
}

impl<K: AsRef<str>, V: AsRef<str>> FromIterator<(K, V)> for Labels {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(all: I) -> Self {
        let one = |(key, value): (K, V)| (shared(key.as_ref()), shared(value.as_ref()));
        Self(all.into_iter().map(one).collect())
    }
}
