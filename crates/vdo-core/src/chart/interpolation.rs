// SPDX-License-Identifier: Apache-2.0
//! Checks a template's rule of whole values: `{{ … }}` must be a whole YAML value or key, on one line.
//!
//! An interpolation is written as JSON. Inside quotes, or glued to other text, its own quotes would end up in the middle of a
//! scalar, so such a template is refused before it is ever rendered.

/// Where a template breaks the rule.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Finding {
    /// The line, from 1.
    pub(super) line: usize,
    /// What is wrong and what to write instead.
    pub(super) message: &'static str,
}

const QUOTED: &str = "an interpolation inside quotes; write the whole value as one interpolation: {{ \"a:\" ~ b }}";
const GLUED: &str = "an interpolation glued to other text; write the whole value as one interpolation: {{ \"a-\" ~ b }}";
const CROWDED: &str = "more than 500 interpolations on one line; write them on lines of their own";
const OPEN: &str = "an interpolation that does not end on its line; write {% set NAME = … %} before this line, and {{ NAME }} here";

/// Interpolations of one line: before each of them the line is read from its start.
const LINE_LIMIT: usize = 500;

/// Where the next tag begins. In one pass: one line may hold the whole template.
fn next_tag(text: &str) -> Option<usize> {
    text.as_bytes().windows(2).position(|pair| matches!(pair, b"{{" | b"{%" | b"{#"))
}

/// The first place where the template breaks the rule. It takes as long as the template is long.
pub(super) fn check(source: &str) -> Option<Finding> {
    let mut inside_tag: Option<&str> = None; // the end of a {% %} or {# #} that spans lines
    for (number, line) in source.lines().enumerate() {
        let mut rest = line;
        let mut interpolations = 0;
        let mut before = String::new(); // the YAML text of this line so far; a tag leaves a blank, a value leaves a 0
        loop {
            if let Some(end) = inside_tag {
                let Some(at) = rest.find(end) else { break };
                rest = &rest[at + 2..];
                inside_tag = None;
                before.push(' ');
                continue;
            }
            let Some(at) = next_tag(rest) else { break };
            before.push_str(&rest[..at]);
            // `{{{`: a flow map that opens right before an interpolation
            let at = if rest[at..].starts_with("{{{") {
                before.push('{');
                at + 1
            } else {
                at
            };
            let kind = &rest[at..at + 2];
            rest = &rest[at + 2..];
            match kind {
                "{%" => inside_tag = Some("%}"),
                "{#" => inside_tag = Some("#}"),
                _ => {
                    let finding = |message| Some(Finding { line: number + 1, message });
                    interpolations += 1;
                    if interpolations > LINE_LIMIT {
                        return finding(CROWDED);
                    }
                    if comment(&before) {
                        break;
                    }
                    if quoted(&before) {
                        return finding(QUOTED);
                    }
                    let Some(end) = expression_end(rest) else { return finding(OPEN) };
                    if !opens_value(&before) || !closes_value(&rest[end..]) {
                        return finding(GLUED);
                    }
                    rest = &rest[end..];
                    before.push('0');
                }
            }
        }
    }
    None
}

/// The byte after `}}`, looking past string literals.
fn expression_end(text: &str) -> Option<usize> {
    let mut quote = None;
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match quote {
            Some(_) if escaped => escaped = false,
            Some(_) if c == '\\' => escaped = true,
            Some(q) if c == q => quote = None,
            Some(_) => {}
            None if c == '"' || c == '\'' => quote = Some(c),
            // a map literal may end right before the interpolation does: the last two of `}}}` close it
            None if text[at..].starts_with("}}") && !text[at + 1..].starts_with("}}") => return Some(at + 2),
            None => {}
        }
    }
    None
}

/// Whether the YAML text ends inside a quoted scalar.
fn quoted(before: &str) -> bool {
    let mut quote = None;
    let mut previous = ' ';
    for c in before.chars() {
        match quote {
            Some(q) if c == q && !(q == '"' && previous == '\\') => quote = None,
            Some(_) => {}
            // a quote opens a scalar only where a value can start; `it's` is plain text
            None if (c == '"' || c == '\'') && matches!(previous, ' ' | '[' | '{' | ',') => quote = Some(c),
            None => {}
        }
        previous = c;
    }
    quote.is_some()
}

fn comment(before: &str) -> bool {
    !quoted(before) && (before.trim_start().starts_with('#') || before.contains(" #"))
}

/// Whether a whole value can start after this text: at the line's start, after `key: `, `- `, or in a flow collection.
fn opens_value(before: &str) -> bool {
    let text = before.trim_end();
    let blank = before.len() > text.len();
    match text.chars().next_back() {
        None | Some('[' | '{' | ',') => true,
        Some(':') => blank,
        Some('-') => blank && text.chars().all(|c| c == '-' || c == ' '),
        Some(_) => false,
    }
}

/// Whether the value ends here: at the line's end, before a tag or comment, in a flow collection, or as a key.
fn closes_value(after: &str) -> bool {
    let text = after.trim_start();
    let blank = after.len() > text.len();
    text.is_empty()
        || text.starts_with([',', ']', '}'])
        || text.starts_with("{%")
        || text.starts_with("{#")
        || (text.starts_with(':') && (text.len() == 1 || text.starts_with(": ")))
        || (blank && text.starts_with('#'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn template_lint_whole_value_passes() {
        for good in [
            "image: {{ image(\"driver\") }}",
            "- {{ \"--v=\" ~ values.logLevel }}",
            "  - name: {{ name }}",
            "{{ key }}: {{ value }}",
            "- {apiGroups: [{{ group }}], verbs: {{ verbs | split(\" \") }}}",
            "labels: {{ {\"app\": name} }}",
            "{% if a %}x: {{ a }}{% endif %}",
            "x: {{ a }} # a comment with {{ anything",
            "# {{ in a comment }}",
            "{# \"{{ x }}\" #}",
            "{%- set x = \"{{\" %}",
            "x: it's fine\ny: {{ a }}",
            "x: {{ \"}}\" }}",
        ] {
            assert_eq!(check(good), None, "{good}");
        }
    }

    #[test]
    fn template_lint_partial_value_reports_line_and_cause() {
        for (bad, line, message) in [
            ("a: 1\nimage: \"repo:{{ tag }}\"", 2, QUOTED),
            ("image: '{{ tag }}'", 1, QUOTED),
            ("image: repo:{{ tag }}", 1, GLUED),
            ("image: {{ repo }}:{{ tag }}", 1, GLUED),
            ("image: {{ repo }}-x", 1, GLUED),
            ("- --v={{ level }}", 1, GLUED),
            ("a-{{ x }}: 1", 1, GLUED),
            ("a:{{ x }}", 1, GLUED),
            ("a: {{ x", 1, OPEN),
        ] {
            assert_eq!(check(bad), Some(Finding { line, message }), "{bad}");
        }
    }
}
