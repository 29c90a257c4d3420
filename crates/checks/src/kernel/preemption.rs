//! Preemption model, HZ and high-resolution timers, and options of the build that stall a CPU.

use rtproof_host::{Facts, Reading, arch::Family, facts::kernel::Preemption, knobs};

use crate::check::{Check, Judge, Wanted};
use crate::draft::FindingBuilder;
use crate::machine::built_with;
use crate::{Finding, Impact, Intent, Remedy, When, machine};

// Is the timer tick fine enough for the period of the loop?
//
// With high-resolution timers a wake-up does not wait for a tick. What does: turns of SCHED_RR,
// time slices of ordinary tasks, CPU-time limits, timeouts of sockets and drivers. Without them
// every wake-up does.

/// Frequencies that kernel/Kconfig.hz offers on every architecture of ours.
const OFFERED: [u64; 3] = [100, 250, 1000];

pub(super) static CONFIG_HZ: Check = Check {
    id: "config-hz",
    title: "frequency of the timer tick (CONFIG_HZ), for the period of the loop",
    why: "turns of SCHED_RR, CPU-time limits and timeouts of sockets and drivers are as coarse as \
          the tick; without high-resolution timers every wake-up is",
    source: "kernel/Kconfig.hz; Documentation/timers/hrtimers.rst; kernel/sched/rt.c \
             (task_tick_rt); net/core/sock.c (SO_RCVTIMEO); Flatscher, \"Real-time Optimizations\"",
    trade_off: Some("each tick interrupts a busy CPU: a higher frequency makes more of them"),
    impact: Impact::Information,
    when: When::Kernel,
    wanted: Wanted::Of(|intent| {
        format!("{} Hz for a period of {}", least(intent), crate::ns(intent.period_ns))
    }),
    judge: Judge::Ask(judge_config_hz),
    ..Check::NEW
};

/// The lowest frequency whose tick is no longer than the period; the highest there is where none
/// is that fine.
fn least(intent: &Intent) -> u64 {
    let is_fine = |hz: &&u64| 1_000_000_000 / **hz <= intent.period_ns;
    OFFERED.iter().find(is_fine).copied().unwrap_or(OFFERED[OFFERED.len() - 1])
}

fn judge_config_hz(draft: FindingBuilder, facts: &Facts, intent: &Intent) -> Finding {
    let config = &facts.kernel.config;
    let Some(found) = config.value() else {
        return draft.unreadable(config);
    };
    let draft = draft.evidence([machine::option(facts, "HZ")]);
    let hz = found.get("HZ").and_then(|hz| hz.parse::<u64>().ok()).filter(|hz| *hz > 0);
    let Some(hz) = hz else {
        let text = found.get("HZ").map_or("not set", String::as_str);
        return draft.unreadable(&Reading::<u64>::malformed("CONFIG_HZ", text, "a number"));
    };
    let (least, tick_ns) = (least(intent), 1_000_000_000 / hz);
    let (tick, period) = (crate::ns(tick_ns), crate::ns(intent.period_ns));
    let resolution = &facts.platform.timer_resolution_ns;
    let draft = draft.read(resolution, |&ns| crate::ns(ns));
    let draft = match hz < least {
        true => draft.remedies([Remedy::Build {
            options: vec![format!("HZ_{least}=y"), format!("HZ={least}")],
        }]),
        false => draft,
    };
    let coarse = format!("{hz} Hz: SCHED_RR turns and timeouts in ticks go by steps of {tick}");
    match resolution.value() {
        Some(1) if hz >= least => {
            draft.good(format!("{coarse}; wake-ups of a {period} loop do not wait for a tick"))
        }
        Some(1) => draft.doubtful(format!(
            "{coarse}, longer than the period of {period}; its wake-ups do not wait for a tick"
        )),
        Some(_) => {
            let late = format!(
                "{hz} Hz, no high-resolution timers: each wake-up of a {period} loop is up to \
                 {tick} late"
            );
            match hz >= least {
                true => draft.doubtful(format!("{late}; see high-res-timers")),
                false => draft.bad(late),
            }
        }
        None if hz < least => {
            draft.doubtful(format!("{coarse}, longer than the period of {period}"))
        }
        None => draft.unreadable(resolution),
    }
}

// Is it known how the kernel is built?
//
// Half of the checks of this section ask the build: where it cannot be read they are unknown, and
// this one says what to do, once.

pub(super) static CONFIG_READABLE: Check = Check {
    id: "kernel-config-readable",
    title: "build configuration of the kernel",
    why: "a build with debug options or without what real-time needs stays unseen",
    source: "init/Kconfig (IKCONFIG_PROC); Documentation/kbuild/kconfig.rst",
    impact: Impact::Information,
    wanted: Wanted::Text("readable"),
    judge: Judge::Ask(judge_config_readable),
    ..Check::NEW
};

fn judge_config_readable(draft: FindingBuilder, facts: &Facts, _: &Intent) -> Finding {
    let config = &facts.kernel.config;
    let draft = draft.read(config, |found| format!("{} options", found.len()));
    if config.value().is_some() {
        return draft.good(config.path.clone());
    }
    let text = "run as root, load the module configs (/proc/config.gz), or install the \
                kernel's file /boot/config-RELEASE";
    draft.remedies([Remedy::Manual { text: text.into() }]).unreadable(config)
}

