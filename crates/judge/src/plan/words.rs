//! Words of the kernel's command line: those of several findings, merged by what they set.

use rtproof_host::{
    CpuList, Facts,
    facts::next_boot::relevant,
    knob::{CpuPlacement, ValueRule},
    tune::Change,
};

use super::request::{PlanRequest, parameter};
use super::{BootWord, Conflict, Reason};
use crate::Intent;

/// Boot words while requests are merged.
#[derive(Debug, Default)]
pub(super) struct PlanWords(Vec<Wanted>);

#[derive(Debug)]
struct Wanted {
    parameter: String,
    removes: bool,
    reason: Reason,
}

impl Wanted {
    /// The name; of words that add up the whole word.
    fn key(&self) -> &str {
        let name = self.parameter.split('=').next().unwrap_or_default();
        if adds_up(name) { &self.parameter } else { name }
    }
}

impl PlanWords {
    pub(super) fn add(&mut self, parameter: String, removes: bool, reason: Reason) {
        self.0.push(Wanted { parameter, removes, reason });
    }

    /// The words by name, and what contradicts.
    pub(super) fn finish(self, facts: &Facts) -> (Vec<BootWord>, Vec<Conflict>) {
        let mut groups: Vec<Vec<Wanted>> = Vec::new();
        for wanted in self.0 {
            match groups.iter_mut().find(|group| group[0].key() == wanted.key()) {
                Some(group) => group.push(wanted),
                None => groups.push(vec![wanted]),
            }
        }
        groups.sort_by(|one, other| one[0].key().cmp(other[0].key()));
        let (mut words, mut conflicts) = (Vec::new(), Vec::new());
        for group in groups {
            match merged(&deciding(facts, &group)) {
                Some((parameter, removes)) => {
                    let removes = removes || replaces(facts, &parameter);
                    let reasons = group.into_iter().map(|wanted| wanted.reason);
                    let Some(reason) = reasons.reduce(Reason::merged) else { continue };
                    words.push(BootWord { parameter, removes, reason });
                }
                None => conflicts.push(conflict(&group)),
            }
        }
        (words, conflicts)
    }
}

/// Whether a word replaces existing ones of its name.
fn replaces(facts: &Facts, parameter: &str) -> bool {
    let Some((key, _)) = parameter.split_once('=') else { return false };
    let is_there = facts.kernel.cmdline.value().is_some_and(|line| line.last(key).is_some());
    is_there && !adds_up(key)
}

/// Whether words of this parameter add up.
fn adds_up(name: &str) -> bool {
    parameter(name).is_some_and(|knob| knob.rule == ValueRule::AddsUp)
}

/// Whether a word is on the command line of this boot already, and would only stay.
pub(super) fn is_in_force(facts: &Facts, word: &str) -> bool {
    facts.kernel.cmdline.value().is_some_and(|line| relevant(line).iter().any(|one| one == word))
}

/// What decides about the word: what only stays gives way to what changes it.
fn deciding<'a>(facts: &Facts, group: &'a [Wanted]) -> Vec<&'a Wanted> {
    let stays = |one: &&Wanted| !one.removes && is_in_force(facts, &one.parameter);
    let others: Vec<&Wanted> = group.iter().filter(|one| !stays(one)).collect();
    if others.is_empty() { group.iter().collect() } else { others }
}

fn conflict(group: &[Wanted]) -> Conflict {
    let request = |wanted: &Wanted| {
        let without = if wanted.removes { "without " } else { "" };
        (wanted.reason.checks.join(", "), format!("{without}{}", wanted.parameter))
    };
    let target = format!("kernel command line: {}", group[0].key());
    Conflict { target, requests: group.iter().map(request).collect() }
}

/// The one word that satisfies all requests.
fn merged(group: &[&Wanted]) -> Option<(String, bool)> {
    let first = group[0];
    if group.iter().all(|one| one.parameter == first.parameter && one.removes == first.removes) {
        return Some((first.parameter.clone(), first.removes));
    }
    if group.iter().any(|one| one.removes) {
        return None;
    }
    let key = first.key();
    let of = |wanted: &&Wanted| {
        let value = wanted.parameter.split_once('=')?.1.to_owned();
        Some((flags(&value), cpus_of(&value)?))
    };
    let all: Vec<(Vec<String>, CpuList)> = group.iter().map(of).collect::<Option<_>>()?;
    let holds = |wide: &CpuList, cpus: &CpuList| cpus.difference(wide).is_empty();
    let (_, cpus) = match parameter(key)?.cpus? {
        CpuPlacement::Apart => {
            all.iter().find(|(_, wide)| all.iter().all(|(_, cpus)| holds(wide, cpus)))?
        }
        CpuPlacement::Left => {
            all.iter().find(|(_, narrow)| all.iter().all(|(_, cpus)| holds(cpus, narrow)))?
        }
        CpuPlacement::Placed => return None,
    };
    let mut words: Vec<String> = Vec::new();
    for flag in all.iter().flat_map(|(flags, _)| flags) {
        if !words.contains(flag) {
            words.push(flag.clone());
        }
    }
    // As the kernel's documents have it: managed_irq, domain, then others.
    words.sort_by_key(|flag| match flag.as_str() {
        "managed_irq" => 0,
        "domain" => 1,
        _ => 2,
    });
    words.push(cpus.to_string());
    Some((format!("{key}={}", words.join(",")), false))
}

