use std::collections::HashSet;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

/// Below this many texts it is not checked whether they are still in use.
const FEW: usize = 1024;

/// Texts that are in use, and how many there may be before the unused ones are dropped.
struct Texts {
    all: HashSet<Arc<str>>,
    limit: usize,
}

static TEXTS: LazyLock<Mutex<Texts>> = LazyLock::new(Mutex::default);

/// One copy of a text, however many hold it: labels of thousands of nodes are mostly the same.
#[must_use]
pub fn shared(text: &str) -> Arc<str> {
    TEXTS.lock().unwrap_or_else(PoisonError::into_inner).share(text)
}

impl Default for Texts {
    fn default() -> Self {
        Self {
            all: HashSet::new(),
            limit: FEW,
        }
    }
}

impl Texts {
    fn share(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.all.get(text) {
            return known.clone();
        }
        if self.all.len() >= self.limit {
            self.all.retain(|text| Arc::strong_count(text) > 1);
            self.limit = FEW.max(2 * self.all.len());
        }
        let new: Arc<str> = text.into();
        self.all.insert(new.clone());
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_text_same_text_has_one_copy() {
        let (one, other) = (shared("a label"), shared("a label"));
        assert!(Arc::ptr_eq(&one, &other));
    }

    #[test]
    fn shared_text_dropped_texts_are_freed() {
        let mut texts = Texts::default();
        let held: Vec<Arc<str>> = (0..FEW).map(|i| texts.share(&format!("held {i}"))).collect();
        for i in 0..10 * FEW {
            let _ = texts.share(&format!("dropped {i}"));
        }
        assert!(texts.all.len() <= 3 * FEW, "{} texts are kept", texts.all.len());
        assert!(held.iter().all(|text| Arc::ptr_eq(text, &texts.share(text))));
        assert_eq!(texts.limit, 2 * FEW, "the next look is when there are twice as many as are held");
    }

    #[test]
    fn shared_text_few_texts_are_not_looked_through() {
        let mut texts = Texts::default();
        for name in ["a", "b"] {
            let _ = texts.share(name);
        }
        assert_eq!(texts.all.len(), 2);
    }
}
