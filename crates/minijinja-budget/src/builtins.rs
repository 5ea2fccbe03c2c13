//! What templates can call: few things, each at most as large as what it was given, and that is measured (`metered.rs`).

use crate::budget::Budget;
use minijinja::value::{Value, ValueKind};
use minijinja::{Environment, Error, ErrorKind, filters, tests};

/// The longest range. A manifest counts replicas, not atoms.
const RANGE: i64 = 10_000;

/// Adds the filters, tests and functions of the language, and the meter's own.
pub(crate) fn add(environment: &mut Environment<'_>, budget: &Budget) {
    let shared = budget.clone();
    environment.add_function("__m", move |value: Value| shared.weigh(&value).map(|()| value));
    environment.add_function("__n", |value: Value| match value.kind() {
        ValueKind::Number | ValueKind::None => Ok(value),
        kind => Err(Error::new(
            ErrorKind::InvalidOperation,
            format!("only numbers can be calculated with, this is a {kind}"),
        )),
    });
    let shared = budget.clone();
    environment.add_filter("__raw", move |text: String| {
        shared.charge(text.len()).map(|()| Value::from_safe_string(text))
    });
    let shared = budget.clone();
    environment.add_function("range", move |first: i64, second: Option<i64>, step: Option<i64>| {
        range(&shared, first, second, step)
    });

    environment.add_filter("bool", filters::bool);
    environment.add_filter("count", filters::length);
    environment.add_filter("d", filters::default);
    environment.add_filter("default", filters::default);
    environment.add_filter("first", filters::first);
    environment.add_filter("float", filters::float);
    environment.add_filter("int", filters::int);
    environment.add_filter("items", filters::items);
    environment.add_filter("last", filters::last);
    environment.add_filter("length", filters::length);
    environment.add_filter("lower", filters::lower);
    environment.add_filter("max", filters::max);
    environment.add_filter("min", filters::min);
    environment.add_filter("trim", filters::trim);
    environment.add_filter("upper", filters::upper);
    environment.add_filter("text", text);
    let shared = budget.clone();
    environment.add_filter("join", move |value: Value, separator: Option<String>| {
        join(&shared, &value, &separator.unwrap_or_default())
    });
    let shared = budget.clone();
    environment.add_filter("list", move |value: Value| list(&shared, &value));
    let shared = budget.clone();
    environment.add_filter("replace", move |text: String, from: String, to: String| {
        let places = if from.is_empty() {
            text.len() + 1
        } else {
            text.matches(&from).count()
        };
        shared.charge(text.len().saturating_add(places.saturating_mul(to.len())))?;
        Ok::<_, Error>(text.replace(&from, &to))
    });
    let shared = budget.clone();
    environment.add_filter("split", move |text: String, separator: Option<String>| {
        split(&shared, &text, separator.as_deref())
    });

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
fn text(value: Value) -> Result<String, Error> {
    match serde_json::to_value(&value) {
        Ok(serde_json::Value::String(text)) => Ok(text),
        Ok(scalar @ (serde_json::Value::Bool(_) | serde_json::Value::Number(_))) => Ok(scalar.to_string()),
        _ => Err(Error::new(
            ErrorKind::InvalidOperation,
            "only a string, number or boolean has a text form",
        )),
    }
}

fn range(budget: &Budget, first: i64, second: Option<i64>, step: Option<i64>) -> Result<Vec<i64>, Error> {
    let (from, to) = second.map_or((0, first), |second| (first, second));
    let step = step.unwrap_or(1);
    let wrong = |message: &str| Error::new(ErrorKind::InvalidOperation, message.to_owned());
    if step == 0 {
        return Err(wrong("the step of a range cannot be 0"));
    }
    let mut numbers = Vec::new();
    let mut next = Some(from);
    while let Some(number) = next.filter(|number| if step > 0 { *number < to } else { *number > to }) {
        if numbers.len() as u64 >= RANGE.unsigned_abs() {
            return Err(wrong("a range has at most 10000 numbers"));
        }
        numbers.push(number);
        next = number.checked_add(step);
    }
    budget.charge(numbers.len() * 32)?;
    Ok(numbers)
}

fn join(budget: &Budget, value: &Value, separator: &str) -> Result<String, Error> {
    let mut text = String::new();
    for (index, item) in value.try_iter()?.enumerate() {
        let scalar = matches!(item.kind(), ValueKind::String | ValueKind::Number | ValueKind::Bool);
        if !scalar {
            return Err(Error::new(
                ErrorKind::InvalidOperation,
                "only strings, numbers and booleans can be joined",
            ));
        }
        let word = match item.as_str() {
            Some(word) => word.to_owned(),
            None => serde_json::to_string(&item).unwrap_or_default(),
        };
        let between = if index == 0 { "" } else { separator };
        budget.charge(between.len() + word.len())?;
        text.push_str(between);
        text.push_str(&word);
    }
    Ok(text)
}

fn list(budget: &Budget, value: &Value) -> Result<Vec<Value>, Error> {
    let mut items = Vec::new();
    for item in value.try_iter()? {
        budget.charge(32)?;
        items.push(item);
    }
    Ok(items)
}

fn split(budget: &Budget, text: &str, separator: Option<&str>) -> Result<Vec<Value>, Error> {
    let mut parts = Vec::new();
    let mut add = |part: &str| {
        budget.charge(32 + part.len())?;
        parts.push(Value::from(part));
        Ok::<_, Error>(())
    };
    match separator {
        None => text.split_whitespace().try_for_each(&mut add)?,
        Some(separator) => text.split(separator).try_for_each(&mut add)?,
    }
    Ok(parts)
}
