// SPDX-License-Identifier: Apache-2.0
//! Parses and adds Kubernetes quantities: `10Gi`, `500M`, `1.5Ti`, `1e9`.

/// An amount, in billionths: the smallest unit of Kubernetes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Quantity(i128);

/// Billionths of one.
const ONE: i128 = 1_000_000_000;
/// Digits behind the point that billionths have.
const FRACTION: usize = 9;

impl Quantity {
    /// One object.
    pub(super) const ONE: Self = Self(ONE);

    /// Reads an amount; `None` for a text that is none.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let end = text.find(|c: char| !c.is_ascii_digit() && !"+-.".contains(c)).unwrap_or(text.len());
        let (number, suffix) = text.split_at(end);
        let number = decimal(number)?;
        let scaled = match scale(suffix) {
            Some((base, power)) if power >= 0 => number.checked_mul(base.checked_pow(power.unsigned_abs())?)?,
            Some((base, power)) => number.checked_div(base.checked_pow(power.unsigned_abs())?)?,
            None => return None,
        };
        Some(Self(scaled))
    }

    /// Both together; the largest amount where they are too large.
    pub(super) fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

/// A decimal number in billionths.
fn decimal(text: &str) -> Option<i128> {
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let padded = format!("{fraction:0<FRACTION$}");
    let digits = format!("{whole}{}", padded.get(..FRACTION)?);
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_digits(&digits) || !is_digits(fraction) {
        return None;
    }
    let value: i128 = digits.parse().ok()?;
    Some(if is_negative { -value } else { value })
}

/// What a suffix multiplies by, as base and power.
fn scale(suffix: &str) -> Option<(i128, i32)> {
    const BINARY: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    const DECIMAL: [(&str, i32); 10] = [
        ("n", -9),
        ("u", -6),
        ("m", -3),
        ("", 0),
        ("k", 3),
        ("M", 6),
        ("G", 9),
        ("T", 12),
        ("P", 15),
        ("E", 18),
    ];
    let binary = BINARY.iter().zip(1..).find(|(name, _)| **name == suffix);
    let binary = binary.map(|(_, power)| (1024, power));
    let decimal = DECIMAL.iter().find(|(name, _)| *name == suffix).map(|(_, power)| (10, *power));
    let exponent = || Some((10, suffix.strip_prefix(['e', 'E'])?.parse().ok()?));
    binary.or(decimal).or_else(exponent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantity_is_read_in_every_form_of_kubernetes() {
        for (text, billionths) in [
            ("5", Some(5 * ONE)),
            ("+5", Some(5 * ONE)),
            ("-5", Some(-5 * ONE)),
            ("0.5", Some(ONE / 2)),
            (".5", Some(ONE / 2)),
            ("1.", Some(ONE)),
            ("500m", Some(ONE / 2)),
            ("1u", Some(1000)),
            ("1n", Some(1)),
            ("1k", Some(1000 * ONE)),
            ("1Ki", Some(1024 * ONE)),
            ("1.5Gi", Some((3 << 29) * ONE)),
            ("1e3", Some(1000 * ONE)),
            ("1E3", Some(1000 * ONE)),
            ("1e-3", Some(ONE / 1000)),
            ("1E", Some(1_000_000_000_000_000_000 * ONE)),
            ("8Ei", Some((8 << 60) * ONE)),
            ("", None),
            ("-", None),
            (".", None),
            ("1.2.3", None),
            ("1-2", None),
            ("Gi", None),
            ("1Zi", None),
            ("1e", None),
            ("1e99999", None),
            ("999999999999999999999999999999999999999Ei", None),
        ] {
            assert_eq!(Quantity::parse(text), billionths.map(Quantity), "{text}");
        }
    }

    #[test]
    fn quantities_compare_by_amount() {
        let read = |text| Quantity::parse(text).expect("a quantity");
        assert_eq!(read("10Gi"), read("10240Mi"));
        assert!(read("10G") < read("10Gi") && read("9Gi").plus(read("2Gi")) > read("10Gi"));
        assert_eq!(read("9Gi").plus(read("1Gi")), read("10Gi"));
    }
}
