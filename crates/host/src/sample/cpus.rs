//! What each CPU was interrupted by and how often it switched, since the reading before: files of
//! /proc that stay open, and one of /sys for each CPU. Nothing here interrupts a CPU: the kernel
//! adds up numbers that each CPU keeps for itself.

use std::{
    collections::{BTreeMap, HashMap},
    fs::File,
    os::unix::fs::FileExt,
    time::{Duration, Instant},
};

use super::read_again;
use crate::facts::irq::{actions, interrupt_table};
use crate::facts::tasks::{Policy, Stat};
use crate::text::field;
use crate::{CpuList, Reading, Root};

/// Names that are kept of each rate.
const TOP: usize = 3;

/// Events of one CPU since the reading before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuSecond {
    pub cpu: u32,
    pub interrupts: Option<Counted>,
    pub softirqs: Option<Counted>,
    /// Tasks that were switched to, the idle task left out (`pcount` of /proc/schedstat).
    pub switches: Option<u64>,
    /// Times that the CPU was throttled because of heat.
    pub throttled: Option<u64>,
}

/// How many there were, and the most frequent by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    pub total: u64,
    /// Name and count, most frequent first, three at most.
    pub top: Vec<(String, u64)>,
}

/// Counts of a table: for each line its name and a count for each CPU.
type Counts = HashMap<String, (String, BTreeMap<u32, u64>)>;

/// Reads them again and again.
#[derive(Debug)]
pub struct CpuSampler {
    interrupts: Option<File>,
    softirqs: Option<File>,
    schedstat: Option<File>,
    throttles: BTreeMap<u32, File>,
    last: Last,
    buffer: Vec<u8>,
    unknown: Vec<String>,
}

#[derive(Debug, Default)]
struct Last {
    interrupts: Counts,
    softirqs: Counts,
    switches: BTreeMap<u32, u64>,
    throttles: BTreeMap<u32, u64>,
}

impl CpuSampler {
    /// Opens the files and takes the first counts.
    pub fn new(root: &Root, cpus: &CpuList) -> Self {
        let mut unknown = Vec::new();
        let mut open = |path: &str, what: &str| {
            let file = root.open(path);
            if let Some(why) = file.why_unknown() {
                unknown.push(format!("{what}: {path}: {why}"));
            } else if file.is_absent() {
                unknown.push(format!("{what}: {path} is not there"));
            }
            file.into_value()
        };
        let interrupts = open("/proc/interrupts", "Interrupts");
        let softirqs = open("/proc/softirqs", "Softirqs");
        let schedstat = open("/proc/schedstat", "Switches of each CPU");
        let throttle = |cpu| {
            let folder = format!("/sys/devices/system/cpu/cpu{cpu}/thermal_throttle");
            let file = root.open(&format!("{folder}/core_throttle_count"));
            Some((cpu, file.into_value()?))
        };
        let throttles: BTreeMap<u32, File> = cpus.iter().filter_map(throttle).collect();
        if throttles.is_empty() {
            unknown.push(
                "Throttling: no CPU has thermal_throttle/core_throttle_count (x86 machines that \
                 report heat have it, virtual machines do not)"
                    .into(),
            );
        }
        let mut sampler = Self {
            interrupts,
            softirqs,
            schedstat,
            throttles,
            last: Last::default(),
            buffer: vec![0; 16 << 10],
            unknown,
        };
        sampler.last = sampler.counts();
        sampler
    }

    /// What cannot be read and why, a phrase each.
    pub fn unknown(&self) -> &[String] {
        &self.unknown
    }

    /// What each of `cpus` counted since the reading before.
    pub fn sample(&mut self, cpus: &CpuList) -> Vec<CpuSecond> {
        let now = self.counts();
        let last = std::mem::replace(&mut self.last, now);
        let number = |now: &BTreeMap<u32, u64>, last: &BTreeMap<u32, u64>, cpu: u32| {
            Some(now.get(&cpu)?.saturating_sub(*last.get(&cpu)?))
        };
        let second = |cpu| CpuSecond {
            cpu,
            interrupts: counted(&self.last.interrupts, &last.interrupts, cpu),
            softirqs: counted(&self.last.softirqs, &last.softirqs, cpu),
            switches: number(&self.last.switches, &last.switches, cpu),
            throttled: number(&self.last.throttles, &last.throttles, cpu),
        };
        cpus.iter().map(second).collect()
    }

