//! Boots two kernels in turns in the same made-up machine, where time is a count of instructions,
//! and compares what `prove` found inside.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use rtproof_guest::INSTRUCTION_NS;
use rtproof_judge::{Report, causes::CauseRow};
use rtproof_model::{Status, finding::Finding};
use rtproof_record::run::RunEnd;
use rtproof_results::{
    kernel::{
        Booted, COMPARE_SCHEMA, CheckPair, GuestStep, KernelSide, KernelsCompared, OptionPair,
        Stretches, WakeUpPath,
    },
    record_state,
};
use rtproof_stats::quantile::Q;

use crate::boot::{BootRequest, image};
use crate::{KernelError, boot};

/// Names of the two folders.
const SIDES: [&str; 2] = ["a", "b"];

/// Boots both and compares them. The requests differ in kernel and configuration alone.
///
/// # Errors
/// One cannot be booted, or nothing was measured in it.
pub fn compare(
    requests: &[BootRequest; 2],
    folder: &Path,
    interrupted: &dyn Fn() -> bool,
) -> Result<KernelsCompared, KernelError> {
    // Before the first is booted: what is wrong with the second.
    let locate = |of: &BootRequest| image::locate(&of.kernel, of.config.as_deref());
    let located = [locate(&requests[0])?, locate(&requests[1])?];
    let [first, second] = located.each_ref().map(|of| of.image.arch);
    if first != second {
        let why = format!("is for {second}, and the first kernel for {first}: no guest fits both");
        return Err(KernelError::path(&requests[1].kernel, why));
    }
    fs::create_dir(folder).map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => {
            KernelError::path(folder, "is there already; name a new folder, or remove it")
        }
        _ => KernelError::io(folder)(error),
    })?;
    let side = |at: usize| -> Result<_, KernelError> {
        let request = BootRequest { folder: Some(folder.join(SIDES[at])), ..requests[at].clone() };
        let booted = boot::boot(&request, interrupted)?;
        Ok((measured(BootedKernel::of(&booted), &booted.steps)?, booted))
    };
    let ((first, booted), (second, other)) = (side(0)?, side(1)?);
    let options = match located.each_ref().map(|of| of.config.as_ref()) {
        [Some(first), Some(second)] => Some(options(&first.text, &second.text)),
        _ => None,
    };
    let mut notes = booted.notes.clone();
    notes.extend(other.notes.into_iter().filter(|note| !booted.notes.contains(note)));
    let step = booted.steps.iter().find(|step| step.name == "prove");
    Ok(KernelsCompared {
        schema: COMPARE_SCHEMA,
        guest: booted.guest,
        prove: step.iter().flat_map(|step| &step.command).skip(4).cloned().collect(),
        instruction_ns: INSTRUCTION_NS,
        checks: checks(&first.findings, &second.findings),
        kernels: [first.side(INSTRUCTION_NS), second.side(INSTRUCTION_NS)],
        options,
        notes,
    })
}

/// A kernel that was booted.
pub struct BootedKernel {
    pub image: String,
    /// Release, as it reports it.
    pub release: String,
    /// Where its configuration is from.
    pub config: Option<String>,
    /// Folder of the record and the logs.
    pub folder: String,
}

impl BootedKernel {
    /// The one of a guest.
    pub fn of(booted: &Booted) -> Self {
        Self {
            image: booted.image.clone(),
            release: booted.release.clone(),
            config: booted.config.clone(),
            folder: booted.folder.clone(),
        }
    }
}

/// A kernel, and what the record of `prove` in it says.
pub struct ComparedKernel {
    kernel: BootedKernel,
    exit: Option<i32>,
    report: Report,
    pub findings: Vec<Finding>,
}

/// Reads what `prove` left in the folder of a kernel.
pub fn measured(kernel: BootedKernel, steps: &[GuestStep]) -> Result<ComparedKernel, KernelError> {
    let record = PathBuf::from(&kernel.folder).join("prove.rtproof");
    let step = steps.iter().find(|step| step.name == "prove");
    let step = step.ok_or_else(|| KernelError::path(&kernel.folder, "prove did not run"))?;
    let failed = |why: String| {
        let said = step.errors.lines().last().unwrap_or_default();
        KernelError::path(&record, format!("nothing was measured: {why}; {said}"))
    };
    let opened = record_state::open_whole(&record).map_err(|error| failed(format!("{error:#}")))?;
    let findings = opened.judgement.as_ref().map(|of| of.findings.clone()).unwrap_or_default();
    let report = Report::new(&opened.run, &record_state::integrity(&opened.state));
    if report.cpus.is_empty() {
        return Err(failed("its record has no CPU".to_owned()));
    }
    // It is unknown whether the rest would have been late.
    match &opened.run.meta.ended {
        Some(RunEnd::Complete) => {}
        Some(RunEnd::Interrupted { signal }) => {
            return Err(failed(format!("prove was cut short, {signal} came")));
        }
        Some(RunEnd::Aborted { why }) => return Err(failed(format!("prove was cut short, {why}"))),
        None => return Err(failed("the record is torn".to_owned())),
    }
    Ok(ComparedKernel { kernel, exit: step.exit, report, findings })
}

