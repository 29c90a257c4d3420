//! The flight recorder: the kernel's own account of what each CPU did, kept for the last seconds,
//! so that a late wake-up can be looked into after it has happened, and nothing stops.
//!
//! A thread of ordinary priority on the housekeeping CPUs reads the rings of an instance of
//! tracefs of our own. Whoever sees a late wake-up asks for its window; when the events up to then
//! are there, the window is taken out, its tasks and addresses are named at once (processes die),
//! and it waits to be taken. The measured CPUs only write their events.

pub mod counters;
mod engine;

use std::{
    collections::BTreeMap,
    sync::{
        Arc, OnceLock,
        mpsc::{self, Sender, SyncSender, TrySendError},
    },
    time::Duration,
};

use counters::CounterReader;
use engine::{
    CpuRings, Engine, EngineCommand, EngineShared, EngineState, REQUESTS_MAX, Reply, settle,
};

use rtproof_host::{
    CpuList, Facts, Reading, Root,
    symbols::KernelSymbols,
    task::task,
    tracefs::{self, Instance, TracefsError},
};
use rtproof_trace::{
    ByteOrder, Decoder, Formats, Store, Subjects, Task, WakeUp, Window,
    format::FormatError,
    scan::{PreemptedBy, ThreadTotals},
};

use crate::sys;

