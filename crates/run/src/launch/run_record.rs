//! The record of what a program got: wake-ups of its real-time threads, as the kernel's events show
//! them, second by second, judged and sealed as `prove` does with those of its own threads.

use std::{collections::BTreeMap, path::PathBuf};

use anyhow::Context as _;
use rustix::thread::ClockId;

use rtproof_host::{CpuList, Facts, HostSampler, Root, facts::tasks::Policy};
use rtproof_judge::causes::{self, Explanation};
use rtproof_measure::{LateWakeUp, calibrate};
use rtproof_model::run::{APPLICATION, Clock};
use rtproof_record::{
    ClockOrigin, Options, Requirement, RunHead, RunTail, Start, Tick, WriteError, Writer,
    run::{Cost, EndReason, Meta, Note, RunEnd, ThreadEnd, ThreadInfo},
    spikes::SpikeSummary,
};
use rtproof_trace::{WakeUp, Window, scan::ThreadTotals};

use super::run_record_thread::{JudgedThread, Rhythm};
use super::threads::Threads;
use crate::explain::live::Closed;
use crate::prove::engine::{Finishing, WriterThread, run_id};
use crate::prove::spikes::Sums;
use crate::prove::{Output, clock_ns, engine, snapshot};

const SECOND_NS: u64 = 1_000_000_000;

/// Time of observation before a thread's period is known.
const LEARN_NS: u64 = 2 * SECOND_NS;

/// So long a program may take until it has a real-time thread. One that has none by then is judged
/// by all of its threads.
const PATIENCE_NS: u64 = 10 * SECOND_NS;

/// Threads in one record.
const THREADS_MAX: usize = 256;

/// Windows of late wake-ups that wait until their thread is in the record.
const EARLY_MAX: usize = 512;

/// Wake-ups of one thread that wait.
const WAITING_MAX: usize = 1 << 20;

/// The record that is asked for.
#[derive(Clone, Debug)]
pub struct WantedRecord {
    /// Where record and report go: a folder, or a name without extension.
    pub output: PathBuf,
    /// What the program has to meet.
    pub requirement: Requirement,
}

/// A record of a program, not yet judged.
#[derive(Debug)]
pub struct Proved {
    pub finishing: Finishing,
    pub output: Output,
}

/// What is known before the program starts.
#[derive(Debug)]
pub(super) struct PreparedRecord {
    pub(super) facts: Facts,
    cost: Cost,
    output: Output,
    requirement: Requirement,
    latency_us: Option<u32>,
}

impl PreparedRecord {
    /// Looks at the machine as it is now, and whether the files can be made.
    ///
    /// # Errors
    /// They cannot.
    pub(super) fn new(
        wanted: &WantedRecord,
        cpus: Option<&CpuList>,
        latency_us: Option<u32>,
    ) -> anyhow::Result<Self> {
        let facts = Facts::read(&Root::live());
        let output = Output::choose_for("run", &wanted.output, &facts)?;
        let online = facts.cpus.online.value();
        let cpu = cpus.or(online).and_then(|cpus| cpus.as_slice().first()).copied().unwrap_or(0);
        // The cost of measuring is reported with the numbers; they hold without it, too.
        let cost = calibrate::calibrate(cpu, Policy::Other, 0, Clock::Monotonic);
        let cost = cost.unwrap_or_default();
        let requirement = wanted.requirement.clone();
        Ok(Self { facts, cost, output, requirement, latency_us })
    }
}

/// A thread of the program.
#[derive(Debug)]
enum State {
    /// Its period is not known yet, or whether it is judged.
    Waiting(Vec<WakeUp>),
    /// The period is known: the thread is in the record.
    Judged(Box<JudgedThread>),
}

