//! The CPU stood still: hardware, firmware or a hypervisor.

use super::{
    claim::{Cause, Claim},
    scene::{Moment, Phase, Scene, Stood},
    stack::Interrupted,
    switch::path_ns,
};

/// No path inside the timer interrupt is longer.
const LONG_NS: u64 = 1_000_000;

/// A stall of hardware or hypervisor.
#[derive(Debug)]
pub(super) struct Stall;

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
pub(super) fn together(moment: &Moment<'_>) -> Option<Claim> {
    // Then it waited for somebody else, whether the machine ran or not.
    if matches!(moment.phase, Phase::Stopped | Phase::Blocked) {
        return None;
    }
    let here = |stood: &&Stood| (stood.from_ns..stood.to_ns).contains(&moment.from_ns);
    let witness = moment.scene.stood.iter().find(here)?.witness;
    let late = crate::units::duration(witness.to_ns - witness.due_ns);
    let text =
        format!("CPU {} was idle and got its timer {late} late at the same time", witness.cpu);
    Some(claim(moment.scene).detail([text]))
}

/// Who it was, and what to do.
fn claim(scene: &Scene<'_>) -> Claim {
    let beside = &scene.window.beside;
    let smi = beside.smi.filter(|&count| count > 0);
    let steal = beside.steal_ns.filter(|&ns| ns > 0);
    let claim = match (smi, steal) {
        (Some(_), _) => Claim::by("system management interrupt"),
        (None, Some(_)) => Claim::by("hypervisor"),
        (None, None) if beside.guest == Some(true) => Claim::by("hypervisor, or the host below it"),
        (None, None) => Claim::by("hardware or firmware"),
    };
    let over = crate::units::duration(beside.over_ns);
    let detail = [
        smi.map(|count| format!("{count} system management interrupts in {over}")),
        steal.map(|ns| format!("{} stolen in {over}", crate::units::duration(ns))),
    ];
    claim.detail(detail.into_iter().flatten()).manual(if beside.guest == Some(true) {
        "pin the guest's CPUs to host CPUs of their own, without quota; measure the host"
    } else {
        "firmware settings: no legacy USB, no power capping; hwlatdetect shows the gaps alone"
    })
}

impl Cause for Stall {
    fn id(&self) -> &'static str {
        "stall"
    }

    fn title(&self) -> &'static str {
        "a stall of hardware or hypervisor"
    }

    fn about(&self) -> &'static str {
        "nothing ran that could hold the thread up: the CPU was in user mode (no stack under the \
         interrupt), idle beyond its exit latency, or in the midst of a short path; another CPU \
         that was idle got its timer late at the same time; or, in a guest, it was silent for over \
         20 ms. Steal and the SMI counter tell more"
    }

    fn source(&self) -> &'static str {
        "measured in a virtual machine: 9 of 11 stacks in user mode, gaps in multiples of 100 ms; \
         hwlatdetect"
    }

    fn checks(&self) -> &'static [&'static str] {
        &["smi-count", "steal-time", "hypervisor", "kvm-guest"]
    }

    fn claims(&self, moment: &Moment<'_>) -> Option<Claim> {
        let waits = !matches!(moment.phase, Phase::Stopped | Phase::Blocked | Phase::OwnCycle);
        if !waits || moment.whole_ns() <= path_ns(moment) {
            return None;
        }
        let scene = moment.scene;
        let beside = &scene.window.beside;
        let where_it_was = match &scene.interrupted {
            Interrupted::User => Some("the CPU was in user mode".to_owned()),
            Interrupted::Kernel(frames) => Some(format!("in the midst of {}", frames.join(" ← "))),
            Interrupted::Unknown => None,
        };
        let claim = claim(scene).detail(where_it_was);
        let taken = beside.smi.is_some_and(|count| count > 0);
        let told = taken || beside.steal_ns.is_some_and(|ns| ns > 0 && ns >= moment.ns());
        let idle = moment.cpu.task == 0 && moment.is_task();
        let user = scene.interrupted == Interrupted::User && moment.phase == Phase::TimerLate;
        // Nothing takes milliseconds in the timer interrupt without a timer's function.
        let in_timer = moment.cpu.hard.is_some_and(|(hard, _)| hard.is_timer());
        let long = in_timer && moment.cpu.expiring.is_none() && moment.ns() > LONG_NS;
        let other = match moment.phase {
            Phase::TimerLate => "irqs-off",
            _ if in_timer => "timer-work",
            Phase::Runnable => "preempt-off",
            _ => "switch",
        };
        Some(if idle || user || told || long { claim } else { claim.or(&[other]) })
    }
}