/// Records until it is dropped; its instance of tracefs goes with it.
#[derive(Debug)]
pub struct Recorder {
    mode: RingMode,
    path: String,
    formats: Arc<Formats>,
    missing: Vec<String>,
    removed: Vec<String>,
    requests: SyncSender<WakeUp>,
    /// `None` once its end was requested.
    commands: Option<Sender<EngineCommand>>,
    shared: Arc<EngineShared>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Recorder {
    /// Starts to record: what happens from now on can be requested.
    ///
    /// # Errors
    /// Why the kernel's events are not available here; nothing is left behind then.
    pub fn start(
        root: &Root,
        facts: &Facts,
        settings: RecorderSettings,
    ) -> Result<Self, RecorderError> {
        let cpus = settings.measured.union(&settings.others);
        if cpus.is_empty() {
            return Err(RecorderError::NoCpus);
        }
        // Tens of megabytes come and go while others are measured.
        sys::steady_heap();
        let mode = settings.mode.unwrap_or_else(|| usual_mode(facts));
        let instance = Instance::create(root, &settings.rings())?;
        let formats = Arc::new(formats(&instance)?);
        let strings = instance.strings().into_iter();
        let strings = strings.map(|(address, text)| (address, text.as_str().into()));
        let decoder = Decoder::new(&formats).with_strings(strings);
        let mut store = Store::new(decoder.clone(), settings.store_bytes);
        let mut rings = CpuRings::open(&instance, cpus.iter(), &decoder)?;
        let (requests, requested) = mpsc::sync_channel(REQUESTS_MAX);
        let (commands, obeyed) = mpsc::channel();
        let shared = Arc::new(EngineShared::default());
        let mut recorder = Self {
            mode,
            path: instance.path().to_owned(),
            missing: instance.missing().iter().map(ToString::to_string).collect(),
            removed: instance.removed().to_vec(),
            formats: Arc::clone(&formats),
            requests,
            commands: Some(commands),
            shared: Arc::clone(&shared),
            thread: None,
        };
        let mut counters = CounterReader::new(root, facts, &settings.measured);
        // Counters read before the first wake-up give its differences.
        let own = i32::try_from(std::process::id()).ok().and_then(|pid| task(root, pid));
        own.and_then(|own| own.cgroup).iter().for_each(|group| counters.watch(group));
        counters.sample(sys::now_ns);
        instance.set_on(true)?;
        rings.begin(&mut store, sys::now_ns());
        let root = root.clone();
        let life = move || {
            settle(&settings);
            let names = TaskNames::new(&root);
            let state = EngineState::new();
            let engine = Engine {
                settings,
                mode,
                rings,
                instance,
                store,
                decoder,
                counters,
                names,
                requests: requested,
                commands: obeyed,
                shared,
                state,
            };
            engine.run();
        };
        let thread = std::thread::Builder::new().name("rtproof/record".into()).spawn(life);
        recorder.thread = Some(thread.map_err(RecorderError::Thread)?);
        Ok(recorder)
    }

    /// Asks for the window of a wake-up; [`Recorder::take`] hands it out. Its times are
    /// CLOCK_MONOTONIC. Returns whether there was room for it.
    pub fn ask(&self, wake: WakeUp) -> bool {
        match self.requests.try_send(wake) {
            Ok(()) => true,
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {
                self.shared.stats().refused += 1;
                false
            }
        }
    }

    /// Windows that are ready, in the order in which they became so. Takes no longer than a lock.
    pub fn take(&self) -> Vec<(WakeUp, Window)> {
        std::mem::take(&mut *self.shared.ready())
    }

    /// Stops recording for a while: what happens then cannot be requested.
    ///
    /// # Errors
    /// The write is refused, or the recorder has stopped.
    pub fn pause(&self) -> Result<(), RecorderError> {
        self.send(|reply| EngineCommand::On(false, reply))
    }

    /// Goes on after [`Recorder::pause`].
    pub fn resume(&self) -> Result<(), RecorderError> {
        self.send(|reply| EngineCommand::On(true, reply))
    }

    /// Takes the kernel stack at each timer interrupt from now on, or no longer.
    ///
    /// # Errors
    /// The kernel takes no stacks, or the recorder has stopped.
    pub fn arm_stack(&self, on: bool) -> Result<(), RecorderError> {
        self.send(|reply| EngineCommand::Stack(on, reply))
    }

    /// Looks for wake-ups of any threads that are more than `threshold_ns` late, from now on, and
    /// asks for them by itself; `None`: no longer. What was counted before is forgotten.
    ///
    /// # Errors
    /// [`RingMode::Freeze`] does not look; or the recorder has stopped.
    pub fn watch(&self, subjects: Option<(Subjects, u64)>) -> Result<(), RecorderError> {
        if self.mode == RingMode::Freeze {
            return Err(RecorderError::Frozen);
        }
        let commands = self.commands.as_ref().ok_or(RecorderError::Stopped)?;
        commands.send(EngineCommand::Watch(subjects)).map_err(|_| RecorderError::Stopped)
    }

    /// Follows more threads: of a process that makes them while it is watched.
    ///
    /// # Errors
    /// The recorder has stopped.
    pub fn follow(&self, tids: Vec<i32>) -> Result<(), RecorderError> {
        let commands = self.commands.as_ref().ok_or(RecorderError::Stopped)?;
        commands.send(EngineCommand::Follow(tids)).map_err(|_| RecorderError::Stopped)
    }

    /// Whether it watches: before, the addresses of the kernel's timers are looked up.
    pub fn is_watching(&self) -> bool {
        self.shared.is_watching.load(std::sync::atomic::Ordering::Relaxed)
    }

    /// Tasks that ran instead of the watched threads while these were runnable, at the last look.
    pub fn preemptions(&self) -> Vec<PreemptedBy> {
        self.shared.preemptions().clone()
    }

    /// What [`Recorder::watch`] counted of each thread, as of the last look.
    pub fn watched(&self) -> Vec<ThreadTotals> {
        self.shared.totals().clone()
    }

    /// The wake-ups of the watched threads since the last call, where they are to be kept
    /// ([`Subjects::keeps`]), in the order they ended.
    pub fn take_kept(&self) -> Vec<WakeUp> {
        std::mem::take(&mut *self.shared.kept())
    }

    fn send(&self, command: impl FnOnce(Reply) -> EngineCommand) -> Result<(), RecorderError> {
        let (reply, answer) = mpsc::sync_channel(1);
        let commands = self.commands.as_ref().ok_or(RecorderError::Stopped)?;
        commands.send(command(reply)).map_err(|_| RecorderError::Stopped)?;
        Ok(answer.recv().map_err(|_| RecorderError::Stopped)??)
    }

    /// How the rings are read.
    pub const fn mode(&self) -> RingMode {
        self.mode
    }

    /// Name of the instance.
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }

    /// Formats of what is recorded.
    pub fn formats(&self) -> &Formats {
        &self.formats
    }

    /// Events that this machine lacks or refuses, and what cannot be distinguished without each:
    /// sentences.
    pub fn missing(&self) -> &[String] {
        &self.missing
    }

    /// Instances left behind by killed runs and removed now.
    pub fn removed(&self) -> &[String] {
        &self.removed
    }

    /// What it did so far, as of its last look.
    pub fn stats(&self) -> RecorderStats {
        self.shared.stats().clone()
    }

