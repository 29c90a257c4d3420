//! One walk over all tasks, for the real-time ones and for daemons known by name.

use super::{RtTask, TaskGroup, groups::Groups, stat::Stat};
use crate::{CpuList, Reading, Root};

/// What one walk over /proc finds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scan {
    /// Real-time tasks, this process left out, by thread id.
    pub rt_tasks: Reading<Vec<RtTask>>,
    /// All tasks in groups, this process left out.
    pub placement: Reading<Vec<TaskGroup>>,
    /// Name and id of every process; unknown where not all processes are visible.
    pub processes: Reading<Vec<(String, u32)>>,
}

impl Scan {
    /// Walks over all tasks. Tasks that end meanwhile are left out.
    pub fn read(root: &Root) -> Self {
        let pids = root.list_numbered("/proc", "").and_then(|path, pids| {
            // Whoever cannot see process 1 does not see all (mount option hidepid, another PID
            // namespace's /proc, or a capture of a few processes): what is missing may be RT.
            let first = root.read_text("/proc/1/stat");
            if pids.is_empty() {
                // No process at all, not even this one: the folder is there and procfs is not.
                return Reading::absent("/proc/*/stat");
            }
            match first.value() {
                Some(_) => Reading::known(path, pids),
                None if root.is_whole() && first.is_absent() => Reading::denied(
                    path,
                    "process 1 cannot be seen: /proc hides other users' processes (hidepid)",
                ),
                None => first.map(|_| Vec::new()),
            }
        });
        let own = own_pid(root);
        let mut tasks = Vec::new();
        let mut groups = Groups::default();
        let mut unseen = None;
        let processes = pids.clone().map(|pids| {
            let mut process = |&pid: &u32| {
                let main = read_stat(root, &format!("/proc/{pid}/stat"), &mut unseen)?;
                if Some(pid) != own {
                    process_tasks(root, pid, &main, &mut tasks, &mut groups, &mut unseen);
                }
                Some((main.comm, pid))
            };
            pids.iter().filter_map(&mut process).collect()
        });
        tasks.sort_unstable_by_key(|task| task.tid);
        let placement = pids.clone().map(|_| groups.finish());
        // One that is not seen may be a real-time one. Those that ended meanwhile are absent.
        let rt_tasks = match unseen {
            Some(unseen) => unseen.map(|_| Vec::new()),
            None => pids.map(|_| tasks).with_path("/proc/*/task/*/stat"),
        };
        Self { rt_tasks, placement: placement.with_path("/proc/*/task/*/status"), processes }
    }
}

/// The id of the process that reads /proc, or read it; a folder of files has none.
fn own_pid(root: &Root) -> Option<u32> {
    if !root.is_whole() {
        return None;
    }
    root.read_link("/proc/self").value()?.parse().ok()
}

/// `unseen` gets the first that is there and cannot be read.
fn read_stat(root: &Root, path: &str, unseen: &mut Option<Reading<String>>) -> Option<Stat> {
    let text = root.read_text(path);
    let stat = text.value().and_then(|text| Stat::parse(text));
    if unseen.is_none() && text.value().is_none() && !text.is_absent() {
        *unseen = Some(text);
    }
    stat
}

/// Adds the tasks of one process: the real-time ones each, all of them to the groups.
fn process_tasks(
    root: &Root,
    pid: u32,
    main: &Stat,
    into: &mut Vec<RtTask>,
    groups: &mut Groups,
    unseen: &mut Option<Reading<String>>,
) {
    let unit = (!main.kernel_thread).then(|| root.read_text(&format!("/proc/{pid}/cgroup")));
    let unit = unit.and_then(|cgroup| unit_of(cgroup.value()?));
    let mut threads: Vec<(u32, Stat, Option<CpuList>)> = Vec::new();
    let mut add = |tid: u32, stat: Stat| {
        let cpus = allowed_cpus(root, pid, tid);
        if let Some(policy) = stat.policy.filter(|policy| policy.is_real_time()) {
            into.push(RtTask {
                tid,
                pid,
                comm: stat.comm.clone(),
                policy,
                priority: stat.priority,
                cpus: cpus.clone(),
                kernel_thread: stat.kernel_thread,
                unit: unit.clone(),
                start_ticks: stat.start_ticks,
            });
        }
        threads.push((tid, stat, cpus));
    };
    let folder = format!("/proc/{pid}/task");
    // Most processes have one thread: no folder to list.
    let tids = (main.threads > 1).then(|| root.list_numbered(&folder, ""));
    match tids.as_ref().and_then(Reading::value) {
        Some(tids) => {
            for &tid in tids {
                if let Some(stat) = read_stat(root, &format!("{folder}/{tid}/stat"), unseen) {
                    add(tid, stat);
                }
            }
        }
        // Of one thread; or vanished, or not captured.
        None => add(pid, main.clone()),
    }
    groups.add_process(&main.comm, unit.as_ref(), &threads);
}

