use std::fmt;

/// A value that must never be printed. `Debug` and `Display` show `******`; [`Secret::expose`] is the one way out,
/// so a search for `expose` finds every place where a secret leaves its wrapper.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Secret(String);

impl Secret {
    /// Wraps a value.
    #[must_use]
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    /// The value itself. The caller takes care that it reaches no log, event, status or error.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Whether there is nothing inside.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("******")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("******")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printing_shows_nothing() {
        let secret = Secret::new("hunter2");
        assert_eq!(format!("{secret} {secret:?} {:?}", Some(&secret)), "****** ****** Some(******)");
        assert_eq!(secret.expose(), "hunter2");
    }
}
