//! Options of a kernel's build as a fragment of its configuration: each once, with all its reasons.
//! `tune export` and `kernel config` write the same.

/// An option of the fragment: its value, and the lines of its comment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FragmentLine {
    pub name: String,
    /// `n`: not set.
    pub value: String,
    /// Why, one line each.
    pub reasons: Vec<String>,
}

/// Each option once; and the options that no line can express, with the reason.
pub fn lines(asked: Vec<(String, String)>) -> (Vec<FragmentLine>, Vec<(String, String)>) {
    let mut missed = Vec::new();
    let mut lines: Vec<FragmentLine> = Vec::new();
    for (option, reason) in asked {
        let Some((name, value)) =
            option.split_once('=').filter(|(name, value)| is_name(name) && is_value(value))
        else {
            missed.push((option, "it is not NAME=value of the kernel's configuration".into()));
            continue;
        };
        match lines.iter_mut().find(|line| line.name == name) {
            None => {
                let (name, value) = (name.to_owned(), value.to_owned());
                lines.push(FragmentLine { name, value, reasons: vec![reason] });
            }
            Some(line) if line.value == value => {
                if !line.reasons.contains(&reason) {
                    line.reasons.push(reason);
                }
            }
            Some(line) => {
                let why = format!("another reason wants {name}={}", line.value);
                missed.push((option, why));
            }
        }
    }
    (lines, missed)
}

/// The lines as text, a comment before each group of one reason.
pub fn text(lines: &[FragmentLine]) -> String {
    let mut text = String::new();
    let mut last: &[String] = &[];
    for FragmentLine { name, value, reasons } in lines {
        if reasons != last {
            for reason in reasons {
                text += &format!("\n# {reason}");
            }
            text.push('\n');
            last = reasons;
        }
        text += &setting(name, value);
    }
    text
}

/// One option as a configuration has it, with the end of its line.
pub(crate) fn setting(name: &str, value: &str) -> String {
    match value {
        "n" => format!("# CONFIG_{name} is not set\n"),
        value => format!("CONFIG_{name}={value}\n"),
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
}

/// y, m, n, a number, or a string in its quotes.
fn is_value(value: &str) -> bool {
    let number = value.strip_prefix('-').unwrap_or(value);
    let is_hex = number.strip_prefix("0x").is_some_and(|hex| u64::from_str_radix(hex, 16).is_ok());
    let inner = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    let is_string = inner
        .is_some_and(|text| !text.chars().any(char::is_control) && !text.contains(['"', '\\']));
    matches!(value, "y" | "m" | "n") || number.parse::<u64>().is_ok() || is_hex || is_string
}
