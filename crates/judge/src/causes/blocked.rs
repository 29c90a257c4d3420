//! The thread waited inside the kernel.

use super::{
    claim::{Cause, Claim, Kind},
    names,
    scene::{Moment, Phase},
};

/// Waiting inside the kernel.
#[derive(Debug)]
pub(super) struct Blocked;

impl Cause for Blocked {
    fn id(&self) -> &'static str {
        "blocked"
    }

    fn kind(&self) -> Kind {
        Kind::Blocking
    }

    fn title(&self) -> &'static str {
        "waiting inside the kernel"
    }

    fn about(&self) -> &'static str {
        "sched_switch saw the thread leave uninterruptibly (D), without a page fault before: a \
         lock, the disk, memory reclaim"
    }

    fn source(&self) -> &'static str {
        "include/linux/sched.h (TASK_UNINTERRUPTIBLE)"
    }

    fn checks(&self) -> &'static [&'static str] {
        &["app-swapped", "swap"]
    }

    fn claims(&self, moment: &Moment<'_>) -> Option<Claim> {
        if moment.phase != Phase::Blocked {
            return None;
        }
        let by = names::waker(moment.scene, moment.scene.wake.tid, moment.to_ns);
        Some(Claim::by("a lock, the disk or memory").detail(by.map(|by| format!("ended by {by}"))))
    }
}
