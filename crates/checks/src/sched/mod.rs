//! Checks: scheduler, real-time tasks, rights.

mod kernel_threads;
mod rights;
mod tasks;

use tasks::{HIDDEN, count, evidence};

use rtproof_host::{
    CpuList, Facts, Knob, Reading,
    facts::{
        sched::{FairServer, wants_debugfs},
        tasks::{Policy, RtTask},
    },
    knobs::cpu::{self as knobs, EXT_SERVER, FAIR_SERVER},
};

use crate::check::{Check, Judge, Wanted};
use crate::draft::FindingBuilder;
use crate::machine::{built_with, option, since, without_cpu_folder};
use crate::profile::Choice;
use crate::value::{Absent, Want};
use crate::{Finding, Impact, Intent, Remedy, Section, Status, machine};

pub(crate) const SECTION: Section =
    Section { name: "sched", title: "scheduler, real-time tasks, rights", checks: CHECKS };

const CHECKS: &[&Check] = &[
    &kernel_threads::RT_THROTTLING,
    &FAIR_SERVER_CHECK,
    &EXT_SERVER_CHECK,
    &tasks::ROGUE_RT_TASKS,
    &tasks::PRIO_99,
    &DL_ADMISSION,
    &kernel_threads::IRQ_THREAD_PRIO,
    &kernel_threads::IRQ_THREAD_AFFINITY,
    &kernel_threads::SOFTIRQ_PRIO,
    &kernel_threads::RCU_KTHREAD_PRIO,
    &rights::LIMITS_RTPRIO,
    &rights::LIMITS_MEMLOCK,
    &rights::CHRT_CAPABILITY,
    &rights::PAM,
    &rights::DUPLICATES,
    &rights::GROUPS,
    &tasks::RTKIT,
    &tasks::STALLD,
    &kernel_threads::WATCHDOG_DAEMON,
    &kernel_threads::TTWU_QUEUE,
    &kernel_threads::RT_PUSH_IPI,
    &kernel_threads::RT_RUNTIME_SHARE,
    &tasks::RR_TIMESLICE,
    &kernel_threads::AUTOGROUP,
    &SCHED_EXT,
];

// Does the kernel limit what SCHED_DEADLINE tasks take in sum?
//
// They run ahead of every SCHED_FIFO task. The kernel admits them up to `sched_rt_runtime_us` of
// each period; with -1 it admits all, and together they may take everything. Those that may run on
// real-time CPUs are named by `rogue-rt-tasks`; `sugov`, the kernel's own, is not counted by the
// kernel either.

static DL_ADMISSION: Check = Check {
    id: "dl-admission",
    title: "SCHED_DEADLINE tasks and their admission",
    why: "SCHED_DEADLINE tasks run ahead of every priority, and without admission they may take \
          all of a CPU's time",
    source: "Documentation/scheduler/sched-deadline.rst; kernel/sched/deadline.c",
    impact: Impact::Milliseconds,
    wanted: Wanted::Text("none, or admission"),
    judge: Judge::Ask(judge_dl_admission),
    ..Check::NEW
};

fn judge_dl_admission(draft: FindingBuilder, facts: &Facts, _: &Intent) -> Finding {
    let draft = draft.read(&facts.rt_tasks, |t| count(t));
    let Some(tasks) = facts.rt_tasks.value() else {
        return draft.unreadable(&facts.rt_tasks);
    };
    let deadline: Vec<&RtTask> = tasks
        .iter()
        .filter(|task| task.policy == Policy::Deadline && !task.kernel_thread)
        .collect();
    if deadline.is_empty() {
        return match tasks.iter().any(|task| task.kernel_thread) {
            true => draft.good("no SCHED_DEADLINE task"),
            false => draft.unknown(HIDDEN),
        };
    }
    let runtime = &facts.sched.rt_runtime_us;
    let number = machine::count(deadline.len(), "SCHED_DEADLINE task");
    let draft = draft.evidence(evidence(&deadline)).read(runtime, i64::to_string);
    match runtime.value() {
        None => draft.unreadable(runtime),
        Some(-1) => draft
            .remedies([Remedy::Manual {
                text: "add up their runtimes by hand (chrt --pid TID), or set \
                       kernel.sched_rt_runtime_us to what they may take together"
                    .into(),
            }])
            .doubtful(format!("{number}, and sched_rt_runtime_us=-1 admits any sum of them")),
        Some(us) => draft.good(format!("{number}, admitted up to {us} µs of each period")),
    }
}

