//! From words of the command line to knobs: checks of `tune`, values of the kernel, options of
//! measuring, and what does nothing.

use std::collections::BTreeMap;

use anyhow::Context;

use rtproof_host::{
    Root,
    door::{Invalid, usage},
    tune::{
        ApplyError, ApplyOptions, Change, Compare, Item, Journal, Machine, Outcome, Switching,
        UndoneChange, apply, undo,
    },
};
use rtproof_judge::{
    Impact,
    plan::{Plan, Reason, Step},
};
use rtproof_measure::{Slot, loads::LoadSettings};
use rtproof_record::effects::{Slice, SlicePart};
use rtproof_stats::{Histogram, Layout, Totals, quantile::Q};

use super::{HeldSettings, MeasureSetting};
use crate::parse;

/// Longest name of a placebo.
const NAME_MAX: usize = 40;

const PLACEBO: &str = "placebo";

/// What a word asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Factor {
    /// A check, or a section of them.
    Check(String),
    /// Values that are written together: path and value.
    Values(String, Vec<(String, String)>),
    /// An option of measuring.
    Setting(MeasureSetting),
    /// Nothing at all: what it is found to do is error.
    Placebo(String),
}

/// Reads a word: `ID`, `PATH=VALUE` (more of them after a blank), `OPTION=VALUE`, `placebo`.
///
/// # Errors
/// Usage: unknown factor.
pub fn factor(word: &str) -> anyhow::Result<Factor> {
    let refuse = |why: &str| Err(usage(format!("{word}: {why}")));
    if word.starts_with('/') {
        return values(word);
    }
    if let Some(name) = word.strip_prefix(PLACEBO) {
        let is_name = name.is_empty() || (name.starts_with(':') && word.len() <= NAME_MAX);
        return match is_name && !word.contains(char::is_whitespace) {
            true => Ok(Factor::Placebo(word.into())),
            false => refuse("write placebo or placebo:NAME"),
        };
    }
    let Some((option, value)) = word.split_once('=') else {
        return Ok(Factor::Check(word.into()));
    };
    let wrong = |why: Invalid| usage(format!("{word}: {why}"));
    Ok(Factor::Setting(match option.trim_start_matches("--") {
        "dma-latency" => match value.parse() {
            Ok(us) => MeasureSetting::DmaLatency(us),
            Err(_) => return refuse("expected microseconds, e.g. dma-latency=0"),
        },
        "priority" => MeasureSetting::Priority(parse::priority(value).map_err(wrong)?),
        "policy" => match value {
            "other" | "fifo" | "rr" => MeasureSetting::Policy(value.into()),
            _ => return refuse("expected other, fifo or rr"),
        },
        "load" => {
            let load = value.parse::<rtproof_measure::loads::LoadSet>();
            MeasureSetting::Load(load.map_err(|error| wrong(error.to_string().into()))?)
        }
        "period" | "cpus" | "for" | "start" => {
            return refuse("slices that differ in it hold different numbers of wake-ups");
        }
        _ => return refuse("options that can be tried: dma-latency, priority, policy, load"),
    }))
}

fn values(word: &str) -> anyhow::Result<Factor> {
    let mut values: Vec<(String, String)> = Vec::new();
    let mut rest = word;
    while !rest.is_empty() {
        // The next one begins at a path after a blank.
        let end = rest.find(" /").unwrap_or(rest.len());
        let (one, others) = rest.split_at(end);
        let Some((path, value)) = one.trim().split_once('=') else {
            return Err(usage(format!("{one}: expected PATH=VALUE")));
        };
        let is_value = ["/proc/", "/sys/"].iter().any(|top| path.starts_with(top));
        if !is_value || path.split('/').any(|part| part == "..") {
            return Err(usage(format!(
                "{path}: only values below /proc and /sys can be switched on and off"
            )));
        }
        values.push((path.into(), value.into()));
        rest = others.trim_start();
    }
    Ok(Factor::Values(word.into(), values))
}

