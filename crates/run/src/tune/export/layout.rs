//! What of a plan goes where: to sysctl.d, to a table of values whose order does not matter, to a
//! script that keeps the order, to files, to units; and what goes nowhere, with the reason.

use std::collections::{BTreeMap, BTreeSet};

use rtproof_host::{
    CpuList,
    tune::{Change, Compare, IrqName, MachinePart, Scheduling, TaskName, UnitState},
};
use rtproof_judge::plan::{Reason, Step};

use super::{ExportSource, NotExported};

/// The steps of a plan, sorted by how they are exported.
#[derive(Debug, Default)]
pub(super) struct ExportLayout<'a> {
    /// Files of /proc/sys, in the plan's order.
    pub sysctls: Vec<RuntimeValue<'a>>,
    /// Files of /sys and /proc that are there from the start and may be written in any order.
    pub plain: Vec<RuntimeValue<'a>>,
    /// What has to keep its order, comes late in a boot, or has to be looked for.
    pub actions: Vec<ScriptAction<'a>>,
    pub files: Vec<File<'a>>,
    /// Paths of the files to remove.
    pub away: Vec<(&'a str, &'a Step)>,
    pub units: Vec<(&'a str, UnitState, &'a Step)>,
    pub properties: Vec<ExportProperty<'a>>,
    /// What `/dev/cpu_dma_latency` is to be held at, in microseconds.
    pub dma_latency: Option<(u32, &'a Step)>,
    /// What no format of files can say.
    pub missed: Vec<NotExported>,
}

/// When values are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum At {
    /// Early in a boot.
    Boot,
    /// By a daemon, when all is there.
    Running,
}

/// A value of the running kernel.
#[derive(Clone, Copy, Debug)]
pub(super) struct RuntimeValue<'a> {
    pub path: &'a str,
    pub value: &'a str,
    pub compare: Compare,
    pub step: &'a Step,
}

impl<'a> RuntimeValue<'a> {
    pub(super) fn reason(&self) -> &'a Reason {
        &self.step.reason
    }

    /// What the file says then, see [`super`].
    pub(super) fn expression(&self) -> String {
        super::expression(self.value, self.compare)
    }
}

/// A file with its whole content.
#[derive(Clone, Copy, Debug)]
pub(super) struct File<'a> {
    pub path: &'a str,
    pub content: &'a str,
    pub mode: u32,
    pub step: &'a Step,
}

/// A property of a unit.
#[derive(Clone, Copy, Debug)]
pub(super) struct ExportProperty<'a> {
    pub unit: &'a str,
    pub property: &'a str,
    pub value: &'a str,
    pub step: &'a Step,
}

