//! Changes of several findings: what is about one target is one step, or a conflict.

use std::collections::BTreeMap;

use rtproof_host::{
    Facts, Knob,
    knob::ValueRule,
    knobs::{self, LIMITS_FILE, SYSCTL_FILE},
    tune::{Bytes, Change, Scheduling, UnitState},
};

use super::{Conflict, Reason, Step};

/// One change that a finding requests.
#[derive(Debug)]
pub(super) struct WantedChange {
    pub(super) change: Change,
    /// The knob that it sets, if there is one.
    pub(super) knob: Option<&'static Knob>,
    pub(super) reason: Reason,
}

/// Changes of the findings, in their order.
#[derive(Debug, Default)]
pub(super) struct WantedChanges(Vec<WantedChange>);

impl WantedChanges {
    pub(super) fn add(&mut self, change: Change, knob: Option<&'static Knob>, reason: Reason) {
        self.0.push(WantedChange { change, knob, reason });
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &WantedChange> {
        self.0.iter()
    }

    /// Each as `change` makes it; the checks of those of which nothing is left.
    pub(super) fn map(
        &mut self,
        change: impl Fn(Change, Option<&Knob>) -> Option<Change>,
    ) -> Vec<String> {
        let mut lost = Vec::new();
        for WantedChange { change: one, knob, reason } in std::mem::take(&mut self.0) {
            match change(one, knob) {
                Some(change) => self.add(change, knob, reason),
                None => lost.extend(reason.checks),
            }
        }
        lost
    }

    /// The value that is written to a file, if all changes agree on it.
    fn value_of(&self, file: &str) -> Option<&str> {
        let mut values = self.0.iter().filter_map(|wanted| match &wanted.change {
            Change::Value { path, value, .. } if path == file => Some(value.as_str()),
            _ => None,
        });
        let first = values.next()?;
        values.all(|value| value == first).then_some(first)
    }

    /// The values that a knob is set to, with the reasons.
    pub(super) fn values(&self, of: &'static Knob) -> impl Iterator<Item = (&str, &Reason)> {
        self.0.iter().filter_map(move |wanted| match &wanted.change {
            Change::Value { value, .. } if wanted.knob == Some(of) => {
                Some((value.as_str(), &wanted.reason))
            }
            _ => None,
        })
    }

    /// The steps in order, and what contradicts.
    pub(super) fn finish(self, facts: &Facts) -> (Vec<Step>, Vec<Conflict>) {
        let mut groups: Vec<(String, Vec<WantedChange>)> = Vec::new();
        for wanted in self.0 {
            let target = wanted.change.target();
            match groups.iter_mut().find(|(known, _)| *known == target) {
                Some((_, group)) => group.push(wanted),
                None => groups.push((target, vec![wanted])),
            }
        }
        let (mut steps, mut conflicts) = (Vec::new(), Vec::new());
        for (target, group) in groups {
            match merged(&group) {
                Some(change) => {
                    let key = super::key(facts, &change, group[0].knob);
                    let reasons = group.into_iter().map(|wanted| wanted.reason);
                    let Some(reason) = reasons.reduce(Reason::merged) else { continue };
                    steps.push((key, Step { change, reason }));
                }
                None => conflicts.push(Conflict { target, requests: requests(&group) }),
            }
        }
        steps.sort_by(|(one, _), (other, _)| one.cmp(other));
        let steps = steps.into_iter().map(|(_, step)| step).collect();
        conflicts.sort_by(|one, other| one.target.cmp(&other.target));
        (steps, conflicts)
    }
}

fn requests(group: &[WantedChange]) -> Vec<(String, String)> {
    let request = |one: &WantedChange| (one.reason.checks.join(", "), one.change.wanted());
    group.iter().map(request).collect()
}

/// The one change that satisfies all requests.
fn merged(group: &[WantedChange]) -> Option<Change> {
    let mut changes = group.iter().map(|wanted| &wanted.change);
    let first = changes.next()?.clone();
    changes.try_fold(first, both)
}

fn both(one: Change, other: &Change) -> Option<Change> {
    if one == *other {
        return Some(one);
    }
    match (one, other) {
        (
            Change::Value { path, value, compare, mut couples },
            Change::Value { value: wanted, couples: more, .. },
        ) if value == *wanted => {
            couples.extend(
                more.iter().filter(|file| !couples.contains(file)).cloned().collect::<Vec<_>>(),
            );
            Some(Change::Value { path, value, compare, couples })
        }
        (Change::Unit { unit, want }, Change::Unit { want: wanted, .. }) => {
            Some(Change::Unit { unit, want: stronger(want, *wanted)? })
        }
        (Change::Task { task, set }, Change::Task { set: wanted, .. }) => {
            Some(Change::Task { task, set: merge_scheduling(set, wanted)? })
        }
        _ => None,
    }
}

/// Of two requests for a unit the one that includes the other.
fn stronger(one: UnitState, other: UnitState) -> Option<UnitState> {
    let strength = |want: UnitState| match want {
        UnitState::Stopped => (0, 0),
        UnitState::Disabled => (0, 1),
        UnitState::Masked => (0, 2),
        UnitState::Started => (1, 0),
        UnitState::Enabled => (1, 1),
    };
    let ((side, first), (other_side, second)) = (strength(one), strength(other));
    (side == other_side).then_some(if first < second { other } else { one })
}

/// Scheduling that has both: what one leaves alone, the other sets.
fn merge_scheduling(one: Scheduling, other: &Scheduling) -> Option<Scheduling> {
    fn field<T: Clone + PartialEq>(one: Option<T>, other: &Option<T>) -> Option<Option<T>> {
        match (one, other) {
            (Some(one), Some(other)) if one != *other => None,
            (one, other) => Some(one.or_else(|| other.clone())),
        }
    }
    Some(Scheduling {
        policy: field(one.policy, &other.policy)?,
        priority: field(one.priority, &other.priority)?,
        nice: field(one.nice, &other.nice)?,
        deadline_ns: field(one.deadline_ns, &other.deadline_ns)?,
        reset_on_fork: field(one.reset_on_fork, &other.reset_on_fork)?,
        cpus: field(one.cpus, &other.cpus)?,
    })
}

// Lines of files of ours: several findings may want lines of one file, which is one change.

/// First line of every file of ours.
const HEAD: &str = "# Made by rtproof tune; rtproof tune undo takes it away.";

/// Planned files by path, while requests are merged.
#[derive(Debug, Default)]
pub(super) struct PlanFiles(BTreeMap<String, (Vec<Line>, Reason)>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Line {
    /// `[Service]`; empty where the file has no sections.
    section: String,
    /// Its key: the line without the value.
    subject: String,
    value: String,
    text: String,
    /// The check that wants it; empty: it is there already.
    check: String,
    /// Whether another line replaces it: it exists already, or is in force and would only persist.
    gives_way: bool,
}

impl Line {
    /// The lines of a text; `[Section] key=value` may be one.
    fn all(text: &str, check: &str) -> Vec<Self> {
        let mut section = String::new();
        let mut lines = Vec::new();
        for line in text.lines() {
            let mut rest = line.trim();
            let head = rest.strip_prefix('[').and_then(|inner| inner.split_once(']'));
            if let Some((name, after)) = head {
                section = format!("[{name}]");
                rest = after.trim();
            }
            if rest.is_empty() {
                continue;
            }
            // `key = value`; `@realtime - rtprio 95`.
            let (subject, value) = match rest.split_once('=') {
                Some((key, value)) => (key.trim(), value.trim()),
                None => rest.rsplit_once(char::is_whitespace).unwrap_or((rest, "")),
            };
            lines.push(Self {
                section: section.clone(),
                subject: subject.trim().to_owned(),
                value: value.to_owned(),
                text: rest.to_owned(),
                check: check.to_owned(),
                gives_way: check.is_empty(),
            });
        }
        lines
    }

    /// What is known of the key: `LimitRTPRIO`, of a limit the item (`@realtime - rtprio`).
    fn key(&self) -> Option<&'static Knob> {
        knobs::key_of(self.subject.split_whitespace().last()?)
    }
}

/// The known keys that lines set.
pub(super) fn keys(text: &str) -> impl Iterator<Item = &'static Knob> {
    Line::all(text, "").into_iter().filter_map(|line| line.key())
}

