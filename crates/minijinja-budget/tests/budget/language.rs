//! What templates may use, what is refused, and how values are written.

use super::outcome;

/// Each feature of the language, with what it writes. Blanks and lines are those of minijinja with `trim_blocks` and `lstrip_blocks`.
#[test]
fn language_each_feature_writes_expected_text() {
    let helpers = "{% macro two(a, b='x') %}{{ a }}={{ b }}{% endmacro %}";
    for (template, expected) in [
        (
            "{% from 'helpers' import two %}{{ two('a') }} {{ two('a', b='y' ~ 1) }}",
            r#""a"="x" "a"="y1""#,
        ),
        ("{% from 'helpers' import two as other %}{{ other(1, 2) }}", "1=2"),
        ("{% import 'helpers' as own %}{{ own.two('b') }}", r#""b"="x""#),
        (
            "{% for k, v in {'c': 1 + 2 * 3, 'd': 7 // 2 - 1}|items %}{{ k }}:{{ v|text }} {% endfor %}",
            r#""c":"7" "d":"2" "#,
        ),
        (
            "{% for i in range(5) if i != 1 %}{% if i == 3 %}{% break %}{% endif %}{{ loop.index }}{% endfor %}",
            "12",
        ),
        ("{% for i in [] %}x{% else %}none{% endfor %}", "none"),
        ("{{ 'yes' if 1 in [1, 2] and not (3 in [1]) else 'no' }}", r#""yes""#),
        ("{{ values.nothing|default('there') }}", r#""there""#),
        ("{{ ('a,b'|split(','))[1] ~ 'abc'[1:2] ~ ['p', 'q']|join('-') }}", r#""bbp-q""#),
        (
            "{{ 1 if values.level is defined and values.nothing is undefined and none is none }}",
            "1",
        ),
        ("{% set block %}a: {{ 'quoted' }}\n{% endset %}{{ block }}", "a: \"quoted\"\n"),
        ("{% with a = 'j', b = -1 %}{{ a }}{{ b }}{% endwith %}", r#""j"-1"#),
        (
            "{% if false %}{% elif 1 < 2 <= 2 %}{{ {'m': {'n': 'o'}}.m['n'] }}{% endif %}",
            r#""o""#,
        ),
        ("{{ [true, none, 1.5, {'a': 2 ** 3}] }}", r#"[true,null,1.5,{"a":8}]"#),
        ("plain {text} 'with' \\ \"signs\"\n", "plain {text} 'with' \\ \"signs\"\n"),
    ] {
        assert_eq!(outcome(template, helpers).as_deref(), Ok(expected), "{template}");
    }
}

#[test]
fn value_with_characters_that_readers_of_yaml_fold_is_escaped() {
    let written = outcome("{{ 'a\u{85}\u{2028}\u{feff}\u{7f}ä\u{1f600}' }}", "").unwrap();
    assert_eq!(written, "\"a\\u0085\\u2028\\ufeff\\u007fä\u{1f600}\"");
}

#[test]
fn error_names_the_authors_line() {
    for (template, line) in [
        ("a\n\n{{ values.nope }}\n", 3),
        ("{% set a = [1,\n  2,\n  values.nope ~ 1] %}\n", 3),
        ("{% if true %}\n{% set b = 1 %}\n\n{{ 'a' + 1 }}\n{% endif %}", 4),
        ("a\n{{ 'a'|tojson }}\n", 2),
        ("a\n\n{% block b %}{% endblock %}", 3),
        ("a\n{% if %}", 2),
    ] {
        let error = outcome(template, "").unwrap_err();
        let named = error.contains(&format!("line {line}:")) || error.contains(&format!("own:{line})"));
        assert!(named, "{template}: {error}");
    }
}

#[test]
fn filter_and_test_unknown_list_what_there_is() {
    let filter = outcome("{{ 1|safe }}", "").unwrap_err();
    let test = outcome("{{ 1 is filter }}", "").unwrap_err();
    assert!(
        filter.contains("there is no filter \"safe\"; templates have bool, count") && filter.ends_with("upper"),
        "{filter}"
    );
    assert!(test.contains("there is no test \"filter\"; templates have boolean"), "{test}");
}
