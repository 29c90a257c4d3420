//! Whether runs are alike enough to be compared: same machine, same work, same period and budget.
//! Also how far the quantiles of one run vary, the causes and facts of each group, and a run of
//! another tool as a side.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use rtproof_record::import::{Imported, ImportedThread, SampleKind};

use super::side::{Group, RunMachine, Side, SideThread, View};
use crate::quantity;

/// Something in which runs must agree and do not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Mismatch {
    /// `run`, `machine`, `workload`, `clock`, `period`, `budget`.
    pub what: String,
    /// The values found, each with the first run that has it.
    pub values: Vec<String>,
}

impl Mismatch {
    pub fn text(&self) -> String {
        let values = self.values.join("; ");
        match self.what.as_str() {
            "run" => format!("the same run was given twice: {values}"),
            "machine" => format!("the runs are of different machines: {values}"),
            "workload" => format!("the runs measured different things: {values}"),
            what => format!("the runs have different {what}s: {values}"),
        }
    }
}

/// Everything that prevents a comparison of these runs.
pub(super) fn mismatches(groups: &[Group]) -> Vec<Mismatch> {
    let sides: Vec<&Side> = groups.iter().flat_map(|group| &group.sides).collect();
    let of = |what: &str, value: &dyn Fn(&Side) -> Option<(String, String)>| {
        let mut seen = BTreeSet::new();
        let mut values = Vec::new();
        for side in &sides {
            // What a file does not record cannot be checked.
            if let Some((key, text)) = value(side)
                && seen.insert(key)
            {
                values.push(format!("{} ({text})", side.label));
            }
        }
        (values.len() > 1).then(|| Mismatch { what: what.into(), values })
    };
    let time = |ns: Option<u64>| ns.map(|ns| (ns.to_string(), quantity::ns(ns)));
    [
        duplicate_run(&sides),
        of("machine", &machine).filter(|_| has_two_ids(&sides) || !is_one_boot(&sides)),
        of("workload", &|side| Some((side.kind().into(), side.kind().into()))),
        of("clock", &|side| side.facts.get("run.clock").map(|name| (name.clone(), name.clone()))),
        of("period", &|side| time(side.period_ns)),
        of("budget", &|side| time(side.budget_ns)),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn duplicate_run(sides: &[&Side]) -> Option<Mismatch> {
    let mut seen = BTreeSet::new();
    let mut values = Vec::new();
    for side in sides.iter().filter(|side| !side.id.is_empty()) {
        if !seen.insert(side.id.as_str()) {
            values.push(side.source.clone());
        }
    }
    (!values.is_empty()).then(|| Mismatch { what: "run".into(), values })
}

/// Whether all runs are of one boot, and so of one machine, whatever it is called in a container.
fn is_one_boot(sides: &[&Side]) -> bool {
    let mut boots = sides.iter().map(|side| side.boot_id.as_deref());
    let first = boots.next().flatten();
    first.is_some() && boots.all(|boot| boot == first)
}

/// Whether two are known to be of different machines. Copies of a virtual machine share a boot.
fn has_two_ids(sides: &[&Side]) -> bool {
    let id = |side: &&Side| side.machine.as_ref()?.machine_id.clone();
    sides.iter().filter_map(id).collect::<BTreeSet<String>>().len() > 1
}

/// Whether nothing names the machine: a container has a name of its own, another at each start.
fn is_nameless(side: &Side) -> bool {
    let place = side.machine.as_ref();
    place.is_some_and(|place| place.container.is_some() && place.machine_id.is_none())
}

/// The machine's own id where it has one, else what it is called and made of.
fn machine(side: &Side) -> Option<(String, String)> {
    let place = side.machine.as_ref().filter(|_| !is_nameless(side))?;
    let name = place.hostname.clone().unwrap_or_else(|| "no name".into());
    let model = place.model.clone().unwrap_or_default();
    let text = if model.is_empty() { name.clone() } else { format!("{name}, {model}") };
    if place.machine_id.is_none() && place.hostname.is_none() && model.is_empty() {
        return None;
    }
    let key = place.machine_id.clone().unwrap_or_else(|| format!("{name}\n{model}"));
    Some((key, text))
}

/// The budget that all runs with one share.
pub(super) fn budget(groups: &[Group]) -> Option<u64> {
    let mut budgets =
        groups.iter().flat_map(|group| &group.sides).filter_map(|side| side.budget_ns);
    let first = budgets.next()?;
    budgets.all(|budget_ns| budget_ns == first).then_some(first)
}

/// What is doubtful about the runs, and what their tools leave out.
pub(super) fn doubts(groups: &[Group], view: View) -> Vec<String> {
    let sides = || groups.iter().flat_map(|group| &group.sides);
    let mut doubts = of_runs(&sides().collect::<Vec<_>>());
    let (known, unknown): (Vec<&Side>, Vec<&Side>) = sides().partition(|side| side.knows_missed());
    if view == View::Wake && !unknown.is_empty() {
        let names = names(&unknown);
        let more = if known.is_empty() { "" } else { "; those of the others are left out too" };
        doubts.push(format!(
            "Wake-ups that were missed have no lateness in {names}{more}: latencies are those of \
             the wake-ups that were measured, which flatters a run that misses many."
        ));
    }
    let unplaced: Vec<&Side> = sides().filter(|side| side.machine.is_none()).collect();
    if !unplaced.is_empty() {
        let names = names(&unplaced);
        doubts.push(format!(
            "Whether the machines and their settings are the same cannot be checked: they are not \
             recorded in {names}."
        ));
    }
    let nameless: Vec<&Side> = sides().filter(|side| is_nameless(side)).collect();
    if !nameless.is_empty() && !is_one_boot(&sides().collect::<Vec<_>>()) {
        let names = names(&nameless);
        doubts.push(format!(
            "Whether the machines are the same cannot be checked: {names} ran in a container, \
             which does not show the machine's id."
        ));
    }
    let dedup: BTreeSet<&str> = sides().map(|side| side.tool.as_str()).collect();
    if dedup.len() > 1 {
        let tools: Vec<&str> = dedup.into_iter().collect();
        doubts.push(format!(
            "The runs were measured by {}: each adds a cost of its own.",
            tools.join(" and ")
        ));
    }
    doubts
}

/// Each doubt once, with the runs that have it.
fn of_runs(sides: &[&Side]) -> Vec<String> {
    let mut texts: Vec<&str> = Vec::new();
    for doubt in sides.iter().flat_map(|side| &side.doubts) {
        if !texts.contains(&doubt.as_str()) {
            texts.push(doubt);
        }
    }
    let sentence_of = |text: &str| {
        let with: Vec<&Side> = sides
            .iter()
            .copied()
            .filter(|side| side.doubts.iter().any(|doubt| doubt == text))
            .collect();
        match with.len() == sides.len() && with.len() > 2 {
            true => format!("all runs: {text}"),
            false => format!("{}: {text}", names(&with)),
        }
    };
    texts.into_iter().map(sentence_of).collect()
}

/// Names of runs, not all of many.
fn names(sides: &[&Side]) -> String {
    let shown: Vec<&str> = sides.iter().take(3).map(|side| side.label.as_str()).collect();
    match sides.len() {
        0..=3 => shown.join(", "),
        n => format!("{} and {} more", shown.join(", "), n - 3),
    }
}

// Why wake-ups were late, in each group: what came, went or stayed.

/// One cause and culprit in each group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CauseLine {
    pub cause: String,
    pub title: String,
    pub culprit: String,
    /// One for each group; null: its spikes were not explained.
    pub cells: Vec<Option<CauseCell>>,
}

/// One cause in one group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CauseCell {
    pub count: u64,
    /// Spikes per hour of measuring.
    pub per_hour: f64,
    /// Its largest share, nanoseconds.
    pub worst_ns: u64,
    /// Sum of its shares, nanoseconds.
    pub sum_ns: u64,
}

