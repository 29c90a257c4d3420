//! NOTES.md of an export: how to use it, what is not in it, and what is left for a human.

use super::{
    boot::Words,
    format::{Format, Missed, OutFile, Source},
    text,
};

pub(super) fn write(format: &Format, source: &Source<'_>, missed: &[Missed]) -> OutFile {
    let plan = source.plan;
    let head = text::head(source, format.id).replace("# ", "");
    let mut notes = format!("# rtproof: {}\n\n{head}\n## Use\n\n{}\n", format.title, format.usage);
    let mut list = |title: &str, lines: Vec<String>| {
        if !lines.is_empty() {
            notes += &format!("\n## {title}\n\n");
            notes.extend(lines.iter().map(|line| format!("- {}\n", text::one_line(line))));
        }
    };
    let of_missed = |missed: &Missed| format!("{}: {}", missed.what, missed.why);
    list("Not in this export", missed.iter().map(of_missed).collect());
    let words = Words::of(source);
    let mut boot: Vec<String> = Vec::new();
    if !words.added.is_empty() {
        boot.push(format!("add: `{}`", words.text()));
    }
    boot.extend(words.removed.iter().map(|(name, _)| format!("take away first: every `{name}`")));
    if !boot.is_empty() {
        boot.push(
            "GRUB on Fedora and RHEL: `grubby --update-kernel=ALL --args='...'`; systemd-boot and \
             UKI: /etc/kernel/cmdline; extlinux: the APPEND line; Raspberry Pi: cmdline.txt, all on \
             one line. A machine with rtproof: `rtproof tune trial`, which falls back by itself"
                .into(),
        );
    }
    list("Words for the kernel's command line", boot);
    let human = plan
        .instructions
        .iter()
        .map(|instruction| format!("{} ({})", instruction.text, text::why(&instruction.reason)));
    list("Only a human can do", human.collect());
    let left_out = plan.left_out.iter().map(|left| format!("{}: {}", left.check, left.why));
    list("Not in the plan", left_out.collect());
    OutFile::new("NOTES.md", notes)
}
