//! A record of what was imported. What a record of ours says and the file does not stays unknown:
//! facts of the machine, options, cost.

use std::{collections::BTreeMap, path::Path};

use rtproof_host::{Capture, CpuList, Facts, Root, facts::tasks::Policy};

use super::Imported;
use crate::{
    Class, Finished, Head, Options, Requirement, Snapshot, Start, Tail, WriteError, Writer,
    run::{Cost, Meta, RunEnd},
};

/// Writes a record of `imported`, ready to be judged and sealed. `tool_version`, `command`: of
/// rtproof itself.
///
/// # Errors
/// As [`Writer::create`].
pub fn store(
    path: &Path,
    imported: &Imported,
    tool_version: &str,
    command: &[String],
) -> Result<Finished, WriteError> {
    let head = head(imported, tool_version, command);
    let mut writer = Writer::create(path, &head)?;
    writer.import(imported)?;
    let (threads, ended) = (Vec::new(), RunEnd::Complete);
    writer.finish(&Tail { ended, facts: None, threads, options: None })
}

fn head(imported: &Imported, tool_version: &str, command: &[String]) -> Head {
    let started_s = u64::try_from(imported.started_s.unwrap_or(0)).unwrap_or(0);
    let cpus: Vec<u32> = imported.threads.iter().filter_map(|thread| thread.cpu).collect();
    Head {
        meta: Meta {
            // The same file has the same identity, whoever imports it.
            run_id: imported.digest.chars().take(32).collect(),
            tool_version: tool_version.into(),
            command: command.to_vec(),
            started_realtime_ns: started_s.saturating_mul(1_000_000_000).min(i64::MAX as u64),
            started_monotonic_ns: 0,
            ended: None,
        },
        options: options(imported, CpuList::new(cpus)),
        facts: Snapshot {
            facts: Facts::read(&Root::captured(Capture::of_files([]))),
            rows: Vec::new(),
            condition_id: None,
        },
        cost: Cost {
            clock_read_ps: 0,
            clock_step_ns: 0,
            clock_getres_ns: 0,
            record_ps: 0,
            floor_ns: 0,
        },
    }
}

/// The options of another tool are unknown: zeros, and no requirement.
fn options(imported: &Imported, cpus: CpuList) -> Options {
    let none = || CpuList::new([]);
    Options {
        cpus,
        housekeeping: none(),
        load_cpus: none(),
        policy: Policy::Other,
        priority: 0,
        period_ns: imported.period_ns.unwrap_or(0),
        duration_ns: imported.duration_ns.unwrap_or(0),
        start: Start::Aligned,
        clock: rtproof_model::run::Clock::Monotonic,
        dma_latency_us: None,
        phases: Vec::new(),
        requirement: Requirement {
            budget_ns: None,
            class: Class::Soft,
            confidence_ppm: 950_000,
            rate_per_1000h: 0,
        },
        profile: String::new(),
        skipped: BTreeMap::new(),
        spike_ns: None,
        trace: false,
    }
}
