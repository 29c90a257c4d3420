//! The CPU stood still: hardware, firmware or a hypervisor.

use rtproof_trace::LateTimer;

use super::{
    cause::{Attribution, Cause, Kind},
    scene::{Moment, Phase, Scene, Stood},
    stack::Interrupted,
    switch::path_ns,
};

/// No path inside the timer interrupt is longer.
const LONG_NS: u64 = 1_000_000;

/// In a guest a CPU that is silent for so long more often stood still than ran code with interrupts
/// off: it had ticks to take, and few sections of the kernel are that long.
const SILENT_NS: u64 = 20_000_000;

/// Whether a moment is more likely a stall than the code that was on the CPU.
pub(super) fn is_likely(moment: &Moment<'_>) -> bool {
    let scene = moment.scene;
    let is_silent = || scene.events(moment.from_ns + 1, moment.to_ns - 1).next().is_none();
    scene.window.beside.guest == Some(true) && moment.ns() >= SILENT_NS && is_silent()
}

/// A moment in which another CPU, idle, got its timer late: both stood still.
pub(super) fn together(moment: &Moment<'_>) -> Option<Attribution> {
    // Then it waited for another task, whether the machine ran or not.
    if matches!(moment.phase, Phase::Stopped | Phase::Blocked) {
        return None;
    }
    let here = |stood: &&Stood| (stood.from_ns..stood.to_ns).contains(&moment.from_ns);
    let witness = moment.scene.stood.iter().find(here)?.witness;
    let late = rtproof_stats::quantity::duration(witness.to_ns.saturating_sub(witness.due_ns));
    let text =
        format!("CPU {} was idle and got its timer {late} late at the same time", witness.cpu);
    Some(attribution(moment.scene).detail([text]))
}

/// A moment attributed to `other`, whose code did not run in it.
pub(super) fn instead(moment: &Moment<'_>, other: &'static str) -> Option<Attribution> {
    // These wait for another task, or (the stoppers of hotplug) do keep interrupts off for long.
    if ["stall", "stopped", "blocked", "hotplug"].contains(&other) || moment.cpu.nmi.is_some() {
        return None;
    }
    if moment.cpu.hard.is_some() {
        // Few handlers are that long.
        return is_likely(moment).then(|| attribution(moment.scene).or(&[other]));
    }
    // In a softirq interrupts are on, too.
    let runs = matches!(moment.phase, Phase::OwnCycle | Phase::Runnable);
    (runs || moment.cpu.softirq.is_some()).then(|| deaf(moment, other)).flatten()
}

/// A moment of a thread that ran, or waited while another one did, in which their CPU took no
/// interrupt although one of its own timers was due.
fn deaf(moment: &Moment<'_>, other: &'static str) -> Option<Attribution> {
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
    let late = rtproof_stats::quantity::duration(late.to_ns.saturating_sub(late.due_ns));
    let text = format!("interrupts of its CPU did not come: a timer was {late} late");
    let attribution = attribution(scene).detail(where_it_was(&interrupted)).detail([text]);
    // In user mode interrupts cannot be off.
    Some(if is_user { attribution } else { attribution.or(&[other]) })
}

/// The code that stood, in words.
fn where_it_was(interrupted: &Interrupted) -> Option<String> {
    match interrupted {
        Interrupted::User => Some("the CPU was in user mode".to_owned()),
        Interrupted::Kernel(frames) => Some(format!("in the midst of {}", frames.join(" ← "))),
        Interrupted::Unknown => None,
    }
}

/// The culprit and the remedy.
fn attribution(scene: &Scene<'_>) -> Attribution {
    let beside = &scene.window.beside;
    let smi = beside.smi.filter(|&count| count > 0);
    let steal = beside.steal_ns.filter(|&ns| ns > 0);
    let attribution = match (smi, steal) {
        (Some(_), _) => Attribution::by("system management interrupt"),
        (None, Some(_)) => Attribution::by("hypervisor"),
        (None, None) if beside.guest == Some(true) => {
            Attribution::by("hypervisor, or the host below it")
        }
        (None, None) => Attribution::by("hardware or firmware"),
    };
    let over = rtproof_stats::quantity::duration(beside.over_ns);
    let detail = [
        smi.map(|count| format!("{count} system management interrupts in {over}")),
        steal.map(|ns| format!("{} stolen in {over}", rtproof_stats::quantity::duration(ns))),
    ];
    attribution.detail(detail.into_iter().flatten()).manual(if beside.guest == Some(true) {
        "pin the guest's CPUs to host CPUs of their own, without quota; measure the host"
    } else {
        "firmware settings: no legacy USB, no power capping; hwlatdetect shows the gaps alone"
    })
}

pub(super) const CAUSE: Cause = Cause {
    id: "stall",
    kind: Kind::Hardware,
    title: "a stall of hardware or hypervisor",
    about: "nothing ran that could delay the thread: the CPU was in user mode (no stack under the \
        interrupt), idle beyond its exit latency, or inside a short path. Or another, idle CPU got \
        its timer late at the same time. Or, in a guest, the CPU was silent for over 20 ms. Where \
        code ran that others wait for, a late timer of that CPU shows that no interrupt came. Steal \
        and the SMI counter show more",
    source: "measured in a virtual machine: 9 of 11 stacks in user mode, gaps in multiples of 100 \
        ms; hwlatdetect",
    checks: &["smi-count", "steal-time", "hypervisor", "kvm-guest"],
    attribute,
};

