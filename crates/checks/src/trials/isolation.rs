//! Did anything run on the real-time CPUs while the others were loaded?
//!
//! By kind, without thresholds: a task that may run elsewhere and an interrupt of a device have no
//! business there and are bad. What the kernel does by itself for the CPU, or what other CPUs ask
//! of it (bound kernel threads, inter-processor interrupts, the tick), is doubtful: part of it goes
//! with nohz_full and rcu_nocbs, part stays. Tasks that may run nowhere else were put there.

use rtproof_host::{CpuList, Facts, knobs::cpu::IRQ_CPUS, task::InterruptLine};
use rtproof_model::trial::{IsolationObservation, RanTask};

use crate::check::{Check, Wanted};
use crate::draft::FindingBuilder;
use crate::machine::first_few;
use crate::{Evidence, Finding, Intent, Remedy, Status, When, known};

pub(super) static CHECK: Check = Check {
    id: "proof-isolation",
    wanted: Wanted::Text("nothing runs on the real-time CPUs while the others are loaded"),
    why: "what runs on a real-time CPU delays the application there, and comes with the load of \
          the others",
    source: "seen here: /proc/stat, /proc/interrupts, /proc/softirqs, /proc/PID/stat before and \
             after; Documentation/admin-guide/kernel-per-CPU-kthreads.rst; \
             Documentation/timers/no_hz.rst",
    when: When::Boot,
    ..Check::NEW
};

/// Names in a summary.
const NAMES_MAX: usize = 3;

/// Names in the evidence.
const ROWS_MAX: usize = 16;

/// Lowest rate of the tick that a kernel can be built with (kernel/Kconfig.hz), a tenth less: what
/// comes as often is the tick.
const TICK_PER_S: u64 = 90;

/// Origin of an interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Device,
    /// The CPU's own timer.
    Timer,
    /// Sent by another CPU, or by the kernel to itself.
    Kernel,
}

fn kind(line: &InterruptLine) -> Kind {
    let is_numbered = line.name.bytes().all(|byte| byte.is_ascii_digit());
    let about = line.about.to_ascii_lowercase();
    match line.name.as_str() {
        "LOC" => Kind::Timer,
        // Per-CPU timers of Arm and RISC-V are numbered.
        _ if is_numbered && about.contains("timer") => Kind::Timer,
        _ if is_numbered && about.contains("pmu") => Kind::Kernel,
        _ if is_numbered => Kind::Device,
        _ => Kind::Kernel,
    }
}

/// Why a task was there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    /// It may run elsewhere, too.
    Stray,
    /// A kernel thread of this CPU.
    Bound,
    /// A user's task that may run nowhere else.
    Put,
}

fn why(task: &RanTask, rt_cpus: &CpuList) -> Why {
    match (task.allowed.difference(rt_cpus).is_empty(), task.kernel_thread) {
        (false, _) => Why::Stray,
        (true, true) => Why::Bound,
        (true, false) => Why::Put,
    }
}

