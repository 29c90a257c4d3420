//! JSON: the whole record in one document with a versioned schema.
//!
//! Sums go beyond 2^53, where JavaScript and others round, so they are decimal strings; all other
//! numbers are integers well below it.

use std::io::Write;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use rtproof_host::{Facts, text};
use rtproof_model::CauseCpu;
use rtproof_stats::{Layout, Moments, Sample};

use super::{ExportError, Exporter};
use crate::import::Imported;
use crate::run::{
    Cost, HostSecond, Judgement, Meta, Note, RecordedLoad, Second, Thread, ThreadEnd, ThreadInfo,
    Totals,
};
use crate::spikes::{CauseDocument, CauseEntry};
use crate::{Effects, Opened, Options, RecordedSpikes, SealState, Surroundings, spikes};

/// Version of the document.
pub const SCHEMA: &str = "rtproof/record/1";

pub(super) const JSON: Exporter = Exporter {
    id: "json",
    title: "The whole record as one JSON document with a versioned schema.",
    extension: "json",
    tables: &[],
    write,
};

fn write(opened: &Opened, _: &str, out: &mut dyn Write) -> Result<(), ExportError> {
    let document = RecordDocument::new(opened)?;
    let mut json = serde_json::Serializer::with_formatter(&mut *out, text::Json);
    document.serialize(&mut json).map_err(std::io::Error::from)?;
    Ok(writeln!(out)?)
}

/// A record as JSON.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RecordDocument<'a> {
    schema: &'static str,
    /// Whether the record is as it was when its run ended.
    seal: &'a SealState,
    /// Identity, times, how it ended.
    meta: &'a Meta,
    options: &'a Options,
    cost: &'a Cost,
    /// The machine before the first wake-up.
    facts_start: &'a Facts,
    /// The machine after the last one; null in a torn record.
    facts_end: Option<&'a Facts>,
    threads: Vec<ThreadJson<'a>>,
    /// Host counters, one a second.
    host: &'a [HostSecond],
    loads: &'a [RecordedLoad],
    /// Notes in order of time.
    notes: &'a [Note],
    /// Spikes and their causes; null: an older record, or torn before.
    spikes: Option<SpikesJson<'a>>,
    /// What changes of the machine did to latency; null: none were tried.
    effects: Option<&'a Effects>,
    /// Changes of the threads from outside and idle states of their CPUs.
    #[serde(rename = "beside")]
    surroundings: &'a Surroundings,
    /// What another tool measured; null: rtproof measured.
    imported: Option<&'a Imported>,
    /// Findings as judged when the run ended; null: not judged.
    findings: Option<Value>,
    /// Verdict as judged when the run ended; null: not judged.
    verdict: Option<Value>,
    /// The verdict in one line; null: not judged.
    summary: Option<&'a str>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct ThreadJson<'a> {
    info: &'a ThreadInfo,
    /// How it ended; null in a torn record.
    end: Option<&'a ThreadEnd>,
    /// Exact sums of the run.
    totals: TotalsJson,
    /// Wake-up view, whole run.
    wake: HistogramJson,
    /// Lateness of missed wake-ups, whole run.
    missed: HistogramJson,
    /// The largest samples, largest first.
    top: &'a [Sample],
    seconds: Vec<SecondJson<'a>>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct SpikesJson<'a> {
    summary: &'a spikes::SpikeSummary,
    causes: Vec<CauseJson<'a>>,
    /// The first 100 000.
    list: &'a [spikes::Spike],
    /// The worst ones with the kernel events round them.
    kept: &'a [spikes::KeptSpike],
}

impl<'a> SpikesJson<'a> {
    fn new(spikes: &'a RecordedSpikes) -> Self {
        let RecordedSpikes { summary, causes, list, kept } = spikes;
        Self { summary, causes: causes.iter().map(CauseJson::new).collect(), list, kept }
    }
}

/// One cause and culprit.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Cause")]
struct CauseJson<'a> {
    /// Order of appearance: 0, 1, ...
    number: u32,
    cause: &'a str,
    /// Culprit; empty if there is none.
    culprit: &'a str,
    /// Spikes in which it has the largest share.
    top: u64,
    count: u64,
    worst_ns: u64,
    sum_ns: u64,
    /// Of that: may have been something else.
    ambiguous_ns: u64,
    /// The same for each CPU, ascending.
    cpus: &'a [CauseCpu],
    /// Title, owner, checks and remedies: the judge's JSON.
    #[serde(serialize_with = "spikes::as_text")]
    #[schemars(with = "String")]
    words_json: CauseDocument,
}

impl<'a> CauseJson<'a> {
    fn new(entry: &'a CauseEntry) -> Self {
        let row = &entry.row;
        Self {
            number: entry.number,
            cause: &row.cause,
            culprit: &row.culprit,
            top: row.top,
            count: row.count,
            worst_ns: row.worst_ns,
            sum_ns: row.sum_ns,
            ambiguous_ns: row.ambiguous_ns,
            cpus: &row.cpus,
            words_json: CauseDocument::of(row),
        }
    }
}

/// A histogram. Bucket b of k sub-bucket bits: e = max((b >> k) - 1, 0), m = b - (e << k), holds
/// m 2^e to (m + 1) 2^e - 1 ns.
#[derive(Debug, Serialize, JsonSchema)]
struct HistogramJson {
    sub_bits: u8,
    /// Pairs of bucket number and count, ascending by bucket.
    buckets: Vec<(usize, u64)>,
}

