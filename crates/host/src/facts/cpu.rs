//! CPUs: sets, topology, frequency, idle states.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::cpu_part::Parts;
use crate::text::field;
use crate::{CpuList, Reading, Root};

/// Facts about the machine's CPUs: topology, isolation, frequencies and idle states.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Cpus {
    /// CPUs that are online.
    pub online: Reading<CpuList>,
    /// CPUs that are in the machine, online or not.
    #[serde(default)]
    pub present: Reading<CpuList>,
    /// CPUs that the kernel has room for: often more than there are.
    pub possible: Reading<CpuList>,
    /// CPUs isolated from the scheduler's domains (/sys/devices/system/cpu/isolated).
    pub isolated: Reading<CpuList>,
    /// CPUs in full-tickless mode (/sys/devices/system/cpu/nohz_full). An empty file and the
    /// kernel's `(null)` are the empty list.
    pub nohz_full: Reading<CpuList>,
    /// CPUs this process may use (its cpuset and affinity).
    pub allowed: Reading<CpuList>,
    /// SMT control: on, off, forceoff, notsupported, notimplemented.
    pub smt_control: Reading<String>,
    /// Whether SMT is active: some core has two threads online.
    pub smt_active: Reading<bool>,
    /// Idle driver (cpuidle/current_driver); `none` where no driver is loaded.
    pub idle_driver: Reading<String>,
    /// Idle governor (cpuidle/current_governor).
    pub idle_governor: Reading<String>,
    /// Each online CPU, ascending.
    pub cpus: Vec<Cpu>,
    /// NUMA nodes and their CPUs.
    pub nodes: Reading<Vec<Node>>,
}

/// Facts about one CPU: topology, cache, frequency, idle states.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Cpu {
    pub id: u32,
    /// Core number within the package.
    pub core: Reading<u32>,
    /// Socket number (`physical_package_id`).
    pub package: Reading<u32>,
    /// All threads of the same core, this one included.
    pub siblings: Reading<CpuList>,
    /// Design of its core: as /proc/cpuinfo names it, or `P-core` and `E-core` of x86.
    #[serde(default)]
    pub part: Reading<String>,
    /// Computing power beside the machine's fastest CPU, of 1024 (cpu_capacity).
    #[serde(default)]
    pub capacity: Reading<u32>,
    /// Size of the last-level cache in bytes.
    pub last_level_cache_bytes: Reading<u64>,
    /// CPUs that share this cache; where none is described, the CPUs of its cluster.
    #[serde(default)]
    pub last_level_cpus: Reading<CpuList>,
    pub freq: Freq,
    /// Idle states, shallow to deep.
    pub idle_states: Reading<Vec<IdleState>>,
    /// Per-CPU resume latency limit: `n/a` forbids all idle states, `0` means no limit.
    pub pm_qos_resume_latency_us: Reading<String>,
}

/// Frequency scaling of one CPU (cpufreq). All absent where the kernel or the hypervisor has none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Freq {
    pub governor: Reading<String>,
    pub driver: Reading<String>,
    /// scaling_min_freq in Hz.
    pub min_hz: Reading<u64>,
    /// scaling_max_freq in Hz.
    pub max_hz: Reading<u64>,
    /// cpuinfo_max_freq in Hz: what the hardware can.
    #[serde(default)]
    pub hardware_max_hz: Reading<u64>,
}

/// One idle state of one CPU (cpuidle).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IdleState {
    /// The N of its folder `stateN`.
    pub index: u32,
    /// Name, e.g. C6.
    pub name: String,
    /// Exit latency in nanoseconds.
    pub exit_latency_ns: u64,
    /// Target residency in nanoseconds.
    pub residency_ns: u64,
    /// Whether user space has disabled it.
    pub disabled: bool,
}

/// A NUMA node and the CPUs that belong to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Node {
    pub id: u32,
    pub cpus: CpuList,
}

const FOLDER: &str = "/sys/devices/system/cpu";

const NODES: &str = "/sys/devices/system/node";

