//! The flight recorder: the kernel's own account of what each CPU did, kept for the last seconds,
//! so that a late wake-up can be looked into after it has happened, and nothing stops.
//!
//! A thread of ordinary priority on the housekeeping CPUs reads the rings of an instance of
//! tracefs of our own. Whoever sees a late wake-up asks for its window; when the events up to then
//! are there, the window is taken out, its tasks and addresses are named at once (processes die),
//! and it waits to be taken. The measured CPUs only write their events.

pub mod cost;
mod counters;
mod engine;
mod error;
mod rings;
mod settings;
mod stats;
mod watch;
mod who;

use std::sync::{
    Arc, mpsc,
    mpsc::{Sender, SyncSender, TrySendError},
};

use rtproof_host::{Facts, Root, task::task, tracefs::Instance};
use rtproof_trace::{
    ByteOrder, Decoder, Formats, Store, Subjects, WakeUp, Window,
    scan::{Preemption, Totals},
};

use self::{
    counters::Counters,
    engine::{ASKS_MAX, Command, Engine, Reply, Shared, State, settle},
    rings::Rings,
    who::Who,
};
pub use self::{
    error::RecorderError,
    settings::{Mode, Settings},
    stats::Stats,
};
use crate::sys;

/// Records until it is dropped; its instance of tracefs goes with it.
#[derive(Debug)]
pub struct Recorder {
    mode: Mode,
    path: String,
    formats: Arc<Formats>,
    missing: Vec<String>,
    removed: Vec<String>,
    asks: SyncSender<WakeUp>,
    /// `None` once its end was requested.
    commands: Option<Sender<Command>>,
    shared: Arc<Shared>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Recorder {
    /// Starts to record: what happens from now on can be requested.
    ///
    /// # Errors
    /// Why the kernel's events are not available here; nothing is left behind then.
    pub fn start(root: &Root, facts: &Facts, settings: Settings) -> Result<Self, RecorderError> {
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
        let mut rings = Rings::open(&instance, cpus.iter(), &decoder)?;
        let (asks, asked) = mpsc::sync_channel(ASKS_MAX);
        let (commands, obeyed) = mpsc::channel();
        let shared = Arc::new(Shared::default());
        let mut recorder = Self {
            mode,
            path: instance.path().to_owned(),
            missing: instance.missing().iter().map(ToString::to_string).collect(),
            removed: instance.removed().to_vec(),
            formats: Arc::clone(&formats),
            asks,
            commands: Some(commands),
            shared: Arc::clone(&shared),
            thread: None,
        };
        let mut counters = Counters::new(root, facts, &settings.measured);
        // What is counted before the first wake-up tells what went by over it.
        let own = i32::try_from(std::process::id()).ok().and_then(|pid| task(root, pid));
        own.and_then(|own| own.cgroup).iter().for_each(|group| counters.watch(group));
        counters.sample(sys::now_ns);
        instance.set_on(true)?;
        rings.begin(&mut store, sys::now_ns());
        let root = root.clone();
        let life = move || {
            settle(&settings);
            let who = Who::new(&root);
            let state = State::new();
            let engine = Engine {
                settings,
                mode,
                rings,
                instance,
                store,
                decoder,
                counters,
                who,
                asks: asked,
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
        match self.asks.try_send(wake) {
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
        self.tell(|reply| Command::On(false, reply))
    }

    /// Goes on after [`Recorder::pause`].
    pub fn resume(&self) -> Result<(), RecorderError> {
        self.tell(|reply| Command::On(true, reply))
    }

    /// Takes the kernel stack at each timer interrupt from now on, or no longer.
    ///
    /// # Errors
    /// The kernel takes no stacks, or the recorder has stopped.
    pub fn arm_stack(&self, on: bool) -> Result<(), RecorderError> {
        self.tell(|reply| Command::Stack(on, reply))
    }

    /// Looks for wake-ups of any threads that are more than `threshold_ns` late, from now on, and
    /// asks for them by itself; `None`: no longer. What was counted before is forgotten.
    ///
    /// # Errors
    /// [`Mode::Freeze`] does not look; or the recorder has stopped.
    pub fn watch(&self, whom: Option<(Subjects, u64)>) -> Result<(), RecorderError> {
        if self.mode == Mode::Freeze {
            return Err(RecorderError::Frozen);
        }
        let commands = self.commands.as_ref().ok_or(RecorderError::Stopped)?;
        commands.send(Command::Watch(whom)).map_err(|_| RecorderError::Stopped)
    }

    /// Follows more threads: of a process that makes them while it is watched.
    ///
    /// # Errors
    /// The recorder has stopped.
    pub fn follow(&self, tids: Vec<i32>) -> Result<(), RecorderError> {
        let commands = self.commands.as_ref().ok_or(RecorderError::Stopped)?;
        commands.send(Command::Follow(tids)).map_err(|_| RecorderError::Stopped)
    }

    /// Whether it watches: before, the addresses of the kernel's timers are looked up.
    pub fn is_watching(&self) -> bool {
        self.shared.is_watching.load(std::sync::atomic::Ordering::Relaxed)
    }

    /// Who ran in the place of the watched threads while they were runnable, as of the last look.
    pub fn preemptions(&self) -> Vec<Preemption> {
        self.shared.preemptions().clone()
    }

    /// What [`Recorder::watch`] counted of each thread, as of the last look.
    pub fn watched(&self) -> Vec<Totals> {
        self.shared.totals().clone()
    }

    /// The wake-ups of the watched threads since the last call, where they are to be kept
    /// ([`Subjects::keeps`]), in the order they ended.
    pub fn take_kept(&self) -> Vec<WakeUp> {
        std::mem::take(&mut *self.shared.kept())
    }

    fn tell(&self, command: impl FnOnce(Reply) -> Command) -> Result<(), RecorderError> {
        let (reply, answer) = mpsc::sync_channel(1);
        let commands = self.commands.as_ref().ok_or(RecorderError::Stopped)?;
        commands.send(command(reply)).map_err(|_| RecorderError::Stopped)?;
        Ok(answer.recv().map_err(|_| RecorderError::Stopped)??)
    }

    /// How the rings are read.
    pub const fn mode(&self) -> Mode {
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

    /// Instances that killed runs had left behind and that are gone now.
    pub fn removed(&self) -> &[String] {
        &self.removed
    }

    /// What it did so far, as of its last look.
    pub fn stats(&self) -> Stats {
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
fn usual_mode(facts: &Facts) -> Mode {
    match facts.cpus.online.value() {
        Some(online) if online.len() == 1 => Mode::Freeze,
        _ => Mode::Stream,
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