/// The record while the program runs.
pub(super) struct RunRecord {
    pub(super) of: PreparedRecord,
    over_ns: u64,
    origin: ClockOrigin,
    options: Options,
    writer: Option<WriterThread>,
    sampler: HostSampler,
    threads: BTreeMap<i32, State>,
    numbers: u32,
    pub(super) left_out: u64,
    sums: Sums,
    early: Vec<(WakeUp, Window)>,
    notes: Vec<Note>,
    failure: Option<WriteError>,
    pub(super) next_ns: u64,
}

impl RunRecord {
    /// Begins, when the program does.
    pub(super) fn begin(of: PreparedRecord, over_ns: u64) -> Self {
        let monotonic_ns = clock_ns(ClockId::Monotonic);
        let origin = ClockOrigin { realtime_ns: clock_ns(ClockId::Realtime), monotonic_ns };
        let online = of.facts.cpus.online.value().cloned().unwrap_or_default();
        let options = Options {
            cpus: CpuList::default(),
            housekeeping: CpuList::default(),
            load_cpus: CpuList::default(),
            policy: Policy::Other,
            priority: 0,
            period_ns: 0,
            duration_ns: 0,
            start: Start::Aligned,
            clock: Clock::Monotonic,
            dma_latency_us: of.latency_us,
            // rtproof starts no load: other tasks were the load.
            phases: Vec::new(),
            requirement: of.requirement.clone(),
            profile: String::new(),
            skipped: BTreeMap::new(),
            spike_ns: Some(over_ns),
            trace: true,
        };
        let mut notes = vec![threads_note()];
        let sampler = HostSampler::new(&Root::live(), &of.facts, &online);
        notes.extend(sampler.skipped().iter().map(|what| not_sampled(what)));
        Self {
            over_ns,
            origin,
            options,
            writer: None,
            sampler,
            threads: BTreeMap::new(),
            numbers: 0,
            left_out: 0,
            sums: Sums::since(monotonic_ns),
            early: Vec::new(),
            notes,
            failure: None,
            next_ns: SECOND_NS,
            of,
        }
    }

    /// Wake-ups of its threads, in the order they ended.
    pub(super) fn woke(&mut self, wakes: Vec<WakeUp>) {
        for wake in wakes.into_iter().filter(|wake| wake.due_ns >= self.origin.monotonic_ns) {
            let state = self.threads.entry(wake.tid).or_insert_with(|| State::Waiting(Vec::new()));
            match state {
                State::Judged(thread) => {
                    thread.woke(wake);
                    spike(&mut self.sums, thread.info.number, &wake, self.over_ns);
                }
                State::Waiting(waiting) if waiting.len() < WAITING_MAX => waiting.push(wake),
                State::Waiting(_) => self.left_out += 1,
            }
        }
    }

    /// Why a wake-up was late; `None`: its thread is not in the record.
    pub(super) fn explained(&mut self, wake: &WakeUp, window: &Window) -> Option<Explanation> {
        match self.threads.get(&wake.tid)? {
            State::Judged(_) => self.sums.answered(wake, window.clone()),
            State::Waiting(_) => {
                if self.early.len() < EARLY_MAX {
                    self.early.push((*wake, window.clone()));
                }
                None
            }
        }
    }

    /// Writes what came, once a second.
    pub(super) fn tick(&mut self, threads: &Threads, recorder: &causes::RecorderSummary) {
        let now_ns = clock_ns(ClockId::Monotonic).saturating_sub(self.origin.monotonic_ns);
        if now_ns < self.next_ns {
            return;
        }
        self.next_ns = now_ns + SECOND_NS / 2;
        self.admit(threads, now_ns, false);
        self.write(now_ns, recorder);
    }