pub(super) fn judge(observed: &IsolationObservation, facts: &Facts, intent: &Intent) -> Finding {
    let draft = CHECK.draft().cpus(&observed.cpus);
    if observed.load_cpus.is_empty() || observed.cpus.is_empty() {
        let text = "name the real-time CPUs with --cpus, and leave some for the load";
        return draft
            .read(&facts.cpus.online, CpuList::to_string)
            .remedies([Remedy::Manual { text: text.into() }])
            .status(Status::Unknown, "not tried: no CPU is left for the load");
    }
    let draft = evidence(draft, observed);
    if observed.loads.iter().all(|load| load.error.is_some()) {
        return draft.status(Status::Unknown, "not tried: no load could be run");
    }
    let tasks = |wanted| {
        let all = observed.tasks.value().into_iter().flatten();
        all.filter(|task| why(task, &observed.cpus) == wanted).map(task_text).collect::<Vec<_>>()
    };
    let (stray, bound) = (tasks(Why::Stray), tasks(Why::Bound));
    let lines = |wanted| {
        let all = observed.interrupts.value().into_iter().flatten();
        all.filter(move |line| kind(line) == wanted)
    };
    let rates = |lines: &mut dyn Iterator<Item = &InterruptLine>| {
        lines.map(|line| interrupt_text(line, observed.duration_ns)).collect::<Vec<_>>()
    };
    let devices = rates(&mut lines(Kind::Device));
    let kernel = rates(&mut lines(Kind::Kernel));
    let ticking = rates(&mut lines(Kind::Timer).filter(|line| is_tick(line, observed)));
    let steal_ms: u64 =
        observed.times.value().into_iter().flatten().map(|times| times.steal_ms).sum();
    let named = |label: &str, names: &[String]| {
        (!names.is_empty()).then(|| format!("{label}: {}", first_few(names, NAMES_MAX)))
    };
    let bad: Vec<String> =
        [named("tasks that may run elsewhere", &stray), named("interrupts of devices", &devices)]
            .into_iter()
            .flatten()
            .collect();
    let doubtful: Vec<String> = [
        named("kernel threads of these CPUs", &bound),
        named("interrupts of the kernel", &kernel),
        named("the tick runs", &ticking),
        (steal_ms > 0).then(|| format!("the hypervisor took {steal_ms} ms")),
    ]
    .into_iter()
    .flatten()
    .collect();
    let failed: Vec<&str> =
        observed.loads.iter().filter(|l| l.error.is_some()).map(|l| l.load.as_str()).collect();
    let without = match failed.as_slice() {
        [] => String::new(),
        failed => format!(" (without {})", failed.join(", ")),
    };
    let head = format!(
        "{} in {} of load on {}{without}",
        crate::cpus(&observed.cpus),
        crate::ns(observed.duration_ns),
        crate::cpus(&observed.load_cpus)
    );
    if !bad.is_empty() {
        let all: Vec<String> = bad.into_iter().chain(doubtful).collect();
        return draft
            .remedies(remedies(observed, facts, intent, !stray.is_empty()))
            .status(Status::Bad, format!("{head}: {}", all.join("; ")));
    }
    let unreadable = [observed.interrupts.why_unknown(), observed.tasks.why_unknown()];
    if let Some(why) = unreadable.into_iter().flatten().next() {
        return draft.status(Status::Unknown, format!("{head}: not all could be looked at: {why}"));
    }
    if !doubtful.is_empty() {
        return draft.status(Status::Doubtful, format!("{head}: {}", doubtful.join("; ")));
    }
    if observed.duration_ns < super::SHORT_NS {
        return draft.status(Status::Unknown, format!("{head}: quiet, and too short to tell"));
    }
    let has_tasks = observed.tasks.value().is_some_and(|tasks| !tasks.is_empty());
    match observed.time_slices.value() {
        Some(&slices) if slices > 0 && !has_tasks => draft.status(
            Status::Doubtful,
            format!("{head}: {slices} time slices of tasks that were gone before they were named"),
        ),
        _ => draft.status(Status::Good, format!("{head}: quiet")),
    }
}

/// Whether the tick runs on one of the CPUs.
fn is_tick(line: &InterruptLine, observed: &IsolationObservation) -> bool {
    let per_tick = |count: u64| u128::from(count) * 1_000_000_000;
    let enough = u128::from(observed.duration_ns) * u128::from(TICK_PER_S);
    line.counts.iter().any(|(_, count)| per_tick(*count) >= enough)
}

fn task_text(task: &RanTask) -> String {
    let mut text = format!("{} ({}×", task.comm, crate::grouped(task.switches));
    if task.time_ms > 0 {
        text += &format!(", {} ms", task.time_ms);
    }
    text + ")"
}

/// Handlers or name, and how often on these CPUs together.
fn interrupt_text(line: &InterruptLine, duration_ns: u64) -> String {
    let count: u64 = line.counts.iter().map(|(_, count)| count).sum();
    let tenths = u128::from(count) * 10_000_000_000 / u128::from(duration_ns.max(1));
    let name = match kind(line) {
        // The handlers are the last column.
        Kind::Device => {
            let handlers = line.about.rsplit(' ').next().unwrap_or_default();
            format!("{} {handlers}", line.name)
        }
        _ => line.name.clone(),
    };
    format!("{name} {count}× ({}.{}/s)", tenths / 10, tenths % 10)
}

