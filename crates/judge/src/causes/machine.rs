//! Causes that no task and no interrupt explains: idle states, frequency, page faults, stalls,
//! hotplug.

use rtproof_trace::{EventData, LateTimer};

use super::scene::{Interrupted, Moment, Scene, SilentStretch, WakeUpPhase};
use super::{Attribution, Cause, CauseKind, PriorityOrder, names, order};
use crate::Remedy;

// The CPU changed its frequency.

pub(super) const FREQUENCY: Cause = Cause {
    id: "frequency",
    kind: CauseKind::Power,
    title: "a change of the CPU frequency",
    about: "cpu_frequency of this CPU in a stretch that nothing else explains: some CPUs stand \
        still while they change",
    source: "Documentation/admin-guide/pm/cpufreq.rst",
    checks: &["cpufreq-governor", "cpufreq-minmax"],
    attribute: attribute_frequency,
};

fn attribute_frequency(moment: &Moment<'_>) -> Option<Attribution> {
    let (scene, cpu) = (moment.scene, moment.scene.wake.cpu);
    if !moment.is_task() || moment.ns() <= path_ns(moment) || order(moment) == PriorityOrder::Above
    {
        return None;
    }
    let change = scene.rare().iter().find_map(|event| match &event.what {
        EventData::Frequency { of_cpu, khz }
            if *of_cpu == cpu && (moment.from_ns..=moment.to_ns).contains(&event.at_ns) =>
        {
            Some(*khz)
        }
        _ => None,
    })?;
    let attribution = Attribution::of_culprit(format!("to {} MHz", change / 1000))
        .or_causes(&["stall", "irqs-off"]);
    Some(attribution.manual("fix the frequency: governor performance, lowest = highest"))
}

// A CPU goes away or comes back.

/// Steps of taking a CPU away lie that close to what they hold up.
const NEAR_NS: u64 = 20_000_000;

pub(super) const HOTPLUG: Cause = Cause {
    id: "hotplug",
    kind: CauseKind::Scheduling,
    title: "a CPU taken away or brought back",
    about: "cpuhp events, with the stopper threads running on every CPU meanwhile (stop_machine)",
    source: "kernel/cpu.c (takedown_cpu); measured: 1.4 ms in a virtual machine that counts \
        instructions",
    checks: &[],
    attribute: attribute_hotplug,
};

fn attribute_hotplug(moment: &Moment<'_>) -> Option<Attribution> {
    let scene = moment.scene;
    let name = names::comm(scene, moment.cpu.task);
    let works = name.starts_with("migration/") || name.starts_with("cpuhp/");
    let near = |at_ns: u64| {
        at_ns + NEAR_NS >= moment.from_ns && at_ns <= moment.to_ns.saturating_add(NEAR_NS)
    };
    let elsewhere = matches!(moment.phase, WakeUpPhase::Elsewhere(_));
    let held_up = matches!(moment.phase, WakeUpPhase::TimerLate | WakeUpPhase::Runnable) && works;
    if !(held_up || elsewhere || moment.phase == WakeUpPhase::Blocked) {
        return None;
    }
    let step = scene.rare().iter().find_map(|event| match &event.what {
        EventData::Hotplug { of_cpu, .. } if near(event.at_ns) => Some(*of_cpu),
        _ => None,
    })?;
    let attribution =
        Attribution::of_culprit(format!("CPU {step}")).detail([format!("{name} was running")]);
    let text = "nothing may take CPUs off or on in operation: no suspend, no hot-unplug";
    Some(attribution.manual(text))
}

// The CPU had to wake from an idle state.

/// What a hypervisor needs to run an idle guest's CPU again.
const GUEST_NS: u64 = 60_000;

/// What any CPU needs, and the kernel's way out of its idle loop.
const BARE_NS: u64 = 10_000;

/// What the deepest states of today's machines declare, for a trace of an unknown machine.
const DEEPEST_NS: u64 = 1_000_000;

pub(super) const IDLE_EXIT: Cause = Cause {
    id: "idle-exit",
    kind: CauseKind::Power,
    title: "the way out of an idle state",
    about: "the CPU was idle when the timer was due, or when the thread was woken. Up to three \
        times the declared exit latency of the state counts (1 ms where none is known), and what a \
        hypervisor needs to wake its guest",
    source: "Documentation/admin-guide/pm/cpuidle.rst",
    checks: &["cpuidle-states", "cpu-dma-latency", "idle-poll", "pm-qos-resume"],
    attribute: attribute_idle_exit,
};

