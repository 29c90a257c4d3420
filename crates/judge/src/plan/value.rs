//! From a knob and a value to a change. All that differs between knobs is data of the knob.

use rtproof_host::tune::{Change, Compare, IrqName};
use rtproof_host::{
    CpuList, Facts, Knob,
    knob::{Kind, Place, Rule},
    knobs,
};

/// The change that sets a knob at a path.
pub(super) fn change(facts: &Facts, knob: &Knob, path: &str, value: &str) -> Change {
    if knob.kind == Kind::Irq
        && let Some(Ok(number)) = knob.part_of("*", path).map(str::parse)
        && let Ok(cpus) = CpuList::parse(value, None)
    {
        return Change::Irq { irq: irq_name(facts, number), cpus };
    }
    let (path, value) = (path.to_owned(), value.to_owned());
    if knob.kind == Kind::Hotplug {
        return Change::Hotplug { path, value };
    }
    let compare = compare(knob, &value);
    let couples = couples(facts, knob, &path);
    let value = if knob.rule == Rule::FirstWord { with_rest(facts, knob, value) } else { value };
    Change::Value { path, value, compare, couples }
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

fn compare(knob: &Knob, value: &str) -> Compare {
    let is_number = value.parse::<i64>().is_ok() || matches!(value, "Y" | "N");
    match knob.compare {
        Some(compare) => compare,
        None if matches!(knob.place, Place::Choice(_)) => Compare::Choice,
        None if is_number => Compare::Number,
        None => Compare::Text,
    }
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

/// The value with the other words that the file shows.
fn with_rest(facts: &Facts, knob: &Knob, value: String) -> String {
    let values = facts.settings.get(knob.id).map(|setting| setting.values.as_slice());
    let found = values.and_then(|values| values.first()?.reading.value());
    let rest: Vec<&str> = found.into_iter().flat_map(|text| text.split_whitespace()).collect();
    match rest.split_first() {
        Some((_, rest)) if !rest.is_empty() => format!("{value}\t{}", rest.join("\t")),
        _ => value,
    }
}