    /// Takes threads into the record whose period is known: the real-time ones, or all where a
    /// program has none.
    fn admit(&mut self, threads: &Threads, now_ns: u64, is_over: bool) {
        let policy = |tid: i32| threads.counts(tid.cast_unsigned()).and_then(|of| of.policy);
        let is_real_time = |tid: i32| policy(tid).is_some_and(Policy::is_real_time);
        let any = self.threads.keys().any(|&tid| is_real_time(tid));
        let takes_all = !any && self.numbers == 0 && (is_over || now_ns >= PATIENCE_NS);
        let from_ns = self.origin.monotonic_ns + now_ns;
        let is_ready = |wakes: &[WakeUp]| {
            let first_ns = wakes.first().map_or(u64::MAX, |wake| wake.due_ns);
            is_over || first_ns.saturating_add(LEARN_NS) <= from_ns
        };
        let all = self.threads.iter().filter_map(|(&tid, state)| match state {
            State::Waiting(wakes) => {
                let is_one = takes_all || is_real_time(tid);
                (is_one && !wakes.is_empty() && is_ready(wakes)).then_some(tid)
            }
            State::Judged(_) => None,
        });
        let all: Vec<i32> = all.collect();
        let fresh: Vec<(i32, JudgedThread, Vec<WakeUp>)> =
            all.into_iter().filter_map(|tid| self.judged(tid, threads)).collect();
        if fresh.is_empty() {
            return;
        }
        if self.writer.is_none() {
            self.open(fresh.iter().map(|(_, thread, _)| &thread.info));
        }
        let started = fresh.iter().map(|(_, thread, _)| thread.info.clone()).collect();
        self.send(Tick { started, ..Tick::default() });
        for (tid, mut thread, wakes) in fresh {
            for wake in wakes {
                thread.woke(wake);
                spike(&mut self.sums, thread.info.number, &wake, self.over_ns);
            }
            self.threads.insert(tid, State::Judged(Box::new(thread)));
        }
        for (wake, window) in std::mem::take(&mut self.early) {
            let _ = self.explained(&wake, &window);
        }
    }

    /// A thread with its number, period and the wake-ups so far.
    pub(super) fn judged(
        &mut self,
        tid: i32,
        threads: &Threads,
    ) -> Option<(i32, JudgedThread, Vec<WakeUp>)> {
        if self.numbers as usize >= THREADS_MAX {
            self.left_out += 1;
            return None;
        }
        let State::Waiting(wakes) = self.threads.get_mut(&tid)? else { return None };
        let wakes = std::mem::take(wakes);
        let (counts, rhythm) = (threads.counts(tid.cast_unsigned()), Rhythm::of(&wakes));
        let name = counts.map_or("", |of| of.comm.as_str());
        let first = wakes.first()?;
        let number = self.numbers;
        self.numbers += 1;
        self.sums.add(tid, first.cpu);
        if !rhythm.is_periodic {
            self.notes.push(no_period(name, tid));
        }
        let info = ThreadInfo {
            number,
            cpu: first.cpu,
            tid: tid.cast_unsigned(),
            workload: format!("{APPLICATION}{name}"),
            policy: counts.and_then(|of| of.policy).unwrap_or(Policy::Other),
            priority: counts.map_or(0, |of| of.priority),
            locked: false,
            period_ns: rhythm.interval_ns,
            first_due_ns: first.due_ns.saturating_sub(self.origin.monotonic_ns),
        };
        Some((tid, JudgedThread::new(info, rhythm, self.over_ns), wakes))
    }