fn evidence(draft: FindingBuilder, observed: &IsolationObservation) -> FindingBuilder {
    let loads: Vec<String> = observed
        .loads
        .iter()
        .map(|load| format!("{}: {}", load.load, load.error.as_ref().unwrap_or(&load.work)))
        .collect();
    let draft = draft
        .measured(format!("load on {}", crate::cpus(&observed.load_cpus)), loads.join("; "))
        .read(&observed.times, |times| {
            let one = |times: &rtproof_host::task::CpuTimes| {
                format!(
                    "cpu{} user {} nice {} system {} irq {} softirq {} steal {} ms",
                    times.cpu,
                    times.user_ms,
                    times.nice_ms,
                    times.system_ms,
                    times.irq_ms,
                    times.softirq_ms,
                    times.steal_ms
                )
            };
            first_few(&times.iter().map(one).collect::<Vec<_>>(), ROWS_MAX)
        })
        .read(&observed.interrupts, |lines| rows(lines, observed.duration_ns))
        .read(&observed.softirqs, |lines| rows(lines, observed.duration_ns))
        .read(&observed.time_slices, |slices| format!("{slices} time slices"));
    let path = observed.tasks.path.clone();
    let tasks: Vec<Evidence> = match observed.tasks.value() {
        None => vec![Evidence::of(&observed.tasks, |_| String::new())],
        Some(tasks) if tasks.is_empty() => {
            vec![Evidence { path, value: "no task ran on these CPUs".into() }]
        }
        Some(tasks) => {
            let row = |task: &RanTask| {
                let kind = match why(task, &observed.cpus) {
                    Why::Stray => format!("may run on {}", crate::cpus(&task.allowed)),
                    Why::Bound => "kernel thread of these CPUs".to_owned(),
                    Why::Put => "put there".to_owned(),
                };
                let policy = task.policy.map_or("?", rtproof_host::facts::tasks::Policy::name);
                let value = format!("{}, {policy}, on {}; {kind}", task_text(task), task.on);
                Evidence { path: format!("/proc/{}/stat", task.tid), value }
            };
            tasks.iter().take(ROWS_MAX).map(row).collect()
        }
    };
    draft.evidence(tasks)
}

fn rows(lines: &[InterruptLine], duration_ns: u64) -> String {
    match lines {
        [] => "none".into(),
        lines => {
            let rows: Vec<String> =
                lines.iter().map(|line| interrupt_text(line, duration_ns)).collect();
            first_few(&rows, ROWS_MAX)
        }
    }
}

fn remedies(
    observed: &IsolationObservation,
    facts: &Facts,
    intent: &Intent,
    has_stray: bool,
) -> Vec<Remedy> {
    let mut remedies = Vec::new();
    let isolated = facts.cpus.isolated.value();
    let is_apart = isolated.is_some_and(|list| observed.cpus.difference(list).is_empty());
    if has_stray && !is_apart {
        remedies.push(Remedy::Boot { parameter: known::isolcpus(facts, &observed.cpus) });
    } else if has_stray {
        let text = "these CPUs are isolated, so who runs there asked to: taskset -cp PID tells \
                    its CPUs";
        remedies.push(Remedy::Manual { text: text.into() });
    }
    let devices = observed.interrupts.value().into_iter().flatten();
    let devices = devices.filter(|line| kind(line) == Kind::Device);
    let paths: Vec<String> =
        devices.map(|line| format!("/proc/irq/{}/smp_affinity_list", line.name)).collect();
    if !paths.is_empty() {
        let text = format!(
            "an interrupt whose write fails (EIO) is managed by its driver: {}",
            known::of_managed(facts, &observed.cpus)
        );
        remedies.push(Remedy::set(&IRQ_CPUS, paths, intent.housekeeping.to_string()));
        remedies.push(Remedy::Manual { text });
    }
    remedies
}

#[cfg(test)]
mod tests {
    use rtproof_host::{Reading, facts::tasks::Policy, task::CpuTimes};
    use rtproof_model::trial::Work;

    use super::*;
    use crate::Status::{Bad, Doubtful, Good, Unknown};
    use crate::testing::{cpus, good, intent};

    fn quiet() -> IsolationObservation {
        IsolationObservation {
            cpus: cpus(&[2, 3]),
            load_cpus: cpus(&[0, 1]),
            loads: vec![Work { load: "cpu".into(), work: "5 operations".into(), error: None }],
            duration_ns: 5_000_000_000,
            times: Reading::known("/proc/stat", vec![CpuTimes { cpu: 2, ..CpuTimes::default() }]),
            interrupts: Reading::known("/proc/interrupts", vec![line("LOC", "Local timer", 7)]),
            softirqs: Reading::known("/proc/softirqs", Vec::new()),
            time_slices: Reading::absent("/proc/schedstat"),
            tasks: Reading::known("/proc/*/task/*/stat", Vec::new()),
        }
    }