/// Steps of values, as a plan has them.
///
/// # Errors
/// A file that cannot be read.
pub fn steps(root: &Root, name: &str, values: &[(String, String)]) -> anyhow::Result<Vec<Step>> {
    let step = |(path, value): &(String, String)| {
        let now = root.read_text(path);
        let Some(now) = now.value() else {
            let why = now.why_unknown().unwrap_or_else(|| "cannot be read".into());
            anyhow::bail!("{path}: {why}");
        };
        let is_number = |text: &str| text.trim().parse::<i64>().is_ok();
        let compare = match () {
            () if now.contains('[') && now.contains(']') => Compare::Choice,
            () if is_number(now) && is_number(value) => Compare::Number,
            () => Compare::Text,
        };
        let (path, value) = (path.clone(), value.clone());
        let change = Change::Value { path, value, compare, couples: Vec::new() };
        let reason = Reason {
            checks: vec![name.to_owned()],
            why: "named on the command line of rtproof experiment".into(),
            impact: Impact::default(),
            trade_off: None,
            risk: None,
        };
        Ok(Step { change, reason })
    };
    values.iter().map(step).collect()
}

/// The knobs of a plan and of the other factors, and names of those that cannot be switched on and
/// off, with the reason.
pub fn knobs_of(plan: &Plan, factors: &[Factor]) -> (Vec<Candidate>, Vec<(String, &'static str)>) {
    let (mut knobs, others): (Vec<Candidate>, Vec<Candidate>) =
        candidates_of(plan).into_iter().partition(|knob| knob.kind == Switching::Toggled);
    for factor in factors {
        let settings = match factor {
            Factor::Check(_) | Factor::Values(..) => continue,
            Factor::Setting(setting) => vec![setting.clone()],
            Factor::Placebo(_) => Vec::new(),
        };
        let name = match factor {
            Factor::Placebo(name) => name.clone(),
            _ => settings.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "),
        };
        let (now, later) = (Vec::new(), Vec::new());
        let impact = Impact::default();
        knobs.push(Candidate { name, impact, kind: Switching::Toggled, now, later, settings });
    }
    let why = |knob: &Candidate| match knob.kind {
        Switching::Once => {
            "slow to take back, and leaves traces: rtproof tune apply --prove tries it once"
        }
        Switching::Later | Switching::Toggled => {
            "does nothing before the next boot: rtproof experiment boots tries boot parameters"
        }
    };
    let others = others.iter().map(|knob| (knob.name.clone(), why(knob))).collect();
    (knobs, others)
}

// One slice of time, put together from the slots of all threads.

/// Fewest wake-ups for which p99.9 is given.
const WAKE_UPS_MIN: u64 = 900;

const P999: Q = Q { above: 1, of: 1000 };

/// A slice that is being measured. Times are nanoseconds after the origin.
#[derive(Debug)]
pub(crate) struct SliceGather {
    from_ns: u64,
    to_ns: u64,
    /// How far each thread has handed over.
    reached_ns: Vec<u64>,
    /// Wake-ups that were due: those measured and, by their lateness, those missed.
    due: Histogram,
    totals: Totals,
}

impl SliceGather {
    pub(crate) fn new(from_ns: u64, to_ns: u64, threads: usize) -> Self {
        Self {
            from_ns,
            to_ns,
            reached_ns: vec![0; threads],
            due: Histogram::new(Layout::FINE),
            totals: Totals::default(),
        }
    }

    pub(crate) fn to_ns(&self) -> u64 {
        self.to_ns
    }

    /// Takes a slot; one that began outside is no part of it. One that a long stall carried over
    /// the end is: what was due in the slice was that late.
    pub(crate) fn take(&mut self, thread: usize, slot: &Slot, origin_ns: u64) {
        let from_ns = slot.from_ns.saturating_sub(origin_ns);
        if let Some(reached_ns) = self.reached_ns.get_mut(thread) {
            *reached_ns = slot.to_ns.saturating_sub(origin_ns);
        }
        if (self.from_ns..self.to_ns).contains(&from_ns) {
            slot.wake.add_to(&mut self.due);
            slot.missed.add_to(&mut self.due);
            self.totals.merge(&slot.totals);
        }
    }

    /// Threads that have not handed over all of it.
    pub(crate) fn waits_for(&self) -> Vec<usize> {
        let behind = |thread: &usize| self.reached_ns[*thread] < self.to_ns;
        (0..self.reached_ns.len()).filter(behind).collect()
    }

    pub(crate) fn slice(&self, number: u32, part: SlicePart, pair: u32, on: Vec<u32>) -> Slice {
        let scheduled = self.due.total();
        let enough = scheduled >= WAKE_UPS_MIN;
        Slice {
            number,
            part,
            pair,
            on,
            from_ns: self.from_ns,
            to_ns: self.to_ns,
            scheduled,
            p999_ns: enough.then(|| self.due.value_at_rank(P999.rank(scheduled))).flatten(),
            max_ns: self.totals.wake.max(),
            missed: self.totals.missed,
        }
    }
}

// From the steps of a plan to knobs: what is switched together, and how it may be switched.

/// A knob that an experiment can try.
#[derive(Clone, Debug)]
pub struct Candidate {
    pub name: String,
    /// The most that its changes promise.
    pub impact: Impact,
    /// How it may be tried.
    pub kind: Switching,
    /// What is switched, with its place in the plan.
    pub now: Vec<(usize, Item)>,
    /// What only a later boot or login notices: made when the knob is kept, never before.
    pub later: Vec<(usize, Item)>,
    /// Options of measuring that are switched with it.
    pub settings: Vec<MeasureSetting>,
}

/// The knobs of a plan, those that promise most first, in the plan's order otherwise.
pub fn candidates_of(plan: &Plan) -> Vec<Candidate> {
    let mut group: Vec<usize> = (0..plan.steps.len()).collect();
    let mut owner: BTreeMap<String, usize> = BTreeMap::new();
    for (at, step) in plan.steps.iter().enumerate() {
        for key in keys(step) {
            let first = *owner.entry(key).or_insert(at);
            let (one, other) = (root(&group, first), root(&group, at));
            let (low, high) = (one.min(other), one.max(other));
            group[high] = low;
        }
    }
    let mut knobs: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for at in 0..plan.steps.len() {
        knobs.entry(root(&group, at)).or_default().push(at);
    }
    let mut knobs: Vec<Candidate> = knobs.values().map(|steps| knob(plan, steps)).collect();
    knobs.sort_by_key(|knob| knob.impact);
    knobs
}

/// What makes two steps one knob: a check, or a file that one of them is and the other moves.
fn keys(step: &Step) -> Vec<String> {
    let mut keys: Vec<String> =
        step.reason.checks.iter().map(|check| format!("check {check}")).collect();
    if let Change::Value { path, couples, .. } = &step.change {
        keys.extend(couples.iter().chain([path]).map(|path| format!("file {path}")));
    }
    keys
}

fn root(group: &[usize], mut at: usize) -> usize {
    while group[at] != at {
        at = group[at];
    }
    at
}

fn knob(plan: &Plan, steps: &[usize]) -> Candidate {
    let mut checks: Vec<&str> = Vec::new();
    for check in steps.iter().flat_map(|&at| &plan.steps[at].reason.checks) {
        if !checks.contains(&check.as_str()) {
            checks.push(check);
        }
    }
    let item = |at: usize| {
        let step = &plan.steps[at];
        (at, Item { change: step.change.clone(), checks: step.reason.checks.clone() })
    };
    let (later, now): (Vec<usize>, Vec<usize>) =
        steps.iter().partition(|&&at| plan.steps[at].change.nature().pace == Switching::Later);
    let kinds = now.iter().map(|&at| plan.steps[at].change.nature().pace);
    let impacts = steps.iter().map(|&at| plan.steps[at].reason.impact);
    Candidate {
        name: checks.join(" "),
        impact: impacts.min().unwrap_or_default(),
        kind: kinds.max().unwrap_or(Switching::Later),
        now: now.into_iter().map(item).collect(),
        later: later.into_iter().map(item).collect(),
        settings: Vec::new(),
    }
}

/// A change in a line.
pub fn change_line(change: &Change) -> String {
    match change {
        Change::Value { path, value, .. } | Change::Hotplug { path, value } => {
            format!("{path} = {value}")
        }
        Change::Irq { irq, cpus } => {
            let of = if irq.actions.is_empty() { &irq.chip } else { &irq.actions };
            format!("interrupt {} ({of}) on CPUs {cpus}", irq.number)
        }
        Change::Unit { unit, want } => format!("{unit} {want:?}").to_lowercase(),
        Change::Property { unit, property, value } => format!("{unit} {property}={value}"),
        Change::Folder { path } => format!("{path}/"),
        _ => change.target(),
    }
}

// What the runner of a trial asks of whoever changes the machine.

/// Changes the machine and takes it back. Whatever is on is written in a journal first: a kill at
/// any moment is undone by `rtproof tune undo`.
pub trait Switch {
    /// Makes changes, in this order, each read back. Called only while nothing is on.
    ///
    /// # Errors
    /// When one cannot be made; those before it are undone.
    fn on(&mut self, items: &[Item]) -> anyhow::Result<()>;

    /// Undoes what is on, in reverse; nothing to do is no error.
    ///
    /// # Errors
    /// When something could not be undone: it stays in the journal.
    fn off(&mut self) -> anyhow::Result<()>;

    /// Makes these options of measuring be set, and no others.
    ///
    /// # Errors
    /// When one cannot be set.
    fn set(&mut self, settings: &[MeasureSetting]) -> anyhow::Result<()> {
        match settings.first() {
            None => Ok(()),
            Some(setting) => anyhow::bail!("{setting}: no option that can be switched here"),
        }
    }

    /// The measured threads run now, and these are their thread ids.
    fn threads(&mut self, tids: &[u32]) {
        let _ = tids;
    }

    /// Makes the changes that stay, as [`Switch::on`] does: the last call.
    ///
    /// # Errors
    /// When one cannot be made; those before it are undone.
    fn keep(&mut self, items: &[Item]) -> anyhow::Result<()>;
}

/// The switch of a machine: everything goes through the journal of `tune apply`. Journals of what
/// was only tried are removed once they are closed; that of what is kept stays, for `tune undo`.
pub struct Journaled<'a> {
    machine: &'a Machine<'a>,
    what: String,
    journal: Option<Journal>,
    held: HeldSettings<'a>,
}

