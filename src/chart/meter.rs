//! The budget of a render: what its templates may hold, copy and write, all together.

use minijinja::value::{Value, ValueKind};
use minijinja::{Error, ErrorKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes all operations of one render may handle. The CSI chart needs about 300 KiB.
pub(super) const BUDGET: usize = 16 << 20;

/// What any value costs besides its text: about what it takes in memory.
const NODE: usize = 32;

/// How deep a value may be nested. Deeper ones could end the stack when they are written or dropped.
const DEPTH: usize = 64;

/// What is left of a render's budget. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct Meter(Arc<AtomicUsize>);

impl Default for Meter {
    fn default() -> Self {
        Self(Arc::new(AtomicUsize::new(BUDGET)))
    }
}

impl Meter {
    /// Takes bytes from the budget.
    pub(super) fn charge(&self, bytes: usize) -> Result<(), Error> {
        let left = self.0.load(Ordering::Relaxed);
        match left.checked_sub(bytes) {
            Some(left) => {
                self.0.store(left, Ordering::Relaxed); // one render, one thread
                Ok(())
            }
            None => {
                self.0.store(0, Ordering::Relaxed);
                Err(Error::new(
                    ErrorKind::OutOfFuel,
                    format!(
                        "the templates handle more than {} MiB; the chart is broken or hostile",
                        BUDGET >> 20
                    ),
                ))
            }
        }
    }

    /// Takes the size of a whole value, counting what it repeats as often as it is there, and stops as soon as the budget ends.
    pub(super) fn weigh(&self, value: &Value) -> Result<(), Error> {
        self.weigh_within(value, DEPTH)
    }

    fn weigh_within(&self, value: &Value, depth: usize) -> Result<(), Error> {
        if value.is_undefined() {
            return Err(Error::new(ErrorKind::UndefinedError, "the value is undefined"));
        }
        let text = value.as_bytes().map_or(0, <[u8]>::len);
        self.charge(NODE.saturating_add(text))?;
        let collection = matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable | ValueKind::Map);
        if !collection {
            return Ok(());
        }
        let Some(depth) = depth.checked_sub(1) else {
            return Err(Error::new(
                ErrorKind::InvalidOperation,
                format!("a value is nested more than {DEPTH} times"),
            ));
        };
        for item in value.try_iter()? {
            self.weigh_within(&item, depth)?;
            if value.kind() == ValueKind::Map {
                let inner = value.get_item(&item)?;
                // a key that is there without a value is nothing to measure
                if !inner.is_undefined() {
                    self.weigh_within(&inner, depth)?;
                }
            }
        }
        Ok(())
    }
}
