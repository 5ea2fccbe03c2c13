//! The template environment: strict, fuelled, metered, without anything that does I/O, and writing every value as JSON.

use super::builtins;
use super::image;
use super::meter::Meter;
use super::model::Chart;
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Value as TemplateValue;
use minijinja::{AutoEscape, Environment, Error, ErrorKind, Output, UndefinedBehavior};
use serde_json::Value;
use std::fmt::Write as _;
use std::io;

/// Instructions one template may use. The CSI chart needs about two thousand.
const FUEL: u64 = 200_000;

/// Bytes the templates of a chart may write, all together. The largest driver manifest is 25 KiB.
pub(super) const OUTPUT_LIMIT: usize = 2 << 20;

/// An environment with the chart's templates, in their metered form. Only files of the chart can be included: there is no loader.
///
/// It starts empty: what a template can call is what is added here, and none of it reads a clock, a file or the environment.
pub(super) fn environment(chart: &Chart, values: &Value) -> Result<Environment<'static>, Error> {
    let bare = || {
        let mut environment = Environment::empty();
        environment.set_syntax(SyntaxConfig::builder().keep_trailing_newline(true).build()?);
        environment.set_auto_escape_callback(|_| AutoEscape::Json);
        Ok(environment)
    };
    let mut environment = chart.prepared.environment(bare, &chart.metered)?;
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_fuel(Some(FUEL));
    environment.set_recursion_limit(64);
    environment.set_debug(false); // its reports print the variables
    let meter = Meter::default();
    let shared = meter.clone();
    environment.set_formatter(move |out, _, value| write_json(&shared, out, value));
    builtins::add(&mut environment, &meter);
    environment.add_filter("text", text);
    environment.add_function("fail", |message: String| -> Result<String, Error> {
        Err(Error::new(ErrorKind::InvalidOperation, message).with_source(Said))
    });
    let images = chart.release.images.clone();
    let settings = values.get("images").cloned();
    environment.add_function("image", move |name: String| {
        let reference =
            image::reference(&images, settings.as_ref(), &name).map_err(|message| Error::new(ErrorKind::InvalidOperation, message))?;
        meter.charge(reference.len())?;
        Ok(reference)
    });
    Ok(environment)
}

/// Marks an error that a chart's author foresaw: its message is for the user, and the place in the template is not.
#[derive(Debug, thiserror::Error)]
#[error("the chart refuses it")]
pub(super) struct Said;

/// `true` and `1` as text, for places where Kubernetes wants a string.
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

fn write_json(meter: &Meter, out: &mut Output, value: &TemplateValue) -> Result<(), Error> {
    if value.is_undefined() {
        return Err(Error::new(ErrorKind::UndefinedError, "the value is undefined"));
    }
    if value.is_safe() {
        // what a macro or a set block of this chart has written, through this same function
        let text = value.as_str().unwrap_or_default();
        meter.charge(text.len())?;
        return out.write_str(text).map_err(Error::from);
    }
    // piece by piece: a value that repeats itself is small in memory and can be endless in writing
    meter.weigh(value)?;
    let mut writer = JsonText { meter, out, failed: None };
    let result = serde_json::to_writer(&mut writer, value);
    match (writer.failed, result) {
        (Some(error), _) => Err(error),
        (None, Err(error)) => Err(Error::new(ErrorKind::BadSerialization, "the value has no JSON form").with_source(error)),
        (None, Ok(())) => Ok(()),
    }
}

/// Takes JSON and writes the same as YAML that every reader reads alike.
struct JsonText<'a, 'b> {
    meter: &'a Meter,
    out: &'a mut Output<'b>,
    failed: Option<Error>,
}

impl io::Write for JsonText<'_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = std::str::from_utf8(bytes).map_err(io::Error::other)?; // the writer of JSON passes whole characters
        let written = self.meter.charge(bytes.len()).and_then(|()| {
            if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
                return self.out.write_str(text).map_err(Error::from);
            }
            text.chars()
                .try_for_each(|c| {
                    if printable(c) {
                        self.out.write_char(c)
                    } else {
                        escape(self.out, c)
                    }
                })
                .map_err(Error::from)
        });
        written.map(|()| bytes.len()).map_err(|error| {
            self.failed = Some(error);
            io::Error::other("stopped")
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Whether a character may stand unescaped in a double-quoted YAML scalar and means itself there. Line separators do not: YAML 1.1
/// readers fold them.
fn printable(c: char) -> bool {
    matches!(c, ' '..='~' | '\u{a0}'..='\u{2027}' | '\u{202a}'..='\u{d7ff}' | '\u{e000}'..='\u{fefe}' | '\u{ff00}'..='\u{fffd}' | '\u{10000}'..)
}

fn escape(out: &mut Output, c: char) -> std::fmt::Result {
    write!(out, "\\u{:04x}", u32::from(c)) // everything unprintable lies in the basic plane
}

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