fn attribute_idle_exit(moment: &Moment<'_>) -> Option<Attribution> {
    let waits = matches!(moment.phase, WakeUpPhase::TimerLate | WakeUpPhase::Runnable);
    if !waits || moment.cpu.task != 0 || !moment.is_task() || moment.taken_ns > 0 {
        return None;
    }
    if moment.phase == WakeUpPhase::Runnable && moment.cpu.idle.is_none() {
        return None;
    }
    let surroundings = &moment.scene.window.surroundings;
    let state = moment.cpu.idle.and_then(|state| surroundings.idle_states.get(&state));
    let own_ns = if surroundings.guest == Some(true) { GUEST_NS } else { BARE_NS };
    let is_unknown =
        surroundings.guest.is_none() && surroundings.idle_states.is_empty() && moment.ns() > own_ns;
    let allowed_ns = match state {
        _ if is_unknown => DEEPEST_NS,
        state => 3 * state.map_or(0, |state| state.exit_latency_ns) + own_ns,
    };
    let culprit = match (state, moment.cpu.idle) {
        (Some(state), _) => state.name.clone(),
        (None, Some(number)) => format!("state {number}"),
        (None, None) => String::new(),
    };
    let attribution = Attribution::of_culprit(culprit).remedy(Remedy::Manual {
        text: "keep the CPU out of deep states: rtproof prove --dma-latency 0, or hold \
               /dev/cpu_dma_latency in the application"
            .into(),
    });
    let attribution = attribution.or_causes(if is_unknown { &["stall"] } else { &[] });
    // A little more than allowed is no other thing; the rest of much more is a stall.
    let is_long = moment.ns() > 2 * allowed_ns;
    Some(Attribution { until_ns: is_long.then(|| moment.from_ns + allowed_ns), ..attribution })
}

// The thread touched memory that was not there.

pub(super) const PAGE_FAULT: Cause = Cause {
    id: "page-fault",
    kind: CauseKind::Own,
    title: "a page fault of the thread",
    about: "page_fault_user or page_fault_kernel of the thread itself, until it goes on or sleeps \
        for the page",
    source: "mlockall(2); Flatscher, \"Real-time Optimizations\": lock and touch all memory before \
        the loop",
    checks: &["app-memory-locked", "app-page-faults"],
    attribute: attribute_page_fault,
};

fn attribute_page_fault(moment: &Moment<'_>) -> Option<Attribution> {
    let fault = moment.fault?;
    if !moment.is_task()
        || moment.cpu.task != moment.scene.wake.tid && moment.phase != WakeUpPhase::Blocked
    {
        return None;
    }
    let EventData::PageFault { address, ip, user } = fault.what else { return None };
    let mode = if user { "user" } else { "kernel" };
    let attribution = Attribution::of_culprit(names::comm(moment.scene, moment.scene.wake.tid));
    Some(attribution.detail([format!("address {address:#x}, {mode} code at {ip:#x}")]).manual(
        "mlockall(MCL_CURRENT | MCL_FUTURE), touch stack and heap before the loop, allocate \
         nothing in it",
    ))
}

// The CPU stalled: hardware, firmware or a hypervisor.

/// No path inside the timer interrupt is longer.
const LONG_NS: u64 = 1_000_000;

/// In a guest a CPU that is silent for so long more often stood still than ran code with interrupts
/// off: it had ticks to take, and few sections of the kernel are that long.
const SILENT_NS: u64 = 20_000_000;

pub(super) const STALL: Cause = Cause {
    id: "stall",
    kind: CauseKind::Hardware,
    title: "a stall of hardware or hypervisor",
    about: "nothing ran that could delay the thread: the CPU was in user mode (no stack under the \
        interrupt), idle beyond its exit latency, or inside a short path. Or another, idle CPU got \
        its timer late at the same time. Or, in a guest, the CPU was silent for over 20 ms. Where \
        code ran that others wait for, a late timer of that CPU shows that no interrupt came. Steal \
        and the SMI counter show more",
    source: "measured in a virtual machine: 9 of 11 stacks in user mode, gaps in multiples of 100 \
        ms; hwlatdetect",
    checks: &["smi-count", "steal-time", "hypervisor", "kvm-guest"],
    attribute: attribute_stall,
};

