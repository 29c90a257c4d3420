//! Fuzz targets: bytes from anywhere as the files of a machine. Each goes the whole way, from the
//! file through the facts to the findings, and must not panic; what it says must be sound.
//!
//! `cargo xtask fuzz` builds them with the compiler's own coverage and runs each for a minute. A
//! finding is a file in `target/fuzz/NAME`: give it to the target again as its argument.

pub mod import;
pub mod trace;

use rtproof_host::{Capture, Facts, Root};
use rtproof_judge::{Finding, Intent, Profile, Status, checks};

/// What every machine here has besides: enough that the checks look at the file in question.
const BESIDES: &[(&str, &str)] = &[
    ("/proc/cmdline", "quiet isolcpus=managed_irq,domain,2-3 nohz_full=2-3 irqaffinity=0-1\n"),
    ("/proc/sys/kernel/osrelease", "6.12.95-rt-amd64\n"),
    ("/sys/devices/system/cpu/online", "0-3\n"),
    ("/sys/devices/system/cpu/possible", "0-3\n"),
    ("/sys/devices/system/cpu/isolated", "2-3\n"),
    ("/sys/devices/system/cpu/nohz_full", "2-3\n"),
    ("/sys/kernel/realtime", "1\n"),
];

/// A machine with these files, judged. Nothing may be good or bad without having been read.
///
/// # Panics
/// As [`judge_capture`].
pub fn judge(files: &[(&str, &[u8])]) -> Vec<Finding> {
    let besides = BESIDES.iter().map(|(path, text)| (*path, text.as_bytes()));
    let capture = Capture::of_files(besides.chain(files.iter().copied()));
    judge_capture(capture)
}

/// A captured machine, judged.
///
/// # Panics
/// When a finding is unsound: that is what the targets look for.
pub fn judge_capture(capture: Capture) -> Vec<Finding> {
    let facts = Facts::read(&Root::captured(capture));
    let (rt_cpus, proposed) = Intent::default_rt_cpus(&facts);
    let online = facts.cpus.online.value().cloned().unwrap_or_default();
    let intent = Intent {
        housekeeping: online.difference(&rt_cpus),
        rt_cpus,
        proposed,
        priority: 80,
        period_ns: 1_000_000,
        budget_ns: Some(100_000),
        profile: Profile::default(),
        skip: std::collections::BTreeMap::new(),
        user: None,
    };
    let findings = checks::judge_all(&facts, &intent);
    for finding in &findings {
        assert!(!finding.summary.is_empty() && !finding.evidence.is_empty(), "{finding:?}");
        let is_settled = matches!(finding.status, Status::Good | Status::NotApplicable);
        assert!(!is_settled || finding.remedies.is_empty(), "{finding:?}");
    }
    // Records keep facts as rows; two machines are compared by them.
    assert!(facts.rows().windows(2).all(|pair| pair[0].key <= pair[1].key));
    findings
}
