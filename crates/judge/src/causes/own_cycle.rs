//! The thread had not finished what came before.

use super::{
    cause::{Attribution, Cause, Kind},
    names,
    scene::{Moment, Phase},
};

pub(super) const CAUSE: Cause = Cause {
    id: "own-cycle",
    kind: Kind::Own,
    title: "the thread's own previous cycle",
    about: "when the wake-up was due the thread was still running and had not started its timer",
    source: "Codethink, \"Configuring Linux systems to stabilise latency\"; clock_nanosleep(2), \
        TIMER_ABSTIME",
    checks: &["app-policy"],
    attribute,
};

fn attribute(moment: &Moment<'_>) -> Option<Attribution> {
    if moment.phase != Phase::OwnCycle || !moment.is_task() || moment.cpu.softirq.is_some() {
        return None;
    }
    let runs = moment.cpu.task == moment.scene.wake.tid || moment.cpu.task < 0;
    runs.then(|| {
        Attribution::by(names::comm(moment.scene, moment.scene.wake.tid)).manual(
            "its cycle takes longer than its period: shorten the work or lengthen the period",
        )
    })
}
