//! The names under which others set what a change sets.

use crate::{Root, change::Change};

/// What a change is about, for those who set whole subjects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    /// Affinity of interrupts.
    Irq,
    /// Frequencies and idle states.
    Power,
    /// CPUs in operation.
    Hotplug,
    Task,
    /// Anything else of a device.
    Device,
}

/// Names of the thing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Words {
    /// Path of the value, where it is one.
    pub(super) path: Option<String>,
    /// Name as a sysctl, with slashes.
    pub(super) sysctl: Option<String>,
    /// Words of tuned's profiles.
    pub(super) tuned: Vec<String>,
    /// Network interface that it belongs to.
    pub(super) interface: Option<String>,
    subject: Option<Subject>,
}

/// Options of tuned's plugins, by the end of the path that they set (profiles of tuned 2.20 and
/// later, tuned-profiles(7)).
const TUNED: &[(&str, &[&str])] = &[
    ("/scaling_governor", &["governor"]),
    ("/energy_performance_preference", &["energy_performance_preference", "energy_perf_bias"]),
    ("/energy_perf_bias", &["energy_perf_bias"]),
    ("/min_perf_pct", &["min_perf_pct"]),
    ("/max_perf_pct", &["max_perf_pct"]),
    ("/no_turbo", &["no_turbo"]),
    ("/boost", &["boost"]),
    ("/scaling_min_freq", &["min_perf_pct", "scaling_min_freq"]),
    ("/scaling_max_freq", &["max_perf_pct", "scaling_max_freq"]),
    ("/cpu_dma_latency", &["force_latency"]),
    ("/transparent_hugepage/enabled", &["transparent_hugepages", "transparent_hugepage"]),
    ("/transparent_hugepage/defrag", &["transparent_hugepage.defrag"]),
    ("/queue/scheduler", &["elevator"]),
    ("/queue/read_ahead_kb", &["readahead"]),
    ("/workqueue/cpumask", &["workqueue", "cpumask"]),
    ("/smp_affinity", &["irq_smp_affinity", "isolated_cores", "default_irq_smp_affinity"]),
    ("/smp_affinity_list", &["irq_smp_affinity", "isolated_cores", "default_irq_smp_affinity"]),
    ("/default_smp_affinity", &["default_irq_smp_affinity", "isolated_cores"]),
];

impl Words {
    pub(super) fn of(root: &Root, change: &Change) -> Self {
        match change {
            Change::Value { path, .. } => Self::of_path(root, path, None),
            Change::Hotplug { path, .. } => {
                Self { subject: Some(Subject::Hotplug), ..Self::of_path(root, path, None) }
            }
            Change::Irq { irq, .. } => {
                let path = format!("/proc/irq/{}/smp_affinity_list", irq.number);
                Self::of_path(root, &path, Some((irq.number, &irq.actions)))
            }
            Change::Task { task, .. } => Self {
                subject: Some(Subject::Task),
                tuned: vec!["isolated_cores".into(), task_word(&task.comm)],
                ..Self::default()
            },
            _ => Self::default(),
        }
    }

    fn of_path(root: &Root, path: &str, irq: Option<(u32, &str)>) -> Self {
        let sysctl = path.strip_prefix("/proc/sys/").map(str::to_owned);
        let mut tuned: Vec<String> = vec![path.to_owned()];
        tuned.extend(sysctl.iter().flat_map(|name| [name.clone(), name.replace('/', ".")]));
        let known = TUNED.iter().find(|(end, _)| path.ends_with(end));
        tuned.extend(known.into_iter().flat_map(|(_, words)| words.iter().map(|&w| w.to_owned())));
        let interface = match irq {
            Some((number, actions)) => interface_of(root, number, actions),
            None => path
                .strip_prefix("/sys/class/net/")
                .or_else(|| path.split_once("/net/").map(|(_, rest)| rest))
                .filter(|_| path.starts_with("/sys/"))
                .and_then(|rest| rest.split('/').next())
                .map(str::to_owned),
        };
        Self { subject: subject_of(path), path: Some(path.to_owned()), sysctl, tuned, interface }
    }

    pub(super) fn is(&self, subject: Subject) -> bool {
        self.subject == Some(subject)
    }
}

fn subject_of(path: &str) -> Option<Subject> {
    const POWER: [&str; 7] = [
        "/cpufreq/",
        "/cpuidle/",
        "/intel_pstate/",
        "/amd_pstate/",
        "/power/energy_perf_bias",
        "/firmware/acpi/platform_profile",
        "/powercap/",
    ];
    let has = |part: &&str| path.contains(*part);
    match () {
        () if path.starts_with("/proc/irq/") => Some(Subject::Irq),
        () if POWER.iter().any(has) => Some(Subject::Power),
        () if path.starts_with("/sys/devices/system/cpu/") => Some(Subject::Hotplug),
        () if path.starts_with("/sys/") => Some(Subject::Device),
        () => None,
    }
}

/// Threads of the kernel have a number or a CPU after their name, and tuned's profiles a pattern:
/// `group.ksoftirqd=0:f:2:*:ksoftirqd.*`.
fn task_word(comm: &str) -> String {
    comm.split(['/', '-']).next().unwrap_or(comm).to_owned()
}

/// The interface of an interrupt: its device lists it, or a handler bears its name.
fn interface_of(root: &Root, number: u32, actions: &str) -> Option<String> {
    let interfaces = root.list_dir("/sys/class/net");
    let is_its = |name: &&String| {
        root.exists(&format!("/sys/class/net/{name}/device/msi_irqs/{number}"))
            || actions.split([',', '-', ' ', '@', ':']).any(|word| word == name.as_str())
    };
    interfaces.value()?.iter().find(is_its).cloned()
}
