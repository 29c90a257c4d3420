//! Rows of the subjects whose serialised form would make no stable or useful keys.

use std::collections::{BTreeMap, BTreeSet};

use sha2::{Digest, Sha256};

use super::{FactClass, FactRow, RowState, fact_row, known_row};
use crate::facts::irq::Irqbalance;
use crate::facts::kernel::CommandLine;
use crate::facts::rights::LimitLine;
use crate::facts::settings::Settings;
use crate::facts::tasks::{RtTask, TaskGroup, without_numbers};
use crate::facts::virt::Units;
use crate::reading::ReadingState;
use crate::text::hex;
use crate::{Reading, knobs};

/// Build options that can matter to latency, by the start of their names. A kernel has some nine
/// thousand options; those without a row are in the digest and in the facts themselves.
const OPTIONS: &[&str] = &[
    "PREEMPT",
    "HZ",
    "NO_HZ",
    "HIGH_RES_TIMERS",
    "RCU_",
    "CPU_ISOLATION",
    "CPUSETS",
    "RT_GROUP_SCHED",
    "SCHED_",
    "CPU_FREQ",
    "CPU_IDLE",
    "IRQ_FORCED",
    "IRQ_TIME",
    "VIRT_CPU_ACCOUNTING",
    "LOCKUP",
    "SOFTLOCKUP",
    "HARDLOCKUP",
    "DETECT_HUNG",
    "PROVE_LOCKING",
    "LOCKDEP",
    "DEBUG_LOCK",
    "DEBUG_PREEMPT",
    "DEBUG_OBJECTS",
    "DEBUG_PAGEALLOC",
    "DEBUG_ATOMIC",
    "SLUB_DEBUG",
    "KASAN",
    "KCSAN",
    "KFENCE",
    "KMSAN",
    "UBSAN",
    "IRQSOFF_TRACER",
    "PREEMPT_TRACER",
    "FUNCTION_TRACER",
    "OSNOISE_TRACER",
    "TIMERLAT_TRACER",
    "HWLAT_TRACER",
    "EFI_DISABLE_RUNTIME",
    "TRANSPARENT_HUGEPAGE",
    "NUMA_BALANCING",
    "SMP",
    "LTO",
    "PGO",
];

/// Parameters that name a disk, a file or a network and not a way of running.
const IDENTITY_PARAMETERS: &[&str] = &[
    "BOOT_IMAGE",
    "root",
    "boot",
    "resume",
    "initrd",
    "ostree",
    "ip",
    "nfsroot",
    "rd.luks.uuid",
    "rd.lvm.lv",
    "cryptdevice",
    "systemd.machine_id",
    "hostname",
    "systemd.hostname",
];

/// One row for a reading that is not known; `None` where it is.
fn unknown<T>(key: &str, reading: &Reading<T>) -> Option<FactRow> {
    let (state, value) = match &reading.state {
        ReadingState::Known { .. } => return None,
        ReadingState::Absent => (RowState::Absent, String::new()),
        ReadingState::Denied { why } => (RowState::Denied, why.clone()),
        ReadingState::Malformed { found, expected } => {
            (RowState::Malformed, format!("{found}; expected {expected}"))
        }
    };
    Some(fact_row(key, value, state, &reading.path))
}

/// `kernel.config`, a digest of all options, and `kernel.config.NAME` for those that matter.
pub(super) fn config(config: &Reading<BTreeMap<String, String>>, rows: &mut Vec<FactRow>) {
    rows.extend(unknown("kernel.config", config));
    let Some(options) = config.value() else {
        return;
    };
    let mut digest = Sha256::new();
    for (name, value) in options {
        digest.update(format!("{name}={value}\n"));
        if OPTIONS.iter().any(|start| name.starts_with(start)) {
            rows.push(known_row(&format!("kernel.config.{name}"), value.clone(), &config.path));
        }
    }
    let digest = hex(&digest.finalize()[..8]);
    let text = format!("{} options, sha256 {digest}", options.len());
    rows.push(known_row("kernel.config", text, &config.path));
}

/// `kernel.cmdline`, the whole line, and `kernel.cmdline.NAME` with all its values in order. The
/// whole line names disks and files, so it is identity; its parameters are the condition.
pub(super) fn cmdline(cmdline: &Reading<CommandLine>, rows: &mut Vec<FactRow>) {
    rows.extend(unknown("kernel.cmdline", cmdline));
    let Some(line) = cmdline.value() else { return };
    let mut parameters: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for parameter in &line.parameters {
        let values = parameters.entry(&parameter.key).or_default();
        values.extend(parameter.value.as_deref());
    }
    for (name, values) in parameters {
        let mut row = known_row(&format!("kernel.cmdline.{name}"), values.join(" "), &cmdline.path);
        if IDENTITY_PARAMETERS.contains(&name) {
            row.class = FactClass::Identity;
        }
        rows.push(row);
    }
    let mut whole = known_row("kernel.cmdline", line.text.clone(), &cmdline.path);
    whole.class = FactClass::Identity;
    rows.push(whole);
}