// Do timers expire between ticks?
//
// The resolution reported by the kernel shows what is in force, whatever the build and the boot
// line say. Reading /proc/timer_list turns interrupts off on every CPU.

pub(super) static HIGH_RES_TIMERS: Check = Check {
    id: "high-res-timers",
    title: "high-resolution timers",
    why: "without them a timer expires at the next tick: a wake-up is late by up to 1/HZ",
    source: "Documentation/timers/hrtimers.rst; kernel/time/hrtimer.c (hrtimer_resolution); \
             clock_getres(2)",
    impact: Impact::Milliseconds,
    when: When::Boot,
    wanted: Wanted::Text("a resolution of 1 ns"),
    judge: Judge::Ask(judge_high_res_timers),
    ..Check::NEW
};

fn judge_high_res_timers(draft: FindingBuilder, facts: &Facts, _: &Intent) -> Finding {
    let resolution = &facts.platform.timer_resolution_ns;
    let draft = draft.read(resolution, |&ns| crate::ns(ns));
    if let Some(&ns) = resolution.value() {
        let summary = format!("timers have a resolution of {}", crate::ns(ns));
        return match ns {
            1 => draft.good(summary),
            _ => draft.remedies(remedies_high_res_timers(facts)).bad(summary),
        };
    }
    // A captured folder has no system calls: the build and the boot line only show that they
    // are off.
    let cmdline = &facts.kernel.cmdline;
    let is_off = cmdline.value().and_then(|line| line.last("highres")) == Some(Some("off"));
    let draft = draft.remedies(remedies_high_res_timers(facts));
    if is_off {
        let draft = draft.read(cmdline, |_| "highres=off".into());
        return draft.bad("highres=off: timers expire at ticks only");
    }
    if built_with(facts, "HIGH_RES_TIMERS") == Some(false) {
        let draft = draft.evidence([machine::option(facts, "HIGH_RES_TIMERS")]);
        return draft.bad("CONFIG_HIGH_RES_TIMERS is not set: timers expire at ticks only");
    }
    draft.unreadable(resolution)
}

fn remedies_high_res_timers(facts: &Facts) -> Vec<Remedy> {
    let given = facts.kernel.cmdline.value().and_then(|line| line.last("highres").flatten());
    if given == Some("off") {
        return vec![Remedy::Unboot { parameter: "highres".into() }];
    }
    if built_with(facts, "HIGH_RES_TIMERS") == Some(false) {
        return vec![Remedy::Build { options: vec!["HIGH_RES_TIMERS=y".into()] }];
    }
    let text = "look in the kernel's log for why no CPU has a one-shot timer";
    vec![Remedy::Manual { text: text.into() }]
}

// Does KFENCE interrupt every CPU?
//
// It opens a gate for one allocation each interval. Only with CONFIG_KFENCE_STATIC_KEYS that
// patches code, which interrupts all CPUs twice (mm/kfence/core.c, `toggle_allocation_gate`);
// else it is a work item on some CPU and one slow allocation.

pub(super) static KFENCE: Check = Check {
    id: "config-kfence",
    title: "sampling of faulty memory accesses (KFENCE)",
    why: "each interval one allocation takes the slow path; with static keys the code of all CPUs \
          is patched for it, by two interrupts to each",
    source: "Documentation/dev-tools/kfence.rst; mm/kfence/core.c (toggle_allocation_gate); \
             lib/Kconfig.kfence (KFENCE_STATIC_KEYS)",
    trade_off: Some("memory errors of the kernel are found less often"),
    impact: Impact::Microseconds,
    knobs: &[&knobs::KFENCE],
    wanted: Wanted::Text("a sample interval of 0 (off)"),
    judge: Judge::Ask(judge_kfence),
    ..Check::NEW
};

fn judge_kfence(draft: FindingBuilder, facts: &Facts, _: &Intent) -> Finding {
    if built_with(facts, "KFENCE") == Some(false) {
        return draft.built_without(facts, "KFENCE");
    }
    let setting = facts.settings.get(knobs::KFENCE.id);
    let none = Reading::absent("/sys/module/kfence/parameters/sample_interval");
    let interval =
        setting.and_then(|setting| setting.values.first()).map_or(&none, |value| &value.reading);
    let draft = draft.read(interval, |text| format!("{text} ms"));
    let Some(text) = interval.value() else {
        return draft.unreadable(interval);
    };
    let Ok(ms) = text.parse::<u64>() else {
        let wrong = Reading::<u64>::malformed(&interval.path, text, "a number of ms");
        return draft.unreadable(&wrong);
    };
    if ms == 0 {
        return draft.good("off");
    }
    let draft = draft.remedies([
        Remedy::set(&knobs::KFENCE, vec![interval.path.clone()], "0"),
        Remedy::Boot { parameter: "kfence.sample_interval=0".into() },
    ]);
    let keys = built_with(facts, "KFENCE_STATIC_KEYS");
    let draft = draft.evidence([machine::option(facts, "KFENCE_STATIC_KEYS")]);
    match keys {
        Some(true) => draft.bad(format!("every {ms} ms all CPUs are interrupted twice")),
        Some(false) => draft.doubtful(format!("one allocation every {ms} ms is a slow one")),
        None => draft.doubtful(format!(
            "one allocation every {ms} ms is sampled; whether that interrupts all CPUs is not \
             known"
        )),
    }
}

