//! The measurement behind `prove`: options, threads, loads, record.

pub(crate) mod collect;
pub mod engine;
mod notes;
pub(crate) mod spikes;
mod watch;

pub use collect::load_settings;
pub use engine::{measure, run};

use std::{
    io::{self, ErrorKind, Read as _, Write as _},
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use anyhow::Context;
use jiff::{Timestamp, tz::TimeZone};
use rustix::thread::ClockId;
use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ},
    flag,
    low_level::pipe,
};

use rtproof_host::{
    CpuList, Facts, Root,
    door::usage,
    facts::tasks::Policy,
    text,
    tune::{self, Journal, Machine, held},
};
use rtproof_judge::verdict;
use rtproof_measure::{
    LiveTasks, Slot, StartedThread,
    clock::Clock,
    cycle::SLOT_NS,
    loads::LoadSet,
    workloads::{self, Workload},
};
use rtproof_record::{
    BudgetClass, EffectTick, Options, Requirement, Snapshot, Start, Tick,
    run::{Mark, Note, Phase, Second, ThreadInfo},
};

use crate::intent::{PERIOD_NS, PRIORITY, RequestedIntent};
use crate::{online_cpus, parse};

/// A run to be measured, once everything is decided.
#[derive(Debug)]
pub struct Job<'a> {
    pub options: &'a Options,
    /// Where the record goes.
    pub output: &'a Output,
    /// Folder for the files of loads; `None`: that of the record.
    pub load_dir: Option<&'a Path>,
    /// What the threads do: one for all, or one for each CPU.
    pub workloads: Vec<Arc<dyn Workload>>,
    pub signals: &'a Signals,
}

// Observes a run while it is measured: a progress line, rows. The housekeeping thread calls it.

/// How far a run is.
#[derive(Clone, Copy, Debug, Default)]
pub struct RunProgress<'a> {
    /// Time since the first wake-up was due.
    pub at_ns: u64,
    /// Phase of the load.
    pub phase: &'a str,
    /// Worst latency, and its CPU.
    pub worst: Option<(u64, u32)>,
    pub missed: u64,
    /// Wake-ups above the budget; `None`: there is no budget.
    pub late: Option<u64>,
    /// The largest share of the spike that was explained last: title of its cause, culprit.
    pub last_cause: Option<(&'a str, &'a str)>,
}

/// What a user wants of a run that goes on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LiveRequest {
    /// Loads that are to run from now on instead of those of the phases, as they are written.
    pub loads: Option<Vec<String>>,
    /// Moments to be marked, each with its words.
    pub marks: Vec<String>,
}

/// Observes a run. It must not wait: the thread that calls it empties the slots.
pub trait Observer {
    /// The threads that measure, before the first second.
    fn started(&mut self, _: &[ThreadInfo]) {}

    /// A second of a thread; those of one thread in order.
    fn second(&mut self, _: &ThreadInfo, _: &Second) {}

    /// A thread was changed from outside; after the second in which it was.
    fn mark(&mut self, _: &ThreadInfo, _: &Mark) {}

    /// All that a second brought, as it goes into the record.
    fn tick(&mut self, _: &Tick) {}

    /// What is requested of the run since the last call; asked each time the housekeeping thread
    /// wakes.
    fn requested(&mut self) -> LiveRequest {
        LiveRequest::default()
    }

    /// How far it is, once a second.
    fn progress(&mut self, _: &RunProgress<'_>) {}

    /// Nothing is measured any more; what is left of the last second may come after this.
    fn done(&mut self) {}
}

/// An observer that ignores everything.
#[derive(Clone, Copy, Debug)]
pub struct SilentObserver;

impl Observer for SilentObserver {}

// Where record and report go, decided and tried before anything is measured.

/// The files of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    pub record: PathBuf,
    pub html: PathBuf,
    /// Each single sample, where they are kept.
    pub samples: Option<PathBuf>,
}

impl Output {
    /// `prove-HOST-TIME.*` in a folder, or the name given. Both files are tried: that they are not
    /// there yet, and that they can be made.
    ///
    /// # Errors
    /// When the folder is not there, a file is, or none can be made.
    pub fn choose(path: &Path, facts: &Facts) -> anyhow::Result<Self> {
        Self::choose_for("prove", path, facts)
    }