// Does the kernel run tasks of a BPF scheduler in front of real-time ones?
//
// Kernels with an ext server give tasks of sched_ext what the fair server gives ordinary ones. It
// is idle while no BPF scheduler runs.

static EXT_SERVER_CHECK: Check = Check {
    id: "ext-server",
    title: "time taken from real-time tasks by the server of BPF schedulers",
    why: "while a task of the BPF scheduler waits, the ext server runs it in front of the \
          real-time task",
    source: "kernel/sched/ext.c and kernel/sched/debug.c of 7.x \
             (/sys/kernel/debug/sched/ext_server, seen on 7.2); \
             Documentation/scheduler/sched-ext.rst",
    impact: Impact::Milliseconds,
    wanted: Wanted::Text("no time taken"),
    judge: Judge::Ask(judge_ext_server),
    ..Check::NEW
};

fn judge_ext_server(draft: FindingBuilder, facts: &Facts, intent: &Intent) -> Finding {
    let reading = &facts.sched.ext_server;
    let setting = facts.settings.get("sched-ext").and_then(|setting| setting.values.first());
    let state = setting.map(|value| &value.reading);
    if let Some(state) = state.filter(|state| state.value().is_some_and(|s| s == "disabled")) {
        return draft
            .read(state, String::clone)
            .good("no BPF scheduler runs: an ext server has nobody to serve");
    }
    if built_with(facts, "SCHED_CLASS_EXT") == Some(false) {
        return draft
            .evidence([option(facts, "SCHED_CLASS_EXT")])
            .not_applicable("this kernel is built without BPF schedulers");
    }
    if since(facts, (6, 12)) == Some(false) {
        return draft
            .read(&facts.kernel.version, |(major, minor)| format!("{major}.{minor}"))
            .not_applicable("kernels before 6.12 have no BPF schedulers");
    }
    let draft = match state {
        Some(state) if state.value().is_none() && !state.is_absent() => {
            return draft.unreadable(state);
        }
        Some(state) => draft.read(state, String::clone),
        None => draft,
    };
    if intent.rt_cpus.is_empty() {
        return draft.no_rt_cpus(facts);
    }
    let draft = draft.cpus(&intent.rt_cpus);
    if let Some(found) = reading.value() {
        let names = ("ext server", "a task of the BPF scheduler");
        return judge_servers(draft, &EXT_SERVER, reading, found, intent, names, "");
    }
    let fair = &facts.sched.fair_server;
    if reading.is_absent() && fair.value().is_some() {
        return draft
            .read(fair, |found| show_servers(found))
            .not_applicable("this kernel has a fair server and no ext server");
    }
    draft.remedies([readable(facts, reading)]).unreadable(reading)
}

// Does the kernel run ordinary tasks in front of real-time ones?
//
// From 6.12 each CPU has the fair server, a SCHED_DEADLINE server that runs ordinary tasks ahead
// of FIFO ones once they wait: `sched_rt_runtime_us=-1` does not stop it (measured: 216 ms lost
// of 4 s with and without), its own runtime of 0 does.
//
// It takes time only where an ordinary task waits on the same CPU, so the default is doubtful.

static FAIR_SERVER_CHECK: Check = Check {
    id: "fair-server",
    title: "time taken from real-time tasks by the fair server",
    why: "while an ordinary task waits, the fair server runs it in front of the real-time task: 50 \
          ms of each second by default",
    source: "kernel/sched/deadline.c, kernel/sched/fair.c (fair server, 6.12); measured on 6.12, \
             6.18 and 7.2 with a FIFO and an ordinary spinner",
    trade_off: Some(
        "without it ordinary tasks on a CPU whose real-time task never sleeps starve, threads of \
         the kernel among them",
    ),
    impact: Impact::Milliseconds,
    judge: Judge::Ask(judge_fair_server),
    ..Check::NEW
};