fn attribute(moment: &Moment<'_>) -> Option<Attribution> {
    // What comes over the thread's own work is none of it.
    let works = moment.phase == Phase::OwnCycle && moment.is_task();
    let waits = !works && !matches!(moment.phase, Phase::Stopped | Phase::Blocked);
    if !waits || moment.whole_ns() <= path_ns(moment) {
        return None;
    }
    let scene = moment.scene;
    let beside = &scene.window.beside;
    let attribution = attribution(scene).detail(where_it_was(moment.interrupted()));
    let taken = beside.smi.is_some_and(|count| count > 0);
    let told = taken || beside.steal_ns.is_some_and(|ns| ns > 0 && ns >= moment.ns());
    let idle = moment.cpu.task == 0 && moment.is_task();
    let user = *moment.interrupted() == Interrupted::User && moment.phase == Phase::TimerLate;
    // Nothing takes milliseconds in the timer interrupt without a timer's function.
    let in_timer = moment.cpu.hard.is_some_and(|(hard, _)| hard.is_timer());
    let long = in_timer && moment.cpu.expiring.is_none() && moment.ns() > LONG_NS;
    let other = match moment.phase {
        Phase::TimerLate => "irqs-off",
        _ if in_timer => "timer-work",
        Phase::Runnable => "preempt-off",
        _ => "switch",
    };
    Some(if idle || user || told || long { attribution } else { attribution.or(&[other]) })
}

#[cfg(test)]
mod tests {
    use rtproof_trace::{
        LateTimer, Policy, What,
        event::{Vector, flags},
    };

    use crate::causes::{
        Explanation,
        testing::{DUE, LATE, Story, US},
    };

    const ENTRY: &str = "asm_sysvec_apic_timer_interrupt+0x1a/0x20";
    const USER: &[&str] = &[ENTRY];
    const KERNEL: &[&str] = &[ENTRY, "hrtimer_nanosleep+0x1/0x2"];

    /// The tick's interrupt over task `pid` at `us`, with a stack where there is one; it was due
    /// so much earlier.
    fn tick(story: Story, us: i64, pid: i32, late_us: u64, stack: &[&str]) -> Story {
        let vector = Vector::LocalTimer;
        let mut story = story.event(us, pid, flags::IRQS_OFF, What::VectorEntry { vector });
        if !stack.is_empty() {
            story = story.stack(us, pid, stack);
        }
        let in_it = flags::IRQS_OFF | flags::HARDIRQ;
        story = story.event(us + 3, pid, in_it, What::VectorExit { vector });
        let to_ns = DUE.saturating_add_signed(us * 1_000);
        let (from_ns, due_ns) = (DUE - 100 * US, to_ns - late_us * US);
        story.window.late_own.push(LateTimer { cpu: 0, from_ns, due_ns, to_ns });
        story
    }

    /// The thread ran when it was due, and went on until a tick after `us`.
    fn own_cycle(us: i64, late_us: u64, stack: &[&str], guest: bool) -> Explanation {
        let mut story = Story::new();
        story.window.beside.guest = Some(guest);
        let story = story.switch(-100, 7, 120, 0, LATE, 19);
        tick(story, us, LATE, late_us, stack).ran(us + 10)
    }

    fn top(told: &Explanation) -> (&str, Vec<&str>) {
        let top = told.top().expect("a share");
        (&top.cause, top.or.iter().map(String::as_str).collect())
    }

    #[test]
    fn a_thread_that_stood_did_not_overrun() {
        // While its own work runs, for 100 ms, and the tick was due long before.
        let told = own_cycle(100_000, 97_000, &[], true);
        assert_eq!(top(&told), ("stall", vec!["own-cycle"]), "{told:?}");
        assert!(
            told.shares[0].detail.iter().any(|line| line.ends_with("a timer was 0.1 s late")),
            "{told:?}"
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
            story.window.beside.guest = Some(true);
            let story = story.switch(-100, 7, 120, 0, LATE, 19);
            let mut story = tick(story, 100_000, LATE, 97_000, &[]);
            (story.window.late_own[0].due_ns, story.window.late_own[0].to_ns) = (due_ns, to_ns);
            assert_eq!(top(&story.ran(100_010)).0, is);
        }
    }

    #[test]
    fn a_thread_that_overran_did() {
        for told in [
            // Interrupts came in time, or for most of the time.
            own_cycle(100_000, 0, USER, true),
            own_cycle(100_000, 3_000, USER, true),
            // Its own kernel code may have kept them off so long, or on a real machine.
            own_cycle(10_000, 9_000, KERNEL, true),
            own_cycle(100_000, 97_000, KERNEL, false),
            own_cycle(100_000, 97_000, &[], false),
        ] {
            assert_eq!(top(&told), ("own-cycle", vec![]), "{told:?}");
        }
        // No timer of its CPU was due: nohz_full.
        let mut story = Story::new();
        story.window.beside.guest = Some(true);
        let told = story.switch(-100, 7, 120, 0, LATE, 19).ran(100_000);
        assert_eq!(top(&told), ("own-cycle", vec![]));
    }

    #[test]
    fn whoever_was_on_the_cpu_stood_as_well() {
        let of = |stack: &[&str]| {
            let mut story = Story::new().with(60, "multipathd", Policy::Rr, 99);
            story.window.beside.guest = Some(true);
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
            story.window.beside.guest = Some(guest);
            let vector = Vector::CallFunction;
            let story = story.event(-5, 7, flags::IRQS_OFF, What::VectorEntry { vector });
            let in_it = flags::IRQS_OFF | flags::HARDIRQ;
            let story = story.event(us, 7, in_it, What::VectorExit { vector });
            story.timer(us + 1, 7).runs(us + 10, 7, 120)
        };
        assert_eq!(top(&of(50_000, true)), ("stall", vec!["masked"]));
        assert_eq!(top(&of(10_000, true)), ("masked", vec![]));
        assert_eq!(top(&of(50_000, false)), ("masked", vec![]));
    }
}
