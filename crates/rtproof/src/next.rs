//! The next command, complete: it can be pasted.

use std::path::Path;

use rtproof_judge::{
    Finding, Remedy, Report, Status, VerdictAnswer, When, causes::Spikes, report::MachineSummary,
};
use rtproof_record::{BudgetClass, Clock, Requirement};

use crate::IntentArgs;

/// Checks that one command names at most.
const IDS_MAX: usize = 3;

/// `--max-rate` where none was given, 3/day, per 1000 hours.
const RATE_USUAL: u64 = 125;

/// What to do after a run; `None`: the reasons of the verdict say more than a command.
pub(crate) fn of_report(report: &Report, record: &Path) -> Option<String> {
    let verdict = &report.verdict;
    let is_judged = verdict.answer != VerdictAnswer::NotJudged;
    if verdict.answer == VerdictAnswer::Accepted {
        return None;
    }
    // A program of `rtproof run` is measured again by its user.
    if is_judged && verdict.basis.late == 0 && report.options.phases.is_empty() {
        return None;
    }
    if is_judged && verdict.basis.late == 0 {
        return longer(report);
    }
    if let Some(fix) = fix(report).filter(|_| is_judged) {
        return Some(fix);
    }
    let worst = report.spikes.as_ref()?.worst.first()?;
    Some(format!("rtproof explain {} --spike {}", path(record), worst.number))
}

/// The same measurement for as long as a verdict takes, on the machine of the report; `None`: more
/// time does not help.
fn longer(report: &Report) -> Option<String> {
    let (options, basis) = (&report.options, &report.verdict.basis);
    let further_ns = basis.further_ns?;
    // The phases are parts of the duration: what is idle grows with what counts.
    // Seconds in which a load begins and ends belong to no phase as a whole.
    let needed_ns = u128::from(basis.exposure_ns) + u128::from(further_ns) + 3_000_000_000;
    let duration_ns = match basis.exposure_ns {
        0 => needed_ns,
        exposure_ns => needed_ns * u128::from(options.duration_ns) / u128::from(exposure_ns),
    };
    let minutes = duration_ns.div_ceil(60_000_000_000);
    let duration = match minutes {
        ..=120 => format!("{minutes}m"),
        minutes => format!("{}h", minutes.div_ceil(60)),
    };
    let load = match options.phases.as_slice() {
        [phase] if phase.loads.is_empty() => " --load idle".to_owned(),
        [phase] => format!(" --load {}", quoted(&phase.loads.join("+"))),
        _ => String::new(),
    };
    let wanted = requirement(&options.requirement);
    let clock = clock(options.clock);
    Some(format!(
        "rtproof prove --for {duration}{}{wanted}{load}{clock}",
        requirement_options(report)
    ))
}

/// A clock that is not the default, as an option.
pub(crate) fn clock(clock: Clock) -> String {
    if clock.is_monotonic() { String::new() } else { format!(" --clock {}", clock.word()) }
}

/// Parts of a requirement that differ from the default, as options.
fn requirement(wanted: &Requirement) -> String {
    let mut text = match wanted.class {
        BudgetClass::Hundred => String::new(),
        BudgetClass::NinetyFive => " --class 95".to_owned(),
        BudgetClass::Soft => " --class soft".to_owned(),
        BudgetClass::Safe => " --class safe".to_owned(),
    };
    if wanted.confidence_ppm != 950_000 {
        text += &format!(" --confidence {}", f64::from(wanted.confidence_ppm) / 1e4);
    }
    if wanted.class == BudgetClass::Hundred && wanted.rate_per_1000h != RATE_USUAL {
        text += &format!(" --max-rate {}/h", wanted.rate_per_1000h as f64 / 1e3);
    }
    if let Some(episode_ns) = wanted.episode_ns {
        text += &format!(" --episode {}", format_args!("{}us", episode_ns.div_ceil(1000)));
    }
    text
}

/// Command that sets the knobs of the most costly causes; `None`: there are none, or the machine is
/// another one.
pub(crate) fn fix(report: &Report) -> Option<String> {
    let ids = knobs(report.spikes.as_ref()?, &report.findings);
    let is_ours = !ids.is_empty() && is_here(&report.machine);
    is_ours
        .then(|| format!("rtproof tune apply {ids}{} --confirm 60s", requirement_options(report)))
}

/// The same for causes that were seen on this machine just now.
pub(crate) fn fix_of(spikes: &Spikes, findings: &[Finding]) -> Option<String> {
    let ids = knobs(spikes, findings);
    (!ids.is_empty()).then(|| format!("rtproof tune apply {ids} --confirm 60s"))
}