fn attribute_stall(moment: &Moment<'_>) -> Option<Attribution> {
    // A stall during the thread's own work is not that work.
    let works = moment.phase == WakeUpPhase::OwnCycle && moment.is_task();
    let waits = !works && !matches!(moment.phase, WakeUpPhase::Stopped | WakeUpPhase::Blocked);
    if !waits || moment.whole_ns() <= path_ns(moment) {
        return None;
    }
    let scene = moment.scene;
    let surroundings = &scene.window.surroundings;
    let attribution = attribution(scene).detail(where_it_was(moment.interrupted()));
    let taken = surroundings.smi.is_some_and(|count| count > 0);
    let explained = taken || surroundings.steal_ns.is_some_and(|ns| ns > 0 && ns >= moment.ns());
    let idle = moment.cpu.task == 0 && moment.is_task();
    let user = *moment.interrupted() == Interrupted::User && moment.phase == WakeUpPhase::TimerLate;
    // Nothing takes milliseconds in the timer interrupt without a timer's function.
    let in_timer = moment.cpu.hard.is_some_and(|(hard, _)| hard.is_timer());
    let long = in_timer && moment.cpu.expiring.is_none() && moment.ns() > LONG_NS;
    let other = match moment.phase {
        WakeUpPhase::TimerLate => "irqs-off",
        _ if in_timer => "timer-work",
        WakeUpPhase::Runnable => "preempt-off",
        _ => "switch",
    };
    Some(if idle || user || explained || long {
        attribution
    } else {
        attribution.or_causes(&[other])
    })
}

/// Whether a moment is more likely a stall than the code that was on the CPU.
pub(super) fn is_likely(moment: &Moment<'_>) -> bool {
    let scene = moment.scene;
    let is_silent = || scene.events(moment.from_ns + 1, moment.to_ns - 1).next().is_none();
    scene.window.surroundings.guest == Some(true) && moment.ns() >= SILENT_NS && is_silent()
}

/// A moment in which another, idle CPU got its timer late: both stalled.
pub(super) fn together(moment: &Moment<'_>) -> Option<Attribution> {
    // Then it waited for another task, whether the machine ran or not.
    if matches!(moment.phase, WakeUpPhase::Stopped | WakeUpPhase::Blocked) {
        return None;
    }
    let here = |stood: &&SilentStretch| (stood.from_ns..stood.to_ns).contains(&moment.from_ns);
    let witness = moment.scene.silent_stretches.iter().find(here)?.witness;
    let late = rtproof_stats::samples::duration(witness.to_ns.saturating_sub(witness.due_ns));
    let text =
        format!("CPU {} was idle and got its timer {late} late at the same time", witness.cpu);
    Some(attribution(moment.scene).detail([text]))
}

/// A moment attributed to `other`, whose code did not run in it.
pub(super) fn stall_instead_of(moment: &Moment<'_>, other: &'static str) -> Option<Attribution> {
    // These wait for another task, or (the stoppers of hotplug) do keep interrupts off for long.
    if ["stall", "stopped", "blocked", "hotplug"].contains(&other) || moment.cpu.nmi.is_some() {
        return None;
    }
    if moment.cpu.hard.is_some() {
        // Few handlers are that long.
        return is_likely(moment).then(|| attribution(moment.scene).or_causes(&[other]));
    }
    // In a softirq interrupts are on, too.
    let runs = matches!(moment.phase, WakeUpPhase::OwnCycle | WakeUpPhase::Runnable);
    (runs || moment.cpu.softirq.is_some()).then(|| unserved_stall(moment, other)).flatten()
}

