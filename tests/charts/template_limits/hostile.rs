// SPDX-License-Identifier: Apache-2.0
//! Templates made to do harm, and what each ends with.

use super::{outcome, side_by_side};

const FUEL: &str = "the template takes more than 262144 steps or 16 MiB; it is broken or hostile";
const WIDE: &str = "more than 1000 words and signs in one tag";
const FULL: &str = "output of the templates larger than 2 MiB";
const LARGE: &str = "a value is larger than 2 MiB when it is written";

fn doubling(statement: &str) -> String {
    format!("{{% set s = 'aaaaaaaaaaaaaaaa' %}}{}x: {{{{ s }}}}\n", statement.repeat(40))
}

fn lists(statement: &str) -> String {
    format!("{{% set s = ['a'] %}}{}x: {{{{ s }}}}\n", statement.repeat(40))
}

fn tag(word: &str, count: usize) -> String {
    format!("a: 1\nx: {{{{ {}1 }}}}\n", word.repeat(count))
}

/// What is made, in bytes and in steps.
fn work() -> Vec<(&'static str, String, &'static str)> {
    let macros = (0..9).map(|i| {
        format!(
            "{{% macro m{}() %}}{}{{% endmacro %}}",
            i + 1,
            format!("\n{{{{ m{i}() }}}}\n").repeat(9)
        )
    });
    let macros = format!(
        "{{% macro m0() %}}{}{{% endmacro %}}{}\nx: {{{{ m9() }}}}\n",
        "a".repeat(999),
        macros.collect::<String>()
    );
    let captured = format!(
        "{{% set s %}}{{% for i in range(10000) %}}{}{{% endfor %}}{{% endset %}}",
        "a".repeat(50_000)
    );
    vec![
        ("doubled string", doubling("{% set s = s ~ s %}"), FUEL),
        ("doubled by plus", doubling("{% set s = s + s %}"), FUEL),
        ("joined", doubling("{% set s = [s, s]|join(s) %}"), FUEL),
        ("replaced", doubling("{% set s = s|replace('a', s) %}"), FUEL),
        ("replaced nothing", doubling("{% set s = s|replace('', s) %}"), FUEL),
        ("split", doubling("{% set s = (s|split(''))|join('aa') %}"), FUEL),
        ("characters", doubling("{% set s = (s|list)|join(s) %}"), FUEL),
        ("captured", doubling("{% set s %}\n{{ s }}\n{{ s }}\n{% endset %}\n"), FUEL),
        ("captured plain text", captured, FUEL),
        ("macros by macros", macros, FUEL),
        ("multiplied string", "x: {{ 'a' * 99000000 }}\n".to_owned(), FUEL),
        (
            "loops in loops",
            "{% for a in range(10000) %}\n{% for b in range(10000) %}{% endfor %}{% endfor %}".to_owned(),
            FUEL,
        ),
        (
            "long range",
            "x: {{ range(100000000) }}\n".to_owned(),
            "range has too many elements",
        ),
    ]
}

/// What is written.
fn written() -> Vec<(&'static str, String, &'static str)> {
    let output = format!("{{% for a in range(10000) %}}{}{{% endfor %}}", "a".repeat(5_000));
    let values = format!("a: [{}1]\n", "[],".repeat(15_000)).repeat(4) + "{% for a in range(40) %}{{ [[],[],[]] }}\n{% endfor %}";
    let nested = format!("{{% set s = [] %}}{}x: {{{{ s }}}}\n", "{%set s=[s]%}".repeat(4_000));
    vec![
        ("list of itself", lists("{% set s = [s, s] %}"), FULL),
        ("map of itself", lists("{% set s = {'a': s, 'b': s} %}"), FULL),
        ("multiplied list", "x: {{ [1] * 99000000 }}\n".to_owned(), FULL),
        (
            "list of itself in a set block",
            lists("{% set s = [s, s] %}").replace("x: {{ s }}", "{% set t %}\n{{ s }}\n{% endset %}"),
            LARGE,
        ),
        ("list as key", "x: {{ {[1]: 2} }}\n".to_owned(), "a key must be text"),
        ("nested values", nested, "a value is nested more than 64 times"),
        ("much output", output, FULL),
        ("many values in what is written", values, "own.yaml"),
    ]
}

