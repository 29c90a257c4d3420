//! Two real servers of 80 and 32 CPUs, captured by others and read in place: what `check` has to
//! see there, in one line each, and what it must not claim of what was not collected.

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
    process::Command,
};

use crate::support::{folder, run, stderr};
use serde_json::Value;
use tempfile::TempDir;

/// The archive of a server, where the captures are on this machine.
fn archive(name: &str) -> Option<PathBuf> {
    let data = match std::env::var_os("RTPROOF_CAPTURES") {
        Some(folder) => PathBuf::from(folder),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
    };
    let path = data.join("captures/openshift-nodes").join(name);
    if path.exists() {
        return Some(path);
    }
    let _ = writeln!(io::stderr(), "ignored: no {}; set RTPROOF_CAPTURES", path.display());
    None
}

/// An unpacked server and its findings.
fn audit(name: &str, more: &[&str]) -> Option<(TempDir, Vec<Value>)> {
    let archive = archive(name)?;
    let at = folder();
    let status = Command::new("tar").arg("-xzf").arg(archive).arg("-C").arg(at.path()).status();
    assert!(status.expect("tar runs").success());
    let root = at.path().to_str().expect("UTF-8");
    let args = [&["check", "--json", "--root", root], more].concat();
    let output = run(at.path(), &args);
    let audit: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", stderr(&output)));
    let findings = audit["findings"].as_array().expect("findings").clone();
    Some((at, findings))
}

fn of<'a>(findings: &'a [Value], id: &str) -> &'a Value {
    let is_it = |finding: &&Value| finding["check"] == id;
    findings.iter().find(is_it).unwrap_or_else(|| panic!("no finding {id}"))
}

/// Everything that a finding says.
fn says(finding: &Value, words: &[&str]) {
    let text = finding.to_string();
    for word in words {
        assert!(text.contains(word), "\"{word}\" is not in {finding:#}");
    }
}

#[test]
fn a_real_time_server_of_80_cpus() {
    let Some((_at, findings)) = audit("worker1-rt-80cpu.tgz", &[]) else { return };
    // isolcpus=managed_irq,... without `domain`: nothing is isolated from the scheduler.
    let isolcpus = of(&findings, "isolcpus");
    // What is isolated in force was not collected.
    assert_eq!(isolcpus["status"], "doubtful", "{isolcpus:#}");
    says(isolcpus, &["managed_irq", "domain"]);
    // 513 of 554 interrupts in one finding, with the worst offenders by name.
    let irqs = of(&findings, "irq-affinity");
    assert_eq!(irqs["status"], "bad", "{irqs:#}");
    says(irqs, &["513"]);
    // Siblings of CPU N are N and N+40; both threads have the same role.
    let siblings = of(&findings, "smt-sibling-isolation");
    assert_eq!(siblings["status"], "doubtful", "{siblings:#}");
    says(siblings, &["45 with 5", "2 more"]);
    let smt = of(&findings, "smt");
    assert_ne!(smt["status"], "good", "{smt:#}");
    // tsc=reliable and skew_tick=1 are given twice.
    says(of(&findings, "cmdline-duplicates"), &["tsc=reliable", "skew_tick=1"]);
    // Housekeeping is 5-10, not CPU 0: that is a choice, and nothing to complain of twice.
    assert_ne!(of(&findings, "hk-sufficient")["status"], "bad");
    // idle=poll of an x86 was collected; what was not is unknown.
    assert_eq!(of(&findings, "cpuidle-states")["status"], "good");
    for id in ["cpufreq-governor", "rt-throttling", "clocksource", "swappiness"] {
        assert_eq!(of(&findings, id)["status"], "unknown", "{:#}", of(&findings, id));
    }
}

#[test]
fn a_stock_server_of_32_cpus() {
    let Some((_at, findings)) = audit("worker2-stock-32cpu.tgz", &["--cpus", "4-31"]) else {
        return;
    };
    assert_ne!(of(&findings, "preempt-rt")["status"], "good");
    assert_ne!(of(&findings, "isolcpus")["status"], "good");
    for id in ["cpuidle-states", "cpufreq-governor", "rt-throttling", "clocksource", "swappiness"] {
        assert_eq!(of(&findings, id)["status"], "unknown", "{:#}", of(&findings, id));
    }
}
