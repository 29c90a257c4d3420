//! A run of another process, by its record: what is new in it, once a second.

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use rtproof_record::{Follower, News, ReadError, run::RunEnd};
use rtproof_trace::Window;

use super::latency::Latencies;
use crate::usage::usage;

/// Without a new second for so long, the run may be stopped or killed.
const SILENT: Duration = Duration::from_secs(5);

/// The record of a run that goes on.
#[derive(Debug)]
pub(super) struct Attached {
    pub(super) latencies: Latencies,
    pub(super) about: String,
    pub(super) path: PathBuf,
    follower: Follower,
    load: Option<String>,
    last: Instant,
    state: State,
}

#[derive(Debug)]
enum State {
    Goes,
    /// Nobody writes any more, or nothing can be read.
    Over(String),
}

impl Attached {
    /// Opens a record and reads what is there.
    ///
    /// # Errors
    /// It is no record, or its run has ended (usage).
    pub(super) fn open(path: &Path) -> anyhow::Result<(Self, News)> {
        let mut follower = Follower::open(path)?;
        let mut news = follower.look()?;
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
    pub(super) fn take(&mut self) -> News {
        if matches!(self.state, State::Over(_)) {
            return News::default();
        }
        let mut news = match self.follower.look() {
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
    pub(super) fn load(&self) -> Option<String> {
        self.load.clone()
    }

    /// Why no more will come, or may not.
    pub(super) fn ended(&self) -> Option<String> {
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
    pub(super) const fn is_over(&self) -> bool {
        matches!(self.state, State::Over(_))
    }

    /// The events round a spike.
    pub(super) fn window(&self, thread: u32, due_ns: u64) -> anyhow::Result<Option<Window>> {
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