    fn open<'a>(&mut self, first: impl Iterator<Item = &'a ThreadInfo> + Clone) {
        let online = self.of.facts.cpus.online.value().cloned().unwrap_or_default();
        let cpus = CpuList::new(first.clone().map(|of| of.cpu));
        self.options.housekeeping = online.difference(&cpus);
        self.options.cpus = cpus;
        self.options.period_ns = first.clone().map(|of| of.period_ns).min().unwrap_or(1);
        // The least of its threads: they choose their priorities themselves.
        let least = first.min_by_key(|of| (of.policy.is_real_time(), of.priority));
        if let Some(of) = least {
            (self.options.policy, self.options.priority) = (of.policy, of.priority);
        }
        let made = run_id().map(|run_id| RunHead {
            meta: Meta {
                run_id,
                tool_version: env!("CARGO_PKG_VERSION").into(),
                command: std::env::args_os()
                    .map(|arg| arg.to_string_lossy().into_owned())
                    .collect(),
                started_realtime_ns: self.origin.realtime_ns,
                started_monotonic_ns: self.origin.monotonic_ns,
                ended: None,
            },
            options: self.options.clone(),
            facts: snapshot(&self.of.facts),
            cost: self.of.cost,
        });
        let Ok(head) = made else { return };
        match Writer::create(&self.of.output.record, &head) {
            Ok(writer) => self.writer = WriterThread::start(writer).ok(),
            Err(error) => self.failure = Some(error),
        }
    }

    /// Sends what came to the record.
    fn write(&mut self, now_ns: u64, recorder: &causes::RecorderSummary) {
        let origin_ns = self.origin.monotonic_ns;
        let judged = self.threads.values_mut().filter_map(|state| match state {
            State::Judged(thread) => thread.take(origin_ns),
            State::Waiting(_) => None,
        });
        let threads = judged.collect();
        let host = Some(self.sampler.sample(now_ns));
        let summary = SpikeSummary {
            threshold_ns: self.over_ns,
            recorder: recorder.clone(),
            ..SpikeSummary::default()
        };
        let spikes = self.sums.take(summary);
        if self.writer.is_some() {
            let notes = std::mem::take(&mut self.notes);
            self.send(Tick { threads, host, notes, spikes, ..Tick::default() });
        }
    }

    fn send(&mut self, tick: Tick) {
        if let Some(writer) = &self.writer {
            writer.tick(tick);
            self.failure = self.failure.take().or_else(|| writer.failure());
        }
    }

    /// The program has ended: closes the record and reads it back.
    ///
    /// # Errors
    /// Why there is none.
    pub(super) fn finish(
        mut self,
        threads: &Threads,
        recorded: &Closed,
        lost: u64,
        ending: Option<String>,
    ) -> anyhow::Result<Proved> {
        let recorder = &recorded.info;
        let unknown: u64 = recorded.totals.iter().map(ThreadTotals::unknown).sum();
        let inferred: u64 = recorded.totals.iter().map(|of| of.inferred + of.at_least).sum();
        let now_ns = clock_ns(ClockId::Monotonic).saturating_sub(self.origin.monotonic_ns);
        self.admit(threads, now_ns, true);
        if self.writer.is_none() && self.failure.is_none() {
            anyhow::bail!("no wake-up of a thread of the program was recorded");
        }
        let mut ends = Vec::new();
        for (tid, state) in &mut self.threads {
            let State::Judged(thread) = state else { continue };
            thread.end();
            let counts = threads.counts(tid.cast_unsigned());
            let end = ThreadEnd {
                reason: EndReason::Complete,
                scheduled: thread.accounted,
                faults_minor: counts.map_or(0, |of| of.minor_faults),
                faults_major: counts.map_or(0, |of| of.major_faults),
                cpu_time_ns: counts.map_or(0, |of| of.cpu_time_ns),
                preemptions: counts.and_then(|of| of.involuntary_switches).unwrap_or(0),
            };
            ends.push((thread.info.number, end));
            if thread.has_moved {
                self.notes.push(moved_note(now_ns, &thread.info));
            }
        }
        self.sums.give_up();
        self.notes.extend(unknown_wake_ups(now_ns, unknown));
        self.notes.extend(self::inferred(now_ns, inferred));
        self.notes.extend(self::lost(now_ns, recorder.lost_events, lost + self.left_out));
        self.notes.extend(ending.map(|how| ended(now_ns, &how)));
        self.write(now_ns, recorder);
        let options = Options { duration_ns: now_ns, ..self.options.clone() };
        let Some(writer) = self.writer.take() else {
            return Err(self.failure.map_or_else(
                || anyhow::anyhow!("the record could not be begun"),
                anyhow::Error::from,
            ));
        };
        let facts = Facts::read(&Root::live());
        let tail = RunTail {
            ended: RunEnd::Complete,
            facts: Some(snapshot(&facts)),
            threads: ends,
            options: Some(options),
        };
        let finishing = engine::finish_record(tail, self.failure, writer, &self.of.output)
            .with_context(|| self.of.output.record.display().to_string())?;
        Ok(Proved { finishing, output: self.of.output })
    }
}

