//! The rules of a real-time program, checked while it runs: a thread off the program's CPUs takes
//! the kernel's events, in the order of their time, to the judge.

mod attached;
mod collect;
mod monitors;
pub(crate) mod ordered;
mod outside;
pub(crate) mod symbols;
mod threads;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, Sender, channel},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use rtproof_host::{CpuList, Root};
use rtproof_judge::rules::{Tracker, UNHEARD};
use rtproof_measure::{
    program::{CALLS, Purpose, Watch, has_marked},
    thread::pin_all,
};
use rtproof_model::program::{Happening, What};
use rtproof_results::rules::Rules;
use signal_hook::consts::{SIGINT, SIGQUIT, SIGTERM};

pub(crate) use self::attached::join;
pub use self::attached::{Attached, observe};
pub(crate) use self::monitors::Monitored;
pub(crate) use self::threads::{Thread, list, name, program};
use self::{collect::Collected, ordered::Ordered, outside::Live, symbols::Symbols};
use crate::clock::now_ns;

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
    /// It runs already: from when rtproof observes it.
    Attached,
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
            Self::Attached => "ready when rtproof came".into(),
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
pub(crate) struct Watching {
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
    /// Begins to observe a process that is to become the program; `monitors`: from before it was
    /// made.
    pub(crate) fn begin(
        requested: Requested,
        monitors: Monitored,
        pid: u32,
        online: &CpuList,
        own: Option<&CpuList>,
    ) -> Result<Self, String> {
        let root = Root::live();
        let mut watch = Watch::new(Purpose::Rules, online.as_slice(), heard())?;
        if !watch.add(&root, pid)? {
            return Err(format!("process {pid} has ended"));
        }
        Self::spawn(requested, pid, (watch, monitors), Vec::new(), online, own)
    }

    /// `found`: its threads that ran before.
    fn spawn(
        requested: Requested,
        pid: u32,
        (mut watch, mut monitors): (Watch, Monitored),
        found: Vec<Thread>,
        online: &CpuList,
        own: Option<&CpuList>,
    ) -> Result<Self, String> {
        monitors.open(&mut watch);
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
            let mut observing = Observing::new(pid, (watch, monitors), tracker, online, until);
            observing.find(found);
            observing.run(&commands)
        };
        let thread = thread::Builder::new().name("rules".into()).spawn(observe);
        let thread = thread.map_err(|error| format!("a thread to take events: {error}"))?;
        let began_ns = now_ns();
        Ok(Self { requested, pid, to, thread, ready_ns: None, until_ns, began_ns })
    }

    /// Looks whether the program is ready, or was observed for long enough; `signalled`: it sent
    /// SIGURG.
    pub(crate) fn look(&mut self, signalled: bool) {
        let at_ns = now_ns();
        let is_ready = || match self.requested.ready {
            Ready::After(ns) => at_ns >= self.began_ns.saturating_add(ns),
            Ready::Mark => has_marked(self.pid),
            Ready::Signal => signalled,
            Ready::Attached => true,
        };
        match self.ready_ns {
            None if is_ready() => {
                self.ready_ns = Some(at_ns);
                self.send(Command::Ready);
            }
            Some(at) if self.requested.for_ns.is_some_and(|ns| at_ns >= at.saturating_add(ns)) => {
                self.stop();
            }
            _ => {}
        }
    }

    /// Whether it was stopped, or the program was asked to end.
    pub(crate) fn is_stopped(&self) -> bool {
        self.until_ns.load(Ordering::SeqCst) != u64::MAX
    }

    /// What happens from now on is the program's end, and not judged.
    pub(crate) fn stop(&mut self) {
        if self.until_ns.fetch_min(now_ns(), Ordering::SeqCst) == u64::MAX {
            self.send(Command::Stop);
        }
    }

    fn send(&self, command: Command) {
        // A thread that has panicked is seen by `finish`.
        let _ = self.to.send(command);
    }

    /// The program, or its observation, has ended at this time.
    pub(crate) fn finish(self, ended_ns: u64) -> Rules {
        self.send(Command::Finish(ended_ns));
        let ready = self.requested.ready.words();
        match self.thread.join() {
            Ok(collected) => collected.rules(ready, self.began_ns),
            Err(_) => collect::unknown(ready, "the thread that takes the events failed".into()),
        }
    }
}

