//! Which of two tasks runs first.

use super::scene::Moment;

/// First priority of fair tasks in the kernel's scale.
pub(super) const FAIR: i32 = 100;

/// How the task of a moment stands to the late thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// It runs ahead.
    Above,
    /// They take turns, or wait for each other.
    Equal,
    /// It should give way.
    Below,
    /// Nothing is known of one of them.
    Unknown,
}

/// Compares the task on the CPU with the late thread.
pub(super) fn order(moment: &Moment<'_>) -> Order {
    let (Some(theirs), Some(ours)) = (theirs(moment), moment.scene.prio) else {
        return Order::Unknown;
    };
    if moment.cpu.task == 0 {
        return Order::Below;
    }
    if theirs >= FAIR && ours >= FAIR {
        // Fair tasks take turns, whatever their nice values are.
        return Order::Equal;
    }
    match theirs.cmp(&ours) {
        std::cmp::Ordering::Less => Order::Above,
        std::cmp::Ordering::Equal => Order::Equal,
        std::cmp::Ordering::Greater => Order::Below,
    }
}

/// Priority of the task on the CPU: as the switch to it recorded, which includes inheritance.
fn theirs(moment: &Moment<'_>) -> Option<i32> {
    moment.cpu.prio.or_else(|| {
        let task = moment.scene.task(moment.cpu.task)?;
        let rt = i32::try_from(task.rt_priority).ok()?;
        Some(if rt > 0 { 99 - rt } else { 120 + task.nice })
    })
}
