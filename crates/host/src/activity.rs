//! What ran on each CPU since boot, read from another CPU: two readings are subtracted by the
//! reader that wants to know what ran in between. Nothing here interrupts the CPUs that it asks
//! about; it is some files of /proc, and two for each task.

use serde::{Deserialize, Serialize};

use crate::{
    CpuList, Reading, Root,
    facts::{
        irq::table,
        tasks::{Policy, Stat},
    },
    text::field,
};

/// Time of one CPU since boot (/proc/stat), milliseconds in steps of 10: the ABI counts in
/// USER_HZ, see [`crate::sample`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuTimes {
    pub cpu: u32,
    pub user_ms: u64,
    /// Tasks of low priority.
    pub nice_ms: u64,
    /// The kernel on behalf of tasks, and its threads.
    pub system_ms: u64,
    pub irq_ms: u64,
    pub softirq_ms: u64,
    /// Stolen by the hypervisor.
    pub steal_ms: u64,
}

impl CpuTimes {
    /// What went by since an earlier reading of the same CPU. Counters of a CPU may step back a
    /// tick (Documentation/filesystems/proc.rst).
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            cpu: self.cpu,
            user_ms: self.user_ms.saturating_sub(earlier.user_ms),
            nice_ms: self.nice_ms.saturating_sub(earlier.nice_ms),
            system_ms: self.system_ms.saturating_sub(earlier.system_ms),
            irq_ms: self.irq_ms.saturating_sub(earlier.irq_ms),
            softirq_ms: self.softirq_ms.saturating_sub(earlier.softirq_ms),
            steal_ms: self.steal_ms.saturating_sub(earlier.steal_ms),
        }
    }
}

/// One line of /proc/interrupts or /proc/softirqs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Events {
    /// Number or abbreviation, e.g. `36`, `LOC`, `TIMER`.
    pub name: String,
    /// What follows the counts, e.g. `PCI-MSI 524288-edge nvme0q1`; empty for softirqs.
    pub about: String,
    /// Count of each requested CPU.
    pub counts: Vec<(u32, u64)>,
}

/// One task (thread).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    pub tid: u32,
    /// Start time in clock ticks since boot: with the id, the identity.
    pub start_ticks: u64,
    pub comm: String,
    pub kernel_thread: bool,
    /// Policy, if it is known here.
    pub policy: Option<Policy>,
    /// CPU that it last ran on.
    pub cpu: u32,
    /// CPU time used, milliseconds in steps of 10.
    pub time_ms: u64,
    /// Context switches away from it, of its own will or not.
    pub switches: u64,
    pub allowed: CpuList,
}

/// Times of the CPUs.
pub fn times(root: &Root, cpus: &CpuList) -> Reading<Vec<CpuTimes>> {
    root.read_text("/proc/stat").and_then(|path, text| {
        let rows: Vec<CpuTimes> =
            text.lines().filter_map(cpu_times).filter(|times| cpus.contains(times.cpu)).collect();
        match rows.len() == cpus.len() {
            true => Reading::known(path, rows),
            false => Reading::malformed(path, &text, format!("a line for each of CPU {cpus}")),
        }
    })
}

/// `cpuN user nice system idle iowait irq softirq steal ...` in ticks of 10 ms.
pub(crate) fn cpu_ticks(line: &str) -> Option<(u32, [u64; 8])> {
    let mut words = line.strip_prefix("cpu")?.split(' ');
    let cpu = words.next()?.parse().ok()?;
    let mut ticks = [0; 8];
    for tick in &mut ticks {
        *tick = words.next()?.parse().ok()?;
    }
    Some((cpu, ticks))
}

fn cpu_times(line: &str) -> Option<CpuTimes> {
    let (cpu, ticks) = cpu_ticks(line)?;
    let [user_ms, nice_ms, system_ms, _, _, irq_ms, softirq_ms, steal_ms] =
        ticks.map(|ticks| ticks.saturating_mul(10));
    Some(CpuTimes { cpu, user_ms, nice_ms, system_ms, irq_ms, softirq_ms, steal_ms })
}

/// Interrupts of the CPUs by line.
pub fn interrupts(root: &Root, cpus: &CpuList) -> Reading<Vec<Events>> {
    events(root, "/proc/interrupts", cpus)
}

