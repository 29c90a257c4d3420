//! Numbers and lists of the sentences.

use super::table::Unit;
use crate::quantity;

/// A value with its unit.
pub(super) fn value(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Ns => quantity::ns(value.max(0.0).round() as u64),
        Unit::Share => quantity::probability(value),
        Unit::Number => format!("{value:.2}"),
    }
}

/// From one value to another, the unit once where it is the same: `55 → 57 µs`.
pub(super) fn arrow(from: f64, to: f64, unit: Unit) -> String {
    let (from, to) = (value(from, unit), value(to, unit));
    match (from.split_once(' '), to.split_once(' ')) {
        (Some((number, one)), Some((_, other))) if one == other => format!("{number} → {to}"),
        _ => format!("{from} → {to}"),
    }
}

/// A ratio as a change: 0.8 is `−20 %`.
pub(super) fn signed(ratio: f64) -> String {
    let change = 100.0 * (ratio - 1.0);
    if change > 1000.0 {
        return format!("{ratio:.0} times");
    }
    let text = if change.abs() < 9.95 {
        format!("{:.1}", change.abs())
    } else {
        format!("{:.0}", change.abs())
    };
    match text.as_str() {
        "0.0" => "0 %".into(),
        _ if change < 0.0 => format!("−{text} %"),
        _ => format!("+{text} %"),
    }
}

/// A share: 0.05 is `5 %`; above tenfold it is a factor.
pub(super) fn percent(share: f64) -> String {
    let text = match 100.0 * share {
        percent if percent > 1000.0 => return format!("{:.0} times", 1.0 + share),
        percent if percent >= 20.0 => format!("{percent:.0}"),
        percent => format!("{percent:.1}"),
    };
    format!("{} %", text.strip_suffix(".0").unwrap_or(&text))
}

pub(super) fn p_value(p: f64) -> String {
    match p {
        p if p < 0.0001 => "below 0.0001".into(),
        p if p < 0.01 => format!("{p:.4}"),
        p => format!("{p:.2}"),
    }
}

/// `a`, `a and b`, `a, b and c`.
pub(super) fn list(parts: &[String], word: &str) -> String {
    match parts {
        [] => String::new(),
        [one] => one.clone(),
        [some @ .., last] => format!("{} {word} {last}", some.join(", ")),
    }
}
