//! From the remedies of a finding to requests: which remedies are chosen, which are alternatives.
//!
//! The order of a finding's remedies is the check's preference. The first one that a program can
//! make says how it is done: on the running machine, with the boot entry, or with a file. All
//! remedies of that kind are chosen, those of other kinds are alternatives. Two things are planned
//! beside a change of the running machine: boot parameters that must act before any service
//! ([`Rule::Early`]), and, on request, whatever makes the change last.

use rtproof_host::tune::{Change, UnitState};
use rtproof_host::{
    Facts, Knob,
    knob::{Rule, Undo},
    knobs::{names, power},
};

use rtproof_host::tune as host;
use rtproof_model::finding::Part;

use super::{files, select::Selection, units, value};
use crate::{Finding, Remedy};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Request {
    /// A change of its own, and the knob that it sets, if there is one.
    Change(Change, Option<&'static Knob>),
    /// A line of a file of ours.
    Line { path: String, line: String },
    /// A word of the kernel's command line; `removes`: without it.
    Word { parameter: String, removes: bool },
    /// Something for a human.
    Human { text: String, build_options: Vec<String> },
}

impl Request {
    /// What can go wrong, beyond what the finding shows; `None`: nothing.
    ///
    /// Risky is what can leave a machine unreachable, unprotected, damaged or silently wrong. Not
    /// risky, though with a price that the plan shows as trade-off: no RT throttling and no fair
    /// server (a real-time thread that never sleeps keeps its CPU, which was set apart; undo, a
    /// reboot or the watchdog end it), no lockup detectors, interrupts on other CPUs.
    pub(super) fn risk(&self) -> Option<&'static str> {
        match self {
            Self::Change(Change::Unit { unit, want }, _) => {
                names::risk_of_stopping(unit).filter(|_| want.stops())
            }
            Self::Change(Change::Package { .. }, _) => Some(
                "the boot menu is made anew, with one kernel more; undo needs another one to run",
            ),
            Self::Change(_, knob) => knob.and_then(|knob| knob.risk),
            Self::Word { parameter: word, removes: false } => parameter(word)?.risk,
            _ => None,
        }
    }

    /// Whether it sets CPUs apart, or moves work to those that are left.
    pub(super) fn places_work(&self) -> bool {
        let is_about_cpus = |knob: &Knob| knob.cpus.is_some();
        match self {
            Self::Word { parameter: word, removes } => {
                !removes && parameter(word).is_some_and(is_about_cpus)
            }
            Self::Line { line, .. } => files::keys(line).any(|key| key.cpus.is_some()),
            Self::Change(Change::Irq { .. }, _) => true,
            Self::Change(Change::Property { property, .. }, _) => {
                names::key_of(property).is_some_and(is_about_cpus)
            }
            Self::Change(Change::Task { set, .. }, _) => set.cpus.is_some(),
            Self::Change(_, knob) => knob.is_some_and(is_about_cpus),
            Self::Human { .. } => false,
        }
    }
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
        Remedy::Set { .. }
        | Remedy::Unit { .. }
        | Remedy::Property { .. }
        | Remedy::Task { .. }
        | Remedy::Hold { .. } => Kind::Now,
        // A group belongs with the lines that name it.
        Remedy::Changes { .. } if installs(remedy) => Kind::Human,
        Remedy::Changes { changes, .. } => {
            let is_of_users = |part: &Part| part.change.nature().part == host::Part::Accounts;
            if changes.iter().all(is_of_users) { Kind::File } else { Kind::Now }
        }
        Remedy::Boot { .. } | Remedy::Unboot { .. } => Kind::Boot,
        Remedy::File { path, .. } if names::is_ours(path) => Kind::File,
        Remedy::File { .. }
        | Remedy::Command { .. }
        | Remedy::Build { .. }
        | Remedy::Manual { .. } => Kind::Human,
    }
}

/// Whether it installs packages, which is done only where its check is named.
fn installs(remedy: &Remedy) -> bool {
    let Remedy::Changes { changes, .. } = remedy else { return false };
    changes.iter().any(|part| matches!(part.change, Change::Package { .. }))
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
    let is_early = |remedy: &Remedy| {
        let Remedy::Boot { parameter: word } = remedy else { return false };
        parameter(word).is_some_and(|knob| knob.rule == Rule::Early)
    };
    let is_lasting = |remedy: &Remedy| durable && Some(kind(remedy)) == lasting;
    chosen.extend(remedies.iter().filter(|remedy| is_early(remedy) || is_lasting(remedy)));
    chosen
}