/// CPUs that a thread may run on. Only its line is read of a file of some sixty.
fn allowed_cpus(root: &Root, pid: u32, tid: u32) -> Option<CpuList> {
    const LINE: &str = "Cpus_allowed_list";
    let status = root
        .excerpt(&format!("/proc/{pid}/task/{tid}/status"), &[LINE])
        .or_else(|| root.excerpt(&format!("/proc/{pid}/status"), &[LINE]));
    let list = status.value()?.strip_prefix(LINE)?.strip_prefix(':')?;
    CpuList::parse(list, None).ok()
}

/// The innermost service or scope of a cgroup file, else the innermost slice, else the cgroup
/// itself unless it is the root. The lines that matter are version 2's (`0::`) and systemd's own of
/// version 1; where those name none, a controller of version 1 may (no systemd, or a container).
pub(crate) fn unit_of(cgroup: &str) -> Option<String> {
    let is_own = |line: &&str| line.starts_with("0::") || line.contains(":name=systemd:");
    let path = |line: &'_ str| {
        let path = line.splitn(3, ':').nth(2)?;
        Some(path.strip_suffix(" (deleted)").unwrap_or(path).to_owned())
    };
    let (own, controllers): (Vec<&str>, Vec<&str>) = cgroup.lines().partition(is_own);
    let own: Vec<String> = own.into_iter().filter_map(path).collect();
    let controllers: Vec<String> = controllers.into_iter().filter_map(path).collect();
    let innermost = |paths: &[String], endings: &[&str]| {
        let is_unit = |part: &&str| endings.iter().any(|ending| part.ends_with(ending));
        paths.iter().find_map(|path| path.rsplit('/').find(is_unit).map(str::to_owned))
    };
    let running = [".service", ".scope"];
    innermost(&own, &running)
        .or_else(|| innermost(&controllers, &running))
        .or_else(|| innermost(&own, &[".slice"]))
        .or_else(|| own.into_iter().find(|path| path.len() > 1))
}

#[cfg(test)]
mod tests {
    use super::{
        super::{Policy, stat::PF_KTHREAD},
        *,
    };
    use crate::{reading::State, testing::Tree};

    /// A stat line; fields 3 to 41 with those that matter set.
    fn stat(tid: u32, comm: &str, flags: u64, threads: u32, priority: u32, policy: u32) -> String {
        let mut fields = vec!["0".to_owned(); 50];
        fields[0] = "S".into();
        fields[6] = flags.to_string();
        fields[17] = threads.to_string();
        fields[19] = "777".into();
        fields[36] = "3".into();
        fields[37] = priority.to_string();
        fields[38] = policy.to_string();
        format!("{tid} ({comm}) {}\n", fields.join(" "))
    }

    #[test]
    fn names_with_spaces_and_parentheses() {
        let line = stat(7, "a b) (c) 1 2", 0x0020_0040, 1, 99, 1);
        let stat = Stat::parse(&line).unwrap();
        assert_eq!(stat.comm, "a b) (c) 1 2");
        assert!(stat.kernel_thread);
        assert_eq!((stat.cpu, stat.priority, stat.policy), (3, 99, Some(Policy::Fifo)));
        assert_eq!(stat.start_ticks, 777);
        assert_eq!(Stat::parse("7 (cut) S 1 2"), None);
        assert_eq!(Stat::parse(""), None);
    }

    fn machine() -> Tree {
        Tree::new(&[
            ("proc/1/stat", &stat(1, "systemd", 0, 1, 0, 0)),
            ("proc/12/stat", &stat(12, "migration/0", PF_KTHREAD, 1, 99, 1)),
            ("proc/12/status", "Cpus_allowed_list:\t0\n"),
            ("proc/400/stat", &stat(400, "multipathd", 0, 3, 0, 0)),
            ("proc/400/task/400/stat", &stat(400, "multipathd", 0, 3, 0, 0)),
            ("proc/400/task/401/stat", &stat(401, "multipathd", 0, 3, 99, 2)),
            ("proc/400/task/401/status", "Cpus_allowed_list:\t0-3\n"),
            ("proc/400/cgroup", "0::/system.slice/multipathd.service\n"),
            // 402 vanished: its folder is there and its stat is not.
            ("proc/400/task/402/comm", "x"),
            ("proc/irq/x", ""),
        ])
    }

