//! Real-time tasks while they run: who they are, where, and how much of the time each had a CPU.
//!
//! Finding them reads a file of every task of the machine, so it is done every five seconds, and
//! more rarely where it takes long; those that are known are read each time.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use crate::{
    CpuList, Reading, Root,
    facts::tasks::{Policy, Stat},
    text::field,
};

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

/// A task that was found: thread id, its folder, and what it had run.
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
        // Who ended or is no longer real-time is forgotten until the next look.
        self.known.retain(|&tid, known| {
            let Some(task) = read(root, tid, known) else { return false };
            tasks.push(task);
            true
        });
        Reading::known(PATH, tasks)
    }

    fn scan(&mut self) {
        // As activity::tasks: who cannot see process 1 cannot see those of others.
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
    fn where_processes_are_hidden_nothing_is_said() {
        let tree = Tree::new(&[("proc/7/task/7/stat", &stat(7, 90, 1))]);
        let read = RtSampler::new(&tree.root()).sample();
        assert!(read.why_unknown().unwrap().contains("hidepid"));
    }
}
