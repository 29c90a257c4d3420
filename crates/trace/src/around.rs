//! The window of one late wake-up: out of all pages, the events that concern it.
//!
//! Of the late CPU that is everything round the interval, and what was going on when it began. Of
//! the other CPUs it is what they did to that CPU, to the late task, or to those that woke it.

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, VecDeque},
    io,
};

use crate::merge::Carry;
use crate::page::{Raw, RingPage};
use crate::{Decoder, Event, EventBrief, EventData, LateTimer, Lost, Pages, WakeUp, Window, event};

/// How much round the wake-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowSize {
    /// From this long before it was due.
    pub lead_ns: u64,
    /// To this long after it ran.
    pub tail_ns: u64,
    /// Maximum number of events, without those that give the state at the beginning.
    pub events_max: usize,
}

impl Default for WindowSize {
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

/// Length of the chain of wakers.
const WAKERS_MAX: usize = 4;

/// Wake-ups among which the wakers are looked for.
const WAKINGS_MAX: usize = 1 << 16;

/// A stretch of time and its subject.
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

/// The events round a wake-up. Tasks, symbols and surroundings are not filled in.
///
/// # Errors
/// When a page cannot be read. One that can be read but not understood is a stretch in which
/// events were lost.
pub fn window(
    pages: &mut dyn Pages,
    decoder: &Decoder,
    wake: &WakeUp,
    around: &WindowSize,
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
    around: &WindowSize,
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
    // Events before a loss are no evidence for the time after it.
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
        let (has_switch, is_after_loss) = reader.summarise_page(cpu, index, from_ns)?;
        was_switched |= has_switch;
        more -= usize::from(was_switched);
        if is_after_loss || more == 0 {
            return Ok(index);
        }
    }
    Ok(first)
}