/// Checks that found something to be changed at once, of the causes that cost most.
fn knobs(spikes: &Spikes, findings: &[Finding]) -> String {
    let mut ids: Vec<&str> = Vec::new();
    let causes = spikes.causes.iter().take(IDS_MAX);
    for id in causes.flat_map(|cause| &cause.checks) {
        let can_help = findings.iter().any(|finding| {
            finding.check == *id
                && matches!(finding.status, Status::Bad | Status::Doubtful)
                && finding.when == When::Now
                && finding.remedies.iter().any(|remedy| !matches!(remedy, Remedy::Manual { .. }))
        });
        if can_help && !ids.contains(&id.as_str()) && ids.len() < IDS_MAX {
            ids.push(id);
        }
    }
    ids.join(",")
}

/// Whether a record is of the machine that we are on, by its name.
fn is_here(machine: &MachineSummary) -> bool {
    let here = rustix::system::uname();
    machine.hostname.as_deref().is_some_and(|name| here.nodename().to_bytes() == name.as_bytes())
}

/// What the application needs, as options.
fn requirement_options(report: &Report) -> String {
    let options = &report.options;
    let mut text = format!(" --cpus {}", options.cpus);
    if options.policy.has_priority() {
        text += &format!(" --priority {}", options.priority);
    }
    text += &format!(" --period {}", time(options.period_ns));
    if let Some(budget_ns) = options.requirement.budget_ns {
        text += &format!(" --budget {}", time(budget_ns));
    }
    text
}

/// Options that say what the machine is for, as they were given.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GivenOptions<'a> {
    /// `--profile`, `--skip`.
    pub(crate) intent: &'a IntentArgs,
    pub(crate) cpus: Option<&'a str>,
    pub(crate) priority: Option<u32>,
    pub(crate) period_ns: Option<u64>,
    pub(crate) budget_ns: Option<u64>,
    /// `--user`, which `check` and `tune` take.
    pub(crate) user: Option<&'a str>,
}

impl GivenOptions<'_> {
    /// On a command line, each with a blank before it.
    pub(crate) fn options(&self) -> String {
        let mut text = String::new();
        let profile = self.intent.profile.as_deref();
        let texts = [("--profile", profile), ("--cpus", self.cpus), ("--user", self.user)];
        let texts = texts.into_iter().filter_map(|(name, value)| Some((name, value?)));
        let skips = self.intent.skip.iter().map(|skip| ("--skip", skip.as_str()));
        for (name, value) in texts.chain(skips) {
            text += &format!(" {name} {}", quoted(value));
        }
        if let Some(priority) = self.priority {
            text += &format!(" --priority {priority}");
        }
        for (name, value) in [("--period", self.period_ns), ("--budget", self.budget_ns)] {
            text += &value.map_or_else(String::new, |ns| format!(" {name} {}", time(ns)));
        }
        text
    }

    /// The measurement that shows whether the machine is good enough. A file of `capture` or a
    /// folder cannot be measured.
    pub(crate) fn prove(&self) -> String {
        format!("rtproof prove{}", Self { user: None, ..*self }.options())
    }
}

/// `--root`, with a blank before it.
pub(crate) fn root(root: Option<&Path>) -> String {
    root.map_or_else(String::new, |root| format!(" --root {}", path(root)))
}

/// A time as an option takes it: `250us`.
pub(crate) fn time(ns: u64) -> String {
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
    match units.into_iter().find(|&(unit, _)| ns > 0 && ns.is_multiple_of(unit)) {
        Some((unit, name)) => format!("{}{name}", ns / unit),
        None => format!("{ns}ns"),
    }
}

/// A path, in quotes where the shell would not leave it alone.
pub(crate) fn path(path: &Path) -> String {
    let short = path.strip_prefix(".").unwrap_or(path);
    // What begins with a dash would be an option.
    let is_word = !short.to_string_lossy().starts_with('-') && !short.as_os_str().is_empty();
    quoted(&if is_word { short } else { path }.display().to_string())
}

/// A word, in quotes where the shell would not leave it alone.
pub(crate) fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+,:=@%".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shell_reads_back_the_same_words() {
        assert_eq!(time(1_000_000), "1ms");
        assert_eq!(time(1_500_000), "1500us");
        assert_eq!(time(60_000_000_000), "60s");
        assert_eq!(time(1_001), "1001ns");
        assert_eq!(quoted("run-1.rtproof"), "run-1.rtproof");
        assert_eq!(quoted("it's; here"), r"'it'\''s; here'");
        assert_eq!(quoted(""), "''");
        for (given, expected) in [("./a.rtproof", "a.rtproof"), ("./-a", "./-a"), ("/a", "/a")] {
            assert_eq!(path(Path::new(given)), expected);
        }
    }
}
