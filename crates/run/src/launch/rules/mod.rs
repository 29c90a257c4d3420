//! The rules of a real-time program, checked while it runs: a thread off the program's CPUs takes
//! the kernel's events, in the order of their time, to the judge.

mod collect;
mod outside;
mod symbols;

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, Sender, channel},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use rtproof_host::{CpuList, Root, counts};
use rtproof_judge::rules::{Tracker, UNHEARD};
use rtproof_measure::{
    program::{CALLS, Watch, has_marked},
    thread::pin_all,
};
use rtproof_model::program::{Happening, What};
use rtproof_results::rules::Rules;
use signal_hook::consts::{SIGINT, SIGQUIT, SIGTERM};

use self::{collect::Collected, outside::Live, symbols::Symbols};

/// Longest time between two looks at the events.
const LOOK: Duration = Duration::from_millis(20);
/// Time between two comparisons with the threads in /proc.
const COMPARE: Duration = Duration::from_secs(1);

/// Signals that end a program by custom. HUP makes many read their configuration.
const ASKING: &[i32] = &[SIGINT, SIGTERM, SIGQUIT];

/// When a program is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ready {
    /// So many nanoseconds after its start.
    After(u64),
    /// When it has marked its first cycle (`rtproof_mark.h`).
    Mark,
    /// When it has sent SIGURG to its parent, which is rtproof.
    Signal,
}

/// What of the rules was requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Requested {
    /// When the program is ready.
    pub ready: Ready,
    /// How long it is observed from then on; `None`: until it ends, or a signal to end it is
    /// passed on.
    pub for_ns: Option<u64>,
}

impl Ready {
    fn words(self) -> String {
        match self {
            Self::After(ns) => {
                format!("taken to be ready {} after its start", rtproof_judge::units::duration(ns))
            }
            Self::Mark => "ready with the first cycle that it marked".into(),
            Self::Signal => "ready when it sent SIGURG to its parent".into(),
        }
    }
}

enum Command {
    Ready,
    /// From when on nothing is judged, `until_ns` has.
    Stop,
    Finish(u64),
}

/// A program whose rules are checked.
pub(super) struct Watching {
    requested: Requested,
    pid: u32,
    to: Sender<Command>,
    thread: JoinHandle<Collected>,
    ready_ns: Option<u64>,
    /// What happens from then on is not judged: known before the program gets its signal, so that
    /// no event after that is judged, whatever the thread is at. `u64::MAX`: until it ends.
    until_ns: Arc<AtomicU64>,
    began_ns: u64,
}

impl Watching {
    /// Begins to observe a process that is to become the program.
    ///
    /// # Errors
    /// Nothing can be observed: why.
    pub(super) fn begin(
        requested: Requested,
        pid: u32,
        online: &CpuList,
        own: Option<&CpuList>,
    ) -> Result<Self, String> {
        let root = Root::live();
        let unheard: Vec<i64> = CALLS
            .iter()
            .filter(|(_, name)| UNHEARD.contains(name))
            .map(|(number, _)| *number)
            .collect();
        let watch = Watch::open(&root, pid, online.as_slice(), &unheard)?;
        let (to, commands) = channel();
        let rest = own.map_or_else(|| online.clone(), |own| online.difference(own));
        let cpus = own.map(|own| own.as_slice().to_vec());
        let online = online.clone();
        let until_ns = Arc::new(AtomicU64::new(u64::MAX));
        let until = Arc::clone(&until_ns);
        let observe = move || {
            // Where there is no other CPU, it shares one.
            let _ = pin_all(rest.as_slice());
            let tracker = Tracker::new(pid, CALLS, cpus.as_deref());
            Observing::new(pid, watch, tracker, online, until).run(&commands)
        };
        let thread = thread::Builder::new().name("rules".into()).spawn(observe);
        let thread = thread.map_err(|error| format!("a thread to take events: {error}"))?;
        let began_ns = super::now_ns();
        Ok(Self { requested, pid, to, thread, ready_ns: None, until_ns, began_ns })
    }

    /// Looks whether the program is ready, or was observed for long enough; `signalled`: it sent
    /// SIGURG.
    pub(super) fn look(&mut self, signalled: bool) {
        let now_ns = super::now_ns();
        let is_ready = || match self.requested.ready {
            Ready::After(ns) => now_ns >= self.began_ns.saturating_add(ns),
            Ready::Mark => has_marked(self.pid),
            Ready::Signal => signalled,
        };
        match self.ready_ns {
            None if is_ready() => {
                self.ready_ns = Some(now_ns);
                self.send(Command::Ready);
            }
            Some(at) if self.requested.for_ns.is_some_and(|ns| now_ns >= at.saturating_add(ns)) => {
                self.stop();
            }
            _ => {}
        }
    }

    /// What happens from now on is the program's end, and not judged.
    pub(super) fn stop(&mut self) {
        if self.until_ns.fetch_min(super::now_ns(), Ordering::SeqCst) == u64::MAX {
            self.send(Command::Stop);
        }
    }

    fn send(&self, command: Command) {
        // A thread that has panicked is seen by `finish`.
        let _ = self.to.send(command);
    }

    /// The program has ended, at this time.
    pub(super) fn finish(self, ended_ns: u64) -> Rules {
        self.send(Command::Finish(ended_ns));
        let ready = self.requested.ready.words();
        match self.thread.join() {
            Ok(collected) => collected.rules(ready, self.began_ns),
            Err(_) => collect::unknown(ready, "the thread that takes the events failed".into()),
        }
    }
}

/// Nothing could be observed.
pub(super) fn not_observed(requested: Requested, why: String) -> Rules {
    collect::unknown(requested.ready.words(), why)
}