// Does lockdown hide what has to be read and set?
//
// It adds no latency. It hides debugfs and forbids to write registers, so that the fair server
// and others can be neither judged nor set: what it hides is unknown, never good.

pub(super) static LOCKDOWN: Check = Check {
    id: "lockdown",
    title: "kernel lockdown",
    why: "a locked-down kernel refuses debugfs and writes to registers of the CPU, so that the \
          fair server and others can be neither read nor set",
    source: "kernel_lockdown(7); security/lockdown/lockdown.c; fs/debugfs/file.c",
    trade_off: Some(
        "without lockdown root can change the running kernel: Secure Boot ends with root",
    ),
    impact: Impact::Information,
    when: When::Boot,
    wanted: Wanted::Text("none"),
    judge: Judge::Ask(judge_lockdown),
    ..Check::NEW
};

fn judge_lockdown(draft: FindingBuilder, facts: &Facts, _: &Intent) -> Finding {
    let lockdown = &facts.kernel.lockdown;
    let draft = draft.read(lockdown, String::clone);
    match lockdown.value().map(String::as_str) {
        Some("none") => draft.good("none"),
        Some(mode) => draft
            .remedies([Remedy::Manual {
                text: "where the fair server has to be set: boot without Secure Boot and \
                       without lockdown="
                    .into(),
            }])
            .doubtful(format!("{mode}: what it hides stays unknown")),
        None if built_with(facts, "SECURITY_LOCKDOWN_LSM") == Some(false) => {
            let draft = draft.evidence([machine::option(facts, "SECURITY_LOCKDOWN_LSM")]);
            draft.not_applicable("this kernel is built without CONFIG_SECURITY_LOCKDOWN_LSM")
        }
        None => draft.unreadable(lockdown),
    }
}

// Which preemption does a kernel without PREEMPT_RT use now?
//
// Most stock kernels are PREEMPT_DYNAMIC: the build does not say what is in force, the boot line
// or debugfs does.

pub(super) static PREEMPT_DYNAMIC: Check = Check {
    id: "preempt-dynamic",
    title: "preemption in force where the kernel is not PREEMPT_RT",
    why: "with voluntary preemption or none, a system call of another task runs on until it asks \
          to be preempted or returns",
    source: "Documentation/admin-guide/kernel-parameters.txt (preempt=); kernel/Kconfig.preempt; \
             kernel/sched/core.c (sched_dynamic_mode)",
    impact: Impact::Milliseconds,
    when: When::Boot,
    wanted: Wanted::Text("full or lazy preemption"),
    judge: Judge::Ask(judge_preempt_dynamic),
    ..Check::NEW
};

fn judge_preempt_dynamic(draft: FindingBuilder, facts: &Facts, intent: &Intent) -> Finding {
    let model = &facts.kernel.preemption;
    let draft = draft.read(model, |found| name_preempt_dynamic(*found).into());
    let Some(found) = model.value() else {
        return draft.unreadable(model);
    };
    let remedies = match built_with(facts, "PREEMPT_DYNAMIC") {
        Some(false) => Remedy::Manual {
            text: "use a kernel built with CONFIG_PREEMPT_RT, CONFIG_PREEMPT or \
                   CONFIG_PREEMPT_DYNAMIC"
                .into(),
        },
        _ => Remedy::Boot { parameter: "preempt=full".into() },
    };
    let draft = draft.remedies([remedies]);
    match found {
        Preemption::Rt => draft.not_applicable("PREEMPT_RT has one mode only"),
        Preemption::Full | Preemption::Lazy => draft.good(name_preempt_dynamic(*found)),
        Preemption::DynamicUnknown => draft.unknown(match facts.copy {
            Some(_) => "PREEMPT_DYNAMIC: the mode in force is not in the copy",
            None => "PREEMPT_DYNAMIC: root can read the mode in /sys/kernel/debug/sched/preempt",
        }),
        _ if intent.budget_ns.is_some_and(|budget_ns| budget_ns >= ANY_NS) => {
            draft.doubtful(name_preempt_dynamic(*found))
        }
        Preemption::Voluntary | Preemption::None => draft.bad(name_preempt_dynamic(*found)),
    }
}

const fn name_preempt_dynamic(model: Preemption) -> &'static str {
    match model {
        Preemption::Rt => "PREEMPT_RT",
        Preemption::Full => "full preemption",
        Preemption::Lazy => "lazy preemption",
        Preemption::Voluntary => "voluntary preemption",
        Preemption::None => "no preemption",
        Preemption::DynamicUnknown => "PREEMPT_DYNAMIC, mode unknown",
    }
}

// Is the kernel fully preemptible? Everything else is second to this.
//
// A kernel without PREEMPT_RT has no bound, only habits: under stress hundreds of microseconds
// with full or lazy preemption, and no promise at all with voluntary preemption or none. So it is
// bad, unless the budget is so large that only a measurement decides.

/// Budget from which a preemptible stock kernel may do: measured maxima under stress lie below.
const PREEMPTIBLE_NS: u64 = 1_000_000;

/// Budget from which any kernel may do.
const ANY_NS: u64 = 10_000_000;

