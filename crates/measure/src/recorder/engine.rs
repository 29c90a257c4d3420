//! The recorder's thread: reads the rings, answers, obeys.

use std::{
    collections::VecDeque,
    fs::File,
    io::{self, Read},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, RecvTimeoutError, SyncSender},
    },
    time::{Duration, Instant},
};

use rtproof_host::tracefs::{Instance, TracefsError};
use rtproof_trace::{
    Decoder, Lost, RingPage, Store, Subjects, WakeUp, Window, WindowSize, around,
    scan::{PreemptedBy, ThreadTotals},
};

use super::counters::{CounterReader, WakeUpWatch};
use super::{RecorderSettings, RecorderStats, RingMode, TaskNames};
use crate::sys;
use crate::task::pin_all;

/// Wake-ups that wait for their answer, and windows that wait to be taken.
pub(super) const REQUESTS_MAX: usize = 4_096;

/// Windows that wait to be taken: each may hold thousands of events.
const READY_MAX: usize = 256;

/// Stretches without recording that are remembered.
const GAPS_MAX: usize = 1_024;

/// Longest wait for the kernel's symbols.
const SYMBOLS_TIMEOUT: Duration = Duration::from_secs(10);

/// Time between two looks at the kernel's counts of lost events.
const LOST_EVERY: Duration = Duration::from_millis(500);

/// Wake-ups that may wait to be taken: of ten threads of 10 kHz ten seconds.
const KEPT_MAX: usize = 1 << 20;

/// Commands to the thread.
pub(super) enum EngineCommand {
    /// Recording goes on, or stops for a while.
    On(bool, Reply),
    /// Stacks at the timer interrupt.
    Stack(bool, Reply),
    /// Starts or stops the search for late wake-ups of other threads.
    Watch(Option<(Subjects, u64)>),
    /// Adds threads whose wake-ups are searched.
    Follow(Vec<i32>),
}

/// Where the outcome goes.
pub(super) type Reply = SyncSender<Result<(), TracefsError>>;

/// What both sides see.
#[derive(Debug, Default)]
pub(super) struct EngineShared {
    pub(super) stats: Mutex<RecorderStats>,
    pub(super) ready: Mutex<Vec<(WakeUp, Window)>>,
    pub(super) totals: Mutex<Vec<ThreadTotals>>,
    pub(super) preemptions: Mutex<Vec<PreemptedBy>>,
    pub(super) kept: Mutex<Vec<WakeUp>>,
    /// Whether late wake-ups are searched.
    pub(super) is_watching: AtomicBool,
}

