//! Other CPUs that were idle and whose timer came late. An idle CPU holds up nobody and is held up
//! by no code: where it and the late CPU are silent at once, the machine stood still.

use std::{collections::BTreeMap, io};

use super::reader::{Reader, Visit};
use crate::{Brief, LateIdle, WakeUp};

/// So long before the due time timers are looked for that were started then.
const BEFORE_NS: u64 = 100_000_000;
/// A timer that is less late says nothing: deep idle states take that long.
const LATE_MIN_NS: u64 = 1_000_000;
/// From the interrupt to the function of a timer.
const INTERRUPT_NS: u64 = 200_000;
/// Timers of one CPU that are remembered.
const TIMERS_MAX: usize = 4_096;
/// What is kept.
const MOST: usize = 64;

/// Those whose silence overlaps a wake-up, by CPU and time.
///
/// A timer that is started anew from another CPU is remembered with its old time here; that counts
/// only if it was within the silence.
pub(super) fn late_idle(reader: &mut Reader<'_>, wake: &WakeUp) -> io::Result<Vec<LateIdle>> {
    let mut found = Vec::new();
    if wake.latency_ns() < LATE_MIN_NS {
        return Ok(found);
    }
    let decoder = reader.decoder();
    let from_ns = wake.due_ns.saturating_sub(BEFORE_NS);
    for cpu in reader.cpus().into_iter().filter(|&cpu| cpu != wake.cpu) {
        let mut timers: BTreeMap<u64, u64> = BTreeMap::new();
        let (mut last_ns, mut silence) = (u64::MAX, None);
        let first = reader.page_at(cpu, from_ns)?;
        // The interrupt after it may come as late.
        let to_ns = wake.ran_ns.saturating_add(INTERRUPT_NS);
        reader.visit(cpu, first, to_ns, |visit| {
            let raw = match visit {
                Visit::Raw(raw) => raw,
                Visit::Lost(_) => {
                    timers.clear();
                    (last_ns, silence) = (u64::MAX, None);
                    return true;
                }
            };
            if raw.at_ns.saturating_sub(last_ns) >= LATE_MIN_NS
                && last_ns < wake.ran_ns
                && wake.due_ns < raw.at_ns
            {
                // An interrupt out of the idle task: idle all the while.
                let is_idle = decoder.event(cpu, raw).pid == 0;
                silence = is_idle.then_some((last_ns, raw.at_ns));
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
                    let expires_ns = timers.remove(&timer);
                    if let (Some(due_ns), Some((from_ns, to_ns))) = (expires_ns, silence)
                        && raw.at_ns.checked_sub(to_ns).is_some_and(|ns| ns <= INTERRUPT_NS)
                        && (from_ns..=to_ns - LATE_MIN_NS).contains(&due_ns)
                    {
                        found.push(LateIdle { cpu, from_ns, due_ns, to_ns });
                        silence = None;
                    }
                }
                _ => {}
            }
            found.len() < MOST
        })?;
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use crate::{
        Around, Decoder, How, LateIdle, WakeUp,
        around::window,
        testing::{At, Machine, Memory},
    };

    const MS: u64 = 1_000_000;
    const WAKE: WakeUp =
        WakeUp { tid: 7, cpu: 0, due_ns: 200 * MS, ran_ns: 260 * MS, how: How::Measured };

    fn late(machine: &Machine, events: &[At]) -> Vec<LateIdle> {
        let pages = [machine.page(events)];
        let mut memory = Memory::new(&[(1, &pages)]);
        let decoder = Decoder::new(&machine.formats);
        let found = window(&mut memory, &decoder, &WAKE, &Around::default()).expect("a window");
        found.late_idle
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
        let expected = LateIdle { cpu: 1, from_ns: 191 * MS, due_ns: 210 * MS, to_ns: 259 * MS };
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
}