/// A late wake-up is a spike of the record. The recorder asks for its events by itself.
fn spike(sums: &mut Sums, number: u32, wake: &WakeUp, over_ns: u64) {
    let latency_ns = wake.latency_ns();
    if latency_ns > over_ns {
        sums.spike_arrived(number, LateWakeUp { due_ns: wake.due_ns, latency_ns }, over_ns, |_| {
            true
        });
    }
}

// What the reader of a program's record must know.

fn note(at_ns: u64, id: &str, weakens: bool, text: String) -> Note {
    Note { at_ns, id: id.into(), text, weakens }
}

/// Whose wake-ups these are.
fn threads_note() -> Note {
    let text = "The wake-ups are those of the program's own threads, as the kernel's events show \
                them. The load was what ran beside it; rtproof started none. What it does \
                after it woke is not seen. Nor are cycles that it leaves out by itself.";
    note(0, "application", false, text.into())
}

/// A host counter that is not read.
fn not_sampled(what: &str) -> Note {
    note(0, "not-sampled", false, format!("{what}."))
}

/// A thread without a period.
fn no_period(name: &str, tid: i32) -> Note {
    let text = format!(
        "Thread {name} ({tid}) is not woken by a timer at one period. Whether it missed cycles is \
         not known; the time that it covers follows from its mean interval."
    );
    note(0, "no-period", false, text)
}

/// A thread that ran on several CPUs.
fn moved_note(at_ns: u64, of: &ThreadInfo) -> Note {
    let name = of.workload.trim_start_matches(APPLICATION);
    let text = format!(
        "Thread {name} ({}) ran on other CPUs, too; it is listed under CPU {}, that of its first \
         wake-up.",
        of.tid, of.cpu
    );
    note(at_ns, "thread-moved", false, text)
}

/// Wake-ups that may be missing.
fn lost(at_ns: u64, events: u64, wake_ups: u64) -> Vec<Note> {
    let mut notes = Vec::new();
    if events > 0 {
        let text = format!("{events} kernel events were lost, and wake-ups may be lost with them.");
        notes.push(note(at_ns, "events-lost", true, text));
    }
    if wake_ups > 0 {
        let text = format!(
            "At least {wake_ups} wake-ups or threads are not in the record: there were too many."
        );
        notes.push(note(at_ns, "wake-ups-left-out", true, text));
    }
    notes
}

/// Wake-ups without an end.
fn unknown_wake_ups(at_ns: u64, wake_ups: u64) -> Option<Note> {
    let text = format!(
        "The kernel did not record when {wake_ups} wake-ups of the program's threads were due, or \
         when they ended: whether they were late is not known. Some kernels leave out switches from \
         the idle task."
    );
    (wake_ups > 0).then(|| note(at_ns, "wake-ups-unseen", true, text))
}

/// Wake-ups whose end is a bound.
fn inferred(at_ns: u64, wake_ups: u64) -> Option<Note> {
    let text = format!(
        "The kernel did not record the switch to the thread in {wake_ups} wake-ups: each is \
         counted with a bound as its end. Those on time were at most that late, the late ones at \
         least."
    );
    (wake_ups > 0).then(|| note(at_ns, "wake-ups-inferred", false, text))
}

/// How the program ended, if not by itself with 0.
fn ended(at_ns: u64, how: &str) -> Note {
    note(at_ns, "program-ended", false, format!("The program {how}."))
}