/// All causes, the largest sum in any group first.
pub(super) fn cause_lines(groups: &[Group]) -> Vec<CauseLine> {
    let mut lines: BTreeMap<(String, String), CauseLine> = BTreeMap::new();
    for (at, group) in groups.iter().enumerate() {
        let hours: f64 = group
            .sides
            .iter()
            .filter_map(|side| side.duration_ns)
            .map(|ns| ns as f64 / 3.6e12)
            .sum();
        let rows = group.sides.iter().filter_map(|side| side.spikes.as_ref());
        for row in rows.flat_map(|spikes| &spikes.causes) {
            let line = lines
                .entry((row.cause.clone(), row.culprit.clone()))
                .or_insert_with(|| empty(row, groups));
            let Some(Some(cell)) = line.cells.get_mut(at) else { continue };
            cell.count += row.count;
            cell.worst_ns = cell.worst_ns.max(row.worst_ns);
            cell.sum_ns = cell.sum_ns.saturating_add(row.sum_ns);
            cell.per_hour = if hours > 0.0 { cell.count as f64 / hours } else { 0.0 };
        }
    }
    let mut lines: Vec<CauseLine> = lines.into_values().collect();
    let largest = |line: &CauseLine| line.cells.iter().flatten().map(|cell| cell.sum_ns).max();
    lines.sort_by_key(|line| (std::cmp::Reverse(largest(line)), line.culprit.clone()));
    lines
}