/// Softirqs of the CPUs by kind.
pub fn softirqs(root: &Root, cpus: &CpuList) -> Reading<Vec<Events>> {
    events(root, "/proc/softirqs", cpus)
}

fn events(root: &Root, path: &str, cpus: &CpuList) -> Reading<Vec<Events>> {
    root.read_text(path).and_then(|path, text| {
        let (columns, rows) = table(&text);
        if cpus.iter().any(|cpu| !columns.contains(&cpu)) {
            let header = text.lines().next().unwrap_or_default();
            return Reading::malformed(path, header, format!("a column for each of CPU {cpus}"));
        }
        let rows = rows.filter(|row| row.counts.len() == columns.len()).map(|row| {
            let counts = columns.iter().copied().zip(row.counts);
            Events {
                name: row.label.to_owned(),
                about: row.about.split_whitespace().collect::<Vec<_>>().join(" "),
                counts: counts.filter(|(cpu, _)| cpus.contains(*cpu)).collect(),
            }
        });
        Reading::known(path, rows.collect())
    })
}

/// Time slices that tasks had on the CPUs together (Documentation/scheduler/sched-stats.rst, field
/// 9 of `cpuN`). Absent without CONFIG_SCHEDSTATS.
pub fn time_slices(root: &Root, cpus: &CpuList) -> Reading<u64> {
    root.read_text("/proc/schedstat").and_then(|path, text| {
        let of_line = |line: &str| {
            let mut words = line.strip_prefix("cpu")?.split_whitespace();
            let cpu: u32 = words.next()?.parse().ok()?;
            Some((cpu, words.nth(8)?.parse::<u64>().ok()?))
        };
        let rows: Vec<(u32, u64)> =
            text.lines().filter_map(of_line).filter(|(cpu, _)| cpus.contains(*cpu)).collect();
        match rows.len() == cpus.len() {
            true => Reading::known(path, rows.iter().map(|(_, slices)| slices).sum()),
            false => Reading::malformed(path, &text, format!("a line for each of CPU {cpus}")),
        }
    })
}

/// Every task that may run on one of the CPUs, this process left out. Tasks that end meanwhile are
/// left out; refused where not all processes are visible.
pub fn tasks(root: &Root, cpus: &CpuList) -> Reading<Vec<Task>> {
    const PATH: &str = "/proc/*/task/*/stat";
    let pids = root.list_numbered("/proc", "");
    // No process at all, not even this one: nothing hides them, procfs is missing.
    if pids.value().is_some_and(Vec::is_empty) {
        return Reading::absent(PATH);
    }
    if root.read_text("/proc/1/stat").is_absent() {
        let why = "process 1 cannot be seen: /proc hides other users' processes (hidepid)";
        return Reading::denied(PATH, why);
    }
    let own = root.read_link("/proc/self");
    let own: Option<u32> = own.value().and_then(|pid| pid.parse().ok());
    pids.with_path(PATH).map(|pids| {
        let pids = pids.into_iter().filter(|&pid| Some(pid) != own);
        let tasks = pids.flat_map(|pid| {
            let folder = format!("/proc/{pid}/task");
            let tids = root.list_numbered(&folder, "").value().cloned().unwrap_or_default();
            tids.into_iter().filter_map(move |tid| task(root, &format!("{folder}/{tid}"), tid))
        });
        tasks.filter(|task| !task.allowed.intersection(cpus).is_empty()).collect()
    })
}