impl<'a> Journaled<'a> {
    /// `what`: what the user asked for, the title of the journals.
    pub fn new(machine: &'a Machine<'a>, what: &str) -> Self {
        let held = HeldSettings::new(machine.root(), None);
        Self { machine, what: what.into(), journal: None, held }
    }

    /// The same with a place for loads.
    #[must_use]
    pub fn with_loads(mut self, loads_at: LoadSettings) -> Self {
        self.held = HeldSettings::new(self.machine.root(), Some(loads_at));
        self
    }

    fn apply(&mut self, items: &[Item], what: String) -> anyhow::Result<Journal> {
        let mut journal = Journal::begin(self.machine, what, items)?;
        let options = ApplyOptions { keep_going: false };
        match apply(self.machine, &mut journal, items, options, &mut |_| {}) {
            Ok(_) => Ok(journal),
            Err(error) => {
                let is_left = matches!(
                    &error,
                    ApplyError::Failed { undone, .. } | ApplyError::Journal { undone, .. }
                        if not_restored(undone).is_some()
                );
                if is_left {
                    // The next `off` tries again and says what is left.
                    self.journal = Some(journal);
                } else {
                    journal.discard(self.machine)?;
                }
                Err(error.into())
            }
        }
    }
}

impl Drop for Journaled<'_> {
    fn drop(&mut self) {
        // An error or a panic on the way: nothing that was only tried stays.
        let _ = self.off();
    }
}

