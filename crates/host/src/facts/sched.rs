//! RT throttling and, from 6.12, the deadline server that runs fair tasks ahead of real-time ones.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::reading::ReadingState;
use crate::{Reading, Root};

/// What the scheduler takes from real-time tasks by rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Sched {
    /// sched_rt_runtime_us; -1 is no limit.
    pub rt_runtime_us: Reading<i64>,
    /// sched_rt_period_us.
    pub rt_period_us: Reading<i64>,
    /// Fair server per CPU (/sys/kernel/debug/sched/fair_server). Absent before 6.12; denied under
    /// lockdown and where debugfs is not mounted on a kernel that may have one.
    pub fair_server: Reading<Vec<FairServer>>,
    /// The same for tasks of a BPF scheduler (/sys/kernel/debug/sched/ext_server), with kernels
    /// that have it.
    #[serde(default)]
    pub ext_server: Reading<Vec<FairServer>>,
    /// Features of the scheduler, those that are off with `NO_` before their name.
    #[serde(default)]
    pub features: Reading<Vec<String>>,
}

/// The fair server of one CPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FairServer {
    pub cpu: u32,
    /// Runtime per period in nanoseconds; 0 is off.
    pub runtime_ns: u64,
    pub period_ns: u64,
}

const DEBUGFS: &str = "/sys/kernel/debug";

const NOT_MOUNTED: &str = "debugfs is not mounted";

const FAIR_SERVER: &str = "/sys/kernel/debug/sched/fair_server";

const EXT_SERVER: &str = "/sys/kernel/debug/sched/ext_server";

const FEATURES: &str = "/sys/kernel/debug/sched/features";

/// Where the features were before 5.13.
const OLD_FEATURES: &str = "/sys/kernel/debug/sched_features";

/// First kernel with the fair server (d741f297bcea, "sched/fair: Fair server interface") and with
/// BPF schedulers.
const FAIR_SERVER_SINCE: (u32, u32) = (6, 12);

impl Sched {
    /// Reads throttling and the fair server; `version` decides whether the kernel can have one.
    pub fn read(root: &Root, version: &Reading<(u32, u32)>) -> Self {
        let number = |name| root.number(&format!("/proc/sys/kernel/{name}"), "microseconds or -1");
        Self {
            rt_runtime_us: number("sched_rt_runtime_us"),
            rt_period_us: number("sched_rt_period_us"),
            fair_server: servers(root, FAIR_SERVER, version),
            ext_server: servers(root, EXT_SERVER, version),
            features: features(root),
        }
    }
}

/// Whether a file of debugfs could not be read because debugfs is not mounted.
pub fn wants_debugfs<T>(reading: &Reading<T>) -> bool {
    matches!(&reading.state, ReadingState::Denied { why } if why.starts_with(NOT_MOUNTED))
}

fn servers(root: &Root, folder: &str, version: &Reading<(u32, u32)>) -> Reading<Vec<FairServer>> {
    let folders = root.list_numbered(folder, "cpu");
    if folders.is_absent() {
        let is_too_old = version.value().is_some_and(|&version| version < FAIR_SERVER_SINCE);
        return if is_too_old { Reading::absent(folder) } else { not_in_debugfs(root, folder) };
    }
    folders.and_then(|path, cpus| {
        let server = |cpu| {
            let number = |name| root.number(&format!("{folder}/cpu{cpu}/{name}"), "nanoseconds");
            let period = number("period");
            number("runtime").and_then(|_, runtime_ns| {
                period.map(|period_ns| FairServer { cpu, runtime_ns, period_ns })
            })
        };
        Reading::all(path, cpus.into_iter().map(server))
    })
}

/// Features, from the one place or the other.
fn features(root: &Root) -> Reading<Vec<String>> {
    let words = |text: String| text.split_whitespace().map(str::to_owned).collect();
    let found = root.read_text(FEATURES);
    let found = if found.is_absent() {
        match root.read_text(OLD_FEATURES) {
            old if old.is_absent() => return not_in_debugfs(root, FEATURES),
            old => old,
        }
    } else {
        found
    };
    found.map(words)
}