    /// The same, of another command.
    ///
    /// # Errors
    /// As [`Output::choose`].
    pub fn choose_for(command: &str, path: &Path, facts: &Facts) -> anyhow::Result<Self> {
        let chosen = if path.is_dir() {
            Self::free(&path.join(default_name(command, facts)))
        } else {
            anyhow::ensure!(!means_folder(path), no_folder(path));
            match path.extension().and_then(|extension| extension.to_str()) {
                Some("rtproof" | "html") => Self::of_stem(&path.with_extension("")),
                _ => Self::of_stem(path),
            }
        };
        let folder = chosen.folder();
        anyhow::ensure!(folder.is_dir(), no_folder(folder));
        try_new(&chosen.record, "a record")?;
        try_new(&chosen.html, "a report")?;
        Ok(chosen)
    }

    fn of_stem(stem: &Path) -> Self {
        let with = |extension: &str| {
            let mut name = stem.as_os_str().to_owned();
            name.push(extension);
            PathBuf::from(name)
        };
        Self { record: with(".rtproof"), html: with(".html"), samples: None }
    }

    /// With each single sample in a file beside the record.
    ///
    /// # Errors
    /// When that file is there, or cannot be made.
    pub fn keeping_samples(self) -> anyhow::Result<Self> {
        let samples = self.record.with_extension("samples.csv");
        try_new(&samples, "samples")?;
        Ok(Self { samples: Some(samples), ..self })
    }

    /// With a number where another run of the same second took the name.
    fn free(stem: &Path) -> Self {
        let mut output = Self::of_stem(stem);
        for number in 2..1000_u32 {
            if !is_taken(&output.record) && !is_taken(&output.html) {
                break;
            }
            let mut name = stem.as_os_str().to_owned();
            name.push(format!("-{number}"));
            output = Self::of_stem(Path::new(&name));
        }
        output
    }

    /// The folder of the record.
    pub fn folder(&self) -> &Path {
        match self.record.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        }
    }
}

/// Whether a path can only be a folder's.
fn means_folder(path: &Path) -> bool {
    let text = path.as_os_str().as_encoded_bytes();
    text.ends_with(b"/") || text.ends_with(b"/.") || path.file_name().is_none()
}

/// Why nothing can be put there.
fn no_folder(path: &Path) -> String {
    let why = match path.metadata().map_err(|error| (error.kind(), error)) {
        Ok(_) | Err((ErrorKind::NotADirectory, _)) => "not a folder; choose another".into(),
        Err((ErrorKind::NotFound, _)) => "no such folder; make the folder or choose another".into(),
        Err((_, error)) => format!("cannot be looked into ({error}); choose another"),
    };
    format!("{}: {why} with --output", path.display())
}

