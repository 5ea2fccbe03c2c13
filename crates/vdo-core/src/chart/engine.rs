// SPDX-License-Identifier: Apache-2.0
//! Sets up minijinja for charts: the permitted functions, filters and tests, and the limits on steps, memory and output of templates.
//! No function knows a clock, chance, the environment, a file or the network.

use super::opened_chart::Chart;
use super::{image_reference, interpolation_output};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Value as TemplateValue;
use minijinja::{AutoEscape, Environment, Error, ErrorKind, UndefinedBehavior, filters, functions, tests};
use serde_json::Value;
use std::collections::BTreeMap;
use std::{fmt, io, panic, thread};

/// Bytes the templates of a chart may write, all together. The largest driver manifest is 25 KiB.
pub(super) const OUTPUT_LIMIT: usize = 2 << 20;

/// Bytes of one template.
pub(super) const TEMPLATE_LIMIT: usize = 60_000;

/// What one template may take: steps, and 64 bytes of what it makes or writes for each, so 16 MiB. The largest of today takes 2,000.
pub(super) const FUEL: u64 = 1 << 18;

/// How deep macros and includes may be nested; an include counts ten times.
const DEPTH: usize = 64;

/// Values are dropped and compared level by level, and this is enough for the deepest that the fuel pays for. It is taken as it is used.
const STACK: usize = 64 << 20;

/// The templates of a chart, compiled.
#[derive(Clone)]
pub(super) struct Templates(Environment<'static>);

impl PartialEq for Templates {
    /// They follow from the rest of the chart.
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl fmt::Debug for Templates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Templates")
    }
}

impl Templates {
    /// Compiles them. Only these can be included: there is no loader.
    pub(super) fn compile(sources: &BTreeMap<String, String>) -> Result<Self, Error> {
        let mut environment = Environment::empty();
        environment.set_syntax(
            SyntaxConfig::builder()
                .trim_blocks(true)
                .lstrip_blocks(true)
                .keep_trailing_newline(true)
                .build()?,
        );
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.set_auto_escape_callback(|_| AutoEscape::Json); // what a macro has written is not written as JSON again
        environment.set_formatter(|out, _, value| interpolation_output::write(out, value));
        environment.set_fuel(Some(FUEL));
        environment.set_recursion_limit(DEPTH);
        environment.set_debug(false); // its reports print the variables
        language(&mut environment);
        for (path, source) in sources {
            environment.add_template_owned(path.clone(), source.clone())?;
        }
        Ok(Self(environment))
    }
}

/// What templates can call besides `image` and `fail`. docs/charts.md lists it.
fn language(environment: &mut Environment<'_>) {
    environment.add_function("range", functions::range);

    environment.add_filter("bool", filters::bool);
    environment.add_filter("count", filters::length);
    environment.add_filter("d", filters::default);
    environment.add_filter("default", filters::default);
    environment.add_filter("first", filters::first);
    environment.add_filter("float", filters::float);
    environment.add_filter("int", filters::int);
    environment.add_filter("items", filters::items);
    environment.add_filter("join", filters::join);
    environment.add_filter("last", filters::last);
    environment.add_filter("length", filters::length);
    environment.add_filter("list", filters::list);
    environment.add_filter("lower", filters::lower);
    environment.add_filter("max", filters::max);
    environment.add_filter("min", filters::min);
    environment.add_filter("replace", filters::replace);
    environment.add_filter("split", filters::split);
    environment.add_filter("text", text);
    environment.add_filter("trim", filters::trim);
    environment.add_filter("upper", filters::upper);

    environment.add_test("boolean", tests::is_boolean);
    environment.add_test("defined", tests::is_defined);
    environment.add_test("endingwith", tests::is_endingwith);
    environment.add_test("eq", tests::is_eq);
    environment.add_test("even", tests::is_even);
    environment.add_test("false", tests::is_false);
    environment.add_test("in", tests::is_in);
    environment.add_test("integer", tests::is_integer);
    environment.add_test("iterable", tests::is_iterable);
    environment.add_test("mapping", tests::is_mapping);
    environment.add_test("ne", tests::is_ne);
    environment.add_test("none", tests::is_none);
    environment.add_test("number", tests::is_number);
    environment.add_test("odd", tests::is_odd);
    environment.add_test("sequence", tests::is_sequence);
    environment.add_test("startingwith", tests::is_startingwith);
    environment.add_test("string", tests::is_string);
    environment.add_test("true", tests::is_true);
    environment.add_test("undefined", tests::is_undefined);
}

/// `true` and `1` as text, for places where a reader wants a string.
#[expect(clippy::needless_pass_by_value, reason = "the signature of a filter")]
fn text(value: TemplateValue) -> Result<String, Error> {
    match serde_json::to_value(&value) {
        Ok(Value::String(text)) => Ok(text),
        Ok(scalar @ (Value::Bool(_) | Value::Number(_))) => Ok(scalar.to_string()),
        _ => Err(Error::new(
            ErrorKind::InvalidOperation,
            "only a string, number or boolean has a text form",
        )),
    }
}

/// An environment with the chart's templates, the images of its release, and a way to refuse.
pub(super) fn environment(chart: &Chart, values: &Value) -> Environment<'static> {
    let mut environment = chart.compiled_templates.0.clone();
    environment.add_function("fail", |message: String| -> Result<String, Error> {
        Err(Error::new(ErrorKind::InvalidOperation, message).with_source(Said))
    });
    let images = chart.release.images.clone();
    let settings = values.get("images").cloned();
    environment.add_function("image", move |name: String| {
        image_reference::reference(&images, settings.as_ref(), &name).map_err(|message| Error::new(ErrorKind::InvalidOperation, message))
    });
    environment
}

/// Does the work on a stack that is deep enough for the values of templates.
///
/// # Errors
/// When the machine has no room for another thread.
pub(super) fn on_a_deep_stack<T: Send>(work: impl FnOnce() -> T + Send) -> io::Result<T> {
    thread::scope(|scope| {
        let worker = thread::Builder::new()
            .name("render".into())
            .stack_size(STACK)
            .spawn_scoped(scope, work)?;
        worker.join().or_else(|defect| panic::resume_unwind(defect))
    })
}

/// Marks an error that a chart's author foresaw: its message is for the user, and the place in the template is not.
#[derive(Debug, thiserror::Error)]
#[error("the chart refuses it")]
pub(super) struct Said;

/// A buffer that refuses to grow beyond its limit.
pub(super) struct Limited {
    /// What was written.
    pub(super) bytes: Vec<u8>,
    /// Whether something was refused.
    pub(super) full: bool,
    limit: usize,
}

impl Limited {
    /// An empty buffer for at most `limit` bytes.
    pub(super) fn new(limit: usize) -> Self {
        Self {
            bytes: Vec::new(),
            full: false,
            limit,
        }
    }
}

impl io::Write for Limited {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > self.limit {
            self.full = true;
            return Err(io::Error::other("the output limit is reached"));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
