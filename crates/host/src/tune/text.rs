//! States and contents as text: one line each, of a file the lines that change.

use super::{
    state::{PackageState, State},
    tree::{self, TreeFile},
};
use crate::change::{Bytes, Scheduling};

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
            of_tree(is_folder, tree::count(files), tree::bytes(files))
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
        parts.push(now.cpus.as_ref().map_or("CPUs ?".into(), crate::CpuList::phrase));
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
