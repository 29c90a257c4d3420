//! The rules of a real-time program, checked while it runs: a thread off the program's CPUs takes
//! the kernel's events, in the order of their time, to the judge.

mod attached;
mod collect;
pub(crate) mod ordered;
mod outside;
pub(crate) mod symbols;
mod threads;

use std::{
    sync::mpsc::{Receiver, Sender, channel},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use rtproof_host::{CpuList, Root};
use rtproof_judge::rules::{Tracker, UNHEARD};
use rtproof_measure::{
    program::{CALLS, Purpose, Watch, has_marked},
    thread::pin_all,
};
use rtproof_model::program::What;
use rtproof_results::rules::Rules;

pub use self::attached::{Attached, observe};
pub(crate) use self::threads::{Thread, list, name, program};
use self::{collect::Collected, ordered::Ordered, outside::Live, symbols::Symbols};
use crate::clock::now_ns;

/// Longest time between two looks at the events.
const LOOK: Duration = Duration::from_millis(20);
/// Time between two comparisons with the threads in /proc.
const COMPARE: Duration = Duration::from_secs(1);

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
    Stop(u64),
    Finish,
}

/// A program whose rules are checked.
pub(crate) struct Watching {
    requested: Requested,
    pid: u32,
    to: Sender<Command>,
    thread: JoinHandle<Collected>,
    ready_ns: Option<u64>,
    is_stopped: bool,
    began_ns: u64,
}

impl Watching {
    /// Begins to observe a process that is to become the program.
    ///
    /// # Errors
    /// Nothing can be observed: why.
    pub(crate) fn begin(
        requested: Requested,
        pid: u32,
        online: &CpuList,
        own: Option<&CpuList>,
    ) -> Result<Self, String> {
        let root = Root::live();
        let mut watch = Watch::new(Purpose::Rules, online.as_slice(), heard())?;
        if !watch.add(&root, pid)? {
            return Err(format!("process {pid} has ended"));
        }
        Self::spawn(requested, pid, watch, Vec::new(), online, own)
    }

    /// `found`: its threads that ran before.
    fn spawn(
        requested: Requested,
        pid: u32,
        watch: Watch,
        found: Vec<Thread>,
        online: &CpuList,
        own: Option<&CpuList>,
    ) -> Result<Self, String> {
        let (to, commands) = channel();
        let rest = own.map_or_else(|| online.clone(), |own| online.difference(own));
        let cpus = own.map(|own| own.as_slice().to_vec());
        let online = online.clone();
        let observe = move || {
            // Where there is no other CPU, it shares one.
            let _ = pin_all(rest.as_slice());
            let tracker = Tracker::new(pid, CALLS, cpus.as_deref());
            let mut observing = Observing::new(pid, watch, tracker, online);
            observing.find(found);
            observing.run(&commands)
        };
        let thread = thread::Builder::new().name("rules".into()).spawn(observe);
        let thread = thread.map_err(|error| format!("a thread to take events: {error}"))?;
        let began_ns = now_ns();
        let (ready_ns, is_stopped) = (None, false);
        Ok(Self { requested, pid, to, thread, ready_ns, is_stopped, began_ns })
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

    /// What happens from now on is the program's end, and not judged.
    pub(crate) fn stop(&mut self) {
        if !std::mem::replace(&mut self.is_stopped, true) {
            self.send(Command::Stop(now_ns()));
        }
    }

    fn send(&self, command: Command) {
        // A thread that has panicked is seen by `finish`.
        let _ = self.to.send(command);
    }

    /// The program has ended.
    pub(crate) fn finish(self) -> Rules {
        self.send(Command::Finish);
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
    /// Threads that ran when rtproof came.
    found: Vec<Thread>,
}

impl Observing {
    fn new(pid: u32, watch: Watch, tracker: Tracker, online: CpuList) -> Self {
        let (symbols, collected) = (Symbols::default(), Collected::default());
        let events = Ordered::new(watch);
        Self { pid, events, tracker, symbols, collected, online, found: Vec::new() }
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
        loop {
            match commands.try_recv() {
                Ok(Command::Ready) => self.ready(),
                Ok(Command::Stop(at)) => {
                    self.collected.until_ns = Some(at);
                    self.events.watch.disable();
                }
                Ok(Command::Finish) => break,
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
        }
        let end_ns = now_ns();
        self.events.take();
        self.judge(u64::MAX);
        self.tracker.finish();
        self.file();
        let root = Root::live();
        if rtproof_host::Facts::read(&root).cpus.online.value() != Some(&self.online) {
            self.collected.unknown.insert("CPUs went on or off while it ran".into());
        }
        let Self { mut collected, tracker, events, .. } = self;
        collected.unknown.extend(events.unknown());
        collected.finish(&tracker, &events.watch, end_ns);
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
            match &event.what {
                What::Named { by_exec: true, .. } => self.symbols.executed(event.pid),
                What::Forked { pid, parent_pid, .. } => self.symbols.forked(*pid, *parent_pid),
                What::Mapped(mapping) => self.symbols.mapped(event.pid, mapping.clone()),
                _ => {}
            }
            let is_over = self.collected.until_ns.is_some_and(|until| event.time_ns > until);
            let is_of_threads =
                matches!(event.what, What::Forked { .. } | What::Ended | What::Named { .. });
            if !is_over || is_of_threads {
                self.tracker.take(event, &mut Live);
            }
            self.file();
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