impl PlanFiles {
    /// Adds lines to a file.
    pub(super) fn add(&mut self, path: String, text: &str, reason: Reason) {
        let check = reason.checks.first().map_or("", String::as_str);
        let lines = Line::all(text, check);
        match self.0.get_mut(&path) {
            Some((known, why)) => {
                known.extend(lines);
                why.merge(reason);
            }
            None => {
                self.0.insert(path, (lines, reason));
            }
        }
    }

    /// The files whole, and what contradicts. What a file of ours holds already, as far as facts
    /// tell, stays in it.
    pub(super) fn finish(
        self,
        facts: &Facts,
        changes: &WantedChanges,
    ) -> (Vec<(Change, Reason)>, Vec<Conflict>) {
        let (mut files, mut conflicts) = (Vec::new(), Vec::new());
        for (path, (lines, reason)) in self.0 {
            let mut all = kept(facts, &path);
            all.extend(lines);
            if path == SYSCTL_FILE {
                all.iter_mut().for_each(|line| as_planned(line, facts, changes));
            }
            match merge_lines(&path, all) {
                Ok(lines) => {
                    let content = Some(Bytes::from(content(&lines).as_str()));
                    files.push((Change::File { path, content, mode: None }, reason));
                }
                Err(conflict) => conflicts.push(conflict),
            }
        }
        (files, conflicts)
    }
}