/// What is large or deep before anything runs.
fn read() -> Vec<(&'static str, String, &'static str)> {
    let statements = format!("{}{}", "{% if true %}".repeat(2_000), "{% endif %}".repeat(2_000));
    vec![
        ("large template", "# a\n".repeat(20_000), "larger than 60000 bytes"),
        // Its size comes first: what looks for tags may take longer the longer a line is.
        ("many tags on one line", "{% if true %}".repeat(20_000), "larger than 60000 bytes"),
        ("deep tags on one line", "{% if true %}".repeat(4_600), "own.yaml:1"),
        ("deep statements", statements, "recursion"),
        ("long expression", tag("1 ~ ", 10_000), WIDE),
        ("many nots", tag("not ", 10_000), WIDE),
        ("many signs", tag("-", 10_000), WIDE),
        ("long path", format!("x: {{{{ values{} }}}}\n", ".a".repeat(20_000)), WIDE),
        (
            "many parentheses",
            format!("x: {{{{ {}1{} }}}}\n", "(".repeat(400), ")".repeat(400)),
            "recursion",
        ),
        (
            "long alternatives",
            format!("{{% if false %}}{}{{% endif %}}", "{% elif false %}".repeat(2_000)),
            "more than 400 elif",
        ),
        (
            "text that is not a template",
            "{% raw %}{% endraw %}".to_owned(),
            "the tag raw is not supported",
        ),
        (
            "many values on one line",
            format!("a: [{}1]\n", "{{ 1 }}, ".repeat(501)),
            "more than 500 interpolations on one line",
        ),
    ]
}

/// What calls itself, and what is not there.
fn reached() -> Vec<(&'static str, String, &'static str)> {
    let missing = "template not found";
    let template = |text: &str| text.to_owned();
    vec![
        (
            "recursive macro",
            template("{% macro m(s) %}{{ m(s ~ s) }}{% endmacro %}\nx: {{ m('a') }}\n"),
            "recursion",
        ),
        ("includes itself", template("{% include 'templates/own.yaml' %}"), "recursion"),
        (
            "recursive loop",
            template("{% for a in [1] recursive %}\n{{ loop([a]) }}\n{% endfor %}"),
            "recursion",
        ),
        ("state over loops", template("{% set n = namespace(a=1) %}"), "not callable"),
        (
            "a filter that is not offered",
            template("a: 1\nx: {{ 'a'|tojson }}\n"),
            "own.yaml:2: unknown filter",
        ),
        (
            "a test that is not offered",
            template("x: {{ 1 is divisibleby(2) }}\n"),
            "own.yaml:1: unknown test",
        ),
        ("values as they are", template("x: {{ values.namespace|safe }}\n"), "unknown filter"),
        ("the clock", template("x: {{ now() }}\n"), "unknown function"),
        ("chance", template("x: {{ [1, 2]|random }}\n"), "unknown filter"),
        ("the environment", template("x: {{ env('HOME') }}\n"), "unknown function"),
        ("variables", template("x: {{ debug() }}\n"), "unknown function"),
        ("a file", template("{% include '/etc/passwd' %}"), missing),
        ("a file by import", template("{% import '/etc/passwd' as p %}"), missing),
        ("a file by extension", template("{% extends '/etc/passwd' %}"), missing),
        ("a file that is not a template", template("{% include 'release.yaml' %}"), missing),
        (
            "a file above by a path",
            template("{% include 'templates/../release.yaml' %}"),
            missing,
        ),
        ("a file by a value", template("{% include values.namespace %}"), missing),
        (
            "a file from a list",
            template("{% include ['../x', '/etc/passwd'] %}"),
            "none of which existed",
        ),
    ]
}

#[test]
fn hostile_template_in_chart_ends_with_error() {
    let all = [work(), written(), read(), reached()].concat();
    assert!(all.len() > 45);
    side_by_side(all, |(name, template, expected)| {
        let error = outcome(&template, "").unwrap_err();
        assert!(error.contains(expected), "{name}: {error}");
    });
}

/// Includes go on with the values of those who include them, and are the only way to values deeper than one template makes them.
#[test]
fn hostile_values_deeper_than_a_stack_end_with_error() {
    let deeper = "{%set s=[s]%}".repeat(4_500);
    let own = format!("{{% set s = [] %}}{deeper}{{% include 'templates/_own.yaml' %}}");
    let helpers = format!("{deeper}{{% if s|length %}}{{% include 'templates/_own.yaml' %}}{{% endif %}}");
    let error = outcome(&own, &helpers).unwrap_err();
    assert!(error.contains("recursion") || error.contains(FUEL), "{error}");
}
