//! From the remedies of a finding to what is wished for: which of them are done, which are other
//! ways to the same end.
//!
//! The order of a finding's remedies is the check's preference. The first one that a program can
//! make says how it is done: on the running machine, with the boot entry, or with a file. All
//! remedies of that kind are done, those of the other kinds are other ways. Two things are done
//! beside a change of the running machine: boot parameters that have to act before any service
//! does ([`EARLY`]), and, on request, whatever makes it last.

use rtproof_host::tune::{Change, UnitWish};

use super::{Selection, units, value};
use crate::{Finding, Remedy};
use rtproof_host::Facts;

/// Parameters that act before `rtproof.service` can, and why that matters.
pub(super) const EARLY: &[(&str, &str)] = &[
    ("irqaffinity", "drivers ask for their interrupts before any service runs"),
    ("workqueue.unbound_cpus", "workers are started before any service runs"),
];

/// One thing wished for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    /// A change of its own.
    Change(Change),
    /// A line of a file of ours.
    Line { path: String, line: String },
    /// A word of the kernel's command line; `removes`: without it.
    Word { parameter: String, removes: bool },
    /// Something for a human.
    Human { text: String, build_options: Vec<String> },
}

/// How a remedy is done.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Now,
    Boot,
    File,
    Human,
}

fn kind(remedy: &Remedy) -> Kind {
    match remedy {
        Remedy::Write { .. }
        | Remedy::Unit { .. }
        | Remedy::Property { .. }
        | Remedy::Task { .. }
        | Remedy::Hold { .. }
        | Remedy::Changes { .. } => Kind::Now,
        Remedy::Boot { .. } | Remedy::Unboot { .. } => Kind::Boot,
        Remedy::File { path, .. } if is_ours(path) => Kind::File,
        Remedy::File { .. }
        | Remedy::Command { .. }
        | Remedy::Build { .. }
        | Remedy::Manual { .. } => Kind::Human,
    }
}

/// Whether a program can make one of them.
pub(super) fn changes(remedies: &[Remedy]) -> bool {
    remedies.iter().any(|remedy| kind(remedy) != Kind::Human)
}

/// Whether a file is one that rtproof makes whole: no other program's file has this name.
pub(super) fn is_ours(path: &str) -> bool {
    path.rsplit('/').next().is_some_and(|name| name.contains("rtproof"))
}

/// The remedies of a finding that are done.
fn chosen(remedies: &[Remedy], durable: bool) -> Vec<&Remedy> {
    let Some(first) = remedies.iter().find(|remedy| kind(remedy) != Kind::Human) else {
        return remedies.iter().collect();
    };
    let how = kind(first);
    let ahead = remedies.iter().take_while(|remedy| kind(remedy) == Kind::Human);
    let mut chosen: Vec<&Remedy> = ahead.collect();
    chosen.extend(remedies.iter().filter(|remedy| kind(remedy) == how));
    if how != Kind::Now {
        return chosen;
    }
    let is_lasting = |remedy: &&Remedy| matches!(kind(remedy), Kind::Boot | Kind::File);
    let lasting = remedies.iter().find(is_lasting).map(kind);
    chosen.extend(remedies.iter().filter(|remedy| match remedy {
        Remedy::Boot { parameter } if is_early(parameter) => true,
        remedy => durable && Some(kind(remedy)) == lasting,
    }));
    chosen
}

fn is_early(parameter: &str) -> bool {
    let key = parameter.split('=').next();
    EARLY.iter().any(|(early, _)| key == Some(early))
}

/// What a finding wishes for, in the order of its remedies.
pub(super) fn of(facts: &Facts, finding: &Finding, wanted: &Selection) -> Vec<Wish> {
    let chosen = chosen(&finding.remedies, wanted.durable);
    let mut wishes: Vec<Wish> = Vec::new();
    for wish in chosen.into_iter().flat_map(|remedy| wishes_of(facts, remedy, &wanted.exe)) {
        if !wishes.contains(&wish) {
            wishes.push(wish);
        }
    }
    if wishes.is_empty() {
        let text = format!("no change is known that makes it so: {}", finding.summary);
        wishes.push(Wish::Human { text, build_options: Vec::new() });
    }
    wishes
}

fn wishes_of(facts: &Facts, remedy: &Remedy, exe: &str) -> Vec<Wish> {
    let human = |text: String| vec![Wish::Human { text, build_options: Vec::new() }];
    match remedy {
        Remedy::Write { paths, .. } if paths.iter().any(|path| is_of_process(path)) => {
            human(format!("as root: {remedy}"))
        }
        Remedy::Write { paths, value } => {
            paths.iter().map(|path| Wish::Change(value::change(facts, path, value))).collect()
        }
        Remedy::Boot { parameter } => {
            let words = parameter.split_whitespace();
            words.map(|word| Wish::Word { parameter: word.into(), removes: false }).collect()
        }
        Remedy::Unboot { parameter } => {
            vec![Wish::Word { parameter: parameter.clone(), removes: true }]
        }
        Remedy::Unit { unit, action } => match unit_wish(action) {
            Some(want) => vec![Wish::Change(Change::Unit { unit: unit.clone(), want })],
            None => human(format!("as root: {remedy}")),
        },
        Remedy::Property { unit, property, value } => vec![Wish::Change(Change::Property {
            unit: unit.clone(),
            property: property.clone(),
            value: value.clone(),
        })],
        Remedy::Task { task, set } => {
            vec![Wish::Change(Change::Task { task: task.clone(), set: set.clone() })]
        }
        Remedy::Changes { changes, then, .. } => {
            let changes = changes.iter().cloned().map(Wish::Change);
            changes.chain(then.iter().flat_map(|text| human(text.clone()))).collect()
        }
        Remedy::Hold { limit_us } => {
            units::latency_changes(exe, *limit_us).into_iter().map(Wish::Change).collect()
        }
        Remedy::File { path, line } if is_ours(path) => {
            vec![Wish::Line { path: path.clone(), line: line.clone() }]
        }
        Remedy::File { .. } | Remedy::Manual { .. } => human(remedy.to_string()),
        Remedy::Command { command } => human(format!("as root: {command}")),
        Remedy::Build { options } => {
            vec![Wish::Human { text: remedy.to_string(), build_options: options.clone() }]
        }
    }
}

/// Whether a file is of one process: its number may be another's when the file is put back.
fn is_of_process(path: &str) -> bool {
    path.strip_prefix("/proc/").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// What `systemctl ACTION` wants of a unit.
fn unit_wish(action: &str) -> Option<UnitWish> {
    Some(match action {
        "stop" => UnitWish::Stopped,
        "disable" | "disable --now" => UnitWish::Disabled,
        "mask" | "mask --now" => UnitWish::Masked,
        "start" => UnitWish::Started,
        "enable" | "enable --now" => UnitWish::Enabled,
        _ => return None,
    })
}
