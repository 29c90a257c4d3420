//! What the reader of a program's record must know.

use rtproof_model::run::APPLICATION;
use rtproof_record::run::{Note, ThreadInfo};

fn note(at_ns: u64, id: &str, weakens: bool, text: String) -> Note {
    Note { at_ns, id: id.into(), text, weakens }
}

/// Whose wake-ups these are.
pub(super) fn whose() -> Note {
    let text = "The wake-ups are those of the program's own threads, as the kernel's events show \
                them. The load was what ran beside it; rtproof started none. What it does \
                after it woke is not seen. Nor are cycles that it leaves out by itself.";
    note(0, "application", false, text.into())
}

/// A host counter that is not read.
pub(super) fn not_sampled(what: &str) -> Note {
    note(0, "not-sampled", false, format!("{what}."))
}

/// A thread without a period.
pub(super) fn no_period(name: &str, tid: i32) -> Note {
    let text = format!(
        "Thread {name} ({tid}) is not woken by a timer at one period. Whether it missed cycles is \
         not known; the time that it covers follows from its mean interval."
    );
    note(0, "no-period", false, text)
}

/// A thread that ran on several CPUs.
pub(super) fn moved(at_ns: u64, of: &ThreadInfo) -> Note {
    let name = of.workload.trim_start_matches(APPLICATION);
    let text = format!(
        "Thread {name} ({}) ran on other CPUs, too; it is listed under CPU {}, that of its first \
         wake-up.",
        of.tid, of.cpu
    );
    note(at_ns, "thread-moved", false, text)
}

/// Wake-ups that may be missing.
pub(super) fn lost(at_ns: u64, events: u64, wake_ups: u64) -> Vec<Note> {
    let mut notes = Vec::new();
    if events > 0 {
        let text = format!("{events} kernel events were lost, and wake-ups may be lost with them.");
        notes.push(note(at_ns, "events-lost", true, text));
    }
    if wake_ups > 0 {
        let text = format!(
            "At least {wake_ups} wake-ups or threads are not in the record: there were too many."
        );
        notes.push(note(at_ns, "wake-ups-left-out", true, text));
    }
    notes
}

/// Wake-ups without an end.
pub(super) fn unseen(at_ns: u64, wake_ups: u64) -> Option<Note> {
    let text = format!(
        "The kernel did not record when {wake_ups} wake-ups of the program's threads ended: they \
         are not in the record. Some kernels leave out switches from the idle task."
    );
    (wake_ups > 0).then(|| note(at_ns, "wake-ups-unseen", true, text))
}

/// Wake-ups whose end is a bound.
pub(super) fn inferred(at_ns: u64, wake_ups: u64) -> Option<Note> {
    let text = format!(
        "The kernel did not record the switch to the thread in {wake_ups} wake-ups: each is \
         counted with a bound as its end. Those on time were at most that late, the late ones at \
         least."
    );
    (wake_ups > 0).then(|| note(at_ns, "wake-ups-inferred", false, text))
}

/// How the program ended, if not by itself with 0.
pub(super) fn ended(at_ns: u64, how: &str) -> Note {
    note(at_ns, "program-ended", false, format!("The program {how}."))
}
