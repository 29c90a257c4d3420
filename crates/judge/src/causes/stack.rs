//! What the timer interrupt interrupted, from the stack recorded with it.
//!
//! A stack without a frame under the interrupt's entry means that the CPU was in user mode, where
//! interrupts cannot be off: whatever held the interrupt up was hardware or a hypervisor.

use rtproof_trace::{What, Window, ftrace_text::CUT};

/// How long after the interrupt's entry its stack is written at most.
const STACK_WITHIN_NS: u64 = 200_000;

/// What an interrupt interrupted: user mode, or the kernel with its stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Interrupted {
    /// No stack was recorded, or it cannot be read.
    Unknown,
    User,
    /// The kernel: functions, innermost first.
    Kernel(Vec<String>),
}

impl Interrupted {
    /// From the stack after the interrupt that began at `irq_ns`.
    pub(super) fn at(window: &Window, cpu: u32, irq_ns: Option<u64>) -> Self {
        let Some(irq_ns) = irq_ns else { return Self::Unknown };
        let after = |at_ns: u64| (irq_ns..=irq_ns.saturating_add(STACK_WITHIN_NS)).contains(&at_ns);
        let events = window.events.iter().filter(|e| e.cpu == cpu && after(e.at_ns));
        // The stack is written right after the event that it belongs to: the first one counts.
        let stack = events.take(4).find_map(|event| match &event.what {
            What::Stack { frames } => Some((event.pid, frames)),
            _ => None,
        });
        let Some((pid, frames)) = stack else { return Self::Unknown };
        let names: Vec<&str> =
            frames.iter().map(|&frame| window.symbol(frame).unwrap_or("?")).collect();
        Self::of(&names, pid)
    }

    fn of(names: &[&str], pid: i32) -> Self {
        let base = |name: &str| name.split('+').next().unwrap_or(name).to_owned();
        let entry = names.iter().rposition(|name| is_entry(&base(name)));
        let Some(entry) = entry else { return Self::Unknown };
        if base(names[entry]).starts_with("el0") {
            return Self::User;
        }
        let below = &names[entry + 1..];
        // What a text does not have any more may have been there.
        let (below, is_cut) = match below {
            [below @ .., CUT] => (below, true),
            below => (below, false),
        };
        if below.is_empty() && is_cut {
            return Self::Unknown;
        }
        let below: Vec<String> = below.iter().map(|&name| name.to_owned()).collect();
        if !below.is_empty() {
            return Self::Kernel(below);
        }
        // The idle task is never in user mode: this kernel's stacks end at the interrupt.
        if pid == 0 { Self::Unknown } else { Self::User }
    }
}

/// Whether it is where an interrupt enters the kernel: x86 `asm_sysvec_*`, arm64 `el1h_64_irq` and
/// `el0t_64_irq`, older x86 `apic_timer_interrupt`.
fn is_entry(name: &str) -> bool {
    name.starts_with("asm_sysvec_")
        || name.starts_with("asm_common_interrupt")
        || name == "apic_timer_interrupt"
        || (name.starts_with("el0") || name.starts_with("el1")) && name.ends_with("_irq")
        || name.starts_with("handle_riscv_irq") && !name.contains('.')
}

/// Whether a function is one in which interrupts come back on: what was held up comes right there.
pub fn turns_interrupts_on(name: &str) -> bool {
    let name = name.split('+').next().unwrap_or(name);
    const ENDS: &[&str] = &[
        "unlock_irqrestore",
        "unlock_irq",
        "irq_enable",
        "irq_restore",
        "finish_task_switch",
        "handle_softirqs",
        "__do_softirq",
        "do_idle",
        "exit_to_user_mode",
        "syscall_exit_to_user_mode",
        "console_unlock",
        "vprintk_emit",
    ];
    ENDS.iter().any(|end| name.contains(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRY: &str = "asm_sysvec_apic_timer_interrupt+0x1a/0x20";

    #[test]
    fn no_frame_under_the_entry_is_user_mode() {
        assert_eq!(Interrupted::of(&["trace", ENTRY], 7), Interrupted::User);
        assert_eq!(Interrupted::of(&["trace", ENTRY], 0), Interrupted::Unknown, "idle never is");
        assert_eq!(Interrupted::of(&["el0t_64_irq_handler", "el0t_64_irq+0x1"], 7), {
            Interrupted::User
        });
        assert_eq!(Interrupted::of(&["trace", "more"], 7), Interrupted::Unknown);
        // A text that ends right there may have been cut.
        assert_eq!(Interrupted::of(&["trace", ENTRY, CUT], 7), Interrupted::Unknown);
    }

    #[test]
    fn frames_under_the_entry_are_what_was_interrupted() {
        let kernel = Interrupted::of(&["trace", ENTRY, "_raw_spin_unlock_irq+0x1/0x9", "f"], 7);
        let Interrupted::Kernel(frames) = kernel else { panic!("{kernel:?}") };
        assert_eq!(frames[1], "f");
        assert!(turns_interrupts_on(&frames[0]) && !turns_interrupts_on(&frames[1]));
    }
}
