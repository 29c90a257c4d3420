//! A machine watched live: a frame a second as data, of one of four sources. Nothing is printed
//! here, and nothing stays switched on.

mod application;
mod latency;
mod machine;

pub use latency::{FinishedRun, MeasuringRun};

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use application::Application;
use latency::{Latencies, Measuring};
use machine::MachineSampler;

use rtproof_host::{CpuList, Facts, Root, door::usage, facts::tasks::Policy, sample::cpus::RtNow};
use rtproof_judge::causes::Explanation;
use rtproof_measure::thread::pin_all;
use rtproof_record::{
    Follower, News, ReadError,
    run::{Mark, RunEnd, Second, ThreadInfo},
};
use rtproof_results::watch::{WatchFrame, WatchNote, WatchSource, WatchSourceKind};
use rtproof_trace::Window;

use crate::explain::ProcessTarget;
use crate::prove::Signals;

/// Marks of the user that are kept on the screen.
const MARKS: usize = 50;

/// Where latencies are to come from.
#[derive(Debug)]
pub enum LatencySource {
    /// Nowhere: nothing is measured.
    Nothing,
    /// A run of our own.
    Run(Box<MeasuringRun>),
    /// The record of a run that goes on.
    Record(PathBuf),
    /// A running application; wake-ups later than so much are explained.
    Application(ProcessTarget, u64),
}

/// A machine that is watched.
#[derive(Debug)]
pub struct Watch {
    root: Root,
    machine: MachineSampler,
    from: Live,
    last: Instant,
    marks: Vec<WatchNote>,
    news: Vec<News>,
}

/// A source at work.
#[derive(Debug)]
enum Live {
    Nothing,
    Run(Box<Measuring>),
    Record(Box<Attached>),
    Application(Box<Application>),
}

/// A spike that is looked into.
#[derive(Clone, Debug)]
pub struct Picture {
    /// What it was caused by.
    pub explanation: Explanation,
    /// The events round it, where they are kept.
    pub window: Option<Window>,
}

/// What came since the last call, for rows.
#[derive(Debug)]
pub enum WatchRow {
    /// Threads that have begun to measure.
    Started(Vec<ThreadInfo>),
    /// A second of a thread, by its number.
    Second(u32, Box<Second>),
    /// A thread was changed from outside.
    Mark(Mark),
}

impl Watch {
    /// Starts. `msr`: idle residency is read from the registers of unmeasured CPUs.
    ///
    /// # Errors
    /// Those of the source.
    pub fn start(
        root: &Root,
        facts: &Facts,
        from: LatencySource,
        msr: bool,
        signals: &Signals,
    ) -> anyhow::Result<Self> {
        let online = facts.cpus.online.value().cloned().unwrap_or_default();
        let (from, measured, news) = match from {
            LatencySource::Nothing => (Live::Nothing, CpuList::default(), News::default()),
            LatencySource::Run(run) => {
                let cpus = run.options.cpus.clone();
                let live = Live::Run(Box::new(Measuring::start(*run, signals)?));
                (live, cpus, News::default())
            }
            LatencySource::Record(path) => {
                let (attached, news) = Attached::open(&path)?;
                let cpus = CpuList::new(attached.latencies.cpus());
                (Live::Record(Box::new(attached)), cpus, news)
            }
            LatencySource::Application(target, over_ns) => {
                let application = Application::start(root, facts, &target, over_ns)?;
                // Its threads may be woken anywhere.
                (Live::Application(Box::new(application)), online.clone(), News::default())
            }
        };
        let machine = MachineSampler::new(root, facts, &measured, msr);
        stay_off(facts, &online, &measured);
        let (root, last) = (root.clone(), Instant::now());
        Ok(Self { root, machine, from, last, marks: Vec::new(), news: vec![news] })
    }

    /// What there is now: counters since the frame before.
    pub fn frame(&mut self) -> WatchFrame {
        let now = Instant::now();
        let span_ns = u64::try_from(now.duration_since(self.last).as_nanos()).unwrap_or(u64::MAX);
        self.last = now;
        self.take();
        let mut frame = WatchFrame::empty(self.source());
        frame.span_ns = span_ns;
        frame.at_realtime_ns = realtime_ns();
        frame.notes.extend(self.marks.iter().rev().cloned());
        self.machine.fill(&mut frame);
        match &self.from {
            Live::Nothing => {}
            Live::Run(run) => run.latencies.fill(&mut frame),
            Live::Record(record) => record.latencies.fill(&mut frame),
            Live::Application(application) => application.fill(&mut frame),
        }
        frame
    }