/// Whether anything has the name, a link to nothing as well.
fn is_taken(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

fn try_new(path: &Path, what: &str) -> anyhow::Result<()> {
    anyhow::ensure!(
        !path.is_dir(),
        "{}: a folder has this name, and {what} must go there; choose another with --output or \
         move it away",
        path.display()
    );
    anyhow::ensure!(
        !is_taken(path),
        "{}: there already, and {what} is evidence that is never overwritten; choose another name \
         with --output or move it away",
        path.display()
    );
    rtproof_host::door::try_new(path).with_context(|| {
        format!("{}: {what} cannot be made there; choose another with --output", path.display())
    })
}

/// A name that nothing has yet, with a number where need be.
pub fn free_name(wanted: &Path) -> PathBuf {
    let numbered = |number: u32| {
        let mut name = wanted.as_os_str().to_owned();
        name.push(format!("-{number}"));
        PathBuf::from(name)
    };
    let mut names = std::iter::once(wanted.to_owned()).chain((2..1000).map(numbered));
    names.find(|name| !is_taken(name)).unwrap_or_else(|| wanted.to_owned())
}

/// `COMMAND-HOST-TIME`.
pub fn default_name(command: &str, facts: &Facts) -> String {
    let host = facts.identity.hostname.value().map_or("host", String::as_str);
    let safe = |c: char| if c.is_ascii_alphanumeric() || c == '-' || c == '.' { c } else { '_' };
    let host: String = host.chars().map(safe).take(64).collect();
    let now = Timestamp::now().to_zoned(TimeZone::UTC);
    format!("{command}-{host}-{}", now.strftime("%Y%m%dT%H%M%S"))
}

/// What a run is requested to measure and to prove: defaults are still open.
#[derive(Clone, Debug)]
pub struct Request {
    /// Duration of the measurement; `None`: a minute, or what the samples take.
    pub duration_ns: Option<u64>,
    /// Wake-ups due on each CPU that end it.
    pub samples: Option<u64>,
    /// Latency budget; `None`: that of the profile, else nothing is judged.
    pub budget_ns: Option<u64>,
    /// Class of the requirement.
    pub class: BudgetClass,
    /// Confidence of the verdict.
    pub confidence_ppm: u32,
    /// Highest acceptable rate of late episodes in class 100.
    pub rate_per_1000h: u64,
    /// Longest stretches of late wake-ups to allow for in class 95.
    pub episode_ns: Option<u64>,
    /// Whether the run is as long as what is asked for takes, in place of a duration.
    pub to_prove: bool,
    /// CPUs to measure, as a list; `None`: those of the profile, else the isolated ones, else all.
    pub cpus: Option<String>,
    /// Profile and checks left out.
    pub intent: RequestedIntent,
    /// Priority; `None`: that of the profile, else [`crate::intent::PRIORITY`].
    pub priority: Option<u32>,
    /// Whether the threads are real-time threads (`SCHED_FIFO`).
    pub is_real_time: bool,
    /// Period; `None`: that of the profile, else [`crate::intent::PERIOD_NS`].
    pub period_ns: Option<u64>,
    /// When the CPUs start.
    pub start: Start,
    /// Load; `None`: a third idle, then the default load.
    pub load: Option<LoadSet>,
    /// CPUs of the load, as a list; `None`: all that are not isolated.
    pub load_cpus: Option<String>,
    /// Folder for the files of loads; `None`: that of the record.
    pub load_dir: Option<PathBuf>,
    /// Clock that is waited for and read.
    pub clock: Clock,
    /// Limit of `/dev/cpu_dma_latency`; `None`: it is not touched.
    pub dma_latency_us: Option<u32>,
    /// Threshold of spikes; `None`: the budget, else one that follows the machine.
    pub spike_ns: Option<u64>,
    /// Whether kernel events are recorded, to explain spikes.
    pub trace: bool,
    /// Where record and report go: a folder, or a name without extension.
    pub output: PathBuf,
}

impl Request {
    /// A run of some length into a folder or to a name; the rest by default.
    pub fn new(duration_ns: u64, output: impl Into<PathBuf>) -> Self {
        Self {
            duration_ns: Some(duration_ns),
            samples: None,
            budget_ns: None,
            class: BudgetClass::Hundred,
            confidence_ppm: 950_000,
            rate_per_1000h: 125,
            episode_ns: None,
            to_prove: false,
            cpus: None,
            intent: RequestedIntent::default(),
            priority: None,
            is_real_time: true,
            period_ns: None,
            start: Start::Staggered,
            load: None,
            load_cpus: None,
            load_dir: None,
            clock: Clock::Monotonic,
            dma_latency_us: None,
            spike_ns: None,
            trace: true,
            output: output.into(),
        }
    }
}

// From arguments and facts to options: every default decided, every impossible request refused.

/// The load of `prove` after the idle third.
const DEFAULT_LOAD: &str = "cpu+memory+net+disk";

const SECOND_NS: u64 = 1_000_000_000;

/// Default duration of a run.
const RUN_NS: u64 = 60 * SECOND_NS;

/// Decides everything that a run needs to know.
///
/// # Errors
/// Usage errors: CPUs that are not there, a period longer than the run.
pub fn resolve_options(request: &Request, facts: &Facts) -> anyhow::Result<Options> {
    let intent = request.intent.resolve()?;
    let period_ns = request.period_ns.or(intent.period_ns).unwrap_or(PERIOD_NS);
    let requirement = Requirement {
        budget_ns: request.budget_ns.or(intent.budget_ns),
        class: request.class,
        confidence_ppm: request.confidence_ppm,
        rate_per_1000h: request.rate_per_1000h,
        episode_ns: request.episode_ns,
    };
    let for_ns = match request.to_prove {
        true => Some(time_to_prove(request, &requirement, period_ns)?),
        false => request.duration_ns,
    };
    let duration_ns = parse::until(request.samples, period_ns, for_ns, RUN_NS)
        .map_err(|what| usage(what.to_string()))?;
    workloads::check_clock(&*workloads::timer_wakeup(), request.clock)
        .map_err(|error| usage(error.to_string()))?;
    if period_ns > duration_ns {
        return Err(usage("--period is longer than --for: no wake-up would be measured"));
    }
    let cpus = match intent.stated_cpus(request.cpus.as_deref(), facts)? {
        Some(cpus) => cpus,
        None => default_cpus(facts)?,
    };
    let rooms = Rooms::of(facts, &cpus);
    let load_cpus = match &request.load_cpus {
        Some(list) => online_cpus(list, "--load-cpus", facts)?,
        None => rooms.load,
    };
    let (policy, priority) = match request.is_real_time {
        true => (Policy::Fifo, request.priority.or(intent.priority).unwrap_or(PRIORITY)),
        false => (Policy::Other, 0),
    };
    Ok(Options {
        profile: intent.profile.to_json(),
        skipped: intent.skip.clone(),
        spike_ns: request.spike_ns.or(request.budget_ns).or(intent.budget_ns),
        trace: request.trace,
        housekeeping: rooms.housekeeping,
        load_cpus,
        policy,
        priority,
        period_ns,
        duration_ns,
        start: request.start,
        clock: request.clock,
        dma_latency_us: request.dma_latency_us,
        phases: phases(request, duration_ns)?,
        requirement,
        cpus,
    })
}

/// Seconds in which loads begin and end, which belong to no phase as a whole.
const EDGES_NS: u64 = 2 * SECOND_NS;

/// A run that proves what is asked for, if nothing is late.
fn time_to_prove(
    request: &Request,
    requirement: &Requirement,
    period_ns: u64,
) -> anyhow::Result<u64> {
    let ahead = verdict::ahead(requirement, period_ns, 0).map_err(|why| usage(why.to_string()))?;
    let Some(ahead) = ahead else {
        return Err(usage(
            "--to-prove: nothing is asked that a time proves; give --budget, and --class 95 or 100",
        ));
    };
    let loaded_ns = ahead.needed_ns.saturating_add(2 * EDGES_NS);
    // Without a load of one's own a third is idle.
    let all_ns = if request.load.is_some() { loaded_ns } else { loaded_ns.saturating_mul(3) / 2 };
    Ok(all_ns.div_ceil(SECOND_NS) * SECOND_NS)
}

/// What a run can prove at most; `None`: what was asked for, or nothing is asked.
///
/// # Errors
/// Usage: a rate that no run judges.
pub fn can_prove(options: &Options) -> anyhow::Result<Option<String>> {
    let loaded = || options.phases.iter().filter(|phase| !phase.loads.is_empty());
    let length_ns = |phase: &Phase| phase.to_ns.saturating_sub(phase.from_ns);
    let exposure_ns = match loaded().map(length_ns).sum() {
        0 => options.duration_ns,
        loaded_ns => u64::saturating_sub(loaded_ns, EDGES_NS),
    };
    let ahead = verdict::ahead(&options.requirement, options.period_ns, exposure_ns);
    let ahead = ahead.map_err(|why| usage(why.to_string()))?;
    Ok(ahead.and_then(|ahead| ahead.sentence(loaded().next().is_some())))
}

/// Where what is not measured runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rooms {
    /// The tool's own work.
    pub housekeeping: CpuList,
    /// CPUs that loads run on by default.
    pub load: CpuList,
}

