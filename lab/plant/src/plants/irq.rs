//! Timer interrupts: each sleep ends with one. With a real-time policy they are hard interrupts on
//! PREEMPT_RT too.

use crate::args::Args;
use crate::clock::now_ns;
use crate::failure::Failure;
use crate::files;
use crate::run::Frame;

pub(super) fn irq(frame: Frame, args: &Args) -> Result<(), Failure> {
    let every_ns = args.needed_ns("every").map_err(Failure::Usage)?;
    frame.run("irq", args, |run, truth| {
        let before = interrupts();
        let mut count = 0_u64;
        let mut due_ns = run.begin_ns + every_ns;
        while !run.is_over() {
            run.sleep_until(due_ns);
            count += 1;
            due_ns = (due_ns + every_ns).max(now_ns());
        }
        truth.set("count", count);
        let counted = interrupts().zip(before).map(|(after, before)| after.saturating_sub(before));
        truth.maybe("interrupts", counted);
        Ok(())
    })
}

/// Interrupts of all CPUs since boot.
fn interrupts() -> Option<u64> {
    files::number(&files::read("/proc/stat").ok()?, "intr")
}
