//! A plan in the formats of other tools: tuned, Ansible, systemd, kernel
//! configuration, Yocto, Buildroot.
//!
//! Pure: from a plan to files. What a format cannot say is never dropped: it is in the list of the
//! answer and in the NOTES.md of the export.

mod ansible;
mod images;
mod layout;
#[cfg(test)]
mod tests;
mod tree;

use std::collections::BTreeMap;

use rtproof_host::{
    CpuList,
    tune::{Change, Compare, State},
};
use rtproof_judge::{
    plan::{BootWord, BuildOption, Plan, Reason},
    units,
};

/// Every format. The list is the order of `--help`.
pub const FORMATS: &[ExportFormat] = &[
    ansible::TUNED,
    ansible::ANSIBLE,
    tree::SYSTEMD,
    images::KCONFIG,
    images::YOCTO,
    images::BUILDROOT,
];

/// Why there is no export.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TuneExportError {
    /// No such format: what was requested, and what there is.
    #[error("--format {0}: there is {1}")]
    UnknownFormat(String, String),
    /// The plan contradicts itself: what is contested.
    #[error(
        "{0}: the plan wants two different things of it; `rtproof tune plan` shows which checks, \
         leave one of them out"
    )]
    Conflicts(String),
}

/// The format of that name.
///
/// # Errors
/// When there is none; the text lists what there is.
pub fn format(id: &str) -> Result<&'static ExportFormat, TuneExportError> {
    let ids = || FORMATS.iter().map(|format| format.id).collect::<Vec<_>>().join(", ");
    let found = FORMATS.iter().find(|format| format.id == id);
    found.ok_or_else(|| TuneExportError::UnknownFormat(id.into(), ids()))
}

/// Translates a plan, and adds NOTES.md: how to use it, and what is not in it.
///
/// # Errors
/// When the plan contradicts itself.
pub fn export(
    format: &ExportFormat,
    source: &ExportSource<'_>,
) -> Result<Exported, TuneExportError> {
    let conflicts = source.plan.conflicts.iter();
    let targets: Vec<&str> = conflicts.map(|conflict| conflict.target.as_str()).collect();
    if !targets.is_empty() {
        return Err(TuneExportError::Conflicts(targets.join(", ")));
    }
    let mut exported = (format.write)(source);
    exported.files.push(write_notes(format, source, &exported.missed));
    Ok(exported)
}

// Words of the kernel's command line for boot loaders' files, each word whole and quoted right.

/// The words of a plan, sorted.
#[derive(Debug, Default)]
struct ExportWords<'a> {
    pub added: Vec<&'a BootWord>,
    /// Names of which every word is taken away first.
    pub removed: Vec<(&'a str, &'a BootWord)>,
    /// Words that a boot loader's file would not take as they are.
    pub missed: Vec<NotExported>,
}

impl<'a> ExportWords<'a> {
    /// Sorts the words of a plan.
    fn of(source: &ExportSource<'a>) -> Self {
        let mut words = Self::default();
        for word in &source.plan.boot {
            // Blanks part words; $ ; & | < > { } quotes and backslashes are GRUB's own.
            let is_safe = |c: char| c.is_ascii_alphanumeric() || "_.,:=@/+%-~^!".contains(c);
            if word.parameter.is_empty() || !word.parameter.chars().all(is_safe) {
                words.missed.push(NotExported {
                    what: format!("boot word {}", one_line(&word.parameter)),
                    why: "it has characters that boot loaders read as their own; add it by hand"
                        .into(),
                });
                continue;
            }
            let name = word.parameter.split('=').next().unwrap_or(&word.parameter);
            if word.removes {
                words.removed.push((name, word));
            }
            // The name of a parameter alone takes it away.
            if !word.removes || word.parameter.contains('=') {
                words.added.push(word);
            }
        }
        words
    }

    fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty()
    }

    /// The words to have, blanks between.
    fn text(&self) -> String {
        let words: Vec<&str> = self.added.iter().map(|word| word.parameter.as_str()).collect();
        words.join(" ")
    }

    /// Why, a comment a word.
    fn comments(&self) -> String {
        let added =
            self.added.iter().map(|word| format!("# {}: {}\n", word.parameter, why(&word.reason)));
        let removed = self.removed.iter().map(|(name, word)| {
            format!("# every {name} that was there goes: {}\n", why(&word.reason))
        });
        removed.chain(added).collect()
    }

    /// What a pattern of `case` has to match to take the removed words away.
    fn removed_pattern(&self) -> Option<String> {
        let names: Vec<String> = self.removed.iter().map(|(name, _)| either(name)).collect();
        (!names.is_empty()).then(|| names.join(" | "))
    }

    /// A file for /etc/default/grub.d, which the shell reads: the words after those that are there,
    /// a blank between, whatever the variable held.
    fn grub(&self, source: &ExportSource<'_>, format: &str) -> Option<String> {
        if self.is_empty() {
            return None;
        }
        let mut file = file_head(source, format) + &self.comments();
        if let Some(pattern) = self.removed_pattern() {
            file += &format!(
                "rtproof_without() (\n    set -f\n    kept=\n    for word in $1; do\n        \
                 case \"$word\" in\n        {pattern}) ;;\n        *) kept=\"${{kept:+$kept }}$word\" \
                 ;;\n        esac\n    done\n    printf '%s' \"$kept\"\n)\n"
            );
            for variable in ["GRUB_CMDLINE_LINUX", "GRUB_CMDLINE_LINUX_DEFAULT"] {
                file += &format!("{variable}=\"$(rtproof_without \"${{{variable}:-}}\")\"\n");
            }
        }
        if !self.added.is_empty() {
            file += &format!(
                "GRUB_CMDLINE_LINUX_DEFAULT=\"${{GRUB_CMDLINE_LINUX_DEFAULT}} {}\"\n",
                self.text()
            );
        }
        Some(file)
    }
}

/// A parameter with and without value, as the kernel reads names: - and _ are one.
fn either(name: &str) -> String {
    let class = |c: char| if "-_".contains(c) { "[-_]".to_owned() } else { c.to_string() };
    let name: String = name.chars().map(class).collect();
    format!("{name} | {name}=*")
}

// What a format is, what it translates and what it gives.

/// A format of `tune export`.
#[derive(Clone, Copy, Debug)]
pub struct ExportFormat {
    /// As `--format` takes it.
    pub id: &'static str,
    /// What it gives, in one line.
    pub title: &'static str,
    /// What to do with the files, for NOTES.md; Markdown.
    usage: &'static str,
    /// Translates a plan without conflicts.
    write: fn(&ExportSource<'_>) -> Exported,
}

/// A plan, and what an export says about where it comes from.
#[derive(Clone, Copy, Debug)]
pub struct ExportSource<'a> {
    pub plan: &'a Plan,
    /// The machine in a few words, e.g. `Linux 6.12.0-rt x86_64`.
    pub machine: &'a str,
    /// CPUs that the plan keeps free for real-time work.
    pub realtime: &'a CpuList,
    pub housekeeping: &'a CpuList,
    /// What the kernel's build lacks; `None`: that is not known.
    pub build: Option<&'a [BuildOption]>,
    /// What was there before, by [`Change::target`], where it is known.
    pub before: &'a BTreeMap<String, State>,
}

impl ExportSource<'_> {
    /// What was there before a change, where it is known.
    fn before(&self, change: &Change) -> Option<&State> {
        self.before.get(&change.target())
    }
}

/// One file of an export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutFile {
    /// Path in the folder of the export, without a slash in front.
    pub path: String,
    pub content: String,
    pub mode: u32,
}

impl OutFile {
    fn new(path: impl Into<String>, content: impl Into<String>) -> Self {
        Self { path: path.into(), content: content.into(), mode: 0o644 }
    }

    fn program(path: impl Into<String>, content: impl Into<String>) -> Self {
        Self { path: path.into(), content: content.into(), mode: 0o755 }
    }
}

/// Something of the plan that a format cannot say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotExported {
    /// What, as a plan names it.
    pub what: String,
    /// Why not, and what to do instead.
    pub why: String,
}

/// What an export gives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exported {
    /// Files, each path once.
    pub files: Vec<OutFile>,
    /// What is not in them.
    pub missed: Vec<NotExported>,
}

// NOTES.md of an export: how to use it, what is not in it, and what is left for a human.

