//! Timers that came late because their CPU took no interrupt. On another CPU, idle, that holds up
//! nobody and is held up by no code: where it and the late CPU are silent at once, the machine
//! stood still. On the late CPU itself: whoever was on it was not to be interrupted, or did not
//! run.

use std::{collections::BTreeMap, io};

use super::reader::{Reader, Visit};
use crate::{Brief, LateTimer, WakeUp};

/// So long before the due time timers are looked for that were started then.
const BEFORE_NS: u64 = 100_000_000;
/// A timer that is less late says nothing: deep idle states take that long.
const LATE_MIN_NS: u64 = 1_000_000;
/// From the end of a silence to the function of a timer that was due in it: where the CPU was idle,
/// the interrupt itself ends it.
const IDLE_EXPIRES_NS: u64 = 200_000;
/// Else the code that was on the CPU may first go on for a little. No timer of ticks is behind
/// for so long that it would be taken for another.
const OWN_EXPIRES_NS: u64 = 10_000_000;
/// Timers of one CPU that are remembered.
const TIMERS_MAX: usize = 4_096;
const MOST: usize = 64;

/// Those whose silence overlaps a wake-up, by CPU and time: of idle CPUs other than the late one.
pub(super) fn late_idle(reader: &mut Reader<'_>, wake: &WakeUp) -> io::Result<Vec<LateTimer>> {
    let mut found = Vec::new();
    for cpu in reader.cpus().into_iter().filter(|&cpu| cpu != wake.cpu) {
        // An interrupt out of the idle task: idle all the while.
        late(reader, wake, cpu, (|pid| pid == 0, IDLE_EXPIRES_NS), &mut found)?;
    }
    Ok(found)
}

/// The same of the late CPU itself, whoever was on it.
pub(super) fn late_own(reader: &mut Reader<'_>, wake: &WakeUp) -> io::Result<Vec<LateTimer>> {
    let mut found = Vec::new();
    late(reader, wake, wake.cpu, (|_| true, OWN_EXPIRES_NS), &mut found)?;
    Ok(found)
}

/// Those of one CPU: silences that end with an event of a task that counts, and timers that expire
/// so long after them at most.
///
/// A timer that is started anew from another CPU is remembered with its old time here; that counts
/// only if it was within the silence.
fn late(
    reader: &mut Reader<'_>,
    wake: &WakeUp,
    cpu: u32,
    (counts, expires_ns): (impl Fn(i32) -> bool, u64),
    found: &mut Vec<LateTimer>,
) -> io::Result<()> {
    if wake.latency_ns() < LATE_MIN_NS {
        return Ok(());
    }
    let decoder = reader.decoder();
    let mut timers: BTreeMap<u64, u64> = BTreeMap::new();
    // Each of at least LATE_MIN_NS, and the last few: timers may expire so long after them.
    let mut silences: Vec<(u64, u64)> = Vec::new();
    let mut last_ns = u64::MAX;
    let first = reader.page_at(cpu, wake.due_ns.saturating_sub(BEFORE_NS))?;
    let to_ns = wake.ran_ns.saturating_add(expires_ns);
    reader.visit(cpu, first, to_ns, |visit| {
        let raw = match visit {
            Visit::Raw(raw) => raw,
            Visit::Lost(_) => {
                timers.clear();
                silences.clear();
                last_ns = u64::MAX;
                return true;
            }
        };
        if raw.at_ns.saturating_sub(last_ns) >= LATE_MIN_NS
            && last_ns < wake.ran_ns
            && wake.due_ns < raw.at_ns
            && counts(decoder.event(cpu, raw).pid)
        {
            silences.retain(|&(_, to_ns)| raw.at_ns.saturating_sub(to_ns) <= expires_ns);
            silences.push((last_ns, raw.at_ns));
        }
        last_ns = raw.at_ns;
        match decoder.brief(raw) {
            Brief::TimerStart { timer, expires_ns, .. } => {
                if timers.len() == TIMERS_MAX {
                    timers.clear();
                }
                timers.insert(timer, expires_ns);
            }
            Brief::TimerExpire { timer, .. } => {
                let due_ns = timers.remove(&timer);
                let within = |&(from_ns, to_ns): &(u64, u64)| {
                    let was_due = |due_ns| (from_ns..=to_ns - LATE_MIN_NS).contains(&due_ns);
                    due_ns.is_some_and(was_due) && raw.at_ns.saturating_sub(to_ns) <= expires_ns
                };
                if let (Some(due_ns), Some(at)) = (due_ns, silences.iter().position(within)) {
                    let (from_ns, to_ns) = silences.swap_remove(at);
                    found.push(LateTimer { cpu, from_ns, due_ns, to_ns });
                }
            }
            _ => {}
        }
        found.len() < MOST
    })
}