    fn take(&mut self) {
        match &mut self.from {
            Live::Nothing => {}
            Live::Run(run) => {
                for tick in run.take() {
                    self.news.push(News {
                        started: tick.started,
                        seconds: tick
                            .threads
                            .into_iter()
                            .map(|row| (row.number, row.second))
                            .collect(),
                        marks: tick.surroundings.marks,
                        ..News::default()
                    });
                }
            }
            Live::Record(record) => self.news.push(record.take()),
            Live::Application(application) => application.take(&self.root),
        }
        // Rows that are not taken must not pile up.
        let excess = self.news.len().saturating_sub(10);
        self.news.drain(..excess);
    }

    fn source(&self) -> WatchSource {
        let source = |kind, about: &str| WatchSource {
            kind,
            about: about.into(),
            load: None,
            ended: None,
            record: None,
        };
        match &self.from {
            Live::Nothing => source(WatchSourceKind::Passive, ""),
            Live::Run(run) => WatchSource {
                load: Some(run.load()),
                ended: run.is_over().then(|| "the run has ended".into()),
                record: Some(run.record.display().to_string()),
                ..source(WatchSourceKind::Measuring, &run.about)
            },
            Live::Record(record) => WatchSource {
                load: record.load(),
                ended: record.ended(),
                record: Some(record.path.display().to_string()),
                ..source(WatchSourceKind::Record, &record.about)
            },
            Live::Application(application) => WatchSource {
                ended: application.ended.clone(),
                ..source(WatchSourceKind::Application, &application.about)
            },
        }
    }

    /// Threads, seconds and marks of a run since the last call.
    pub fn rows(&mut self) -> Vec<WatchRow> {
        let mut rows = Vec::new();
        for news in self.news.drain(..) {
            if !news.started.is_empty() {
                rows.push(WatchRow::Started(news.started));
            }
            rows.extend(
                news.seconds
                    .into_iter()
                    .map(|(thread, second)| WatchRow::Second(thread, Box::new(second))),
            );
            rows.extend(news.marks.into_iter().map(WatchRow::Mark));
        }
        rows
    }

    /// A spike, by thread and due time.
    ///
    /// # Errors
    /// Why there is no picture of it: a sentence.
    pub fn picture(&self, thread: u32, due_ns: u64) -> Result<Picture, String> {
        let gone = || {
            "The events round this spike are no longer kept: of each cause the worst eight are."
                .to_owned()
        };
        let (latencies, window) = match &self.from {
            Live::Nothing => return Err(gone()),
            Live::Application(application) => {
                let (explanation, window) = application.picture(due_ns).ok_or_else(gone)?;
                return Ok(Picture { explanation, window });
            }
            Live::Run(run) => (&run.latencies, run.latencies.window(thread, due_ns)),
            Live::Record(record) => {
                let window = record.window(thread, due_ns);
                (&record.latencies, window.map_err(|error| format!("{error:#}"))?)
            }
        };
        let window = window.ok_or_else(gone)?;
        let explanation = latencies.explain((thread, due_ns), &window).ok_or_else(gone)?;
        Ok(Picture { explanation, window: Some(window) })
    }

    /// Counts maxima and histogram anew.
    pub fn reset(&mut self) -> String {
        match &mut self.from {
            Live::Nothing => return "Nothing is measured: there are no maxima to reset.".into(),
            Live::Run(run) => run.latencies.reset(),
            Live::Record(record) => record.latencies.reset(),
            Live::Application(application) => {
                if let Err(error) = application.reset() {
                    return format!("Cannot count anew: {error:#}.");
                }
            }
        }
        "Maxima, counts and histogram of this view begin anew.".into()
    }

    /// Switches the load; returns what was done.
    pub fn switch_load(&mut self) -> String {
        match &mut self.from {
            Live::Run(run) => {
                run.switch_load();
                format!("Load: {}.", run.load())
            }
            _ => {
                "A load is switched only where this view measures: rtproof watch --measure.".into()
            }
        }
    }

