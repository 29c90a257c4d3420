//! The window of one late wake-up: out of all pages, the events that concern it.
//!
//! Of the late CPU that is everything round the interval, and what was going on when it began. Of
//! the other CPUs it is what they did to that CPU, to the late task, or to those that woke it.

mod late_timers;
mod nearest;
mod reader;
mod stops;
#[cfg(test)]
mod tests;

use std::{collections::VecDeque, io};

use crate::{Brief, Decoder, Event, Pages, WakeUp, What, Window, event::flags};
use late_timers::{late_idle, late_own};
use nearest::{Nearest, keep_nearest};
use reader::{Reader, Visit};
use stops::{is_stop, stops};

/// How much round the wake-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Around {
    /// From this long before it was due.
    pub lead_ns: u64,
    /// To this long after it ran.
    pub tail_ns: u64,
    /// Events at most, beside those that tell the state at the beginning.
    pub events_max: usize,
}

impl Default for Around {
    /// 2 ms before, 0.2 ms after, 20,000 events.
    fn default() -> Self {
        Self { lead_ns: 2_000_000, tail_ns: 200_000, events_max: 20_000 }
    }
}

/// Pages that are looked through backwards for the last switch.
const CARRY_PAGES_MAX: usize = 4096;
/// Pages before that which are read for what was begun even earlier, such as a softirq that was
/// preempted.
const CARRY_PAGES_MORE: usize = 4;
/// Length of the chain of who woke whom.
const WAKERS_MAX: usize = 4;
/// Wake-ups among which the wakers are looked for.
const WAKINGS_MAX: usize = 1 << 16;

/// A stretch of time and who it is about.
struct Subject<'a> {
    wake: &'a WakeUp,
    from_ns: u64,
    to_ns: u64,
    /// The late task, and those that woke it.
    pids: Vec<i32>,
}

struct Waking {
    at_ns: u64,
    pid: i32,
    /// `None`: an interrupt.
    waker: Option<i32>,
}

/// The events round a wake-up. Tasks, symbols and the other facts beside are not filled in.
///
/// # Errors
/// When a page cannot be read. One that can be read but not understood is a stretch in which
/// events were lost.
pub fn window(
    pages: &mut dyn Pages,
    decoder: &Decoder,
    wake: &WakeUp,
    around: &Around,
) -> io::Result<Window> {
    let mut subject = Subject {
        wake,
        from_ns: wake.due_ns.saturating_sub(around.lead_ns),
        to_ns: wake.ran_ns.max(wake.due_ns).saturating_add(around.tail_ns),
        pids: vec![wake.tid],
    };
    let mut reader = Reader::new(pages, decoder);
    let mut window = Window { cpu: wake.cpu, ..Window::default() };
    let (carried, own) = late_cpu(&mut reader, &subject, around, &mut window)?;
    window.late_idle = late_idle(&mut reader, wake)?;
    window.late_own = late_own(&mut reader, wake)?;
    let wakings = wakings(&mut reader, &subject)?;
    subject.pids.extend(wakers(wake, &wakings));
    let mut others = stops(&mut reader, subject.from_ns)?;
    for cpu in reader.cpus().into_iter().filter(|&cpu| cpu != wake.cpu) {
        let mut events = Nearest::new(wake, around.events_max);
        other_cpu(&mut reader, &subject, cpu, &mut events)?;
        window.cut |= events.is_cut();
        others.extend(events.into_events());
        window.cut |= keep_nearest(&mut others, wake, around.events_max);
    }
    let room = around.events_max.saturating_sub(own.len());
    window.cut |= keep_nearest(&mut others, wake, room);
    window.events = carried;
    window.events.reserve_exact(own.len() + others.len());
    window.events.extend(own);
    window.events.extend(others);
    // Two CPUs at the same nanosecond: by number. Within one CPU the order stays.
    window.events.sort_by_key(|event| (event.at_ns, event.cpu));
    Ok(window)
}

/// Everything of the late CPU; sets what is complete and what was lost.
fn late_cpu(
    reader: &mut Reader<'_>,
    subject: &Subject<'_>,
    around: &Around,
    window: &mut Window,
) -> io::Result<(Vec<Event>, Vec<Event>)> {
    let cpu = window.cpu;
    let (covered_from_ns, covered_to_ns) = reader.covered(cpu, subject.to_ns)?;
    window.from_ns = covered_from_ns.max(subject.from_ns);
    window.to_ns = covered_to_ns.min(subject.to_ns);
    let first = carry_from(reader, cpu, subject.from_ns)?;
    let mut own = Nearest::new(subject.wake, around.events_max);
    if first == 0 {
        reader.carried(cpu).iter().for_each(|event| own.carry.event(event.clone()));
    }
    let decoder = reader.decoder();
    reader.visit(cpu, first, subject.to_ns, |visit| match visit {
        Visit::Lost(lost) => {
            if lost.from_ns < subject.from_ns {
                own.carry.clear();
            }
            if lost.from_ns < subject.to_ns && subject.from_ns < lost.to_ns {
                window.lost.push(lost);
            }
            true
        }
        Visit::Raw(raw) if raw.at_ns < subject.from_ns => {
            own.carry.feed(decoder, cpu, raw);
            true
        }
        Visit::Raw(raw) => own.push(raw.at_ns, || decoder.event(cpu, raw)),
    })?;
    window.cut = own.is_cut();
    let (kept_from_ns, kept_to_ns) = own.kept();
    window.from_ns = window.from_ns.max(kept_from_ns);
    window.to_ns = window.to_ns.min(kept_to_ns);
    let mut carried = own.carry.events();
    // What was before a loss says nothing of what is behind it.
    let lost = window.lost.iter().filter(|lost| lost.to_ns <= window.from_ns);
    if let Some(known_ns) = lost.map(|lost| lost.to_ns).max() {
        carried.retain(|event| event.at_ns >= known_ns);
    }
    Ok((carried, own.into_events()))
}

