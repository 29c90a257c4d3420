//! Stretches in which the machine stood still: the late CPU was silent, and another one that was
//! idle got its timer late meanwhile. No code holds up an idle CPU; what stops two at once is
//! below the kernel.

use rtproof_trace::{LateTimer, WakeUp, Window};

/// The silence of two CPUs.
#[derive(Clone, Copy, Debug)]
pub struct Stood {
    pub from_ns: u64,
    pub to_ns: u64,
    pub witness: LateTimer,
}

/// A shorter silence of both proves nothing: deep idle states take that long.
const LEAST_NS: u64 = 1_000_000;

/// Those between due and run.
pub(super) fn stretches(wake: &WakeUp, window: &Window) -> Vec<Stood> {
    let mut found: Vec<Stood> = Vec::new();
    for &witness in &window.late_idle {
        let own = window.events.iter().filter(|event| event.cpu == wake.cpu);
        // What it wrote last before the witness's timer came, and what first since.
        let last = own.clone().rfind(|event| event.at_ns < witness.due_ns.max(wake.due_ns));
        let begin_ns = last.map_or(window.from_ns, |event| event.at_ns);
        let next = own.clone().find(|event| event.at_ns > begin_ns);
        let end_ns = next.map_or(window.to_ns, |event| event.at_ns);
        let (from_ns, to_ns) = (begin_ns.max(witness.from_ns), end_ns.min(witness.to_ns));
        let proven_ns = to_ns.saturating_sub(witness.due_ns.max(from_ns));
        let (from_ns, to_ns) = (from_ns.max(wake.due_ns), to_ns.min(wake.ran_ns));
        let is_new = found.iter().all(|stood| to_ns <= stood.from_ns || stood.to_ns <= from_ns);
        // Before its timer was due the witness says little: the silence is one where most of it
        // is proven.
        if is_new
            && proven_ns >= LEAST_NS
            && proven_ns >= to_ns.saturating_sub(from_ns) / 2
            && from_ns < to_ns
        {
            found.push(Stood { from_ns, to_ns, witness });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use rtproof_trace::{LateTimer, event::flags};

    use crate::causes::{
        Explanation,
        testing::{DUE, Story, US},
    };

    const STACK: [&str; 2] = ["asm_sysvec_apic_timer_interrupt+0x1a/0x20", "memset_erms+0x1/0x2"];

    /// Task 7 on the CPU, interrupts come after 8 ms, while it runs kernel code.
    fn told(from_us: u64, due_us: u64, to_us: u64) -> Explanation {
        let mut story = Story::new();
        let at = |us: u64| DUE + us * US;
        let witness =
            LateTimer { cpu: 1, from_ns: at(from_us), due_ns: at(due_us), to_ns: at(to_us) };
        story.window.late_idle.push(witness);
        story.window.beside.guest = Some(true);
        let story = story.timer(8_000, 7).stack(8_000, 7, &STACK);
        story.runs(8_100, 7, 120)
    }

    /// Microseconds, and what it may as well be.
    fn of(told: &Explanation, cause: &str) -> Vec<(u64, String)> {
        let shares = told.shares.iter().filter(|share| share.cause == cause);
        shares.map(|share| (share.ns / US, share.or.join(" "))).collect()
    }

    #[test]
    fn an_idle_cpu_that_was_late_as_well_proves_that_both_stood_still() {
        let all = told(0, 1_000, 8_500);
        assert_eq!(of(&all, "stall"), [(8_000, String::new())], "{all:?}");
        assert!(of(&all, "irqs-off").is_empty());
        assert!(all.shares[0].detail.iter().any(|line| line.contains("CPU 1 was idle")));
        // It was silent from 1.5 ms on, and came back after 7 ms: the rest is not proven.
        let part = told(1_500, 2_000, 7_000);
        assert_eq!(of(&part, "stall"), [(5_500, String::new())], "{part:?}");
        assert_eq!(of(&part, "irqs-off"), [(2_500, "stall".into())]);
    }

    #[test]
    fn a_witness_that_tells_little_or_of_another_time_is_not_heard() {
        // Less than a millisecond late; late for the smaller part of the silence; long before.
        for (from_us, due_us, to_us) in [(0, 7_200, 8_000), (0, 6_000, 8_000), (0, 20, 500)] {
            let told = told(from_us, due_us, to_us);
            assert!(of(&told, "stall").is_empty(), "{told:?}");
            assert_eq!(of(&told, "irqs-off"), [(8_000, "stall".into())]);
        }
        // The late CPU was at work meanwhile.
        let mut story = Story::new();
        let (from_ns, due_ns, to_ns) = (DUE, DUE + 1_000 * US, DUE + 8_000 * US);
        story.window.late_idle.push(LateTimer { cpu: 1, from_ns, due_ns, to_ns });
        for us in (500..8_000).step_by(500) {
            story = story.event(us, 7, flags::IRQS_OFF, rtproof_trace::What::IdleExit);
        }
        let told = story.timer(8_000, 7).runs(8_100, 7, 120);
        assert!(of(&told, "stall").is_empty(), "{told:?}");
    }
}