impl Cpus {
    /// Reads all CPUs. About 40 files per CPU. `cpuinfo` is /proc/cpuinfo.
    pub fn read(root: &Root, cpuinfo: &Reading<String>) -> Self {
        let list = |name: &str| root.cpu_list(&format!("{FOLDER}/{name}"));
        let online =
            list("online").or_else(|| online_one_by_one(root)).or_else(|| online_by_counters(root));
        let online = or_own_affinity(root, online);
        let numbers = online.value().map(CpuList::as_slice).unwrap_or_default();
        let parts = Parts::read(root, cpuinfo);
        let cpus: Vec<Cpu> = numbers.iter().map(|&id| Cpu::read(root, id, &parts)).collect();
        let governor = |name: &str| root.trimmed(&format!("{FOLDER}/cpuidle/{name}"));
        Self {
            present: list("present"),
            possible: list("possible"),
            isolated: list("isolated"),
            nohz_full: list("nohz_full"),
            allowed: or_own_affinity(root, root.read_text("/proc/self/status").and_then(allowed)),
            smt_control: root.trimmed(&format!("{FOLDER}/smt/control")),
            smt_active: smt_active(root, &online, &cpus),
            idle_driver: governor("current_driver"),
            // Before 5.9 only the read-only name (drivers/cpuidle/sysfs.c).
            idle_governor: governor("current_governor").or_else(|| governor("current_governor_ro")),
            online,
            cpus,
            nodes: nodes(root),
        }
    }

    /// CPUs that exist: those present, else those possible. Masks may name more.
    pub fn existing(&self) -> Option<&CpuList> {
        self.present.value().or_else(|| self.possible.value())
    }

    /// CPUs that are in the machine and offline; `None`: unknown.
    pub fn offline(&self) -> Option<CpuList> {
        Some(self.present.value()?.difference(self.online.value()?))
    }
}

/// Captures that lack the list may have each CPU's own `online` file. The boot CPU often has none,
/// but only an online CPU has a topology folder.
fn online_one_by_one(root: &Root) -> Reading<CpuList> {
    let path = format!("{FOLDER}/cpu*/online");
    root.list_numbered(FOLDER, "cpu").with_path(&path).and_then(|path, numbers| {
        let online = |&cpu: &u32| {
            let folder = format!("{FOLDER}/cpu{cpu}");
            match root.trimmed(&format!("{folder}/online")).value() {
                Some(online) => online == "1",
                None => root.exists(&format!("{folder}/topology")),
            }
        };
        let cpus = CpuList::new(numbers.into_iter().filter(online));
        if cpus.is_empty() { Reading::absent(path) } else { Reading::known(path, cpus) }
    })
}

/// Without /sys: /proc/stat has a line for each online CPU (fs/proc/stat.c).
fn online_by_counters(root: &Root) -> Reading<CpuList> {
    root.read_text("/proc/stat").and_then(|path, stat| {
        let number = |line: &str| line.strip_prefix("cpu")?.split(' ').next()?.parse().ok();
        let cpus = CpuList::new(stat.lines().filter_map(number));
        if cpus.is_empty() {
            Reading::malformed(path, &stat, "lines cpu0 ...")
        } else {
            Reading::known(path, cpus)
        }
    })
}

/// Without /proc as well: the CPUs that the running kernel lets this process use, which are online.
fn or_own_affinity(root: &Root, read: Reading<CpuList>) -> Reading<CpuList> {
    const CALL: &str = "sched_getaffinity";
    if read.value().is_some() {
        return read;
    }
    let ask = || {
        let set = rustix::thread::sched_getaffinity(None)?;
        let cpus = (0..rustix::thread::CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu));
        Ok(CpuList::new(cpus.filter_map(|cpu| u32::try_from(cpu).ok())).to_string())
    };
    let Some(called) = root.call(CALL, ask) else {
        return read;
    };
    let parse = |list: &str| CpuList::parse(list, None).ok();
    read.or_else(|| called.parsed("a list of CPUs like 0-3,8", parse))
}

fn allowed(path: String, status: String) -> Reading<CpuList> {
    let list = field(&status, "Cpus_allowed_list");
    match list.map(|list| CpuList::parse(list, None)) {
        Some(Ok(cpus)) => Reading::known(path, cpus),
        _ => Reading::malformed(path, list.unwrap_or_default(), "Cpus_allowed_list: and a list"),
    }
}