/// Lines that the file has already.
fn kept(facts: &Facts, path: &str) -> Vec<Line> {
    let mut text = String::new();
    if path == LIMITS_FILE {
        let lines = facts.rights.limit_lines.value().into_iter().flatten();
        for line in lines.filter(|line| line.file == path) {
            text.push_str(&format!("{} {} {} {}\n", line.domain, line.kind, line.item, line.value));
        }
    }
    if path == SYSCTL_FILE {
        let lines = facts.platform.sysctl.value().into_iter().flatten();
        for line in lines.filter(|line| line.file == path) {
            text.push_str(&format!("{} = {}\n", line.name, line.value));
        }
    }
    Line::all(&text, "")
}

/// A setting of the kernel has the value at boot that the plan gives it now.
fn as_planned(line: &mut Line, facts: &Facts, changes: &WantedChanges) {
    let mut settings = facts.platform.sysctl.value().into_iter().flatten();
    let live = settings.find(|one| one.name == line.subject).and_then(|one| one.live.value());
    line.gives_way |= live.is_some_and(|live| *live == line.value);
    if let Some(value) = changes.value_of(&knobs::sysctl_path(&line.subject)) {
        line.value = value.to_owned();
        line.text = format!("{} = {value}", line.subject);
    }
}

/// Of lines that set the same one stays: the wider limit, or what is not there already.
fn merge_lines(path: &str, lines: Vec<Line>) -> Result<Vec<Line>, Conflict> {
    let mut all: Vec<Line> = Vec::new();
    for line in lines {
        let same =
            |known: &&mut Line| (&known.section, &known.subject) == (&line.section, &line.subject);
        let Some(known) = all.iter_mut().find(same) else {
            all.push(line);
            continue;
        };
        if known.value == line.value || line.gives_way {
            continue;
        }
        if known.gives_way {
            *known = line;
            continue;
        }
        match wider(&line, &known.value) {
            Some(true) => {}
            Some(false) => *known = line,
            None => {
                let request = |line: &Line| (line.check.clone(), line.value.clone());
                let target = format!("{path}: {}", line.subject);
                return Err(Conflict { target, requests: vec![request(known), request(&line)] });
            }
        }
    }
    Ok(all)
}

/// Whether a known limit is wider than that of a line; `None`: they are no limits.
fn wider(line: &Line, known: &str) -> Option<bool> {
    line.key().filter(|key| key.rule == ValueRule::Limit)?;
    let limit = |text: &str| match text {
        "unlimited" | "infinity" => Some(u64::MAX),
        text => text.parse::<u64>().ok(),
    };
    Some(limit(known)? >= limit(&line.value)?)
}

/// The text of a file: sections once each, in the order in which they came.
fn content(lines: &[Line]) -> String {
    let mut sections: Vec<&str> = Vec::new();
    for line in lines {
        if !sections.contains(&line.section.as_str()) {
            sections.push(&line.section);
        }
    }
    let mut text = format!("{HEAD}\n");
    for section in sections {
        if !section.is_empty() {
            text.push_str(&format!("{section}\n"));
        }
        for line in lines.iter().filter(|line| line.section == section) {
            text.push_str(&format!("{}\n", line.text));
        }
    }
    text
}