fn task(root: &Root, folder: &str, tid: u32) -> Option<Task> {
    let status = root.read_text(&format!("{folder}/status"));
    let status = status.value()?;
    let number = |name: &str| field(status, name)?.parse::<u64>().ok();
    let stat = root.read_text(&format!("{folder}/stat"));
    let parsed = Stat::parse(stat.value()?)?;
    Some(Task {
        tid,
        start_ticks: parsed.start_ticks,
        comm: parsed.comm,
        kernel_thread: parsed.kernel_thread,
        policy: parsed.policy,
        cpu: parsed.cpu,
        time_ms: parsed.cpu_ticks.saturating_mul(10),
        switches: number("voluntary_ctxt_switches")?
            .saturating_add(number("nonvoluntary_ctxt_switches")?),
        allowed: CpuList::parse(field(status, "Cpus_allowed_list")?, None).ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    fn cpus(list: &[u32]) -> CpuList {
        CpuList::new(list.iter().copied())
    }

    #[test]
    fn times_of_the_cpus_asked_for() {
        let stat = "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\n\
                    cpu2 10 0 3 4 5 6 7 9 0 0\nintr 5\n";
        let tree = Tree::new(&[("proc/stat", stat)]);
        let root = tree.root();
        let read = times(&root, &cpus(&[0, 2]));
        let rows = read.value().unwrap();
        assert_eq!((rows[0].user_ms, rows[0].softirq_ms, rows[0].steal_ms), (10, 70, 80));
        assert_eq!((rows[1].cpu, rows[1].since(&rows[0]).user_ms), (2, 90));
        assert_eq!(rows[0].since(&rows[1]).steal_ms, 0, "never below zero");
        assert!(times(&root, &cpus(&[1])).why_unknown().unwrap().contains("CPU 1"));
    }

    #[test]
    fn interrupts_by_line_and_cpu() {
        let text = "           CPU0       CPU2       \n \
                    36:          7   3496267  PCI-MSIX-0000:00:02.0   1-edge      virtio1-req.0\n\
                    LOC:   13820748   14392551   Local timer interrupts\nERR:          0\n";
        let tree = Tree::new(&[("proc/interrupts", text)]);
        let root = tree.root();
        let read = interrupts(&root, &cpus(&[2]));
        let rows = read.value().unwrap();
        assert_eq!(rows.len(), 2);
        assert_eq!((rows[0].name.as_str(), rows[0].counts[0]), ("36", (2, 3_496_267)));
        assert_eq!(rows[0].about, "PCI-MSIX-0000:00:02.0 1-edge virtio1-req.0");
        assert_eq!(rows[1].about, "Local timer interrupts");
        assert!(interrupts(&root, &cpus(&[1])).value().is_none());
        assert!(softirqs(&root, &cpus(&[0])).is_absent());
    }

    #[test]
    fn time_slices_are_the_ninth_field() {
        let text = "version 17\ntimestamp 4\ncpu0 1 2 3 4 5 6 7 8 90\ndomain0 3 0 0\n\
                    cpu1 1 2 3 4 5 6 7 8 9\n";
        let tree = Tree::new(&[("proc/schedstat", text)]);
        let root = tree.root();
        assert_eq!(time_slices(&root, &cpus(&[0, 1])).value(), Some(&99));
        assert!(time_slices(&root, &cpus(&[2])).value().is_none());
    }

    #[test]
    fn tasks_that_may_run_there() {
        let stat = "7 (a b) S 1 7 7 0 -1 4194304 9 0 0 0 3 4 0 0 20 0 1 0 88 0 0 0 0 0 0 0 0 0 0 \
                    0 0 0 0 0 17 2 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n";
        let status = "Name:\ta b\nCpus_allowed_list:\t2-3\nvoluntary_ctxt_switches:\t5\n\
                      nonvoluntary_ctxt_switches:\t6\n";
        let tree = Tree::new(&[
            ("proc/1/stat", ""),
            ("proc/7/task/7/stat", stat),
            ("proc/7/task/7/status", status),
        ]);
        let root = tree.root();
        let read = tasks(&root, &cpus(&[3]));
        let [task] = read.value().unwrap().as_slice() else { panic!("{read:?}") };
        assert_eq!((task.cpu, task.time_ms, task.switches), (2, 70, 11));
        assert_eq!((task.comm.as_str(), task.start_ticks), ("a b", 88));
        assert_eq!(tasks(&root, &cpus(&[1])).value().map(Vec::len), Some(0));
        let hidden = Tree::new(&[("proc/7/stat", "")]);
        assert!(tasks(&hidden.root(), &cpus(&[3])).why_unknown().unwrap().contains("hidepid"));
        let no_procfs = Tree::new(&[("proc/x", "")]);
        assert!(tasks(&no_procfs.root(), &cpus(&[3])).is_absent(), "nothing is hidden there");
    }

    #[test]
    fn the_live_machine() {
        let root = Root::live();
        let online = root.cpu_list("/sys/devices/system/cpu/online");
        let online = online.value().cloned().unwrap_or_else(|| cpus(&[0]));
        assert!(times(&root, &online).value().is_some());
        assert!(interrupts(&root, &online).value().is_some_and(|rows| !rows.is_empty()));
        assert!(tasks(&root, &online).value().is_some_and(|tasks| tasks.len() > 1));
    }
}
