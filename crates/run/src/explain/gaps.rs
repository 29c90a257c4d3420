//! What leaves open whether more wake-ups were late than were found: clauses, for an answer that
//! none was.

use rtproof_host::CpuList;
use rtproof_judge::units;
use rtproof_trace::scan::Totals;

/// Wake-ups without an end.
pub(super) fn unseen<'a>(totals: impl Iterator<Item = &'a Totals>) -> Option<String> {
    let unseen: u64 = totals.map(|of| of.unseen).sum();
    (unseen > 0).then(|| {
        format!("when the thread ran was not recorded in {}", units::count(unseen, "wake-up"))
    })
}

/// Wake-ups that are counted with a bound as their end: notes.
pub(crate) fn inferred<'a>(totals: impl Iterator<Item = &'a Totals>) -> Vec<String> {
    let (at_most, at_least) = totals
        .fold((0, 0), |(at_most, at_least), of| (at_most + of.inferred, at_least + of.at_least));
    let note = |count: u64, end: &str, bound: &str| {
        (count > 0).then(|| {
            format!(
                "{} counted up to {end}, as the switch to the thread was not recorded: {bound} \
                 that late.",
                if count == 1 { "1 wake-up is".into() } else { format!("{count} wake-ups are") }
            )
        })
    };
    let on_time = note(at_most, "the thread's next event", "at most");
    let late = note(at_least, "the last event of the task before it", "at least");
    on_time.into_iter().chain(late).collect()
}

/// Events that the kernel could not keep.
pub(super) fn lost(events: u64) -> Option<String> {
    (events > 0).then(|| format!("lost: {}", units::count(events, "kernel event")))
}

/// Why how late a wake-up was may be wrong: events that contradict each other, time that goes back,
/// CPUs of which events are missing.
pub(super) fn doubts(misfits: u64, reversals: u64, silent: &[u32]) -> Vec<String> {
    let places = |count: u64| (count > 0).then(|| units::count(count, "place"));
    let misfits = places(misfits).map(|places| {
        format!(
            "its events contradict each other in {places}: others are missing, and nothing marks \
             them"
        )
    });
    let reversals = places(reversals)
        .map(|places| format!("its lines are not in the order of time in {places}: sort them"));
    let cpus = CpuList::new(silent.iter().copied());
    let silent = (!cpus.is_empty())
        .then(|| format!("it lacks events of CPU {cpus}: what ran there is not known"));
    [misfits, reversals, silent].into_iter().flatten().collect()
}
