//! From what was applied to the text of the file.

use std::fmt::Write as _;

use rtproof_host::{
    Root,
    door::Invalid,
    task,
    tune::{Bytes, Change, Compare, Scheduling, UnitState},
};
use rtproof_judge::{Intent, plan::Reason, profile::Profile};

use super::{Config, ConfigIntent, NamedChange, PATH, RepeatedChange, VERSION, usual_compare};

/// A change of the running kernel that cannot be repeated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotRepeated {
    pub change: Change,
    /// Why not, and what to do instead.
    pub why: String,
}

impl From<&Intent> for ConfigIntent {
    fn from(intent: &Intent) -> Self {
        let profile = Profile::named(&intent.profile.name).map(|profile| profile.name);
        Self {
            cpus: Some(intent.rt_cpus.clone()),
            profile: Some(profile.unwrap_or_else(|| intent.profile.kind.name().into())),
            priority: Some(intent.priority),
            period_ns: Some(intent.period_ns),
            budget_ns: intent.budget_ns,
        }
    }
}

/// The comment of a change with this reason.
pub fn comment(reason: &Reason) -> Vec<String> {
    let more =
        |name: &str, text: &Option<String>| text.as_ref().map(|text| format!("{name}: {text}"));
    let ids = reason.checks.join(", ");
    let why = if ids.is_empty() { reason.why.clone() } else { format!("{ids}: {}", reason.why) };
    let more = [more("Cost", &reason.trade_off), more("Risk", &reason.risk)];
    std::iter::once(why).chain(more.into_iter().flatten()).collect()
}

impl Config {
    /// What of the changes is to be repeated; each with its checks and the lines of its comment,
    /// in the order in which they are made. What lasts by itself is left out silently. `root` tells
    /// which unit a task belongs to.
    pub fn of<'a>(
        root: &Root,
        intent: ConfigIntent,
        changes: impl IntoIterator<Item = (&'a Change, &'a [String], Vec<String>)>,
    ) -> (Self, Vec<NotRepeated>) {
        let mut config = Self { intent, changes: Vec::new() };
        let mut left_out = Vec::new();
        for (change, checks, reason) in changes {
            if change.nature().is_durable {
                continue;
            }
            match lasting_name(root, change).and_then(|what| config.with(what)) {
                Err(why) => left_out.push(NotRepeated { change: change.clone(), why: why.0 }),
                Ok(None) => {}
                Ok(Some(what)) => {
                    let checks = checks.to_vec();
                    let reason = reason.iter().map(|line| one_line(line)).collect();
                    config.changes.push(RepeatedChange { what, checks, reason, line: 0 });
                }
            }
        }
        (config, left_out)
    }

    /// A change that is to be added; `None` where it is there.
    fn with(&self, new: NamedChange) -> Result<Option<NamedChange>, Invalid> {
        for RepeatedChange { what, .. } in &self.changes {
            if *what == new {
                return Ok(None);
            }
            let NamedChange::Task { comm, unit, .. } = what else { continue };
            if matches!(&new, NamedChange::Task { comm: c, unit: u, .. } if c == comm && u == unit)
            {
                return Err("another task of this name is set otherwise: a boot could not tell \
                            which is which; give the threads names of their own"
                    .into());
            }
        }
        Ok(Some(new))
    }

    /// The change that puts the file there.
    pub fn change(&self) -> Change {
        let content = Some(Bytes(self.text().into_bytes()));
        Change::File { path: PATH.into(), content, mode: Some(0o644) }
    }

    /// The text of the file.
    pub fn text(&self) -> String {
        let mut text = format!(
            "# The runtime part of the tuning, which rtproof.service repeats at each boot.\n\
             # Written by rtproof {}; it may be edited: `rtproof tune apply --from {PATH}` shows\n\
             # what it would change, and any mistake with its line.\n\nversion = {VERSION}\n",
            env!("CARGO_PKG_VERSION")
        );
        self.intent.write(&mut text);
        for repeated in &self.changes {
            text.push('\n');
            for line in &repeated.reason {
                text.push_str(format!("# {line}").trim_end());
                text.push('\n');
            }
            text.push_str("[[change]]\n");
            repeated.what.write(&mut text);
            if !repeated.checks.is_empty() {
                list(&mut text, "checks", &repeated.checks);
            }
        }
        text
    }
}

impl ConfigIntent {
    fn write(&self, text: &mut String) {
        if *self == Self::default() {
            return;
        }
        text.push_str("\n# What the machine is meant for.\n[intent]\n");
        word_of(text, "cpus", self.cpus.as_ref());
        word_of(text, "profile", self.profile.as_ref());
        number(text, "priority", self.priority);
        word_of(text, "period", self.period_ns.map(exact_time).as_ref());
        word_of(text, "budget", self.budget_ns.map(exact_time).as_ref());
    }
}

impl NamedChange {
    fn write(&self, text: &mut String) {
        match self {
            Self::Plain(change) => plain(text, change),
            Self::Irq { actions, hwirq, chip, cpus } => {
                word(text, "kind", "irq");
                word_of(text, "actions", actions.as_ref());
                word_of(text, "hwirq", hwirq.as_ref());
                word_of(text, "chip", chip.as_ref());
                word(text, "cpus", &cpus.to_string());
            }
            Self::Task { comm, unit, set } => {
                word(text, "kind", "task");
                word(text, "comm", comm);
                word_of(text, "unit", unit.as_ref());
                scheduling(text, set);
            }
        }
    }
}