impl Switch for Journaled<'_> {
    fn on(&mut self, items: &[Item]) -> anyhow::Result<()> {
        let journal = self.apply(items, format!("{} (trying)", self.what))?;
        self.journal = Some(journal);
        Ok(())
    }

    fn off(&mut self) -> anyhow::Result<()> {
        let Some(journal) = &mut self.journal else { return Ok(()) };
        let path = journal.path().to_owned();
        let undone = undo(self.machine, journal, &mut |_| {})?;
        if let Some(left) = not_restored(&undone) {
            anyhow::bail!("{path}: {left}");
        }
        let journal = self.journal.take();
        let discarded = journal.map(|journal| journal.discard(self.machine)).transpose();
        discarded.context("what was tried is undone, but its journal stays").map(drop)
    }

    fn set(&mut self, settings: &[MeasureSetting]) -> anyhow::Result<()> {
        self.held.set(settings)
    }

    fn threads(&mut self, tids: &[u32]) {
        self.held.threads(tids);
    }

    fn keep(&mut self, items: &[Item]) -> anyhow::Result<()> {
        self.apply(items, self.what.clone()).map(drop)
    }
}

/// What is not as it was before.
fn not_restored(undone: &[UndoneChange]) -> Option<String> {
    let of = |undone: &UndoneChange| match &undone.outcome {
        Outcome::Failed { why } => Some(format!("{}: {why}", undone.change.target())),
        Outcome::LeftAlone { .. } => {
            Some(format!("{}: something else has changed it meanwhile", undone.change.target()))
        }
        Outcome::Restored | Outcome::WasBefore | Outcome::Gone { .. } => None,
    };
    let left: Vec<String> = undone.iter().filter_map(of).collect();
    (!left.is_empty()).then(|| left.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read() {
        let of = |word: &str| factor(word).expect(word);
        assert_eq!(of("cpufreq-governor"), Factor::Check("cpufreq-governor".into()));
        assert_eq!(of("placebo:2"), Factor::Placebo("placebo:2".into()));
        assert_eq!(of("dma-latency=0"), Factor::Setting(MeasureSetting::DmaLatency(0)));
        assert_eq!(of("--priority=98"), Factor::Setting(MeasureSetting::Priority(98)));
        assert_eq!(of("policy=rr"), Factor::Setting(MeasureSetting::Policy("rr".into())));
        assert!(matches!(of("load=cpu+net"), Factor::Setting(MeasureSetting::Load(_))));
        let word = "/sys/a=1 2 /proc/sys/b=x=y";
        let pair = |path: &str, value: &str| (path.to_owned(), value.to_owned());
        let values = vec![pair("/sys/a", "1 2"), pair("/proc/sys/b", "x=y")];
        assert_eq!(of(word), Factor::Values(word.into(), values));
    }

    #[test]
    fn untried_knobs_are_reported() {
        for (word, why) in [
            ("/etc/fstab=x", "below /proc and /sys"),
            ("/sys/../etc/fstab=x", "below /proc and /sys"),
            ("/sys/a", "expected PATH=VALUE"),
            ("priority=100", "priority=100"),
            ("policy=idle", "expected other, fifo or rr"),
            ("dma-latency=slow", "expected microseconds"),
            ("period=1ms", "different numbers of wake-ups"),
            ("colour=red", "options that can be tried"),
            ("load=nonsense", "load=nonsense"),
            ("placebo two", "placebo:NAME"),
        ] {
            let error = factor(word).expect_err(word);
            assert!(error.to_string().contains(why), "{word}: {error}");
            assert!(error.is::<rtproof_host::door::UsageError>());
        }
    }

    #[test]
    fn values_are_compared_as_they_are_shown() {
        let folder = tempfile::tempdir().expect("a folder");
        #[expect(clippy::disallowed_methods, reason = "the test's own files")]
        let write = |path: &str, text: &str| {
            let file = folder.path().join(path);
            std::fs::create_dir_all(file.parent().expect("a folder")).expect("folders");
            std::fs::write(file, text).expect("a file");
        };
        write("sys/choice", "always [madvise] never\n");
        write("sys/number", "10\n");
        write("sys/text", "ondemand\n");
        let root = Root::dir(folder.path()).expect("a root");
        let word = "/sys/choice=never /sys/number=0 /sys/text=performance";
        let Factor::Values(name, values) = factor(word).expect("values") else { panic!("{word}") };
        let steps = steps(&root, &name, &values).expect("steps");
        let compares: Vec<Compare> = steps
            .iter()
            .map(|step| match &step.change {
                Change::Value { compare, .. } => *compare,
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(compares, [Compare::Choice, Compare::Number, Compare::Text]);
        let plan = Plan { steps, ..Plan::default() };
        let factors =
            [Factor::Placebo("placebo".into()), Factor::Setting(MeasureSetting::DmaLatency(0))];
        let (knobs, others) = knobs_of(&plan, &factors);
        let found: Vec<_> = knobs.iter().map(|k| (k.name.as_str(), k.now.len())).collect();
        assert_eq!(found, [(word, 3), ("placebo", 0), ("--dma-latency 0", 0)]);
        assert!(others.is_empty() && knobs[2].settings == [MeasureSetting::DmaLatency(0)]);
        let none = [("/sys/none".to_owned(), "1".to_owned())];
        assert!(
            super::steps(&root, "x", &none).expect_err("none").to_string().contains("/sys/none")
        );
    }
}

#[cfg(test)]
mod gather_tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// A slot of 100 wake-ups from `from_ms` on, the first of them `late_ms` late.
    fn slot(from_ms: u64, late_ms: u64) -> Slot {
        let mut slot = Slot { from_ns: from_ms * MS, ..Slot::default() };
        slot.record_wake(from_ms * MS, (from_ms + late_ms) * MS);
        slot.record_missed(late_ms * MS, MS, late_ms, u64::MAX);
        for i in late_ms + 1..100 {
            slot.record_wake((from_ms + i) * MS, (from_ms + i) * MS + 5_000);
        }
        slot.to_ns = (from_ms + 100.max(late_ms + 1)) * MS;
        slot
    }

    #[test]
    fn what_was_due_in_the_slice_is_in_it() {
        let mut gather = SliceGather::new(100 * MS, 1100 * MS, 2);
        for thread in 0..2 {
            for i in 0..10 {
                gather.take(thread, &slot(1000 + 100 * i, 0), 1000 * MS);
            }
        }
        assert_eq!(gather.waits_for(), [0, 1]);
        gather.take(0, &slot(2000, 20), 1000 * MS);
        assert_eq!(gather.waits_for(), [1]);
        gather.take(1, &slot(2000, 0), 1000 * MS);
        gather.take(1, &slot(2100, 50), 1000 * MS);
        assert!(gather.waits_for().is_empty());
        let slice = gather.slice(7, SlicePart::Pair, 3, vec![1]);
        assert_eq!((slice.number, slice.pair, slice.on.as_slice()), (7, 3, &[1][..]));
        assert_eq!((slice.scheduled, slice.missed, slice.max_ns), (2000, 20, Some(20 * MS)));
        // Two of 2000 may be later: 20 and 19 ms are, 18 ms is the quantile.
        let p999 = slice.p999_ns.expect("a quantile");
        assert!((18 * MS..18 * MS + MS / 5).contains(&p999), "{p999}");
    }

    #[test]
    fn a_few_wake_ups_have_no_tail() {
        let mut gather = SliceGather::new(0, 100 * MS, 1);
        gather.take(0, &slot(0, 0), 0);
        assert_eq!(gather.slice(0, SlicePart::Before, 0, Vec::new()).p999_ns, None);
    }
}

#[cfg(test)]
mod knobs_tests {
    use rtproof_host::tune::Compare;
    use rtproof_judge::plan::Reason;

    use super::*;

    fn step(change: Change, checks: &[&str], impact: Impact) -> Step {
        let reason = Reason {
            checks: checks.iter().map(|&check| check.into()).collect(),
            why: String::new(),
            impact,
            trade_off: None,
            risk: None,
        };
        Step { change, reason }
    }

    fn value(path: &str, couples: &[&str]) -> Change {
        let couples = couples.iter().map(|&path| path.into()).collect();
        Change::Value { path: path.into(), value: "1".into(), compare: Compare::Text, couples }
    }

    #[test]
    fn what_belongs_together_is_one_knob() {
        let file = Change::File { path: "/etc/sysctl.d/x".into(), content: None, mode: None };
        let plan = Plan {
            steps: vec![
                step(value("/sys/a", &["/sys/b"]), &["one"], Impact::Tens),
                step(value("/sys/c", &[]), &["two"], Impact::Milliseconds),
                step(value("/sys/b", &[]), &["three"], Impact::Hundreds),
                step(file.clone(), &["two"], Impact::Tens),
                step(
                    Change::Hotplug { path: "/sys/smt".into(), value: "off".into() },
                    &["smt"],
                    Impact::Tens,
                ),
                step(file, &["limits"], Impact::Tens),
            ],
            ..Plan::default()
        };
        let knobs = candidates_of(&plan);
        let found: Vec<_> = knobs
            .iter()
            .map(|knob| (knob.name.as_str(), knob.kind, knob.now.len(), knob.later.len()))
            .collect();
        let expected = [
            ("two", Switching::Toggled, 1, 1),
            ("one three", Switching::Toggled, 2, 0),
            ("smt", Switching::Once, 1, 0),
            ("limits", Switching::Later, 0, 1),
        ];
        assert_eq!(found, expected);
        assert!(candidates_of(&Plan::default()).is_empty());
    }
}

#[cfg(test)]
mod switch_tests {
    use std::{fs, path::Path};

    use rtproof_host::{
        Root,
        tune::{Change, Compare},
    };
    use rtproof_measure::LiveTasks;

    use super::*;

    fn value(path: &str) -> Item {
        let (path, value) = (path.into(), "1".into());
        let change = Change::Value { path, value, compare: Compare::Text, couples: Vec::new() };
        Item { change, checks: vec!["check".into()] }
    }

    #[expect(clippy::disallowed_methods, reason = "the test's own files")]
    fn read(folder: &Path, path: &str) -> String {
        fs::read_to_string(folder.join(path)).unwrap()
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the test's own files")]
    fn on_and_off_leave_nothing_and_what_is_kept_has_a_journal() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        fs::create_dir_all(folder.join("proc/sys/vm")).unwrap();
        fs::write(folder.join("proc/sys/vm/a"), "7\n").unwrap();
        fs::write(folder.join("proc/sys/vm/b"), "odd\n").unwrap();
        let root = Root::dir(folder).unwrap();
        let machine = Machine::new(&root, &LiveTasks).unwrap();
        let mut switch = Journaled::new(&machine, "tune apply --prove 60s");
        switch.off().unwrap();
        for _ in 0..3 {
            switch.on(&[value("/proc/sys/vm/a"), value("/proc/sys/vm/b")]).unwrap();
            let held = ["a", "b"].map(|file| read(folder, &format!("proc/sys/vm/{file}")));
            assert_eq!(held.map(|text| text.trim().to_owned()), ["1", "1"]);
            assert_eq!(Journal::list(&machine).unwrap().len(), 1, "a kill now is undone");
            switch.off().unwrap();
            assert_eq!(read(folder, "proc/sys/vm/a"), "7\n");
            assert_eq!(read(folder, "proc/sys/vm/b"), "odd\n");
            assert!(Journal::list(&machine).unwrap().is_empty());
        }
        let error = switch.on(&[value("/proc/sys/vm/a"), value("/proc/sys/vm/none")]);
        assert!(format!("{:#}", error.unwrap_err()).contains("/proc/sys/vm/none"));
        assert_eq!(read(folder, "proc/sys/vm/a"), "7\n");
        switch.off().unwrap();
        switch.keep(&[value("/proc/sys/vm/b")]).unwrap();
        drop(switch);
        let mut journal = Journal::open(&machine, None).unwrap();
        assert_eq!(journal.header().what, "tune apply --prove 60s");
        undo(&machine, &mut journal, &mut |_| {}).unwrap();
        assert_eq!(read(folder, "proc/sys/vm/b"), "odd\n");
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the test's own files")]
    fn changes_by_others_are_reported() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        fs::create_dir_all(folder.join("proc/sys/vm")).unwrap();
        fs::write(folder.join("proc/sys/vm/a"), "7\n").unwrap();
        let root = Root::dir(folder).unwrap();
        let machine = Machine::new(&root, &LiveTasks).unwrap();
        let mut switch = Journaled::new(&machine, "x");
        switch.on(&[value("/proc/sys/vm/a")]).unwrap();
        fs::write(folder.join("proc/sys/vm/a"), "3\n").unwrap();
        let error = switch.off().unwrap_err().to_string();
        assert!(error.contains("/proc/sys/vm/a: something else"), "{error}");
        assert_eq!(read(folder, "proc/sys/vm/a"), "3\n", "theirs stays");
    }
}
