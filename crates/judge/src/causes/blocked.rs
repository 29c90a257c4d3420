//! The thread waited inside the kernel.

use super::{
    cause::{Attribution, Cause, Kind},
    names,
    scene::{Moment, Phase},
};

pub(super) const CAUSE: Cause = Cause {
    id: "blocked",
    kind: Kind::Blocking,
    title: "waiting inside the kernel",
    about: "sched_switch saw the thread leave uninterruptibly (D), without a page fault before: a \
        lock, the disk, memory reclaim",
    source: "include/linux/sched.h (TASK_UNINTERRUPTIBLE)",
    checks: &["app-swapped", "swap"],
    attribute,
};

fn attribute(moment: &Moment<'_>) -> Option<Attribution> {
    if moment.phase != Phase::Blocked {
        return None;
    }
    let by = names::waker(moment.scene, moment.scene.wake.tid, moment.to_ns);
    Some(
        Attribution::by("a lock, the disk or memory").detail(by.map(|by| format!("ended by {by}"))),
    )
}