impl Rooms {
    /// CPUs for the tool and the loads, beside the measured ones.
    pub fn of(facts: &Facts, cpus: &CpuList) -> Self {
        let isolated = facts.cpus.isolated.value().cloned().unwrap_or_default();
        let online = facts.cpus.online.value().cloned().unwrap_or_default();
        let others = online.difference(cpus).difference(&isolated);
        let allowed = allowed(facts, &online);
        Self {
            housekeeping: housekeeping(&allowed, &others),
            load: or_all(allowed.difference(&isolated), cpus),
        }
    }
}

fn or_all(list: CpuList, all: &CpuList) -> CpuList {
    if list.is_empty() { all.clone() } else { list }
}

/// CPUs for the tool's own work: not measured, not isolated, and preferably where this process was
/// put. Where every CPU is measured there is no such CPU, and it goes anywhere.
fn housekeeping(allowed: &CpuList, others: &CpuList) -> CpuList {
    let both = allowed.intersection(others);
    [&both, others, allowed].into_iter().find(|list| !list.is_empty()).cloned().unwrap_or_default()
}

fn allowed(facts: &Facts, online: &CpuList) -> CpuList {
    facts.cpus.allowed.value().map_or_else(|| online.clone(), |a| a.intersection(online))
}

/// The isolated CPUs if there are any, else those that this process may use.
pub fn default_cpus(facts: &Facts) -> anyhow::Result<CpuList> {
    let Some(online) = facts.cpus.online.value() else {
        let why = facts.cpus.online.why_unknown().unwrap_or_default();
        let path = &facts.cpus.online.path;
        anyhow::bail!("{path}: {why}; name the CPUs to measure with --cpus");
    };
    let isolated = facts.cpus.isolated.value().map(|list| list.intersection(online));
    match isolated {
        Some(isolated) if !isolated.is_empty() => Ok(isolated),
        _ => Ok(or_all(allowed(facts, online), online)),
    }
}

