//! Questions that several checks ask of the facts. `None` is "unknown", never "no".

pub(crate) use crate::{count, cpus, since, times};

use rtproof_host::{
    CpuList, Facts, Reading,
    facts::{cpu::Cpu, kernel::CommandLine},
};

use crate::{Evidence, Intent};

/// Where /sys keeps the CPUs.
const CPU_FOLDER: &str = "/sys/devices/system/cpu";

/// Whether the kernel is built with an option (`y` or `m`).
pub(crate) fn built_with(facts: &Facts, option: &str) -> Option<bool> {
    match facts.kernel.config.value()?.get(option) {
        Some(value) => Some(value == "y" || value == "m"),
        None => (!facts.kernel.config_is_part).then_some(false),
    }
}

/// An option of the kernel's configuration as evidence.
pub(crate) fn option(facts: &Facts, option: &str) -> Evidence {
    Evidence::of(&facts.kernel.config, |config| match config.get(option) {
        Some(value) => format!("CONFIG_{option}={value}"),
        None if facts.kernel.config_is_part => format!("CONFIG_{option} is not in this part"),
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

/// The reading that should show whether this is a guest but has no value.
pub(crate) fn unknown_guest(facts: &Facts) -> Option<&Reading<Option<String>>> {
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

/// Why no CPU has facts: the CPU folder of /sys is missing.
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
    let what = match facts.cpus.existing() {
        Some(there) if !missing.difference(there).is_empty() => "not in this machine",
        _ => "offline",
    };
    format!("{}: {what}", cpus(missing))
}

/// The real-time CPUs that are offline; empty where that is unknown.
pub(crate) fn offline_rt(facts: &Facts, intent: &Intent) -> CpuList {
    let offline = |online| intent.rt_cpus.difference(online);
    facts.cpus.online.value().map(offline).unwrap_or_default()
}

/// Whether every online CPU is a real-time CPU, so that nothing can be moved away.
pub(crate) fn is_all_rt(facts: &Facts, intent: &Intent) -> bool {
    let online = facts.cpus.online.value();
    online.is_some_and(|online| !online.is_empty() && online.difference(&intent.rt_cpus).is_empty())
}

// CPU lists on the command line, read as the kernel reads them.
//
// The kernel refuses a list silently (a line in dmesg at most), and each parameter in its own way:
// `isolcpus=2-3n` isolates nothing, `rcu_nocbs=2-3n` offloads every CPU. `N` for the last CPU came
// with 5.13 (lib/bitmap.c, 2c4885d24e64) and only as a capital letter.

/// A CPU list as given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum List {
    /// What the kernel takes it for.
    Cpus(CpuList),
    /// The kernel refuses it, and why.
    Refused(String),
    /// Unknown: `N` or `all`, and the number of CPUs is unknown.
    Unclear,
}

/// A parameter with a CPU list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CpuParameter {
    /// As written, e.g. `isolcpus=managed_irq,2-3`.
    pub written: String,
    /// Flags before the list; only `isolcpus` has them.
    pub flags: Vec<String>,
    pub list: List,
}

impl CpuParameter {
    /// The CPUs, where the kernel takes the list.
    pub(crate) fn cpus(&self) -> Option<&CpuList> {
        match &self.list {
            List::Cpus(cpus) => Some(cpus),
            _ => None,
        }
    }

    /// Whether `isolcpus` takes its CPUs out of the scheduler's domains: the default without a
    /// flag that the kernel knows.
    pub(crate) fn is_domain(&self) -> bool {
        let has = |name: &str| self.flags.iter().any(|flag| flag == name);
        has("domain") || !(has("nohz") || has("managed_irq"))
    }
}

/// What the command line says about one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CmdlineValue {
    /// Nothing, or the bare word.
    Not,
    /// One list, perhaps repeated.
    Once(CpuParameter),
    /// Different lists, as written.
    Conflicting(Vec<String>),
}

impl CmdlineValue {
    /// What `key` is given as.
    pub(crate) fn of(facts: &Facts, line: &CommandLine, key: &str) -> Self {
        let mut written: Vec<&str> = Vec::new();
        for value in line.all(key).flatten() {
            if !written.contains(&value) {
                written.push(value);
            }
        }
        match written.as_slice() {
            [] => Self::Not,
            [value] => Self::Once(take(facts, key, value)),
            values => Self::Conflicting(values.iter().map(|v| format!("{key}={v}")).collect()),
        }
    }