    fn counts(&mut self) -> Last {
        let buffer = &mut self.buffer;
        let mut text = |file: &Option<File>| {
            let read = read_again(file.as_ref()?, buffer).ok()?;
            Some(String::from_utf8_lossy(read).into_owned())
        };
        let interrupts = text(&self.interrupts).map(|text| counts(&text, interrupt_name));
        let softirqs = text(&self.softirqs).map(|text| counts(&text, |label, _| label.into()));
        Last {
            interrupts: interrupts.unwrap_or_default(),
            softirqs: softirqs.unwrap_or_default(),
            switches: text(&self.schedstat).map(|text| switches(&text)).unwrap_or_default(),
            throttles: self
                .throttles
                .iter()
                .filter_map(|(cpu, file)| Some((*cpu, count(file)?)))
                .collect(),
        }
    }
}

fn count(file: &File) -> Option<u64> {
    let mut buffer = [0; 32];
    let length = file.read_at(&mut buffer, 0).ok()?;
    std::str::from_utf8(&buffer[..length]).ok()?.trim().parse().ok()
}

fn counts(text: &str, name: impl Fn(&str, &str) -> String) -> Counts {
    let (cpus, rows) = interrupt_table(text);
    // ERR and MIS are of no CPU; a line that is shorter than the head is of a CPU that just went.
    let rows = rows.filter(|row| row.counts.len() == cpus.len());
    rows.map(|row| {
        let by_cpu = cpus.iter().copied().zip(row.counts).collect();
        (row.label.to_owned(), (name(row.label, row.about), by_cpu))
    })
    .collect()
}

/// `36 virtio1-req.0`; lines without a number have their own words.
fn interrupt_name(label: &str, about: &str) -> String {
    let is_number = label.bytes().all(|byte| byte.is_ascii_digit());
    let actions = actions(about).filter(|_| is_number);
    actions.map_or_else(|| label.to_owned(), |actions| format!("{label} {actions}"))
}

fn counted(now: &Counts, last: &Counts, cpu: u32) -> Option<Counted> {
    let mut any = false;
    let mut rows: Vec<(&str, u64)> = Vec::new();
    for (label, (name, by_cpu)) in now {
        let Some(&count) = by_cpu.get(&cpu) else { continue };
        any = true;
        // A line that is new began at zero; a CPU that is new has no count before.
        let before = match last.get(label) {
            Some((_, before)) => before.get(&cpu).copied(),
            None => Some(0),
        };
        let since = count.saturating_sub(before?);
        if since > 0 {
            rows.push((name, since));
        }
    }
    if !any || last.is_empty() {
        return None;
    }
    rows.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    let total = rows.iter().fold(0, |sum: u64, row| sum.saturating_add(row.1));
    let top = rows.into_iter().take(TOP).map(|(name, count)| (name.to_owned(), count)).collect();
    Some(Counted { total, top })
}

/// Field 9 of `cpuN` (Documentation/scheduler/sched-stats.rst): time slices, counted where a task
/// arrives on the CPU (kernel/sched/stats.h, `sched_info_arrive`), which the idle task does not.
fn switches(text: &str) -> BTreeMap<u32, u64> {
    let of_line = |line: &str| {
        let mut words = line.strip_prefix("cpu")?.split_whitespace();
        let cpu = words.next()?.parse().ok()?;
        Some((cpu, words.nth(8)?.parse().ok()?))
    };
    text.lines().filter_map(of_line).collect()
}

// Real-time tasks while they run: identity, CPU, and share of the time each one ran.
//
// Finding them reads a file of every task of the machine, so it is done every five seconds, and
// more rarely where it takes long; those that are known are read each time.

/// How often all tasks are looked through, at most.
const SCAN_EVERY: Duration = Duration::from_secs(5);

/// A look may take one in so many of the time: with all else below 1 % of a CPU.
const SCAN_SHARE: u32 = 400;

/// A real-time task now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RtNow {
    pub tid: u32,
    pub comm: String,
    pub policy: Policy,
    /// Priority, 1 to 99; 0 for SCHED_DEADLINE.
    pub priority: u32,
    /// CPU that it last ran on.
    pub cpu: u32,
    /// CPUs that it may run on; `None`: not readable.
    pub allowed: Option<CpuList>,
    pub kernel_thread: bool,
    /// Time on a CPU since the reading before; `None`: it is new, or the kernel does not count
    /// (CONFIG_SCHED_INFO).
    pub ran_ns: Option<u64>,
}

/// Finds and reads them.
#[derive(Debug)]
pub struct RtSampler {
    root: Root,
    known: BTreeMap<u32, Known>,
    scanned: Option<(Instant, Duration)>,
    hidden: Option<String>,
}

/// A task: folder, start time, and time it has run.
#[derive(Debug)]
struct Known {
    folder: String,
    start_ticks: u64,
    ran_ns: Option<u64>,
}

