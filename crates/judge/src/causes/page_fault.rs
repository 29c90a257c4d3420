//! The thread touched memory that was not there.

use rtproof_trace::What;

use super::{
    claim::{Cause, Claim, Kind},
    names,
    scene::{Moment, Phase},
};

/// A page fault of the thread.
#[derive(Debug)]
pub(super) struct PageFault;

impl Cause for PageFault {
    fn id(&self) -> &'static str {
        "page-fault"
    }

    fn kind(&self) -> Kind {
        Kind::Own
    }

    fn title(&self) -> &'static str {
        "a page fault of the thread"
    }

    fn about(&self) -> &'static str {
        "page_fault_user or page_fault_kernel of the thread itself, until it goes on or sleeps \
         for the page"
    }

    fn source(&self) -> &'static str {
        "mlockall(2); Flatscher, \"Real-time Optimizations\": lock and touch all memory before \
         the loop"
    }

    fn checks(&self) -> &'static [&'static str] {
        &["app-memory-locked", "app-page-faults"]
    }

    fn claims(&self, moment: &Moment<'_>) -> Option<Claim> {
        let fault = moment.fault?;
        if !moment.is_task()
            || moment.cpu.task != moment.scene.wake.tid && moment.phase != Phase::Blocked
        {
            return None;
        }
        let What::PageFault { address, ip, user } = fault.what else { return None };
        let mode = if user { "user" } else { "kernel" };
        let claim = Claim::by(names::comm(moment.scene, moment.scene.wake.tid));
        Some(claim.detail([format!("address {address:#x}, {mode} code at {ip:#x}")]).manual(
            "mlockall(MCL_CURRENT | MCL_FUTURE), touch stack and heap before the loop, allocate \
             nothing in it",
        ))
    }
}
