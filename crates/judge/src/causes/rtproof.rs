//! rtproof's own other threads.

use rtproof_trace::How;

use super::{
    claim::{Cause, Claim, Kind},
    names,
    scene::{Moment, Phase},
};

/// Rtproof itself.
#[derive(Debug)]
pub(super) struct Rtproof;

impl Cause for Rtproof {
    fn id(&self) -> &'static str {
        "rtproof"
    }

    fn kind(&self) -> Kind {
        Kind::Scheduling
    }

    fn title(&self) -> &'static str {
        "rtproof itself"
    }

    fn about(&self) -> &'static str {
        "another thread of the measuring process was running"
    }

    fn source(&self) -> &'static str {
        "crates/measure: who empties the results of the measuring threads"
    }

    fn checks(&self) -> &'static [&'static str] {
        &[]
    }

    fn claims(&self, moment: &Moment<'_>) -> Option<Claim> {
        let scene = moment.scene;
        if scene.wake.how != How::Measured || !moment.is_task() || moment.phase != Phase::Runnable {
            return None;
        }
        let ours = scene.task(scene.wake.tid)?.tgid;
        let theirs = scene.task(moment.cpu.task)?;
        // Another measuring thread on the same CPU is no housekeeping.
        let is_own = ours > 0 && theirs.tgid == ours && moment.cpu.task != scene.wake.tid;
        is_own.then(|| {
            Claim::by(names::task(scene, moment.cpu.task, moment.cpu.prio))
                .manual("leave a CPU unmeasured for housekeeping: --cpus without it")
        })
    }
}