#[cfg(test)]
mod tests {
    use crate::{
        Around, Decoder, How, LateTimer, WakeUp, Window,
        around::window,
        testing::{At, Machine, Memory},
    };

    const MS: u64 = 1_000_000;
    const WAKE: WakeUp =
        WakeUp { tid: 7, cpu: 0, due_ns: 200 * MS, ran_ns: 260 * MS, how: How::Measured };

    /// What a CPU wrote; the late one is CPU 0.
    fn window_of(machine: &Machine, cpu: u32, events: &[At]) -> Window {
        let pages = [machine.page(events)];
        let mut memory = Memory::new(&[(cpu, &pages)]);
        let decoder = Decoder::new(&machine.formats);
        window(&mut memory, &decoder, &WAKE, &Around::default()).expect("a window")
    }

    fn late(machine: &Machine, events: &[At]) -> Vec<LateTimer> {
        let window = window_of(machine, 1, events);
        assert!(window.late_own.is_empty());
        window.late_idle
    }

    fn timer(machine: &Machine, at_ms: u64, pid: i32, name: &str, expires_ms: i64) -> At {
        let name = format!("timer:hrtimer_{name}");
        let fields: &[(&str, i64)] = match name.ends_with("start") {
            true => &[("hrtimer", 77), ("expires", expires_ms * 1_000_000)],
            false => &[("hrtimer", 77)],
        };
        machine.event(at_ms * MS, pid, &name, fields)
    }

    #[test]
    fn an_idle_cpu_whose_timer_came_late_is_a_witness() {
        let m = Machine::new();
        let start = timer(&m, 190, 5, "start", 210);
        let idle = m.switch(191 * MS, 5, 0);
        let told = late(&m, &[start.clone(), idle.clone(), timer(&m, 261, 0, "expire_entry", 0)]);
        assert!(told.is_empty(), "after it ran: {told:?}");
        let come = timer(&m, 259, 0, "expire_entry", 0);
        let told = late(&m, &[start.clone(), idle.clone(), come.clone()]);
        let expected = LateTimer { cpu: 1, from_ns: 191 * MS, due_ns: 210 * MS, to_ns: 259 * MS };
        assert_eq!(told, [expected]);
        // In time, of another timer, or the CPU was busy.
        let in_time = timer(&m, 190, 5, "start", 259);
        assert!(late(&m, &[in_time, idle.clone(), come.clone()]).is_empty());
        assert!(late(&m, &[idle.clone(), come.clone()]).is_empty());
        let busy = timer(&m, 259, 5, "expire_entry", 0);
        assert!(late(&m, &[start.clone(), idle.clone(), busy]).is_empty());
        // It was due before it was silent: it is an old time.
        let old = timer(&m, 190, 5, "start", 150);
        assert!(late(&m, &[old, idle, come]).is_empty());
    }

    #[test]
    fn a_timer_of_the_late_cpu_is_told_whoever_was_on_it() {
        let m = Machine::new();
        let (start, to) = (timer(&m, 190, 7, "start", 210), m.switch(199 * MS, 5, 7));
        for pid in [0, 5, 7] {
            let come = timer(&m, 259, pid, "expire_entry", 0);
            let window = window_of(&m, 0, &[start.clone(), to.clone(), come]);
            let due_ns = 210 * MS;
            let expected = LateTimer { cpu: 0, from_ns: 199 * MS, due_ns, to_ns: 259 * MS };
            assert_eq!(window.late_own, [expected]);
            assert!(window.late_idle.is_empty());
        }
        // It was at work meanwhile, and the interrupt came at once.
        let works = m.switch(258 * MS + MS / 2, 7, 7);
        let window = window_of(&m, 0, &[start, to, works, timer(&m, 259, 7, "expire_entry", 0)]);
        let told: Vec<u64> = window.late_own.iter().map(|late| late.to_ns).collect();
        assert_eq!(told, [258 * MS + MS / 2], "the end of the silence");
    }
}