    fn line(name: &str, about: &str, count: u64) -> InterruptLine {
        InterruptLine { name: name.into(), about: about.into(), counts: vec![(2, count)] }
    }

    fn task(comm: &str, kernel_thread: bool, allowed: &[u32]) -> RanTask {
        RanTask {
            tid: 77,
            comm: comm.into(),
            kernel_thread,
            policy: Some(Policy::Other),
            allowed: cpus(allowed),
            on: cpus(&[2]),
            switches: 1200,
            time_ms: 30,
        }
    }

    fn judged(observed: &IsolationObservation) -> Finding {
        let finding = judge(observed, &good(), &intent());
        assert!(!finding.evidence.is_empty());
        finding
    }

    fn with_line(name: &str, about: &str, count: u64) -> Finding {
        let mut observed = quiet();
        observed.interrupts = Reading::known("/proc/interrupts", vec![line(name, about, count)]);
        judged(&observed)
    }

    fn with_task(task: RanTask) -> Finding {
        let mut observed = quiet();
        observed.tasks = Reading::known("/proc/*/task/*/stat", vec![task]);
        judged(&observed)
    }

    #[test]
    fn nothing_is_quiet() {
        let finding = judged(&quiet());
        assert_eq!(finding.status, Good, "{finding:#?}");
        assert_eq!(finding.summary, "CPUs 2-3 in 5 s of load on CPUs 0-1: quiet");
    }

    #[test]
    fn tasks_by_what_they_may() {
        let stray = with_task(task("rsyslogd", false, &[0, 1, 2, 3]));
        assert_eq!(stray.status, Bad);
        assert!(stray.summary.contains("rsyslogd (1"), "{}", stray.summary);
        assert!(!stray.remedies.is_empty());
        assert_eq!(with_task(task("kworker/u8:1", true, &[0, 1, 2, 3])).status, Bad);
        let bound = with_task(task("ksoftirqd/2", true, &[2]));
        assert_eq!(bound.status, Doubtful);
        assert_eq!(with_task(task("control", false, &[2, 3])).status, Good);
    }

    #[test]
    fn interrupts_by_what_they_are_of() {
        let device = with_line("36", "PCI-MSI 524288-edge nvme0q1", 60);
        assert_eq!(device.status, Bad);
        assert!(device.summary.contains("36 nvme0q1 60× (12.0/s)"), "{}", device.summary);
        assert!(device.remedies[0].to_string().contains("/proc/irq/36/smp_affinity_list"));
        assert_eq!(with_line("TLB", "TLB shootdowns", 1).status, Doubtful);
        assert_eq!(with_line("IPI0", "Rescheduling interrupts", 1).status, Doubtful);
        assert_eq!(with_line("11", "GICv3 27 Level arch_timer", 9).status, Good);
        assert_eq!(with_line("LOC", "Local timer interrupts", 9).status, Good);
        let tick = with_line("LOC", "Local timer interrupts", 1250);
        assert_eq!(tick.status, Doubtful);
        assert!(tick.summary.contains("the tick runs"), "{}", tick.summary);
    }

    #[test]
    fn what_could_not_be_looked_at_is_not_quiet() {
        let mut observed = quiet();
        observed.tasks = Reading::denied("/proc/*/task/*/stat", "hidepid");
        let finding = judged(&observed);
        assert_eq!(finding.status, Unknown);
        assert!(finding.summary.contains("hidepid"), "{}", finding.summary);
        // The observed part is bad nevertheless.
        observed.interrupts = Reading::known("/proc/interrupts", vec![line("36", "x nvme0", 1)]);
        assert_eq!(judged(&observed).status, Bad);
        let mut observed = quiet();
        observed.loads[0].error = Some("no".into());
        assert_eq!(judged(&observed).status, Unknown);
        let mut observed = quiet();
        let net = Work { load: "net".into(), work: String::new(), error: Some("down".into()) };
        observed.loads.push(net);
        assert!(judged(&observed).summary.ends_with("CPUs 0-1 (without net): quiet"));
        let mut observed = quiet();
        observed.duration_ns = 100_000_000;
        assert_eq!(judged(&observed).status, Unknown);
        let mut observed = quiet();
        observed.load_cpus = CpuList::default();
        assert_eq!(judged(&observed).status, Unknown);
        let mut observed = quiet();
        observed.time_slices = Reading::known("/proc/schedstat", 4);
        assert_eq!(judged(&observed).status, Doubtful);
    }
}