    /// Marks a moment; returns where the mark is.
    pub fn mark(&mut self, text: &str) -> String {
        if let Live::Run(run) = &self.from {
            run.mark(text);
            return "Marked, in the record as well.".into();
        }
        self.marks
            .push(WatchNote { at_realtime_ns: realtime_ns(), text: format!("Marked: {text}") });
        let excess = self.marks.len().saturating_sub(MARKS);
        self.marks.drain(..excess);
        "Marked, in this view alone: it writes no record.".into()
    }

    /// Where the record is.
    pub fn record(&self) -> String {
        match &self.from {
            Live::Run(run) => {
                format!("All is in {}, written once a second.", run.record.display())
            }
            Live::Record(record) => {
                format!("All is in {}: the other run writes it.", record.path.display())
            }
            _ => "Nothing is measured, so there is no record: rtproof watch --measure.".into(),
        }
    }

    /// Whether nothing more will come of its source.
    pub fn is_over(&self) -> bool {
        match &self.from {
            Live::Run(run) => run.is_over(),
            Live::Record(record) => record.is_over(),
            Live::Application(application) => application.ended.is_some(),
            Live::Nothing => false,
        }
    }

    /// Ends what was started.
    ///
    /// # Errors
    /// The run failed, or its record.
    pub fn finish(self) -> anyhow::Result<Option<FinishedRun>> {
        match self.from {
            Live::Run(run) => run.finish().map(Some),
            _ => Ok(None),
        }
    }
}

/// Keeps this thread off CPUs that are measured or isolated, where there are others.
fn stay_off(facts: &Facts, online: &CpuList, measured: &CpuList) {
    let isolated = facts.cpus.isolated.value().cloned().unwrap_or_default();
    let allowed = facts.cpus.allowed.value().cloned().unwrap_or_else(|| online.clone());
    let free = allowed.intersection(online).difference(&isolated);
    let others = free.difference(measured);
    let room = if others.is_empty() { free } else { others };
    if !room.is_empty() {
        // A refusal changes where the view runs, not what it shows.
        let _ = pin_all(room.as_slice());
    }
}

fn realtime_ns() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
}

// A run of another process, by its record: what is new in it, once a second.

/// Without a new second for so long, the run may be stopped or killed.
const SILENT: Duration = Duration::from_secs(5);

/// The record of a run that goes on.
#[derive(Debug)]
struct Attached {
    latencies: Latencies,
    about: String,
    path: PathBuf,
    follower: Follower,
    load: Option<String>,
    last: Instant,
    state: State,
}

#[derive(Debug)]
enum State {
    Goes,
    /// The writer has ended, or nothing can be read.
    Over(String),
}

impl Attached {
    /// Opens a record and reads what is there.
    ///
    /// # Errors
    /// It is no record, or its run has ended (usage).
    fn open(path: &Path) -> anyhow::Result<(Self, News)> {
        let mut follower = Follower::open(path)?;
        let mut news = follower.poll()?;
        if news.ended.is_some() {
            let path = path.display();
            return Err(usage(format!(
                "--record {path}: this run has ended; see it with rtproof report {path}"
            )));
        }
        let mut latencies = Latencies::new(follower.options.requirement.budget_ns);
        let about = follower.command.join(" ");
        let rows = rows_of(&mut news);
        latencies.news(news);
        let attached = Self {
            latencies,
            about,
            path: path.into(),
            follower,
            load: None,
            last: Instant::now(),
            state: State::Goes,
        };
        Ok((attached, rows))
    }

    /// Takes in what is new; hands it out, too, without its history.
    fn take(&mut self) -> News {
        if matches!(self.state, State::Over(_)) {
            return News::default();
        }
        let mut news = match self.follower.poll() {
            Ok(news) => news,
            // Its writer closes it; the next look is in a second.
            Err(ReadError::Busy { .. }) => return News::default(),
            Err(error) => {
                self.state = State::Over(format!("the record can no longer be read: {error}"));
                return News::default();
            }
        };
        if !news.seconds.is_empty() || !news.started.is_empty() {
            self.last = Instant::now();
        }
        let at_ns = news.seconds.iter().map(|(_, second)| second.to_ns).max();
        if let Some(at_ns) = at_ns {
            let switched = news.loads.iter().filter(|load| load.to_ns + 2_000_000_000 >= at_ns);
            let names: Vec<&str> = switched.map(|load| load.name.as_str()).collect();
            self.load = Some(if names.is_empty() { "idle".into() } else { names.join("+") });
        }
        if let Some(ended) = &news.ended {
            self.state = State::Over(match ended {
                RunEnd::Complete => "the run is complete".into(),
                RunEnd::Interrupted { signal } => format!("the run was ended by {signal}"),
                RunEnd::Aborted { why } => format!("the run was aborted: {why}"),
            });
        }
        let rows = rows_of(&mut news);
        self.latencies.news(news);
        rows
    }