impl RtSampler {
    /// Of a machine; looks for tasks with the first reading.
    pub fn new(root: &Root) -> Self {
        Self { root: root.clone(), known: BTreeMap::new(), scanned: None, hidden: None }
    }

    /// Real-time tasks by thread id.
    pub fn sample(&mut self) -> Reading<Vec<RtNow>> {
        const PATH: &str = "/proc/*/task/*/stat";
        let is_due = self.scanned.is_none_or(|(at, took)| {
            at.elapsed() >= SCAN_EVERY.max(took.saturating_mul(SCAN_SHARE))
        });
        if is_due {
            let start = Instant::now();
            self.scan();
            self.scanned = Some((start, start.elapsed()));
        }
        if let Some(why) = &self.hidden {
            return Reading::denied(PATH, why.clone());
        }
        let root = &self.root;
        let mut tasks = Vec::new();
        // Tasks that ended or are no longer real-time are dropped until the next look.
        self.known.retain(|&tid, known| {
            let Some(task) = read(root, tid, known) else { return false };
            tasks.push(task);
            true
        });
        Reading::known(PATH, tasks)
    }

    fn scan(&mut self) {
        // As activity::tasks: without process 1 those of others are hidden, too.
        let first = self.root.read_text("/proc/1/stat");
        self.hidden = first.is_absent().then(|| {
            "process 1 cannot be seen: /proc hides other users' processes (hidepid)".to_owned()
        });
        let pids = self.root.list_numbered("/proc", "");
        for pid in pids.value().into_iter().flatten() {
            let folder = format!("/proc/{pid}/task");
            let tids = self.root.list_numbered(&folder, "");
            for &tid in tids.value().into_iter().flatten() {
                let folder = format!("{folder}/{tid}");
                let stat = self.root.read_text(&format!("{folder}/stat"));
                let Some(stat) = stat.value().and_then(|line| Stat::parse(line)) else { continue };
                if !stat.policy.is_some_and(Policy::is_real_time) {
                    continue;
                }
                let start_ticks = stat.start_ticks;
                let is_same =
                    self.known.get(&tid).is_some_and(|known| known.start_ticks == start_ticks);
                if !is_same {
                    self.known.insert(tid, Known { folder, start_ticks, ran_ns: None });
                }
            }
        }
    }
}

