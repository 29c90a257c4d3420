//! What was imported as data: what text and `--json` show of it.

use std::path::PathBuf;

use rtproof_record::import::{Doubt, Imported, ImportedThread, Kind, Omitted, ToolValue};
use rtproof_stats::quantile::Q;
use schemars::JsonSchema;
use serde::Serialize;

/// Version of the JSON form. Fields may be added under one version; none changes or goes.
pub const SCHEMA: &str = "rtproof/import/1";

/// Quantiles shown: name and parts per million.
pub const QUANTILES: [(&str, u32); 7] = [
    ("p5", 50_000),
    ("p50", 500_000),
    ("p95", 950_000),
    ("p99", 990_000),
    ("p99.9", 999_000),
    ("p99.99", 999_900),
    ("p99.999", 999_990),
];

#[derive(Debug, Serialize, JsonSchema)]
pub struct Document {
    schema: &'static str,
    /// Record that was written; null: none was asked for.
    record: Option<PathBuf>,
    tool: String,
    /// Its version; null: the file does not say.
    tool_version: Option<String>,
    /// Format of the file.
    format: String,
    /// Name of the file.
    source: String,
    /// SHA-256 of the file.
    digest: String,
    /// Command line that made it; null: unknown.
    command: Option<String>,
    /// Host and kernel as the file says them; null: it does not.
    machine: Option<String>,
    /// Start, seconds since 1970; null: unknown.
    started_s: Option<i64>,
    /// Step of the tool's values.
    resolution_ns: u64,
    /// Values from here on have no value of their own; null: all have.
    censored_above_ns: Option<u64>,
    /// Period of the first thread; null: unknown.
    period_ns: Option<u64>,
    /// How long it measured; null: unknown.
    duration_ns: Option<u64>,
    /// Wake-ups that the tool skipped; null: none can be counted.
    omitted: Option<Omitted>,
    doubts: Vec<Doubt>,
    /// What else the tool said.
    remarks: Vec<String>,
    /// Series, in the order of the file.
    series: Vec<Series>,
}

/// One series of samples.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Series {
    pub label: String,
    /// CPU; null: the file does not say.
    pub cpu: Option<u32>,
    /// What a sample is.
    pub kind: Kind,
    pub n: u64,
    /// Smallest; null: the tool does not say.
    pub min_ns: Option<u64>,
    /// Mean: of the values where each sample has one, else as the tool says it; null: unknown.
    pub mean_ns: Option<f64>,
    /// Largest; null: there is none.
    pub max: Option<ToolValue>,
    /// Quantiles that there are samples for.
    pub quantiles: Vec<QuantileOf>,
    /// Samples without value, at the far end.
    pub overflow: u64,
    /// Samples that were due; null: unknown.
    pub expected: Option<u64>,
    /// Wake-ups that the tool skipped; null: unknown.
    pub omitted: Option<u64>,
}

#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct QuantileOf {
    /// Name, e.g. p99.9.
    pub name: &'static str,
    /// Which one, parts per million.
    pub ppm: u32,
    /// Its value, in the tool's own steps.
    pub value: ToolValue,
}

impl Document {
    /// What is known of a file.
    pub fn of(imported: &Imported, record: Option<PathBuf>) -> Self {
        Self {
            schema: SCHEMA,
            record,
            tool: imported.tool.clone(),
            tool_version: imported.tool_version.clone(),
            format: imported.dialect.clone(),
            source: imported.source.clone(),
            digest: imported.digest.clone(),
            command: imported.command.clone(),
            machine: imported.machine.clone(),
            started_s: imported.started_s,
            resolution_ns: imported.resolution_ns,
            censored_above_ns: imported.censored_above_ns,
            period_ns: imported.period_ns,
            duration_ns: imported.duration_ns,
            omitted: imported.omitted.clone(),
            doubts: imported.doubts.clone(),
            remarks: imported.remarks.clone(),
            series: series(imported),
        }
    }
}

/// All series of a file.
pub fn series(imported: &Imported) -> Vec<Series> {
    let of = |(i, thread): (usize, &ImportedThread)| Series {
        label: thread.label.clone(),
        cpu: thread.cpu,
        kind: thread.kind,
        n: thread.n,
        min_ns: thread.min_ns,
        mean_ns: thread.mean(),
        max: thread.largest(),
        quantiles: quantiles(thread, imported.resolution_ns),
        overflow: thread.overflow,
        expected: thread.expected,
        omitted: imported.omitted_of(i),
    };
    imported.threads.iter().enumerate().map(of).collect()
}

fn quantiles(thread: &ImportedThread, step_ns: u64) -> Vec<QuantileOf> {
    let of = |&(name, ppm): &(&'static str, u32)| {
        // A quantile needs as many samples as it has parts, or it is but the largest or smallest.
        let enough = Q { above: u64::from(1_000_000 - ppm), of: 1_000_000 }.is_carried_by(thread.n);
        let value = thread.quantile(f64::from(ppm) / 1e6, step_ns).filter(|_| enough)?;
        Some(QuantileOf { name, ppm, value })
    };
    QUANTILES.iter().filter_map(of).collect()
}