pub(super) static PREEMPT_RT: Check = Check {
    id: "preempt-rt",
    title: "fully preemptible kernel",
    why: "without PREEMPT_RT, spinlock, softirq and interrupt sections are not preemptible: a \
          real-time task waits for the longest of them",
    source: "Documentation/core-api/real-time/kernel-configuration.rst; Wu, \"Real-time \
             programming with Linux, part 2\" (Raspberry Pi 4 under stress: 717 µs stock, 279 µs \
             PREEMPT_RT)",
    impact: Impact::Milliseconds,
    when: When::Kernel,
    wanted: Wanted::Text("PREEMPT_RT"),
    judge: Judge::Ask(judge_preempt_rt),
    ..Check::NEW
};

fn judge_preempt_rt(draft: FindingBuilder, facts: &Facts, intent: &Intent) -> Finding {
    let model = &facts.kernel.preemption;
    let build = &facts.kernel.build;
    let draft = draft.read(model, |&found| match build.value() {
        // /sys/kernel/realtime went with 7.0 or so: the build string decides.
        Some(text) if build.path == model.path => text.clone(),
        _ => name_preempt_rt(found).into(),
    });
    let Some(&found) = model.value() else {
        return draft.unreadable(model);
    };
    let release = facts.kernel.release.value().map_or("this kernel", String::as_str);
    if found == Preemption::Rt {
        return draft.good(format!("{release} is fully preemptible (PREEMPT_RT)"));
    }
    let summary = format!("{release} is not PREEMPT_RT: {}", name_preempt_rt(found));
    let cokernel = &facts.kernel.cokernel;
    if let Some(core) = cokernel.value() {
        return draft.read(cokernel, String::clone).doubtful(format!(
            "{summary}. That is the Linux side alone: threads of {core} do not wait for it"
        ));
    }
    let draft = draft.remedies(remedies_preempt_rt(facts, found));
    let Some(budget_ns) = intent.budget_ns else {
        return draft.bad(summary);
    };
    let summary = format!("{summary}; the budget is {}", crate::ns(budget_ns));
    match found {
        _ if budget_ns >= ANY_NS => draft.doubtful(summary),
        Preemption::Full | Preemption::Lazy if budget_ns >= PREEMPTIBLE_NS => {
            draft.doubtful(summary)
        }
        Preemption::DynamicUnknown if budget_ns >= PREEMPTIBLE_NS => draft.unknown(summary),
        _ => draft.bad(summary),
    }
}

fn name_preempt_rt(model: Preemption) -> &'static str {
    match model {
        Preemption::Rt => "PREEMPT_RT",
        Preemption::Full => "full preemption",
        Preemption::Lazy => "lazy preemption",
        Preemption::Voluntary => "voluntary preemption",
        Preemption::None => "no preemption",
        Preemption::DynamicUnknown => "PREEMPT_DYNAMIC, the mode in force cannot be read",
    }
}

/// For the architectures that distributions build a PREEMPT_RT kernel for.
const RT_PACKAGES: &str = "install and boot a PREEMPT_RT kernel (Debian linux-image-rt-amd64 or \
    -arm64, RHEL kernel-rt, Ubuntu Pro realtime-kernel), or build 6.12 or later with \
    CONFIG_PREEMPT_RT=y";

fn remedies_preempt_rt(facts: &Facts, found: Preemption) -> Vec<Remedy> {
    let text = match facts.kernel.family() {
        Some(Family::X86 | Family::Arm64) => RT_PACKAGES,
        Some(Family::RiscV) => {
            "build and boot Linux 6.12 or later with CONFIG_PREEMPT_RT=y, with the drivers of this \
             board"
        }
        Some(Family::Arm32 | Family::Power) => {
            "build and boot this board's kernel with the PREEMPT_RT patches of its release \
             (kernel.org, projects/rt), and CONFIG_PREEMPT_RT=y: Linux 6.12 does not offer it on \
             this architecture without them"
        }
        Some(Family::S390 | Family::Other) => {
            "look whether the kernel offers CONFIG_PREEMPT_RT on this architecture: Linux 6.12 \
             does for x86, 64-bit Arm and RISC-V alone"
        }
        None => {
            "build and boot a kernel with CONFIG_PREEMPT_RT=y: of Linux 6.12 or later on x86, \
             64-bit Arm and RISC-V, with the PREEMPT_RT patches before that and elsewhere"
        }
    };
    let mut remedies = vec![Remedy::Manual { text: text.into() }];
    let is_offered =
        matches!(facts.kernel.family(), Some(Family::X86 | Family::Arm64 | Family::RiscV));
    if is_offered {
        remedies.push(Remedy::Build { options: vec!["PREEMPT_RT=y".into()] });
    }
    let is_full = found == Preemption::Full;
    if !is_full && built_with(facts, "PREEMPT_DYNAMIC") == Some(true) {
        remedies.push(Remedy::Boot { parameter: "preempt=full".into() });
    }
    remedies
}

// Does RT group scheduling prevent SCHED_FIFO?
//
// With it each group of control groups has a budget of its own, which is 0 until an
// administrator gives
// one: sched_setscheduler(2) answers EPERM to root, too. `rt_group_sched=` decides from 6.16.

/// First kernel with the boot parameter.
const PARAMETER_SINCE: (u32, u32) = (6, 16);

