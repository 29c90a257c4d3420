//! An application that every question is content with, on the good machine.
//!
//! Public and hidden, so that the tests of other crates start from the same one.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use rtproof_host::{
    Facts, Reading,
    facts::{
        app::{
            App, AppProcess, AppThread, Assignment, CpuGroup, CpusetGroup, Groups, MemoryGroup,
            ProcessLimits, ProcessStatus, ThreadSched, ThreadStatus, UnitFile,
        },
        rights::Limit,
        tasks::{Policy, RtTask},
    },
    reading::ReadingState,
};

use crate::Finding;
use crate::check::Check;
use crate::testing::{cpus, good, intent};

/// Folder of the application's group.
const GROUP: &str = "/sys/fs/cgroup/arm.service";

/// A machine and an application on it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Scene {
    pub facts: Facts,
    pub app: App,
}

impl Scene {
    /// Everything as wanted: `arm` with a thread at FIFO 80 on CPU 2 and an ordinary one on 0-1.
    pub fn good() -> Self {
        Self { facts: good(), app: app() }
    }

    /// Judged for the intent of the tests.
    pub fn judge(&self, check: &Check) -> Finding {
        check.judge_app(&self.facts, &self.app, &intent())
    }
}

fn app() -> App {
    App {
        name: "arm".into(),
        pid: 100,
        unit: Reading::known("/proc/100/cgroup", Some("arm.service".into())),
        processes: vec![process()],
        groups: groups(),
        unit_file: Reading::known(
            "/etc/systemd/system/arm.service",
            Some(UnitFile {
                name: "arm.service".into(),
                files: vec!["/etc/systemd/system/arm.service".into()],
                settings: BTreeMap::new(),
            }),
        ),
        rr_timeslice_ms: Reading::known("/proc/sys/kernel/sched_rr_timeslice_ms", 100),
        uptime_ticks: Reading::known("/proc/uptime", 1_500),
    }
}

fn process() -> AppProcess {
    let unlimited = Limit { soft: None, hard: None };
    let mib = |number: u64| number << 20;
    AppProcess {
        pid: 100,
        name: "arm".into(),
        is_kernel_thread: false,
        start_ticks: 500,
        status: Reading::known(
            "/proc/100/status",
            ProcessStatus {
                size_bytes: mib(10) + (32 << 10),
                resident_bytes: mib(8),
                locked_bytes: mib(10),
                swapped_bytes: 0,
                hugetlb_bytes: 0,
                tracer: 0,
                seccomp: Some(0),
                pid_namespaces: 1,
                cap_sys_nice: true,
                cap_ipc_lock: true,
            },
        ),
        limits: Reading::known(
            "/proc/100/limits",
            ProcessLimits {
                rtprio: Limit { soft: Some(95), hard: Some(95) },
                memlock: unlimited,
                rttime: unlimited,
            },
        ),
        oom_score_adj: Reading::known("/proc/100/oom_score_adj", -900),
        threads: Reading::known(
            "/proc/100/task",
            vec![
                one_thread(100, "arm", Policy::Other, 0, &[0, 1], 50_000),
                one_thread(101, "loop", Policy::Fifo, 80, &[2], 0),
            ],
        ),
    }
}

fn one_thread(
    tid: u32,
    comm: &str,
    policy: Policy,
    priority: u32,
    on: &[u32],
    slack_ns: u64,
) -> AppThread {
    AppThread {
        tid,
        pid: 100,
        sched: Reading::known(
            format!("/proc/100/task/{tid}/stat"),
            ThreadSched {
                comm: comm.into(),
                policy,
                priority,
                nice: 0,
                cpu_ticks: 100,
                start_ticks: 500,
                minor_faults: 120,
                major_faults: 0,
            },
        ),
        status: Reading::known(
            format!("/proc/100/task/{tid}/status"),
            ThreadStatus {
                cpus: cpus(on),
                mems: cpus(&[0]),
                voluntary_switches: 4_000,
                involuntary_switches: 1,
            },
        ),
        timer_slack_ns: Reading::known(format!("/proc/{tid}/timerslack_ns"), slack_ns),
    }
}

