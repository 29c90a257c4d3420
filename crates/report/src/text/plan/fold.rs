//! Equal changes of many CPUs, interrupts or tasks are one line: `cpu{0-3}`.

use rtproof_host::CpuList;
use rtproof_results::tune::plan::Previewed;

/// Kinds of target that are a number with a name in brackets.
const NUMBERED: [&str; 2] = ["IRQ ", "task "];

/// Changes that differ in one name only.
pub(super) struct Folded<'a> {
    pub(super) first: &'a Previewed,
    /// What they are about.
    pub(super) target: String,
    pub(super) count: usize,
}

/// Folds those with the same old and new value and the same reason, in order of the first.
/// `names_max`: most names that are written out.
pub(super) fn fold<'a>(steps: &[&'a Previewed], names_max: usize) -> Vec<Folded<'a>> {
    let mut groups: Vec<Vec<&'a Previewed>> = Vec::new();
    for &step in steps {
        match groups.iter_mut().find(|group| is_like(group[0], step)) {
            Some(group) => group.push(step),
            None => groups.push(vec![step]),
        }
    }
    groups.into_iter().flat_map(|group| of_group(group, names_max)).collect()
}

fn of_group<'a>(group: Vec<&'a Previewed>, names_max: usize) -> Vec<Folded<'a>> {
    if group.len() > 1 {
        let targets: Vec<String> = group.iter().map(|it| it.step.change.title()).collect();
        if let Some(target) = spread(&targets, names_max) {
            return vec![Folded { first: group[0], target, count: group.len() }];
        }
    }
    let one = |it: &'a Previewed| Folded { first: it, target: it.step.change.title(), count: 1 };
    group.into_iter().map(one).collect()
}

fn is_like(one: &Previewed, other: &Previewed) -> bool {
    let shape = |it: &Previewed| std::mem::discriminant(&it.step.change);
    let shown = |it: &Previewed| it.step.change.lines(it.before.as_ref());
    shape(one) == shape(other)
        && one.step.reason == other.step.reason
        && one.unknown.is_some() == other.unknown.is_some()
        && shown(one) == shown(other)
}

/// Targets as one, where they differ in one name; names that differ in a number as a list.
fn spread(targets: &[String], names_max: usize) -> Option<String> {
    let is_of = |kind: &&&str| targets.iter().all(|target| target.starts_with(**kind));
    if let Some(kind) = NUMBERED.iter().find(is_of) {
        return Some(numbered(kind, targets, names_max));
    }
    let separators = ['/', ' '];
    let parts: Vec<Vec<&str>> = targets.iter().map(|it| it.split(separators).collect()).collect();
    let first = parts.first()?;
    if parts.iter().any(|part| part.len() != first.len()) {
        return None;
    }
    let differs = |&at: &usize| parts.iter().any(|part| part[at] != first[at]);
    let places: Vec<usize> = (0..first.len()).filter(differs).collect();
    let &[place] = places.as_slice() else { return None };
    let names: Vec<&str> = parts.iter().map(|part| part[place]).collect();
    let start = first[..place].iter().map(|part| part.len() + 1).sum::<usize>();
    let (before, rest) = targets[0].split_at(start);
    Some(format!("{before}{}{}", joined(&names, names_max), &rest[first[place].len()..]))
}

/// Names as one: `cpu{0-3}`, or `{a,b,…}`.
fn joined(names: &[&str], names_max: usize) -> String {
    let digits = |name: &str| name.find(|c: char| c.is_ascii_digit());
    let number = |name: &str| -> Option<(String, u32, String)> {
        let start = digits(name)?;
        let end = name[start..].find(|c: char| !c.is_ascii_digit());
        let end = end.map_or(name.len(), |end| start + end);
        Some((name[..start].into(), name[start..end].parse().ok()?, name[end..].into()))
    };
    let numbers: Option<Vec<_>> = names.iter().map(|name| number(name)).collect();
    if let Some(numbers) = numbers {
        let (before, _, after) = &numbers[0];
        if numbers.iter().all(|(b, _, a)| b == before && a == after) {
            let list = CpuList::new(numbers.iter().map(|(_, number, _)| *number));
            return format!("{before}{{{list}}}{after}");
        }
    }
    few(names, names_max)
}

fn few(names: &[&str], names_max: usize) -> String {
    let shown = names.iter().take(names_max).copied().collect::<Vec<_>>().join(",");
    match names.len().checked_sub(names_max) {
        Some(more) if more > 0 => format!("{{{shown},… {more} more}}"),
        _ => format!("{{{shown}}}"),
    }
}

/// `IRQ {24-27} (nvme0q1, nvme0q2, …)`.
fn numbered(kind: &str, targets: &[String], names_max: usize) -> String {
    let mut numbers = Vec::new();
    let mut names = Vec::new();
    for target in targets {
        let rest = target.strip_prefix(kind).unwrap_or(target);
        let (number, name) = rest.split_once(' ').unwrap_or((rest, ""));
        numbers.extend(number.parse::<u32>());
        names.push(name.strip_prefix('(').and_then(|it| it.strip_suffix(')')).unwrap_or(name));
    }
    let list = CpuList::new(numbers);
    let more = names.len().saturating_sub(names_max);
    let mut shown: Vec<String> = names.iter().take(names_max).map(|&it| it.to_owned()).collect();
    shown.extend((more > 0).then(|| format!("… {more} more")));
    format!("{kind}{{{list}}} ({})", shown.join(", "))
}