impl EngineShared {
    /// A panic of the other side leaves whole values behind: they are only replaced.
    pub(super) fn stats(&self) -> MutexGuard<'_, RecorderStats> {
        self.stats.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn ready(&self) -> MutexGuard<'_, Vec<(WakeUp, Window)>> {
        self.ready.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn preemptions(&self) -> MutexGuard<'_, Vec<PreemptedBy>> {
        self.preemptions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn kept(&self) -> MutexGuard<'_, Vec<WakeUp>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn totals(&self) -> MutexGuard<'_, Vec<ThreadTotals>> {
        self.totals.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The state of the thread.
pub(super) struct Engine {
    pub(super) settings: RecorderSettings,
    pub(super) mode: RingMode,
    // Before the instance: files of its rings keep it from being removed.
    pub(super) rings: CpuRings,
    pub(super) instance: Instance,
    pub(super) store: Store,
    pub(super) decoder: Decoder,
    pub(super) counters: CounterReader,
    pub(super) names: TaskNames,
    pub(super) requests: Receiver<WakeUp>,
    pub(super) commands: Receiver<EngineCommand>,
    pub(super) shared: Arc<EngineShared>,
    pub(super) state: EngineState,
}

/// What changes from look to look.
pub(super) struct EngineState {
    started: Instant,
    is_on: bool,
    off_since_ns: u64,
    /// Wake-ups to be answered, and when they were requested.
    pending: VecDeque<(u64, WakeUp)>,
    gaps: VecDeque<(u64, u64)>,
    lost_read: Option<Instant>,
    /// Whom to watch, once the symbols are there.
    wanted: Option<(Subjects, u64)>,
    watch: Option<WakeUpWatch>,
}

impl EngineState {
    pub(super) fn new() -> Self {
        Self {
            started: Instant::now(),
            is_on: true,
            off_since_ns: 0,
            pending: VecDeque::new(),
            gaps: VecDeque::new(),
            lost_read: None,
            wanted: None,
            watch: None,
        }
    }
}

impl Engine {
    /// Runs until the recorder is dropped.
    pub(super) fn run(mut self) {
        loop {
            let start = Instant::now();
            self.poll();
            let mut rest = self.settings.poll;
            loop {
                match self.commands.recv_timeout(rest) {
                    Ok(command) => self.execute(command),
                    Err(RecvTimeoutError::Timeout) => break,
                    Err(RecvTimeoutError::Disconnected) => return self.end(),
                }
                rest = self.settings.poll.saturating_sub(start.elapsed());
            }
        }
    }

    /// What is done at every look.
    fn poll(&mut self) {
        let now_ns = sys::now_ns();
        let room = REQUESTS_MAX.saturating_sub(self.state.pending.len());
        for wake in self.requests.try_iter().take(room) {
            self.state.pending.push_back((now_ns, wake));
        }
        if self.mode == RingMode::Stream {
            self.begin_watch(now_ns);
            self.rings.drain(&mut self.store, self.state.watch.as_mut(), sys::now_ns);
            self.find();
        }
        self.counters.sample(sys::now_ns);
        match self.mode {
            RingMode::Stream => self.answer(now_ns),
            RingMode::Freeze => self.freeze(now_ns),
        }
        self.count();
    }

    /// Stops recording, reads everything, answers, goes on: when the oldest question has waited
    /// for its tail.
    fn freeze(&mut self, now_ns: u64) {
        let tail_ns = self.settings.tail_ns;
        let is_due = |(_, wake): &(u64, WakeUp)| now_ns >= wake.ran_ns.saturating_add(tail_ns);
        if !self.state.pending.iter().any(is_due) || !self.can_answer() {
            return;
        }
        let was_on = self.state.is_on;
        if was_on && self.switch(false).is_err() {
            return;
        }
        self.rings.drain(&mut self.store, None, sys::now_ns);
        self.answer(sys::now_ns());
        if was_on {
            // A refusal after it was granted a moment ago: the next question meets it again.
            let _ = self.switch(true);
            self.shared.stats().blind_ns += sys::now_ns() - self.state.off_since_ns;
        }
    }

    /// Whether there is room for answers, and names for what is in them.
    fn can_answer(&self) -> bool {
        self.is_named() && self.shared.ready().len() < READY_MAX
    }

    fn is_named(&self) -> bool {
        self.names.is_ready() || self.state.started.elapsed() > SYMBOLS_TIMEOUT
    }

    /// Begins to watch once the addresses that identify timers are known.
    fn begin_watch(&mut self, now_ns: u64) {
        if !self.is_named() {
            return;
        }
        let Some((subjects, threshold_ns)) = self.state.wanted.take() else { return };
        // Quotas are known by what was counted before.
        for tid in &subjects.tids {
            let group = self.names.task(*tid, now_ns).and_then(|task| task.cgroup.clone());
            group.iter().for_each(|group| self.counters.watch(group));
        }
        let symbols = self.names.symbols();
        self.state.watch = Some(WakeUpWatch::new(&subjects, threshold_ns, symbols, &self.decoder));
        self.shared.is_watching.store(true, Ordering::Relaxed);
    }

    /// Asks for the wake-ups that the events show.
    fn find(&mut self) {
        let Some(watch) = &mut self.state.watch else { return };
        let (pending, now_ns) = (&mut self.state.pending, sys::now_ns());
        let mut refused = 0;
        watch.find(&self.decoder, self.rings.complete_ns(), |wake| {
            if pending.len() < REQUESTS_MAX {
                pending.push_back((now_ns, wake));
            } else {
                refused += 1;
            }
        });
        let kept = watch.take_kept();
        let found = kept.len();
        // Before the windows of the late ones, which follow: users of both know each of these.
        let room = {
            let mut all = self.shared.kept();
            let room = KEPT_MAX.saturating_sub(all.len()).min(found);
            all.extend(kept.into_iter().take(room));
            room
        };
        let mut stats = self.shared.stats();
        stats.refused += refused;
        stats.kept_lost += (found - room) as u64;
        drop(stats);
        *self.shared.totals() = watch.totals();
        *self.shared.preemptions() = watch.preemptions();
    }

    /// Takes the windows of the wake-ups whose events are all there.
    fn answer(&mut self, now_ns: u64) {
        let complete_ns = self.rings.complete_ns();
        let mut later = VecDeque::new();
        while let Some((asked_ns, wake)) = self.state.pending.pop_front() {
            let is_there = complete_ns >= wake.ran_ns.saturating_add(self.settings.tail_ns);
            let is_late = now_ns.saturating_sub(asked_ns) >= self.settings.patience_ns;
            if (is_there || is_late) && self.can_answer() {
                let window = self.window(&wake, now_ns);
                self.shared.ready().push((wake, window));
                self.shared.stats().answered += 1;
            } else {
                later.push_back((asked_ns, wake));
            }
        }
        self.state.pending = later;
    }

    fn window(&mut self, wake: &WakeUp, now_ns: u64) -> Window {
        let RecorderSettings { lead_ns, tail_ns, .. } = self.settings;
        let around = WindowSize { lead_ns, tail_ns, ..WindowSize::default() };
        // Pages in memory can be read.
        let taken = around::window(&mut self.store, &self.decoder, wake, &around);
        let mut window = taken.unwrap_or_else(|_| Window { cpu: wake.cpu, ..Window::default() });
        let now = (!self.state.is_on).then_some((self.state.off_since_ns, now_ns));
        for &(from_ns, to_ns) in self.state.gaps.iter().chain(&now) {
            if from_ns < window.to_ns && window.from_ns < to_ns {
                window.lost.push(Lost { from_ns, to_ns, count: None });
            }
        }
        window.lost.sort_unstable_by_key(|lost| lost.from_ns);
        window.missing = self.instance.missing().iter().map(|m| m.event.to_owned()).collect();
        self.names.name(&mut window, wake.tid, now_ns);
        let group = window.tasks.get(&wake.tid).and_then(|task| task.cgroup.clone());
        window.surroundings = self.counters.surroundings(
            wake.cpu,
            group.as_deref(),
            wake.due_ns,
            wake.ran_ns,
            sys::now_ns,
        );
        if let Some(group) = group {
            self.counters.watch(&group);
        }
        window
    }

    /// Turns recording on or off; time that it is off is a gap.
    fn switch(&mut self, on: bool) -> Result<(), TracefsError> {
        if on == self.state.is_on {
            return Ok(());
        }
        let before_ns = sys::now_ns();
        self.instance.set_on(on)?;
        self.state.is_on = on;
        if !on {
            self.state.off_since_ns = before_ns;
            return Ok(());
        }
        if self.state.gaps.len() == GAPS_MAX {
            self.state.gaps.pop_front();
        }
        self.state.gaps.push_back((self.state.off_since_ns, sys::now_ns()));
        if let Some(watch) = &mut self.state.watch {
            watch.lost();
        }
        Ok(())
    }

    fn execute(&mut self, command: EngineCommand) {
        let (result, reply) = match command {
            EngineCommand::On(on, reply) => (self.switch(on), reply),
            EngineCommand::Stack(on, reply) => {
                let result = self.instance.arm_stack(on);
                self.shared.stats().stacks = on && result.is_ok();
                (result, reply)
            }
            EngineCommand::Watch(wanted) => {
                (self.state.wanted, self.state.watch) = (wanted, None);
                return;
            }
            EngineCommand::Follow(tids) => {
                match (&mut self.state.watch, &mut self.state.wanted) {
                    (Some(watch), _) => watch.follow(&tids),
                    // It begins when the addresses of timers are known.
                    (None, Some((subjects, _))) => subjects.tids.extend(tids),
                    (None, None) => {}
                }
                return;
            }
        };
        // The requester may be gone.
        let _ = reply.try_send(result);
    }

    fn count(&mut self) {
        let is_due = self.state.lost_read.is_none_or(|at| at.elapsed() >= LOST_EVERY);
        let counts = is_due.then(|| self.kernel_counts());
        if is_due {
            self.state.lost_read = Some(Instant::now());
        }
        let mut stats = self.shared.stats();
        if let Some((events, lost)) = counts {
            (stats.events, stats.lost_events) = (events, lost);
        }
        stats.pages = self.rings.pages;
        stats.bytes = self.rings.bytes;
        stats.error.clone_from(&self.rings.error);
        stats.no_symbols = self.names.no_symbols();
        stats.cpu_time_ns = sys::thread_cpu_ns();
        stats.waiting = self.state.pending.len() as u64;
    }

    /// Events that were written, and those of them that were lost before they were read. What is
    /// overwritten before a request is not lost.
    fn kernel_counts(&self) -> (u64, u64) {
        let is_kept = self.mode == RingMode::Stream;
        let stats = self.rings.cpus().map(|cpu| self.instance.stats(cpu));
        stats.filter_map(|stats| stats.value().copied()).fold((0, 0), |(events, lost), of| {
            let never = of.commit_overrun + of.dropped;
            let gone = never + if is_kept { of.overrun } else { 0 };
            (events + of.read + of.entries + of.overrun + never, lost + gone)
        })
    }

    /// What was requested before the end is still answered.
    fn end(mut self) {
        let _ = self.instance.set_on(false);
        self.rings.drain(&mut self.store, self.state.watch.as_mut(), sys::now_ns);
        self.find();
        let now_ns = sys::now_ns();
        let left: Vec<WakeUp> = self.requests.try_iter().collect();
        self.state.pending.extend(left.into_iter().map(|wake| (now_ns, wake)));
        self.answer(now_ns);
        self.state.lost_read = None;
        self.count();
    }
}

/// Puts the calling thread on the housekeeping CPUs; where none of them is left it stays.
pub(super) fn settle(settings: &RecorderSettings) {
    let cpus: Vec<u32> = settings.housekeeping.iter().collect();
    if !cpus.is_empty() {
        let _ = pin_all(&cpus);
    }
    // Beside loads on every CPU an ordinary thread comes too late, and events are lost. Without the
    // right to it, it tries all the same. Measuring threads are real-time and outrank it anyway.
    let _ = rustix::process::setpriority_process(None, settings.nice);
}

// The kernel's rings, read without waiting and without disturbing the CPUs they belong to.
//
// A read takes one sub-buffer out of a CPU's ring. The one that the CPU is still writing into is
// handed out as far as it is filled, with the time of its first record, and the rest comes with
// the next read. A reader that waits would have the kernel interrupt the traced CPU to be woken;
// this one asks from time to time instead, from another CPU.

/// Sub-buffers that are read of one CPU at a look: a ring that is filled faster than it is read
/// must not keep the thread from its other work.
const PAGES_MAX: usize = 4_096;

/// The rings of all recorded CPUs.
#[derive(Debug)]
pub(super) struct CpuRings {
    pipes: Vec<Pipe>,
    page: Vec<u8>,
    /// Sub-buffers that were read.
    pub(super) pages: u64,
    /// Their bytes, as far as they were filled.
    pub(super) bytes: u64,
    /// Why the last sub-buffer that could not be read could not.
    pub(super) error: Option<String>,
}

#[derive(Debug)]
struct Pipe {
    cpu: u32,
    file: File,
    /// Everything that happened before was read.
    complete_ns: u64,
}

impl CpuRings {
    /// Opens the rings of some CPUs; those that the kernel has none for are left out.
    pub(super) fn open(
        instance: &Instance,
        cpus: impl Iterator<Item = u32>,
        decoder: &Decoder,
    ) -> Result<Self, TracefsError> {
        let known = instance.cpus();
        let mut pipes = Vec::new();
        for cpu in cpus.filter(|cpu| known.contains(cpu)) {
            pipes.push(Pipe { cpu, file: instance.pipe(cpu)?, complete_ns: 0 });
        }
        let layout = decoder.layout();
        let page = vec![0; layout.data_at + layout.data_bytes];
        Ok(Self { pipes, page, pages: 0, bytes: 0, error: None })
    }

    /// Recording has begun: what comes is complete from now on.
    pub(super) fn begin(&mut self, store: &mut Store, now_ns: u64) {
        for pipe in &mut self.pipes {
            pipe.complete_ns = now_ns;
            store.note_read(pipe.cpu, now_ns);
        }
    }

    /// CPUs that have one.
    pub(super) fn cpus(&self) -> impl Iterator<Item = u32> + '_ {
        self.pipes.iter().map(|pipe| pipe.cpu)
    }

    /// Up to when everything of all CPUs was read.
    pub(super) fn complete_ns(&self) -> u64 {
        self.pipes.iter().map(|pipe| pipe.complete_ns).min().unwrap_or(0)
    }

    /// Reads all pages into the store and passes them to the watch.
    fn drain(
        &mut self,
        store: &mut Store,
        mut watch: Option<&mut WakeUpWatch>,
        clock: impl Fn() -> u64,
    ) {
        for pipe in &mut self.pipes {
            // What a CPU writes from now on may be left for the next look.
            let now_ns = clock();
            let mut is_empty = false;
            let mut short = 0;
            for _ in 0..PAGES_MAX {
                match pipe.file.read(&mut self.page) {
                    Ok(length) if length > 0 => {
                        let bytes = &self.page[..length];
                        self.pages += 1;
                        let page = RingPage::parse(store.decoder().layout(), bytes);
                        let used = page.map_or(0, |page| page.used_bytes(store.decoder().layout()));
                        self.bytes += used as u64;
                        if let Some(watch) = &mut watch {
                            watch.push(store.decoder(), pipe.cpu, bytes);
                        }
                        if let Err(error) = store.push(pipe.cpu, bytes) {
                            self.error = Some(format!("CPU {}: {error}", pipe.cpu));
                        }
                        // A page that is not nearly full is the rest of one that was read before,
                        // or the last: two of them are the end. On a busy CPU the next one would
                        // have a few events, and so on.
                        short = if used < length / 2 { short + 1 } else { 0 };
                        if short == 2 {
                            is_empty = true;
                            break;
                        }
                    }
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    // Empty; a CPU that has gone offline keeps its ring.
                    _ => {
                        is_empty = true;
                        break;
                    }
                }
            }
            if is_empty {
                pipe.complete_ns = now_ns;
                store.note_read(pipe.cpu, now_ns);
            }
        }
    }
}
