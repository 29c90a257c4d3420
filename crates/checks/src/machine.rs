//! Questions that several checks ask of the facts. `None` is "unknown", never "no".

use rtproof_host::{CpuList, Facts, Reading, facts::cpu::Cpu};

pub(crate) use crate::release::since;
use crate::{Evidence, Intent, quantity};

/// Where /sys keeps the CPUs.
const CPU_FOLDER: &str = "/sys/devices/system/cpu";

/// Whether the kernel is built with an option (`y` or `m`).
pub(crate) fn built_with(facts: &Facts, option: &str) -> Option<bool> {
    let config = facts.kernel.config.value()?;
    Some(config.get(option).is_some_and(|value| value == "y" || value == "m"))
}

/// An option of the kernel's configuration as evidence.
pub(crate) fn option(facts: &Facts, option: &str) -> Evidence {
    Evidence::of(&facts.kernel.config, |config| match config.get(option) {
        Some(value) => format!("CONFIG_{option}={value}"),
        None => format!("CONFIG_{option} is not set"),
    })
}

/// Name of the hypervisor, where this is known to be a guest.
pub(crate) fn guest(facts: &Facts) -> Option<&str> {
    facts.virt.hypervisor.value()?.as_deref()
}

/// Whether this is known to be no guest.
pub(crate) fn is_bare_metal(facts: &Facts) -> bool {
    matches!(facts.virt.hypervisor.value(), Some(None))
}

/// What was to tell whether this is a guest, where it does not.
pub(crate) fn guest_unseen(facts: &Facts) -> Option<&Reading<Option<String>>> {
    Some(&facts.virt.hypervisor).filter(|hypervisor| hypervisor.value().is_none())
}

/// Name of the container, where this is known to be in one.
pub(crate) fn container(facts: &Facts) -> Option<&str> {
    facts.virt.container.value()?.as_deref()
}

/// The real-time CPUs that have facts, and those that have none: offline, or no such CPU.
pub(crate) fn rt_cpus<'a>(facts: &'a Facts, intent: &Intent) -> (Vec<&'a Cpu>, CpuList) {
    let known: Vec<&Cpu> =
        facts.cpus.cpus.iter().filter(|cpu| intent.rt_cpus.contains(cpu.id)).collect();
    let missing = intent.rt_cpus.difference(&CpuList::new(known.iter().map(|cpu| cpu.id)));
    (known, missing)
}

/// Why nothing is known of any CPU: the folder of the CPUs in /sys is not there.
pub(crate) fn without_cpu_folder(facts: &Facts) -> Option<String> {
    let cpus = &facts.cpus;
    let is_listed = cpus.online.value().is_some() && cpus.online.path.starts_with(CPU_FOLDER);
    let is_bare = |cpu: &Cpu| {
        cpu.core.is_absent()
            && cpu.siblings.is_absent()
            && cpu.freq.governor.is_absent()
            && cpu.idle_states.is_absent()
    };
    let is_missing = !is_listed
        && cpus.possible.is_absent()
        && cpus.isolated.is_absent()
        && cpus.smt_active.value().is_none()
        && cpus.cpus.iter().all(is_bare);
    is_missing.then(|| format!("{CPU_FOLDER}: not there"))
}

/// Why CPUs without facts have none.
pub(crate) fn why_missing(facts: &Facts, missing: &CpuList) -> String {
    let online = &facts.cpus.online;
    if let Some(why) = online.why_unknown() {
        return format!("{}: {why}", online.path);
    }
    let is_there = |possible: &CpuList| missing.difference(possible).is_empty();
    let what = match facts.cpus.possible.value() {
        Some(possible) if !is_there(possible) => "not in this machine",
        _ => "offline",
    };
    format!("{}: {what}", quantity::cpus(missing))
}

/// CPUs that the machine has and that are offline.
pub(crate) fn offline(facts: &Facts) -> Option<CpuList> {
    Some(facts.cpus.possible.value()?.difference(facts.cpus.online.value()?))
}

/// The real-time CPUs that are offline; none where nobody knows.
pub(crate) fn offline_rt(facts: &Facts, intent: &Intent) -> CpuList {
    let offline = |online| intent.rt_cpus.difference(online);
    facts.cpus.online.value().map(offline).unwrap_or_default()
}

/// Whether every online CPU is a real-time CPU, so that nothing can be moved away.
pub(crate) fn is_all_rt(facts: &Facts, intent: &Intent) -> bool {
    let online = facts.cpus.online.value();
    online.is_some_and(|online| !online.is_empty() && online.difference(&intent.rt_cpus).is_empty())
}