/// The thread that takes the events.
struct Observing {
    pid: u32,
    watch: Watch,
    tracker: Tracker,
    symbols: Symbols,
    collected: Collected,
    /// Events that others may still have to go before.
    queue: Vec<Happening>,
    /// Everything before it was judged.
    done_ns: u64,
    online: CpuList,
    until_ns: Arc<AtomicU64>,
}

impl Observing {
    fn new(
        pid: u32,
        watch: Watch,
        tracker: Tracker,
        online: CpuList,
        until_ns: Arc<AtomicU64>,
    ) -> Self {
        let (symbols, collected, queue) = (Symbols::default(), Collected::default(), Vec::new());
        Self { pid, watch, tracker, symbols, collected, queue, done_ns: 0, online, until_ns }
    }

    fn run(mut self, commands: &Receiver<Command>) -> Collected {
        let mut before_ns = 0;
        let mut compared = Instant::now();
        let end_ns = loop {
            match commands.try_recv() {
                Ok(Command::Ready) => self.ready(),
                Ok(Command::Stop) => self.watch.disable(),
                Ok(Command::Finish(ended_ns)) => break ended_ns,
                Err(_) => {}
            }
            self.watch.wait(LOOK);
            let now_ns = super::now_ns();
            self.take();
            // An event is written some time after its stamp: those of this look wait for the next.
            self.judge(before_ns);
            before_ns = now_ns;
            if compared.elapsed() >= COMPARE {
                compared = Instant::now();
                self.compare();
            }
        };
        self.take();
        self.judge(u64::MAX);
        self.tracker.finish();
        self.file();
        let root = Root::live();
        if rtproof_host::Facts::read(&root).cpus.online.value() != Some(&self.online) {
            self.collected.unknown.insert("CPUs went on or off while it ran".into());
        }
        let Self { mut collected, tracker, watch, until_ns, .. } = self;
        collected.finish(&tracker, &watch, end_ns.min(until_ns.load(Ordering::SeqCst)));
        collected
    }

    /// The program is ready: what was there before is judged first, then all events are on.
    fn ready(&mut self) {
        self.take();
        self.judge(super::now_ns());
        self.watch.enable();
        let from_ns = super::now_ns();
        self.collected.from_ns = Some(from_ns);
        // Threads that were made until now.
        self.take();
        self.judge(from_ns);
        self.tracker.begin(from_ns, &mut Live);
        self.compare();
    }

    fn take(&mut self) {
        let (queue, collected) = (&mut self.queue, &mut self.collected);
        let done_ns = self.done_ns;
        self.watch.take(|event| match event.what {
            What::Lost(count) => collected.lose(count),
            _ => {
                if event.time_ns < done_ns {
                    collected.late += 1;
                }
                queue.push(event);
            }
        });
    }

    /// Judges what happened before a time.
    fn judge(&mut self, before_ns: u64) {
        let mut all = std::mem::take(&mut self.queue);
        // Events of one CPU are in their order; the sort keeps that.
        all.sort_by_key(|event| event.time_ns);
        let rest = all.partition_point(|event| event.time_ns < before_ns);
        self.queue = all.split_off(rest);
        for event in all {
            self.done_ns = self.done_ns.max(event.time_ns);
            match &event.what {
                What::Named { by_exec: true, .. } => self.symbols.executed(event.pid),
                What::Forked { pid, parent_pid, .. } => self.symbols.forked(*pid, *parent_pid),
                What::Mapped(mapping) => self.symbols.mapped(event.pid, mapping.clone()),
                _ => {}
            }
            if self.is_asked_to_end(&event) {
                self.until_ns.fetch_min(event.time_ns, Ordering::SeqCst);
            }
            let is_over = event.time_ns >= self.until_ns.load(Ordering::SeqCst);
            let is_of_threads =
                matches!(event.what, What::Forked { .. } | What::Ended | What::Named { .. });
            if !is_over || is_of_threads {
                self.tracker.take(event, &mut Live);
            }
            self.file();
        }
    }

    /// Whether the first process takes a signal to end: one that it started may be ended at any
    /// time. A key of the terminal, or timeout(1), sends it to the program as well as to us, and
    /// the program may be first.
    fn is_asked_to_end(&self, event: &Happening) -> bool {
        let is_ready = self.collected.from_ns.is_some_and(|from| event.time_ns >= from);
        let asks = |signal: i64| ASKING.iter().any(|it| i64::from(*it) == signal);
        is_ready
            && event.pid == self.pid
            && match event.what {
                What::Signal { number, is_handled } => is_handled && asks(number.into()),
                // sigwait(3).
                What::Exit { number, result } => {
                    asks(result) && CALLS.contains(&(number, "rt_sigtimedwait"))
                }
                _ => false,
            }
    }

    fn file(&mut self) {
        for found in self.tracker.found() {
            self.collected.file(found, &self.tracker, &mut self.symbols);
        }
    }

    /// Compares the threads in /proc with those that the kernel reports.
    fn compare(&mut self) {
        let root = Root::live();
        let pids: BTreeSet<u32> =
            counts::descendants(&root, self.pid).into_iter().chain([self.pid]).collect();
        let mut live = Vec::new();
        for pid in pids {
            let threads = counts::threads(&root, pid).into_iter();
            live.extend(threads.filter(|tid| outside::is_live(pid, *tid)).map(|tid| (pid, tid)));
        }
        // What they did until they were seen.
        let seen_ns = super::now_ns();
        thread::sleep(Duration::from_millis(2));
        self.take();
        self.judge(seen_ns);
        self.tracker.compare(seen_ns, &live);
    }
}