fn read(root: &Root, tid: u32, known: &mut Known) -> Option<RtNow> {
    let stat = root.read_text(&format!("{}/stat", known.folder));
    let stat = Stat::parse(stat.value()?)?;
    let policy = stat.policy.filter(|policy| policy.is_real_time())?;
    if stat.start_ticks != known.start_ticks {
        return None;
    }
    let status = root.read_text(&format!("{}/status", known.folder));
    let allowed = status.value().and_then(|text| field(text, "Cpus_allowed_list"));
    let ran = root.read_text(&format!("{}/schedstat", known.folder));
    let ran_ns = ran.value().and_then(|text| text.split(' ').next()?.parse::<u64>().ok());
    let before_ns = std::mem::replace(&mut known.ran_ns, ran_ns);
    Some(RtNow {
        tid,
        comm: stat.comm,
        policy,
        priority: stat.priority,
        cpu: stat.cpu,
        allowed: allowed.and_then(|list| CpuList::parse(list, None).ok()),
        kernel_thread: stat.kernel_thread,
        ran_ns: ran_ns.zip(before_ns).map(|(now, before)| now.saturating_sub(before)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    fn interrupts(disk: u64, timer: u64) -> String {
        format!(
            "           CPU0       CPU1\n 36:          7   {disk}  PCI-MSIX-0000:00:02.0   1-edge      \
             virtio1-req.0\nLOC:   5   {timer}   Local timer interrupts\nERR:          0\n"
        )
    }

    #[test]
    fn what_came_since_by_name() {
        let schedstat = |n: u64| format!("version 17\ncpu1 1 2 3 4 5 6 7 8 {n}\n");
        let throttle = "sys/devices/system/cpu/cpu1/thermal_throttle/core_throttle_count";
        let tree = Tree::new(&[
            ("proc/interrupts", &interrupts(100, 1000)),
            ("proc/softirqs", "  CPU0 CPU1\n TIMER: 1 5\n RCU: 1 1\n"),
            ("proc/schedstat", &schedstat(90)),
            (throttle, "3\n"),
        ]);
        let cpus = CpuList::new([0, 1]);
        let mut sampler = CpuSampler::new(&tree.root(), &cpus);
        assert!(sampler.unknown().is_empty(), "{:?}", sampler.unknown());
        tree.write("proc/interrupts", &interrupts(103, 1250));
        tree.write("proc/softirqs", "  CPU0 CPU1\n TIMER: 1 55\n RCU: 1 1\n");
        tree.write("proc/schedstat", &schedstat(130));
        tree.write(throttle, "5\n");
        let seconds = sampler.sample(&cpus);
        let [first, second] = &seconds[..] else { panic!("{seconds:?}") };
        assert_eq!(first.interrupts, Some(Counted::default()), "nothing came, which is known");
        assert_eq!((first.switches, first.throttled), (None, None), "no line: unknown, not 0");
        let top = |rows: &[(&str, u64)]| rows.iter().map(|&(n, c)| (n.to_owned(), c)).collect();
        let interrupts = Counted { total: 253, top: top(&[("LOC", 250), ("36 virtio1-req.0", 3)]) };
        assert_eq!(second.interrupts, Some(interrupts));
        assert_eq!(second.softirqs, Some(Counted { total: 50, top: top(&[("TIMER", 50)]) }));
        assert_eq!((second.switches, second.throttled), (Some(40), Some(2)));
    }

    #[test]
    fn what_is_not_there_is_unknown_with_its_reason() {
        let tree = Tree::new(&[("proc/interrupts", "odd\n")]);
        let cpus = CpuList::new([0]);
        let mut sampler = CpuSampler::new(&tree.root(), &cpus);
        let expected = CpuSecond { cpu: 0, ..CpuSecond::default() };
        assert_eq!(sampler.sample(&cpus), [expected]);
        let unknown = sampler.unknown().join("\n");
        assert!(unknown.contains("/proc/softirqs") && unknown.contains("/proc/schedstat"));
        assert!(unknown.contains("core_throttle_count"), "{unknown}");
    }

    #[test]
    fn a_cpu_that_came_back_has_no_count_before() {
        let tree = Tree::new(&[("proc/softirqs", "  CPU0\n TIMER: 1\n")]);
        let cpus = CpuList::new([0, 1]);
        let mut sampler = CpuSampler::new(&tree.root(), &cpus);
        tree.write("proc/softirqs", "  CPU0 CPU1\n TIMER: 4 900\n");
        let seconds = sampler.sample(&cpus);
        assert_eq!(seconds[0].softirqs.as_ref().map(|counted| counted.total), Some(3));
        assert_eq!(seconds[1].softirqs, None);
    }
}

#[cfg(test)]
mod rt_tasks_tests {
    use super::*;
    use crate::testing::Tree;

    fn stat(tid: u32, priority: u32, policy: u32) -> String {
        format!(
            "{tid} (a) b) S 1 1 1 0 -1 0 9 0 0 0 3 4 0 0 -91 0 1 0 88 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 \
             17 2 {priority} {policy} 0 0 0 0 0 0 0 0 0 0 0\n"
        )
    }

    #[test]
    fn those_of_real_time_policy_with_what_they_ran() {
        let tree = Tree::new(&[
            ("proc/1/stat", ""),
            ("proc/7/task/7/stat", &stat(7, 0, 0)),
            ("proc/7/task/8/stat", &stat(8, 90, 1)),
            ("proc/7/task/8/status", "Cpus_allowed_list:\t2-3\n"),
            ("proc/7/task/8/schedstat", "1000 5 9\n"),
            ("proc/9/task/9/stat", &stat(9, 0, 6)),
        ]);
        let mut sampler = RtSampler::new(&tree.root());
        let first = sampler.sample();
        let first = first.value().unwrap();
        assert_eq!(first.iter().map(|task| task.tid).collect::<Vec<_>>(), [8, 9]);
        assert_eq!((first[0].ran_ns, first[1].policy), (None, Policy::Deadline));
        assert_eq!(first[0].allowed, Some(CpuList::new([2, 3])));
        assert_eq!((first[0].comm.as_str(), first[1].allowed.as_ref()), ("a) b", None));
        tree.write("proc/7/task/8/schedstat", "4000 5 9\n");
        tree.write("proc/9/task/9/stat", &stat(9, 0, 0));
        let second = sampler.sample();
        let second = second.value().unwrap();
        assert_eq!((second.len(), second[0].ran_ns), (1, Some(3000)));
    }

    #[test]
    fn hidden_processes_give_no_answer() {
        let tree = Tree::new(&[("proc/7/task/7/stat", &stat(7, 90, 1))]);
        let read = RtSampler::new(&tree.root()).sample();
        assert!(read.why_unknown().unwrap().contains("hidepid"));
    }
}