/// What a change is about, by a name that holds over boots.
fn lasting_name(root: &Root, change: &Change) -> Result<NamedChange, Invalid> {
    let some = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
    match change {
        Change::Irq { irq, .. } if irq.actions.is_empty() && irq.hwirq.is_empty() => {
            Err("the kernel tells neither its handler nor its hardware number".into())
        }
        Change::Irq { irq, cpus } => Ok(NamedChange::Irq {
            actions: some(&irq.actions),
            hwirq: some(&irq.hwirq),
            chip: some(&irq.chip),
            cpus: cpus.clone(),
        }),
        Change::Task { task: name, set } => {
            let task = i32::try_from(name.tid).ok().and_then(|tid| task::task(root, tid));
            let Some(task) = task.filter(|task| task.comm == name.comm) else {
                return Err("the task has ended: which unit it was of is not known".into());
            };
            let set = set.clone();
            if task.kernel {
                return Ok(NamedChange::Task { comm: over_boots(&name.comm), unit: None, set });
            }
            match super::service(&task) {
                Some(unit) => {
                    Ok(NamedChange::Task { comm: name.comm.clone(), unit: Some(unit), set })
                }
                None => Err("no service started it, so that it is not there at boot; set it in \
                             the service that will"
                    .into()),
            }
        }
        Change::File { content: Some(content), .. } if std::str::from_utf8(&content.0).is_err() => {
            Err("its content is no text".into())
        }
        Change::Value { .. }
        | Change::Hotplug { .. }
        | Change::Folder { .. }
        | Change::File { .. }
        | Change::Unit { .. }
        | Change::Property { .. } => Ok(NamedChange::Plain(change.clone())),
        _ => Err(format!("{PATH} has no line for it; apply it again after each boot").into()),
    }
}

/// The name of a kernel thread without the number of its interrupt, which a boot may change.
fn over_boots(comm: &str) -> String {
    let rest = comm.strip_prefix("irq/").and_then(|rest| rest.split_once('-'));
    match rest {
        Some((number, name)) if number.parse::<u32>().is_ok() => format!("irq/*-{name}"),
        _ => comm.to_owned(),
    }
}

fn plain(text: &mut String, change: &Change) {
    match change {
        Change::Value { path, value, compare, couples } => {
            word(text, "kind", "value");
            word(text, "path", path);
            word(text, "value", value);
            if *compare != usual_compare(path) {
                word(text, "compare", compare_name(*compare));
            }
            if !couples.is_empty() {
                list(text, "couples", couples);
            }
        }
        Change::Hotplug { path, value } => {
            word(text, "kind", "hotplug");
            word(text, "path", path);
            word(text, "value", value);
        }
        Change::Folder { path } => {
            word(text, "kind", "folder");
            word(text, "path", path);
        }
        Change::File { path, content, mode } => {
            word(text, "kind", "file");
            word(text, "path", path);
            word_of(text, "content", content.as_ref().map(Bytes::text).as_ref());
            word_of(text, "mode", mode.map(|mode| format!("{mode:04o}")).as_ref());
        }
        Change::Unit { unit, want } => {
            word(text, "kind", "unit");
            word(text, "unit", unit);
            let started = matches!(want, UnitState::Started);
            word(text, "want", if started { "started" } else { "stopped" });
        }
        Change::Property { unit, property, value } => {
            word(text, "kind", "property");
            word(text, "unit", unit);
            word(text, "property", property);
            word(text, "value", value);
        }
        // The others last by themselves, have names of their own above, or no line.
        _ => {}
    }
}

fn scheduling(text: &mut String, set: &Scheduling) {
    word_of(text, "policy", set.policy.as_ref());
    number(text, "priority", set.priority);
    number(text, "nice", set.nice);
    if let Some(times) = set.deadline_ns {
        for (name, ns) in ["runtime", "deadline", "period"].into_iter().zip(times) {
            word(text, name, &exact_time(ns));
        }
    }
    number(text, "reset-on-fork", set.reset_on_fork);
    word_of(text, "cpus", set.cpus.as_ref());
}

const fn compare_name(compare: Compare) -> &'static str {
    match compare {
        Compare::Text => "text",
        Compare::Number => "number",
        Compare::CpuList => "cpu-list",
        Compare::CpuMask => "cpu-mask",
        Compare::Choice => "choice",
        Compare::Word => "word",
        Compare::Controller => "controller",
    }
}

/// A time in the largest unit that holds it whole, so that it is read back as it was.
fn exact_time(ns: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
    let whole = UNITS.iter().find(|(unit, _)| ns > 0 && ns.is_multiple_of(*unit));
    whole.map_or_else(|| format!("{ns}ns"), |(unit, name)| format!("{}{name}", ns / unit))
}

fn word(text: &mut String, name: &str, value: &str) {
    let _ = writeln!(text, "{name} = {}", quoted(value));
}

fn word_of(text: &mut String, name: &str, value: Option<&impl ToString>) {
    if let Some(value) = value {
        word(text, name, &value.to_string());
    }
}

fn number(text: &mut String, name: &str, value: Option<impl ToString>) {
    if let Some(value) = value {
        let _ = writeln!(text, "{name} = {}", value.to_string());
    }
}

fn list(text: &mut String, name: &str, values: &[String]) {
    let values: Vec<String> = values.iter().map(|value| quoted(value)).collect();
    let _ = writeln!(text, "{name} = [{}]", values.join(", "));
}

/// A basic string of TOML.
fn quoted(value: &str) -> String {
    let mut text = String::from("\"");
    for c in value.chars() {
        match c {
            '"' | '\\' => text.extend(['\\', c]),
            '\n' => text.push_str("\\n"),
            '\t' => text.push_str("\\t"),
            c if c.is_control() => {
                let _ = write!(text, "\\u{:04X}", u32::from(c));
            }
            c => text.push(c),
        }
    }
    text.push('"');
    text
}

/// A line of a comment.
fn one_line(text: &str) -> String {
    text.trim_end().chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
