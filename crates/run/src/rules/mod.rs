//! The rules of a real-time program, checked while it runs: a thread off the program's CPUs takes
//! the kernel's events, in the order of their time, to the judge.

mod collect;
pub(crate) mod symbols;

pub(crate) use symbols::{RunningThread, program, program_threads, thread_name};

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, Sender, channel},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use anyhow::Context as _;
use collect::CollectedBreaches;
use signal_hook::consts::{SIGINT, SIGQUIT, SIGTERM};
use symbols::{ProgramSymbols, runs};

use rtproof_host::{CpuList, Facts, Root, facts::app::App, tracefs};
use rtproof_judge::{
    rules::{Outside, Tracker, UNHEARD},
    units,
};
use rtproof_measure::{
    program::{CALLS, EventSource, ProgramWatch, WatchPurpose, attach, class_of, has_marked},
    thread::pin_all,
};
use rtproof_model::run::{ProgramEvent, ProgramEventData};
use rtproof_results::launch::{MonitorReport, Rules};

use crate::now_ns;
use crate::prove::Signals;

/// Longest time between two looks at the events.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

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
pub struct RequestedRules {
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
                format!("taken to be ready {} after its start", units::duration(ns))
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
    requested: RequestedRules,
    pid: u32,
    to: Sender<Command>,
    thread: JoinHandle<CollectedBreaches>,
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
        requested: RequestedRules,
        monitors: Monitored,
        pid: u32,
        online: &CpuList,
        own: Option<&CpuList>,
    ) -> Result<Self, String> {
        let root = Root::live();
        let mut watch = ProgramWatch::new(WatchPurpose::Rules, online.as_slice(), call_filter())?;
        if !watch.add(&root, pid)? {
            return Err(format!("process {pid} has ended"));
        }
        Self::spawn(requested, pid, (watch, monitors), Vec::new(), online, own)
    }

    /// `found`: its threads that ran before.
    fn spawn(
        requested: RequestedRules,
        pid: u32,
        (mut watch, mut monitors): (ProgramWatch, Monitored),
        found: Vec<RunningThread>,
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
    pub(crate) fn poll(&mut self, signalled: bool) {
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
pub(crate) fn not_observed(requested: RequestedRules, why: String) -> Rules {
    collect::unknown(requested.ready.words(), why)
}

/// The filter that leaves out the calls that are not judged.
fn call_filter() -> String {
    let unheard = CALLS.iter().filter(|(_, name)| UNHEARD.contains(name));
    unheard.map(|(number, _)| format!("id != {number}")).collect::<Vec<_>>().join(" && ")
}

/// The thread that takes the events.
struct Observing {
    pid: u32,
    events: Ordered,
    tracker: Tracker,
    symbols: ProgramSymbols,
    collected: CollectedBreaches,
    online: CpuList,
    until_ns: Arc<AtomicU64>,
    /// Threads that ran when rtproof came.
    found: Vec<RunningThread>,
    monitors: Monitored,
}

impl Observing {
    fn new(
        pid: u32,
        (watch, monitors): (ProgramWatch, Monitored),
        tracker: Tracker,
        online: CpuList,
        until_ns: Arc<AtomicU64>,
    ) -> Self {
        let (symbols, collected) = (ProgramSymbols::default(), CollectedBreaches::default());
        let (events, found) = (Ordered::new(watch), Vec::new());
        Self { pid, events, tracker, symbols, collected, online, until_ns, found, monitors }
    }

    /// Threads that were there before: what their events would have reported.
    fn find(&mut self, found: Vec<RunningThread>) {
        self.symbols.find(&found);
        for of in &found {
            self.tracker.find(of.pid, of.tid, thread_name(of));
        }
        self.found = found;
    }

    fn run(mut self, commands: &Receiver<Command>) -> CollectedBreaches {
        let mut before_ns = 0;
        let mut compared = Instant::now();
        let end_ns = loop {
            match commands.try_recv() {
                Ok(Command::Ready) => self.ready(),
                Ok(Command::Stop) => self.events.watch.disable(),
                Ok(Command::Finish(ended_ns)) => break ended_ns,
                Err(_) => {}
            }
            self.events.watch.wait(POLL_INTERVAL);
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
        if Facts::read(&root).cpus.online.value() != Some(&self.online) {
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
            self.found.iter().filter_map(|of| Some((of.tid, symbols::call_of(of)?))).collect();
        self.compare();
        for (tid, (number, args)) in inside {
            self.tracker.find_inside(tid, number, args, from_ns);
        }
    }

    /// Judges what happened before a time.
    fn judge(&mut self, before_ns: u64) {
        for event in self.events.before(before_ns) {
            self.symbols.learn(&event);
            if self.is_end_signal(&event) {
                self.until_ns.fetch_min(event.time_ns, Ordering::SeqCst);
            }
            let is_over = event.time_ns >= self.until_ns.load(Ordering::SeqCst);
            let is_of_threads = matches!(
                event.what,
                ProgramEventData::Forked { .. }
                    | ProgramEventData::Ended
                    | ProgramEventData::Named { .. }
            );
            if !is_over || is_of_threads {
                self.tracker.take(event, &mut Live);
            }
            self.file();
        }
    }

    /// Whether the first process takes a signal to end: one that it started may be ended at any
    /// time. A key of the terminal, or timeout(1), sends it to the program as well as to us, and
    /// the program may be first.
    fn is_end_signal(&self, event: &ProgramEvent) -> bool {
        let is_ready = self.collected.from_ns.is_some_and(|from| event.time_ns >= from);
        let asks = |signal: i64| ASKING.iter().any(|it| i64::from(*it) == signal);
        is_ready
            && event.pid == self.pid
            && match event.what {
                ProgramEventData::Signal { number, is_handled } => {
                    is_handled && asks(number.into())
                }
                // sigwait(3).
                ProgramEventData::Exit { number, result } => {
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
        let live: Vec<(u32, u32)> = program_threads(&Root::live(), self.pid)
            .into_iter()
            .map(|of| (of.pid, of.tid))
            .collect();
        // What they did until they were seen.
        let seen_ns = now_ns();
        thread::sleep(Duration::from_millis(2));
        self.events.take();
        self.judge(seen_ns);
        let why = if self.found.is_empty() { symbols::UNREPORTED } else { symbols::MISSED };
        self.tracker.compare(seen_ns, &live, why);
    }
}

// The rules of a program that already runs: it is not changed, and goes on when the observation
// ends.

/// Interval between checks for its end.
const POLL: Duration = Duration::from_millis(50);

/// What was found of a running program.
#[derive(Debug)]
pub struct Attached {
    pub pid: u32,
    pub name: String,
    pub rules: Rules,
}

/// Checks the rules of a program that already runs, for a time, or until it ends or a signal comes.
/// Its processes and threads are not changed.
///
/// # Errors
/// No such process, or one that cannot be an application (usage).
pub fn observe(pid: u32, for_ns: u64) -> anyhow::Result<Attached> {
    let root = Root::live();
    let app = program(&root, pid)?;
    let signals = Signals::catch(&root).context("cannot catch signals")?;
    let requested = RequestedRules { ready: Ready::Attached, for_ns: Some(for_ns) };
    let (pid, name) = (app.pid, app.name.clone());
    let online = Facts::read(&root).cpus.online.value().cloned().unwrap_or_default();
    let rules = match join(requested, pid, &online, None) {
        Ok(watching) => follow(&root, &app, &signals, watching),
        Err(why) => not_observed(requested, why),
    };
    Ok(Attached { pid, name, rules })
}

/// Begins to observe a process that runs. `own`: the CPUs that it is to stay on.
pub(crate) fn join(
    requested: RequestedRules,
    pid: u32,
    online: &CpuList,
    own: Option<&CpuList>,
) -> Result<Watching, String> {
    let root = Root::live();
    let list = || program_threads(&root, pid);
    let tid = |of: &RunningThread| of.tid;
    let purpose = (WatchPurpose::Rules, call_filter());
    let monitors = Monitored::begin(&root);
    let (watch, found) = attach(&root, &purpose, online.as_slice(), tid, list)?;
    if found.is_empty() {
        return Err(format!("process {pid} has ended"));
    }
    Watching::spawn(requested, pid, (watch, monitors), found, online, own)
}

fn follow(root: &Root, app: &App, signals: &Signals, mut watching: Watching) -> Rules {
    while !watching.is_stopped() && signals.received().is_none() && runs(root, app) {
        watching.poll(false);
        thread::sleep(POLL);
    }
    watching.stop();
    watching.finish(now_ns())
}

// The kernel's monitors of real-time applications in addition to the rules: on while a program is
// observed, and what of their reports was seen.

/// The monitors that are on, or why there are none.
#[derive(Debug)]
pub(crate) struct Monitored(Result<tracefs::Monitors, String>);

impl Monitored {
    /// Switches them on, where the kernel has them.
    pub(crate) fn begin(root: &Root) -> Self {
        Self(tracefs::Monitors::switch_on(root))
    }

    /// Opens their reports; where that is refused, they go off again.
    fn open(&mut self, watch: &mut ProgramWatch) {
        let Ok(monitors) = &self.0 else { return };
        if let Err(why) = watch.add_monitors(&Root::live(), monitors.names()) {
            self.0 = Err(why);
        }
    }

    /// Switches off what was switched on; `from_birth`: they followed the program's threads from
    /// their births.
    fn end(self, watch: &ProgramWatch, tracker: &Tracker, from_birth: bool) -> MonitorReport {
        let monitors = match self.0 {
            Ok(monitors) => monitors,
            Err(why) => {
                let text = format!("the kernel's own monitors were not used: {why}");
                return MonitorReport { taken: Vec::new(), text };
            }
        };
        let names = monitors.names().to_vec();
        let sources = [EventSource::MonitorFaults, EventSource::MonitorSleeps];
        let missing = sources.into_iter().find_map(|source| watch.missing(source));
        let (taken, mut text) = match (monitors.are_on(), missing) {
            (_, Some(why)) => (Vec::new(), format!("their reports were not taken: {why}")),
            (false, _) => (Vec::new(), "somebody switched them off meanwhile".to_owned()),
            (true, None) if !from_birth => {
                (Vec::new(), "they may not report threads that ran before".to_owned())
            }
            (true, None) => (names.clone(), "their reports were taken".to_owned()),
        };
        let unhandled = tracker.faults_unhandled();
        if unhandled > 0 {
            let reports = units::count(unhandled as usize, "report");
            text += &format!("; {reports} of a page fault that the kernel had not to handle");
        }
        for left in monitors.end() {
            text += &format!("; {left}");
        }
        MonitorReport { taken, text: format!("the kernel's monitors {}: {text}", names.join(", ")) }
    }
}

// The events of all CPUs in the order of their time, and how many are missing.

/// Events as they come, and those that others may still have to go before.
pub(crate) struct Ordered {
    pub(crate) watch: ProgramWatch,
    queue: Vec<ProgramEvent>,
    /// Everything before it was handed out.
    done_ns: u64,
    /// Events that were lost; `Some(0)`: an unknown number.
    pub(crate) lost: Option<u64>,
    /// Number of events that arrived after later ones were passed on.
    pub(crate) late: u64,
}

impl Ordered {
    pub(crate) const fn new(watch: ProgramWatch) -> Self {
        Self { watch, queue: Vec::new(), done_ns: 0, lost: None, late: 0 }
    }

    /// Takes what has come.
    pub(crate) fn take(&mut self) {
        let Self { watch, queue, done_ns, lost, late } = self;
        watch.take(|event| match event.what {
            ProgramEventData::Lost(count) => *lost = Some(lost.unwrap_or(0) + count.unwrap_or(0)),
            _ => {
                *late += u64::from(event.time_ns < *done_ns);
                queue.push(event);
            }
        });
    }

    /// What happened before a time. An event is written some time after its stamp: ask for those of
    /// the look before.
    pub(crate) fn before(&mut self, before_ns: u64) -> Vec<ProgramEvent> {
        let mut all = std::mem::take(&mut self.queue);
        // Events of one CPU are in their order; the sort keeps that.
        all.sort_by_key(|event| event.time_ns);
        let rest = all.partition_point(|event| event.time_ns < before_ns);
        self.queue = all.split_off(rest);
        self.done_ns = all.last().map_or(self.done_ns, |event| event.time_ns.max(self.done_ns));
        all
    }

    /// Why not all events are there.
    pub(crate) fn unknown(&self) -> Vec<String> {
        let lost = self.lost.map(|lost| match lost {
            0 => "events were lost, an unknown number".into(),
            _ => format!("events were lost ({lost} counted, or some uncounted)"),
        });
        let late = format!("{} events came too late to be ordered", self.late);
        lost.into_iter().chain((self.late > 0).then_some(late)).collect()
    }
}

// What /proc says of the program where its events do not.

struct Live;

impl Outside for Live {
    fn descriptor(&mut self, pid: u32, number: u64) -> Option<String> {
        let number = u32::try_from(number).ok()?;
        let root = Root::live();
        let target = root.read_link(&format!("/proc/{pid}/fd/{number}")).value().cloned()?;
        if target != "anon_inode:[timerfd]" {
            return Some(target);
        }
        let about = root.read_text(&format!("/proc/{pid}/fdinfo/{number}"));
        let clock = about.value()?.lines().find_map(|line| line.strip_prefix("clockid:"))?;
        let is_settable = matches!(clock.trim(), "0" | "8" | "11");
        Some(if is_settable { format!("{target} settable") } else { target })
    }

    fn class(&mut self, tid: u32) -> Option<(bool, i32)> {
        class_of(tid)
    }

    fn is_same_mapping(&mut self, pid: u32, a: u64, b: u64) -> Option<bool> {
        let maps = Root::live().read_text(&format!("/proc/{pid}/maps")).value().cloned()?;
        let of = |address: u64| {
            maps.lines().position(|line| {
                let range = line.split(' ').next().and_then(|range| range.split_once('-'));
                let number = |text: &str| u64::from_str_radix(text, 16).ok();
                range
                    .and_then(|(from, to)| Some((number(from)?, number(to)?)))
                    .is_some_and(|(from, to)| (from..to).contains(&address))
            })
        };
        Some(of(a)? == of(b)?)
    }
}