fn judge_fair_server(draft: FindingBuilder, facts: &Facts, intent: &Intent) -> Finding {
    let wanted = match intent.profile.choices.rt_throttling {
        Choice::On => "on, below half of the time",
        Choice::Off | Choice::Either => "no time taken",
    };
    let draft = draft.wanted(wanted).cpus(&intent.rt_cpus);
    if intent.rt_cpus.is_empty() {
        return draft.no_rt_cpus(facts);
    }
    let reading = &facts.sched.fair_server;
    if let Some(found) = reading.value() {
        let is_on =
            |server: &FairServer| server.runtime_ns > 0 && intent.rt_cpus.contains(server.cpu);
        // The old limit decides nothing here: it is shown where a reader may think it does.
        let draft = match found.iter().any(is_on) {
            true => draft.read(&facts.sched.rt_runtime_us, i64::to_string),
            false => draft,
        };
        let remark = format!("; {}", limit_alone(facts));
        let names = ("fair server", "an ordinary task");
        return judge_servers(draft, &FAIR_SERVER, reading, found, intent, names, &remark);
    }
    match since(facts, (6, 12)) {
        Some(false) => draft
            .read(&facts.kernel.version, |(major, minor)| format!("{major}.{minor}"))
            .not_applicable("kernels before 6.12 have no fair server"),
        Some(true) => {
            let why = reading.why_unknown().unwrap_or_default();
            draft
                .read(reading, |found| show_servers(found))
                .read(&facts.sched.rt_runtime_us, i64::to_string)
                .remedies([readable(facts, reading)])
                .unknown(format!(
                    "fair server unknown, {}: {why}; {}",
                    reading.path,
                    limit_alone(facts)
                ))
        }
        None => draft.unreadable(&facts.kernel.version),
    }
}

/// The old limit, which is independent of the fair server from 6.12 on.
fn limit_alone(facts: &Facts) -> String {
    match facts.sched.rt_runtime_us.value() {
        Some(-1) => "sched_rt_runtime_us=-1 alone does not stop it".into(),
        Some(us) => format!("sched_rt_runtime_us is {us}, and -1 alone does not stop it"),
        None => "sched_rt_runtime_us=-1 alone would not stop it".into(),
    }
}

// Rows: scheduler, real-time tasks, rights.

static SCHED_EXT: Check = Check {
    title: "BPF scheduler for ordinary tasks (sched_ext)",
    why: "a BPF program decides when ordinary tasks run, and with it how long the application \
          waits for them: their locks, their answers",
    source: "Documentation/scheduler/sched-ext.rst; kernel/sched/ext.c",
    trade_off: Some(
        "a BPF scheduler may suit a desktop; real-time tasks run ahead of its tasks as they do \
         ahead of ordinary ones",
    ),
    impact: Impact::Information,
    judge: Judge::value(
        |_| Want::is("disabled").or_doubtful().not_set(),
        Absent::WithoutOption("SCHED_CLASS_EXT"),
    ),
    ..Check::of(&[&knobs::SCHED_EXT])
};

// Deadline servers: what the fair server and the server of BPF schedulers have in common.

/// What a check says of a limit that is off, where the profile wants one.
const RUNAWAY: &str = "a real-time task that never sleeps locks its CPU up";

/// Status where something limits real-time tasks: bad where it leaves them half of the time or
/// less, else what the profile wants.
fn limited(taken_ns: u64, period_ns: u64, choice: Choice) -> Status {
    match choice {
        _ if taken_ns >= period_ns - taken_ns.min(period_ns) => Status::Bad,
        Choice::Off => Status::Doubtful,
        Choice::On | Choice::Either => Status::Good,
    }
}

/// Judges the servers of the real-time CPUs: off is good, unless the profile wants a limit.
fn judge_servers(
    draft: FindingBuilder,
    knob: &'static Knob,
    reading: &Reading<Vec<FairServer>>,
    servers: &[FairServer],
    intent: &Intent,
    (name, served): (&str, &str),
    remark: &str,
) -> Finding {
    let draft = draft.read(reading, |servers| show_servers(servers));
    let known = CpuList::new(servers.iter().map(|server| server.cpu));
    let missing = intent.rt_cpus.difference(&known);
    let on: Vec<&FairServer> = servers
        .iter()
        .filter(|server| intent.rt_cpus.contains(server.cpu) && server.runtime_ns > 0)
        .collect();
    let Some(worst) = on.iter().max_by_key(|server| server.runtime_ns) else {
        if !missing.is_empty() {
            return draft.unknown(format!("{}: no {name} listed", machine::cpus(&missing)));
        }
        let summary = format!("the {name} is off on {}", machine::cpus(&intent.rt_cpus));
        return match intent.profile.choices.rt_throttling {
            Choice::On => draft.doubtful(format!("{summary}: {RUNAWAY}")),
            Choice::Off | Choice::Either => draft.good(summary),
        };
    };
    let cpus = CpuList::new(on.iter().map(|server| server.cpu));
    let summary = format!(
        "the {name} takes {} of each {} from real-time tasks on {} while {served} waits \
         there{remark}",
        crate::ns(worst.runtime_ns),
        crate::ns(worst.period_ns),
        machine::cpus(&cpus),
    );
    let paths = cpus.iter().map(|cpu| format!("{}/cpu{cpu}/runtime", reading.path)).collect();
    let choice = intent.profile.choices.rt_throttling;
    match limited(worst.runtime_ns, worst.period_ns, choice) {
        Status::Good => draft.good(summary),
        status => draft.remedies([Remedy::set(knob, paths, "0")]).status(status, summary),
    }
}

