//! Interrupts by what they are: handlers, number in their controller, controller. The number that
//! Linux gives them is only a hint.

use super::{
    change::{Compare, IrqName},
    machine::Machine,
    state::State,
    trouble::Trouble,
    value::Value,
};
use crate::{CpuList, Root};

/// The interrupt's number now.
pub(super) fn find(root: &Root, name: &IrqName) -> Result<u32, Trouble> {
    if name.actions.is_empty() && name.hwirq.is_empty() && name.chip.is_empty() {
        let there = root.exists(&format!("/proc/irq/{}", name.number));
        return if there { Ok(name.number) } else { Err(gone(name)) };
    }
    let is_same = |number: u32| {
        let there = identify(root, number);
        // What a name leaves open (a plan knows no controller) fits any.
        let fits = |wanted: &str, found: &str| wanted.is_empty() || wanted == found;
        fits(&name.actions, &there.actions)
            && fits(&name.hwirq, &there.hwirq)
            && fits(&name.chip, &there.chip)
    };
    if is_same(name.number) {
        return Ok(name.number);
    }
    let numbers = root.list_numbered("/proc/irq", "");
    let mut found = numbers.value().into_iter().flatten().copied().filter(|&n| is_same(n));
    match (found.next(), found.count()) {
        (Some(number), 0) => Ok(number),
        (None, _) => Err(gone(name)),
        (Some(_), others) => Err(Trouble::Unexpected {
            path: format!("interrupt of {}", name.actions),
            found: format!("{} interrupts that look alike", others + 1),
            expected: "one".into(),
        }),
    }
}

/// What an interrupt with this number is.
pub(super) fn identify(root: &Root, number: u32) -> IrqName {
    let text = |file: &str| {
        let file = root.trimmed(&format!("/sys/kernel/irq/{number}/{file}"));
        file.value().cloned().unwrap_or_default()
    };
    let mut actions = text("actions");
    if actions.is_empty() {
        // Kernels without /sys/kernel/irq have a folder for each handler.
        let folder = format!("/proc/irq/{number}");
        let names = root.list_dir(&folder);
        let is_folder =
            |name: &&String| root.list_dir(&format!("{folder}/{name}")).value().is_some();
        let names: Vec<String> =
            names.value().into_iter().flatten().filter(is_folder).cloned().collect();
        actions = names.join(",");
    }
    IrqName { number, actions, hwirq: text("hwirq"), chip: text("chip_name") }
}

/// All interrupts whose CPUs can be read.
pub(super) fn all(root: &Root) -> Vec<(IrqName, CpuList)> {
    let numbers = root.list_numbered("/proc/irq", "");
    let one = |&number: &u32| {
        let cpus = root.cpu_list(&format!("/proc/irq/{number}/smp_affinity_list"));
        Some((identify(root, number), cpus.value()?.clone()))
    };
    numbers.value().into_iter().flatten().filter_map(one).collect()
}

fn gone(name: &IrqName) -> Trouble {
    Trouble::Gone { what: format!("interrupt {} ({})", name.number, name.actions) }
}

/// The file of an interrupt's CPUs.
pub(super) fn file(number: u32) -> String {
    format!("/proc/irq/{number}/smp_affinity_list")
}

fn effective_file(number: u32) -> String {
    format!("/proc/irq/{number}/effective_affinity_list")
}

/// CPUs as a value.
pub(super) fn value<'v>(path: &'v str, cpus: &'v str) -> Value<'v> {
    Value { path, value: cpus, compare: Compare::CpuList }
}

impl Machine<'_> {
    pub(super) fn irq_state(&self, name: &IrqName) -> Result<State, Trouble> {
        self.value_state(&file(find(self.root, name)?), &[])
    }

    /// Where the interrupt is really delivered, when that is not yet where it is wanted.
    pub(super) fn irq_pending(&self, name: &IrqName, cpus: &CpuList) -> Option<String> {
        let number = find(self.root, name).ok()?;
        let effective = self.root.cpu_list(&effective_file(number));
        let effective = effective.value().filter(|effective| !effective.is_empty())?;
        (!effective.difference(cpus).is_empty()).then(|| {
            format!("pending: still delivered to CPU {effective} until the next interrupt")
        })
    }
}
