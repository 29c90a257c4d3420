//! A threaded interrupt handler ran ahead of the thread.

use super::{
    claim::{Cause, Claim, Kind},
    names,
    order::{Order, order},
    scene::{Moment, Phase},
};

/// An interrupt thread.
#[derive(Debug)]
pub(super) struct IrqThread;

impl Cause for IrqThread {
    fn id(&self) -> &'static str {
        "irq-thread"
    }

    fn kind(&self) -> Kind {
        Kind::Interrupt
    }

    fn title(&self) -> &'static str {
        "an interrupt thread"
    }

    fn about(&self) -> &'static str {
        "a thread irq/N-name of higher or equal priority was running"
    }

    fn source(&self) -> &'static str {
        "kernel/irq/manage.c (irq_thread); szg, \"SCHED_FIFO on Raspberry Pi and Debian\""
    }

    fn checks(&self) -> &'static [&'static str] {
        &["irq-thread-affinity", "irq-affinity", "app-irq-threads"]
    }

    fn claims(&self, moment: &Moment<'_>) -> Option<Claim> {
        let above = matches!(order(moment), Order::Above | Order::Equal);
        if moment.phase != Phase::Runnable || !moment.is_task() || !above {
            return None;
        }
        let scene = moment.scene;
        let name = names::comm(scene, moment.cpu.task);
        let rest = name.strip_prefix("irq/")?;
        let (irq, driver) = rest.split_once('-').unwrap_or((rest, ""));
        let claim = Claim::by(names::task(scene, moment.cpu.task, moment.cpu.prio));
        let claim = claim.detail(names::task_detail(scene, moment.cpu.task));
        let claim = claim.owner((!driver.is_empty()).then(|| driver.to_owned()));
        Some(claim.manual(format!(
            "move IRQ {irq} to another CPU, or give the application a higher priority than the \
             thread"
        )))
    }
}