pub(super) static RT_GROUP_SCHED: Check = Check {
    id: "config-rt-group-sched",
    title: "RT group scheduling (CONFIG_RT_GROUP_SCHED)",
    why: "tasks in a group without a budget cannot become real-time (EPERM), and those in one with \
          a budget are stopped when it is used up",
    source: "Documentation/scheduler/sched-rt-group.rst; Documentation/admin-guide/cgroup-v2.rst \
             (CPU); init/Kconfig (RT_GROUP_SCHED, RT_GROUP_SCHED_DEFAULT_DISABLED)",
    impact: Impact::Milliseconds,
    when: When::Kernel,
    wanted: Wanted::Text("not built, or rt_group_sched=0"),
    judge: Judge::Ask(judge_rt_group_sched),
    ..Check::NEW
};

fn judge_rt_group_sched(draft: FindingBuilder, facts: &Facts, _: &Intent) -> Finding {
    let config = &facts.kernel.config;
    let Some(is_built) = built_with(facts, "RT_GROUP_SCHED") else {
        return draft.unreadable(config);
    };
    let draft = draft.evidence([machine::option(facts, "RT_GROUP_SCHED")]);
    if !is_built {
        return draft.good("not built");
    }
    let cmdline = &facts.kernel.cmdline;
    let asked = cmdline.value().and_then(|line| line.last("rt_group_sched")).flatten();
    let default_off = built_with(facts, "RT_GROUP_SCHED_DEFAULT_DISABLED");
    let has_parameter = machine::since(facts, PARAMETER_SINCE);
    let draft = draft.evidence([machine::option(facts, "RT_GROUP_SCHED_DEFAULT_DISABLED")]).read(
        cmdline,
        |_| match asked {
            Some(value) => format!("rt_group_sched={value}"),
            None => "no rt_group_sched=".into(),
        },
    );
    let Some(_) = cmdline.value() else {
        return draft.unreadable(cmdline);
    };
    let draft = draft.read(&facts.kernel.release, String::clone);
    match (asked, has_parameter) {
        (Some(_), None) => return draft.unreadable(&facts.kernel.version),
        (Some("0"), Some(true)) => return draft.good("built, and off"),
        (None, _) if default_off == Some(true) => return draft.good("built, and off"),
        _ => {}
    }
    let remedy = match has_parameter {
        Some(true) => Remedy::Boot { parameter: "rt_group_sched=0".into() },
        _ => Remedy::Manual {
            text: "use a kernel built without CONFIG_RT_GROUP_SCHED, or give the application's \
                   group a budget (cpu.rt_runtime_us, control groups version 1)"
                .into(),
        },
    };
    draft.remedies([remedy]).doubtful("on: tasks outside the root group may get EPERM")
}

// Do handlers of interrupts run in threads, which can be preempted and given priorities?

pub(super) static THREADIRQS: Check = Check {
    id: "threadirqs",
    title: "interrupt handlers in threads",
    why: "a handler in hard interrupt context cannot be preempted: the real-time task waits for \
          every device that interrupts its CPU",
    source: "Documentation/admin-guide/kernel-parameters.txt (threadirqs); kernel/irq/manage.c \
             (force_irqthreads)",
    trade_off: Some(
        "each interrupt costs a switch to its thread; not worth it where no device interrupts the \
         real-time CPUs",
    ),
    when: When::Boot,
    wanted: Wanted::Text("PREEMPT_RT, or threadirqs"),
    judge: Judge::Ask(judge_threadirqs),
    ..Check::NEW
};