/// What is known of a boot parameter, with or without a value.
pub(super) fn parameter(word: &str) -> Option<&'static Knob> {
    names::parameter_of(word.split('=').next().unwrap_or_default())
}

/// The purpose of what a finding would set, if other knobs serve it, too. `keeps` says whether a
/// boot parameter only stays as it is.
pub(super) fn purpose(
    remedies: &[Remedy],
    keeps: impl Fn(&str) -> bool,
) -> Option<(&'static str, u8)> {
    let knob = match remedies.iter().find(|remedy| kind(remedy) != Kind::Human)? {
        Remedy::Set { knob, .. } => *knob,
        Remedy::Hold { .. } => Some(&power::CPU_DMA_LATENCY),
        Remedy::Boot { parameter: word } if !keeps(word) => parameter(word),
        _ => None,
    };
    knob?.purpose
}

/// What a finding requests, in the order of its remedies.
pub(super) fn of(facts: &Facts, finding: &Finding, wanted: &Selection) -> Vec<Request> {
    let install = finding.remedies.iter().find(|remedy| installs(remedy));
    let is_named = wanted.names(&finding.check);
    let chosen = match install.filter(|_| is_named) {
        Some(install) => vec![install],
        None => chosen(&finding.remedies, wanted.durable),
    };
    let mut requests: Vec<Request> = Vec::new();
    if let Some(install) = install.filter(|_| !is_named) {
        let text = format!(
            "as root: {install}; or, to have it undone again: rtproof tune apply {}",
            finding.check
        );
        requests.push(Request::Human { text, build_options: Vec::new() });
    }
    let chosen = chosen.into_iter().filter(|remedy| is_named || !installs(remedy));
    for request in chosen.flat_map(|remedy| requests_of(facts, remedy, &wanted.exe)) {
        if !requests.contains(&request) {
            requests.push(request);
        }
    }
    if requests.is_empty() {
        let text = format!("no change is known that makes it so: {}", finding.summary);
        requests.push(Request::Human { text, build_options: Vec::new() });
    }
    requests
}

fn requests_of(facts: &Facts, remedy: &Remedy, exe: &str) -> Vec<Request> {
    let human = |text: String| vec![Request::Human { text, build_options: Vec::new() }];
    let change = |change| vec![Request::Change(change, None)];
    match remedy {
        // What cannot be restored by writing it back is the user's to write.
        Remedy::Set { knob: Some(knob), at, value } if knob.undo == Undo::WriteBack => {
            let change = |path: &String| value::change(facts, knob, path, value);
            at.iter().map(|path| Request::Change(change(path), Some(knob))).collect()
        }
        Remedy::Set { .. } => human(format!("as root: {remedy}")),
        Remedy::Boot { parameter } => {
            let words = parameter.split_whitespace();
            words.map(|word| Request::Word { parameter: word.into(), removes: false }).collect()
        }
        Remedy::Unboot { parameter } => {
            vec![Request::Word { parameter: parameter.clone(), removes: true }]
        }
        Remedy::Unit { unit, action } => match wanted_state(action) {
            Some(want) => change(Change::Unit { unit: unit.clone(), want }),
            None => human(format!("as root: {remedy}")),
        },
        Remedy::Property { unit, property, value } => change(Change::Property {
            unit: unit.clone(),
            property: property.clone(),
            value: value.clone(),
        }),
        Remedy::Task { task, set } => change(Change::Task { task: task.clone(), set: set.clone() }),
        Remedy::Changes { changes, then, .. } => {
            let changes =
                changes.iter().map(|part| Request::Change(part.change.clone(), part.knob));
            changes.chain(then.iter().flat_map(|text| human(text.clone()))).collect()
        }
        Remedy::Hold { limit_us } => {
            let changes = units::latency_changes(exe, *limit_us).into_iter();
            changes.map(|change| Request::Change(change, None)).collect()
        }
        Remedy::File { path, line } if names::is_ours(path) => {
            vec![Request::Line { path: path.clone(), line: line.clone() }]
        }
        Remedy::File { .. } | Remedy::Manual { .. } => human(remedy.to_string()),
        Remedy::Command { command } => human(format!("as root: {command}")),
        Remedy::Build { options } => {
            vec![Request::Human { text: remedy.to_string(), build_options: options.clone() }]
        }
    }
}

/// What `systemctl ACTION` wants of a unit.
fn wanted_state(action: &str) -> Option<UnitState> {
    Some(match action {
        "stop" => UnitState::Stopped,
        "disable" | "disable --now" => UnitState::Disabled,
        "mask" | "mask --now" => UnitState::Masked,
        "start" => UnitState::Started,
        "enable" | "enable --now" => UnitState::Enabled,
        _ => return None,
    })
}
