//! Priority and CPUs of an application, from its threads.

use rtproof_host::{CpuList, facts::app::App};

use crate::case::rank;

/// Highest priority of the application's SCHED_FIFO and SCHED_RR threads.
pub fn priority(app: &App) -> Option<u32> {
    let scheds = app.threads().filter_map(|thread| thread.sched.value());
    scheds
        .filter(|sched| rank(sched).is_some())
        .map(|sched| sched.priority)
        .max()
        .filter(|&p| p > 0)
}

/// CPUs of the application's real-time threads, where all of them are known.
pub fn cpus(app: &App) -> Option<CpuList> {
    let mut all = CpuList::default();
    for thread in app.threads().filter(|thread| thread.is_real_time()) {
        all = all.union(&thread.status.value()?.cpus);
    }
    (!all.is_empty()).then_some(all)
}
