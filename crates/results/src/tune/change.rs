//! A change as text: its target, and its old and new state.

use rtproof_host::{
    CpuList,
    tune::{Bytes, Change, Compare, Scheduling, State, UnitWish},
};
use rtproof_judge::units;

/// Most lines of one file that are shown.
const LINES_MAX: usize = 12;
/// Longest line.
const CHARS_MAX: usize = 200;

/// What a change is about, as it is shown.
#[must_use]
pub fn target(change: &Change) -> String {
    match change {
        Change::Irq { irq, .. } if irq.actions.is_empty() => format!("IRQ {}", irq.number),
        Change::Irq { irq, .. } => format!("IRQ {} ({})", irq.number, irq.actions),
        Change::GrubEnv { path, .. } => path.clone(),
        // The word is the value.
        Change::Value { path, .. } => path.clone(),
        other => other.target(),
    }
}

/// What is there and what is to be, as lines without sign.
#[must_use]
pub fn lines(change: &Change, before: Option<&State>) -> (Vec<String>, Vec<String>) {
    if let Change::File { content, .. } = change {
        return file(content.as_ref(), before);
    }
    let old = before.map_or_else(|| "?".into(), |state| self::before(change, state));
    (vec![old], vec![after(change)])
}

/// What is to be, in one line.
#[must_use]
pub fn after(change: &Change) -> String {
    match change {
        Change::Value { value, .. } | Change::Hotplug { value, .. } => shown(value),
        Change::Irq { cpus, .. } => units::cpus(cpus),
        Change::Task { set, .. } => scheduling(set, set),
        Change::Folder { .. } => "a folder".into(),
        Change::File { content: None, .. } => "no file".into(),
        Change::File { content: Some(bytes), .. } => first_line(bytes),
        Change::GrubEnv { key, value, .. } => format!("{key}={value}"),
        Change::EfiVariable { value, .. } | Change::Property { value, .. } => shown(value),
        Change::Unit { want, .. } => unit_wish(*want).into(),
    }
}

/// What is there, in one line.
#[must_use]
pub fn before(change: &Change, state: &State) -> String {
    match (change, state) {
        (_, State::Absent) => "not there".into(),
        (Change::Value { value, compare: Compare::Word, .. }, State::Value { bytes, .. }) => {
            let plain = value.trim_start_matches("NO_");
            let text = bytes.text();
            let mut words = text.split_whitespace();
            words.find(|word| word.trim_start_matches("NO_") == plain).unwrap_or("not there").into()
        }
        (Change::Value { value, compare: Compare::Controller, .. }, State::Value { bytes, .. }) => {
            let plain = value.trim_start_matches(['+', '-']);
            let has = bytes.text().split_whitespace().any(|word| word == plain);
            format!("{}{plain}", if has { '+' } else { '-' })
        }
        (Change::Irq { .. }, State::Value { bytes, .. }) => {
            let text = bytes.text();
            let cpus = CpuList::parse(&text, None);
            cpus.map_or_else(|_| shown(text.trim_end()), |cpus| units::cpus(&cpus))
        }
        (Change::GrubEnv { key, .. }, State::File { bytes, .. }) => {
            let text = bytes.text();
            let is_it = |line: &&str| line.split_once('=').is_some_and(|(name, _)| name == key);
            text.lines().find(is_it).map_or_else(|| format!("{key} not set"), cut)
        }
        (Change::EfiVariable { .. }, State::Value { bytes, .. }) => shown(&utf16(&bytes.0)),
        (_, State::Value { bytes, .. }) => shown(bytes.text().trim_end()),
        (_, State::File { bytes, .. }) => first_line(bytes),
        (_, State::Link { to }) => format!("a link to {to}"),
        (_, State::Folder) => "a folder".into(),
        (Change::Task { set, .. }, State::Task { scheduling: now }) => scheduling(now, set),
        (_, State::Task { scheduling: now }) => scheduling(now, now),
        (_, State::Hotplug { bytes, .. }) => shown(bytes.text().trim_end()),
        (_, State::Unit { active, links, .. }) => unit(*active, links),
        (_, State::Property { value, .. }) => shown(value),
    }
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

const fn unit_wish(want: UnitWish) -> &'static str {
    match want {
        UnitWish::Stopped => "not running",
        UnitWish::Disabled => "not running, not enabled",
        UnitWish::Masked => "not running, masked",
        UnitWish::Started => "running",
        UnitWish::Enabled => "running, enabled",
    }
}

/// The parts of `now` that `set` is about.
fn scheduling(now: &Scheduling, set: &Scheduling) -> String {
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
        parts.push(now.cpus.as_ref().map_or("CPUs ?".into(), units::cpus));
    }
    parts.join(", ")
}

/// A value in one line: an empty one is told, a long one cut.
fn shown(value: &str) -> String {
    if value.is_empty() {
        return "(empty)".into();
    }
    let line = value.split_whitespace().collect::<Vec<_>>().join(" ");
    cut(&line)
}

/// Text of a firmware variable: four bytes of attributes, then UTF-16 with its NUL.
fn utf16(bytes: &[u8]) -> String {
    let units = bytes.get(4..).unwrap_or_default().chunks_exact(2);
    let units: Vec<u16> = units.map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect();
    String::from_utf16_lossy(&units).trim_end_matches('\0').to_owned()
}

fn cut(line: &str) -> String {
    match line.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

/// A file in one line: the line that it has, or how many.
fn first_line(bytes: &Bytes) -> String {
    let text = bytes.text();
    match text.lines().count() {
        0 => "an empty file".into(),
        1 => cut(text.trim_end()),
        lines => format!("a file of {lines} lines"),
    }
}

/// The lines of a file that go and that come: what is the same before and after them is left out.
fn file(content: Option<&Bytes>, before: Option<&State>) -> (Vec<String>, Vec<String>) {
    let old = match before {
        Some(State::File { bytes, .. } | State::Value { bytes, .. }) => bytes.text().into_owned(),
        Some(State::Link { to }) => return (vec![format!("a link to {to}")], content_of(content)),
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