/// How debugfs can be read, where it could not.
fn readable<T>(facts: &Facts, reading: &Reading<T>) -> Remedy {
    let is_unmounted = wants_debugfs(reading);
    let text = match facts.kernel.lockdown.value().map(String::as_str) {
        _ if without_cpu_folder(facts).is_some() => {
            "as root, mount both: mount -t sysfs sysfs /sys && mount -t debugfs debugfs \
             /sys/kernel/debug"
        }
        Some("integrity" | "confidentiality") => {
            "kernel lockdown keeps debugfs closed: boot without Secure Boot or lockdown="
        }
        _ if is_unmounted => "as root, mount debugfs: mount -t debugfs debugfs /sys/kernel/debug",
        _ => "read it as root",
    };
    Remedy::Manual { text: text.into() }
}

fn show_servers(servers: &[FairServer]) -> String {
    let mut groups: Vec<((u64, u64), Vec<u32>)> = Vec::new();
    for server in servers {
        let key = (server.runtime_ns, server.period_ns);
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, cpus)) => cpus.push(server.cpu),
            None => groups.push((key, vec![server.cpu])),
        }
    }
    let groups: Vec<String> = groups
        .iter()
        .map(|((runtime_ns, period_ns), cpus)| {
            let (runtime, period) = (crate::ns(*runtime_ns), crate::ns(*period_ns));
            format!("cpu {}: runtime {runtime} of {period}", machine::number_list(cpus))
        })
        .collect();
    machine::first_few(&groups, 4)
}

#[cfg(test)]
mod dl_admission_tests {
    use super::*;
    use crate::Status::{Doubtful, Good, Unknown};
    use crate::testing::{good, intent, task};
    use rtproof_host::Reading;

    fn judge(kernel_thread: bool, runtime: Reading<i64>) -> Finding {
        let mut facts = good();
        let mut tasks = facts.rt_tasks.value().cloned().unwrap();
        let task = task(500, "dl", 0, &[0], kernel_thread);
        tasks.push(RtTask { policy: Policy::Deadline, ..task });
        facts.rt_tasks = Reading::known(facts.rt_tasks.path.clone(), tasks);
        facts.sched.rt_runtime_us = runtime;
        DL_ADMISSION.judge(&facts, &intent())
    }

    #[test]
    fn without_the_limit_admission_is_not_checked() {
        let path = "/proc/sys/kernel/sched_rt_runtime_us";
        assert_eq!(DL_ADMISSION.judge(&good(), &intent()).status, Good);
        assert_eq!(judge(false, Reading::known(path, -1)).status, Doubtful);
        assert_eq!(judge(false, Reading::known(path, 950_000)).status, Good);
        assert_eq!(judge(true, Reading::known(path, -1)).status, Good, "sugov");
        assert_eq!(judge(false, Reading::denied(path, "EACCES")).status, Unknown);
        let mut facts = good();
        facts.rt_tasks = Reading::known("/proc/*/task/*/stat", Vec::new());
        assert_eq!(DL_ADMISSION.judge(&facts, &intent()).status, Unknown);
    }
}

