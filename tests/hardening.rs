//! Templates made to do harm end with a clear error and little memory; values reach their own places and no others.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    missing_docs,
    reason = "a failing test should stop where it fails; a child process is told by the environment what to render"
)]

use serde_json::{Value, json};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use vdo::chart::{self, Chart, Context};
use vdo::fetch::embedded;

/// A chart with one template of its own, and helpers in `templates/_own.yaml`.
fn with_template(text: &str, helpers: &str) -> Result<Chart, chart::ArchiveError> {
    let mut source = embedded::sources().remove("vsphere-cpi").unwrap();
    source.files.retain(|path, _| !path.starts_with("templates/"));
    source.files.insert("templates/own.yaml".to_owned(), text.as_bytes().to_vec());
    source.files.insert("templates/_own.yaml".to_owned(), helpers.as_bytes().to_vec());
    let version = source.versions().last().unwrap().clone();
    chart::open(&chart::package(&source, &version).unwrap())
}

fn chain(error: &dyn std::error::Error) -> String {
    error
        .source()
        .map_or(error.to_string(), |source| format!("{error}: {}", chain(source)))
}

fn outcome(text: &str, helpers: &str) -> Result<Vec<Value>, String> {
    let chart = with_template(text, helpers).map_err(|error| chain(&error))?;
    chart::render(&chart, &Value::Null, &Context::default()).map_err(|error| chain(&error))
}

const MEMORY: &str = "handle more than 16 MiB";
const STEPS: &str = "engine ran out of fuel";
const NUMBERS: &str = "only numbers can be calculated with";
const DEEP: &str = "recursion";

/// What each hostile template ends with. All of them have to end: none may take much memory, time or stack.
fn hostile() -> Vec<(&'static str, String, &'static str)> {
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
        ("includes itself", "{% include 'templates/own.yaml' %}".to_owned(), DEEP),
        (
            "much output",
            format!("{{% for a in range(10000) %}}{}{{% endfor %}}", "a".repeat(5_000)),
            "above 2 MiB",
        ),
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
        ("state over loops", "{% set n = namespace(a=1) %}".to_owned(), "is not callable"),
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
            "{% include 'templates/../../../etc/passwd' %}".to_owned(),
            "template not found",
        ),
        (
            "an import from outside",
            "{% import '/etc/passwd' as p %}".to_owned(),
            "template not found",
        ),
        ("a file above", "{% include '../x' %}".to_owned(), "template not found"),
        (
            "a file of the chart that is no template",
            "{% include 'release.yaml' %}".to_owned(),
            "template not found",
        ),
        (
            "a file above by a path",
            "{% include 'templates/../release.yaml' %}".to_owned(),
            "template not found",
        ),
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

/// Does the same with every item, on all cores.
fn side_by_side<T: Send>(items: impl IntoIterator<Item = T>, work: impl Fn(T) + Sync) {
    let items = Mutex::new(items.into_iter().collect::<Vec<_>>());
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                loop {
                    let Some(item) = items.lock().unwrap().pop() else { break };
                    work(item);
                }
            });
        }
    });
}

const CASE: &str = "VDO_TEST_HOSTILE_TEMPLATE";

/// The highest resident size this process ever had, in KiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn child_that_renders_one_hostile_template() {
    let Ok(name) = std::env::var(CASE) else { return };
    let (_, template, _) = hostile().into_iter().find(|(case, _, _)| *case == name).unwrap();
    let before = peak();
    let result = outcome(&template, "");
    println!("grown={} outcome={result:?}", peak() - before);
}