fn empty(row: &crate::causes::CauseRow, groups: &[Group]) -> CauseLine {
    let explained = |group: &Group| {
        group.sides.iter().any(|side| side.spikes.is_some()).then(CauseCell::default)
    };
    CauseLine {
        cause: row.cause.clone(),
        title: row.title.clone(),
        culprit: row.culprit.clone(),
        cells: groups.iter().map(explained).collect(),
    }
}

// Facts that differ between the runs, beside the latencies that differ.

/// One fact with its value in each group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FactLine {
    /// Name, e.g. `cpus.3.freq.governor`; `run.` is what the run was asked.
    pub key: String,
    /// One for each group; null: unknown. What varies within a group is reported as such.
    pub values: Vec<Option<String>>,
    /// Whether it is the same within each group, so that it may be what makes the difference.
    pub steady: bool,
}

/// How the names of facts begin that come first.
const FIRST: [&str; 5] = ["run.", "kernel.", "cpus.", "settings.", "rt_tasks."];

/// The facts that differ: what the run was asked, then the machine. Groups of which no facts are
/// known are left open.
pub(super) fn fact_lines(groups: &[Group]) -> Vec<FactLine> {
    let same_boot = same_boot(groups);
    let keys: BTreeSet<&str> = groups
        .iter()
        .flat_map(|group| &group.sides)
        .flat_map(|side| side.facts.keys().map(String::as_str))
        // Interrupts have other numbers after a boot.
        .filter(|key| same_boot || !key.starts_with("irqs."))
        .collect();
    let mut lines: Vec<FactLine> = keys.into_iter().filter_map(|key| line(key, groups)).collect();
    lines.sort_by_key(|line| {
        let place = FIRST.iter().position(|start| line.key.starts_with(start));
        (!line.steady, place.unwrap_or(FIRST.len()), line.key.clone())
    });
    lines
}

fn same_boot(groups: &[Group]) -> bool {
    let boots: BTreeSet<Option<&str>> = groups
        .iter()
        .flat_map(|group| &group.sides)
        .filter(|side| side.has_facts)
        .map(|side| side.boot_id.as_deref())
        .collect();
    boots.len() == 1 && !boots.contains(&None)
}

fn line(key: &str, groups: &[Group]) -> Option<FactLine> {
    let found: Vec<BTreeSet<Option<&str>>> = groups
        .iter()
        .map(|group| group.sides.iter().filter_map(|side| value(side, key)).collect())
        .collect();
    let known: Vec<&BTreeSet<Option<&str>>> = found.iter().filter(|set| !set.is_empty()).collect();
    if known.windows(2).all(|pair| pair[0] == pair[1] && pair[0].len() == 1)
        && known.iter().all(|set| set.len() == 1)
    {
        return None;
    }
    let text = |set: &BTreeSet<Option<&str>>| {
        let values: Vec<&str> = set.iter().map(|value| value.unwrap_or("not there")).collect();
        match values.as_slice() {
            [] => None,
            [one] => Some((*one).to_owned()),
            many => Some(format!("varies: {}", many.join("; "))),
        }
    };
    Some(FactLine {
        key: key.into(),
        steady: found.iter().all(|set| set.len() < 2),
        values: found.iter().map(text).collect(),
    })
}

