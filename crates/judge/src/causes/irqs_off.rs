//! Code ran with interrupts off.

use super::{
    cause::{Attribution, Cause, Kind},
    names,
    scene::{Moment, Phase},
    stack::{Interrupted, turns_interrupts_on},
    stall::is_likely,
    switch::path_ns,
};

/// Whether a function is known to keep interrupts off for milliseconds: text on a serial console
/// (drivers/tty/serial).
fn takes_long(name: &str) -> bool {
    ["console_", "vprintk", "serial8250", "uart_", "pl011_"].iter().any(|part| name.contains(part))
}

pub(super) const CAUSE: Cause = Cause {
    id: "irqs-off",
    kind: Kind::Blocking,
    title: "kernel code with interrupts off",
    about: "the timer was due, a task was on the CPU and no interrupt came. The stack at the \
        interrupt names the code, and rules out user mode, where interrupts cannot be off",
    source: "kernel/trace/trace_irqsoff.c; measured: 457 us in move_expired_inodes (wb_workfn), \
        Linux 6.18",
    checks: &["preempt-rt", "serial-console", "threadirqs"],
    attribute,
};

fn attribute(moment: &Moment<'_>) -> Option<Attribution> {
    let waits = moment.phase == Phase::TimerLate && moment.cpu.task > 0 && moment.is_task();
    let scene = moment.scene;
    let interrupted = moment.interrupted();
    if !waits || moment.whole_ns() <= path_ns(moment) || *interrupted == Interrupted::User {
        return None;
    }
    let beside = &scene.window.beside;
    let taken = beside.steal_ns.is_some_and(|ns| ns > 0) || beside.smi.is_some_and(|n| n > 0);
    let task = names::task(scene, moment.cpu.task, moment.cpu.prio);
    let Interrupted::Kernel(frames) = interrupted else {
        if taken || is_likely(moment) {
            return None;
        }
        return Some(
            Attribution::by(task).or(&["stall"]).detail(["without the stack at the interrupt \
            it may as well be the hardware or a hypervisor"
                .to_owned()]),
        );
    };
    let ends = frames.first().is_some_and(|frame| turns_interrupts_on(frame));
    // The function that turned them on is shared by all; its caller is the culprit.
    let named = frames.iter().find(|frame| !turns_interrupts_on(frame)).or(frames.first());
    let function = named.map_or("?", |frame| frame.split('+').next().unwrap_or(frame));
    let attribution = Attribution::by(format!("{function} in {task}"));
    let attribution = attribution.detail([frames.join(" ← ")]);
    let owner = frames.iter().find_map(|frame| names::module_of(frame));
    let attribution = attribution.owner(owner).manual(
        "the code named here keeps interrupts off: another driver, a newer kernel, or keep \
         what calls it off this CPU",
    );
    // Inside kernel code, while firmware or hypervisor took the CPU: a stall. In a
    // guest that is silent for long, so it is where the code had just turned interrupts on:
    // the kernel does that all the time, and few sections are that long.
    let in_midst = !ends || moment.cpu.task == scene.wake.tid;
    let is_known = || frames.iter().any(|frame| takes_long(frame));
    if taken && in_midst || is_likely(moment) && !is_known() {
        return None;
    }
    // Interrupts that come just where they are turned on were held up by that code. Elsewhere a
    // stall inside kernel code looks the same, unless the machine says there was none.
    let no_stall = beside.smi == Some(0) && beside.guest == Some(false);
    let certain = no_stall || (ends && !is_likely(moment));
    Some(if certain { attribution } else { attribution.or(&["stall"]) })
}