#[test]
fn hostile_templates_end_with_an_error_and_little_memory() {
    const MOST: u64 = 96 << 10;
    let itself = std::env::current_exe().unwrap();
    let (wrong, most) = (Mutex::new(Vec::new()), AtomicU64::new(0));
    side_by_side(hostile(), |(name, _, expected)| {
        let child = Command::new(&itself)
            .args(["--exact", "child_that_renders_one_hostile_template", "--nocapture"])
            .env(CASE, name)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&child.stdout);
        let grown = text
            .split("grown=")
            .nth(1)
            .and_then(|rest| rest.split(' ').next()?.parse::<u64>().ok());
        most.fetch_max(grown.unwrap_or(u64::MAX), Ordering::Relaxed);
        // the meter's error names the engine's fuel too, so a missing limit of steps must not hide behind it
        let own = expected == MEMORY || !text.contains(MEMORY);
        let fits = own && text.contains("outcome=Err(") && text.contains(expected) && grown.is_some_and(|grown| grown <= MOST);
        if !fits {
            let shown: String = text.chars().take(600).collect();
            wrong.lock().unwrap().push(format!(
                "{name}: expected {expected:?}, grew by {grown:?} KiB, {}: {shown}",
                child.status
            ));
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    println!(
        "{} hostile templates, the largest grew by {} KiB",
        hostile().len(),
        most.into_inner()
    );
    assert!(hostile().len() >= 40);
}

/// `ignore missing` forgives what is not there; it must not find what is not the chart's.
#[test]
fn what_is_outside_is_missing_even_when_that_is_forgiven() {
    let template = "{% include '/etc/passwd' ignore missing %}\n{% include '../Chart.yaml' ignore missing %}\n";
    assert_eq!(outcome(template, "").unwrap_or_default(), Vec::<Value>::new());
}

#[test]
fn the_language_of_charts_means_what_it_says() {
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
fn what_is_not_known_is_named_with_the_nearest_known() {
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
fn our_charts_have_nothing_to_find() {
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
fn mistakes_in_charts_are_found() {
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
        (pod("serviceAccountName: nobody,"), "names the ServiceAccount nobody"),
        (pod("volumes: [{configMap: {name: none}}],"), "names the ConfigMap none"),
        (pod("volumes: [{secret: {secretName: none}}],"), "names the Secret none"),
        (pod("initContainers: [{image: 'x/y:latest'}],"), "whatever is latest"),
        (pod("initContainers: [{image: 'r:5000/x/y'}],"), "has no tag"),
        (
            "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: a, namespace: b}\nroleRef: {kind: Role, name: none}\n".to_owned(),
            "names the Role none",
        ),
        ("x: {{ values.nope }}\n".to_owned(), "undefined value"),
    ];
    for (template, expected) in cases {
        let findings = chart::lint(&with_template(&template, ALL_READ).unwrap());
        assert!(findings.len() == 1 && findings[0].contains(expected), "{template}: {findings:?}");
    }
    let mut chart = with_template(&pod("volumes: [{configMap: {name: maybe, optional: true}}],"), ALL_READ).unwrap();
    assert_eq!(chart::lint(&chart), Vec::<String>::new());
    chart.values["images"]["new"] = json!(1);
    let findings = chart::lint(&chart);
    assert!(findings[0].contains("values.images.new: has no schema"), "{findings:?}");
}

/// The places of a chart's values that are not made of others, by path: `any` is a key of the user's own, `[]` an item.
fn places(schema: &Value, whole: &Value, path: &[String], found: &mut Vec<Vec<String>>) {
    let target = schema
        .get("$ref")
        .and_then(Value::as_str)
        .map_or(schema, |target| whole.pointer(&target[1..]).unwrap());
    let below = |name: &str| path.iter().cloned().chain([name.to_owned()]).collect::<Vec<_>>();
    for (name, inner) in target["properties"].as_object().into_iter().flatten() {
        places(inner, whole, &below(name), found);
    }
    match &target["additionalProperties"] {
        inner @ Value::Object(_) => places(inner, whole, &below(&own_key(target)), found),
        Value::Bool(true) => found.push(below("any")),
        _ => {}
    }
    if target["items"].is_object() {
        places(&target["items"], whole, &below("[]"), found);
    } else if !["properties", "additionalProperties"].iter().any(|key| target.get(*key).is_some()) {
        found.push(path.to_vec());
    }
}

/// A key of a map whose keys are the user's.
fn own_key(schema: &Value) -> String {
    let listed = schema.pointer("/propertyNames/enum/0").and_then(Value::as_str);
    listed.unwrap_or("any").to_owned()
}

/// Everything on, so that every value has its places.
fn switched_on(driver: &str) -> Value {
    match driver {
        "vsphere-csi" => json!({"webhook": {"enabled": true, "caBundle": "Q0E="}, "topology": {"enabled": true}}),
        _ => json!({"skipNodeDeletion": true}),
    }
}

fn values_with(path: &[String], text: &str) -> Value {
    path.iter().rev().fold(json!(text), |value, name| match name.as_str() {
        // A StorageClass has to have a name beside the field in question.
        "[]" if path[0] == "storageClasses" && value.get("name").is_none() => {
            let mut item = value;
            item["name"] = "item".into();
            json!([item])
        }
        "[]" => json!([value]),
        _ => json!({name: value}),
    })
}

/// Every leaf by its path.
fn leaves(path: String, value: &Value, out: &mut Vec<(String, Value)>) {
    match value {
        Value::Object(fields) if !fields.is_empty() => fields.iter().for_each(|(k, v)| leaves(format!("{path}/{k}"), v, out)),
        Value::Array(items) if !items.is_empty() => items.iter().enumerate().for_each(|(i, v)| leaves(format!("{path}/{i}"), v, out)),
        leaf => out.push((path, leaf.clone())),
    }
}

/// What text may be in some place at all: the first of these that the schema takes there.
const PLAIN: [&str; 9] = [
    "plainmark",
    "/plainmark",
    "D:\\plainmark",
    "plainmark.example:1",
    "plain.example/mark:1",
    "ds:///plainmark",
    "plain/mark",
    "3141592",
    "cGxhaW5tYXJr",
];

const HOSTILE: [&str; 20] = [
    "\"",
    "'",
    "\n---\nkind: Pwned\n",
    "{{ 7 * 7 }}{% endif %}",
    ": ",
    " # x",
    "a: b",
    "\u{1f600}",
    "\0",
    "\r\n\t",
    "- x",
    "&a *a",
    "!!int 7",
    "yes",
    "0644",
    "null",
    "\u{85}\u{2028}\u{feff}\u{7f}",
    "}]\\",
    "$(X)",
    "|\n  x",
];

type Leaves = Vec<(String, Value)>;

fn rendered(chart: &Chart, values: &Value) -> Result<Leaves, String> {
    let mut all = switched_on(chart.metadata.name.as_str());
    chart::values::merge(&mut all, values);
    let objects = chart::render(chart, &all, &Context::default()).map_err(|error| chain(&error))?;
    let mut out = Vec::new();
    leaves(String::new(), &Value::from(objects), &mut out);
    Ok(out)
}

/// What a text becomes where `plain` became `text`: as it is, or with the doubled separators of Windows flags.
fn replaced(old: &str, plain: &str, text: &str) -> String {
    let doubled = |text: &str| text.replace('\\', "\\\\");
    if old.contains(plain) {
        old.replace(plain, text)
    } else {
        old.replace(&doubled(plain), &doubled(text))
    }
}

/// That the second render is the first one with `text` in place of `plain`, in names as in values.
fn same_but_for(before: &Leaves, after: &Leaves, plain: &str, text: &str, place: &str) {
    assert_eq!(before.len(), after.len(), "{place}");
    for ((old_path, old), (new_path, new)) in before.iter().zip(after) {
        assert!(
            *new_path == replaced(old_path, plain, text),
            "{place}: {old_path} became another place"
        );
        match old.as_str() {
            Some(old) => assert!(*new == replaced(old, plain, text), "{place} at {old_path}"),
            None => assert!(old == new, "{place} changed {old_path}"),
        }
    }
}

fn newest_charts() -> Vec<Chart> {
    let newest = |source: chart::Source| {
        let version = source.versions().last().unwrap().clone();
        chart::open(&chart::package(&source, &version).unwrap()).unwrap()
    };
    embedded::sources().into_values().map(newest).collect()
}

#[test]
fn any_text_in_any_value_stays_in_its_own_places() {
    let large = "x\n".repeat(1 << 19);
    let (taken, refused, large_ones) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    for chart in newest_charts() {
        let mut paths = Vec::new();
        places(chart.schema(), chart.schema(), &[], &mut paths);
        assert!(paths.len() >= 20, "{}: {paths:?}", chart.label());
        side_by_side(paths, |path| {
            let place = path.join(".").replace("[]", "0");
            let plain = PLAIN
                .iter()
                .find_map(|plain| Some((*plain, rendered(&chart, &values_with(&path, plain)).ok()?)));
            let tails: Vec<String> = HOSTILE[..8]
                .iter()
                .map(|tail| format!("{}{tail}", plain.as_ref().map_or("", |plain| plain.0)))
                .collect();
            let texts = HOSTILE
                .iter()
                .copied()
                .chain(tails.iter().map(String::as_str))
                .chain([large.as_str()]);
            for text in texts {
                match (rendered(&chart, &values_with(&path, text)), &plain) {
                    (Ok(after), Some((plain, before))) => {
                        same_but_for(before, &after, plain, text, &place);
                        taken.fetch_add(1, Ordering::Relaxed);
                        large_ones.fetch_add(u64::from(text.len() > 1000), Ordering::Relaxed);
                    }
                    (Ok(_), None) => panic!("{place} takes {:?} and none of {PLAIN:?}", text.get(..20)),
                    // what stands in several places can be too much when it is a mebibyte
                    (Err(error), _) if text.len() > 1000 && error.contains("MiB") => {}
                    (Err(error), _) => {
                        assert!(error.contains(&format!("{place}: ")), "{place} with {:?}: {error}", text.get(..20));
                        refused.fetch_add(1, Ordering::Relaxed);
                    }
                }
            }
        });
    }
    let (taken, refused, large_ones) = (taken.into_inner(), refused.into_inner(), large_ones.into_inner());
    println!("{taken} texts in their places, {refused} refused by name, {large_ones} mebibytes");
    assert!(taken > 300 && refused > 500 && large_ones >= 5, "{taken} {refused} {large_ones}");
}

/// The maps whose keys are the user's.
fn open_maps(schema: &Value, whole: &Value, path: &[String], found: &mut Vec<(Vec<String>, Value)>) {
    let target = schema
        .get("$ref")
        .and_then(Value::as_str)
        .map_or(schema, |target| whole.pointer(&target[1..]).unwrap());
    let sample = match target.pointer("/additionalProperties/type") {
        Some(kind) if kind == "boolean" => json!(true),
        _ => json!("1"),
    };
    if target["additionalProperties"].is_object() || target["additionalProperties"] == true {
        found.push((path.to_vec(), sample));
    }
    for (name, inner) in target["properties"].as_object().into_iter().flatten() {
        let below: Vec<String> = path.iter().cloned().chain([name.clone()]).collect();
        open_maps(inner, whole, &below, found);
    }
}

#[test]
fn any_text_as_a_key_stays_a_key() {
    let mut taken = 0;
    for chart in newest_charts() {
        let mut maps = Vec::new();
        open_maps(chart.schema(), chart.schema(), &[], &mut maps);
        assert!(maps.len() >= 3, "{}: {maps:?}", chart.label());
        for (path, sample) in maps {
            let with = |key: &str| {
                let inner = json!({key: sample});
                path.iter().rev().fold(inner, |value, name| json!({name: value}))
            };
            let place = path.join(".");
            let Ok(before) = rendered(&chart, &with("plainmark")) else {
                assert_eq!(place, "featureStates", "it takes no key of the user's");
                continue;
            };
            for key in HOSTILE {
                match rendered(&chart, &with(key)) {
                    Ok(after) => {
                        same_but_for(&before, &after, "plainmark", key, &place);
                        taken += 1;
                    }
                    Err(error) => assert!(error.contains(&place), "{place} with {key:?}: {error}"),
                }
            }
        }
    }
    assert!(taken >= 100, "only {taken}");
}