    /// The list, where there is one.
    pub(crate) fn once(&self) -> Option<&CpuParameter> {
        match self {
            Self::Once(asked) => Some(asked),
            _ => None,
        }
    }

    /// Its CPUs, where the kernel takes them.
    pub(crate) fn cpus(&self) -> Option<&CpuList> {
        self.once().and_then(CpuParameter::cpus)
    }
}

/// The CPUs that one parameter asks for, where the kernel takes the list.
pub(crate) fn requested_cpus(facts: &Facts, key: &str) -> Option<CpuList> {
    CmdlineValue::of(facts, facts.kernel.cmdline.value()?, key).cpus().cloned()
}

fn take(facts: &Facts, key: &str, value: &str) -> CpuParameter {
    let mut rest = value;
    let mut flags = Vec::new();
    // kernel/sched/isolation.c: whatever begins with a letter is a flag, `N` too.
    while key == "isolcpus" && rest.starts_with(|c: char| c.is_ascii_alphabetic()) {
        let (flag, after) = rest.split_once(',').unwrap_or((rest, ""));
        flags.push(flag.to_owned());
        rest = after;
    }
    let unknown = flags.iter().find(|flag| !is_word(flag));
    let list = match unknown {
        Some(flag) => List::Refused(format!("\"{flag}\" is no flag")),
        None if rest.is_empty() => List::Refused("no CPUs".into()),
        None => parse(facts, rest),
    };
    CpuParameter { written: format!("{key}={value}"), flags, list }
}

fn is_word(flag: &str) -> bool {
    flag.chars().all(|c| c.is_ascii_alphabetic() || c == '_')
}

fn parse(facts: &Facts, text: &str) -> List {
    if text.contains('n') {
        return List::Refused(match CpuList::parse(text, None) {
            Err(error) => error.to_string(),
            Ok(_) => format!("\"{text}\" is not a CPU list"),
        });
    }
    if text.contains('N') && since(facts, (5, 13)) == Some(false) {
        return List::Refused("N means the last CPU only from kernel 5.13".into());
    }
    let set = facts.cpus.possible.value().or_else(|| facts.cpus.online.value());
    let last = set.and_then(|cpus| cpus.as_slice().last().copied());
    match CpuList::parse(text, last) {
        Ok(cpus) => List::Cpus(cpus),
        Err(_)
            if last.is_none()
                && CpuList::parse(text, Some(rtproof_host::cpu_list::CPU_MAX)).is_ok() =>
        {
            List::Unclear
        }
        Err(error) => List::Refused(error.to_string()),
    }
}

// Numbers, names and many equal values, in one short line each.

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
                format!("{stem}{{{}}}", number_list(numbers))
            }
            _ => segment.into(),
        })
        .collect();
    segments.join("/")
}