/// A moment of a thread that ran, or waited while another one did, in which their CPU took no
/// interrupt although one of its own timers was due.
fn unserved_stall(moment: &Moment<'_>, other: &'static str) -> Option<Attribution> {
    let scene = moment.scene;
    let within = |late: &&LateTimer| late.from_ns <= moment.from_ns && moment.to_ns <= late.to_ns;
    let late = scene.window.late_own.iter().find(within)?;
    // Before the timer was due nothing is known: the moment is one where most of it is.
    if late.to_ns.saturating_sub(late.due_ns.max(moment.from_ns)) < moment.ns() / 2 {
        return None;
    }
    let interrupted = Interrupted::at(scene.window, scene.wake.cpu, Some(late.to_ns));
    let is_user = interrupted == Interrupted::User;
    if !is_user && !is_likely(moment) {
        return None;
    }
    let late = rtproof_stats::samples::duration(late.to_ns.saturating_sub(late.due_ns));
    let text = format!("interrupts of its CPU did not come: a timer was {late} late");
    let attribution = attribution(scene).detail(where_it_was(&interrupted)).detail([text]);
    // In user mode interrupts cannot be off.
    Some(if is_user { attribution } else { attribution.or_causes(&[other]) })
}

/// The stalled code, in words.
fn where_it_was(interrupted: &Interrupted) -> Option<String> {
    match interrupted {
        Interrupted::User => Some("the CPU was in user mode".to_owned()),
        Interrupted::Kernel(frames) => Some(format!("in the midst of {}", frames.join(" ← "))),
        Interrupted::Unknown => None,
    }
}

/// The culprit and the remedy.
fn attribution(scene: &Scene<'_>) -> Attribution {
    let surroundings = &scene.window.surroundings;
    let smi = surroundings.smi.filter(|&count| count > 0);
    let steal = surroundings.steal_ns.filter(|&ns| ns > 0);
    let attribution = match (smi, steal) {
        (Some(_), _) => Attribution::of_culprit("system management interrupt"),
        (None, Some(_)) => Attribution::of_culprit("hypervisor"),
        (None, None) if surroundings.guest == Some(true) => {
            Attribution::of_culprit("hypervisor, or the host below it")
        }
        (None, None) => Attribution::of_culprit("hardware or firmware"),
    };
    let over = rtproof_stats::samples::duration(surroundings.over_ns);
    let detail = [
        smi.map(|count| format!("{count} system management interrupts in {over}")),
        steal.map(|ns| format!("{} stolen in {over}", rtproof_stats::samples::duration(ns))),
    ];
    attribution.detail(detail.into_iter().flatten()).manual(if surroundings.guest == Some(true) {
        "pin the guest's CPUs to host CPUs of their own, without quota; measure the host"
    } else {
        "firmware settings: no legacy USB, no power capping; hwlatdetect shows the gaps alone"
    })
}

// The way that every wake-up goes.

/// Longest stretch of it. A guest leaves to its hypervisor for each timer that it programs; QEMU
/// without KVM needs 20 to 30 us for one step.
pub(super) fn path_ns(moment: &Moment<'_>) -> u64 {
    if moment.scene.window.surroundings.guest == Some(false) { 8_000 } else { 30_000 }
}

pub(super) const SWITCH: Cause = Cause {
    id: "switch",
    kind: CauseKind::Own,
    title: "the normal path: interrupt, scheduler, return to user mode",
    about: "short stretches in which only the kernel did what it does at every wake-up",
    source: "kernel/sched/core.c, kernel/entry/common.c",
    checks: &["mitigations", "preempt-rt"],
    attribute: attribute_switch,
};

fn attribute_switch(moment: &Moment<'_>) -> Option<Attribution> {
    let waits = !matches!(moment.phase, WakeUpPhase::Stopped | WakeUpPhase::Blocked);
    (waits && moment.whole_ns() <= path_ns(moment)).then(Attribution::default)
}

// The thread's own timer slack: the kernel put its timer off.

pub(super) const TIMER_SLACK: Cause = Cause {
    id: "timer-slack",
    kind: CauseKind::Own,
    title: "the thread's own timer slack",
    about: "hrtimer_start recorded a range (softexpires to expires): up to its end the kernel may \
        let the timer expire together with others",
    source: "prctl(2), PR_SET_TIMERSLACK; kernel/time/hrtimer.c (hrtimer_start_range_ns)",
    checks: &["app-timer-slack", "app-policy"],
    attribute: attribute_timer_slack,
};

