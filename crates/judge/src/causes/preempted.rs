//! A task of higher priority ran.

use super::{
    claim::{Cause, Claim, Kind},
    names,
    order::{Order, order},
    scene::{Moment, Phase},
};

/// A task of higher priority.
#[derive(Debug)]
pub(super) struct Preempted;

impl Cause for Preempted {
    fn id(&self) -> &'static str {
        "preempted"
    }

    fn kind(&self) -> Kind {
        Kind::Scheduling
    }

    fn title(&self) -> &'static str {
        "a task of higher priority"
    }

    fn about(&self) -> &'static str {
        "the thread was runnable and a task that outranks it was on the CPU"
    }

    fn source(&self) -> &'static str {
        "sched(7); Wu, \"Real-time programming with Linux, part 2\" (multipathd at SCHED_RR 99)"
    }

    fn checks(&self) -> &'static [&'static str] {
        &["rogue-rt-tasks", "prio-99", "app-outranked"]
    }

    fn claims(&self, moment: &Moment<'_>) -> Option<Claim> {
        if moment.phase != Phase::Runnable || !moment.is_task() || order(moment) != Order::Above {
            return None;
        }
        let scene = moment.scene;
        let tid = moment.cpu.task;
        let claim = Claim::by(names::task(scene, tid, moment.cpu.prio));
        let claim = claim.detail(names::task_detail(scene, tid)).owner(names::owner(scene, tid));
        Some(names::against_task(claim, scene, tid))
    }
}