/// Numbers as ranges, cut where the list becomes long.
pub(crate) fn number_list(numbers: &[u32]) -> String {
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

/// Ranges of frequencies as `800-4100 MHz (the hardware can 4800 MHz)`, each with its CPUs.
fn frequency_ranges(of: &[&Cpu]) -> Vec<(String, Vec<u32>)> {
    let range = |cpu: &Cpu| {
        let mhz = |limit: &Reading<u64>| limit.value().map_or(0, |hz| hz / 1_000_000);
        let (min, max) = (mhz(&cpu.freq.min_hz), mhz(&cpu.freq.max_hz));
        let text = if min == max { format!("{max} MHz") } else { format!("{min}-{max} MHz") };
        match cpu.freq.hardware_max_hz.value().map(|hz| hz / 1_000_000) {
            Some(most) if max < most => format!("{text} (the hardware can {most} MHz)"),
            _ => text,
        }
    };
    let mut ranges: Vec<(String, Vec<u32>)> = Vec::new();
    for cpu in of {
        let range = range(cpu);
        match ranges.iter_mut().find(|(known, _)| *known == range) {
            Some((_, of)) => of.push(cpu.id),
            None => ranges.push((range, vec![cpu.id])),
        }
    }
    ranges
}

/// The range of these CPUs; where they differ, each with its CPUs.
pub(crate) fn frequency_range(of: &[&Cpu]) -> String {
    match &frequency_ranges(of)[..] {
        [(range, _)] => range.clone(),
        _ => frequency_range_of_each(of, " "),
    }
}

/// The ranges with their CPUs and what stands between.
pub(crate) fn frequency_range_of_each(of: &[&Cpu], between: &str) -> String {
    let one =
        |(range, of): (String, Vec<u32>)| format!("{}{between}{range}", cpus(&CpuList::new(of)));
    first_few(&frequency_ranges(of).into_iter().map(one).collect::<Vec<_>>(), 8)
}

/// A size in its natural binary unit, to one decimal, rounded down.
pub(crate) fn byte_size(bytes: u64) -> String {
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
mod boot_params_tests {
    use super::*;
    use crate::testing::{cpus, good, set_cmdline};
    use rtproof_host::Reading;

    fn given(line: &str, key: &str) -> CmdlineValue {
        let mut facts = good();
        set_cmdline(&mut facts, line);
        CmdlineValue::of(&facts, facts.kernel.cmdline.value().unwrap(), key)
    }

    fn list(text: &str) -> List {
        match given(text, "isolcpus") {
            CmdlineValue::Once(asked) => asked.list,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn lists_are_taken_as_the_kernel_takes_them() {
        assert_eq!(list("isolcpus=2-3"), List::Cpus(cpus(&[2, 3])));
        assert_eq!(list("isolcpus=managed_irq,domain,2-N"), List::Cpus(cpus(&[2, 3])));
        assert_eq!(list("isolcpus=1-3:1/2"), List::Cpus(cpus(&[1, 3])));
        for refused in ["2-3n", "2-n", "3-2", "N", "domain", "cpu2,3", "2..3"] {
            let list = list(&format!("isolcpus={refused}"));
            assert!(matches!(list, List::Refused(_)), "{refused}: {list:?}");
        }
    }

    #[test]
    fn flags_decide_whether_the_domain_is_left() {
        let domain = |line| given(line, "isolcpus").once().unwrap().is_domain();
        assert!(domain("isolcpus=2-3"));
        assert!(domain("isolcpus=nohz,domain,2-3"));
        assert!(domain("isolcpus=future_flag,2-3"));
        assert!(!domain("isolcpus=managed_irq,2-3"));
        assert!(!domain("isolcpus=nohz,2-3"));
    }

    #[test]
    fn n_is_refused_before_5_13_and_unclear_without_a_number_of_cpus() {
        let mut facts = good();
        facts.kernel.version = Reading::known("/proc/sys/kernel/osrelease", (5, 10));
        assert!(matches!(parse(&facts, "2-N"), List::Refused(_)));
        let mut facts = good();
        facts.cpus.possible = Reading::absent("/sys/devices/system/cpu/possible");
        facts.cpus.online = Reading::absent("/sys/devices/system/cpu/online");
        assert_eq!(parse(&facts, "2-N"), List::Unclear);
        assert_eq!(parse(&facts, "2-3"), List::Cpus(cpus(&[2, 3])));
    }

    #[test]
    fn a_key_given_twice_conflicts_only_with_another_value() {
        assert!(matches!(given("nohz_full=2 nohz_full=2", "nohz_full"), CmdlineValue::Once(_)));
        let conflicting = given("nohz-full=2 nohz_full=3", "nohz_full");
        let written = vec!["nohz_full=2".into(), "nohz_full=3".into()];
        assert_eq!(conflicting, CmdlineValue::Conflicting(written));
        assert_eq!(given("rcu_nocbs quiet", "rcu_nocbs"), CmdlineValue::Not);
    }
}

#[cfg(test)]
mod text_tests {
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
        assert_eq!(byte_size(512), "512 B");
        assert_eq!(byte_size(8 << 20), "8 MiB");
        assert_eq!(byte_size(1_610_612_736), "1.5 GiB");
    }

    #[test]
    fn long_lists_of_names_are_counted() {
        assert_eq!(first_few(&["a", "b"], 3), "a, b");
        assert_eq!(first_few(&["a", "b", "c"], 2), "a, b and 1 more");
    }
}
