//! `rtproof tune status --watch`: a line when something that was applied is no longer so, with who
//! may have changed it, and when it is so again.
//!
//! Kernel values send no notification when they change: they are read every few seconds, on a
//! housekeeping CPU, and at once when a device or a CPU comes or goes. Nothing is changed.

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests make the files that they read")]
mod tests;

use std::{
    collections::BTreeMap,
    io::{self, Write},
    time::Duration,
};

use schemars::JsonSchema;
use serde::Serialize;

use rtproof_host::{
    CpuList, Root,
    door::Invalid,
    text,
    tune::{
        self, Change, Journal, Machine, Stage, Standing, State, Suspect,
        kinds::task::{Wake, WakeReason},
        suspects,
    },
};
use rtproof_measure::{task::LiveTasks, thread::pin_all};
use rtproof_results::Ended;

use super::ends;
use crate::parse;

/// Version of the JSON form of a line.
pub const SCHEMA: &str = "rtproof/tune-drift/1";

/// Default interval between reads of values, nanoseconds.
pub const EVERY_NS: u64 = 10_000_000_000;

/// One change whose status differs from before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Drift {
    /// Version of this form: `rtproof/tune-drift/1`.
    pub schema: &'static str,
    /// When it was seen, UTC.
    pub time: String,
    /// Number of the journal.
    pub journal: u32,
    pub target: String,
    pub change: Change,
    /// How it stands now.
    pub now: DriftStanding,
    /// What is there, where it has changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found: Option<State>,
    /// Why it cannot be read, or was not made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Suspects that may have changed it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub suspects: Vec<Suspect>,
}

/// Status of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DriftStanding {
    /// As it was applied.
    AsApplied,
    /// Something has changed it.
    Changed,
    /// Its task has ended, its device went.
    Gone,
    /// It could not be made, and nothing of it is left.
    NotMade,
    Unreadable,
}

/// What was seen last.
#[derive(Clone, Debug, Default)]
pub struct Watcher {
    last: BTreeMap<(u32, usize), Standing>,
}

impl Watcher {
    /// Looks at every change in force, and reports those whose state differs from the
    /// last time; the first time, those that are not as applied.
    pub fn poll(&mut self, machine: &Machine<'_>, time: &str) -> anyhow::Result<Vec<Drift>> {
        let mut now = BTreeMap::new();
        let mut drifts = Vec::new();
        for summary in Journal::list(machine)? {
            if let (true, Some(why)) = (summary.is_missing, &summary.problem) {
                return Err(tune::JournalError::Lost(why.clone()).into());
            }
            if summary.closed || summary.problem.is_some() {
                continue;
            }
            // It may have been closed and taken away meanwhile.
            let Ok(journal) = Journal::open_number(machine, summary.number) else { continue };
            for (at, standing) in tune::status(machine, &journal).into_iter().enumerate() {
                let key = (summary.number, at);
                // Under way, or cut off by a kill: what is there is neither old nor new for sure.
                if journal.entries().get(at).is_some_and(|entry| entry.stage == Stage::Begun) {
                    continue;
                }
                if self.is_news(key, &standing.standing) {
                    drifts.push(drift(machine, summary.number, &standing, time));
                }
                now.insert(key, standing.standing);
            }
        }
        self.last = now;
        Ok(drifts)
    }

    fn is_news(&self, key: (u32, usize), stands: &Standing) -> bool {
        match self.last.get(&key) {
            Some(last) => last != stands,
            // A journal that is new holds what has just been applied, or an earlier boot's.
            None => matches!(stands, Standing::Changed { .. } | Standing::Unreadable { .. }),
        }
    }

    /// Changes that are watched, and those of them that are not as applied.
    pub fn counts(&self) -> (usize, usize) {
        let is_off = |stands: &&Standing| matches!(stands, Standing::Changed { .. });
        (self.last.len(), self.last.values().filter(is_off).count())
    }
}

fn drift(
    machine: &Machine<'_>,
    journal: u32,
    standing: &tune::ChangeStanding,
    time: &str,
) -> Drift {
    let change = standing.change.clone();
    let (now, found, why) = match &standing.standing {
        Standing::AsApplied => (DriftStanding::AsApplied, None, None),
        Standing::Changed { found, .. } => (DriftStanding::Changed, Some(found.clone()), None),
        Standing::Gone => (DriftStanding::Gone, None, None),
        Standing::NotMade { why } => (DriftStanding::NotMade, None, Some(why.clone())),
        Standing::Unreadable { why } => (DriftStanding::Unreadable, None, Some(why.clone())),
    };
    let suspects = match now {
        DriftStanding::Changed => suspects(machine.root(), &change),
        _ => Vec::new(),
    };
    let (time, target) = (time.to_owned(), change.target());
    Drift { schema: SCHEMA, time, journal, target, change, now, found, why, suspects }
}

