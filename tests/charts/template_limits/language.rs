// SPDX-License-Identifier: Apache-2.0
//! The language of templates, and what is found in charts before they are rendered.

use super::{outcome, with_template};
use serde_json::json;
use vdo_core::chart;
use vdo_source::fetch::embedded;

#[test]
fn template_language_each_feature_renders_expected_data() {
    let helpers = "{% macro two(a, b='x') %}\n  {{ a }}: {{ b }}\n{% endmacro %}\n";
    let template = r#"{% from "templates/_own.yaml" import two %}
{% import "templates/_own.yaml" as own %}
apiVersion: v1
kind: ConfigMap
metadata: {name: a}
data:
{{ two("a") }}
{{ own.two("b", b="y" ~ 1) }}
{% for key, value in {"c": 1 + 2 * 3, "d": 7 // 2 - 1} | items %}
  {{ key }}: {{ value | text }}
{% endfor %}
{% for i in range(3) if i != 1 %}
  {{ "e" ~ i }}: {{ loop.index | text }}
{% else %}
  none: at all
{% endfor %}
  f: {{ "yes" if 1 in [1, 2] and not (3 in [1]) else "no" }}
  g: {{ values.nothing | default("there") }}
  h: {{ ("a,b" | split(","))[1] ~ "abc"[1:2] ~ ["p", "q"] | join("-") }}
  i: {{ "is" if values.logLevel is defined and values.nothing is undefined and none is none }}
{% set block %}
text: {{ "quoted" }}
{% endset %}
{% with a = "j", b = -1 %}
  {{ a }}: {{ b | text }}
{% endwith %}
{% if false %}
{% elif 1 < 2 <= 2 %}
  k: {{ {"m": {"n": "o"} }.m["n"] }}
{% endif %}
  l: "plain {text} 'with' \\ \"signs\""
"#;
    let objects = outcome(template, helpers).unwrap_or_else(|error| panic!("{error}"));
    let expected = serde_json::json!({
        "a": "x", "b": "y1", "c": "7", "d": "2", "e0": "1", "e2": "2", "f": "yes", "g": "there", "h": "bbp-q", "i": "is",
        "j": "-1", "k": "o", "l": "plain {text} 'with' \\ \"signs\"",
    });
    assert_eq!(objects[0]["data"], expected);
}

#[test]
fn template_unknown_name_suggests_nearest() {
    for (template, place, hint) in [
        ("a: 1\nx: {{ values.nmespace }}\n", "own.yaml:2", "did you mean values.namespace?"),
        (
            "{% set a = [1,\n  2,\n  values.images.registri ~ 1] %}\n",
            "own.yaml:3",
            "did you mean values.images.registry?",
        ),
        ("x: {{ \"a\" ~ relase.version }}\n", "own.yaml:1", "did you mean release?"),
        (
            "{% if cluster.minr == \"1\" %}{% endif %}\n",
            "own.yaml:1",
            "did you mean cluster.minor?",
        ),
        ("{% set socket = 1 %}\n\nx: {{ scoket }}\n", "own.yaml:3", "did you mean socket?"),
        (
            "x: {{ cluster.controlPlane.cuont }}\n",
            "own.yaml:1",
            "did you mean cluster.controlPlane.count?",
        ),
    ] {
        let error = outcome(template, "").unwrap_err();
        assert!(error.contains(place) && error.contains(hint), "{template}: {error}");
        let line = place.rsplit(':').next().unwrap().parse::<usize>().unwrap();
        assert!(error.contains(template.lines().nth(line - 1).unwrap().trim()), "{error}");
    }
}

#[test]
fn chart_lint_embedded_charts_have_no_findings() {
    let mut looked_at = 0;
    for source in embedded::sources().into_values() {
        for version in source.versions() {
            let chart = chart::open(&chart::package(&source, &version).unwrap()).unwrap();
            assert_eq!(chart::lint(&chart), Vec::<String>::new(), "{}", chart.label());
            looked_at += 1;
        }
    }
    assert!(looked_at >= 15, "only {looked_at}");
}

#[test]
fn chart_lint_each_mistake_is_found() {
    // every switch of the release has to be read somewhere
    const ALL_READ: &str = "{% set rules = release.extraRules %}";
    let pod = |rest: &str| {
        format!(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: a, namespace: b}}\nspec: {{template: {{spec: {{{rest} containers: [{{image: 'x/y:1'}}]}}}}}}\n"
        )
    };
    let cases = [
        ("apiVersion: v9\nkind: Thing\nmetadata: {name: a}\n".to_owned(), "Thing a: v9 Thing is not a kind"),
        ("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n".to_owned(), "ConfigMap a: has no namespace"),
        (
            "apiVersion: v1\nkind: Namespace\nmetadata: {name: a, namespace: b}\n".to_owned(),
            "Namespace a: has a namespace",
        ),
        (pod("serviceAccountName: absent,"), "refers to the ServiceAccount absent"),
        (pod("volumes: [{configMap: {name: none}}],"), "refers to the ConfigMap none"),
        (pod("volumes: [{secret: {secretName: none}}],"), "refers to the Secret none"),
        (pod("initContainers: [{image: 'x/y:latest'}],"), "has the tag latest"),
        (pod("initContainers: [{image: 'r:5000/x/y'}],"), "has no tag"),
        (
            "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: a, namespace: b}\nroleRef: {kind: Role, name: none}\n".to_owned(),
            "refers to the Role none",
        ),
        ("x: {{ values.nope }}\n".to_owned(), "undefined value"),
    ];
    for (template, expected) in cases {
        let findings = chart::lint(&with_template(&template, ALL_READ).unwrap());
        assert!(findings.len() == 1 && findings[0].contains(expected), "{template}: {findings:?}");
    }
}

#[test]
fn chart_lint_value_without_schema_is_found_and_optional_reference_passes() {
    // every switch of the release has to be read somewhere
    const ALL_READ: &str = "{% set rules = release.extraRules %}";
    let pod = |rest: &str| {
        format!(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: a, namespace: b}}\nspec: {{template: {{spec: {{{rest} containers: [{{image: 'x/y:1'}}]}}}}}}\n"
        )
    };
    let mut chart = with_template(&pod("volumes: [{configMap: {name: maybe, optional: true}}],"), ALL_READ).unwrap();
    assert_eq!(chart::lint(&chart), Vec::<String>::new());
    chart.values["images"]["new"] = json!(1);
    let findings = chart::lint(&chart);
    assert!(findings[0].contains("values.images.new: has no schema"), "{findings:?}");
}