    /// Ends it: what was requested is answered as far as its events are there, and its instance is
    /// removed. Windows can be taken and counts be read after it. Returns the folder of its
    /// instance where that could not be removed.
    pub fn stop(&mut self) -> Option<&str> {
        self.commands = None;
        if let Some(thread) = self.thread.take() {
            // It panicked: what it answered before is still there.
            let _ = thread.join();
        }
        Root::live().exists(&self.path).then_some(&*self.path)
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Where one CPU is online it does all.
fn usual_mode(facts: &Facts) -> RingMode {
    match facts.cpus.online.value() {
        Some(online) if online.len() == 1 => RingMode::Freeze,
        _ => RingMode::Stream,
    }
}

fn formats(instance: &Instance) -> Result<Formats, RecorderError> {
    let wrong = |file: &str| {
        let file = file.to_owned();
        |error| RecorderError::Format { file, error }
    };
    let header = instance.header("header_page")?;
    let mut formats = Formats::new(&header, ByteOrder::native()).map_err(wrong("header_page"))?;
    for (system, text) in instance.formats()? {
        let name = text.lines().next().unwrap_or_default();
        formats.add(system, &text).map_err(wrong(&format!("{system}: {name}")))?;
    }
    if let Ok(header) = instance.header("header_event") {
        formats.set_header_event(&header);
    }
    Ok(formats)
}

/// Why nothing is recorded.
#[derive(Debug, thiserror::Error)]
pub enum RecorderError {
    /// The kernel's events are not available.
    #[error(transparent)]
    Tracefs(#[from] TracefsError),
    /// They cannot be read.
    #[error("{file}: {error}; please report this kernel's file")]
    Format {
        /// File below `events`.
        file: String,
        error: FormatError,
    },
    #[error("no CPU to record; name some with --cpus")]
    NoCpus,
    /// The thread could not be made.
    #[error("cannot start the recorder's thread: {0}; check `ulimit -u`")]
    Thread(std::io::Error),
    /// Nothing is read without a request.
    #[error(
        "one CPU does all: its events are read for an answer only, and nobody looks for late \
         wake-ups in them"
    )]
    Frozen,
    /// The thread is gone.
    #[error("the recorder has stopped")]
    Stopped,
}

// Settings of the flight recorder: CPUs, sizes, times.

/// How the kernel's rings are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RingMode {
    /// Repeatedly, during the measurement: nothing stops.
    Stream,
    /// Only for an answer: recording stops, everything is read, recording goes on. Where one CPU
    /// does all, reading would take it from what is measured.
    Freeze,
}

/// Settings of a [`Recorder`].
#[derive(Clone, Debug)]
pub struct RecorderSettings {
    /// CPUs whose late wake-ups will be requested.
    pub measured: CpuList,
    /// Other CPUs that are recorded: those that wake and interrupt the measured ones.
    pub others: CpuList,
    /// CPUs that the recorder's own thread may run on; empty: any.
    pub housekeeping: CpuList,
    /// Nice value of the recorder's own thread.
    pub nice: i32,
    /// How the rings are read; `None`: as the machine needs it.
    pub mode: Option<RingMode>,
    /// Ring of a measured CPU, kilobytes.
    pub measured_kb: u64,
    /// Ring of another CPU, kilobytes.
    pub others_kb: u64,
    /// Most memory of what was read, bytes.
    pub store_bytes: usize,
    /// Time between two readings.
    pub poll: Duration,
    /// A window begins so long before the wake-up was due, nanoseconds.
    pub lead_ns: u64,
    /// And ends so long after it ran, nanoseconds.
    pub tail_ns: u64,
    /// Longest wait for the events of a wake-up after it ran, nanoseconds.
    pub patience_ns: u64,
}

impl RecorderSettings {
    pub fn new(measured: CpuList, others: CpuList, housekeeping: CpuList) -> Self {
        Self {
            measured,
            others,
            housekeeping,
            nice: -15,
            mode: None,
            measured_kb: 4096,
            others_kb: 512,
            store_bytes: 64 << 20,
            poll: Duration::from_millis(20),
            lead_ns: 3_000_000,
            tail_ns: 100_000,
            patience_ns: 500_000_000,
        }
    }
}

impl RecorderSettings {
    fn rings(&self) -> tracefs::RingSizes {
        tracefs::RingSizes {
            measured: self.measured.clone(),
            measured_kb: self.measured_kb,
            others: self.others.clone(),
            others_kb: self.others_kb,
        }
    }
}

/// What a recorder did so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecorderStats {
    /// Events that the kernel wrote.
    pub events: u64,
    /// Of those lost before they were read: the kernel's own count. In freeze mode what is
    /// overwritten before a request is not counted.
    pub lost_events: u64,
    /// Sub-buffers that were read.
    pub pages: u64,
    /// Bytes of events in them.
    pub bytes: u64,
    /// Wake-ups that were answered.
    pub answered: u64,
    /// Wake-ups that wait for their answer.
    pub waiting: u64,
    /// Wake-ups that were not taken: too many at once.
    pub refused: u64,
    /// Wake-ups dropped because they were not taken in time.
    pub kept_lost: u64,
    /// Time without recording, nanoseconds, because reading stops it in freeze mode.
    pub blind_ns: u64,
    /// CPU time of the recorder's thread, nanoseconds.
    pub cpu_time_ns: u64,
    /// Whether stacks are taken at the timer interrupt.
    pub stacks: bool,
    /// Why addresses of the kernel have no names; `None`: they have, or are being read.
    pub no_symbols: Option<String>,
    /// Why a sub-buffer could not be read; `None`: all could.
    pub error: Option<String>,
}

