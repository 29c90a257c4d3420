//! The thread touched memory that was not there.

use rtproof_trace::What;

use super::{
    cause::{Attribution, Cause, Kind},
    names,
    scene::{Moment, Phase},
};

pub(super) const CAUSE: Cause = Cause {
    id: "page-fault",
    kind: Kind::Own,
    title: "a page fault of the thread",
    about: "page_fault_user or page_fault_kernel of the thread itself, until it goes on or sleeps \
        for the page",
    source: "mlockall(2); Flatscher, \"Real-time Optimizations\": lock and touch all memory before \
        the loop",
    checks: &["app-memory-locked", "app-page-faults"],
    attribute,
};

fn attribute(moment: &Moment<'_>) -> Option<Attribution> {
    let fault = moment.fault?;
    if !moment.is_task()
        || moment.cpu.task != moment.scene.wake.tid && moment.phase != Phase::Blocked
    {
        return None;
    }
    let What::PageFault { address, ip, user } = fault.what else { return None };
    let mode = if user { "user" } else { "kernel" };
    let attribution = Attribution::by(names::comm(moment.scene, moment.scene.wake.tid));
    Some(attribution.detail([format!("address {address:#x}, {mode} code at {ip:#x}")]).manual(
        "mlockall(MCL_CURRENT | MCL_FUTURE), touch stack and heap before the loop, allocate \
         nothing in it",
    ))
}
