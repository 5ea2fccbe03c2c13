//! The budget of a render: what its templates may hold, copy and write, all together.

use minijinja::value::{Value, ValueKind};
use minijinja::{Error, ErrorKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes all operations of one render may handle. A manifest of 25 KiB with its helpers needs about 300 KiB.
pub const BUDGET: usize = 16 << 20;

/// What any value costs besides its text: about what it takes in memory.
const NODE: usize = 32;

/// How deep a value, macros and includes may be nested. Deeper values could end the stack when they are written or dropped.
pub const DEPTH: usize = 64;

/// The bytes that a render may still handle. Clones share them. One render takes one budget.
#[derive(Debug, Clone)]
pub struct Budget(Arc<Account>);

#[derive(Debug)]
struct Account {
    whole: usize,
    left: AtomicUsize,
}

impl Default for Budget {
    fn default() -> Self {
        Self::new(BUDGET)
    }
}

impl Budget {
    /// A budget of so many bytes.
    #[must_use]
    pub fn new(bytes: usize) -> Self {
        Self(Arc::new(Account {
            whole: bytes,
            left: AtomicUsize::new(bytes),
        }))
    }

    /// Takes bytes from the budget.
    ///
    /// # Errors
    /// When fewer are left; from then on none are.
    pub fn charge(&self, bytes: usize) -> Result<(), Error> {
        let left = self.0.left.load(Ordering::Relaxed);
        match left.checked_sub(bytes) {
            Some(left) => {
                self.0.left.store(left, Ordering::Relaxed); // one render, one thread
                Ok(())
            }
            None => {
                self.0.left.store(0, Ordering::Relaxed);
                Err(Error::new(
                    ErrorKind::OutOfFuel,
                    format!("the templates handle more than {}; they are broken or hostile", size(self.0.whole)),
                ))
            }
        }
    }

    /// Takes the size of a whole value, counting what it repeats as often as it is there, and stops as soon as the budget ends.
    ///
    /// # Errors
    /// When the value is larger than what is left, nested more than [`DEPTH`] times, or undefined.
    pub fn weigh(&self, value: &Value) -> Result<(), Error> {
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

/// `16 MiB`, `1024 KiB` or `100 bytes`.
fn size(bytes: usize) -> String {
    match bytes {
        _ if bytes >= 2 << 20 => format!("{} MiB", bytes >> 20),
        _ if bytes >= 2 << 10 => format!("{} KiB", bytes >> 10),
        _ => format!("{bytes} bytes"),
    }
}