/// The flags before a list of CPUs. `isolcpus=2-3` is `isolcpus=domain,2-3`.
fn flags(value: &str) -> Vec<String> {
    let is_flag = |part: &&str| part.starts_with(|c: char| c.is_ascii_alphabetic());
    value.split(',').filter(is_flag).map(str::to_owned).collect()
}

// What is never planned: a machine without a CPU for the rest, CPUs set apart that the user did
// not name, empty values.

/// Why a request is not planned; `None`: it is.
pub(super) fn refuses(facts: &Facts, intent: &Intent, request: &PlanRequest) -> Option<String> {
    if request.places_work() && intent.housekeeping.is_empty() {
        return Some(
            "every CPU is a real-time CPU: none is left for the rest; name the real-time CPUs \
             with --cpus"
                .into(),
        );
    }
    if let PlanRequest::Word { parameter, removes: false } = request {
        return list(facts, parameter);
    }
    let PlanRequest::Change(change, knob) = request else { return None };
    let may_be_empty = knob.is_some_and(|knob| knob.rule == ValueRule::MayBeEmpty);
    match change {
        Change::Value { path, value, .. } if value.is_empty() && !may_be_empty => {
            Some(format!("nothing to write to {path}"))
        }
        Change::Irq { irq, cpus } => irq_stays(facts, irq.number, cpus),
        Change::Hotplug { path, value } if value == "0" => {
            takes_the_last(facts, intent, knob.and_then(|knob| knob.cpu_of(path))?)
        }
        _ => None,
    }
}

/// A list that takes every CPU, or none.
fn list(facts: &Facts, word: &str) -> Option<String> {
    let (_, value) = word.split_once('=')?;
    let kind = parameter(word)?.cpus?;
    let list = value.rsplit(',').find(|part| !part.is_empty());
    if list.is_none() {
        return Some(format!("{word} names no CPU"));
    }
    let cpus = cpus_of(value)?;
    let online = facts.cpus.online.value()?;
    (kind == CpuPlacement::Apart && online.difference(&cpus).is_empty())
        .then(|| format!("{word} takes every CPU: none is left for the rest"))
}

/// The CPUs of a value, flags before them left out.
fn cpus_of(value: &str) -> Option<CpuList> {
    let is_list = |part: &&str| part.starts_with(|c: char| c.is_ascii_digit());
    let parts: Vec<&str> = value.split(',').filter(is_list).collect();
    CpuList::parse(&parts.join(","), None).ok().filter(|cpus| !cpus.is_empty())
}

/// An interrupt that does not follow its requested CPUs.
fn irq_stays(facts: &Facts, number: u32, cpus: &CpuList) -> Option<String> {
    let irq = facts.irqs.irqs.value()?.iter().find(|irq| irq.number == number)?;
    if irq.managed {
        return Some(format!(
            "interrupt {number} ({}) is managed: the kernel places it, and nobody else can; \
             isolcpus=managed_irq,... keeps it away (from Linux 5.6 on), or fewer queues of its \
             device",
            irq.actions
        ));
    }
    let (asked, found) = (irq.requested.value()?, irq.effective.value()?);
    let is_asked = !asked.is_empty() && asked.difference(cpus).is_empty();
    (is_asked && !found.difference(cpus).is_empty()).then(|| {
        format!(
            "interrupt {number} ({}) was asked to go to {asked} and goes to {found}: its driver \
             manages it, or it has not fired since; isolcpus=managed_irq,... keeps such away from \
             Linux 5.6 on",
            irq.actions
        )
    })
}

/// Taking the last CPU that is left for the rest.
fn takes_the_last(facts: &Facts, intent: &Intent, number: u32) -> Option<String> {
    let online = facts.cpus.online.value()?;
    let left = online.intersection(&intent.housekeeping).difference(&CpuList::new([number]));
    left.is_empty().then(|| format!("without CPU {number} none is left for the rest"))
}
