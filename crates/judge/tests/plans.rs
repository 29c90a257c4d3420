//! Plans of the captured machines: every open finding is somewhere in the plan, nothing
//! contradicts, and the same machine gives the same plan.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::OnceLock;

use rtproof_host::{Capture, CpuList, Facts, Root, tune::Change};
use rtproof_judge::plan::{self, Plan, PlanLevel, Selection};
use rtproof_judge::{Finding, Intent, Profile, Remedy, Status, checks, profile::WorkloadKind};

/// The captures of fixtures/machines, by name.
#[expect(clippy::disallowed_methods, reason = "the repository's own files")]
fn machines() -> Vec<(String, Facts)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/machines");
    let mut found = Vec::new();
    for entry in std::fs::read_dir(&folder).expect("fixtures/machines") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let Some(name) = name.strip_suffix(".txt").filter(|name| !name.ends_with(".check")) else {
            continue;
        };
        let text = std::fs::read(&path).expect("a capture");
        let capture = Capture::read(text.as_slice()).expect("a capture").expect("a capture");
        found.push((name.to_owned(), Facts::read(&Root::captured(capture))));
    }
    assert!(found.len() >= 12, "{}", folder.display());
    found.sort_by(|one, other| one.0.cmp(&other.0));
    found
}

/// The last CPUs of a machine are the real-time ones.
fn intent(facts: &Facts, profile: Profile) -> Intent {
    let online = facts.cpus.online.value().cloned().unwrap_or_default();
    let half = online.len().div_ceil(2);
    let rt_cpus = CpuList::new(online.iter().skip(half));
    Intent {
        housekeeping: online.difference(&rt_cpus),
        rt_cpus,
        proposed: None,
        priority: 80,
        period_ns: 1_000_000,
        budget_ns: Some(100_000),
        profile,
        skip: BTreeMap::new(),
        user: None,
    }
}

/// A machine, what it is for, and what is found.
type Case = (String, Facts, Intent, Vec<Finding>);

/// Every machine with every profile, read once for all tests.
fn cases() -> &'static [Case] {
    static CASES: OnceLock<Vec<Case>> = OnceLock::new();
    CASES.get_or_init(read_cases)
}

fn read_cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, facts) in machines() {
        for kind in WorkloadKind::ALL {
            let intent = intent(&facts, Profile::of(kind));
            let findings = checks::judge_all(&facts, &intent);
            cases.push((format!("{name}, {}", kind.name()), facts.clone(), intent, findings));
        }
    }
    cases
}

fn everything() -> Selection {
    Selection { level: PlanLevel::Max, risky: true, durable: true, ..Selection::default() }
}

fn has(plan: &Plan, check: &str) -> bool {
    let in_steps = plan.steps.iter().any(|step| step.reason.checks.iter().any(|id| id == check));
    let in_boot = plan.boot.iter().any(|word| word.reason.checks.iter().any(|id| id == check));
    let listed = plan.instructions.iter().any(|one| one.reason.checks.iter().any(|id| id == check));
    let left_out = plan.left_out.iter().any(|one| one.check == check);
    let conflict = |conflict: &plan::Conflict| conflict.requests.iter().any(|(id, _)| id == check);
    in_steps || in_boot || listed || left_out || plan.conflicts.iter().any(conflict)
}

#[test]
fn every_open_finding_is_in_the_plan_without_contradictions() {
    for (name, facts, intent, findings) in cases() {
        for wanted in [Selection::default(), everything()] {
            let plan = plan::make(facts, findings, intent, &wanted);
            assert_eq!(plan.conflicts, [], "{name}");
            for finding in findings.iter().filter(|finding| finding.is_open()) {
                assert!(has(&plan, &finding.check), "{name}: {finding:#?}");
            }
            let fine = findings.iter().filter(|finding| !finding.is_open());
            for finding in fine {
                assert!(!has(&plan, &finding.check), "{name}: {finding:#?}");
            }
        }
    }
}