fn judge_threadirqs(draft: FindingBuilder, facts: &Facts, _: &Intent) -> Finding {
    let (model, cmdline) = (&facts.kernel.preemption, &facts.kernel.cmdline);
    let draft = draft.read(model, |model| {
        if *model == Preemption::Rt { "PREEMPT_RT" } else { "not PREEMPT_RT" }.into()
    });
    if model.value() == Some(&Preemption::Rt) {
        return draft.good("PREEMPT_RT runs every handler that can be in a thread");
    }
    let asked = cmdline.value().map(|line| line.last("threadirqs").is_some());
    let draft = draft.read(cmdline, |_| match asked {
        Some(true) => "threadirqs".into(),
        _ => "no threadirqs".into(),
    });
    let built = built_with(facts, "IRQ_FORCED_THREADING");
    match (asked, built) {
        (None, _) => draft.unreadable(cmdline),
        (Some(true), Some(true)) => {
            draft.evidence([machine::option(facts, "IRQ_FORCED_THREADING")]).good("threadirqs")
        }
        (Some(true), None) => draft
            .read(&facts.kernel.config, |_| "known".into())
            .unknown("threadirqs; whether the kernel has CONFIG_IRQ_FORCED_THREADING is not known"),
        (Some(true), Some(false)) => draft
            .evidence([machine::option(facts, "IRQ_FORCED_THREADING")])
            .doubtful("threadirqs is given, and the kernel does not know it"),
        // Without the model it may be PREEMPT_RT.
        (Some(false), _) if model.value().is_none() => draft.unreadable(model),
        (Some(false), _) => draft
            .remedies([Remedy::Boot { parameter: "threadirqs".into() }])
            .doubtful("handlers run in hard interrupt context"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Bad, Doubtful, Good, Unknown};
    use crate::testing::{good, intent, set_config};

    fn judge(hz: Option<&str>, period_ns: u64, resolution_ns: u64) -> Finding {
        let mut facts = good();
        set_config(&mut facts, "HZ", hz);
        facts.platform.timer_resolution_ns = Reading::known("clock_getres", resolution_ns);
        CONFIG_HZ.judge(&facts, &Intent { period_ns, ..intent() })
    }

    #[test]
    fn the_period_decides() {
        for (hz, period_ns, status) in [
            ("1000", 1_000_000, Good),
            ("250", 1_000_000, Doubtful),
            ("250", 4_000_000, Good),
            ("100", 4_000_000, Doubtful),
            ("100", 10_000_000, Good),
            ("1000", 100_000, Good),
            ("300", 100_000, Doubtful),
            ("300", 4_000_000, Good),
        ] {
            assert_eq!(judge(Some(hz), period_ns, 1).status, status, "{hz} {period_ns}");
        }
        let finding = judge(Some("250"), 1_000_000, 1);
        let options = vec!["HZ_1000=y".into(), "HZ=1000".into()];
        assert_eq!(finding.remedies, [Remedy::Build { options }]);
        assert_eq!(
            finding.summary,
            "250 Hz: SCHED_RR turns and timeouts in ticks go by steps of 4 ms, longer than the \
             period of 1 ms; its wake-ups do not wait for a tick"
        );
    }

    #[test]
    fn without_high_resolution_timers_each_wake_up_waits() {
        assert_eq!(judge(Some("250"), 1_000_000, 4_000_000).status, Bad);
        let finding = judge(Some("1000"), 1_000_000, 1_000_000);
        assert_eq!(finding.status, Doubtful);
        assert!(finding.summary.contains("is up to 1 ms late"), "{}", finding.summary);
        assert!(finding.remedies.is_empty());
    }

    #[test]
    fn what_is_not_known_is_unknown() {
        assert_eq!(judge(None, 1_000_000, 1).status, Unknown);
        assert_eq!(judge(Some("0"), 1_000_000, 1).status, Unknown);
        let mut facts = good();
        facts.platform.timer_resolution_ns = Reading::absent("clock_getres");
        assert_eq!(CONFIG_HZ.judge(&facts, &intent()).status, Unknown);
        set_config(&mut facts, "HZ", Some("250"));
        assert_eq!(CONFIG_HZ.judge(&facts, &intent()).status, Doubtful, "with or without");
        facts.kernel.config = Reading::denied("/proc/config.gz", "EACCES");
        assert_eq!(CONFIG_HZ.judge(&facts, &intent()).status, Unknown);
    }
}

#[cfg(test)]
mod config_readable_tests {
    use super::*;
    use crate::Status::{Good, Unknown};
    use crate::testing::{good, intent};
    use rtproof_host::Reading;

    #[test]
    fn good_and_unknown() {
        let mut facts = good();
        assert_eq!(CONFIG_READABLE.judge(&facts, &intent()).status, Good);
        facts.kernel.config = Reading::absent("/proc/config.gz, /boot/config-6.1");
        let finding = CONFIG_READABLE.judge(&facts, &intent());
        assert_eq!(finding.status, Unknown);
        assert_eq!(finding.remedies.len(), 1);
    }
}

#[cfg(test)]
mod high_res_timers_tests {
    use super::*;
    use crate::Status::{Bad, Good, Unknown};
    use crate::testing::{good, intent, set_cmdline, set_config};
    use rtproof_host::Reading;

    #[test]
    fn the_resolution_in_force_decides() {
        let mut facts = good();
        assert_eq!(HIGH_RES_TIMERS.judge(&facts, &intent()).status, Good);
        facts.platform.timer_resolution_ns = Reading::known("clock_getres", 4_000_000);
        let finding = HIGH_RES_TIMERS.judge(&facts, &intent());
        assert_eq!(finding.status, Bad);
        assert_eq!(finding.summary, "timers have a resolution of 4 ms");
    }

    #[test]
    fn without_the_timer_resolution_only_off_is_certain() {
        let mut facts = good();
        facts.platform.timer_resolution_ns = Reading::absent("clock_getres");
        assert_eq!(HIGH_RES_TIMERS.judge(&facts, &intent()).status, Unknown);
        set_cmdline(&mut facts, "highres=off");
        assert_eq!(HIGH_RES_TIMERS.judge(&facts, &intent()).status, Bad);
        set_cmdline(&mut facts, "quiet");
        set_config(&mut facts, "HIGH_RES_TIMERS", None);
        assert_eq!(HIGH_RES_TIMERS.judge(&facts, &intent()).status, Bad);
    }
}

#[cfg(test)]
mod kfence_tests {
    use super::*;
    use crate::Status::{Bad, Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{fill_setting, good, intent, set_config, set_setting};

    fn with(interval: &str, keys: bool) -> Finding {
        let mut facts = good();
        set_config(&mut facts, "KFENCE", Some("y"));
        set_config(&mut facts, "KFENCE_STATIC_KEYS", keys.then_some("y"));
        fill_setting(&mut facts, &knobs::KFENCE, interval);
        KFENCE.judge(&facts, &intent())
    }

    #[test]
    fn the_interval_and_the_build_decide() {
        assert_eq!(with("0", true).status, Good);
        assert_eq!(with("100", true).status, Bad);
        assert_eq!(with("100", false).status, Doubtful);
        assert_eq!(with("x", false).status, Unknown);
    }

    #[test]
    fn another_kernel_and_a_refusal() {
        let mut facts = good();
        set_config(&mut facts, "KFENCE", None);
        assert_eq!(KFENCE.judge(&facts, &intent()).status, NotApplicable);
        set_config(&mut facts, "KFENCE", Some("y"));
        set_setting(&mut facts, &knobs::KFENCE, Reading::denied("x", "EACCES"));
        assert_eq!(KFENCE.judge(&facts, &intent()).status, Unknown);
        facts.kernel.config = Reading::absent("/proc/config.gz");
        set_setting(&mut facts, &knobs::KFENCE, Reading::known("x", "100".to_owned()));
        assert_eq!(KFENCE.judge(&facts, &intent()).status, Doubtful);
    }
}

#[cfg(test)]
mod lockdown_tests {
    use super::*;
    use crate::Status::{Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{good, intent, set_config};
    use rtproof_host::Reading;

    #[test]
    fn modes_and_what_is_not_there() {
        let path = "/sys/kernel/security/lockdown";
        let mut facts = good();
        assert_eq!(LOCKDOWN.judge(&facts, &intent()).status, Good);
        facts.kernel.lockdown = Reading::known(path, "integrity".into());
        assert_eq!(LOCKDOWN.judge(&facts, &intent()).status, Doubtful);
        facts.kernel.lockdown = Reading::absent(path);
        set_config(&mut facts, "SECURITY_LOCKDOWN_LSM", Some("y"));
        assert_eq!(LOCKDOWN.judge(&facts, &intent()).status, Unknown);
        set_config(&mut facts, "SECURITY_LOCKDOWN_LSM", None);
        assert_eq!(LOCKDOWN.judge(&facts, &intent()).status, NotApplicable);
    }
}

#[cfg(test)]
mod preempt_dynamic_tests {
    use super::*;
    use crate::Status::{Bad, Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{good, good_stock, intent, set_config};
    use rtproof_host::Reading;

    fn with(model: Preemption) -> Finding {
        let mut facts = good_stock();
        facts.kernel.preemption = Reading::known("/sys/kernel/debug/sched/preempt", model);
        PREEMPT_DYNAMIC.judge(&facts, &intent())
    }

    #[test]
    fn the_mode_in_force_decides() {
        assert_eq!(with(Preemption::Full).status, Good);
        assert_eq!(with(Preemption::Lazy).status, Good);
        assert_eq!(with(Preemption::None).status, Bad);
        let finding = with(Preemption::Voluntary);
        assert_eq!(finding.status, Bad);
        assert_eq!(finding.remedies, [Remedy::Boot { parameter: "preempt=full".into() }]);
        assert_eq!(with(Preemption::DynamicUnknown).status, Unknown);
        let mut facts = good_stock();
        facts.kernel.preemption = Reading::known("/proc/config.gz", Preemption::None);
        let intent = Intent { budget_ns: Some(20_000_000), ..intent() };
        assert_eq!(PREEMPT_DYNAMIC.judge(&facts, &intent).status, Doubtful);
        assert_eq!(PREEMPT_DYNAMIC.judge(&good(), &intent).status, NotApplicable);
    }

    #[test]
    fn what_is_not_dynamic_needs_another_kernel() {
        let mut facts = good_stock();
        facts.kernel.preemption = Reading::known("/boot/config", Preemption::None);
        set_config(&mut facts, "PREEMPT_DYNAMIC", None);
        let finding = PREEMPT_DYNAMIC.judge(&facts, &intent());
        assert!(matches!(finding.remedies[..], [Remedy::Manual { .. }]));
        facts.kernel.preemption = Reading::denied("/boot/config", "EACCES");
        assert_eq!(PREEMPT_DYNAMIC.judge(&facts, &intent()).status, Unknown);
    }
}

#[cfg(test)]
mod preempt_rt_tests {
    use super::*;
    use crate::Status::{self, Bad, Doubtful, Good, Unknown};
    use crate::testing::{good, good_stock, intent};
    use rtproof_host::Reading;

    fn status(model: Preemption, budget_ns: Option<u64>) -> Status {
        let mut facts = good_stock();
        facts.kernel.preemption = Reading::known("/sys/kernel/debug/sched/preempt", model);
        PREEMPT_RT.judge(&facts, &Intent { budget_ns, ..intent() }).status
    }

    #[test]
    fn the_build_is_proposed_where_the_architecture_has_it() {
        for (arch, is_offered) in [
            (Some("x86_64"), true),
            (Some("aarch64"), true),
            (Some("riscv64"), true),
            (Some("armv7l"), false),
            (Some("powerpc"), false),
            (Some("s390x"), false),
            (None, false),
        ] {
            let mut facts = good_stock();
            facts.kernel.arch = match arch {
                Some(name) => Reading::known("/proc/cpuinfo", name.to_owned()),
                None => Reading::absent("/proc/sys/kernel/arch"),
            };
            let remedies = PREEMPT_RT.judge(&facts, &intent()).remedies;
            let builds = remedies.iter().any(|remedy| matches!(remedy, Remedy::Build { .. }));
            assert_eq!(builds, is_offered, "{arch:?}");
            let Some(Remedy::Manual { text }) = remedies.first() else { panic!("{remedies:?}") };
            let of_distribution = text == RT_PACKAGES;
            assert_eq!(of_distribution, matches!(arch, Some("x86_64" | "aarch64")), "{arch:?}");
        }
    }

    #[test]
    fn beside_a_core_of_its_own_linux_is_not_what_threads_wait_for() {
        let mut facts = good_stock();
        facts.kernel.cokernel = Reading::known("/sys/class/evl", "Xenomai EVL".into());
        let finding = PREEMPT_RT.judge(&facts, &intent());
        assert_eq!((finding.status, finding.remedies), (Doubtful, vec![]));
    }

    #[test]
    fn an_rt_kernel_is_good() {
        let finding = PREEMPT_RT.judge(&good(), &intent());
        assert_eq!(finding.status, Good);
        assert_eq!(finding.summary, "6.12.95-rt-amd64 is fully preemptible (PREEMPT_RT)");
    }

    #[test]
    fn another_is_bad_unless_the_budget_is_large() {
        assert_eq!(status(Preemption::Full, Some(100_000)), Bad);
        assert_eq!(status(Preemption::Full, None), Bad);
        assert_eq!(status(Preemption::Full, Some(1_000_000)), Doubtful);
        assert_eq!(status(Preemption::Lazy, Some(1_000_000)), Doubtful);
        assert_eq!(status(Preemption::Voluntary, Some(9_999_999)), Bad);
        assert_eq!(status(Preemption::None, Some(10_000_000)), Doubtful);
    }

    #[test]
    fn an_unreadable_mode_is_unknown_where_it_decides() {
        assert_eq!(status(Preemption::DynamicUnknown, Some(100_000)), Bad);
        assert_eq!(status(Preemption::DynamicUnknown, Some(2_000_000)), Unknown);
        assert_eq!(status(Preemption::DynamicUnknown, Some(20_000_000)), Doubtful);
    }

    #[test]
    fn a_dynamic_kernel_can_at_least_boot_with_full_preemption() {
        let mut facts = good_stock();
        facts.kernel.preemption = Reading::known("/proc/cmdline", Preemption::Voluntary);
        let finding = PREEMPT_RT.judge(&facts, &intent());
        assert_eq!(finding.remedies[2], Remedy::Boot { parameter: "preempt=full".into() });
    }
}

#[cfg(test)]
mod rt_group_sched_tests {
    use super::*;
    use crate::Status::{Doubtful, Good, Unknown};
    use crate::testing::{good, intent, set_cmdline, set_config};
    use rtproof_host::Reading;

    #[test]
    fn the_build_and_from_6_16_the_parameter_decide() {
        let mut facts = good();
        assert_eq!(RT_GROUP_SCHED.judge(&facts, &intent()).status, Good);
        set_config(&mut facts, "RT_GROUP_SCHED", Some("y"));
        assert_eq!(RT_GROUP_SCHED.judge(&facts, &intent()).status, Doubtful);
        set_cmdline(&mut facts, "rt_group_sched=0");
        // 6.12 does not know it.
        assert_eq!(RT_GROUP_SCHED.judge(&facts, &intent()).status, Doubtful);
        facts.kernel.version = Reading::known("/proc/sys/kernel/osrelease", (6, 18));
        assert_eq!(RT_GROUP_SCHED.judge(&facts, &intent()).status, Good);
        set_cmdline(&mut facts, "quiet");
        assert_eq!(RT_GROUP_SCHED.judge(&facts, &intent()).status, Doubtful);
        set_config(&mut facts, "RT_GROUP_SCHED_DEFAULT_DISABLED", Some("y"));
        assert_eq!(RT_GROUP_SCHED.judge(&facts, &intent()).status, Good);
    }

    #[test]
    fn unknown() {
        let mut facts = good();
        set_config(&mut facts, "RT_GROUP_SCHED", Some("y"));
        facts.kernel.cmdline = Reading::absent("/proc/cmdline");
        assert_eq!(RT_GROUP_SCHED.judge(&facts, &intent()).status, Unknown);
        facts.kernel.config = Reading::absent("/proc/config.gz");
        assert_eq!(RT_GROUP_SCHED.judge(&facts, &intent()).status, Unknown);
    }
}

#[cfg(test)]
mod threadirqs_tests {
    use super::*;
    use crate::Status::{Doubtful, Good, Unknown};
    use crate::testing::{good, good_stock, intent, set_cmdline, set_config};
    use rtproof_host::Reading;

    #[test]
    fn rt_does_it_by_itself_and_others_are_asked_to() {
        assert_eq!(THREADIRQS.judge(&good(), &intent()).status, Good);
        let mut facts = good_stock();
        assert_eq!(THREADIRQS.judge(&facts, &intent()).status, Doubtful);
        set_cmdline(&mut facts, "quiet threadirqs");
        set_config(&mut facts, "IRQ_FORCED_THREADING", Some("y"));
        assert_eq!(THREADIRQS.judge(&facts, &intent()).status, Good);
        set_config(&mut facts, "IRQ_FORCED_THREADING", None);
        assert_eq!(THREADIRQS.judge(&facts, &intent()).status, Doubtful);
    }

    #[test]
    fn half_known_is_unknown() {
        let mut facts = good_stock();
        set_cmdline(&mut facts, "threadirqs");
        facts.kernel.config = Reading::denied("/boot/config", "EACCES");
        assert_eq!(THREADIRQS.judge(&facts, &intent()).status, Unknown);
        facts.kernel.cmdline = Reading::denied("/proc/cmdline", "EACCES");
        assert_eq!(THREADIRQS.judge(&facts, &intent()).status, Unknown);
        set_cmdline(&mut facts, "quiet");
        facts.kernel.preemption = Reading::absent("/sys/kernel/realtime");
        assert_eq!(THREADIRQS.judge(&facts, &intent()).status, Unknown);
    }
}
