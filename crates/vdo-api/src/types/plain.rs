/// A text of a server for events and screens: one line, and not a long one.
#[must_use]
pub fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(256).collect()
}