#[test]
fn the_same_machine_has_the_same_plan_and_it_survives_its_json() {
    for (name, facts, intent, findings) in cases() {
        let plan = plan::make(facts, findings, intent, &everything());
        let again = plan::make(facts, findings, intent, &everything());
        assert_eq!(plan, again, "{name}");
        let json = serde_json::to_string(&plan).expect("a plan is JSON");
        assert_eq!(serde_json::from_str::<Plan>(&json).expect("JSON is a plan"), plan, "{name}");
        let mut targets: Vec<String> = plan.steps.iter().map(|step| step.change.target()).collect();
        targets.sort();
        let all = targets.len();
        targets.dedup();
        assert_eq!(targets.len(), all, "{name}: a target twice");
        // Backwards, the findings still ask for the same.
        let backwards: Vec<Finding> = findings.iter().rev().cloned().collect();
        let other = plan::make(facts, &backwards, intent, &everything());
        let changes = |plan: &Plan| -> Vec<Change> {
            let mut changes: Vec<Change> = plan.steps.iter().map(|s| s.change.clone()).collect();
            for change in &mut changes {
                if let Change::File { content, .. } = change {
                    *content = None;
                }
            }
            changes
        };
        let own = |changes: Vec<Change>| -> Vec<Change> {
            let is_idle = |path: &str| path.contains("cpuidle") || path.contains("pm_qos");
            let is_idle = |change: &Change| match change {
                Change::Value { path, .. } => is_idle(path),
                Change::File { path, .. } => path.contains("latency"),
                Change::Unit { unit, .. } => unit.contains("latency"),
                _ => false,
            };
            changes.into_iter().filter(|change| !is_idle(change)).collect()
        };
        assert_eq!(own(changes(&plan)), own(changes(&other)), "{name}");
    }
}

#[test]
fn without_other_cpus_nothing_is_set_apart() {
    for (name, facts) in machines() {
        let online = facts.cpus.online.value().cloned().unwrap_or_default();
        let intent = Intent {
            rt_cpus: online,
            housekeeping: CpuList::default(),
            ..intent(&facts, Profile::default())
        };
        let findings = checks::judge_all(&facts, &intent);
        let plan = plan::make(&facts, &findings, &intent, &everything());
        assert_eq!(plan.conflicts, [], "{name}");
        let apart = ["isolcpus", "nohz_full", "rcu_nocbs", "irqaffinity"];
        for word in &plan.boot {
            let is_apart = apart.iter().any(|key| word.parameter.starts_with(&format!("{key}=")));
            assert!(!is_apart, "{name}: {word:?}");
        }
        let moves = plan.steps.iter().find(|step| matches!(step.change, Change::Irq { .. }));
        assert_eq!(moves, None, "{name}");
    }
}

#[test]
fn a_doubtful_finding_waits_until_it_is_named() {
    let mut tried = 0;
    for (name, facts, intent, findings) in cases() {
        let plan = plan::make(facts, findings, intent, &Selection::default());
        for finding in findings.iter().filter(|finding| finding.status == Status::Doubtful) {
            let listed = plan.left_out.iter().find(|one| one.check == finding.check);
            assert!(listed.is_some_and(|one| one.why.starts_with("doubtful: ")), "{name}");
            let named = Selection { ids: vec![finding.check.clone()], ..Selection::default() };
            let plan = plan::make(facts, findings, intent, &named);
            let waits = |one: &plan::LeftOut| {
                one.check == finding.check && one.why.starts_with("doubtful: ")
            };
            assert!(!plan.left_out.iter().any(waits), "{name}: {finding:#?}");
            assert!(has(&plan, &finding.check), "{name}: {finding:#?}");
            tried += 1;
        }
    }
    assert!(tried > 100, "{tried}");
}

/// Commands that stay for a human, each with the reason.
const FOR_HUMANS: &[(&str, &str)] = &[
    ("ethtool ", "a network card's own settings are no files, and a link goes down for some"),
    ("iw ", "as with ethtool"),
    ("swapoff ", "needs free memory for what is swapped out, and may take minutes"),
    ("mount ", "what is to be mounted there, and for whom, is the user's"),
    ("groupadd ", "a group that may have other rights than real-time ones"),
    ("systemctl set-default ", "which login there is, is the user's"),
    ("systemctl daemon-reload ", "the application is restarted when the user says so"),
    ("rtproof ", "measures, changes nothing"),
];

#[test]
fn what_a_program_can_do_is_no_command() {
    for (name, _, _, findings) in cases() {
        for finding in findings {
            for remedy in &finding.remedies {
                let Remedy::Command { command } = remedy else { continue };
                let known = FOR_HUMANS.iter().any(|(start, _)| command.starts_with(start));
                assert!(known, "{name}: {}: {command}", finding.check);
            }
        }
    }
}