fn groups() -> Groups {
    fn file<T>(folder: &str, name: &str, value: Option<T>) -> Reading<Option<T>> {
        Reading::known(format!("{folder}/{name}"), value)
    }
    let path = "/proc/100/cgroup";
    let root = "/sys/fs/cgroup";
    let cpu = |folder: &str| CpuGroup {
        folder: folder.into(),
        quota: file(folder, "cpu.max", None),
        throttled: file(folder, "cpu.stat", Some(0)),
        rt_runtime_us: file(folder, "cpu.rt_runtime_us", None),
    };
    let cpuset = |folder: &str, on: &[u32]| CpusetGroup {
        folder: folder.into(),
        cpus: file(folder, "cpuset.cpus.effective", Some(cpus(on))),
        mems: file(folder, "cpuset.mems.effective", Some(cpus(&[0]))),
        partition: file(folder, "cpuset.cpus.partition", None),
    };
    let memory = |folder: &str| MemoryGroup {
        folder: folder.into(),
        limit_bytes: file(folder, "memory.high", None),
        hits: file(folder, "memory.events", None),
    };
    Groups {
        paths: Reading::known(path, "0::/arm.service".into()),
        cpu: Reading::known(path, vec![cpu(GROUP), cpu(root)]),
        cpuset: Reading::known(path, vec![cpuset(GROUP, &[2, 3]), cpuset(root, &[0, 1, 2, 3])]),
        memory: Reading::known(path, vec![memory(GROUP), memory(root)]),
    }
}

/// The value of a reading that the scene knows.
fn known<T>(reading: &mut Reading<T>) -> &mut T {
    match &mut reading.state {
        ReadingState::Known { value } => value,
        _ => panic!("{} is not known in this scene", reading.path),
    }
}

/// Makes a reading refused.
pub fn blank<T>(reading: &mut Reading<T>) {
    reading.state = ReadingState::Denied { why: "EACCES".into() };
}

/// Gives a file of a group a value.
pub fn set_some<T>(reading: &mut Reading<Option<T>>, value: T) {
    reading.state = ReadingState::Known { value: Some(value) };
}

/// A thread.
///
/// # Panics
/// The scene has no such thread.
pub fn thread(scene: &mut Scene, tid: u32) -> &mut AppThread {
    let threads = known(&mut scene.app.processes[0].threads);
    let found = threads.iter_mut().find(|thread| thread.tid == tid);
    found.unwrap_or_else(|| panic!("no thread {tid}"))
}

/// Policy and counts of a thread.
pub fn sched_of(scene: &mut Scene, tid: u32) -> &mut ThreadSched {
    known(&mut thread(scene, tid).sched)
}

/// Gives a thread its CPUs.
pub fn set_cpus(scene: &mut Scene, tid: u32, on: &[u32]) {
    known(&mut thread(scene, tid).status).cpus = cpus(on);
}

/// Memory and rights of the process.
pub fn status_of(scene: &mut Scene) -> &mut ProcessStatus {
    known(&mut scene.app.processes[0].status)
}

/// Limits of the process.
pub fn limits_of(scene: &mut Scene) -> &mut ProcessLimits {
    known(&mut scene.app.processes[0].limits)
}

/// Takes the rights away.
pub fn no_rights(scene: &mut Scene) {
    let status = status_of(scene);
    (status.cap_sys_nice, status.cap_ipc_lock) = (false, false);
}

/// Its own CPU group.
pub fn cpu_group(scene: &mut Scene) -> &mut CpuGroup {
    &mut known(&mut scene.app.groups.cpu)[0]
}

pub fn cpuset(scene: &mut Scene) -> &mut CpusetGroup {
    &mut known(&mut scene.app.groups.cpuset)[0]
}

/// Its own memory group.
pub fn memory_group(scene: &mut Scene) -> &mut MemoryGroup {
    &mut known(&mut scene.app.groups.memory)[0]
}

/// Sets a setting of the unit.
pub fn set_unit(scene: &mut Scene, key: &str, value: &str) {
    if let Some(unit) = known(&mut scene.app.unit_file) {
        let file = unit.files[0].clone();
        unit.settings.insert(key.into(), Assignment { value: value.into(), file });
    }
}

/// Adds a real-time task of another.
pub fn add_task(scene: &mut Scene, task: RtTask) {
    known(&mut scene.facts.rt_tasks).push(task);
}