/// From smt/active (4.19 and later), else from the siblings of every online CPU.
fn smt_active(root: &Root, online: &Reading<CpuList>, cpus: &[Cpu]) -> Reading<bool> {
    let active = root.trimmed(&format!("{FOLDER}/smt/active"));
    let active = active.parsed("0 or 1", |text| match text {
        "0" => Some(false),
        "1" => Some(true),
        _ => None,
    });
    active.or_else(|| {
        let path = format!("{FOLDER}/cpu*/topology/thread_siblings_list");
        let Some(online) = online.value() else {
            return Reading::absent(path);
        };
        let threads = |cpu: &Cpu| Some(cpu.siblings.value()?.intersection(online).len());
        // A captured tree may hold some of them only.
        let is_whole = online.iter().all(|id| cpus.iter().any(|cpu| cpu.id == id));
        let threads: Option<Vec<usize>> =
            if is_whole { cpus.iter().map(threads).collect() } else { None };
        match threads {
            Some(threads) if !threads.is_empty() => {
                Reading::known(path, threads.iter().any(|&threads| threads > 1))
            }
            _ => Reading::absent(path),
        }
    })
}

fn nodes(root: &Root) -> Reading<Vec<Node>> {
    root.list_numbered(NODES, "node").and_then(|path, ids| {
        let cpus = |id| root.cpu_list(&format!("{NODES}/node{id}/cpulist"));
        let nodes = ids.into_iter().map(|id| cpus(id).map(|cpus| Node { id, cpus }));
        Reading::all(path, nodes).and_then(|path, nodes: Vec<Node>| {
            let is_twice = |(at, node): (usize, &Node)| {
                nodes[..at].iter().any(|before| !before.cpus.intersection(&node.cpus).is_empty())
            };
            match nodes.iter().enumerate().any(is_twice) {
                true => Reading::malformed(path, "a CPU on two of them", "each CPU on one node"),
                false => Reading::known(path, nodes),
            }
        })
    })
}

impl Cpu {
    fn read(root: &Root, id: u32, parts: &Parts) -> Self {
        let folder = format!("{FOLDER}/cpu{id}");
        let core = topology(root, &folder, "core_id");
        let (last_level_cache_bytes, last_level_cpus) = last_level_cache(root, &folder);
        Self {
            id,
            siblings: siblings(root, &folder, &core),
            core,
            package: topology(root, &folder, "physical_package_id"),
            part: parts.of(root, id, &folder),
            capacity: root.number(&format!("{folder}/cpu_capacity"), "a number up to 1024"),
            last_level_cache_bytes,
            last_level_cpus,
            freq: Freq::read(root, &format!("{folder}/cpufreq")),
            idle_states: idle_states(root, &format!("{folder}/cpuidle")),
            pm_qos_resume_latency_us: root
                .trimmed(&format!("{folder}/power/pm_qos_resume_latency_us")),
        }
    }
}

/// Where firmware names no core (-1), all CPUs may pass for threads of one: seen on RISC-V with a
/// device tree without a cpu-map (drivers/base/arch_topology.c, update_siblings_masks).
fn siblings(root: &Root, folder: &str, core: &Reading<u32>) -> Reading<CpuList> {
    let siblings = root.cpu_list(&format!("{folder}/topology/thread_siblings_list"));
    siblings.and_then(|path, cpus| match core.is_absent() && root.exists(&core.path) {
        true if cpus.len() > 1 => {
            Reading::malformed(path, &cpus.to_string(), "threads of a core that has a number")
        }
        _ => Reading::known(path, cpus),
    })
}

/// -1 is how the kernel says that firmware does not know.
fn topology(root: &Root, folder: &str, name: &str) -> Reading<u32> {
    let number = root.number::<i64>(&format!("{folder}/topology/{name}"), "a number");
    number.and_then(|path, number| match u32::try_from(number) {
        Ok(number) => Reading::known(path, number),
        Err(_) if number == -1 => Reading::absent(path),
        Err(_) => Reading::malformed(path, &number.to_string(), "a number"),
    })
}

