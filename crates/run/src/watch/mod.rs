//! A machine watched live: a frame a second as data, of one of four sources. Nothing is printed
//! here, and nothing stays switched on.

mod application;
mod attached;
mod latency;
mod machine;
mod measuring;
mod rank;

use std::{
    path::PathBuf,
    time::{Instant, SystemTime, UNIX_EPOCH},
};

use rtproof_host::{CpuList, Facts, Root};
use rtproof_judge::causes::Explanation;
use rtproof_measure::thread::pin_all;
use rtproof_record::{
    News,
    beside::Mark,
    run::{Second, ThreadInfo},
};
use rtproof_results::watch::{Frame, Kind, Note, Source};
use rtproof_trace::Window;

use self::{application::Application, attached::Attached, machine::Machine, measuring::Measuring};
use crate::{explain::Whom, prove::signals::Signals};

pub use self::measuring::{Finished, Run};

/// Marks of the user that are kept on the screen.
const MARKS: usize = 50;

/// Where latencies are to come from.
#[derive(Debug)]
pub enum From {
    /// Nowhere: nothing is measured.
    Nothing,
    /// A run of our own.
    Run(Box<Run>),
    /// The record of a run that goes on.
    Record(PathBuf),
    /// A running application; wake-ups later than so much are explained.
    Application(Whom, u64),
}

/// A machine that is watched.
#[derive(Debug)]
pub struct Watch {
    root: Root,
    machine: Machine,
    from: Live,
    last: Instant,
    marks: Vec<Note>,
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
pub enum Row {
    /// Threads that measure.
    Started(Vec<ThreadInfo>),
    /// A second of a thread, by its number.
    Second(u32, Box<Second>),
    /// A thread was changed from outside.
    Mark(Mark),
}

impl Watch {
    /// Starts. `msr`: idle residency is read from the registers of CPUs that nobody measures.
    ///
    /// # Errors
    /// Those of the source.
    pub fn start(
        root: &Root,
        facts: &Facts,
        from: From,
        msr: bool,
        signals: &Signals,
    ) -> anyhow::Result<Self> {
        let online = facts.cpus.online.value().cloned().unwrap_or_default();
        let (from, measured, news) = match from {
            From::Nothing => (Live::Nothing, CpuList::default(), News::default()),
            From::Run(run) => {
                let cpus = run.options.cpus.clone();
                let live = Live::Run(Box::new(Measuring::start(*run, signals)?));
                (live, cpus, News::default())
            }
            From::Record(path) => {
                let (attached, news) = Attached::open(&path)?;
                let cpus = CpuList::new(attached.latencies.cpus());
                (Live::Record(Box::new(attached)), cpus, news)
            }
            From::Application(whom, over_ns) => {
                let application = Application::start(root, facts, &whom, over_ns)?;
                // Its threads may be woken anywhere.
                (Live::Application(Box::new(application)), online.clone(), News::default())
            }
        };
        let machine = Machine::new(root, facts, &measured, msr);
        stay_off(facts, &online, &measured);
        let (root, last) = (root.clone(), Instant::now());
        Ok(Self { root, machine, from, last, marks: Vec::new(), news: vec![news] })
    }

    /// What there is now: counters since the frame before.
    pub fn frame(&mut self) -> Frame {
        let now = Instant::now();
        let span_ns = u64::try_from(now.duration_since(self.last).as_nanos()).unwrap_or(u64::MAX);
        self.last = now;
        self.take();
        let mut frame = Frame::empty(self.source());
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
                        marks: tick.beside.marks,
                        ..News::default()
                    });
                }
            }
            Live::Record(record) => self.news.push(record.take()),
            Live::Application(application) => application.take(&self.root),
        }
        // Where nobody takes rows they must not pile up.
        let excess = self.news.len().saturating_sub(10);
        self.news.drain(..excess);
    }

    fn source(&self) -> Source {
        let source = |kind, about: &str| Source {
            kind,
            about: about.into(),
            load: None,
            ended: None,
            record: None,
        };
        match &self.from {
            Live::Nothing => source(Kind::Passive, ""),
            Live::Run(run) => Source {
                load: Some(run.load()),
                ended: run.is_over().then(|| "the run has ended".into()),
                record: Some(run.record.display().to_string()),
                ..source(Kind::Measuring, &run.about)
            },
            Live::Record(record) => Source {
                load: record.load(),
                ended: record.ended(),
                record: Some(record.path.display().to_string()),
                ..source(Kind::Record, &record.about)
            },
            Live::Application(application) => Source {
                ended: application.ended.clone(),
                ..source(Kind::Application, &application.about)
            },
        }
    }

    /// Threads, seconds and marks of a run since the last call.
    pub fn rows(&mut self) -> Vec<Row> {
        let mut rows = Vec::new();
        for news in self.news.drain(..) {
            if !news.started.is_empty() {
                rows.push(Row::Started(news.started));
            }
            rows.extend(
                news.seconds
                    .into_iter()
                    .map(|(thread, second)| Row::Second(thread, Box::new(second))),
            );
            rows.extend(news.marks.into_iter().map(Row::Mark));
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
        self.marks.push(Note { at_realtime_ns: realtime_ns(), text: format!("Marked: {text}") });
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
    pub fn finish(self) -> anyhow::Result<Option<Finished>> {
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
