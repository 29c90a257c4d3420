//! All CPUs' records in order of time, with few pages of each CPU in memory.

use std::{cmp::Reverse, collections::BinaryHeap, io};

use thiserror::Error;

use crate::format::PageLayout;
use crate::page::{MissedEvents, PageError, PageRecord, Raw, RingPage, Walk};
use crate::{Decoder, Event, EventData, Pages};

/// How much is read ahead of each CPU.
const AHEAD_BYTES: usize = 64 << 10;

/// And of all together.
const AHEAD_BYTES_ALL: usize = 8 << 20;

/// A record and where it comes from.
#[derive(Clone, Copy, Debug)]
pub struct Merged<'a> {
    /// CPU that wrote it.
    pub cpu: u32,
    pub raw: Raw<'a>,
    /// Events of this CPU were lost, or could not be read, just before it.
    pub missed: Option<MissedEvents>,
}

/// Why a page is missing from the stream.
#[derive(Debug, Error)]
#[error("CPU {cpu}, page {page}")]
pub struct MergeError {
    pub cpu: u32,
    /// Its number on that CPU, from 0.
    pub page: usize,
    /// What is wrong with it.
    #[source]
    pub why: MergeFault,
}

/// What is wrong with a page.
#[derive(Debug, Error)]
pub enum MergeFault {
    #[error(transparent)]
    Read(#[from] io::Error),
    /// It is not as the kernel writes it.
    #[error(transparent)]
    Page(#[from] PageError),
}

/// Merges the records of all CPUs by time; at the same nanosecond the lower CPU is first.
pub struct Merge<'p> {
    pages: &'p mut dyn Pages,
    layout: PageLayout,
    cursors: Vec<Cursor>,
    /// Times and places of the cursors that wait.
    waiting: BinaryHeap<Reverse<(u64, usize)>>,
    /// The cursor that the last record came from.
    current: Option<usize>,
}

struct Cursor {
    cpu: u32,
    next_page: usize,
    /// One page, or some that follow each other.
    buffer: Vec<u8>,
    /// Where the page in it begins that is read, and how long each is.
    page_at: usize,
    page_bytes: usize,
    walk: Walk,
    head: Option<PageRecord>,
    missed: Option<MissedEvents>,
    /// Why the page's last run ended.
    broken: Option<PageError>,
}

impl<'p> Merge<'p> {
    /// All records of these pages.
    pub fn new(pages: &'p mut dyn Pages, layout: &PageLayout) -> Self {
        let cursor = |&cpu: &u32| Cursor {
            cpu,
            next_page: 0,
            buffer: Vec::new(),
            page_at: 0,
            page_bytes: 0,
            walk: Walk::END,
            head: None,
            missed: None,
            broken: None,
        };
        let cursors: Vec<Cursor> = pages.cpus().iter().map(cursor).collect();
        // All are due at once: each reads its first page when it is its turn.
        let waiting = (0..cursors.len()).map(|at| Reverse((0, at))).collect();
        Self { pages, layout: *layout, cursors, waiting, current: None }
    }

    /// The next record; `None` at the end.
    ///
    /// # Errors
    /// When a page cannot be read or understood. What is left of it is skipped: the next call goes
    /// on behind it, with that CPU's next record marked as after a loss.
    #[expect(clippy::should_implement_trait, reason = "the record borrows from the merge")]
    #[inline]
    pub fn next(&mut self) -> Result<Option<Merged<'_>>, MergeError> {
        let Some((at, first)) = self.advance()? else { return Ok(None) };
        let cursor = &mut self.cursors[at];
        let missed = cursor.missed.take();
        Ok(Some(Merged { cpu: cursor.cpu, raw: first.raw(cursor.page()), missed }))
    }

