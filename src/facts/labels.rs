use std::sync::Arc;

/// Labels. The nodes of a cluster have mostly the same ones, so whoever reads thousands of nodes may let them share the texts.
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

impl<K: Into<Arc<str>>, V: Into<Arc<str>>> FromIterator<(K, V)> for Labels {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(all: I) -> Self {
        Self(all.into_iter().map(|(key, value)| (key.into(), value.into())).collect())
    }
}