    /// The load that ran in the last second, where that is known.
    fn load(&self) -> Option<String> {
        self.load.clone()
    }

    /// Why no more will come, or may not.
    fn ended(&self) -> Option<String> {
        match &self.state {
            State::Over(why) => Some(why.clone()),
            State::Goes if self.last.elapsed() >= SILENT => Some(format!(
                "no new second for {} s: the run may be stopped, killed, or not begun",
                self.last.elapsed().as_secs()
            )),
            State::Goes => None,
        }
    }

    /// Whether nothing more can come.
    const fn is_over(&self) -> bool {
        matches!(self.state, State::Over(_))
    }

    /// The events round a spike.
    fn window(&self, thread: u32, due_ns: u64) -> anyhow::Result<Option<Window>> {
        Ok(self.follower.window(thread, due_ns)?.map(|kept| kept.window))
    }
}

/// What rows show of it: threads, seconds, marks.
fn rows_of(news: &mut News) -> News {
    News {
        started: news.started.clone(),
        seconds: news.seconds.clone(),
        marks: std::mem::take(&mut news.marks),
        ..News::default()
    }
}

// Which real-time task may take a CPU from which.

/// Names that are kept.
const NAMES: usize = 3;

/// How many tasks of a higher class or priority may run on a CPU of this one, and the names of the
/// first three, the highest first. A task whose CPUs are not known may run anywhere.
fn outranked(task: &RtNow, all: &[RtNow]) -> (u32, Vec<String>) {
    let mut above: Vec<&RtNow> =
        all.iter().filter(|other| rank(other) > rank(task) && meets(task, other)).collect();
    above.sort_by_key(|other| (std::cmp::Reverse(rank(other)), other.tid));
    let names = above.iter().take(NAMES).map(|other| other.comm.clone()).collect();
    (u32::try_from(above.len()).unwrap_or(u32::MAX), names)
}

/// Classes in the order of the scheduler (kernel/sched/sched.h, `for_each_class`): stop, deadline,
/// real-time. The stop class has one thread a CPU, which claims to be FIFO 99
/// (kernel/sched/core.c, `sched_set_stop_task`).
fn rank(task: &RtNow) -> (u32, u32) {
    match task.policy {
        Policy::Fifo if task.kernel_thread && task.comm.starts_with("migration/") => (3, 0),
        Policy::Deadline => (2, 0),
        _ => (1, task.priority),
    }
}

fn meets(task: &RtNow, other: &RtNow) -> bool {
    match (&task.allowed, &other.allowed) {
        (Some(own), Some(others)) => !own.intersection(others).is_empty(),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use rtproof_host::CpuList;

    use super::*;

    fn task(tid: u32, comm: &str, policy: Policy, priority: u32, cpu: Option<u32>) -> RtNow {
        RtNow {
            tid,
            comm: comm.into(),
            policy,
            priority,
            cpu: 0,
            allowed: cpu.map(|cpu| CpuList::new([cpu])),
            kernel_thread: comm.contains('/'),
            ran_ns: None,
        }
    }

    #[test]
    fn classes_come_before_priorities_and_only_on_common_cpus() {
        let all = [
            task(1, "migration/1", Policy::Fifo, 99, Some(1)),
            task(2, "planner", Policy::Deadline, 0, Some(1)),
            task(3, "multipathd", Policy::Rr, 99, None),
            task(4, "control", Policy::Fifo, 80, Some(1)),
            task(5, "elsewhere", Policy::Fifo, 90, Some(0)),
            task(6, "equal", Policy::Rr, 80, Some(1)),
        ];
        let names = ["migration/1", "planner", "multipathd"].map(String::from).to_vec();
        assert_eq!(outranked(&all[3], &all), (3, names));
        assert_eq!(outranked(&all[1], &all), (1, vec!["migration/1".into()]));
        assert_eq!(outranked(&all[0], &all).0, 0);
        // A thread that only has such a name is no kernel thread.
        let false_stop = task(7, "migration", Policy::Fifo, 99, Some(1));
        assert_eq!(outranked(&false_stop, &all).0, 2);
    }
}