    /// The next records of one CPU, up to where another one's turn or another page comes: the same
    /// as [`Merge::next`], in bulk. At least one; `None` at the end.
    ///
    /// # Errors
    /// As [`Merge::next`]. A record that cannot be understood ends a run, and the next call is an
    /// error.
    #[inline]
    pub fn next_run(&mut self) -> Result<Option<RecordRun<'_>>, MergeError> {
        let Some((at, first)) = self.advance()? else { return Ok(None) };
        let end = self.waiting.peek().map_or((u64::MAX, usize::MAX), |&Reverse(first)| first);
        let cursor = &mut self.cursors[at];
        Ok(Some(RecordRun {
            cpu: cursor.cpu,
            missed: cursor.missed.take(),
            mark: &mut cursor.missed,
            bytes: &cursor.buffer[cursor.page_at..cursor.page_at + cursor.page_bytes],
            // At the same nanosecond the lower CPU is first.
            end_ns: if at < end.1 { end.0 } else { end.0.saturating_sub(1) },
            first: Some(first),
            walk: &mut cursor.walk,
            head: &mut cursor.head,
            broken: &mut cursor.broken,
        }))
    }

    /// The cursor whose turn it is, and its next record. Records come in runs of one CPU: the queue
    /// is only touched between those.
    #[inline]
    fn advance(&mut self) -> Result<Option<(usize, PageRecord)>, MergeError> {
        loop {
            let at = match self.current {
                Some(at) => at,
                None => match self.waiting.pop() {
                    Some(Reverse((_, at))) => at,
                    None => return Ok(None),
                },
            };
            self.current = Some(at);
            let cursor = &mut self.cursors[at];
            let found = match cursor.head.take() {
                Some(found) => found,
                None => match cursor.step(self.pages, &self.layout)? {
                    Some(found) => found,
                    None => {
                        self.current = None;
                        continue;
                    }
                },
            };
            match self.waiting.peek() {
                Some(&Reverse(first)) if first < (found.at_ns, at) => {
                    cursor.head = Some(found);
                    self.waiting.push(Reverse((found.at_ns, at)));
                    self.current = None;
                }
                _ => return Ok(Some((at, found))),
            }
        }
    }
}

/// Records of one CPU, all before those of any other that have not come yet. What is not taken out
/// of it comes again in the next run.
#[derive(Debug)]
pub struct RecordRun<'a> {
    /// CPU that wrote them.
    pub cpu: u32,
    /// Events of this CPU were lost, or could not be read, just before the first.
    pub missed: Option<MissedEvents>,
    mark: &'a mut Option<MissedEvents>,
    bytes: &'a [u8],
    /// Last time that is before another CPU's.
    end_ns: u64,
    first: Option<PageRecord>,
    walk: &'a mut Walk,
    head: &'a mut Option<PageRecord>,
    broken: &'a mut Option<PageError>,
}

impl<'a> Iterator for RecordRun<'a> {
    type Item = Raw<'a>;

    #[inline]
    fn next(&mut self) -> Option<Raw<'a>> {
        if let Some(first) = self.first.take() {
            return Some(first.raw(self.bytes));
        }
        if self.head.is_some() {
            return None;
        }
        match self.walk.step(self.bytes) {
            Ok(Some(found)) if found.at_ns <= self.end_ns => Some(found.raw(self.bytes)),
            Ok(found) => {
                *self.head = found;
                None
            }
            Err(error) => {
                *self.broken = Some(error);
                None
            }
        }
    }
}

impl Drop for RecordRun<'_> {
    fn drop(&mut self) {
        if let Some(first) = self.first.take() {
            *self.head = Some(first);
            *self.mark = self.missed;
        }
    }
}

impl Cursor {
    /// The next record of this CPU.
    #[inline]
    fn step(
        &mut self,
        pages: &mut dyn Pages,
        layout: &PageLayout,
    ) -> Result<Option<PageRecord>, MergeError> {
        loop {
            if let Some(error) = self.broken.take() {
                return Err(self.fail(self.next_page.saturating_sub(1), error.into()));
            }
            let page = self.page_at..self.page_at + self.page_bytes;
            match self.walk.step(&self.buffer[page]) {
                Ok(Some(found)) => return Ok(Some(found)),
                Ok(None) => {
                    if !self.load(pages, layout)? {
                        return Ok(None);
                    }
                }
                Err(error) => return Err(self.fail(self.next_page.saturating_sub(1), error.into())),
            }
        }
    }

