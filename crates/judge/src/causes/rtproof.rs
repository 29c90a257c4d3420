//! rtproof's own other threads.

use rtproof_trace::How;

use super::{
    cause::{Attribution, Cause, Kind},
    names,
    scene::{Moment, Phase},
};

pub(super) const CAUSE: Cause = Cause {
    id: "rtproof",
    kind: Kind::Scheduling,
    title: "rtproof itself",
    about: "another thread of the measuring process was running",
    source: "crates/measure: who empties the results of the measuring threads",
    checks: &[],
    attribute,
};

fn attribute(moment: &Moment<'_>) -> Option<Attribution> {
    let scene = moment.scene;
    if scene.wake.how != How::Measured || !moment.is_task() || moment.phase != Phase::Runnable {
        return None;
    }
    let ours = scene.task(scene.wake.tid)?.tgid;
    let theirs = scene.task(moment.cpu.task)?;
    // Another measuring thread on the same CPU is no housekeeping.
    let is_own = ours > 0 && theirs.tgid == ours && moment.cpu.task != scene.wake.tid;
    is_own.then(|| {
        Attribution::by(names::task(scene, moment.cpu.task, moment.cpu.prio))
            .manual("leave a CPU unmeasured for housekeeping: --cpus without it")
    })
}
