//! What a file has to say once a value is written: a regular expression, the same for grep -E and
//! for Python, because the kernel shows many values otherwise than they were written.

use rtproof_host::{
    CpuList,
    tune::{Compare, State},
};

/// An extended regular expression for the text as read, white space at the ends cut off. With `!`
/// in front it must not match.
pub(super) fn expression(value: &str, compare: Compare) -> String {
    let exact = |text: &str| format!("^{}$", escape(text.trim()));
    let word = |word: &str| format!("(^|[[:space:]]){}([[:space:]]|$)", escape(word));
    match compare {
        Compare::Text => exact(value),
        Compare::Number => number(value).unwrap_or_else(|| exact(value)),
        Compare::CpuList => match CpuList::parse(value.trim(), None) {
            Ok(cpus) => exact(&cpus.to_string()),
            Err(_) => exact(value),
        },
        Compare::CpuMask => mask(value),
        Compare::Choice => {
            let value = escape(value.trim());
            format!(r"\[{value}\]|^{value}$")
        }
        Compare::Word => word(value),
        Compare::Controller => match value.strip_prefix('-') {
            Some(name) => format!("!{}", word(name)),
            None => word(value.trim_start_matches('+')),
        },
    }
}

/// The same for Python, which has no classes with names.
pub(super) fn python(expression: &str) -> String {
    expression.replace("[[:space:]]", r"\s")
}

/// What undoes a value that is not the whole file; empty where the old text does.
pub(super) fn reverse(value: &str, compare: Compare) -> String {
    match compare {
        Compare::Word => match value.strip_prefix("NO_") {
            Some(feature) => feature.to_owned(),
            None => format!("NO_{value}"),
        },
        Compare::Controller => match value.strip_prefix('-') {
            Some(name) => format!("+{name}"),
            None => format!("-{}", value.trim_start_matches('+')),
        },
        _ => String::new(),
    }
}

/// What to write to have the old value again, where it is known and text.
pub(super) fn old(before: &State, value: &str, compare: Compare) -> Option<String> {
    let State::Value { bytes, .. } = before else { return None };
    let text = std::str::from_utf8(&bytes.0).ok()?.trim();
    let reverse = reverse(value, compare);
    if !reverse.is_empty() {
        return Some(reverse);
    }
    let chosen = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    let text = chosen.map_or(text, |(chosen, _)| chosen);
    super::text::is_line(text).then(|| text.to_owned())
}

fn escape(text: &str) -> String {
    let quoted = |c: char| match c {
        '\\' | '.' | '[' | ']' | '(' | ')' | '{' | '}' | '*' | '+' | '?' | '^' | '$' | '|' => {
            format!("\\{c}")
        }
        // The kernel separates with tabs what was written with blanks.
        ' ' | '\t' => "[[:space:]]+".into(),
        c => c.to_string(),
    };
    text.chars().map(quoted).collect()
}

fn number(value: &str) -> Option<String> {
    let value = value.trim();
    let number: i64 = match value {
        "Y" | "y" => 1,
        "N" | "n" => 0,
        _ => match value.strip_prefix("0x") {
            Some(hex) => i64::from_str_radix(hex, 16).ok()?,
            None => value.parse().ok()?,
        },
    };
    Some(match number {
        0 => "^(0|0x0+|N|n)$".into(),
        1 => "^(1|0x0*1|Y|y)$".into(),
        ..0 => format!("^{number}$"),
        _ => format!("^({number}|0x0*{number:x})$"),
    })
}

/// Digits with commas and zeros anywhere the kernel may put them.
fn mask(value: &str) -> String {
    let digits: String = value.trim().trim_start_matches("0x").replace(',', "");
    let digits = digits.trim_start_matches('0').to_ascii_lowercase();
    if digits.is_empty() {
        return "^[0,]+$".into();
    }
    let spread: Vec<String> = digits.chars().map(|digit| escape(&digit.to_string())).collect();
    format!("^[0,]*{}$", spread.join(",?"))
}

#[cfg(test)]
mod tests {
    use rtproof_host::tune::Bytes;

    use super::*;

    #[test]
    fn values_are_known_again() {
        let is = |value, compare| expression(value, compare);
        assert_eq!(is("performance", Compare::Text), "^performance$");
        assert_eq!(is("4 4 1 7", Compare::Text), "^4[[:space:]]+4[[:space:]]+1[[:space:]]+7$");
        assert_eq!(is("-1", Compare::Number), "^-1$");
        assert_eq!(is("0", Compare::Number), "^(0|0x0+|N|n)$");
        assert_eq!(is("16", Compare::Number), "^(16|0x0*10)$");
        assert_eq!(is("0,1,2", Compare::CpuList), "^0-2$");
        assert_eq!(is("0x3", Compare::CpuMask), "^[0,]*3$");
        assert_eq!(is("never", Compare::Choice), r"\[never\]|^never$");
        assert_eq!(is("-cpuset", Compare::Controller), "!(^|[[:space:]])cpuset([[:space:]]|$)");
    }

    #[test]
    fn the_old_value_is_what_can_be_written() {
        let state = |text: &str| State::Value { bytes: Bytes::from(text), couples: Vec::new() };
        let old = |text, value, compare| old(&state(text), value, compare);
        let choice = old("always [madvise] never\n", "never", Compare::Choice);
        assert_eq!(choice.as_deref(), Some("madvise"));
        assert_eq!(old("60\n", "10", Compare::Number).as_deref(), Some("60"));
        assert_eq!(old("A B\n", "NO_A", Compare::Word).as_deref(), Some("A"));
        assert_eq!(old("cpu\n", "+cpuset", Compare::Controller).as_deref(), Some("-cpuset"));
        assert_eq!(super::old(&State::Absent, "1", Compare::Number), None);
    }
}
