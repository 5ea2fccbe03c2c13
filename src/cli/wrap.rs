use super::style::width;

/// Narrower than this, a broken line is harder to read than a long one.
const NARROWEST: usize = 40;

/// How wide the terminal is; `None` where stdout is none.
pub(super) fn terminal_columns() -> Option<usize> {
    terminal_size::terminal_size_of(std::io::stdout()).map(|(width, _)| width.0.into())
}

/// Breaks a text at blanks so that no line is longer than the terminal is wide, as far as its words allow; further lines begin below
/// `indent`. Without a terminal a line stays one line, which can be searched.
pub(super) fn wrap(text: &str, indent: usize, columns: Option<usize>) -> String {
    let Some(room) = columns
        .map(|columns| columns.saturating_sub(indent))
        .filter(|room| *room >= NARROWEST)
    else {
        return text.to_owned();
    };
    let (mut out, mut used) = (String::new(), 0);
    for word in text.split(' ') {
        let long = width(word);
        if used > 0 && used + 1 + long > room {
            out.push('\n');
            out.push_str(&" ".repeat(indent));
            used = 0;
        } else if !out.is_empty() {
            out.push(' ');
            used += 1;
        }
        out.push_str(word);
        used += long;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::style::faint;
    use super::*;

    #[test]
    fn wrap_long_text_breaks_at_terminal_width() {
        let text = "one two three four five six seven eight nine ten eleven twelve thirteen";
        assert_eq!(wrap(text, 6, None), text);
        assert_eq!(wrap(text, 50, Some(80)), text, "too narrow to be of use");
        let wrapped = wrap(text, 6, Some(50));
        assert_eq!(
            wrapped,
            "one two three four five six seven eight nine\n      ten eleven twelve thirteen"
        );
        let styled = wrap(&format!("{text} {}", faint("(vdoctl explain SnapshotsPresent)")), 6, Some(50));
        assert!(styled.lines().all(|line| width(line) <= 50), "{styled}");
        let word = "x".repeat(90);
        assert_eq!(wrap(&format!("a {word} b"), 6, Some(80)), format!("a\n      {word}\n      b"));
    }
}
