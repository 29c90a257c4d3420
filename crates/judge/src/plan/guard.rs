//! What is never planned, whatever is wished for: a machine without a CPU for itself, CPUs set
//! apart that nobody named, values that say nothing.

use rtproof_host::tune::Change;
use rtproof_host::{CpuList, Facts};

use super::wish::Wish;
use crate::Intent;

/// Boot parameters that set CPUs apart, or name those that are left.
const SETS_APART: &[&str] = &[
    "irqaffinity",
    "isolcpus",
    "kthread_cpus",
    "nohz_full",
    "rcu_nocbs",
    "systemd.cpu_affinity",
    "workqueue.unbound_cpus",
];

/// Why a wish is not planned; `None`: it is.
pub(super) fn refuses(facts: &Facts, intent: &Intent, wish: &Wish) -> Option<String> {
    if sets_apart(wish) && intent.housekeeping.is_empty() {
        return Some(
            "every CPU is a real-time CPU: none is left for the rest; name the real-time CPUs \
             with --cpus"
                .into(),
        );
    }
    if let Wish::Word { parameter, removes: false } = wish {
        return word(facts, parameter);
    }
    let Wish::Change(change) = wish else { return None };
    match change {
        Change::Value { path, value, .. } if value.is_empty() && !is_list(path) => {
            Some(format!("nothing to write to {path}"))
        }
        Change::Irq { irq, cpus } => irq_stays(facts, irq.number, cpus),
        Change::Hotplug { path, value } if value == "0" => takes_the_last(facts, intent, path),
        _ => None,
    }
}

/// Whether an empty text empties what the file lists.
fn is_list(path: &str) -> bool {
    ["/set_event", "/kprobe_events"].iter().any(|name| path.ends_with(name))
}

/// Whether it sets CPUs apart, or moves work to those that are left.
fn sets_apart(wish: &Wish) -> bool {
    let is_mask = |path: &str| {
        ["cpumask", "smp_affinity", "cpuset.cpus", "cpuset.cpus.partition", "rps_cpus", "xps_cpus"]
            .iter()
            .any(|name| path.ends_with(name))
    };
    match wish {
        Wish::Word { parameter, removes } => {
            let key = parameter.split('=').next().unwrap_or_default();
            !removes && SETS_APART.contains(&key)
        }
        Wish::Line { line, .. } => line.contains("CPUAffinity="),
        Wish::Change(Change::Irq { .. }) => true,
        Wish::Change(Change::Value { path, .. }) => is_mask(path),
        Wish::Change(Change::Property { property, .. }) => property == "AllowedCPUs",
        Wish::Change(Change::Task { set, .. }) => set.cpus.is_some(),
        _ => false,
    }
}

/// A list that takes every CPU, or none.
fn word(facts: &Facts, parameter: &str) -> Option<String> {
    let (key, value) = parameter.split_once('=')?;
    if !SETS_APART.contains(&key) {
        return None;
    }
    let list = value.rsplit(',').find(|part| !part.is_empty());
    if list.is_none() {
        return Some(format!("{parameter} names no CPU"));
    }
    let leaves_none = !matches!(key, "irqaffinity" | "systemd.cpu_affinity" | "kthread_cpus")
        && key != "workqueue.unbound_cpus";
    let cpus = cpus_of(value)?;
    let online = facts.cpus.online.value()?;
    (leaves_none && online.difference(&cpus).is_empty())
        .then(|| format!("{parameter} takes every CPU: none is left for the rest"))
}

/// The CPUs of a value, flags before them left out.
pub(super) fn cpus_of(value: &str) -> Option<CpuList> {
    let is_list = |part: &&str| part.starts_with(|c: char| c.is_ascii_digit());
    let parts: Vec<&str> = value.split(',').filter(is_list).collect();
    CpuList::parse(&parts.join(","), None).ok().filter(|cpus| !cpus.is_empty())
}

/// An interrupt that was asked to go elsewhere already, and did not.
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
fn takes_the_last(facts: &Facts, intent: &Intent, path: &str) -> Option<String> {
    let number = path.strip_suffix("/online")?.rsplit("/cpu").next()?.parse().ok()?;
    let online = facts.cpus.online.value()?;
    let left = online.intersection(&intent.housekeeping).difference(&CpuList::new([number]));
    left.is_empty().then(|| format!("without CPU {number} none is left for the rest"))
}