/// The page to begin at, so that the last switch before a time is seen: or the page behind the
/// last loss, because what was before that means nothing.
fn carry_from(reader: &mut Reader<'_>, cpu: u32, from_ns: u64) -> io::Result<usize> {
    if reader.count(cpu) == 0 {
        return Ok(0);
    }
    let start = reader.page_at(cpu, from_ns)?;
    let first = start.saturating_sub(CARRY_PAGES_MAX);
    let mut more = CARRY_PAGES_MORE;
    let mut was_switched = false;
    for index in (first..=start).rev() {
        let (has_switch, is_after_loss) = reader.look(cpu, index, from_ns)?;
        was_switched |= has_switch;
        more -= usize::from(was_switched);
        if is_after_loss || more == 0 {
            return Ok(index);
        }
    }
    Ok(first)
}

/// Who woke whom before the late task ran, of all CPUs by time.
fn wakings(reader: &mut Reader<'_>, subject: &Subject<'_>) -> io::Result<Vec<Waking>> {
    let mut wakings = VecDeque::new();
    let decoder = reader.decoder();
    for cpu in reader.cpus() {
        let first = reader.page_at(cpu, subject.from_ns)?;
        reader.visit(cpu, first, subject.wake.ran_ns, |visit| {
            if let Visit::Raw(raw) = visit
                && raw.at_ns >= subject.from_ns
                && let Brief::Waking { pid, .. } = decoder.brief(raw)
            {
                if wakings.len() == WAKINGS_MAX {
                    wakings.pop_front();
                }
                let event = decoder.event(cpu, raw);
                let in_interrupt = flags::HARDIRQ | flags::SOFTIRQ | flags::NMI;
                let is_task = event.flags & in_interrupt == 0 && event.pid != 0;
                let waker = is_task.then_some(event.pid);
                wakings.push_back(Waking { at_ns: event.at_ns, pid, waker });
            }
            true
        })?;
    }
    let mut wakings = Vec::from(wakings);
    wakings.sort_by_key(|waking| waking.at_ns);
    Ok(wakings)
}

/// The tasks that woke the late one, nearest first.
fn wakers(wake: &WakeUp, wakings: &[Waking]) -> Vec<i32> {
    let mut found = Vec::new();
    let (mut pid, mut before) = (wake.tid, wakings);
    while let Some(at) = before.iter().rposition(|waking| waking.pid == pid)
        && let Some(waker) = before[at].waker
        && found.len() < WAKERS_MAX
        && waker != wake.tid
        && !found.contains(&waker)
    {
        found.push(waker);
        (pid, before) = (waker, &before[..at]);
    }
    found
}

/// What another CPU did that concerns the late one or the task.
fn other_cpu(
    reader: &mut Reader<'_>,
    subject: &Subject<'_>,
    cpu: u32,
    into: &mut Nearest,
) -> io::Result<()> {
    let decoder = reader.decoder();
    let first = reader.page_at(cpu, subject.from_ns)?;
    reader.visit(cpu, first, subject.to_ns, |visit| {
        let Visit::Raw(raw) = visit else { return true };
        if raw.at_ns < subject.from_ns {
            return true;
        }
        let concerns = match decoder.brief(raw) {
            Brief::Switch { prev_pid, next_pid, .. } => {
                subject.pids.contains(&prev_pid) || subject.pids.contains(&next_pid)
            }
            Brief::Waking { pid, target_cpu, .. } | Brief::Wakeup { pid, target_cpu, .. } => {
                subject.pids.contains(&pid) || target_cpu == subject.wake.cpu
            }
            Brief::TimerStart { pid, .. } => pid == subject.wake.tid,
            Brief::Across => across(&decoder.event(cpu, raw), subject),
            _ => false,
        };
        !concerns || into.push(raw.at_ns, || decoder.event(cpu, raw))
    })
}

/// Whether an event that concerns another CPU than its own concerns this one.
fn across(event: &Event, subject: &Subject<'_>) -> bool {
    let cpu = subject.wake.cpu;
    let is_ours = |pid: &i32| subject.pids.contains(pid);
    match &event.what {
        What::Migrate { pid, from_cpu, to_cpu, .. } => {
            is_ours(pid) || *from_cpu == cpu || *to_cpu == cpu
        }
        What::PiSetprio { pid, .. } => is_ours(pid) || is_ours(&event.pid),
        What::Signal { pid, .. } => is_ours(pid) || is_stop(event),
        What::IpiRaise { cpus, .. } => cpus.checked_shr(cpu).is_some_and(|cpus| cpus & 1 == 1),
        What::IpiSend { to_cpu, .. } => *to_cpu == cpu,
        What::Frequency { of_cpu, .. } => *of_cpu == cpu,
        What::Hotplug { .. } => true,
        _ => false,
    }
}