    /// Goes to the next page; `false`: no more pages.
    fn load(&mut self, pages: &mut dyn Pages, layout: &PageLayout) -> Result<bool, MergeError> {
        let page = self.next_page;
        if page >= pages.count(self.cpu) {
            return Ok(false);
        }
        self.next_page += 1;
        self.page_at += self.page_bytes;
        if self.page_bytes == 0 || self.page_at + self.page_bytes > self.buffer.len() {
            let one = layout.data_at + layout.data_bytes;
            let bytes = AHEAD_BYTES.min(AHEAD_BYTES_ALL / pages.cpus().len().max(1));
            let count = (bytes / one).max(1);
            self.page_at = 0;
            match pages.read_ahead(self.cpu, page, count, &mut self.buffer) {
                Ok(count) => self.page_bytes = self.buffer.len() / count.max(1),
                Err(error) => {
                    self.page_bytes = 0;
                    self.buffer.clear();
                    return Err(self.fail(page, error.into()));
                }
            }
        }
        match RingPage::parse(layout, self.page()).map(|page| (page.walk(), page.missed())) {
            Ok((walk, missed)) => {
                self.walk = walk;
                self.missed = self.missed.or(missed);
                Ok(true)
            }
            Err(error) => Err(self.fail(page, error.into())),
        }
    }

    /// The page that is read.
    fn page(&self) -> &[u8] {
        &self.buffer[self.page_at..self.page_at + self.page_bytes]
    }

    #[cold]
    fn fail(&mut self, page: usize, why: MergeFault) -> MergeError {
        self.walk = Walk::END;
        self.missed = Some(MissedEvents { count: None });
        MergeError { cpu: self.cpu, page, why }
    }
}

// What a CPU is in the middle of: the events that began something which has not ended. A window
// begins with them, so that its first nanosecond has an owner, too.

/// Open sections that are kept; more would be a trace whose ends were not recorded.
const OPEN_MAX: usize = 64;

/// The events of one CPU that determine its state.
#[derive(Clone, Debug, Default)]
pub(crate) struct Carry {
    switch: Option<Event>,
    idle: Option<Event>,
    irqs: Option<Event>,
    preempt: Option<Event>,
    /// Interrupts, softirqs, timers and work that have begun, oldest first.
    open: Vec<Event>,
}

impl Carry {
    /// Adds the next event if it changes the state.
    pub(crate) fn feed(&mut self, decoder: &Decoder, cpu: u32, raw: &Raw<'_>) {
        if decoder.is_state(raw.id) {
            self.event(decoder.event(cpu, raw));
        }
    }

    pub(crate) fn event(&mut self, event: Event) {
        match &event.what {
            EventData::Switch { .. } => {
                // No hard interrupt lives through a switch; its end was not recorded.
                self.open.retain(|open| {
                    matches!(
                        open.what,
                        EventData::SoftirqEntry { .. } | EventData::WorkStart { .. }
                    )
                });
                self.switch = Some(event);
            }
            EventData::Idle { .. } | EventData::IdleExit => self.idle = Some(event),
            EventData::Irqs { off, .. } => self.irqs = off.then_some(event),
            EventData::Preempt { off, .. } => self.preempt = off.then_some(event),
            EventData::VectorEntry { .. }
            | EventData::IrqEntry { .. }
            | EventData::IpiEntry { .. }
            | EventData::SoftirqEntry { .. }
            | EventData::TimerExpire { .. }
            | EventData::WheelExpire { .. }
            | EventData::WorkStart { .. } => {
                // What begins again has ended.
                let is_again = |open: &Event| open.pid == event.pid && open.what == event.what;
                self.open.retain(|open| !is_again(open));
                if self.open.len() == OPEN_MAX {
                    self.open.remove(0);
                }
                self.open.push(event);
            }
            _ => {
                if let Some(at) = self.open.iter().rposition(|open| ends(&event, open)) {
                    self.open.remove(at);
                }
            }
        }
    }

