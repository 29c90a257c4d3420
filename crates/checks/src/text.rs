//! Numbers, names and many equal values, in one short line each.

use rtproof_host::{CpuList, Reading};

use crate::Evidence;
pub(crate) use crate::quantity::{count, cpus, times};

/// Most lines of evidence for one kind of file.
const GROUPS_MAX: usize = 32;
/// Most paths of one value.
const PATHS_MAX: usize = 6;
/// Longest list of numbers in a path.
const LIST_CHARS_MAX: usize = 48;

/// One reading per CPU or interrupt as evidence: equal values share a line whose path names the
/// numbers in braces, `/sys/devices/system/cpu/cpu{2-3}/cpufreq/scaling_governor`.
pub(crate) fn grouped<'a, T: 'a>(
    readings: impl IntoIterator<Item = (u32, &'a Reading<T>)>,
    show: impl Fn(&T) -> String,
) -> Vec<Evidence> {
    let mut groups: Vec<(String, Vec<u32>, &str)> = Vec::new();
    for (number, reading) in readings {
        let value = Evidence::of(reading, &show).value;
        match groups.iter_mut().find(|(known, ..)| *known == value) {
            Some((_, numbers, _)) => numbers.push(number),
            None => groups.push((value, vec![number], &reading.path)),
        }
    }
    let rest = groups.split_off(groups.len().min(GROUPS_MAX));
    let mut evidence: Vec<Evidence> = groups
        .into_iter()
        .map(|(value, numbers, path)| Evidence { path: spread(path, &numbers), value })
        .collect();
    if let Some((example, first, path)) = rest.first() {
        let numbers: Vec<u32> = rest.iter().flat_map(|(_, numbers, _)| numbers.clone()).collect();
        let path = spread(path, &[first.as_slice(), &numbers[first.len()..]].concat());
        evidence
            .push(Evidence { path, value: format!("{} more values, {example} …", rest.len()) });
    }
    evidence
}

/// Readings of files with names, not numbers, as evidence: the first few paths of each value, and
/// how many more there are.
pub(crate) fn by_path<'a>(readings: impl Iterator<Item = &'a Reading<String>>) -> Vec<Evidence> {
    let mut groups: Vec<(String, Vec<&str>)> = Vec::new();
    for reading in readings {
        let value = Evidence::of(reading, |text| match text.as_str() {
            "" => "empty".into(),
            text => text.into(),
        });
        match groups.iter_mut().find(|(known, _)| *known == value.value) {
            Some((_, paths)) => paths.push(&reading.path),
            None => groups.push((value.value, vec![&reading.path])),
        }
    }
    let mut evidence = Vec::new();
    for (value, paths) in groups {
        let shown = paths.iter().take(PATHS_MAX);
        evidence.extend(shown.map(|&path| Evidence { path: path.into(), value: value.clone() }));
        if let (Some(more), Some(last)) = (paths.len().checked_sub(PATHS_MAX), paths.last())
            && more > 0
        {
            let value = format!("{value} ({more} of this value are not shown)");
            evidence.push(Evidence { path: (*last).into(), value });
        }
    }
    evidence
}

/// `path`, which names the first of `numbers`, for all of them.
fn spread(path: &str, numbers: &[u32]) -> String {
    let ([first, _, ..], true) = (numbers, path.contains('/')) else {
        return path.into();
    };
    let first = first.to_string();
    let mut is_replaced = false;
    let segments: Vec<String> = path
        .split('/')
        .map(|segment| match segment.strip_suffix(&first) {
            Some(stem) if !is_replaced && !stem.ends_with(|c: char| c.is_ascii_digit()) => {
                is_replaced = true;
                format!("{stem}{{{}}}", list(numbers))
            }
            _ => segment.into(),
        })
        .collect();
    segments.join("/")
}

/// Numbers as ranges, cut where the list becomes long.
pub(crate) fn list(numbers: &[u32]) -> String {
    let text = CpuList::new(numbers.iter().copied()).to_string();
    if text.len() <= LIST_CHARS_MAX {
        return text;
    }
    let end = text[..LIST_CHARS_MAX].rfind(',').unwrap_or(LIST_CHARS_MAX);
    format!("{},… {} in all", &text[..end], numbers.len())
}

/// A CPU list, `empty` where it is.
pub(crate) fn or_empty(cpus: &CpuList) -> String {
    if cpus.is_empty() { "empty".into() } else { cpus.to_string() }
}

/// The first `max` items, and how many more there are.
pub(crate) fn first_few<T: AsRef<str>>(items: &[T], max: usize) -> String {
    let shown: Vec<&str> = items.iter().take(max).map(AsRef::as_ref).collect();
    match items.len().saturating_sub(max) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// A size in its natural binary unit, to one decimal, rounded down.
pub(crate) fn bytes(bytes: u64) -> String {
    let (unit_bytes, unit) = match bytes {
        0..1_024 => return format!("{bytes} B"),
        1_024..1_048_576 => (1 << 10, "KiB"),
        1_048_576..1_073_741_824 => (1 << 20, "MiB"),
        _ => (1_u64 << 30, "GiB"),
    };
    let (whole, tenth) = (bytes / unit_bytes, bytes % unit_bytes * 10 / unit_bytes);
    if tenth == 0 { format!("{whole} {unit}") } else { format!("{whole}.{tenth} {unit}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_share_a_line() {
        let path = |irq: u32| format!("/proc/irq/{irq}/effective_affinity_list");
        let readings: Vec<(u32, Reading<u32>)> =
            (0..500).map(|irq| (irq, Reading::known(path(irq), irq % 2))).collect();
        let evidence = grouped(readings.iter().map(|(irq, r)| (*irq, r)), u32::to_string);
        assert_eq!(evidence.len(), 2);
        assert!(evidence[0].path.starts_with("/proc/irq/{0,2,4,6,"), "{}", evidence[0].path);
        assert!(evidence[0].path.ends_with("… 250 in all}/effective_affinity_list"));
        assert!(evidence[0].path.len() < 110);
    }

    #[test]
    fn many_values_are_cut() {
        let readings: Vec<(u32, Reading<u32>)> =
            (0..40).map(|cpu| (cpu, Reading::known(format!("/sys/cpu{cpu}/x"), cpu))).collect();
        let evidence = grouped(readings.iter().map(|(cpu, r)| (*cpu, r)), u32::to_string);
        assert_eq!(evidence.len(), GROUPS_MAX + 1);
        assert_eq!(evidence[1].path, "/sys/cpu1/x");
        assert_eq!(evidence[32].path, "/sys/cpu{32-39}/x");
        assert_eq!(evidence[32].value, "8 more values, 32 …");
    }

    #[test]
    fn one_reading_keeps_its_path_and_only_the_number_is_replaced() {
        assert_eq!(spread("/sys/cpu1/x", &[1]), "/sys/cpu1/x");
        assert_eq!(spread("/sys/cpu11/cpu1/x1", &[1, 2]), "/sys/cpu11/cpu{1-2}/x1");
    }

    #[test]
    fn sizes_are_short() {
        assert_eq!(bytes(512), "512 B");
        assert_eq!(bytes(8 << 20), "8 MiB");
        assert_eq!(bytes(1_610_612_736), "1.5 GiB");
    }

    #[test]
    fn long_lists_of_names_are_counted() {
        assert_eq!(first_few(&["a", "b"], 3), "a, b");
        assert_eq!(first_few(&["a", "b", "c"], 2), "a, b and 1 more");
    }
}
