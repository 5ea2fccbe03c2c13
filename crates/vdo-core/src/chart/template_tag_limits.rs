// SPDX-License-Identifier: Apache-2.0
//! Limits the words in one tag of a template and the number of its `elif` tags, before minijinja parses the template.
//! minijinja folds constants again at each operator of a chain, and walks chains and `elif` by recursion.

/// Words and signs of one tag. The largest of our charts has 86.
const TAG_LIMIT: usize = 1000;

/// How often a template may say `elif`.
const ELIF_LIMIT: usize = 400;

/// What is too much, with its line, from 1; 0 when it is the whole template.
pub(super) fn check(source: &str) -> Result<(), (usize, String)> {
    if source.matches("elif").count() > ELIF_LIMIT {
        return Err((0, format!("the template has more than {ELIF_LIMIT} elif; split it")));
    }
    let mut rest = source;
    while let Some((kind, inside)) = next(rest) {
        let line = || 1 + source[..source.len() - inside.len()].matches('\n').count();
        if kind == '#' {
            rest = inside.split_once("#}").map_or("", |(_, after)| after);
            continue;
        }
        // What raw holds is not a tag, and would have to be passed over as minijinja does.
        if kind == '%' && first_word(inside) == "raw" {
            return Err((line(), "the tag raw is not supported; write {{ \"{{\" }} as a value".to_owned()));
        }
        let end = if kind == '{' { "}}" } else { "%}" };
        rest = after_tag(inside, end).ok_or_else(|| {
            (
                line(),
                format!("more than {TAG_LIMIT} words and signs in one tag; set variables first"),
            )
        })?;
    }
    Ok(())
}

/// What kind of tag begins next, and the text from there.
fn next(text: &str) -> Option<(char, &str)> {
    let at = text.as_bytes().windows(2).position(|pair| matches!(pair, b"{{" | b"{%" | b"{#"))?;
    let kind = text[at + 1..].chars().next()?;
    Some((kind, &text[at + 2..]))
}

fn first_word(inside: &str) -> &str {
    let text = inside.trim_start_matches(['-', '+']).trim_start();
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .next()
        .unwrap_or_default()
}

/// The text behind the tag, or nothing when it holds too much. As minijinja reads it: an end in a string or within brackets is none.
fn after_tag<'a>(inside: &'a str, end: &str) -> Option<&'a str> {
    let (mut rest, mut open) = (inside, 0_i32);
    for _ in 0..=TAG_LIMIT {
        rest = rest.trim_start();
        if rest.is_empty() {
            return Some("");
        }
        if let Some(after) = rest.strip_prefix(end).filter(|_| open == 0) {
            return Some(after);
        }
        rest = after_token(rest, &mut open);
    }
    None
}

/// The text behind one word, string or sign.
fn after_token<'a>(text: &'a str, open: &mut i32) -> &'a str {
    let word = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len());
    let mut signs = text.char_indices();
    match signs.next() {
        _ if word > 0 => &text[word..],
        Some((_, quote @ ('"' | '\''))) => {
            let mut escaped = false;
            let closes = |(_, c): &(usize, char)| {
                let closes = *c == quote && !escaped;
                escaped = *c == '\\' && !escaped;
                closes
            };
            signs.find(closes).map_or("", |(at, _)| &text[at + 1..])
        }
        Some((_, sign)) => {
            match sign {
                '(' | '[' | '{' => *open = open.saturating_add(1),
                ')' | ']' | '}' => *open = open.saturating_sub(1),
                _ => {}
            }
            signs.as_str()
        }
        None => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tag_with_too_much_is_refused_with_its_line() {
        let chain = "~ a ".repeat(TAG_LIMIT);
        for (source, line) in [
            (format!("{{{{ a {chain}}}}}"), 1),
            (format!("a\n\n{{% set b = a {chain}%}}\n"), 3),
            (format!("{{{{ a }}}}{{# {{{{ #}}\n{{{{ a {chain}}}}}"), 2),
            (format!("{{% set b = '%}}' {chain}%}}"), 1),
            (format!("{{% set b = \"\\\"%}}\" {chain}%}}"), 1),
            (format!("{{% set b = [1, '%}}', (2 %}}] {chain}%}}"), 1),
            (format!("{{{{ {{'a': {{}}}} {chain}}}}}"), 1),
            (format!("# {{{{ a {chain}}}}}"), 1),
            (format!("{{{{ {}1 }}}}", "-".repeat(TAG_LIMIT)), 1),
            (format!("{{{{ {}1", "not ".repeat(TAG_LIMIT)), 1),
        ] {
            let (found, message) = check(&source).unwrap_err();
            assert!(found == line && message.contains("words and signs"), "{source}: {found} {message}");
        }
        let (line, message) = check("a\n{%- raw -%}{% \" {% endraw %}").unwrap_err();
        assert!(line == 2 && message.contains("the tag raw is not supported"), "{message}");
        let (_, message) = check(&"{% elif a %}".repeat(ELIF_LIMIT + 1)).unwrap_err();
        assert!(message.contains("more than 400 elif"), "{message}");
    }

    #[test]
    fn tag_as_charts_have_them_passes() {
        for source in [
            "a: {{ a }}\n{% set b = {'c': {'d': 1}} %}\n{# {{ #}\n",
            "{{{ a }}: {{ \"}}\" ~ '\\'' }}}",
            &"{{ a ~ b }}\n".repeat(TAG_LIMIT),
            &format!("{{{{ '{}' }}}}", "~ ".repeat(2 * TAG_LIMIT)),
            &format!("{}: {{{{ a }}}}", "a-b.c ".repeat(2 * TAG_LIMIT)),
            "{{ a",
            "{% set raw = 1 %}",
        ] {
            assert_eq!(check(source), Ok(()), "{source}");
        }
    }
}
