//! States and contents as text: one line each, of a file the lines that change.

use super::writes::TreeFile;
use super::{PackageState, State, writes};
use crate::CpuList;
use crate::change::{Bytes, Compare, Scheduling};

/// Most lines of one file that are shown.
const LINES_MAX: usize = 12;

/// Permissions of most files.
pub(super) const USUAL_MODE: u32 = 0o644;

const CHARS_MAX: usize = 200;

/// What is there, in one line.
pub(super) fn state(state: &State) -> String {
    match state {
        State::Absent => "not there".into(),
        State::Value { bytes, .. } | State::Hotplug { bytes, .. } => shown(bytes.text().trim_end()),
        State::File { bytes, mode, .. } => with_mode(first_line(bytes), Some(*mode)),
        State::Link { to } => link(to),
        State::Folder => "a folder".into(),
        State::Tree { files } => {
            let is_folder = files.first().is_some_and(TreeFile::is_folder);
            of_tree(is_folder, writes::tree_count(files), writes::tree_bytes(files))
        }
        State::Task { scheduling: now } => scheduling(now, now),
        State::Unit { active, links, .. } => unit(*active, links),
        State::Property { value, .. } => shown(value),
        State::Group { gid, members } => match members.is_empty() {
            true => format!("number {gid}, no members"),
            false => format!("number {gid}, members {}", cut(&members.join(", "))),
        },
        State::Member { is_member: true, .. } => "a member".into(),
        State::Member { is_member: false, .. } => "no member".into(),
        State::Packages { packages } => self::packages(packages),
    }
}

fn packages(all: &[PackageState]) -> String {
    let away = |it: &PackageState| it.status == "not-installed";
    let each = |it: &PackageState| match it.status.as_str() {
        "installed" => format!("{} {}", it.name, it.version),
        "not-installed" => format!("{} not installed", it.name),
        status => format!("{} {} ({status})", it.name, it.version),
    };
    match all {
        [] => "nothing to add".into(),
        all if all.iter().all(away) => "not installed".into(),
        all => cut(&all.iter().map(each).collect::<Vec<_>>().join(", ")),
    }
}

/// `a file of 8.1 MB`, `4121 files, 312.0 MB`.
pub(super) fn of_tree(is_folder: bool, files: usize, bytes: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "one digit is shown")]
    let megabytes = bytes as f64 / 1e6;
    match is_folder {
        true => format!("{files} files, {megabytes:.1} MB"),
        false => format!("a file of {megabytes:.1} MB"),
    }
}

fn link(to: &str) -> String {
    format!("a link to {to}")
}

fn unit(active: bool, links: &[(String, String)]) -> String {
    let runs = if active { "running" } else { "not running" };
    let is_masked = links.iter().any(|(_, to)| to == "/dev/null");
    let is_enabled = links.iter().any(|(path, _)| path.contains(".wants/") || path.contains("/rc"));
    let starts = match (is_masked, is_enabled) {
        (true, _) => "masked",
        (false, true) => "enabled",
        (false, false) => "not enabled",
    };
    format!("{runs}, {starts}")
}

/// The parts of `now` that `set` is about.
pub(super) fn scheduling(now: &Scheduling, set: &Scheduling) -> String {
    let mut parts = Vec::new();
    if set.policy.is_some() || set.priority.is_some() || set.nice.is_some() {
        let policy = now.policy.as_deref().unwrap_or("policy ?");
        let number = match now.priority.or(set.priority.and(now.priority)) {
            Some(priority) if priority > 0 => format!(" {priority}"),
            _ => String::new(),
        };
        parts.push(format!("{policy}{number}"));
    }
    if let Some(nice) = set.nice.and(now.nice) {
        parts.push(format!("nice {nice}"));
    }
    if let Some([runtime, deadline, period]) = set.deadline_ns.and(now.deadline_ns) {
        parts.push(format!("runtime {runtime} ns, deadline {deadline} ns, period {period} ns"));
    }
    if let Some(reset) = set.reset_on_fork.and(now.reset_on_fork) {
        parts.push(format!("reset on fork {}", if reset { "on" } else { "off" }));
    }
    if set.cpus.is_some() {
        parts.push(now.cpus.as_ref().map_or("CPUs ?".into(), CpuList::phrase));
    }
    parts.join(", ")
}

/// A value in one line: "(empty)" for an empty one; a long one is cut.
pub(super) fn shown(value: &str) -> String {
    if value.is_empty() {
        return "(empty)".into();
    }
    let line = value.split_whitespace().collect::<Vec<_>>().join(" ");
    cut(&line)
}