    /// Events were lost: nothing is known any more.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// The events, by time.
    pub(crate) fn events(&self) -> Vec<Event> {
        let single = [&self.switch, &self.idle, &self.irqs, &self.preempt];
        let single = single.into_iter().flatten();
        let mut events: Vec<Event> = single.chain(&self.open).cloned().collect();
        events.sort_by_key(|event| event.at_ns);
        events
    }
}

/// Whether an event ends what the other began.
fn ends(event: &Event, open: &Event) -> bool {
    match (&event.what, &open.what) {
        (EventData::VectorExit { vector }, EventData::VectorEntry { vector: begun }) => {
            vector == begun
        }
        (EventData::IrqExit { irq }, EventData::IrqEntry { irq: begun, .. }) => irq == begun,
        (EventData::IpiExit { .. }, EventData::IpiEntry { .. }) => true,
        // On PREEMPT_RT softirqs belong to tasks.
        (EventData::SoftirqExit { vec }, EventData::SoftirqEntry { vec: begun }) => {
            vec == begun && event.pid == open.pid
        }
        (EventData::TimerExpired { timer }, EventData::TimerExpire { timer: begun, .. })
        | (EventData::WheelExpired { timer }, EventData::WheelExpire { timer: begun, .. })
        | (EventData::WorkEnd { work: timer }, EventData::WorkStart { work: begun, .. }) => {
            timer == begun
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;
    use crate::testing::{KERNELS, Memory};

    const KERNEL: &crate::testing::Kernel = &KERNELS[0];

    fn layout() -> PageLayout {
        let formats = crate::Formats::new(&KERNEL.header_page(4096), KERNEL.order);
        *formats.expect("a header").layout()
    }

    /// A page of records of one CPU, their numbers those of their places.
    fn page(times: &[u64]) -> Vec<u8> {
        let page = KERNEL.page(times.first().copied().unwrap_or(0));
        times.iter().fold(page, |page, &at_ns| page.event(at_ns, &[1, 0, 0, 0])).done()
    }

    type KindsSeen = Vec<(u32, u64, bool)>;

    fn by_one(memory: &mut Memory) -> (KindsSeen, Vec<String>) {
        let (mut seen, mut errors) = (Vec::new(), Vec::new());
        let mut merge = Merge::new(memory, &layout());
        loop {
            match merge.next() {
                Ok(Some(merged)) => {
                    seen.push((merged.cpu, merged.raw.at_ns, merged.missed.is_some()));
                }
                Ok(None) => return (seen, errors),
                Err(error) => errors.push(error.to_string()),
            }
        }
    }

    fn in_runs(memory: &mut Memory) -> (KindsSeen, Vec<String>) {
        let (mut seen, mut errors) = (Vec::new(), Vec::new());
        let mut merge = Merge::new(memory, &layout());
        loop {
            match merge.next_run() {
                Ok(Some(run)) => {
                    let (cpu, mut missed) = (run.cpu, run.missed.is_some());
                    for raw in run {
                        seen.push((cpu, raw.at_ns, missed));
                        missed = false;
                    }
                }
                Ok(None) => return (seen, errors),
                Err(error) => errors.push(error.to_string()),
            }
        }
    }

    fn both(memory: &Memory) -> (KindsSeen, Vec<String>) {
        let one = by_one(&mut memory.clone());
        assert_eq!(one, in_runs(&mut memory.clone()));
        for ahead in [2, 3, 100] {
            let mut memory = memory.clone();
            memory.ahead = ahead;
            assert_eq!(one, in_runs(&mut memory), "{ahead} at once");
        }
        one
    }

    #[test]
    fn records_come_by_time_and_the_lower_cpu_first() {
        let memory = Memory::new(&[
            (0, &[page(&[10, 30, 30]), page(&[40])]),
            (2, &[]),
            (5, &[page(&[5, 30, 35, 50])]),
        ]);
        let order: Vec<_> = both(&memory).0.iter().map(|&(cpu, at, _)| (cpu, at)).collect();
        let expected = [(5, 5), (0, 10), (0, 30), (0, 30), (5, 30), (5, 35), (0, 40), (5, 50)];
        assert_eq!(order, expected);
    }

    #[test]
    fn a_loss_is_reported_with_the_next_record() {
        let lost = KERNEL.page(20).event(20, &[1, 0, 0, 0]).event(21, &[1, 0, 0, 0]);
        let empty = KERNEL.page(15).missed(Some(3)).done();
        let memory = Memory::new(&[
            (0, &[page(&[10]), lost.missed(None).done()]),
            (1, &[empty, page(&[16])]),
        ]);
        let expected = [(0, 10, false), (1, 16, true), (0, 20, true), (0, 21, false)];
        assert_eq!(both(&memory).0, expected);
    }

    #[test]
    fn a_broken_page_is_an_error_and_the_rest_continues() {
        let torn = KERNEL.page(20).event(20, &[1, 0, 0, 0]).raw(&[0xff, 0]).done();
        let mut short = page(&[25]);
        short.truncate(5);
        let mut memory = Memory::new(&[
            (0, &[page(&[10]), torn, page(&[30])]),
            (1, &[page(&[11]), short, page(&[26]), page(&[29])]),
        ]);
        memory.unreadable.push((1, 3));
        let (seen, errors) = both(&memory);
        let expected =
            [(0, 10, false), (1, 11, false), (0, 20, false), (1, 26, true), (0, 30, true)];
        assert_eq!(seen, expected);
        let mut errors = errors;
        errors.sort_unstable();
        assert_eq!(errors, ["CPU 0, page 1", "CPU 1, page 1", "CPU 1, page 3"]);
    }

    #[test]
    fn what_is_left_of_a_run_comes_again() {
        let record = [1, 0, 0, 0];
        let page = KERNEL.page(1).event(1, &record).event(2, &record).event(3, &record);
        let mut memory = Memory::new(&[(0, &[page.missed(Some(4)).done()])]);
        let layout = layout();
        let mut merge = Merge::new(&mut memory, &layout);
        assert!(merge.next_run().expect("a run").is_some());
        {
            let mut run = merge.next_run().expect("a run").expect("not the end");
            assert_eq!(run.missed, Some(MissedEvents { count: Some(4) }));
            assert_eq!(run.next().map(|raw| raw.at_ns), Some(1));
        }
        {
            let run = merge.next_run().expect("a run").expect("not the end");
            assert_eq!(run.missed, None);
            assert_eq!(run.map(|raw| raw.at_ns).collect::<Vec<_>>(), [2, 3]);
        }
        assert!(merge.next_run().expect("the end").is_none());
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_all_is_in_order(
            cpus in vec(vec(vec(0_u64..40, 0..30), 0..4), 0..5),
        ) {
            let mut expected = Vec::new();
            let mut pages = Vec::new();
            for (cpu, of_cpu) in cpus.iter().enumerate() {
                let mut at_ns = 100;
                let of_cpu: Vec<Vec<u8>> = of_cpu.iter().map(|deltas| {
                    let mut next_ns = |delta| {
                        at_ns += delta;
                        at_ns
                    };
                    let times: Vec<u64> = deltas.iter().map(&mut next_ns).collect();
                    expected.extend(times.iter().map(|&at_ns| (cpu as u32, at_ns, false)));
                    page(&times)
                }).collect();
                pages.push((cpu as u32, of_cpu));
            }
            expected.sort_by_key(|&(cpu, at_ns, _)| (at_ns, cpu));
            let pages: Vec<_> = pages.iter().map(|(cpu, pages)| (*cpu, pages.as_slice())).collect();
            let memory = Memory::new(&pages);
            prop_assert_eq!(both(&memory), (expected, vec![]));
        }
    }
}
