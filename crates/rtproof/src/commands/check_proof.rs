//! `rtproof check --prove`: short, bounded trials on the live machine, and their findings.

use std::{
    io::IsTerminal,
    path::PathBuf,
    sync::atomic::{AtomicU64, Ordering},
};

use anyhow::Context as _;
use schemars::JsonSchema;
use serde::Serialize;

use rtproof_host::{CpuList, Facts, Root, door::Invalid};
use rtproof_judge::{Finding, Intent, trials as judging, units};
use rtproof_measure::{
    loads::LoadSettings,
    trials::{self, Observation, Trial, TrialContext},
};
use rtproof_run::prove::Signals;

/// Memory that the memlock trial takes.
pub(super) const MEMORY_DEFAULT: &str = "64MiB";

/// A trial and what came of it.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct TrialProof {
    /// Name of the trial.
    pub(super) trial: &'static str,
    #[serde(flatten)]
    pub(super) finding: Finding,
    /// The observation, number by number: an object with one key, the name of the trial.
    #[schemars(with = "Option<serde_json::Value>")]
    pub(super) observed: Option<Observation>,
}

/// Trials named on the command line.
#[derive(Clone, Debug)]
pub struct WantedTrial(&'static dyn Trial);

/// A name of `--prove`.
///
/// # Errors
/// Unknown trial; the text lists them.
pub(super) fn parse_name(text: &str) -> Result<WantedTrial, Invalid> {
    let names = || trials::TRIALS.iter().map(|trial| trial.name()).collect::<Vec<_>>().join(", ");
    let wanted = trials::find(text.trim()).map(WantedTrial);
    wanted.ok_or_else(|| format!("known are {}", names()).into())
}

/// The names and what they try, for `--help`.
pub(super) fn help() -> String {
    let line = |trial: &&dyn Trial| format!("{} ({})", trial.name(), trial.about());
    let lines: Vec<String> = trials::TRIALS.iter().map(line).collect();
    format!(
        "Try on this machine, for a bounded time, leaving it as it was; names joined by commas: {}",
        lines.join(", ")
    )
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// Time of each trial that takes time, nanoseconds; `None`: its own.
    pub(super) duration_ns: Option<u64>,
    /// Memory to lock, bytes.
    pub(super) memory_bytes: u64,
}

/// Runs the trials, each once, in the order of the list. Ctrl-C ends the one that runs, and those
/// after it are not begun.
///
/// # Errors
/// Signals cannot be caught.
pub(super) fn prove(
    wanted: &[WantedTrial],
    bounds: Bounds,
    root: &Root,
    facts: &Facts,
    intent: &Intent,
) -> anyhow::Result<Vec<TrialProof>> {
    let signals = Signals::catch(root).context("cannot catch signals")?;
    let online = facts.cpus.online.value().cloned().unwrap_or_default();
    let allowed = facts.cpus.allowed.value().unwrap_or(&online);
    let housekeeping = intent.housekeeping.intersection(allowed);
    let loads = settings(facts);
    let is_wanted = |trial: &&dyn Trial| wanted.iter().any(|w| w.0.name() == trial.name());
    let mut proofs = Vec::new();
    for trial in trials::TRIALS.iter().copied().filter(is_wanted) {
        let line = Line::new(trial.name(), trial.length().of(bounds.duration_ns));
        let context = TrialContext {
            root,
            facts,
            rt_cpus: &intent.rt_cpus,
            housekeeping: &housekeeping,
            priority: intent.priority,
            duration_ns: line.duration_ns,
            memory_bytes: bounds.memory_bytes,
            loads: &loads,
            stop: &|| signals.received().is_some(),
            progress: &|elapsed_ns| line.show(elapsed_ns),
        };
        let observed = match signals.received() {
            None => trials::run(trial, &context).map_err(|error| error.to_string()),
            Some(signal) => Err(format!("ended by {signal}")),
        };
        line.clear();
        proofs.push(match observed {
            Ok(observed) => TrialProof {
                trial: trial.name(),
                finding: judging::judge(&observed, facts, intent),
                observed: Some(observed),
            },
            Err(why) => TrialProof {
                trial: trial.name(),
                finding: judging::not_run(trial.name(), &why),
                observed: None,
            },
        });
    }
    Ok(proofs)
}

fn settings(facts: &Facts) -> LoadSettings {
    let cache = |cpu: &rtproof_host::facts::cpu::Cpu| cpu.last_level_cache_bytes.value().copied();
    LoadSettings {
        // The trial says which.
        cpus: CpuList::default(),
        // No load of a trial writes files.
        dir: PathBuf::new(),
        memory_available: facts.memory.available_bytes.value().copied().unwrap_or(256 << 20),
        llc_bytes: facts.cpus.cpus.iter().filter_map(cache).max().unwrap_or(0),
        worker_command: (PathBuf::from("/proc/self/exe"), vec![rtproof_run::NAME.into()]),
    }
}

/// The line that shows a trial under way, on a terminal.
#[derive(Debug)]
struct Line {
    name: &'static str,
    duration_ns: u64,
    is_terminal: bool,
    /// Half seconds on the line; `u64::MAX`: nothing is shown.
    shown: AtomicU64,
}

impl Line {
    fn new(name: &'static str, duration_ns: u64) -> Self {
        let is_terminal = std::io::stderr().is_terminal();
        Self { name, duration_ns, is_terminal, shown: AtomicU64::new(u64::MAX) }
    }

    fn show(&self, elapsed_ns: u64) {
        let step = elapsed_ns / 500_000_000;
        if !self.is_terminal || self.shown.swap(step, Ordering::Relaxed) == step {
            return;
        }
        let of = match self.duration_ns {
            0 => String::new(),
            ns => format!(
                "  {} of {}",
                units::duration(elapsed_ns / 1_000_000_000 * 1_000_000_000),
                units::duration(ns)
            ),
        };
        self.write(&format!("proving {}{of}", self.name));
    }

    fn clear(&self) {
        if self.is_terminal && self.shown.load(Ordering::Relaxed) != u64::MAX {
            self.write("");
        }
    }

    fn write(&self, text: &str) {
        // Progress is a courtesy: a closed stderr must not end a trial.
        let _ = crate::rewrite("\r\x1b[K", text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_and_invalid_names() {
        assert_eq!(parse_name("smi").map(|wanted| wanted.0.name()), Ok("smi"));
        assert!(parse_name("smo").is_err_and(|error| error.contains("throttling, isolation")));
        assert!(trials::TRIALS.iter().all(|trial| help().contains(trial.name())));
    }
}
