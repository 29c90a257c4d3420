//! A run of our own under the view: the engine of `prove` and `measure` in a thread, its seconds
//! handed over as they go into the record.

use std::{
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{self, Receiver, Sender},
    },
    thread::JoinHandle,
};

use anyhow::Context;
use rtproof_host::{Facts, Root};
use rtproof_judge::Report;
use rtproof_measure::{
    loads::{LoadSet, LoadSpec},
    workloads,
};
use rtproof_record::{Options, Tick};

use super::latency::Latencies;
use crate::prove::{
    self, Job, Observer, observer::Requested, output::Output, signals::Signals,
    switcher::NoSwitcher,
};

/// What `l` switches on where no load was named.
const DEFAULT_LOAD: &str = "cpu+memory+net+disk";

/// A run to be measured and watched.
#[derive(Debug)]
pub struct Run {
    pub options: Options,
    /// What the threads do: one for all, or one for each CPU.
    pub workloads: Vec<String>,
    /// Folder for the files of the disk load.
    pub load_dir: Option<PathBuf>,
    /// Where the record goes.
    pub output: Output,
}

/// How a run of our own ended.
#[derive(Debug)]
pub struct Finished {
    pub record: PathBuf,
    /// Why the record is not sealed.
    pub failure: Option<anyhow::Error>,
}

/// The run that is measured.
#[derive(Debug)]
pub(super) struct Measuring {
    pub(super) latencies: Latencies,
    pub(super) about: String,
    pub(super) record: PathBuf,
    ticks: Receiver<Tick>,
    requested: Arc<Mutex<Requested>>,
    signals: Signals,
    join: JoinHandle<anyhow::Result<Finished>>,
    /// The load that is switched, and whether it runs.
    load: Vec<String>,
    is_loaded: bool,
}

/// Hands seconds over and takes requests back; never waits.
struct Between {
    to: Sender<Tick>,
    requested: Arc<Mutex<Requested>>,
}

impl Observer for Between {
    fn tick(&mut self, tick: &Tick) {
        // A view that is gone needs no more seconds; the record has them.
        let _ = self.to.send(tick.clone());
    }

    fn requested(&mut self) -> Requested {
        match self.requested.try_lock() {
            Ok(mut requested) => std::mem::take(&mut *requested),
            Err(_) => Requested::default(),
        }
    }
}

impl Measuring {
    pub(super) fn start(run: Run, signals: &Signals) -> anyhow::Result<Self> {
        let named = run.options.phases.iter().flat_map(|phase| phase.loads.clone());
        let mut load: Vec<String> = named.collect();
        let is_loaded = !load.is_empty();
        if load.is_empty() {
            let set: LoadSet = DEFAULT_LOAD.parse()?;
            load = set.as_slice().iter().map(LoadSpec::to_string).collect();
        }
        let (to, ticks) = mpsc::channel();
        let requested = Arc::<Mutex<Requested>>::default();
        let between = Between { to, requested: Arc::clone(&requested) };
        let latencies = Latencies::new(run.options.requirement.budget_ns);
        let about = about(&run.options, &run.workloads);
        let record = run.output.record.clone();
        let own = signals.clone();
        let join = std::thread::Builder::new()
            .name("rtproof/engine".into())
            .spawn(move || measure(&run, &own, between))
            .context("cannot start the thread of the run")?;
        let signals = signals.clone();
        Ok(Self { latencies, about, record, ticks, requested, signals, join, load, is_loaded })
    }

    /// Takes in what came.
    pub(super) fn take(&mut self) -> Vec<Tick> {
        let ticks: Vec<Tick> = self.ticks.try_iter().collect();
        ticks.iter().for_each(|tick| self.latencies.tick(tick.clone()));
        ticks
    }

    /// Whether nothing is measured any more.
    pub(super) fn is_over(&self) -> bool {
        self.join.is_finished()
    }

    /// The load that runs, as it is written; `idle`: none.
    pub(super) fn load(&self) -> String {
        if self.is_loaded { self.load.join("+") } else { "idle".into() }
    }

    /// Switches the load on or off.
    pub(super) fn switch_load(&mut self) {
        self.is_loaded = !self.is_loaded;
        let loads = if self.is_loaded { self.load.clone() } else { Vec::new() };
        self.request(|requested| requested.loads = Some(loads));
    }

    /// Leaves a mark in the record.
    pub(super) fn mark(&self, text: &str) {
        self.request(|requested| requested.marks.push(text.to_owned()));
    }

    fn request(&self, change: impl FnOnce(&mut Requested)) {
        change(&mut self.requested.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Ends the run, where it has not ended, and waits for its record.
    pub(super) fn finish(self) -> anyhow::Result<Finished> {
        if !self.join.is_finished() && self.signals.came().is_none() {
            self.signals.quit();
        }
        self.join.join().unwrap_or_else(|_| Err(anyhow::anyhow!("the thread of the run panicked")))
    }
}

fn measure(run: &Run, signals: &Signals, mut between: Between) -> anyhow::Result<Finished> {
    let root = Root::live();
    let parsed = run.workloads.iter().map(|name| workloads::parse(name));
    let job = Job {
        options: &run.options,
        output: &run.output,
        load_dir: run.load_dir.as_deref(),
        workloads: parsed.collect::<Result<_, _>>()?,
        signals,
    };
    let finishing = prove::run(&root, Facts::read(&root), &job, &mut NoSwitcher, &mut between)?;
    let report = Report::new(&finishing.run, &finishing.standing());
    let sealed = finishing.seal(&report)?;
    Ok(Finished { record: run.output.record.clone(), failure: sealed.failure })
}

/// `timer-wakeup on CPUs 2-3, fifo 80, 1 ms`.
pub(super) fn about(options: &Options, workloads: &[String]) -> String {
    let what = match workloads {
        [one] => one.clone(),
        many => many.join(", "),
    };
    let priority = match options.priority {
        0 => String::new(),
        priority => format!(" {priority}"),
    };
    format!(
        "{what} on CPU{} {}, {}{priority}, {}",
        if options.cpus.len() == 1 { "" } else { "s" },
        options.cpus,
        options.policy.name(),
        rtproof_judge::units::ns(options.period_ns)
    )
}