/// `rt_tasks.NAME` and `rt_tasks.kernel.NAME`: the policies and priorities that tasks of this name
/// have. Without ids, which change from boot to boot; and numbers in the names of kernel threads
/// are `N`, so that one CPU or queue more is no new row.
pub(super) fn rt_tasks(tasks: &Reading<Vec<RtTask>>, rows: &mut Vec<FactRow>) {
    rows.extend(unknown("rt_tasks", tasks));
    let path = &tasks.path;
    let Some(tasks) = tasks.value() else { return };
    let mut names: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for task in tasks {
        let name = if task.kernel_thread {
            format!("rt_tasks.kernel.{}", without_numbers(&task.comm))
        } else {
            format!("rt_tasks.{}", task.comm)
        };
        let how = format!("{} {}", task.policy.name(), task.priority);
        names.entry(name).or_default().insert(how);
    }
    if names.is_empty() {
        rows.push(known_row("rt_tasks", String::new(), path));
    }
    for (name, how) in names {
        let how: Vec<String> = how.into_iter().collect();
        rows.push(known_row(&name, how.join(", "), path));
    }
}

/// `placement`: how many tasks there are. Which ones changes from second to second.
pub(super) fn placement(groups: &Reading<Vec<TaskGroup>>, rows: &mut Vec<FactRow>) {
    rows.extend(unknown("placement", groups));
    if let Some(found) = groups.value() {
        let tasks: u32 = found.iter().map(|group| group.count).sum();
        rows.push(known_row("placement", format!("{tasks} tasks"), &groups.path));
    }
}

/// `irqs.irqbalance.*`; whether it runs, and not as which process.
pub(super) fn irqbalance(irqbalance: &Reading<Irqbalance>, rows: &mut Vec<FactRow>) {
    rows.extend(unknown("irqs.irqbalance", irqbalance));
    let Some(daemon) = irqbalance.value() else {
        return;
    };
    let banned = daemon.banned.as_ref().map_or("none".into(), ToString::to_string);
    for (name, value) in [
        ("running", daemon.running.is_some().to_string()),
        ("enabled", daemon.enabled.to_string()),
        ("banned", banned),
    ] {
        rows.push(known_row(&format!("irqs.irqbalance.{name}"), value, &irqbalance.path));
    }
}

/// `settings.KNOB`, or `settings.KNOB.eth0/0` where the knob has a value per CPU or device.
pub(super) fn settings(settings: &Settings, rows: &mut Vec<FactRow>) {
    for (id, setting) in settings {
        let is_counter = knobs::all().any(|knob| knob.id == id && knob.is_counter);
        // Those of another rtproof come and go with its runs: they are no setting of the machine.
        let is_ours = |of: &str| id.starts_with("trace-instance") && of.starts_with("rtproof-");
        for value in setting.values.iter().filter(|value| !is_ours(&value.of)) {
            let key = match value.of.as_str() {
                "" => format!("settings.{id}"),
                of => format!("settings.{id}.{of}"),
            };
            let mut row = match unknown(&key, &value.reading) {
                Some(row) => row,
                None => {
                    let text = value.reading.value().cloned().unwrap_or_default();
                    known_row(&key, text, &value.reading.path)
                }
            };
            if is_counter {
                row.class = FactClass::Volatile;
            }
            rows.push(row);
        }
    }
}

/// `units.NAME`: enabled, masked, running.
pub(super) fn units(units: &Reading<Units>, rows: &mut Vec<FactRow>) {
    rows.extend(unknown("units", units));
    for (name, unit) in units.value().into_iter().flatten() {
        let mut words = Vec::new();
        words.push(if unit.enabled { "enabled" } else { "disabled" });
        words.extend(unit.masked.then_some("masked"));
        words.extend(unit.running.map(|running| if running { "running" } else { "not running" }));
        rows.push(known_row(&format!("units.{name}"), words.join(", "), &unit.file));
    }
}

/// `rights.limits.WHO.ITEM.KIND`: the values of the limits files in their order, the last of which
/// holds.
pub(super) fn limit_lines(lines: &Reading<Vec<LimitLine>>, rows: &mut Vec<FactRow>) {
    rows.extend(unknown("rights.limits", lines));
    let mut values: BTreeMap<String, (Vec<&str>, &str)> = BTreeMap::new();
    for line in lines.value().into_iter().flatten() {
        let key = format!("rights.limits.{}.{}.{}", line.domain, line.item, line.kind);
        let entry = values.entry(key).or_default();
        entry.0.push(&line.value);
        entry.1 = &line.file;
    }
    for (key, (values, file)) in values {
        rows.push(known_row(&key, values.join(", "), file));
    }
}
