//! A fragment for the kernel's configuration: what the plan says only another kernel can do.

use std::collections::BTreeMap;

use rtproof_judge::plan::Instruction;

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
            what: format!("{changes} changes and {words} words for the command line"),
            why: "this format is about the kernel's build alone; take another for them".into(),
        });
    }
    Exported { files: vec![OutFile::new(FRAGMENT, fragment)], missed }
}

/// The fragment, each option once with all its reasons; and what no line can say.
pub(super) fn fragment(source: &Source<'_>, format: &str) -> (String, Vec<Missed>) {
    let mut missed = Vec::new();
    let mut options: BTreeMap<&str, (&str, Vec<&Instruction>)> = BTreeMap::new();
    let mut order: Vec<&str> = Vec::new();
    for instruction in &source.plan.instructions {
        for option in &instruction.build_options {
            let miss = |why: &str| Missed { what: text::one_line(option), why: why.into() };
            let Some((name, value)) =
                option.split_once('=').filter(|(name, value)| is_name(name) && is_value(value))
            else {
                missed.push(miss("it is not NAME=value of the kernel's configuration"));
                continue;
            };
            match options.get_mut(name) {
                None => {
                    order.push(name);
                    options.insert(name, (value, vec![instruction]));
                }
                Some((other, reasons)) if *other == value => reasons.push(instruction),
                Some((other, _)) => {
                    missed.push(miss(&format!("another reason wants {name}={other}")));
                }
            }
        }
    }
    let mut text = text::head(source, format);
    if order.is_empty() {
        text += "# The plan asks nothing of the kernel's build.\n";
    }
    let mut last: Vec<String> = Vec::new();
    for name in order {
        let (value, reasons) = &options[name];
        let why: Vec<String> =
            reasons.iter().map(|reason| format!("\n# {}", text::why(&reason.reason))).collect();
        if why != last {
            text += &format!("{}\n", why.concat());
            last = why;
        }
        text += &match *value {
            "n" => format!("# CONFIG_{name} is not set\n"),
            value => format!("CONFIG_{name}={value}\n"),
        };
    }
    (text, missed)
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