impl Drift {
    /// As one line for people.
    pub fn line(&self) -> String {
        let stands = match (self.now, &self.found, &self.why) {
            (DriftStanding::AsApplied, ..) => "as applied again".to_owned(),
            (DriftStanding::Gone, ..) => "gone: its task has ended, or its device went".into(),
            (DriftStanding::NotMade, _, why) => {
                format!("not made: {}", why.as_deref().unwrap_or_default())
            }
            (DriftStanding::Unreadable, _, why) => {
                format!("cannot be read: {}", why.as_deref().unwrap_or_default())
            }
            (DriftStanding::Changed, found, _) => {
                let found = found.as_ref().map(|state| self.change.before(state));
                let found = found.unwrap_or_default();
                match self.change.after() {
                    // Of a file that is its number of lines.
                    ours if ours == found => "other text, permissions or owner".into(),
                    ours => format!("{}, applied was {}", short(&found), short(&ours)),
                }
            }
        };
        let by: Vec<String> = self
            .suspects
            .iter()
            .map(|suspect| {
                let clue = suspect.evidence.last().map(ToString::to_string).unwrap_or_default();
                format!("{} ({clue})", suspect.name)
            })
            .collect();
        let by = if by.is_empty() { String::new() } else { format!("; maybe {}", by.join(", ")) };
        let line = format!("{} {}: {stands}{by}", self.time, self.target);
        // A machine's own words cannot command the terminal.
        line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
    }
}

fn short(text: &str) -> String {
    text.trim().chars().map(|c| if c.is_control() { ' ' } else { c }).take(80).collect()
}

/// Time between two looks.
pub fn every(text: &str) -> Result<u64, Invalid> {
    match parse::time(text)? {
        ns @ 1_000_000_000..=3_600_000_000_000 => Ok(ns),
        _ => Err("from 1s, so as not to disturb, to 1h".into()),
    }
}

/// What a watch reports.
#[derive(Debug)]
pub enum DriftEvent<'a> {
    /// Drifts; none: all is as before.
    Drifts(&'a [Drift]),
    /// After the first look: changes that are watched, and those that are not as applied.
    Begun(usize, usize),
}

/// Watches until Ctrl-C or SIGTERM, or until `report` breaks. Ends well if all is as applied.
///
/// # Errors
/// The journals cannot be listed; those of `report`.
pub fn run(
    root: &Root,
    every_ns: u64,
    report: &mut dyn FnMut(&DriftEvent<'_>) -> io::Result<()>,
) -> anyhow::Result<Ended> {
    let machine = Machine::for_reading(root, &LiveTasks);
    let end = ends()?;
    if root.is_live() {
        // Where that is refused, looking costs a few hundred microseconds on some CPU.
        let _ = pin_all(housekeeping(root).as_slice());
    }
    let mut wake = Wake::new(root);
    let mut watcher = Watcher::default();
    let mut is_first = true;
    loop {
        let drifts = watcher.poll(&machine, &now())?;
        match report(&DriftEvent::Drifts(&drifts)) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => break,
            reported => reported?,
        }
        if std::mem::take(&mut is_first) {
            let (watched, off) = watcher.counts();
            report(&DriftEvent::Begun(watched, off))?;
        }
        wake.watch(root, files(&machine)?.iter().map(String::as_str));
        if wake.wait(Duration::from_nanos(every_ns), Some(&end))? == WakeReason::Called {
            break;
        }
    }
    Ok(if watcher.counts().1 == 0 { Ended::Done } else { Ended::MachineFailed })
}

/// Writes drifts, a line each, at once.
pub fn write(to: &mut dyn Write, drifts: &[Drift], json: bool) -> io::Result<()> {
    for drift in drifts {
        match json {
            true => {
                let mut json = serde_json::Serializer::with_formatter(&mut *to, text::Json);
                drift.serialize(&mut json)?;
            }
            false => to.write_all(text::harmless_text(&drift.line()).as_bytes())?,
        }
        to.write_all(b"\n")?;
    }
    to.flush()
}

/// Files of the changes in force, and the journals themselves.
fn files(machine: &Machine<'_>) -> anyhow::Result<Vec<String>> {
    let mut files = vec![format!("{}/0", tune::FOLDER)];
    for summary in Journal::list(machine)?.into_iter().filter(|summary| !summary.closed) {
        let Ok(journal) = Journal::open_number(machine, summary.number) else { continue };
        files.extend(journal.entries().iter().filter_map(|entry| match &entry.item.change {
            Change::File { path, .. } | Change::GrubEnv { path, .. } => Some(path.clone()),
            Change::Group { .. } | Change::Member { .. } => Some("/etc/group".into()),
            Change::Package { .. } => Some("/var/lib/dpkg/status".into()),
            _ => None,
        }));
    }
    Ok(files)
}

/// CPUs that no real-time work has to itself; all, where none is set apart.
fn housekeeping(root: &Root) -> CpuList {
    let cpus = |path: &str| root.cpu_list(path).value().cloned().unwrap_or_default();
    let online = cpus("/sys/devices/system/cpu/online");
    let apart = [
        "/sys/devices/system/cpu/isolated",
        "/sys/devices/system/cpu/nohz_full",
        "/sys/fs/cgroup/cpuset.cpus.isolated",
    ];
    let left = apart.iter().fold(online.clone(), |left, path| left.difference(&cpus(path)));
    if left.is_empty() { online } else { left }
}

fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