/// Nothing could be observed.
pub(crate) fn not_observed(requested: Requested, why: String) -> Rules {
    collect::unknown(requested.ready.words(), why)
}

/// The filter that leaves out the calls that are not judged.
fn heard() -> String {
    let unheard = CALLS.iter().filter(|(_, name)| UNHEARD.contains(name));
    unheard.map(|(number, _)| format!("id != {number}")).collect::<Vec<_>>().join(" && ")
}

/// The thread that takes the events.
struct Observing {
    pid: u32,
    events: Ordered,
    tracker: Tracker,
    symbols: Symbols,
    collected: Collected,
    online: CpuList,
    until_ns: Arc<AtomicU64>,
    /// Threads that ran when rtproof came.
    found: Vec<Thread>,
    monitors: Monitored,
}

impl Observing {
    fn new(
        pid: u32,
        (watch, monitors): (Watch, Monitored),
        tracker: Tracker,
        online: CpuList,
        until_ns: Arc<AtomicU64>,
    ) -> Self {
        let (symbols, collected) = (Symbols::default(), Collected::default());
        let (events, found) = (Ordered::new(watch), Vec::new());
        Self { pid, events, tracker, symbols, collected, online, until_ns, found, monitors }
    }

    /// Threads that were there before: what their events would have reported.
    fn find(&mut self, found: Vec<Thread>) {
        self.symbols.find(&found);
        for of in &found {
            self.tracker.find(of.pid, of.tid, name(of));
        }
        self.found = found;
    }

    fn run(mut self, commands: &Receiver<Command>) -> Collected {
        let mut before_ns = 0;
        let mut compared = Instant::now();
        let end_ns = loop {
            match commands.try_recv() {
                Ok(Command::Ready) => self.ready(),
                Ok(Command::Stop) => self.events.watch.disable(),
                Ok(Command::Finish(ended_ns)) => break ended_ns,
                Err(_) => {}
            }
            self.events.watch.wait(LOOK);
            let at_ns = now_ns();
            self.events.take();
            // An event is written some time after its stamp: those of this look wait for the next.
            self.judge(before_ns);
            before_ns = at_ns;
            if compared.elapsed() >= COMPARE {
                compared = Instant::now();
                self.compare();
            }
        };
        self.events.take();
        self.judge(u64::MAX);
        self.tracker.finish();
        self.file();
        let root = Root::live();
        if rtproof_host::Facts::read(&root).cpus.online.value() != Some(&self.online) {
            self.collected.unknown.insert("CPUs went on or off while it ran".into());
        }
        let Self { mut collected, tracker, events, until_ns, found, monitors, .. } = self;
        collected.monitors = monitors.end(&events.watch, &tracker, found.is_empty());
        collected.unknown.extend(events.unknown());
        collected.finish(&tracker, &events.watch, end_ns.min(until_ns.load(Ordering::SeqCst)));
        collected
    }

    /// The program is ready: what was there before is judged first, then all events are on.
    fn ready(&mut self) {
        self.events.take();
        self.judge(now_ns());
        self.events.watch.enable();
        let from_ns = now_ns();
        self.collected.from_ns = Some(from_ns);
        // Threads that were made until now.
        self.events.take();
        self.judge(from_ns);
        self.tracker.begin(from_ns, &mut Live);
        let inside: Vec<_> =
            self.found.iter().filter_map(|of| Some((of.tid, threads::call_of(of)?))).collect();
        self.compare();
        for (tid, (number, args)) in inside {
            self.tracker.find_inside(tid, number, args, from_ns);
        }
    }

    /// Judges what happened before a time.
    fn judge(&mut self, before_ns: u64) {
        for event in self.events.before(before_ns) {
            self.symbols.learn(&event);
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
        let live: Vec<(u32, u32)> =
            list(&Root::live(), self.pid).into_iter().map(|of| (of.pid, of.tid)).collect();
        // What they did until they were seen.
        let seen_ns = now_ns();
        thread::sleep(Duration::from_millis(2));
        self.events.take();
        self.judge(seen_ns);
        let why = if self.found.is_empty() { threads::UNREPORTED } else { threads::MISSED };
        self.tracker.compare(seen_ns, &live, why);
    }
}