/// Size of the cache of the highest index that holds data, and the CPUs that share it.
fn last_level_cache(root: &Root, cpu: &str) -> (Reading<u64>, Reading<CpuList>) {
    let index = root.list_numbered(&format!("{cpu}/cache"), "index").and_then(|path, indices| {
        let holds_data = |index: &&u32| {
            let kind = root.trimmed(&format!("{path}/index{index}/type"));
            kind.value().is_some_and(|kind| kind == "Unified" || kind == "Data")
        };
        match indices.iter().rev().find(holds_data) {
            Some(index) => Reading::known(format!("{path}/index{index}"), ()),
            None => Reading::absent(format!("{path}/index*/type")),
        }
    });
    let cluster = || root.cpu_list(&format!("{cpu}/topology/cluster_cpus_list"));
    let cpus =
        index.as_ref().and_then(|path, ()| root.cpu_list(&format!("{path}/shared_cpu_list")));
    let bytes = index.and_then(|path, ()| {
        root.trimmed(&format!("{path}/size")).parsed("a size like 512K", size_bytes)
    });
    (bytes, cpus.or_else(cluster))
}

/// `28160K`.
fn size_bytes(text: &str) -> Option<u64> {
    let (digits, unit) = match text.strip_suffix(['K', 'k', 'M']) {
        Some(digits) if text.ends_with('M') => (digits, 1 << 20),
        Some(digits) => (digits, 1 << 10),
        None => (text, 1),
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

impl Freq {
    fn read(root: &Root, folder: &str) -> Self {
        let word = |name: &str| root.trimmed(&format!("{folder}/scaling_{name}"));
        let hz = |name: &str| {
            let khz = root.number::<u64>(&format!("{folder}/{name}"), "kHz");
            khz.map(|khz| khz.saturating_mul(1000))
        };
        Self {
            governor: word("governor"),
            driver: word("driver"),
            min_hz: hz("scaling_min_freq"),
            max_hz: hz("scaling_max_freq"),
            hardware_max_hz: hz("cpuinfo_max_freq"),
        }
    }
}

/// No stateN: no idle driver, which is absent and not a list of none.
fn idle_states(root: &Root, folder: &str) -> Reading<Vec<IdleState>> {
    root.list_numbered(folder, "state").and_then(|path, indices| {
        if indices.is_empty() {
            return Reading::absent(format!("{path}/state0"));
        }
        let state = |index| idle_state(root, format!("{folder}/state{index}"), index);
        Reading::all(path, indices.into_iter().map(state))
    })
}

/// Latency and residency are written in microseconds (Documentation/admin-guide/pm/cpuidle.rst).
fn idle_state(root: &Root, folder: String, index: u32) -> Reading<IdleState> {
    let number =
        |name: &str| root.number::<u64>(&format!("{folder}/{name}"), "a number of microseconds");
    root.trimmed(&format!("{folder}/name")).and_then(|_, name| {
        number("latency").and_then(|_, latency_us| {
            number("residency").and_then(|_, residency_us| {
                number("disable").and_then(|_, disable| {
                    let state = IdleState {
                        index,
                        name,
                        exit_latency_ns: latency_us.saturating_mul(1000),
                        residency_ns: residency_us.saturating_mul(1000),
                        disabled: disable != 0,
                    };
                    Reading::known(folder.clone(), state)
                })
            })
        })
    })
}

#[cfg(test)]
mod node_tests {
    use super::*;
    use crate::testing::Tree;

    /// As a machine of hwloc's had it: every node names every CPU.
    #[test]
    fn a_cpu_on_two_nodes_is_on_none_that_is_known() {
        let list = |node: u32| format!("sys/devices/system/node/node{node}/cpulist");
        let read = |second: &str| {
            let tree = Tree::new(&[(&list(0), "0-3\n"), (&list(1), second)]);
            nodes(&tree.root())
        };
        assert_eq!(read("4-7\n").value().map(Vec::len), Some(2));
        assert_eq!(read("\n").value().map(Vec::len), Some(2), "a node of memory alone");
        assert!(read("3-7\n").why_unknown().is_some());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    const CPU: &str = "sys/devices/system/cpu";

    fn tree(files: &[(&str, &str)]) -> Tree {
        let files: Vec<_> =
            files.iter().map(|(name, text)| (format!("{CPU}/{name}"), *text)).collect();
        let files: Vec<_> = files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
        Tree::new(&files)
    }

    fn read(tree: &Tree) -> Cpus {
        Cpus::read(&tree.root(), &tree.root().read_text("/proc/cpuinfo"))
    }

    #[test]
    fn sets_and_the_two_ways_of_saying_none() {
        let tree = tree(&[
            ("online", "0-1\n"),
            ("possible", "0-3\n"),
            ("isolated", "\n"),
            ("nohz_full", "  (null)\n"),
            ("smt/active", "0\n"),
            ("smt/control", "notsupported\n"),
            ("cpuidle/current_driver", "none\n"),
            ("cpuidle/current_governor_ro", "menu\n"),
        ]);
        tree.write("proc/self/status", "Name:\tx\nCpus_allowed_list:\t1\n");
        let cpus = read(&tree);
        assert_eq!(cpus.online.value().unwrap().len(), 2);
        assert_eq!(cpus.isolated.value(), Some(&CpuList::default()));
        assert_eq!(cpus.nohz_full.value(), Some(&CpuList::default()));
        assert_eq!(cpus.allowed.value().unwrap().as_slice(), [1]);
        assert_eq!(cpus.smt_active.value(), Some(&false));
        assert_eq!(cpus.idle_driver.value().unwrap(), "none");
        assert_eq!(cpus.idle_governor.value().unwrap(), "menu");
        assert_eq!(cpus.cpus.len(), 2);
        let first = &cpus.cpus[0];
        assert!(first.freq.governor.is_absent() && first.idle_states.is_absent());
        assert!(first.core.is_absent() && first.last_level_cache_bytes.is_absent());
        assert!(cpus.nodes.is_absent());
    }

    #[test]
    fn one_cpu_in_full() {
        let tree = tree(&[
            ("online", "2\n"),
            ("cpu2/topology/core_id", "5\n"),
            ("cpu2/topology/physical_package_id", "-1\n"),
            ("cpu2/topology/thread_siblings_list", "2,42\n"),
            ("cpu2/cache/index0/type", "Data\n"),
            ("cpu2/cache/index0/size", "32K\n"),
            ("cpu2/cache/index2/type", "Unified\n"),
            ("cpu2/cache/index2/size", "1M\n"),
            ("cpu2/cache/index3/type", "Instruction\n"),
            ("cpu2/cpufreq/scaling_governor", "performance\n"),
            ("cpu2/cpufreq/scaling_min_freq", "800000\n"),
            ("cpu2/cpuidle/state0/name", "POLL\n"),
            ("cpu2/cpuidle/state0/latency", "0\n"),
            ("cpu2/cpuidle/state0/residency", "0\n"),
            ("cpu2/cpuidle/state0/disable", "0\n"),
            ("cpu2/cpuidle/state10/name", "C6\n"),
            ("cpu2/cpuidle/state10/latency", "133\n"),
            ("cpu2/cpuidle/state10/residency", "600\n"),
            ("cpu2/cpuidle/state10/disable", "1\n"),
            ("cpu2/power/pm_qos_resume_latency_us", "n/a\n"),
        ]);
        tree.write("sys/devices/system/node/node0/cpulist", "2\n");
        let cpus = read(&tree);
        let cpu = &cpus.cpus[0];
        assert_eq!((cpu.id, cpu.core.value()), (2, Some(&5)));
        assert!(cpu.package.is_absent());
        assert_eq!(cpu.last_level_cache_bytes.value(), Some(&(1 << 20)));
        assert_eq!(cpu.freq.min_hz.value(), Some(&800_000_000));
        let states = cpu.idle_states.value().unwrap();
        assert_eq!((states[1].index, states[1].exit_latency_ns), (10, 133_000));
        assert_eq!((states[1].residency_ns, states[1].disabled), (600_000, true));
        assert_eq!(cpu.pm_qos_resume_latency_us.value().unwrap(), "n/a");
        assert_eq!(cpus.nodes.value().unwrap()[0].cpus.as_slice(), [2]);
        // Its sibling is offline.
        assert_eq!(cpus.smt_active.value(), Some(&false));
    }

    #[test]
    fn online_from_each_cpu_where_the_list_is_missing() {
        let tree = tree(&[
            ("cpu0/topology/thread_siblings_list", "0,2\n"),
            ("cpu1/online", "0\n"),
            ("cpu2/online", "1\n"),
            ("cpu2/topology/thread_siblings_list", "0,2\n"),
            ("cpufreq/x", ""),
        ]);
        let cpus = read(&tree);
        assert_eq!(cpus.online.path, "/sys/devices/system/cpu/cpu*/online");
        assert_eq!(cpus.online.value().unwrap().as_slice(), [0, 2]);
        assert_eq!(cpus.smt_active.value(), Some(&true));
        assert!(cpus.smt_active.path.ends_with("thread_siblings_list"));
    }

    #[test]
    fn siblings_of_a_core_without_a_number_are_not_known() {
        for (core, siblings, is_known) in
            [("-1\n", "0-1\n", false), ("-1\n", "0\n", true), ("0\n", "0-1\n", true)]
        {
            let tree = tree(&[
                ("online", "0-1\n"),
                ("cpu0/topology/core_id", core),
                ("cpu0/topology/thread_siblings_list", siblings),
                ("cpu1/topology/thread_siblings_list", "0-1\n"),
            ]);
            let cpus = read(&tree).cpus;
            assert_eq!(cpus[0].siblings.value().is_some(), is_known, "{core}{siblings}");
            assert!(cpus[1].siblings.value().is_some(), "a copy without the number");
        }
    }

    #[test]
    fn siblings_of_some_cpus_do_not_decide_for_the_others() {
        let tree = tree(&[("online", "0-3\n"), ("cpu0/topology/thread_siblings_list", "0\n")]);
        assert!(read(&tree).smt_active.is_absent());
    }

    #[test]
    fn odd_contents_are_malformed() {
        let tree = tree(&[
            ("online", "0\n"),
            ("smt/active", "yes\n"),
            ("isolated", "1-\n"),
            ("cpu0/topology/core_id", "-2\n"),
            ("cpu0/cache/index0/type", "Data\n"),
            ("cpu0/cache/index0/size", "big\n"),
            ("cpu0/cpufreq/scaling_max_freq", "<unknown>\n"),
            ("cpu0/cpuidle/state0/name", "POLL\n"),
            ("cpu0/cpuidle/state0/latency", "soon\n"),
        ]);
        let cpus = read(&tree);
        let cpu = &cpus.cpus[0];
        for why in [
            cpus.smt_active.why_unknown(),
            cpus.isolated.why_unknown(),
            cpu.core.why_unknown(),
            cpu.last_level_cache_bytes.why_unknown(),
            cpu.freq.max_hz.why_unknown(),
            cpu.idle_states.why_unknown(),
        ] {
            assert!(why.unwrap().starts_with("holds"));
        }
    }

    #[test]
    fn without_sys_the_counters_show_online_cpus() {
        let tree = Tree::new(&[("proc/stat", "cpu  9 9\ncpu0 1 2\ncpu2 1 2\nintr 4\n")]);
        let cpus = read(&tree);
        assert_eq!(cpus.online, Reading::known("/proc/stat", CpuList::new([0, 2])));
        assert_eq!(cpus.cpus.len(), 2);
        assert!(cpus.possible.is_absent() && cpus.cpus[0].freq.governor.is_absent());
        let odd = read(&Tree::new(&[("proc/stat", "intr 4\n")])).online;
        assert!(odd.value().is_none() && odd.path.ends_with("/proc/stat"), "{odd:?}");
    }

    #[test]
    fn the_running_kernel_is_asked_where_no_file_says_it() {
        let own = or_own_affinity(&Root::live(), Reading::absent("p"));
        assert_eq!(own.path, "sched_getaffinity");
        assert!(own.value().is_some_and(|cpus| !cpus.is_empty()));
        let captured = or_own_affinity(&Tree::new(&[]).root(), Reading::absent("p"));
        assert!(captured.is_absent());
    }

    #[test]
    fn nothing_captured_is_nothing_known() {
        let cpus = read(&Tree::new(&[]));
        assert!(cpus.cpus.is_empty() && cpus.online.is_absent() && cpus.smt_active.is_absent());
    }
}