/// What a script does.
#[derive(Clone, Debug)]
pub(super) enum ScriptAction<'a> {
    Write(RuntimeValue<'a>),
    /// Makes a folder, e.g. a control group.
    Folder(&'a str, &'a Step),
    /// Sets the CPUs of an interrupt, found by its name.
    Irq(&'a IrqName, &'a CpuList, &'a Step),
    /// Sets policy, priority, CPUs of a kernel thread, found by its name.
    Thread {
        pattern: String,
        set: &'a Scheduling,
        step: &'a Step,
    },
    /// Sets a property of a unit until the next boot.
    Property(ExportProperty<'a>),
}

impl<'a> ExportLayout<'a> {
    /// Sorts the steps of a plan by how they are exported.
    pub(super) fn of(source: &ExportSource<'a>, at: At) -> Self {
        let steps = &source.plan.steps;
        let crowded = crowded(steps);
        let mut layout = Self::default();
        // Units that come with a file which runs rtproof go with it.
        let mut foreign: Vec<&str> = Vec::new();
        for step in steps {
            layout.sort(step, at, &crowded, &mut foreign);
        }
        layout
    }

    /// The plan's values in one list, for a machine with nothing but a shell.
    pub(super) fn all_in_script(mut self) -> Self {
        let plain = std::mem::take(&mut self.plain).into_iter().map(ScriptAction::Write);
        self.actions = plain.chain(std::mem::take(&mut self.actions)).collect();
        self
    }

    fn sort(
        &mut self,
        step: &'a Step,
        at: At,
        crowded: &BTreeMap<&str, usize>,
        foreign: &mut Vec<&'a str>,
    ) {
        if let Some(why) = not_a_line(&step.change) {
            return self.miss(step, why);
        }
        match &step.change {
            Change::Value { path, value, compare, .. } => {
                let value = RuntimeValue { path, value, compare: *compare, step };
                if path.starts_with("/proc/sys/") {
                    self.sysctls.push(value);
                } else if may_be_plain(path, *compare, at) && crowded.get(folder(path)) == Some(&1)
                {
                    self.plain.push(value);
                } else {
                    self.actions.push(ScriptAction::Write(value));
                }
            }
            Change::Irq { irq, .. } if irq.actions.is_empty() => self.miss(
                step,
                "it has no handler, so no name: only its number tells it from others, and that \
                 changes from boot to boot",
            ),
            Change::Irq { irq, cpus } => self.actions.push(ScriptAction::Irq(irq, cpus, step)),
            Change::Task { task, set } => self.task(step, task, set),
            Change::Hotplug { .. } => self.miss(
                step,
                "a CPU taken out at run time drops the affinities of tasks and interrupts, which \
                 only rtproof saves and puts back. Boot with nosmt or maxcpus= instead, or use \
                 `rtproof tune apply`",
            ),
            Change::Folder { path } if step.change.nature().is_durable => {
                self.miss(
                    step,
                    &format!("comes with the files in it; an empty {path} is of no use"),
                );
            }
            Change::Folder { path } => self.actions.push(ScriptAction::Folder(path, step)),
            Change::File { path, content, mode } => {
                let content = content.as_ref().map(|bytes| std::str::from_utf8(&bytes.0));
                match content {
                    None => self.away.push((path, step)),
                    Some(Err(_)) => self.miss(step, "its content is not text"),
                    Some(Ok(content)) => {
                        let file = File { path, content, mode: mode.unwrap_or(0o644), step };
                        self.file(file, foreign);
                    }
                }
            }
            Change::Unit { unit, .. } if foreign.contains(&unit.as_str()) => {}
            Change::Unit { unit, want } => self.units.push((unit, *want, step)),
            Change::Property { unit, property, value } => {
                self.properties.push(ExportProperty { unit, property, value, step });
            }
            Change::Group { .. } | Change::Member { .. } => self.miss(
                step,
                "who is in which group is a matter of one machine; use sysusers.d, the user module \
                 of Ansible, or `rtproof tune apply`",
            ),
            Change::Package { .. } => self.miss(
                step,
                "a package is installed by the machine's own package manager, or comes with its \
                 image",
            ),
            _ if step.change.nature().part == MachinePart::Loader => self.miss(
                step,
                "the boot loader's own memory of one machine; the words of the command line are \
                 exported, the trial boot is `rtproof tune trial`",
            ),
            _ => self.miss(step, "no file of another tool holds it; use `rtproof tune apply`"),
        }
    }

    /// A file; a unit that runs rtproof is of no use on a machine without it.
    fn file(&mut self, file: File<'a>, foreign: &mut Vec<&'a str>) {
        let name = file.path.rsplit('/').next().unwrap_or(file.path);
        let is_boot = file.path.starts_with("/boot/") || file.path.starts_with("/etc/default/grub");
        let runs_rtproof = file
            .content
            .lines()
            .any(|line| line.trim_start().starts_with("Exec") && line.contains("rtproof"));
        if let Some(limit_us) = held_us(file.content) {
            foreign.push(name);
            self.dma_latency = Some((limit_us, file.step));
        } else if runs_rtproof || name == "rtproof.toml" {
            foreign.push(name);
            self.miss(file.step, "it is for rtproof itself, which this export does without");
        } else if is_boot {
            self.miss(file.step, "a file of one machine's boot loader; the words are exported");
        } else {
            self.files.push(file);
        }
    }

    /// A task: only kernel threads have names by which they can be found again.
    fn task(&mut self, step: &'a Step, task: &'a TaskName, set: &'a Scheduling) {
        let policy = set.policy.as_deref().unwrap_or("other");
        let is_simple = set.deadline_ns.is_none()
            && set.reset_on_fork.is_none()
            && set.nice.is_none()
            && ["other", "fifo", "rr"].contains(&policy);
        match kernel_thread(&task.comm) {
            Some(pattern) if is_simple => {
                self.actions.push(ScriptAction::Thread { pattern, set, step });
            }
            Some(_) => self.miss(step, "only chrt's other, fifo and rr are exported"),
            None => self.miss(
                step,
                "a process of this boot: the next one has another number; set CPUAffinity=, \
                 CPUSchedulingPolicy= in its unit, or use `rtproof tune apply`",
            ),
        }
    }

    pub(super) fn miss(&mut self, step: &Step, why: &str) {
        self.missed.push(NotExported { what: named(step), why: why.into() });
    }
}

/// The limit that a unit of rtproof holds, in microseconds: `rtproof tune hold --latency 0us`.
fn held_us(content: &str) -> Option<u32> {
    let start = content.lines().find(|line| line.starts_with("ExecStart="))?;
    let (_, limit) = start.split_once(" tune hold --latency ")?;
    limit.split_whitespace().next()?.strip_suffix("us")?.parse().ok()
}

/// A step in words.
pub(super) fn named(step: &Step) -> String {
    format!("{} ({})", super::one_line(&step.change.line()), step.reason.checks.join(", "))
}

/// Why a change cannot be written as a line of a file, if so.
fn not_a_line(change: &Change) -> Option<&'static str> {
    let texts = change.texts();
    let is_bad = |text: &String| !super::is_line(text) || text.contains(['"', '\\', '`']);
    texts
        .iter()
        .any(is_bad)
        .then_some("it holds a line break, a quote or another control character")
}

fn folder(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// How many files of each folder are written: where it is more than one, their order may matter
/// (the largest frequency before the least, a partition's CPUs before its kind).
fn crowded(steps: &[Step]) -> BTreeMap<&str, usize> {
    let mut count = BTreeMap::new();
    for step in steps {
        if let Change::Value { path, .. } | Change::Hotplug { path, .. } = &step.change {
            *count.entry(folder(path)).or_insert(0) += 1;
        }
    }
    count
}

/// Whether a file is there when its values are written. Early in a boot, when systemd-tmpfiles
/// runs, what is mounted later is not, nor what comes with a driver that udev loads.
fn may_be_plain(path: &str, compare: Compare, at: At) -> bool {
    if matches!(compare, Compare::Word | Compare::Controller) || path.starts_with("/sys/fs/") {
        return false;
    }
    if at == At::Running {
        return path.starts_with("/sys/");
    }
    let early = ["/sys/kernel/", "/sys/devices/system/", "/sys/devices/virtual/", "/proc/irq/"];
    let late = ["/sys/kernel/debug/", "/sys/kernel/tracing/"];
    early.iter().any(|front| path.starts_with(front))
        && !late.iter().any(|front| path.starts_with(front))
        && !["/cpufreq/", "/intel_pstate/", "/amd_pstate/"].iter().any(|part| path.contains(part))
}

/// A pattern for the name of a kernel thread that has the same name in every boot. The threads of
/// interrupts carry the interrupt's number, which has not.
fn kernel_thread(comm: &str) -> Option<String> {
    if let Some((number, name)) = comm.strip_prefix("irq/").and_then(|rest| rest.split_once('-')) {
        let is_known = number.parse::<u32>().is_ok() && !name.is_empty();
        return is_known.then(|| format!("irq/*-{name}"));
    }
    let per_cpu = ["ksoftirqd", "ktimers", "rcuc", "rcub", "rcuog", "rcuop", "rcuos", "migration"];
    let single = ["rcu_preempt", "rcu_sched", "khungtaskd", "kcompactd0", "kswapd0", "ksmd"];
    let is_per_cpu = comm.split_once('/').is_some_and(|(name, number)| {
        let is_number = number.chars().all(|c| c.is_ascii_digit()) && !number.is_empty();
        per_cpu.contains(&name) && is_number
    });
    (is_per_cpu || single.contains(&comm)).then(|| comm.to_owned())
}

/// A file of /proc/sys as sysctl takes it: where a part holds a dot, dots and slashes change
/// places, as sysctl.d(5) has it.
pub(super) fn sysctl_key(path: &str) -> String {
    let swapped = |c: char| match c {
        '/' => '.',
        '.' => '/',
        c => c,
    };
    path.trim_start_matches("/proc/sys/").chars().map(swapped).collect()
}

// Many paths as few patterns, for formats with wildcards: `cpu[2-3]`, `cpu1[0-5]`.
//
// A pattern here is a class of digits for each digit, so it matches the paths it was made from and
// no other path that a machine may have: a `*` would take CPUs that come later.

/// Patterns that match these paths and no others. What is special to a pattern in a path is quoted.
pub(super) fn cover(paths: &[&str]) -> Vec<String> {
    let mut patterns: Vec<Vec<GlobPart>> = Vec::new();
    for path in paths {
        let parts: Vec<GlobPart> = path.split('/').map(GlobPart::of).collect();
        if !patterns.contains(&parts) {
            patterns.push(parts);
        }
    }
    let deepest = patterns.iter().map(Vec::len).max().unwrap_or(0);
    for at in (0..deepest).rev() {
        patterns = merge(patterns, at);
    }
    let text = |parts: &Vec<GlobPart>| {
        let parts: Vec<String> = parts.iter().map(GlobPart::to_string).collect();
        parts.join("/")
    };
    patterns.iter().map(text).collect()
}

/// A part of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
enum GlobPart {
    /// A name with a number at its end.
    Numbered(String, u32),
    /// As it is in the pattern.
    Fixed(String),
}

impl GlobPart {
    fn of(text: &str) -> Self {
        let name = text.trim_end_matches(|c: char| c.is_ascii_digit());
        let digits = &text[name.len()..];
        match digits.parse::<u32>() {
            // 007 is not 7.
            Ok(number) if number.to_string() == digits => Self::Numbered(quote(name), number),
            _ => Self::Fixed(quote(text)),
        }
    }
}

impl std::fmt::Display for GlobPart {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Numbered(name, number) => write!(f, "{name}{number}"),
            Self::Fixed(text) => f.write_str(text),
        }
    }
}

