//! One run of another tool as it stands in a comparison.

use std::collections::BTreeMap;

use rtproof_record::import::{Imported, ImportedThread, Kind};

use super::side::{Place, Side, SideThread};
use crate::quantity;

impl Side {
    /// A file of another tool. Only like may be compared with like: where it has several kinds of
    /// values, latency is taken, else what comes first; the others are named as a doubt.
    pub fn of_import(file: &Imported, label: &str, source: &str) -> Self {
        let kinds: Vec<Kind> = file.threads.iter().map(|thread| thread.kind).collect();
        let latency = kinds.iter().find(|&&kind| kind == Kind::Latency);
        let kind = latency.or(kinds.first()).copied().unwrap_or(Kind::Unknown);
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
            doubts: doubts(file, kind),
        }
    }
}

/// Node name and kernel of `nodename release version machine`.
fn place(machine: &str) -> Place {
    let mut words = machine.splitn(2, ' ');
    Place {
        hostname: words.next().filter(|word| !word.is_empty()).map(str::to_owned),
        kernel: words.next().map(str::to_owned),
        ..Place::default()
    }
}

/// What was measured: the tool, where its latency is what a timer wake-up is.
fn workload(file: &Imported, kind: Kind) -> String {
    match kind {
        Kind::Latency => match file.tool.as_str() {
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

fn doubts(file: &Imported, kind: Kind) -> Vec<String> {
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