pub(super) fn cut(line: &str) -> String {
    match line.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

/// A file in one line: the line that it has, or how many.
pub(super) fn first_line(bytes: &Bytes) -> String {
    let text = bytes.text();
    match text.lines().count() {
        0 => "an empty file".into(),
        1 => cut(text.trim_end()),
        lines => format!("a file of {lines} lines"),
    }
}

/// A file with its permissions, where they are not the usual ones.
pub(super) fn with_mode(file: String, mode: Option<u32>) -> String {
    match mode.filter(|&mode| mode != USUAL_MODE) {
        Some(mode) => format!("{file} (mode {mode:04o})"),
        None => file,
    }
}

/// The lines of a file that go and that come: what is the same before and after them is left out.
pub(super) fn file(content: Option<&Bytes>, before: Option<&State>) -> (Vec<String>, Vec<String>) {
    let old = match before {
        Some(State::File { bytes, .. } | State::Value { bytes, .. }) => bytes.text().into_owned(),
        Some(State::Link { to }) => return (vec![link(to)], content_of(content)),
        _ => String::new(),
    };
    let new = content.map(|bytes| bytes.text().into_owned()).unwrap_or_default();
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let same = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let (old, new) = (&old[same..], &new[same..]);
    let ends = old.iter().rev().zip(new.iter().rev());
    let same = ends.take_while(|(old, new)| old == new).count();
    (few(&old[..old.len() - same]), few(&new[..new.len() - same]))
}

fn content_of(content: Option<&Bytes>) -> Vec<String> {
    let text = content.map(|bytes| bytes.text().into_owned()).unwrap_or_default();
    few(&text.lines().collect::<Vec<_>>())
}

fn few(lines: &[&str]) -> Vec<String> {
    let mut few: Vec<String> = lines.iter().take(LINES_MAX).map(|line| cut(line)).collect();
    if lines.len() > LINES_MAX {
        few.push(format!("… ({} more lines: --json has all)", lines.len() - LINES_MAX));
    }
    few
}

// Values as the kernel shows them, compared by what they mean.

/// Canonical form of a knob's value: `Y`, `1` and `0x1` are equal if it compares as numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    Text(Vec<String>),
    Number(i128),
    Cpus(CpuList),
    /// Whether the word is there, and whether its opposite.
    Word(bool, bool),
}

/// What a text that was read means to a change that wrote `value`.
pub(super) fn meaning(compare: Compare, value: &str, read: &str) -> Meaning {
    let text = || Meaning::Text(read.split_whitespace().map(str::to_owned).collect());
    let list = |parsed: Result<CpuList, _>| parsed.map_or_else(|_| text(), Meaning::Cpus);
    let has = |wanted: &str| read.split_whitespace().any(|word| word == wanted);
    match compare {
        Compare::Text => text(),
        Compare::Number => number(read).map_or_else(text, Meaning::Number),
        Compare::CpuList => list(CpuList::parse(read, None)),
        Compare::CpuMask => list(CpuList::parse_mask(read)),
        Compare::Choice => match crate::text::between(read, '[', ']') {
            Some(choice) => Meaning::Text(vec![choice.to_owned()]),
            None => text(),
        },
        Compare::Word => Meaning::Word(has(value.trim()), has(&opposite(value))),
        Compare::Controller => {
            Meaning::Word(has(value.trim().trim_start_matches(['+', '-'])), false)
        }
    }
}

/// Whether the read value equals the wanted one.
pub(super) fn is_done(compare: Compare, value: &str, read: &str) -> bool {
    match compare {
        Compare::Word => meaning(compare, value, read) == Meaning::Word(true, false),
        Compare::Controller => {
            let wanted = !value.trim().starts_with('-');
            meaning(compare, value, read) == Meaning::Word(wanted, false)
        }
        _ => meaning(compare, value, value) == meaning(compare, value, read),
    }
}

/// What to write so that the kernel reads what it read before.
pub(super) fn written_back(path: &str, compare: Compare, value: &str, before: &str) -> String {
    match (compare, meaning(compare, value, before)) {
        (Compare::Choice, Meaning::Text(words)) => words.join(" "),
        (Compare::Word, Meaning::Word(true, _)) => value.trim().to_owned(),
        (Compare::Word, _) => opposite(value),
        (Compare::Controller, Meaning::Word(was, _)) => {
            let name = value.trim().trim_start_matches(['+', '-']);
            format!("{}{name}", if was { '+' } else { '-' })
        }
        _ if is_partition(path) => written_kind(before).to_owned(),
        _ if crate::text::between(before, '[', ']').is_some() => {
            crate::text::between(before, '[', ']').unwrap_or_default().to_owned()
        }
        _ => before.to_owned(),
    }
}