/// Characters that are special to a pattern, each in a class of its own.
fn quote(text: &str) -> String {
    let quoted = |c: char| match c {
        '*' | '?' | '[' => format!("[{c}]"),
        c => c.to_string(),
    };
    text.chars().map(quoted).collect()
}

/// Makes one pattern of those that differ in the number of one part; the first keeps its place.
fn merge(patterns: Vec<Vec<GlobPart>>, at: usize) -> Vec<Vec<GlobPart>> {
    let mut merged: Vec<(Vec<GlobPart>, Option<String>, BTreeSet<u32>)> = Vec::new();
    for parts in patterns {
        let Some(GlobPart::Numbered(name, number)) = parts.get(at).cloned() else {
            merged.push((parts, None, BTreeSet::new()));
            continue;
        };
        let is_same = |other: &[GlobPart]| {
            let differs = |i: usize| i != at && other[i] != parts[i];
            other.len() == parts.len() && !(0..parts.len()).any(differs)
        };
        let of_it =
            merged.iter_mut().find(|(other, of, _)| of.as_ref() == Some(&name) && is_same(other));
        match of_it {
            Some((_, _, numbers)) => _ = numbers.insert(number),
            None => merged.push((parts, Some(name), BTreeSet::from([number]))),
        }
    }
    let spread = |(parts, name, numbers): (Vec<GlobPart>, Option<String>, BTreeSet<u32>)| {
        let Some(name) = name.filter(|_| numbers.len() > 1) else { return vec![parts] };
        let with = |class: String| {
            let mut parts = parts.clone();
            parts[at] = GlobPart::Fixed(format!("{name}{class}"));
            parts
        };
        classes(&numbers).into_iter().map(with).collect()
    };
    merged.into_iter().flat_map(spread).collect()
}