/// A phase of the run with one load.
pub(crate) fn phase(set: &LoadSet, from_ns: u64, to_ns: u64) -> Phase {
    let (name, loads) = match set.is_idle() {
        true => ("idle".into(), Vec::new()),
        false => (set.to_string(), set.as_slice().iter().map(ToString::to_string).collect()),
    };
    Phase { name, loads, from_ns, to_ns }
}

/// The phases of the run. Edges fall on whole seconds, as the seconds of the record do.
fn phases(request: &Request, duration_ns: u64) -> anyhow::Result<Vec<Phase>> {
    let end_ns = duration_ns;
    if let Some(set) = &request.load {
        return Ok(vec![phase(set, 0, end_ns)]);
    }
    // Seconds of the record do not straddle the edge; a run too short for that has no idle part.
    let third_ns = end_ns / 3 / SECOND_NS * SECOND_NS;
    let edge_ns = if end_ns < 2 * SECOND_NS { 0 } else { third_ns.max(SECOND_NS) };
    let (idle, load): (LoadSet, LoadSet) = ("idle".parse()?, DEFAULT_LOAD.parse()?);
    let mut phases = vec![phase(&idle, 0, edge_ns), phase(&load, edge_ns, end_ns)];
    phases.retain(|phase| phase.from_ns < phase.to_ns);
    Ok(phases)
}

// Ctrl-C, TERM and HUP end a run in order: the record is closed and everything put back.

/// Time from a signal until the changes of this process are undone, whatever its main thread does.
const UNDO_WITHIN: Duration = Duration::from_secs(5);

/// Stack of the thread that sees to it.
const STACK_BYTES: usize = 512 << 10;

/// Signals that end a run.
const SIGNALS: [(i32, &str); 3] = [(SIGINT, "SIGINT"), (SIGTERM, "SIGTERM"), (SIGHUP, "SIGHUP")];

/// Signals that this process ignores, as a mask (SigIgn of /proc/self/status).
fn ignored(root: &Root) -> u64 {
    let status = root.read_text("/proc/self/status");
    let line = status.value().and_then(|text| text.lines().find_map(|l| l.strip_prefix("SigIgn:")));
    line.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0)
}

/// The signals that came.
#[derive(Clone, Debug)]
pub struct Signals {
    received: Arc<AtomicUsize>,
    /// Whether the next one ends the program where it is.
    ends: Arc<AtomicBool>,
}

impl Signals {
    /// Catches them from now on. The first one ends the run in order, a second one ends the program
    /// where it is, once its changes are undone. What the parent had ignored (nohup) stays ignored.
    pub fn catch(root: &Root) -> io::Result<Self> {
        let received = Arc::new(AtomicUsize::new(0));
        let ignored = ignored(root);
        let (ours, theirs) = UnixStream::pair()?;
        for (i, (signal, _)) in SIGNALS.iter().enumerate() {
            if ignored & (1 << (signal - 1)) != 0 {
                continue;
            }
            flag::register_usize(*signal, Arc::clone(&received), i + 1)?;
            pipe::register(*signal, theirs.try_clone()?)?;
        }
        // A file that may not grow is a full disk, not a death.
        flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)))?;
        let signals = Self { received, ends: Arc::default() };
        let accompanying = signals.clone();
        let thread = thread::Builder::new().name("rtproof-signals".into()).stack_size(STACK_BYTES);
        thread.spawn(move || accompanying.accompany(&ours))?;
        Ok(signals)
    }

    /// Ends the program at the second signal, or when its changes are not undone in time: the main
    /// thread may wait for a file, a child or a lock.
    fn accompany(&self, mut bytes: &UnixStream) {
        let mut next = |within| {
            let _ = bytes.set_read_timeout(within);
            bytes.read_exact(&mut [0]).is_ok()
        };
        if !next(None) {
            return;
        }
        let is_second = self.ends.load(Ordering::Relaxed) || next(Some(UNDO_WITHIN));
        if is_second || held::is_any() || next(None) {
            let at = self.received.load(Ordering::Relaxed).saturating_sub(1);
            let (signal, name) = SIGNALS.get(at).copied().unwrap_or((SIGTERM, "SIGTERM"));
            undo_first(name);
            signal_hook::low_level::exit(128 + signal);
        }
    }

    /// From now on any signal ends the program where it is: everything is put back, and what
    /// follows may take long.
    pub fn end_at_once(&self) {
        self.ends.store(true, Ordering::Relaxed);
    }

    /// Ends the run as a signal does: the user quits it.
    pub fn quit(&self) {
        self.received.store(SIGNALS.len() + 1, Ordering::Relaxed);
    }

    /// Name of the signal that came last; `quit`: the user ended it.
    pub fn received(&self) -> Option<&'static str> {
        let at = self.received.load(Ordering::Relaxed).checked_sub(1)?;
        Some(SIGNALS.get(at).map_or("quit", |(_, name)| name))
    }
}

