//! A threaded interrupt handler ran ahead of the thread.

use super::{
    cause::{Attribution, Cause, Kind},
    names,
    order::{Order, changed, order},
    scene::{Moment, Phase},
};

pub(super) const CAUSE: Cause = Cause {
    id: "irq-thread",
    kind: Kind::Interrupt,
    title: "an interrupt thread",
    about: "a thread irq/N-name of higher or equal priority was running",
    source: "kernel/irq/manage.c (irq_thread); szg, \"SCHED_FIFO on Raspberry Pi and Debian\"",
    checks: &["irq-thread-affinity", "irq-affinity", "app-irq-threads"],
    attribute,
};

fn attribute(moment: &Moment<'_>) -> Option<Attribution> {
    let order = order(moment);
    let above = !matches!(order, Order::Below | Order::UnknownAndHeld);
    if moment.phase != Phase::Runnable || !moment.is_task() || !above {
        return None;
    }
    let scene = moment.scene;
    let name = names::comm(scene, moment.cpu.task);
    let rest = name.strip_prefix("irq/")?;
    let (irq, driver) = rest.split_once('-').unwrap_or((rest, ""));
    let attribution = Attribution::by(names::task(scene, moment.cpu.task, moment.cpu.prio));
    let attribution = attribution.detail(names::task_detail(scene, moment.cpu.task));
    let attribution =
        attribution.detail(changed(moment)).owner((!driver.is_empty()).then(|| driver.to_owned()));
    let others: &[&str] = if order == Order::Unknown { &["preempt-off"] } else { &[] };
    Some(attribution.or(others).manual(format!(
        "move IRQ {irq} to another CPU, or give the application a higher priority than the \
         thread"
    )))
}
