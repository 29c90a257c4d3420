//! Whether runs are alike enough to be compared: same machine, same work, same period and budget.
//! Also how far the quantiles of one run vary, the causes and facts of each group, and a run of
//! another tool as a side.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use rtproof_record::import::{Imported, ImportedThread, SampleKind};
use rtproof_stats::{Layout, quantile::Q};

use super::side::{Group, RunMachine, Side, SideRow, SideThread, View};
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

// How far the quantiles of a single run may lie from what a like run would have had: stationary
// bootstrap of its rows (Politis and Romano 1994), blocks of some seconds drawn with replacement.
//
// Moving blocks help against dependence and cannot undo drift: the interval is shown, and decides
// nothing.

const DRAWS: usize = 400;

/// Rows drawn from, at most: longer runs are folded, neighbours together.
const ROWS_MAX: usize = 400;

/// Fewer rows than this do not represent the others.
const ROWS_MIN: usize = 10;

const BLOCK_NS: u64 = 2_000_000_000;

const SEED: u64 = 0x7274_7072_6f6f_6631;

/// Logarithms of the quantiles of each draw; a draw that does not carry one has no number there.
pub(super) struct Draws {
    draws: Vec<Vec<f64>>,
    /// Length of the blocks, nanoseconds.
    pub(super) block_ns: u64,
}

impl Draws {
    /// Of a run; `None` where it has too few rows.
    pub(super) fn of(side: &Side, view: View, quantiles: &[Q], salt: u64) -> Option<Self> {
        let (rows, row_ns, buckets) = folded(&side.rows, view)?;
        let dependence = correlation_rows(&rows, &buckets);
        let block_rows = (BLOCK_NS as f64 / row_ns as f64).max(4.0 * dependence);
        let block_rows = block_rows.clamp(1.0, rows.len() as f64 / 4.0);
        let mut random = Random(SEED ^ salt);
        let mut draw = || {
            let mut sums = vec![0_u64; buckets.len()];
            let mut at = 0;
            for i in 0..rows.len() {
                at = if i == 0 || random.unit() < 1.0 / block_rows {
                    random.below(rows.len())
                } else {
                    (at + 1) % rows.len()
                };
                sums.iter_mut().zip(&rows[at]).for_each(|(sum, n)| *sum += n);
            }
            quantiles.iter().map(|&q| log_quantile(&sums, &buckets, q)).collect()
        };
        let draws = (0..DRAWS).map(|_| draw()).collect();
        Some(Self { draws, block_ns: (block_rows * row_ns as f64) as u64 })
    }

    /// Interval of the ratio of quantile `at` of the other to this one.
    pub(super) fn ratio(&self, other: &Self, at: usize, confidence: f64) -> Option<(f64, f64)> {
        let mut logs: Vec<f64> =
            self.draws.iter().zip(&other.draws).map(|(a, b)| b[at] - a[at]).collect();
        if logs.iter().any(|log| !log.is_finite()) {
            return None;
        }
        logs.sort_by(f64::total_cmp);
        let tail = (1.0 - confidence) / 2.0;
        let rank = |p: f64| ((p * logs.len() as f64) as usize).min(logs.len() - 1);
        Some((logs[rank(tail)].exp(), logs[rank(1.0 - tail)].exp()))
    }
}

/// Rows of counts over the buckets that occur, the length of a row, and the buckets.
type Folded = (Vec<Vec<u64>>, u64, Vec<usize>);

fn folded(rows: &[SideRow], view: View) -> Option<Folded> {
    if rows.len() < ROWS_MIN {
        return None;
    }
    let cells = |row: &SideRow| -> Vec<(u16, u64)> {
        let missed = if view == View::Deadline { row.missed.as_slice() } else { &[] };
        row.wake.iter().chain(missed).copied().collect()
    };
    let mut buckets: Vec<usize> =
        rows.iter().flat_map(cells).map(|(bucket, _)| usize::from(bucket)).collect();
    buckets.sort_unstable();
    buckets.dedup();
    let each = rows.len().div_ceil(ROWS_MAX);
    let fold = |some: &[SideRow]| {
        let mut counts = vec![0; buckets.len()];
        for (bucket, n) in some.iter().flat_map(cells) {
            if let Ok(at) = buckets.binary_search(&usize::from(bucket)) {
                counts[at] += n;
            }
        }
        counts
    };
    let folded = rows.chunks(each).map(fold).collect();
    let (first, last) = (rows.first()?.from_ns, rows.last()?.from_ns);
    let row_ns = last.saturating_sub(first) / (rows.len() as u64 - 1).max(1);
    Some((folded, (row_ns * each as u64).max(1), buckets))
}

/// Rows over which the share of late wake-ups depends on itself: 1 + 2 sum of its correlations, up
/// to the first that is not above zero.
fn correlation_rows(rows: &[Vec<u64>], buckets: &[usize]) -> f64 {
    let total: u64 = rows.iter().flatten().sum();
    let mut above = total / 100;
    let mut from = buckets.len();
    while from > 0 {
        let n: u64 = rows.iter().map(|row| row[from - 1]).sum();
        if n > above {
            break;
        }
        (above, from) = (above - n, from - 1);
    }
    let shares: Vec<f64> = rows
        .iter()
        .map(|row| row[from..].iter().sum::<u64>() as f64 / row.iter().sum::<u64>().max(1) as f64)
        .collect();
    let mean = shares.iter().sum::<f64>() / shares.len() as f64;
    let variance: f64 = shares.iter().map(|share| (share - mean).powi(2)).sum();
    if variance <= 0.0 {
        return 1.0;
    }
    let correlation = |lag: usize| {
        shares.iter().zip(&shares[lag..]).map(|(a, b)| (a - mean) * (b - mean)).sum::<f64>()
            / variance
    };
    let lags = 1..shares.len() / 4;
    1.0 + 2.0 * lags.map(correlation).take_while(|&rho| rho > 0.0).sum::<f64>()
}

/// Logarithm of a quantile, spread evenly within its bucket; no number where there are too few.
fn log_quantile(counts: &[u64], buckets: &[usize], q: Q) -> f64 {
    let n: u64 = counts.iter().sum();
    if u128::from(n) * u128::from(q.above) < u128::from(q.of) {
        return f64::NAN;
    }
    let rank = q.rank(n);
    let mut seen = 0;
    for (&count, &bucket) in counts.iter().zip(buckets) {
        if seen + count >= rank {
            let (low, high) = (Layout::COARSE.lower(bucket), Layout::COARSE.upper(bucket) + 1);
            let part = (rank - seen) as f64 / count as f64;
            return (low as f64 + part * (high - low) as f64).ln();
        }
        seen += count;
    }
    f64::NAN
}

/// SplitMix64 (Steele, Lea and Flood 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.next()) * n as u128) >> 64) as usize
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