fn attribute_timer_slack(moment: &Moment<'_>) -> Option<Attribution> {
    let scene = moment.scene;
    let until_ns = scene.slack_ns.filter(|&slack_ns| slack_ns > moment.from_ns)?;
    if scene.earlier_at(moment.from_ns).is_some() {
        return None;
    }
    if moment.phase != WakeUpPhase::TimerLate {
        return None;
    }
    let set_for_ns = scene.set_for_ns.unwrap_or(scene.wake.due_ns);
    let slack_ns = until_ns.saturating_sub(set_for_ns);
    let attribution = Attribution::of_culprit(names::comm(scene, scene.wake.tid));
    let attribution = attribution
        .detail([format!("its timer may be {} late", rtproof_stats::samples::ns(slack_ns))])
        .manual(
            "set the thread's timer slack to 1 ns (prctl PR_SET_TIMERSLACK), or give it a \
             real-time policy, which has none",
        );
    Some(Attribution { until_ns: Some(until_ns), ..attribution })
}

#[cfg(test)]
mod stall_tests {
    use rtproof_trace::{EventData, LateTimer, TaskPolicy, event::Vector};

    use crate::causes::Explanation;
    use crate::causes::testing::{DUE, LATE, Story, US};

    const ENTRY: &str = "asm_sysvec_apic_timer_interrupt+0x1a/0x20";
    const USER: &[&str] = &[ENTRY];
    const KERNEL: &[&str] = &[ENTRY, "hrtimer_nanosleep+0x1/0x2"];

    /// The tick's interrupt over task `pid` at `us`, with a stack where there is one; it was due
    /// so much earlier.
    fn tick(story: Story, us: i64, pid: i32, late_us: u64, stack: &[&str]) -> Story {
        let vector = Vector::LocalTimer;
        let mut story = story.event(
            us,
            pid,
            rtproof_trace::event::flags::IRQS_OFF,
            EventData::VectorEntry { vector },
        );
        if !stack.is_empty() {
            story = story.stack(us, pid, stack);
        }
        let in_it = rtproof_trace::event::flags::IRQS_OFF | rtproof_trace::event::flags::HARDIRQ;
        story = story.event(us + 3, pid, in_it, EventData::VectorExit { vector });
        let to_ns = DUE.saturating_add_signed(us * 1_000);
        let (from_ns, due_ns) = (DUE - 100 * US, to_ns - late_us * US);
        story.window.late_own.push(LateTimer { cpu: 0, from_ns, due_ns, to_ns });
        story
    }

    /// The thread ran when it was due, and went on until a tick after `us`.
    fn own_cycle(us: i64, late_us: u64, stack: &[&str], guest: bool) -> Explanation {
        let mut story = Story::new();
        story.window.surroundings.guest = Some(guest);
        let story = story.switch(-100, 7, 120, 0, LATE, 19);
        tick(story, us, LATE, late_us, stack).ran(us + 10)
    }

    fn top(explained: &Explanation) -> (&str, Vec<&str>) {
        let top = explained.top().expect("a share");
        (&top.cause, top.alternatives.iter().map(String::as_str).collect())
    }

    #[test]
    fn a_thread_that_stood_did_not_overrun() {
        // While its own work runs, for 100 ms, and the tick was due long before.
        let explained = own_cycle(100_000, 97_000, &[], true);
        assert_eq!(top(&explained), ("stall", vec!["own-cycle"]), "{explained:?}");
        assert!(
            explained.shares[0].detail.iter().any(|line| line.ends_with("a timer was 0.1 s late")),
            "{explained:?}"
        );
        assert_eq!(top(&own_cycle(100_000, 97_000, KERNEL, true)), ("stall", vec!["own-cycle"]));
        // In user mode nothing else keeps interrupts away, on any machine, however short.
        for guest in [false, true] {
            assert_eq!(top(&own_cycle(100_000, 97_000, USER, guest)), ("stall", vec![]));
            assert_eq!(top(&own_cycle(4_000, 3_000, USER, guest)), ("stall", vec![]));
        }
    }

    #[test]
    fn times_that_cannot_be_do_no_harm() {
        // A damaged record: due after it came; so late that nothing can be after it.
        for (due_ns, to_ns, is) in
            [(u64::MAX, DUE + 100_000 * US, "own-cycle"), (DUE, u64::MAX, "stall")]
        {
            let mut story = Story::new();
            story.window.surroundings.guest = Some(true);
            let story = story.switch(-100, 7, 120, 0, LATE, 19);
            let mut story = tick(story, 100_000, LATE, 97_000, &[]);
            (story.window.late_own[0].due_ns, story.window.late_own[0].to_ns) = (due_ns, to_ns);
            assert_eq!(top(&story.ran(100_010)).0, is);
        }
    }

