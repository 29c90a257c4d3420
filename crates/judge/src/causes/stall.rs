//! The CPU stood still: hardware, firmware or a hypervisor.

use super::{
    claim::{Cause, Claim},
    scene::{Moment, Phase},
    stack::Interrupted,
    switch::path_ns,
};

/// No path inside the timer interrupt is longer.
const LONG_NS: u64 = 1_000_000;

/// A stall of hardware or hypervisor.
#[derive(Debug)]
pub(super) struct Stall;

impl Cause for Stall {
    fn id(&self) -> &'static str {
        "stall"
    }

    fn title(&self) -> &'static str {
        "a stall of hardware or hypervisor"
    }

    fn about(&self) -> &'static str {
        "nothing ran that could hold the thread up: the CPU was in user mode (no stack under the \
         interrupt), idle beyond its exit latency, or in the midst of a short path; steal and the \
         SMI counter tell more"
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
        let smi = beside.smi.filter(|&count| count > 0);
        let steal = beside.steal_ns.filter(|&ns| ns > 0);
        let claim = match (smi, steal) {
            (Some(_), _) => Claim::by("system management interrupt"),
            (None, Some(_)) => Claim::by("hypervisor"),
            (None, None) if beside.guest == Some(true) => {
                Claim::by("hypervisor, or the host below it")
            }
            (None, None) => Claim::by("hardware or firmware"),
        };
        let over = crate::units::duration(beside.over_ns);
        let detail = [
            smi.map(|count| format!("{count} system management interrupts in {over}")),
            steal.map(|ns| format!("{} stolen in {over}", crate::units::duration(ns))),
            (scene.interrupted == Interrupted::User).then(|| "the CPU was in user mode".to_owned()),
        ];
        let claim =
            claim.detail(detail.into_iter().flatten()).manual(if beside.guest == Some(true) {
                "pin the guest's CPUs to host CPUs of their own, without quota; measure the host"
            } else {
                "firmware settings: no legacy USB, no power capping; hwlatdetect shows the gaps \
                 alone"
            });
        let idle = moment.cpu.task == 0 && moment.is_task();
        let user = scene.interrupted == Interrupted::User && moment.phase == Phase::TimerLate;
        let told = smi.is_some() || steal.is_some_and(|ns| ns >= moment.ns());
        // Nothing takes milliseconds in the timer interrupt without a timer's function.
        let in_timer = moment.cpu.hard.is_some_and(|(hard, _)| hard.is_timer());
        let long = in_timer && moment.ns() > LONG_NS;
        let other = match moment.phase {
            Phase::TimerLate => "irqs-off",
            _ if in_timer => "timer-work",
            Phase::Runnable => "preempt-off",
            _ => "switch",
        };
        Some(if idle || user || told || long { claim } else { claim.or(&[other]) })
    }
}