/// Undoes what this process is applying before it ends, and says so on stderr.
pub fn undo_first(why: &str) {
    if !held::is_any() {
        return;
    }
    let undo = |(number, root): (u32, Root)| -> Result<(), String> {
        let machine = Machine::to_undo(&root, &LiveTasks).map_err(|error| error.to_string())?;
        let journal = Journal::open_number(&machine, number);
        let mut journal = journal.map_err(|error| error.to_string())?;
        tune::undo(&machine, &mut journal, &mut |_| {}).map_err(|error| error.to_string())?;
        match journal.is_closed() {
            true => Ok(()),
            false => Err(format!("{}: not all of it could be undone", journal.path())),
        }
    };
    let left: Vec<String> = held::take().into_iter().filter_map(|it| undo(it).err()).collect();
    let mut lines = left.join("\n");
    lines += match left.is_empty() {
        true => "everything was taken back",
        false => "\nrtproof tune status shows what is left",
    };
    // The terminal may be gone.
    let _ = writeln!(io::stderr(), "rtproof: {why}: {}", text::harmless_text(&lines));
}

// The machine and the clocks now.

pub(crate) fn clock_ns(clock: ClockId) -> u64 {
    let now = rustix::time::clock_gettime(clock);
    now.tv_sec.unsigned_abs() * SECOND_NS + now.tv_nsec.unsigned_abs()
}

/// The machine now, as document and as rows.
pub(crate) fn snapshot(facts: &Facts) -> Snapshot {
    let rows = facts.rows();
    let condition_id = Some(rtproof_host::flatten::condition_id(&rows));
    Snapshot { facts: facts.clone(), rows, condition_id }
}

// Changes the machine while it is measured: `tune apply --prove`, `experiment`.

/// Changes the machine at moments of its choice, and cuts what was measured into slices. Called by
/// the housekeeping thread only.
pub trait Switcher {
    /// Length of the slots that slices are made of. A second is a multiple of it.
    fn slot_ns(&self) -> u64;

    /// The measured threads run.
    fn started(&mut self, threads: &[StartedThread]) {
        let _ = threads;
    }

    /// Whether nothing is left to be measured: the run need not go on to its end.
    fn is_over(&self) -> bool {
        false
    }

    /// What a thread measured in a slot. `origin_ns`: first wake-up of the run, on its clock.
    fn take(&mut self, thread: u32, slot: &Slot, origin_ns: u64);

    /// Does what is due. `now_ns` gives the time after the first wake-up, before and after things
    /// that take long. Returns when to come again; the slots until then are handed over before.
    fn due(&mut self, now_ns: &dyn Fn() -> u64) -> u64;

    /// What is to be in the record since the last call.
    fn tick(&mut self) -> (EffectTick, Vec<Note>);

    /// Why the run must end now.
    fn trouble(&self) -> Option<String>;

    /// The run ends: what is not to stay is undone, now.
    fn finish(&mut self, now_ns: u64);
}

/// A switcher for runs that are no experiment: it changes nothing.
#[derive(Debug)]
pub struct NoSwitcher;

impl Switcher for NoSwitcher {
    fn slot_ns(&self) -> u64 {
        SLOT_NS
    }

    fn take(&mut self, _: u32, _: &Slot, _: u64) {}

    fn due(&mut self, _: &dyn Fn() -> u64) -> u64 {
        u64::MAX
    }

    fn tick(&mut self) -> (EffectTick, Vec<Note>) {
        Default::default()
    }

    fn trouble(&self) -> Option<String> {
        None
    }

    fn finish(&mut self, _: u64) {}
}