/// The value in a run; inner `None`: absent; outer `None`: unknown.
fn value<'a>(side: &'a Side, key: &str) -> Option<Option<&'a str>> {
    match side.facts.get(key) {
        Some(value) => Some(Some(value.as_str())),
        None => side.has_facts.then_some(None),
    }
}

// One run of another tool as a side of a comparison.

impl Side {
    /// A file of another tool. Only like may be compared with like: where it has several kinds of
    /// values, latency is taken, else what comes first; the others are named as a doubt.
    pub fn of_import(file: &Imported, label: &str, source: &str) -> Self {
        let kinds: Vec<SampleKind> = file.threads.iter().map(|thread| thread.kind).collect();
        let latency = kinds.iter().find(|&&kind| kind == SampleKind::Latency);
        let kind = latency.or(kinds.first()).copied().unwrap_or(SampleKind::Unknown);
        let of_kind = |thread: &&ImportedThread| thread.kind == kind;
        let threads = file.threads.iter().enumerate().filter(|(_, thread)| of_kind(thread));
        let machine = file.machine.as_ref();
        Self {
            label: label.into(),
            source: source.into(),
            id: file.digest.clone(),
            tool: match &file.tool_version {
                Some(version) => format!("{} {version}", file.tool),
                None => file.tool.clone(),
            },
            machine: machine.map(|machine| place(machine)),
            workload: workload(file, kind),
            period_ns: file.period_ns,
            budget_ns: None,
            started_ns: file
                .started_s
                .and_then(|seconds| u64::try_from(seconds).ok()?.checked_mul(1_000_000_000)),
            duration_ns: file.duration_ns,
            resolution_ns: file.resolution_ns.max(1),
            rounds_down: true,
            censored_ns: file.censored_above_ns,
            threads: threads
                .map(|(number, thread)| series(thread, file.omitted_of(number)))
                .collect(),
            rows: Vec::new(),
            over: None,
            spikes: None,
            policy: None,
            loads: None,
            facts: facts(file),
            has_facts: false,
            boot_id: None,
            doubts: import_doubts(file, kind),
        }
    }
}

/// Node name and kernel of `nodename release version machine`.
fn place(machine: &str) -> RunMachine {
    let mut words = machine.splitn(2, ' ');
    RunMachine {
        hostname: words.next().filter(|word| !word.is_empty()).map(str::to_owned),
        kernel: words.next().map(str::to_owned),
        ..RunMachine::default()
    }
}

/// Workload: the tool, if its latency is that of a timer wake-up.
fn workload(file: &Imported, kind: SampleKind) -> String {
    match kind {
        SampleKind::Latency => match file.tool.as_str() {
            "rtla" => "timerlat".into(),
            tool => tool.into(),
        },
        kind => format!("{} of {}", kind.words(), file.tool),
    }
}

fn series(thread: &ImportedThread, omitted: Option<u64>) -> SideThread {
    SideThread {
        label: thread.label.clone(),
        cpu: thread.cpu,
        wake: thread.bins.clone(),
        missed: None,
        missed_count: omitted,
        late: None,
        min_ns: thread.min_ns,
        max_ns: thread.max_ns,
        max_is_at_least: thread.max_is_at_least,
        moments: None,
        mean_ns: thread.mean(),
    }
}

fn facts(file: &Imported) -> BTreeMap<String, String> {
    let known = [
        ("run.command", file.command.clone()),
        ("run.kernel", file.machine.as_ref().and_then(|machine| place(machine).kernel)),
    ];
    known.into_iter().filter_map(|(key, value)| Some((key.into(), value?))).collect()
}

fn import_doubts(file: &Imported, kind: SampleKind) -> Vec<String> {
    let mut doubts: Vec<String> = file.doubts.iter().map(|doubt| doubt.text.clone()).collect();
    let others = file.threads.iter().filter(|thread| thread.kind != kind).count();
    if others > 0 {
        let left_out = quantity::count(others, "series");
        // The word is its own plural.
        let left_out = left_out.replace("seriess", "series");
        doubts.push(format!(
            "only its {} is compared; {left_out} of other kinds are left out",
            kind.words()
        ));
    }
    if file.threads.iter().any(|thread| thread.kind == kind && thread.bins.is_empty()) {
        doubts.push("it has extremes without a distribution, so that no quantile is known".into());
    }
    doubts
}
