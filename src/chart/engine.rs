//! The template environment: strict, fuelled, without anything that does I/O, and writing every value as JSON.

use super::image;
use super::model::Chart;
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Value as TemplateValue;
use minijinja::{AutoEscape, Environment, Error, ErrorKind, Output, State, UndefinedBehavior};
use serde_json::Value;
use std::fmt::Write as _;
use std::io;

/// Instructions one template may use. The CSI chart needs about two thousand.
const FUEL: u64 = 200_000;

/// Bytes one template may write. The largest driver manifest is 25 KiB.
pub(super) const OUTPUT_LIMIT: usize = 2 << 20;

/// An environment with the chart's templates. Only files of the chart can be included: there is no loader.
pub(super) fn environment<'a>(chart: &'a Chart, values: &Value) -> Result<Environment<'a>, Error> {
    let mut environment = Environment::new();
    environment.set_syntax(
        SyntaxConfig::builder()
            .trim_blocks(true)
            .lstrip_blocks(true)
            .keep_trailing_newline(true)
            .build()?,
    );
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_fuel(Some(FUEL));
    environment.set_recursion_limit(64);
    environment.set_debug(false); // its reports print the variables
    environment.set_auto_escape_callback(|_| AutoEscape::Json);
    environment.set_formatter(write_json);
    environment.remove_filter("safe"); // the one way past the JSON writer
    environment.remove_global("debug"); // prints every variable
    environment.add_filter("text", text);
    environment.add_function("fail", |message: String| -> Result<String, Error> {
        Err(Error::new(ErrorKind::InvalidOperation, message))
    });
    let images = chart.release.images.clone();
    let settings = values.get("images").cloned();
    environment.add_function("image", move |name: String| {
        image::reference(&images, settings.as_ref(), &name).map_err(|message| Error::new(ErrorKind::InvalidOperation, message))
    });
    for (path, source) in &chart.templates {
        environment.add_template(path, source)?;
    }
    Ok(environment)
}

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

fn write_json(out: &mut Output, _: &mut State, value: &TemplateValue) -> Result<(), Error> {
    if value.is_undefined() {
        return Err(Error::new(ErrorKind::UndefinedError, "the value is undefined"));
    }
    if value.is_safe() {
        // what a macro or a set block of this chart has written, through this same function
        return out.write_str(value.as_str().unwrap_or_default()).map_err(Error::from);
    }
    let json = serde_json::to_string(value)
        .map_err(|error| Error::new(ErrorKind::BadSerialization, "the value has no JSON form").with_source(error))?;
    for c in json.chars() {
        if printable(c) { out.write_char(c) } else { escape(out, c) }.map_err(Error::from)?;
    }
    Ok(())
}

/// Whether a character may stand unescaped in a double-quoted YAML scalar and means itself there. Line separators do not: YAML 1.1
/// readers fold them.
fn printable(c: char) -> bool {
    matches!(c, ' '..='~' | '\u{a0}'..='\u{2027}' | '\u{202a}'..='\u{d7ff}' | '\u{e000}'..='\u{fefe}' | '\u{ff00}'..='\u{fffd}' | '\u{10000}'..)
}

fn escape(out: &mut Output, c: char) -> std::fmt::Result {
    write!(out, "\\u{:04x}", u32::from(c)) // everything unprintable lies in the basic plane
}

/// A buffer that refuses to grow beyond the limit.
#[derive(Default)]
pub(super) struct Limited {
    /// What was written.
    pub(super) bytes: Vec<u8>,
    /// Whether something was refused.
    pub(super) full: bool,
}

impl io::Write for Limited {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > OUTPUT_LIMIT {
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
