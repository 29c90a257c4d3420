//! Lines of files of ours: several findings may want lines of one file, which is one change.

use std::collections::BTreeMap;

use rtproof_host::tune::{Bytes, Change};
use rtproof_host::{
    Facts, Knob,
    knob::Rule,
    knobs::names::{self, LIMITS_FILE, SYSCTL_FILE},
};

use super::merge::Changes;
use super::step::{Conflict, Reason};

/// First line of every file of ours.
const HEAD: &str = "# Made by rtproof tune; rtproof tune undo takes it away.";
/// Files in the making, by path.
#[derive(Debug, Default)]
pub(super) struct Files(BTreeMap<String, (Vec<Line>, Reason)>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Line {
    /// `[Service]`; empty where the file has no sections.
    section: String,
    /// What it sets: all but the value.
    subject: String,
    value: String,
    text: String,
    /// The check that wants it; empty: it is there already.
    check: String,
    /// Whether it gives way to another: it is there already, or is in force and would only stay.
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
        names::key_of(self.subject.split_whitespace().last()?)
    }
}

/// The known keys that lines set.
pub(super) fn keys(text: &str) -> impl Iterator<Item = &'static Knob> {
    Line::all(text, "").into_iter().filter_map(|line| line.key())
}

impl Files {
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
        changes: &Changes,
    ) -> (Vec<(Change, Reason)>, Vec<Conflict>) {
        let (mut files, mut conflicts) = (Vec::new(), Vec::new());
        for (path, (lines, reason)) in self.0 {
            let mut all = kept(facts, &path);
            all.extend(lines);
            if path == SYSCTL_FILE {
                all.iter_mut().for_each(|line| as_planned(line, facts, changes));
            }
            match together(&path, all) {
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
            text.push_str(&format!("{} {} {} {}\n", line.who, line.kind, line.item, line.value));
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
fn as_planned(line: &mut Line, facts: &Facts, changes: &Changes) {
    let mut settings = facts.platform.sysctl.value().into_iter().flatten();
    let live = settings.find(|one| one.name == line.subject).and_then(|one| one.live.value());
    line.gives_way |= live.is_some_and(|live| *live == line.value);
    if let Some(value) = changes.value_of(&names::sysctl_path(&line.subject)) {
        line.value = value.to_owned();
        line.text = format!("{} = {value}", line.subject);
    }
}

/// Of lines that set the same one stays: the wider limit, or what is not there already.
fn together(path: &str, lines: Vec<Line>) -> Result<Vec<Line>, Conflict> {
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
    line.key().filter(|key| key.rule == Rule::Limit)?;
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
