//! A fragment for the kernel's configuration: what the plan says only another kernel can do, and
//! what else the running kernel's build lacks.

use super::{
    format::{Exported, Format, Missed, OutFile, Source},
    text,
};

/// The fragment's name.
pub(super) const FRAGMENT: &str = "rtproof.config";

pub(super) const KCONFIG: Format = Format {
    id: "kconfig",
    title: "a fragment of the kernel's configuration",
    usage: "In the kernel's tree: `scripts/kconfig/merge_config.sh .config rtproof.config`, then \
         build. merge_config.sh says which lines did not make it: options of other kernels or \
         architectures, or whose dependencies are not met.\n\n\
         This export is about the kernel's build alone; values, units and boot parameters are in the \
         other formats.",
    write,
};

fn write(source: &Source<'_>) -> Exported {
    let (fragment, mut missed) = fragment(source, KCONFIG.id);
    let (changes, words) = (source.plan.steps.len(), source.plan.boot.len());
    if changes + words > 0 {
        missed.push(Missed {
            what: format!(
                "{} and {} for the command line",
                rtproof_judge::units::count(changes, "change"),
                rtproof_judge::units::count(words, "word")
            ),
            why: "this format is about the kernel's build alone; take another for them".into(),
        });
    }
    Exported { files: vec![OutFile::new(FRAGMENT, fragment)], missed }
}

/// An option of the fragment: its value, and the lines of its comment.
struct Line {
    name: String,
    value: String,
    reasons: Vec<String>,
}

/// The fragment, each option once with all its reasons; and what no line can say.
pub(super) fn fragment(source: &Source<'_>, format: &str) -> (String, Vec<Missed>) {
    let mut missed = Vec::new();
    let mut lines: Vec<Line> = Vec::new();
    for (option, reason) in asked(source) {
        let miss = |why: &str| Missed { what: text::one_line(option), why: why.into() };
        let Some((name, value)) =
            option.split_once('=').filter(|(name, value)| is_name(name) && is_value(value))
        else {
            missed.push(miss("it is not NAME=value of the kernel's configuration"));
            continue;
        };
        match lines.iter_mut().find(|line| line.name == name) {
            None => {
                let (name, value) = (name.to_owned(), value.to_owned());
                lines.push(Line { name, value, reasons: vec![reason] });
            }
            Some(line) if line.value == value => {
                if !line.reasons.contains(&reason) {
                    line.reasons.push(reason);
                }
            }
            Some(line) => {
                missed.push(miss(&format!("another reason wants {name}={}", line.value)));
            }
        }
    }
    let mut text = text::head(source, format);
    if source.build.is_none() {
        text += "# The configuration of the running kernel cannot be read: what it lacks besides \
                 is not known.\n";
    } else if lines.is_empty() {
        text += "# The running kernel is built with all that is asked of it.\n";
    }
    let mut last: Vec<String> = Vec::new();
    for Line { name, value, reasons } in lines {
        if reasons != last {
            for reason in &reasons {
                text += &format!("\n# {reason}");
            }
            text.push('\n');
            last = reasons;
        }
        text += &match value.as_str() {
            "n" => format!("# CONFIG_{name} is not set\n"),
            value => format!("CONFIG_{name}={value}\n"),
        };
    }
    (text, missed)
}

/// What the plan asks for, with its reasons, then what the build lacks besides.
fn asked<'a>(source: &Source<'a>) -> Vec<(&'a str, String)> {
    let build = source.build.unwrap_or_default();
    let is_known = |option: &str| build.iter().any(|known| known.option == option);
    let of_plan = source.plan.instructions.iter().flat_map(|instruction| {
        let options = instruction.build_options.iter().filter(|option| !is_known(option));
        options.map(|option| (option.as_str(), text::why(&instruction.reason)))
    });
    let of_build = build.iter().map(|it| {
        let reason = format!("{}: {}. Source: {}.", it.check, it.why, it.source);
        (it.option.as_str(), text::one_line(&reason))
    });
    of_plan.chain(of_build).collect()
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
    let is_string = inner.is_some_and(|text| text::is_line(text) && !text.contains(['"', '\\']));
    matches!(value, "y" | "m" | "n") || number.parse::<u64>().is_ok() || is_hex || is_string
}