/// Numbers as patterns of digits: `{8, 9, 10, 11, 20, 21}` is `[89]`, `[12][01]`.
fn classes(numbers: &BTreeSet<u32>) -> Vec<String> {
    let mut by_front: BTreeMap<Option<u32>, BTreeSet<u32>> = BTreeMap::new();
    for &number in numbers {
        let front = Some(number / 10).filter(|&front| front > 0);
        by_front.entry(front).or_default().insert(number % 10);
    }
    // Fronts with the same last digits are one pattern.
    let mut by_last: Vec<(BTreeSet<u32>, BTreeSet<u32>)> = Vec::new();
    let mut patterns = Vec::new();
    for (front, last) in by_front {
        match front {
            None => patterns.push(class(&last)),
            Some(front) => match by_last.iter_mut().find(|(digits, _)| *digits == last) {
                Some((_, fronts)) => _ = fronts.insert(front),
                None => by_last.push((last, BTreeSet::from([front]))),
            },
        }
    }
    for (last, fronts) in by_last {
        let last = class(&last);
        patterns.extend(classes(&fronts).into_iter().map(|front| format!("{front}{last}")));
    }
    patterns
}

/// Digits as a class: `3`, `[2-5]`, `[13]`.
fn class(digits: &BTreeSet<u32>) -> String {
    let all: Vec<u32> = digits.iter().copied().collect();
    match all[..] {
        [one] => one.to_string(),
        [first, .., last] if all.len() > 2 && (last - first) as usize + 1 == all.len() => {
            format!("[{first}-{last}]")
        }
        _ => {
            let digits: String = all.iter().map(u32::to_string).collect();
            format!("[{digits}]")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a pattern of ours matches, the way a shell does.
    fn expand(pattern: &str) -> Vec<String> {
        let mut texts = vec![String::new()];
        let mut rest = pattern.chars();
        while let Some(c) = rest.next() {
            let mut class = Vec::new();
            if c == '[' {
                let inner: Vec<char> = rest.by_ref().take_while(|&c| c != ']').collect();
                match inner[..] {
                    [first, '-', last] => class.extend(first..=last),
                    _ => class = inner,
                }
            } else {
                class.push(c);
            }
            let mut longer = Vec::new();
            for text in &texts {
                longer.extend(class.iter().map(|c| format!("{text}{c}")));
            }
            texts = longer;
        }
        texts
    }

    fn covered(paths: &[String]) -> Vec<String> {
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        cover(&paths)
    }

    #[test]
    fn patterns_are_short() {
        let governor = |cpu| format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor");
        let of = |cpus: &[u32]| covered(&cpus.iter().map(|&cpu| governor(cpu)).collect::<Vec<_>>());
        assert_eq!(of(&[3]), [governor(3)]);
        let only = |class: &str| governor(0).replace("cpu0", &format!("cpu{class}"));
        assert_eq!(of(&[2, 3]), [only("[23]")]);
        assert_eq!(of(&[2, 3, 4, 5]), [only("[2-5]")]);
        let all: Vec<u32> = (2..64).collect();
        assert_eq!(of(&all), [only("[2-9]"), only("[1-5][0-9]"), only("6[0-3]")]);
        let states: Vec<String> = (2..4)
            .flat_map(|cpu| (1..4).map(move |n| format!("/c/cpu{cpu}/cpuidle/state{n}/disable")))
            .collect();
        assert_eq!(covered(&states), ["/c/cpu[23]/cpuidle/state[1-3]/disable"]);
        assert_eq!(covered(&["/a[1]/*".into()]), ["/a[[]1]/[*]"]);
    }

    #[test]
    fn patterns_match_these_paths_and_no_others() {
        // Every third CPU of some, two states of some of them: nothing even.
        for seed in 1..200_u32 {
            let is_in = |n: u32| n.wrapping_mul(2_654_435_761_u32.wrapping_mul(seed)) >> 30 > 0;
            let mut paths: Vec<String> = (0..130)
                .filter(|&cpu| is_in(cpu))
                .flat_map(|cpu| (0..3).map(move |state| (cpu, state)))
                .filter(|(cpu, state)| is_in(cpu * 7 + state))
                .map(|(cpu, state)| format!("/c/cpu{cpu}/state{state}"))
                .collect();
            let mut matched: Vec<String> =
                covered(&paths).iter().flat_map(|pattern| expand(pattern)).collect();
            matched.sort();
            paths.sort();
            assert_eq!(matched, paths, "seed {seed}");
        }
    }
}