// Names for what is in a window: tasks by their ids, kernel addresses by their functions.

/// A task may change its policy: its properties are cached this long.
const FRESH_NS: u64 = 1_000_000_000;

/// Tasks that are remembered, also after their end.
const TASKS_MAX: usize = 8_192;

/// Addresses that are named in one window.
const ADDRESSES_MAX: usize = 4_096;

/// Symbols that another thread is reading.
type Reader = Arc<OnceLock<Reading<KernelSymbols>>>;

#[derive(Debug)]
struct TaskNames {
    root: Root,
    /// When it was requested, and the task as it was then.
    tasks: BTreeMap<i32, (u64, Task)>,
    symbols: Reader,
}

impl TaskNames {
    /// Begins to read the symbols. The thread that reads is a child of the calling one and runs
    /// where that may.
    fn new(root: &Root) -> Self {
        let symbols = Reader::default();
        let (into, of) = (Arc::clone(&symbols), root.clone());
        let read = move || drop(into.set(KernelSymbols::read(&of)));
        let thread = std::thread::Builder::new().name("rtproof/symbols".into()).spawn(read);
        if let Err(error) = thread {
            let _ = symbols.set(Reading::denied("/proc/kallsyms", error.to_string()));
        }
        Self { root: root.clone(), tasks: BTreeMap::new(), symbols }
    }

    /// Whether symbols have been read, or will not be.
    fn is_ready(&self) -> bool {
        self.symbols.get().is_some()
    }

    /// The symbols, where there are some.
    fn symbols(&self) -> Option<&KernelSymbols> {
        self.symbols.get()?.value()
    }

    /// Why addresses have no names.
    fn no_symbols(&self) -> Option<String> {
        self.symbols.get()?.why_unknown()
    }

    /// The task as it is now, or was when it was last requested within a second, or before it
    /// ended.
    fn task(&mut self, tid: i32, now_ns: u64) -> Option<&Task> {
        let is_fresh = |(at_ns, _): &(u64, Task)| now_ns.saturating_sub(*at_ns) < FRESH_NS;
        if tid > 0
            && !self.tasks.get(&tid).is_some_and(is_fresh)
            && let Some(task) = task(&self.root, tid)
        {
            if self.tasks.len() >= TASKS_MAX {
                self.tasks.retain(|_, known| is_fresh(known));
            }
            if self.tasks.len() < TASKS_MAX {
                self.tasks.insert(tid, (now_ns, task));
            }
        }
        self.tasks.get(&tid).map(|(_, task)| task)
    }

    /// Fills in the tasks and the symbols of a window.
    fn name(&mut self, window: &mut Window, tid: i32, now_ns: u64) {
        let addresses = window.addresses();
        for tid in window.tids().into_iter().chain([tid]) {
            if let Some(task) = self.task(tid, now_ns) {
                window.tasks.insert(tid, task.clone());
            }
        }
        let Some(symbols) = self.symbols() else { return };
        let name = |address: u64| Some((address, symbols.lookup(address)?));
        window.symbols = addresses.into_iter().take(ADDRESSES_MAX).filter_map(name).collect();
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests make the machines that they read")]
mod tests {
    use super::*;

    const STAT: &str = " S 1 7 7 0 -1 0 9 0 0 0 3 4 0 0 20 0 1 0 88 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 \
                        17 2 0 0 0 0 0 0 0 0 0 0 0 0 0\n";

    #[test]
    fn a_task_is_known_after_its_end_and_asked_again_after_a_second() {
        let dir = tempfile::tempdir().unwrap();
        let stat = dir.path().join("proc/7/stat");
        std::fs::create_dir_all(stat.parent().unwrap()).unwrap();
        std::fs::write(&stat, format!("7 (one){STAT}")).unwrap();
        let mut who = TaskNames::new(&Root::dir(dir.path()).unwrap());
        let comm = |who: &mut TaskNames, now_ns| who.task(7, now_ns).map(|task| task.comm.clone());
        assert_eq!(comm(&mut who, 5).as_deref(), Some("one"));
        std::fs::write(&stat, format!("7 (two){STAT}")).unwrap();
        assert_eq!(comm(&mut who, 6).as_deref(), Some("one"));
        assert_eq!(comm(&mut who, 5 + FRESH_NS).as_deref(), Some("two"));
        std::fs::remove_file(&stat).unwrap();
        assert_eq!(comm(&mut who, 5 * FRESH_NS).as_deref(), Some("two"));
        assert!([8, 0, -1].iter().all(|tid| who.task(*tid, 0).is_none()));
    }
}