/// Nothing there may mean that the kernel has no such thing, or a debugfs that cannot be seen:
/// the latter must not read as "off".
fn not_in_debugfs<T>(root: &Root, path: &str) -> Reading<T> {
    match root.list_dir(DEBUGFS).state {
        ReadingState::Known { value } if value.is_empty() => {
            Reading::denied(path, format!("{NOT_MOUNTED} at {DEBUGFS}"))
        }
        ReadingState::Denied { why } => Reading::denied(path, why),
        _ => Reading::absent(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    fn sched(files: &[(&str, &str)], version: Option<(u32, u32)>) -> Sched {
        let version = match version {
            Some(version) => Reading::known("v", version),
            None => Reading::absent("v"),
        };
        Sched::read(&Tree::new(files).root(), &version)
    }

    const CPU0: (&str, &str) = ("sys/kernel/debug/sched/fair_server/cpu0/runtime", "50000000\n");
    const CPU0_PERIOD: (&str, &str) =
        ("sys/kernel/debug/sched/fair_server/cpu0/period", "1000000000\n");

    #[test]
    fn throttling() {
        let files = [
            ("proc/sys/kernel/sched_rt_runtime_us", "-1\n"),
            ("proc/sys/kernel/sched_rt_period_us", "1000000\n"),
        ];
        let sched = sched(&files, Some((6, 1)));
        assert_eq!(sched.rt_runtime_us.value(), Some(&-1));
        assert_eq!(sched.rt_period_us.value(), Some(&1_000_000));
        assert!(sched.fair_server.is_absent());
    }

    #[test]
    fn fair_server_per_cpu() {
        let servers = sched(&[CPU0, CPU0_PERIOD], Some((6, 18))).fair_server;
        let expected = FairServer { cpu: 0, runtime_ns: 50_000_000, period_ns: 1_000_000_000 };
        assert_eq!(servers.value().unwrap(), &[expected]);
        let half = sched(&[CPU0], Some((6, 18))).fair_server;
        assert!(half.is_absent() && half.path.ends_with("cpu0/period"));
        let odd = sched(&[(CPU0.0, "x"), CPU0_PERIOD], Some((6, 18))).fair_server;
        assert!(odd.why_unknown().unwrap().contains("nanoseconds"));
    }

    #[test]
    fn an_unmounted_debugfs_is_not_a_server_that_is_off() {
        let tree = Tree::new(&[("sys/kernel/debug/x", "")]);
        std::fs::remove_file(tree.path().join("sys/kernel/debug/x")).unwrap();
        let root = tree.root();
        let server = |version| {
            Sched::read(&root, &Reading::known("v", version)).fair_server.why_unknown().unwrap()
        };
        assert!(server((6, 12)).contains("debugfs is not mounted at /sys/kernel/debug"));
        assert_eq!(server((6, 11)), "not there");
        let of = |version| Sched::read(&root, &Reading::known("v", version)).fair_server;
        assert!(wants_debugfs(&of((6, 12))) && !wants_debugfs(&of((6, 11))));
        let unknown = Sched::read(&root, &Reading::absent("v")).fair_server;
        assert!(matches!(unknown.state, ReadingState::Denied { .. }));
        // Mounted, and the kernel has none; not captured at all.
        let mounted = sched(&[("sys/kernel/debug/sched/features", "")], Some((6, 18)));
        assert!(mounted.fair_server.is_absent());
        assert!(sched(&[], Some((6, 18))).fair_server.is_absent());
        let refused = sched(&[("sys/kernel/debug", "")], Some((6, 18)));
        assert!(refused.fair_server.is_absent(), "a file in place of the folder");
    }

    #[test]
    fn the_server_of_bpf_schedulers_and_features() {
        let found = sched(
            &[
                ("sys/kernel/debug/sched/ext_server/cpu1/runtime", "0\n"),
                ("sys/kernel/debug/sched/ext_server/cpu1/period", "1000000000\n"),
                ("sys/kernel/debug/sched/features", "PLACE_LAG NO_TTWU_QUEUE \n"),
            ],
            Some((7, 2)),
        );
        let expected = FairServer { cpu: 1, runtime_ns: 0, period_ns: 1_000_000_000 };
        assert_eq!(found.ext_server.value().unwrap(), &[expected]);
        assert_eq!(found.features.value().unwrap(), &["PLACE_LAG", "NO_TTWU_QUEUE"]);
        let old = sched(&[("sys/kernel/debug/sched_features", "RT_PUSH_IPI")], Some((5, 10)));
        assert_eq!(old.features, Reading::known(OLD_FEATURES, vec!["RT_PUSH_IPI".into()]));
        assert!(old.ext_server.is_absent());
    }
}