fn write_notes(
    format: &ExportFormat,
    source: &ExportSource<'_>,
    missed: &[NotExported],
) -> OutFile {
    let plan = source.plan;
    let head = file_head(source, format.id).replace("# ", "");
    let mut notes = format!("# rtproof: {}\n\n{head}\n## Use\n\n{}\n", format.title, format.usage);
    let mut list = |title: &str, lines: Vec<String>| {
        if !lines.is_empty() {
            notes += &format!("\n## {title}\n\n");
            notes.extend(lines.iter().map(|line| format!("- {}\n", one_line(line))));
        }
    };
    let of_missed = |missed: &NotExported| format!("{}: {}", missed.what, missed.why);
    list("Not in this export", missed.iter().map(of_missed).collect());
    let words = ExportWords::of(source);
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
        .map(|instruction| format!("{} ({})", instruction.text, why(&instruction.reason)));
    list("Only a human can do", human.collect());
    let left_out = plan.left_out.iter().map(|left| format!("{}: {}", left.check, left.why));
    list("Not in the plan", left_out.collect());
    OutFile::new("NOTES.md", notes)
}

// What a file has to say once a value is written: a regular expression, the same for grep -E and
// for Python, because the kernel shows many values otherwise than they were written.

/// An extended regular expression for the text as read, white space at the ends cut off. With `!`
/// in front it must not match.
fn expression(value: &str, compare: Compare) -> String {
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
fn python(expression: &str) -> String {
    expression.replace("[[:space:]]", r"\s")
}

/// What undoes a value that is not the whole file; empty where the old text does.
fn reverse(value: &str, compare: Compare) -> String {
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
fn old(before: &State, value: &str, compare: Compare) -> Option<String> {
    let State::Value { bytes, .. } = before else { return None };
    let text = std::str::from_utf8(&bytes.0).ok()?.trim();
    let reverse = reverse(value, compare);
    if !reverse.is_empty() {
        return Some(reverse);
    }
    let chosen = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    let text = chosen.map_or(text, |(chosen, _)| chosen);
    is_line(text).then(|| text.to_owned())
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

// Text in other programs' languages: comments, and words quoted so that they mean themselves.

/// Whether a line of a configuration file can hold it.
fn is_line(text: &str) -> bool {
    !text.chars().any(char::is_control)
}

/// As one line, control characters made blanks.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// The head of a file, as comments: tool, machine.
fn file_head(source: &ExportSource<'_>, format: &str) -> String {
    let mut head = format!(
        "# Made by rtproof {} (rtproof tune export --format {format}); make it anew rather than \
         edit it.\n# For {}",
        env!("CARGO_PKG_VERSION"),
        one_line(source.machine),
    );
    let cpus = |title: &str, cpus: &CpuList| match cpus.is_empty() {
        true => String::new(),
        false => format!("; {title} {}", units::cpus(cpus)),
    };
    head += &cpus("real-time", source.realtime);
    head += &cpus("housekeeping", source.housekeeping);
    head + ".\n"
}

/// Why, as one line: the checks, the reason, what it costs.
fn why(reason: &Reason) -> String {
    let sentence = |text: &str| format!("{}.", text.trim_end_matches('.'));
    let mut text = sentence(&format!("{}: {}", reason.checks.join(", "), reason.why));
    for (name, of) in [("Costs", &reason.trade_off), ("RISK", &reason.risk)] {
        text += &of.as_ref().map_or_else(String::new, |of| format!(" {name}: {}", sentence(of)));
    }
    one_line(&text)
}

/// A word for the shell, as it is where it needs no quotes.
fn shell(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:,+=@%".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// A string for YAML that Ansible takes as it is: JSON's strings are YAML's, and what looks like a
/// template is marked as none.
fn yaml(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    let is_template = ["{{", "{%", "{#"].iter().any(|mark| text.contains(mark));
    if is_template { format!("!unsafe {quoted}") } else { quoted }
}

#[cfg(test)]
mod readback_tests {
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

#[cfg(test)]
mod text_tests {
    use super::*;

    #[test]
    fn words_mean_themselves() {
        assert_eq!(shell("/sys/a-b:0"), "/sys/a-b:0");
        assert_eq!(shell(""), "''");
        assert_eq!(shell("it's $x"), r"'it'\''s $x'");
        assert_eq!(yaml("a\"b: {"), r#""a\"b: {""#);
        assert_eq!(yaml("{{ x }}"), r#"!unsafe "{{ x }}""#);
    }
}
