//! What is never planned: a machine without a CPU for the rest, CPUs set apart that the user did
//! not name, empty values.

use rtproof_host::tune::Change;
use rtproof_host::{
    CpuList, Facts,
    knob::{Cpus, Rule},
};

use super::request::{Request, parameter};
use crate::Intent;

/// Why a request is not planned; `None`: it is.
pub(super) fn refuses(facts: &Facts, intent: &Intent, request: &Request) -> Option<String> {
    if request.places_work() && intent.housekeeping.is_empty() {
        return Some(
            "every CPU is a real-time CPU: none is left for the rest; name the real-time CPUs \
             with --cpus"
                .into(),
        );
    }
    if let Request::Word { parameter, removes: false } = request {
        return list(facts, parameter);
    }
    let Request::Change(change, knob) = request else { return None };
    let may_be_empty = knob.is_some_and(|knob| knob.rule == Rule::MayBeEmpty);
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
    (kind == Cpus::Apart && online.difference(&cpus).is_empty())
        .then(|| format!("{word} takes every CPU: none is left for the rest"))
}

/// The CPUs of a value, flags before them left out.
pub(super) fn cpus_of(value: &str) -> Option<CpuList> {
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
             isolcpus=managed_irq,... keeps it away, or fewer queues of its device",
            irq.actions
        ));
    }
    let (asked, found) = (irq.requested.value()?, irq.effective.value()?);
    let is_asked = !asked.is_empty() && asked.difference(cpus).is_empty();
    (is_asked && !found.difference(cpus).is_empty()).then(|| {
        format!(
            "interrupt {number} ({}) was asked to go to {asked} and goes to {found}: its driver \
             manages it, or it has not fired since; isolcpus=managed_irq,... keeps such away",
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