/// Wakings before the late task ran, of all CPUs by time.
fn wakings(reader: &mut Reader<'_>, subject: &Subject<'_>) -> io::Result<Vec<Waking>> {
    let mut wakings = VecDeque::new();
    let decoder = reader.decoder();
    for cpu in reader.cpus() {
        let first = reader.page_at(cpu, subject.from_ns)?;
        reader.visit(cpu, first, subject.wake.ran_ns, |visit| {
            if let Visit::Raw(raw) = visit
                && raw.at_ns >= subject.from_ns
                && let EventBrief::Waking { pid, .. } = decoder.brief(raw)
            {
                if wakings.len() == WAKINGS_MAX {
                    wakings.pop_front();
                }
                let event = decoder.event(cpu, raw);
                let in_interrupt =
                    event::flags::HARDIRQ | event::flags::SOFTIRQ | event::flags::NMI;
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
            EventBrief::Switch { prev_pid, next_pid, .. } => {
                subject.pids.contains(&prev_pid) || subject.pids.contains(&next_pid)
            }
            EventBrief::Waking { pid, target_cpu, .. }
            | EventBrief::Wakeup { pid, target_cpu, .. } => {
                subject.pids.contains(&pid) || target_cpu == subject.wake.cpu
            }
            EventBrief::TimerStart { pid, .. } => pid == subject.wake.tid,
            EventBrief::Across => across(&decoder.event(cpu, raw), subject),
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
        EventData::Migrate { pid, from_cpu, to_cpu, .. } => {
            is_ours(pid) || *from_cpu == cpu || *to_cpu == cpu
        }
        EventData::PiSetprio { pid, .. } => is_ours(pid) || is_ours(&event.pid),
        EventData::Signal { pid, .. } => is_ours(pid) || is_stop(event),
        EventData::IpiRaise { cpus, .. } => cpus.checked_shr(cpu).is_some_and(|cpus| cpus & 1 == 1),
        EventData::IpiSend { to_cpu, .. } => *to_cpu == cpu,
        EventData::Frequency { of_cpu, .. } => *of_cpu == cpu,
        EventData::Hotplug { .. } => true,
        _ => false,
    }
}

// Timers that came late because their CPU took no interrupt. On another CPU, idle, that holds up
// nobody and is held up by no code: where it and the late CPU are silent at once, the machine
// stood still. On the late CPU itself: whoever was on it was not to be interrupted, or did not
// run.

/// So long before the due time timers are looked for that were started then.
const BEFORE_NS: u64 = 100_000_000;

/// A timer that is less late is ignored: deep idle states take that long.
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
fn late_idle(reader: &mut Reader<'_>, wake: &WakeUp) -> io::Result<Vec<LateTimer>> {
    let mut found = Vec::new();
    for cpu in reader.cpus().into_iter().filter(|&cpu| cpu != wake.cpu) {
        // An interrupt out of the idle task: idle all the while.
        late(reader, wake, cpu, (|pid| pid == 0, IDLE_EXPIRES_NS), &mut found)?;
    }
    Ok(found)
}

/// The same of the late CPU itself, whoever was on it.
fn late_own(reader: &mut Reader<'_>, wake: &WakeUp) -> io::Result<Vec<LateTimer>> {
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
            EventBrief::TimerStart { timer, expires_ns, .. } => {
                if timers.len() == TIMERS_MAX {
                    timers.clear();
                }
                timers.insert(timer, expires_ns);
            }
            EventBrief::TimerExpire { timer, .. } => {
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

// A bounded number of events: those nearest to the interval of the wake-up.

/// Events of one CPU, pushed by time.
struct Nearest {
    due_ns: u64,
    ran_ns: u64,
    max: usize,
    events: VecDeque<Event>,
    kept_to_ns: u64,
    is_cut: bool,
    /// State at the first kept event, from the events before it.
    carry: Carry,
}

impl Nearest {
    fn new(wake: &WakeUp, max: usize) -> Self {
        Self {
            due_ns: wake.due_ns,
            ran_ns: wake.ran_ns,
            max,
            events: VecDeque::new(),
            kept_to_ns: u64::MAX,
            is_cut: false,
            carry: Carry::default(),
        }
    }

    /// The next event; `false`: none that follows can be kept.
    fn push(&mut self, at_ns: u64, event: impl FnOnce() -> Event) -> bool {
        if self.events.len() < self.max {
            self.events.push_back(event());
            return true;
        }
        self.is_cut = true;
        let front_ns = self.events.front().map_or(self.due_ns, |front| front.at_ns);
        let is_behind = at_ns > self.ran_ns;
        if is_behind && self.due_ns.saturating_sub(front_ns) <= at_ns - self.ran_ns {
            self.kept_to_ns = self.events.back().map_or(0, |back| back.at_ns);
            return false;
        }
        if let Some(front) = self.events.pop_front() {
            self.carry.event(front);
            self.events.push_back(event());
        }
        true
    }

    /// Whether any was left out.
    const fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// From when to when all that were pushed are kept.
    fn kept(&self) -> (u64, u64) {
        let is_front_cut = self.is_cut && self.events.len() == self.max;
        let front_ns = self.events.front().filter(|_| is_front_cut).map_or(0, |event| event.at_ns);
        (front_ns, self.kept_to_ns)
    }

    fn into_events(self) -> Vec<Event> {
        self.events.into()
    }
}

/// Keeps at most `max` of events of several CPUs. Whether any was left out.
fn keep_nearest(events: &mut Vec<Event>, wake: &WakeUp, max: usize) -> bool {
    if events.len() <= max {
        return false;
    }
    events.sort_by_key(|event| {
        wake.due_ns.saturating_sub(event.at_ns).max(event.at_ns.saturating_sub(wake.ran_ns))
    });
    events.truncate(max);
    // Within one CPU by time again.
    events.sort_by_key(|event| (event.cpu, event.at_ns));
    true
}

// Walking one CPU's pages from a place found by time, decoding only those that are needed.

/// What a walk meets.
enum Visit<'a> {
    Raw(&'a Raw<'a>),
    /// A stretch in which events were lost, or could not be read. From 0: the beginning is unknown.
    Lost(Lost),
}

/// Pages and the buffer for one of them.
struct Reader<'a> {
    pages: &'a mut dyn Pages,
    decoder: &'a Decoder,
    buffer: Vec<u8>,
}

impl<'a> Reader<'a> {
    fn new(pages: &'a mut dyn Pages, decoder: &'a Decoder) -> Self {
        Self { pages, decoder, buffer: Vec::new() }
    }

    fn cpus(&self) -> Vec<u32> {
        self.pages.cpus().to_vec()
    }

    const fn decoder(&self) -> &'a Decoder {
        self.decoder
    }

    fn carried(&self, cpu: u32) -> &[Event] {
        self.pages.carried(cpu)
    }

    /// From when to when the events of a CPU are complete. If that is not recorded: from its first
    /// page to the last event of the trace, looked for only if it is before `to_ns`.
    fn covered(&mut self, cpu: u32, to_ns: u64) -> io::Result<(u64, u64)> {
        if let Some(covered) = self.pages.covered(cpu) {
            return Ok(covered);
        }
        if self.pages.count(cpu) == 0 {
            return Ok((u64::MAX, 0));
        }
        let from_ns = self.stamp(cpu, 0)?;
        let mut last_ns = self.last(cpu)?;
        for other in self.cpus() {
            if last_ns >= to_ns {
                break;
            }
            last_ns = last_ns.max(self.last(other)?);
        }
        Ok((from_ns, last_ns))
    }

    /// The last page that begins before a time, or the first.
    fn page_at(&mut self, cpu: u32, at_ns: u64) -> io::Result<usize> {
        let (mut low, mut high) = (0, self.pages.count(cpu));
        while low < high {
            let middle = low + (high - low) / 2;
            if self.stamp(cpu, middle)? < at_ns {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(low.saturating_sub(1))
    }

    /// Of a page: whether a task was switched to in it before a time, and whether events were lost
    /// just before it.
    fn summarise_page(
        &mut self,
        cpu: u32,
        index: usize,
        before_ns: u64,
    ) -> io::Result<(bool, bool)> {
        self.pages.read(cpu, index, &mut self.buffer)?;
        let Ok(page) = RingPage::parse(self.decoder.layout(), &self.buffer) else {
            return Ok((false, true));
        };
        let mut records = page.records().map_while(Result::ok);
        let has_switch = records.any(|raw| {
            raw.at_ns < before_ns && matches!(self.decoder.brief(&raw), EventBrief::Switch { .. })
        });
        Ok((has_switch, page.missed().is_some()))
    }

    /// Visits what is in the pages from `first` on up to a time, until it returns `false`.
    fn visit(
        &mut self,
        cpu: u32,
        first: usize,
        to_ns: u64,
        mut visit: impl FnMut(Visit<'_>) -> bool,
    ) -> io::Result<()> {
        let mut last_ns = 0;
        let mut is_broken = false;
        for index in first..self.pages.count(cpu) {
            self.pages.read(cpu, index, &mut self.buffer)?;
            let Ok(page) = RingPage::parse(self.decoder.layout(), &self.buffer) else {
                is_broken = true;
                continue;
            };
            let missed = page.missed();
            if is_broken || missed.is_some() {
                let count = missed.and_then(|missed| missed.count).filter(|_| !is_broken);
                let lost = Lost { from_ns: last_ns, to_ns: page.at_ns(), count };
                if !visit(Visit::Lost(lost)) {
                    return Ok(());
                }
                is_broken = false;
            }
            if page.at_ns() > to_ns {
                return Ok(());
            }
            for record in page.records() {
                let Ok(raw) = record else {
                    is_broken = true;
                    break;
                };
                if raw.at_ns > to_ns || !visit(Visit::Raw(&raw)) {
                    return Ok(());
                }
                last_ns = raw.at_ns;
            }
        }
        if is_broken {
            visit(Visit::Lost(Lost { from_ns: last_ns, to_ns: to_ns.max(last_ns), count: None }));
        }
        Ok(())
    }

    fn count(&self, cpu: u32) -> usize {
        self.pages.count(cpu)
    }

    /// When a page begins; one too short to say begins when the one before does.
    fn stamp(&mut self, cpu: u32, index: usize) -> io::Result<u64> {
        for index in (0..=index).rev() {
            self.pages.read(cpu, index, &mut self.buffer)?;
            if let Some(at_ns) = self.decoder.layout().stamp_ns(&self.buffer) {
                return Ok(at_ns);
            }
        }
        Ok(0)
    }

    /// When the last event of a CPU was, 0: it has none.
    fn last(&mut self, cpu: u32) -> io::Result<u64> {
        let Some(index) = self.pages.count(cpu).checked_sub(1) else { return Ok(0) };
        self.pages.read(cpu, index, &mut self.buffer)?;
        let Ok(page) = RingPage::parse(self.decoder.layout(), &self.buffer) else {
            return Ok(0);
        };
        let last = page.records().map_while(Result::ok).last();
        Ok(last.map_or(page.at_ns(), |raw| raw.at_ns))
    }
}

// Signals that stop a process. They go to its main thread, which may have to wait for a CPU: the
// others stop that much later, and the signal is older than the window.

/// SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU.
const STOPS: [i32; 4] = [19, 20, 21, 22];

/// Those of all CPUs from shortly before a time.
fn stops(reader: &mut Reader<'_>, before_ns: u64) -> io::Result<Vec<Event>> {
    let mut stops = Vec::new();
    let decoder = reader.decoder();
    let from_ns = before_ns.saturating_sub(BEFORE_NS);
    for cpu in reader.cpus() {
        let first = reader.page_at(cpu, from_ns)?;
        reader.visit(cpu, first, before_ns.saturating_sub(1), |visit| {
            if let Visit::Raw(raw) = visit
                && raw.at_ns >= from_ns
                && matches!(decoder.brief(raw), EventBrief::Across)
            {
                stops.extend(Some(decoder.event(cpu, raw)).filter(is_stop));
            }
            true
        })?;
    }
    Ok(stops)
}

/// Whether an event is such a signal.
fn is_stop(event: &Event) -> bool {
    matches!(&event.what, EventData::Signal { number, .. } if STOPS.contains(number))
}

#[cfg(test)]
mod late_timers_tests {
    use super::{WindowSize, window};
    use crate::testing::{At, Machine, Memory};
    use crate::{Decoder, LateTimer, WakeUp, WakeUpBasis, Window};

    const MS: u64 = 1_000_000;
    const WAKE: WakeUp =
        WakeUp { tid: 7, cpu: 0, due_ns: 200 * MS, ran_ns: 260 * MS, how: WakeUpBasis::Measured };

    /// What a CPU wrote; the late one is CPU 0.
    fn window_of(machine: &Machine, cpu: u32, events: &[At]) -> Window {
        let pages = [machine.page(events)];
        let mut memory = Memory::new(&[(cpu, &pages)]);
        let decoder = Decoder::new(&machine.formats);
        window(&mut memory, &decoder, &WAKE, &WindowSize::default()).expect("a window")
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
        let found = late(&m, &[start.clone(), idle.clone(), timer(&m, 261, 0, "expire_entry", 0)]);
        assert!(found.is_empty(), "after it ran: {found:?}");
        let come = timer(&m, 259, 0, "expire_entry", 0);
        let found = late(&m, &[start.clone(), idle.clone(), come.clone()]);
        let expected = LateTimer { cpu: 1, from_ns: 191 * MS, due_ns: 210 * MS, to_ns: 259 * MS };
        assert_eq!(found, [expected]);
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
    fn a_timer_of_the_late_cpu_is_reported_whatever_ran() {
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
        let found: Vec<u64> = window.late_own.iter().map(|late| late.to_ns).collect();
        assert_eq!(found, [258 * MS + MS / 2], "the end of the silence");
    }
}

#[cfg(test)]
mod stops_tests {
    use super::{WindowSize, window};
    use crate::testing::KERNELS;
    use crate::{Decoder, Store, WakeUp, WakeUpBasis};

    #[test]
    fn a_stop_is_found_that_is_older_than_the_window() {
        let kernel = KERNELS[0];
        let formats = kernel.formats();
        let mut store = Store::new(Decoder::new(&formats), 1 << 20);
        let signal = |number: i64| {
            let record = kernel.record(&formats, "signal:signal_generate").pid(7);
            record.set("sig", number).set("pid", 40).bytes("comm", b"app").data
        };
        let page = kernel.page(1_000);
        let page = page.event(2_000_000, &signal(19)).event(160_000_000, &signal(15));
        let page = page.event(170_000_000, &signal(19)).event(210_000_000, &signal(19)).done();
        store.push(0, &page).unwrap();
        store.note_read(0, 300_000_000);
        let wake = WakeUp {
            tid: 41,
            cpu: 1,
            due_ns: 205_000_000,
            ran_ns: 220_000_000,
            how: WakeUpBasis::Measured,
        };
        let decoder = Decoder::new(&formats);
        let window = window(&mut store, &decoder, &wake, &WindowSize::default()).unwrap();
        let times: Vec<u64> = window.events.iter().map(|event| event.at_ns).collect();
        // Not the first, long ago, and not SIGTERM; the last lies within.
        assert_eq!(times, [170_000_000, 210_000_000]);
    }
}