    #[test]
    fn a_thread_that_overran_did() {
        for explained in [
            // Interrupts came in time, or for most of the time.
            own_cycle(100_000, 0, USER, true),
            own_cycle(100_000, 3_000, USER, true),
            // Its own kernel code may have kept them off so long, or on a real machine.
            own_cycle(10_000, 9_000, KERNEL, true),
            own_cycle(100_000, 97_000, KERNEL, false),
            own_cycle(100_000, 97_000, &[], false),
        ] {
            assert_eq!(top(&explained), ("own-cycle", vec![]), "{explained:?}");
        }
        // No timer of its CPU was due: nohz_full.
        let mut story = Story::new();
        story.window.surroundings.guest = Some(true);
        let explained = story.switch(-100, 7, 120, 0, LATE, 19).ran(100_000);
        assert_eq!(top(&explained), ("own-cycle", vec![]));
    }

    #[test]
    fn whoever_was_on_the_cpu_stood_as_well() {
        let of = |stack: &[&str]| {
            let mut story = Story::new().with(60, "multipathd", TaskPolicy::Rr, 99);
            story.window.surroundings.guest = Some(true);
            let story = story.switch(-5, 7, 120, 0, 60, 0).timer(1, 60);
            let mut story = tick(story, 50_000, 60, 48_000, stack);
            story.window.late_own[0].from_ns = DUE + 4 * US;
            story.runs(50_010, 60, 0)
        };
        assert_eq!(top(&of(&[])), ("stall", vec!["preempted"]));
        assert_eq!(top(&of(USER)), ("stall", vec![]));
    }

    #[test]
    fn an_interrupt_in_the_midst_of_which_it_stood_is_not_to_blame() {
        let of = |us: i64, guest: bool| {
            let mut story = Story::new();
            story.window.surroundings.guest = Some(guest);
            let vector = Vector::CallFunction;
            let story = story.event(
                -5,
                7,
                rtproof_trace::event::flags::IRQS_OFF,
                EventData::VectorEntry { vector },
            );
            let in_it =
                rtproof_trace::event::flags::IRQS_OFF | rtproof_trace::event::flags::HARDIRQ;
            let story = story.event(us, 7, in_it, EventData::VectorExit { vector });
            story.timer(us + 1, 7).runs(us + 10, 7, 120)
        };
        assert_eq!(top(&of(50_000, true)), ("stall", vec!["masked"]));
        assert_eq!(top(&of(10_000, true)), ("masked", vec![]));
        assert_eq!(top(&of(50_000, false)), ("masked", vec![]));
    }
}

#[cfg(test)]
mod timer_slack_tests {
    use rtproof_trace::EventData;

    use crate::causes::testing::{DUE, LATE, Story, US, top};

    #[test]
    fn what_the_kernel_put_off_by_slack_is_the_threads_own() {
        let (timer, function) = (1, 2);
        let start = |slack_us: u64| {
            let expires_ns = DUE + slack_us * US;
            EventData::TimerStart { timer, function, expires_ns, soft_ns: DUE }
        };
        let story = Story::new().event(-600, LATE, 0, start(1_500));
        let explained = story.timer(1_400, 7).runs(1_410, 7, 120);
        assert_eq!(top(&explained), ("timer-slack", "control", 1_400), "{explained:?}");
        // Later than that it is something else.
        let story = Story::new().event(-600, LATE, 0, start(300));
        let explained = story.timer(1_400, 7).runs(1_410, 7, 120);
        assert_eq!(top(&explained).0, "irqs-off", "{explained:?}");
        let slack = explained.shares.iter().find(|share| share.cause == "timer-slack");
        assert_eq!(slack.map(|share| share.ns), Some(300 * US));
        // Without slack there is none, also where the timer was set for later than it was due.
        let exact = |late_us: u64| {
            let expires_ns = DUE + late_us * US;
            EventData::TimerStart { timer, function, expires_ns, soft_ns: expires_ns }
        };
        for late_us in [0, 90] {
            let story = Story::new().event(-600, LATE, 0, exact(late_us));
            let explained = story.timer(1_400, 7).runs(1_410, 7, 120);
            assert!(
                explained.shares.iter().all(|share| share.cause != "timer-slack"),
                "{explained:?}"
            );
        }
    }
}