    #[test]
    fn real_time_tasks_and_processes() {
        let scan = Scan::read(&machine().root());
        let tasks = scan.rt_tasks.value().unwrap();
        assert_eq!(tasks.len(), 2);
        assert!(tasks[0].kernel_thread && tasks[0].unit.is_none());
        assert_eq!(tasks[0].cpus.as_ref().unwrap().as_slice(), [0]);
        let thread = &tasks[1];
        assert_eq!((thread.tid, thread.pid, thread.priority), (401, 400, 99));
        assert_eq!(thread.policy, Policy::Rr);
        assert_eq!(thread.unit.as_deref(), Some("multipathd.service"));
        let names: Vec<_> = scan.processes.value().unwrap().iter().map(|p| p.0.as_str()).collect();
        assert_eq!(names, ["systemd", "migration/0", "multipathd"]);
    }

    #[test]
    fn every_task_is_in_a_group() {
        let scan = Scan::read(&machine().root());
        assert_eq!(scan.placement.path, "/proc/*/task/*/status");
        let show = |group: &TaskGroup| {
            let cpus = group.cpus.as_ref().map_or("?".into(), CpuList::to_string);
            let unit = group.unit.as_deref().unwrap_or("-");
            format!("{} {} {cpus} {unit}", group.name, group.tid)
        };
        let shown: Vec<String> = scan.placement.value().unwrap().iter().map(show).collect();
        let wanted = [
            "migration/N 12 0 -",
            "multipathd 400 ? multipathd.service",
            "multipathd 401 0-3 multipathd.service",
            "systemd 1 ? -",
        ];
        assert_eq!(shown, wanted);
        assert!(Scan::read(&Tree::new(&[]).root()).placement.is_absent());
    }

    #[test]
    fn a_few_processes_are_not_all() {
        let tree = Tree::new(&[("proc/26231/stat", &stat(26231, "vim", 0, 1, 0, 0))]);
        let scan = Scan::read(&tree.root());
        assert!(scan.rt_tasks.is_absent() && scan.processes.is_absent());
        assert!(Scan::read(&Tree::new(&[]).root()).rt_tasks.is_absent());
        // The folder without procfs on it hides no processes: there are none.
        let bare = Scan::read(&Tree::new(&[("proc/x", "")]).root());
        assert_eq!(bare.rt_tasks, Reading::absent("/proc/*/task/*/stat"));
        assert_eq!(bare.processes, Reading::absent("/proc/*/stat"));
        // A folder in place of the file makes the read fail.
        let refused = Scan::read(&Tree::new(&[("proc/1/stat/x", "")]).root());
        assert!(matches!(refused.rt_tasks.state, State::Denied { .. }));
    }

    #[test]
    fn units_of_both_cgroup_versions() {
        let unit = |text| unit_of(text);
        let v1 = "9:name=systemd:/user.slice/user@1000.service/app.slice/run-1.scope\n8:cpu:/\n";
        assert_eq!(unit(v1).as_deref(), Some("run-1.scope"));
        assert_eq!(unit("0::/system.slice/x.service/sub\n").as_deref(), Some("x.service"));
        assert_eq!(unit("0::/docker/abc\n").as_deref(), Some("/docker/abc"));
        assert_eq!(unit("0::/\n"), None);
        assert_eq!(unit("4:cpu:/a.service\n").as_deref(), Some("a.service"));
        assert_eq!(unit("1:name=systemd:/\n4:cpu:/a.service\n").as_deref(), Some("a.service"));
        assert_eq!(unit("4:cpu:/docker/abc\n"), None);
        assert_eq!(unit("0::/user.slice/user-1000.slice\n").as_deref(), Some("user-1000.slice"));
        assert_eq!(unit("0::/system.slice/x.service (deleted)\n").as_deref(), Some("x.service"));
        assert_eq!(unit("0::/../../system.slice/x.service\n").as_deref(), Some("x.service"));
        assert_eq!(unit(""), None);
    }
}