impl ComparedKernel {
    /// Everything as a count of instructions, each this long.
    pub fn side(self, instruction_ns: u64) -> KernelSide {
        let Self { kernel, exit, report, .. } = self;
        let instructions = |ns: u64| ns / instruction_ns;
        let measured = &report.all;
        let quantile = |q: Q| measured.wake_ns(q).map(instructions);
        let [_, p50, _, p99, p999] = Q::TABLE.map(quantile);
        let spikes = report.spikes.as_ref();
        KernelSide {
            image: kernel.image,
            release: kernel.release,
            config: kernel.config,
            folder: kernel.folder,
            exit,
            scheduled: measured.scheduled,
            missed: measured.missed,
            latency: WakeUpPath {
                min: measured.min_ns.map(instructions),
                p50,
                p99,
                p999,
                max: measured.max_ns.map(instructions),
            },
            threshold: spikes.map(|of| instructions(of.threshold_ns)),
            spikes: spikes.map_or([0; 3], |of| [of.seen, of.explained, of.incomplete]),
            causes: spikes.map_or_else(Vec::new, |of| causes(&of.causes, instruction_ns)),
        }
    }
}

/// Each cause once, whoever it was.
fn causes(rows: &[CauseRow], instruction_ns: u64) -> Vec<Stretches> {
    let instructions = |ns: u64| ns / instruction_ns;
    let mut all: BTreeMap<&str, Stretches> = BTreeMap::new();
    for row in rows {
        let of = all.entry(&row.cause).or_insert_with(|| Stretches {
            cause: row.cause.clone(),
            title: row.title.clone(),
            count: 0,
            longest: 0,
            sum: 0,
            uncertain: 0,
        });
        of.count += row.count;
        of.longest = of.longest.max(instructions(row.worst_ns));
        of.sum += instructions(row.sum_ns);
        of.uncertain += instructions(row.ambiguous_ns);
    }
    let mut all: Vec<Stretches> = all.into_values().collect();
    all.sort_by_key(|of| std::cmp::Reverse(of.sum));
    all
}

/// Those that are not answered alike; by their id.
fn checks(first: &[Finding], second: &[Finding]) -> Vec<CheckPair> {
    let by_id = |of: &[Finding]| -> BTreeMap<String, (Status, String)> {
        of.iter().map(|it| (it.check.clone(), (it.status, it.summary.clone()))).collect()
    };
    let (first, second) = (by_id(first), by_id(second));
    let mut ids: Vec<&String> = first.keys().chain(second.keys()).collect();
    ids.sort();
    ids.dedup();
    let pair = |id: &String| {
        let (a, b) = (first.get(id), second.get(id));
        let differs = a.map(|of| &of.0) != b.map(|of| &of.0);
        differs.then(|| CheckPair {
            check: id.clone(),
            status: [a.map(|of| of.0), b.map(|of| of.0)],
            summary: [a.map(|of| of.1.clone()), b.map(|of| of.1.clone())],
        })
    };
    ids.into_iter().filter_map(pair).collect()
}

/// Options that are set.
pub fn parsed(text: &str) -> BTreeMap<String, String> {
    let pair = |line: &str| {
        let (name, value) = line.strip_prefix("CONFIG_")?.split_once('=')?;
        Some((name.to_owned(), value.trim_end().to_owned()))
    };
    text.lines().filter_map(pair).collect()
}

/// Options that differ, by name.
pub fn options(first: &str, second: &str) -> Vec<OptionPair> {
    let (first, second) = (parsed(first), parsed(second));
    let mut names: Vec<&String> = first.keys().chain(second.keys()).collect();
    names.sort();
    names.dedup();
    let value = |of: &BTreeMap<String, String>, name: &String| {
        of.get(name).cloned().unwrap_or_else(|| "n".to_owned())
    };
    names
        .into_iter()
        .map(|name| OptionPair {
            name: name.clone(),
            values: [value(&first, name), value(&second, name)],
        })
        .filter(|pair| pair.values[0] != pair.values[1])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_are_set_in_one_alone_differ() {
        let first = "CONFIG_HZ=250\nCONFIG_PREEMPT=y\n# CONFIG_SMP is not set\nCONFIG_A=\"x=y\"\n";
        let second = "# CONFIG_PREEMPT is not set\nCONFIG_HZ=250\nCONFIG_SMP=y\nCONFIG_A=\"x\"\n";
        let found = options(first, second);
        let shown: Vec<String> = found
            .iter()
            .map(|pair| format!("{} {} {}", pair.name, pair.values[0], pair.values[1]))
            .collect();
        assert_eq!(shown, ["A \"x=y\" \"x\"", "PREEMPT y n", "SMP n y"]);
        assert!(options(first, first).is_empty());
    }
}