/// Whether a file holds the kind of a partition of CPUs.
pub(super) fn is_partition(path: &str) -> bool {
    path.ends_with("/cpuset.cpus.partition")
}

/// The kind that was written: `isolated invalid (why)` is what became of `isolated`.
pub(super) fn written_kind(read: &str) -> &str {
    read.split_whitespace().next().unwrap_or_default()
}

/// `NO_X` for `X`, `X` for `NO_X`.
fn opposite(value: &str) -> String {
    let value = value.trim();
    value.strip_prefix("NO_").map_or_else(|| format!("NO_{value}"), str::to_owned)
}

fn number(text: &str) -> Option<i128> {
    let text = text.trim();
    match text {
        "Y" | "y" => return Some(1),
        "N" | "n" => return Some(0),
        _ => {}
    }
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => i128::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_compared_by_what_they_mean() {
        let done = [
            (Compare::Text, "performance", "performance\n"),
            (Compare::Text, "4 4 1 7", "4\t4\t1\t7\n"),
            (Compare::Number, "16", "0x10\n"),
            (Compare::Number, "1", "Y\n"),
            (Compare::Number, "N", "0\n"),
            (Compare::Number, "-1", "-1\n"),
            (Compare::CpuList, "0-2", "0,1,2\n"),
            (Compare::CpuList, "", "\n"),
            (Compare::CpuMask, "f", "00000000,0000000f\n"),
            (Compare::Choice, "never", "always madvise [never]\n"),
            (Compare::Word, "NO_HRTICK", "TTWU_QUEUE NO_HRTICK\n"),
            (Compare::Word, "HRTICK", "TTWU_QUEUE HRTICK\n"),
            (Compare::Controller, "+cpuset", "cpuset cpu\n"),
            (Compare::Controller, "-cpuset", "cpu io\n"),
        ];
        for (compare, value, read) in done {
            assert!(is_done(compare, value, read), "{compare:?} {value} {read}");
        }
        let not = [
            (Compare::Text, "performance", "powersave\n"),
            (Compare::Text, "isolated", "isolated invalid (Cpu list empty)\n"),
            (Compare::Number, "1", "10\n"),
            (Compare::Number, "1", "many\n"),
            (Compare::CpuList, "0-2", "0-3\n"),
            (Compare::CpuList, "0", "(null)\n"),
            (Compare::CpuMask, "f", "1f\n"),
            (Compare::Choice, "never", "[always] madvise never\n"),
            (Compare::Word, "HRTICK", "NO_HRTICK\n"),
            (Compare::Word, "HRTICK", "OTHER\n"),
            (Compare::Controller, "+cpuset", "cpuset2\n"),
            (Compare::Controller, "-cpuset", "cpuset\n"),
        ];
        for (compare, value, read) in not {
            assert!(!is_done(compare, value, read), "{compare:?} {value} {read}");
        }
    }

    #[test]
    fn what_is_written_back_is_what_the_kernel_takes() {
        let back =
            |compare, value: &str, before: &str| written_back("/sys/x", compare, value, before);
        assert_eq!(back(Compare::Choice, "never", "always [madvise] never\n"), "madvise");
        assert_eq!(back(Compare::Text, "never", "always [madvise] never\n"), "madvise");
        assert_eq!(back(Compare::Word, "NO_HRTICK", "HRTICK X\n"), "HRTICK");
        assert_eq!(back(Compare::Word, "HRTICK", "NO_HRTICK X\n"), "NO_HRTICK");
        assert_eq!(back(Compare::Controller, "+cpuset", "cpu\n"), "-cpuset");
        assert_eq!(back(Compare::Controller, "-cpuset", "cpuset\n"), "+cpuset");
        assert_eq!(back(Compare::Number, "1", " 0x3 \n"), " 0x3 \n");
        let partition = "/sys/fs/cgroup/rt/cpuset.cpus.partition";
        let before = "isolated invalid (x)\n";
        assert_eq!(written_back(partition, Compare::Text, "root", before), "isolated");
    }
}
