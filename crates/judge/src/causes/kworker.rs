//! Deferred work of the kernel ran ahead of the thread.

use super::{
    claim::{Cause, Claim, Kind},
    names,
    order::{Order, order},
    scene::{Moment, Phase},
};
use crate::Remedy;

/// Work of the kernel (kworker).
#[derive(Debug)]
pub(super) struct Kworker;

impl Cause for Kworker {
    fn id(&self) -> &'static str {
        "kworker"
    }

    fn kind(&self) -> Kind {
        Kind::Scheduling
    }

    fn title(&self) -> &'static str {
        "work of the kernel (kworker)"
    }

    fn about(&self) -> &'static str {
        "a kworker was running; workqueue_execute_start names the function"
    }

    fn source(&self) -> &'static str {
        "kernel/workqueue.c; Wu, \"Real-time programming with Linux, part 2\" (vmstat every second)"
    }

    fn checks(&self) -> &'static [&'static str] {
        &["workqueue-cpumask", "stat-interval"]
    }

    fn claims(&self, moment: &Moment<'_>) -> Option<Claim> {
        let above = matches!(order(moment), Order::Above | Order::Equal);
        if moment.phase != Phase::Runnable || !moment.is_task() || !above {
            return None;
        }
        let scene = moment.scene;
        let name = names::comm(scene, moment.cpu.task);
        if !name.starts_with("kworker/") {
            return None;
        }
        let function = moment.cpu.work.map(|address| names::function(scene, address));
        let culprit =
            function.map_or_else(|| name.clone(), |function| format!("{function} ({name})"));
        let owner = moment.cpu.work.and_then(|address| names::module(scene, address));
        Some(
            Claim::by(culprit).owner(owner).remedy(Remedy::Manual {
                text: "keep unbound work off this CPU: /sys/devices/virtual/workqueue/cpumask, \
                   isolcpus=domain, nohz_full="
                    .into(),
            }),
        )
    }
}