/// One second of one thread; its histograms have 5 sub-bucket bits.
#[derive(Debug, Serialize, JsonSchema)]
struct SecondJson<'a> {
    /// Due time of the first wake-up covered, after the origin.
    from_ns: u64,
    /// Due time of the first wake-up no longer covered.
    to_ns: u64,
    /// Due time of the largest sample.
    max_at_ns: u64,
    totals: TotalsJson,
    /// Wake-up view: (bucket, count), ascending.
    wake: &'a [(u16, u64)],
    /// Lateness of missed wake-ups, likewise.
    missed: &'a [(u16, u64)],
    /// Intervals from one wake-up to the next; null: the workload keeps none.
    intervals: Option<IntervalsJson>,
}

/// Intervals of a second.
#[derive(Debug, Serialize, JsonSchema)]
struct IntervalsJson {
    n: u64,
    min_ns: u64,
    max_ns: u64,
    /// A decimal number as text: it may exceed 64 bits.
    sum_ns: String,
    /// Sum of their squares, decimal.
    sum2_ns2: String,
}

#[derive(Debug, Serialize, JsonSchema)]
struct TotalsJson {
    sampled: u64,
    /// Smallest latency; null: no sample.
    min_ns: Option<u64>,
    /// Largest latency; null: no sample.
    max_ns: Option<u64>,
    /// Sum of the latencies, decimal.
    sum_ns: String,
    /// Sum of their squares, decimal.
    sum2_ns2: String,
    /// Sum of their cubes, decimal; null: did not fit.
    sum3_ns3: Option<String>,
    /// Sum of their fourth powers, decimal; null: did not fit.
    sum4_ns4: Option<String>,
    /// Wake-ups due while the thread was still late.
    missed: u64,
    /// Sum of their lateness, decimal.
    missed_sum_ns: String,
    /// Sampled wake-ups later than the budget.
    late_sampled: u64,
    /// Missed wake-ups later than the budget.
    late_missed: u64,
    /// Groups of late wake-ups.
    late_clusters: u64,
    /// Wake-ups before their time, counted as 0 ns.
    early: u64,
}

/// Findings or a verdict as a document.
fn document(value: &impl Serialize) -> Result<Value, ExportError> {
    serde_json::to_value(value).map_err(|error| ExportError::Content {
        format: "json",
        what: format!("a judgement that is not JSON ({error})"),
    })
}

impl<'a> RecordDocument<'a> {
    /// The document of a record.
    ///
    /// # Errors
    /// If findings or verdict in the record are not JSON.
    pub fn new(opened: &'a Opened) -> Result<Self, ExportError> {
        let Opened { run, state, judgement } = opened;
        let json = |judged: fn(&Judgement) -> Result<Value, ExportError>| {
            judgement.as_ref().map(judged).transpose()
        };
        Ok(Self {
            schema: SCHEMA,
            seal: state,
            meta: &run.meta,
            options: &run.options,
            cost: &run.cost,
            facts_start: &run.facts_start,
            facts_end: run.facts_end.as_ref(),
            threads: run.threads.iter().map(ThreadJson::new).collect(),
            host: &run.host,
            loads: &run.loads,
            notes: &run.notes,
            spikes: run.spikes.as_ref().map(SpikesJson::new),
            effects: run.effects.as_ref(),
            surroundings: &run.surroundings,
            imported: run.imported.as_ref(),
            findings: json(|judgement| document(&judgement.findings))?,
            verdict: json(|judgement| document(&judgement.verdict))?,
            summary: judgement.as_ref().map(|judgement| judgement.summary.as_str()),
        })
    }
}

impl<'a> ThreadJson<'a> {
    fn new(thread: &'a Thread) -> Self {
        let histogram = |h: &rtproof_stats::Histogram| HistogramJson {
            sub_bits: Layout::FINE.sub_bits(),
            buckets: h.buckets().collect(),
        };
        Self {
            info: &thread.info,
            end: thread.end.as_ref(),
            totals: TotalsJson::new(&thread.totals),
            wake: histogram(&thread.wake),
            missed: histogram(&thread.missed),
            top: &thread.top,
            seconds: thread.seconds.iter().map(SecondJson::new).collect(),
        }
    }
}

impl IntervalsJson {
    fn new(of: &Moments) -> Option<Self> {
        let (sum, sum2, _) = of.power_sums();
        Some(Self {
            n: of.count(),
            min_ns: of.min()?,
            max_ns: of.max()?,
            sum_ns: sum.to_string(),
            sum2_ns2: sum2.to_string(),
        })
    }
}

impl<'a> SecondJson<'a> {
    fn new(second: &'a Second) -> Self {
        Self {
            from_ns: second.from_ns,
            to_ns: second.to_ns,
            max_at_ns: second.max_at_ns,
            totals: TotalsJson::new(&second.totals),
            wake: &second.wake,
            missed: &second.missed,
            intervals: IntervalsJson::new(&second.intervals),
        }
    }
}

impl TotalsJson {
    fn new(totals: &Totals) -> Self {
        let (sum, sum2, higher) = totals.wake.power_sums();
        Self {
            sampled: totals.wake.count(),
            min_ns: totals.wake.min(),
            max_ns: totals.wake.max(),
            sum_ns: sum.to_string(),
            sum2_ns2: sum2.to_string(),
            sum3_ns3: higher.map(|(sum3, _)| sum3.to_string()),
            sum4_ns4: higher.map(|(_, sum4)| sum4.to_string()),
            missed: totals.missed,
            missed_sum_ns: totals.missed_sum_ns.to_string(),
            late_sampled: totals.late_sampled,
            late_missed: totals.late_missed,
            late_clusters: totals.late_clusters,
            early: totals.early,
        }
    }
}
