//! The thread had not finished what came before.

use super::{
    claim::{Cause, Claim, Kind},
    names,
    scene::{Moment, Phase},
};

/// The thread's own previous cycle.
#[derive(Debug)]
pub(super) struct OwnCycle;

impl Cause for OwnCycle {
    fn id(&self) -> &'static str {
        "own-cycle"
    }

    fn kind(&self) -> Kind {
        Kind::Own
    }

    fn title(&self) -> &'static str {
        "the thread's own previous cycle"
    }

    fn about(&self) -> &'static str {
        "when the wake-up was due the thread was still running and had not started its timer"
    }

    fn source(&self) -> &'static str {
        "Codethink, \"Configuring Linux systems to stabilise latency\"; clock_nanosleep(2), \
         TIMER_ABSTIME"
    }

    fn checks(&self) -> &'static [&'static str] {
        &["app-policy"]
    }

    fn claims(&self, moment: &Moment<'_>) -> Option<Claim> {
        if moment.phase != Phase::OwnCycle || !moment.is_task() || moment.cpu.softirq.is_some() {
            return None;
        }
        let runs = moment.cpu.task == moment.scene.wake.tid || moment.cpu.task < 0;
        runs.then(|| {
            Claim::by(names::comm(moment.scene, moment.scene.wake.tid)).manual(
                "its cycle takes longer than its period: shorten the work or lengthen the period",
            )
        })
    }
}
