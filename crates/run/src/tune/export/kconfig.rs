//! A fragment for the kernel's configuration: what the plan says only another kernel can do, and
//! what else the running kernel's build lacks.

use crate::kernel::fragment;

use super::{
    format::{Exported, Format, Missed, OutFile, Source},
    text,
};

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

/// The fragment, each option once with all its reasons; and what no line can say.
pub(super) fn fragment(source: &Source<'_>, format: &str) -> (String, Vec<Missed>) {
    let asked = asked(source).into_iter().map(|(option, reason)| (option.to_owned(), reason));
    let (lines, missed) = fragment::lines(asked.collect());
    let mut text = text::head(source, format);
    if source.build.is_none() {
        text += "# The configuration of the running kernel cannot be read: what it lacks besides \
                 is not known.\n";
    } else if lines.is_empty() {
        text += "# The running kernel is built with all that is asked of it.\n";
    }
    text += &fragment::text(&lines);
    let missed =
        missed.into_iter().map(|(option, why)| Missed { what: text::one_line(&option), why });
    (text, missed.collect())
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
