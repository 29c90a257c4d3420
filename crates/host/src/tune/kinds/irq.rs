//! The CPUs of interrupts. An interrupt is named by its handlers, its number in its controller and
//! the controller: the number that Linux gives it is only a hint.

use crate::tune::kind::{
    ChangeError, Kind, Machine, Nature, Pace, Part, Rank, Side, State, Three, text,
};
use crate::{
    CpuList, Root,
    change::{Change, Compare, IrqName},
    tune::kinds::value::Value,
};

/// The CPUs of one interrupt.
pub(super) struct Irq<'a> {
    pub(super) irq: &'a IrqName,
    pub(super) cpus: &'a CpuList,
}

impl Kind for Irq<'_> {
    fn target(&self) -> String {
        file(self.irq.number)
    }

    fn line(&self) -> String {
        format!("interrupt {} ({}) on CPUs {}", self.irq.number, self.irq.actions, self.cpus)
    }

    fn title(&self) -> String {
        match self.irq.actions.as_str() {
            "" => format!("IRQ {}", self.irq.number),
            actions => format!("IRQ {} ({actions})", self.irq.number),
        }
    }

    fn wanted(&self) -> String {
        self.cpus.to_string()
    }

    fn after(&self) -> String {
        self.cpus.phrase()
    }

    fn before(&self, state: &State) -> String {
        let State::Value { bytes, .. } = state else { return text::state(state) };
        let cpus = CpuList::parse(&bytes.text(), None);
        cpus.map_or_else(|_| text::state(state), |cpus| cpus.phrase())
    }

    fn texts(&self) -> Vec<&str> {
        vec![&self.irq.actions, &self.irq.hwirq]
    }

    fn may_be_made(&self) -> Result<(), String> {
        Ok(())
    }

    fn nature(&self) -> Nature {
        Nature::lost_at_reboot(Part::Irqs, Rank::Irqs, Pace::Toggled)
    }

    /// One that the kernel keeps where it is (managed interrupts, kernels before 6.10).
    fn may_be_refused(&self) -> bool {
        true
    }

    fn named(&self, machine: &Machine<'_>) -> Result<Option<Change>, ChangeError> {
        let root = machine.root;
        let irq = identify(root, find(root, self.irq)?);
        Ok(Some(Change::Irq { irq, cpus: self.cpus.clone() }))
    }

    fn state(&self, machine: &Machine<'_>) -> Result<State, ChangeError> {
        machine.value_state(&file(find(machine.root, self.irq)?), &[])
    }

    fn is_done(&self, _: &Machine<'_>, state: &State) -> bool {
        let State::Value { bytes, .. } = state else { return false };
        cpu_list("", &self.cpus.to_string()).holds(bytes)
    }

    fn write(&self, machine: &Machine<'_>, _before: &State) -> Result<(), ChangeError> {
        let number = find(machine.root, self.irq)?;
        machine.write_value(&file(number), &self.cpus.to_string())
    }

    /// Where the interrupt is really delivered, when that is not yet where it is wanted.
    fn pending(&self, machine: &Machine<'_>) -> Option<String> {
        let number = find(machine.root, self.irq).ok()?;
        let effective = format!("/proc/irq/{number}/effective_affinity_list");
        let effective = machine.root.cpu_list(&effective);
        let effective = effective.value().filter(|effective| !effective.is_empty())?;
        (!effective.difference(self.cpus).is_empty()).then(|| {
            format!("pending: still delivered to CPU {effective} until the next interrupt")
        })
    }

    fn side(&self, machine: &Machine<'_>, three: Three<'_>) -> Side {
        machine.value_side(cpu_list("", &self.cpus.to_string()), three)
    }

    fn restore(&self, machine: &Machine<'_>, three: Three<'_>) -> Result<(), ChangeError> {
        let path = file(find(machine.root, self.irq)?);
        machine.restore_value(cpu_list(&path, ""), three)
    }
}

/// CPUs as a value.
const fn cpu_list<'a>(path: &'a str, cpus: &'a str) -> Value<'a> {
    Value::of(path, cpus, Compare::CpuList)
}

/// The interrupt's number now.
pub(super) fn find(root: &Root, name: &IrqName) -> Result<u32, ChangeError> {
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
        (Some(_), others) => Err(ChangeError::Unexpected {
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

fn gone(name: &IrqName) -> ChangeError {
    ChangeError::Gone { what: format!("interrupt {} ({})", name.number, name.actions) }
}

/// The file of an interrupt's CPUs.
pub(super) fn file(number: u32) -> String {
    format!("/proc/irq/{number}/smp_affinity_list")
}
