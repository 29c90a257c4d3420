//! From a path and a value to a change: what kind of change a write is, how what is read back is
//! compared, and what moves with it.

use rtproof_host::tune::{Change, Compare, IrqName};
use rtproof_host::{CpuList, Facts, Knob, knob::Place, knobs};

/// Files whose text tells nothing of how it is compared, by a part of their path.
const FORMS: &[(&str, &str, Compare)] = &[
    ("/sys/kernel/debug/sched/", "features", Compare::Word),
    ("/sys/fs/cgroup/", "cgroup.subtree_control", Compare::Controller),
    ("/sys/fs/cgroup/", "cpuset.cpus", Compare::CpuList),
    ("/sys/fs/cgroup/", "cpuset.cpus.exclusive", Compare::CpuList),
    ("/proc/irq/", "default_smp_affinity", Compare::CpuMask),
    ("/proc/sys/kernel/", "watchdog_cpumask", Compare::CpuList),
    ("/proc/sys/net/core/", "rps_default_mask", Compare::CpuMask),
    ("/sys/devices/virtual/workqueue/", "cpumask", Compare::CpuMask),
    ("/sys/class/net/", "rps_cpus", Compare::CpuMask),
    ("/sys/class/net/", "xps_cpus", Compare::CpuMask),
    ("/sys/kernel/debug/sched/", "preempt", Compare::Choice),
    ("/sys/block/", "scheduler", Compare::Choice),
];

/// The change that writes `value` to `path`.
pub(super) fn change(facts: &Facts, path: &str, value: &str) -> Change {
    if let Some(number) = irq_of(path)
        && let Ok(cpus) = CpuList::parse(value, None)
    {
        return Change::Irq { irq: irq_name(facts, number), cpus };
    }
    let (path, value) = (path.to_owned(), value.to_owned());
    if is_hotplug(&path) {
        return Change::Hotplug { path, value };
    }
    let knob = knob_of(&path);
    let compare = compare(&path, &value, knob);
    let couples = knob.map_or_else(Vec::new, |knob| couples(facts, knob, &path));
    let value = if path == PRINTK { printk(facts, value) } else { value };
    Change::Value { path, value, compare, couples }
}

/// Number of the interrupt whose CPUs are written to this path.
fn irq_of(path: &str) -> Option<u32> {
    path.strip_prefix("/proc/irq/")?.strip_suffix("/smp_affinity_list")?.parse().ok()
}

/// The name of an interrupt as far as facts have it: its number in its controller is only known on
/// the machine (`Machine::named`).
fn irq_name(facts: &Facts, number: u32) -> IrqName {
    let irqs = facts.irqs.irqs.value().into_iter().flatten();
    let found = irqs.into_iter().find(|irq| irq.number == number);
    // /proc/interrupts has ", " between names, /sys/kernel/irq/N/actions a comma.
    let actions = found.map_or_else(String::new, |irq| irq.actions.replace(", ", ","));
    IrqName { number, actions, hwirq: String::new(), chip: String::new() }
}

fn is_hotplug(path: &str) -> bool {
    let Some(below) = path.strip_prefix("/sys/devices/system/cpu/") else { return false };
    let is_cpu =
        |part: &str| part.strip_prefix("cpu").is_some_and(|number| number.parse::<u32>().is_ok());
    below == "smt/control" || below.strip_suffix("/online").is_some_and(is_cpu)
}

/// The knob that a file belongs to.
fn knob_of(path: &str) -> Option<&'static Knob> {
    knobs::all().find(|knob| knob.patterns().any(|pattern| matches(pattern, path)))
}

/// Whether a path is one of a knob's pattern: `{cpu}` is a number, `*` a part of one name.
fn matches(pattern: &str, path: &str) -> bool {
    let (mut names, mut parts) = (path.split('/'), pattern.split('/'));
    loop {
        match (names.next(), parts.next()) {
            (None, None) => return true,
            (Some(name), Some(part)) if is_name(part, name) => {}
            _ => return false,
        }
    }
}

fn is_name(part: &str, name: &str) -> bool {
    let between = |before: &str, after: &str| {
        let inner = name.strip_prefix(before)?.strip_suffix(after)?;
        (!inner.is_empty()).then(|| inner.to_owned())
    };
    if let Some((before, after)) = part.split_once("{cpu}") {
        return between(before, after).is_some_and(|number| number.parse::<u32>().is_ok());
    }
    match part.split_once('*') {
        Some((before, after)) => between(before, after).is_some(),
        None => part == name,
    }
}

fn compare(path: &str, value: &str, knob: Option<&Knob>) -> Compare {
    let form = FORMS.iter().find(|(folder, file, _)| {
        path.starts_with(folder) && path.rsplit('/').next() == Some(file)
    });
    if let Some((_, _, compare)) = form {
        return *compare;
    }
    if knob.is_some_and(|knob| matches!(knob.place, Place::Choice(_))) {
        return Compare::Choice;
    }
    let is_number = value.parse::<i64>().is_ok() || matches!(value, "Y" | "N");
    if is_number { Compare::Number } else { Compare::Text }
}

/// The files of the knobs that move with this one.
fn couples(facts: &Facts, knob: &Knob, path: &str) -> Vec<String> {
    let files = knob.couples.iter().flat_map(|couple| {
        let known = facts.settings.get(*couple).into_iter().flat_map(|setting| &setting.values);
        let read: Vec<String> = known.map(|value| value.reading.path.clone()).collect();
        if !read.is_empty() {
            return read;
        }
        let other = knobs::all().find(|knob| knob.id == *couple);
        let patterns = other.into_iter().flat_map(Knob::patterns);
        // Without a value of it only a pattern that is a path can be named.
        let is_path = |pattern: &&str| !pattern.contains(['*', '{']);
        let path = patterns.filter(is_path).chain(Some(*couple).filter(|id| id.starts_with('/')));
        path.take(1).map(str::to_owned).collect()
    });
    files.filter(|file| file != path).collect()
}

/// Four numbers of which only the first is the console's.
const PRINTK: &str = "/proc/sys/kernel/printk";

/// The kernel shows all four numbers, so all four are written.
fn printk(facts: &Facts, level: String) -> String {
    let values = facts.settings.get("printk-console").map(|setting| setting.values.as_slice());
    let found = values.and_then(|values| values.first()?.reading.value());
    let rest: Vec<&str> = found.map_or_else(Vec::new, |text| text.split_whitespace().collect());
    match rest.split_first() {
        Some((_, rest)) if rest.len() == 3 => format!("{level}\t{}", rest.join("\t")),
        _ => level,
    }
}