#[cfg(test)]
mod ext_server_tests {
    use super::*;
    use crate::Status::{Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{fill_setting, good, intent, set_config};
    use rtproof_host::{Reading, knobs::cpu::SCHED_EXT};

    const PATH: &str = "/sys/kernel/debug/sched/ext_server";

    fn with_bpf() -> Facts {
        let mut facts = good();
        set_config(&mut facts, "SCHED_CLASS_EXT", Some("y"));
        fill_setting(&mut facts, &SCHED_EXT, "enabled");
        facts
    }

    fn judge(facts: &Facts) -> Finding {
        EXT_SERVER_CHECK.judge(facts, &intent())
    }

    #[test]
    fn the_server_is_idle_without_a_bpf_scheduler() {
        assert_eq!(judge(&good()).status, Good);
        let mut facts = good();
        facts.settings.clear();
        assert_eq!(judge(&facts).status, NotApplicable, "built without");
    }

    #[test]
    fn with_one_the_server_counts() {
        let mut facts = with_bpf();
        assert_eq!(judge(&facts).status, NotApplicable, "no ext server beside the fair server");
        facts.sched.fair_server = Reading::denied("/x", "lockdown");
        facts.sched.ext_server = Reading::denied(PATH, "lockdown");
        assert_eq!(judge(&facts).status, Unknown);
        let mut servers = good().sched.fair_server.value().cloned().unwrap();
        facts.sched.ext_server = Reading::known(PATH, servers.clone());
        assert_eq!(judge(&facts).status, Good);
        servers[3].runtime_ns = 50_000_000;
        facts.sched.ext_server = Reading::known(PATH, servers);
        let finding = judge(&facts);
        assert_eq!(finding.status, Doubtful);
        assert!(finding.summary.contains("on CPU 3 while a task of the BPF"), "{finding:?}");
    }
}

#[cfg(test)]
mod fair_server_tests {
    use super::*;
    use crate::Remedy;
    use crate::Status::{Bad, Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{good, good_stock, intent};
    use rtproof_host::Reading;

    fn judge(facts: &Facts) -> Finding {
        FAIR_SERVER_CHECK.judge(facts, &intent())
    }

    fn with_server(runtime_ns: u64) -> Facts {
        let mut facts = good();
        let mut servers = facts.sched.fair_server.value().cloned().unwrap();
        servers[2].runtime_ns = runtime_ns;
        facts.sched.fair_server = Reading::known("/sys/kernel/debug/sched/fair_server", servers);
        facts
    }

    fn cites(finding: &Finding, path: &str) -> bool {
        finding.evidence.iter().any(|evidence| evidence.path == path)
    }

    #[test]
    fn off_on_the_real_time_cpus_is_good() {
        let finding = judge(&good());
        assert_eq!(finding.status, Good);
        assert_eq!(finding.summary, "the fair server is off on CPUs 2-3");
        assert_eq!(judge(&good_stock()).status, NotApplicable);
    }

    #[test]
    fn a_profile_may_want_the_limit() {
        let profile = crate::Profile::of(crate::profile::WorkloadKind::Audio);
        let audio = Intent { profile, ..intent() };
        let judge = |facts: &Facts| FAIR_SERVER_CHECK.judge(facts, &audio).status;
        assert_eq!(judge(&with_server(50_000_000)), Good);
        assert_eq!(judge(&with_server(500_000_000)), Bad);
        assert_eq!(judge(&good()), Doubtful);
    }

    #[test]
    fn the_old_limit_does_not_stop_it() {
        let mut facts = with_server(50_000_000);
        let finding = judge(&facts);
        assert_eq!(finding.status, Doubtful);
        assert!(finding.summary.contains("takes 50 ms of each 1 s"), "{}", finding.summary);
        assert!(finding.summary.ends_with("sched_rt_runtime_us=-1 alone does not stop it"));
        assert!(cites(&finding, "/proc/sys/kernel/sched_rt_runtime_us"), "{finding:?}");
        let path = "/sys/kernel/debug/sched/fair_server/cpu2/runtime".to_owned();
        assert_eq!(finding.remedies, [Remedy::set(&FAIR_SERVER, vec![path], "0")]);
        let path = "/proc/sys/kernel/sched_rt_runtime_us";
        facts.sched.rt_runtime_us = Reading::known(path, 950_000);
        let finding = judge(&facts);
        assert!(
            finding.summary.ends_with("is 950000, and -1 alone does not stop it"),
            "{}",
            finding.summary
        );
        assert_eq!(judge(&with_server(500_000_000)).status, Bad);
    }

    #[test]
    fn a_server_that_cannot_be_seen_is_unknown() {
        let mut facts = good();
        let path = "/sys/kernel/debug/sched/fair_server";
        facts.sched.fair_server = Reading::absent(path);
        assert_eq!(judge(&facts).status, Unknown);
        facts.sched.fair_server = Reading::denied(path, "lockdown: integrity");
        let finding = judge(&facts);
        assert_eq!(finding.status, Unknown);
        assert!(finding.summary.contains("lockdown"), "{}", finding.summary);
        assert!(finding.summary.starts_with("fair server unknown"), "{}", finding.summary);
        assert!(finding.summary.contains("-1 alone does not stop it"), "{}", finding.summary);
        assert!(cites(&finding, "/proc/sys/kernel/sched_rt_runtime_us"), "{finding:?}");
        facts.kernel.version = Reading::absent("/proc/sys/kernel/osrelease");
        assert_eq!(judge(&facts).status, Unknown);
    }

    #[test]
    fn a_cpu_without_a_listed_server_is_unknown() {
        let mut facts = good();
        let servers = facts.sched.fair_server.value().cloned().unwrap();
        facts.sched.fair_server = Reading::known("/x", servers[..3].to_vec());
        assert_eq!(judge(&facts).status, Unknown);
    }
}
