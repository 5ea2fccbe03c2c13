//! The hostile templates, and what each ends with.

pub const MEMORY: &str = "handle more than 16 MiB";
pub const STEPS: &str = "engine ran out of fuel";
pub const NUMBERS: &str = "only numbers can be calculated with";
pub const DEEP: &str = "recursion";

/// What each hostile template ends with. All of them have to end: none may take much memory, time or stack.
pub fn hostile() -> Vec<(&'static str, String, &'static str)> {
    let doubling = |statement: &str| format!("{{% set s = 'aaaaaaaaaaaaaaaa' %}}{}x: {{{{ s }}}}\n", statement.repeat(40));
    let lists = |statement: &str| format!("{{% set s = ['a'] %}}{}x: {{{{ s }}}}\n", statement.repeat(40));
    let wide = |item: &str, count: usize| format!("x: {{{{ {} }}}}\n", vec![item; count].join(" ~ "));
    vec![
        ("doubled string", doubling("{% set s = s ~ s %}"), MEMORY),
        ("doubled by plus", doubling("{% set s = s + s %}"), MEMORY),
        ("doubled list", lists("{% set s = s + s %}"), MEMORY),
        ("list of itself", lists("{% set s = [s, s] %}"), MEMORY),
        ("map of itself", lists("{% set s = {'a': s, 'b': s} %}"), MEMORY),
        ("as key", lists("{% set s = {s: s} %}"), MEMORY),
        (
            "compared",
            format!("{}{{% if s == s %}}{{% endif %}}", lists("{% set s = [s, s] %}")),
            MEMORY,
        ),
        ("joined", doubling("{% set s = [s, s]|join(s) %}"), MEMORY),
        ("replaced", doubling("{% set s = s|replace('a', s) %}"), MEMORY),
        ("replaced nothing", doubling("{% set s = s|replace('', s) %}"), MEMORY),
        ("captured", doubling("{% set s %}\n{{ s }}\n{{ s }}\n{% endset %}\n"), MEMORY),
        (
            "captured plain text",
            format!(
                "{{% set s %}}{{% for i in range(10000) %}}{}{{% endfor %}}{{% endset %}}",
                "a".repeat(50_000)
            ),
            MEMORY,
        ),
        (
            "recursive macro",
            "{% macro m(s) %}{{ m(s ~ s) }}{% endmacro %}x: {{ m('aaaaaaaaaaaaaaaa') }}\n".to_owned(),
            DEEP,
        ),
        (
            "macros by macros",
            format!(
                "{{% macro m0() %}}{}{{% endmacro %}}{}x: {{{{ m9() }}}}\n",
                "a".repeat(999),
                (0..9)
                    .map(|i| format!(
                        "{{% macro m{}() %}}{}{{% endmacro %}}",
                        i + 1,
                        format!("\n{{{{ m{i}() }}}}\n").repeat(9)
                    ))
                    .collect::<String>()
            ),
            MEMORY,
        ),
        (
            "growing list of lists",
            "{% for a in range(10000) %}{% for b in range(10000) %}{% set l = range(10000) %}{% endfor %}{% endfor %}".to_owned(),
            MEMORY,
        ),
        (
            "multiplied string",
            "{% set s = 'a' * 99000000 %}x: {{ s ~ s ~ s ~ s ~ s ~ s ~ s ~ s }}\n".to_owned(),
            NUMBERS,
        ),
        ("multiplied list", "x: {{ [1] * 99000000 }}\n".to_owned(), NUMBERS),
        ("split", doubling("{% set s = (s|split(''))|join('aa') %}"), MEMORY),
        ("characters", doubling("{% set s = (s|list)|join(s) %}"), MEMORY),
        ("long range", "x: {{ range(100000000) }}\n".to_owned(), "at most 10000"),
        (
            "loops in loops",
            "{% for a in range(10000) %}{% for b in range(10000) %}{% endfor %}{% endfor %}".to_owned(),
            STEPS,
        ),
        ("includes itself", "{% include 'own' %}".to_owned(), DEEP),
        (
            "nested values",
            format!("{{% set s = [] %}}{}x: {{{{ s }}}}\n", "{% set s = [s] %}".repeat(3000)),
            "nested more than",
        ),
        ("long expression", wide("values", 500), "operators in one tag"),
        (
            "long path",
            format!("x: {{{{ values{} }}}}\n", ".a".repeat(500)),
            "operators in one tag",
        ),
        (
            "many parentheses",
            format!("x: {{{{ {}1{} }}}}\n", "(".repeat(5_000), ")".repeat(5_000)),
            "operators in one tag",
        ),
        (
            "many nots",
            format!("x: {{{{ {}true }}}}\n", "not ".repeat(9_000)),
            "operators in one tag",
        ),
        (
            "deep statements",
            format!("{}{}", "{% if true %}".repeat(2_000), "{% endif %}".repeat(2_000)),
            DEEP,
        ),
        (
            "long alternatives",
            format!("{{% if false %}}{}{{% endif %}}", "{% elif false %}".repeat(2_000)),
            "operators in one tag",
        ),
        ("large template", "# a\n".repeat(20_000), "larger than 60000 bytes"),
        ("state over loops", "{% set n = namespace(a=1) %}".to_owned(), "unknown function"),
        ("unlisted filter", "x: {{ 'a'|tojson }}\n".to_owned(), "there is no filter"),
        ("unlisted test", "x: {{ 1 is divisibleby(2) }}\n".to_owned(), "there is no test"),
        ("the meter itself", "{% macro __m(x) %}{% endmacro %}".to_owned(), "reserved"),
        ("the raw writer", "x: {{ 'a'|__raw }}\n".to_owned(), "there is no filter"),
        (
            "recursive loop",
            "{% for a in [1] recursive %}{{ loop([a]) }}{% endfor %}".to_owned(),
            "not offered",
        ),
        ("blocks", "{% block a %}{% endblock %}".to_owned(), "not offered"),
        (
            "without escaping",
            "{% autoescape false %}{% endautoescape %}".to_owned(),
            "not offered",
        ),
        ("list as arguments", "x: {{ range(*[1, 2]) }}\n".to_owned(), "not offered"),
        ("the clock", "x: {{ now() }}\n".to_owned(), "unknown function"),
        ("chance", "x: {{ [1, 2]|random }}\n".to_owned(), "there is no filter"),
        ("the environment", "x: {{ env('HOME') }}\n".to_owned(), "unknown function"),
        ("variables", "x: {{ debug() }}\n".to_owned(), "unknown function"),
        ("a file", "{% include '/etc/passwd' %}".to_owned(), "template not found"),
        (
            "a file by a path",
            "{% include 'folder/../../../etc/passwd' %}".to_owned(),
            "template not found",
        ),
        (
            "an import from outside",
            "{% import '/etc/passwd' as p %}".to_owned(),
            "template not found",
        ),
        ("a file above", "{% include '../x' %}".to_owned(), "template not found"),
        (
            "a file by a variable",
            "{% set p = '/etc/' ~ 'passwd' %}{% include p %}".to_owned(),
            "template not found",
        ),
        (
            "a file by a value",
            "{% include values.namespace %}".to_owned(),
            "template not found",
        ),
        (
            "a file from a list",
            "{% include ['../x', '/etc/passwd'] %}".to_owned(),
            "not found",
        ),
        (
            "a file from outside by name",
            "{% from '../../x' import y %}".to_owned(),
            "template not found",
        ),
    ]
}
