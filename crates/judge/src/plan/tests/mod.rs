//! Plans: what each finding becomes, and what several of them become together.

mod together;
mod whole_lists;

use rtproof_host::{
    Facts,
    tune::{Change, UnitState},
};

use super::{Plan, PlanLevel, STANDARD, Selection, make};
use crate::checks::testing::{good, good_stock, intent};
use crate::{Intent, Remedy, Status, checks};

/// The plan for what these checks say.
fn plan_for(facts: &Facts, intent: &Intent, ids: &[&str]) -> Plan {
    let wanted = Selection {
        ids: ids.iter().map(|&id| id.to_owned()).collect(),
        durable: true,
        ..Selection::default()
    };
    make(facts, &checks::judge_all(facts, intent), intent, &wanted)
}

/// A plan line by line, in words that are short enough for a table.
fn shown(plan: &Plan) -> Vec<String> {
    let steps = plan.steps.iter().map(|step| change(&step.change));
    let words = plan.boot.iter().map(|word| {
        let removes = word.removes && !word.parameter.contains('=');
        format!("{} {}", if removes { "boot without" } else { "boot" }, word.parameter)
    });
    let instructions = plan.instructions.iter().map(|one| format!("human: {}", one.text));
    let left = plan.left_out.iter().map(|one| format!("not {}: {}", one.check, one.why));
    let conflicts = plan.conflicts.iter().map(|one| format!("conflict {}", one.target));
    steps.chain(words).chain(instructions).chain(left).chain(conflicts).collect()
}

fn change(change: &Change) -> String {
    match change {
        Change::Value { path, value, .. } => format!("{path} = {value}"),
        Change::Irq { irq, cpus } => format!("irq {} {} = {cpus}", irq.number, irq.actions),
        Change::Task { task, set } => {
            let cpus = set.cpus.as_ref().map(|cpus| format!(" cpus {cpus}")).unwrap_or_default();
            let policy = set.policy.as_deref().map(|name| format!(" {name}")).unwrap_or_default();
            let priority = set.priority.map(|number| format!(" {number}")).unwrap_or_default();
            format!("task {} {}:{policy}{priority}{cpus}", task.tid, task.comm)
        }
        Change::Hotplug { path, value } => format!("hotplug {path} = {value}"),
        Change::Folder { path } => format!("folder {path}"),
        Change::Group { .. } | Change::Member { .. } => change.target(),
        Change::File { path, content, .. } => {
            let text = content.as_ref().map(|bytes| bytes.text().into_owned()).unwrap_or_default();
            let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
            // A unit's text has tests of its own.
            match path.ends_with(".service") {
                true => format!("file {path}"),
                false => format!("file {path}: {}", lines.join("; ")),
            }
        }
        Change::Unit { unit, want } => format!(
            "unit {unit} {}",
            match want {
                UnitState::Stopped => "stopped",
                UnitState::Disabled => "disabled",
                UnitState::Masked => "masked",
                UnitState::Started => "started",
                UnitState::Enabled => "enabled",
            }
        ),
        Change::Property { unit, property, value } => format!("{unit} {property}={value}"),
        other => format!("{other:?}"),
    }
}

#[test]
fn a_machine_with_nothing_to_do_has_an_empty_plan() {
    let findings = checks::judge_all(&good(), &intent());
    let all =
        Selection { level: PlanLevel::Max, risky: true, durable: true, ..Selection::default() };
    assert_eq!(make(&good(), &findings, &intent(), &all), Plan::default());
}

#[test]
fn each_level_has_the_one_below_and_standard_needs_cpus_of_ones_own() {
    let mut known: Vec<&str> = STANDARD.to_vec();
    known.sort_unstable();
    known.dedup();
    assert_eq!(known.len(), STANDARD.len());
    assert!(STANDARD.iter().all(|id| checks::by_id(id).is_some()));
    let facts = good_stock();
    let mut findings = checks::judge_all(&facts, &intent());
    for finding in &mut findings {
        if matches!(finding.check.as_str(), "isolcpus" | "thp" | "ksm") {
            finding.status = Status::Doubtful;
            finding.remedies = vec![Remedy::Boot { parameter: format!("{}=1", finding.check) }];
        }
        if finding.check == "ksm" {
            finding.status = Status::Bad;
        }
    }
    let words = |level, has_own_cpus| {
        let wanted = Selection { level, has_own_cpus, ..Selection::default() };
        let plan = make(&facts, &findings, &intent(), &wanted);
        let all = plan.boot.into_iter().map(|word| word.parameter);
        all.filter(|word| word.ends_with("=1")).collect::<Vec<_>>()
    };
    assert_eq!(words(PlanLevel::Safe, true), ["ksm=1"]);
    assert_eq!(words(PlanLevel::Standard, true), ["isolcpus=1", "ksm=1"]);
    assert_eq!(words(PlanLevel::Standard, false), ["ksm=1"]);
    assert_eq!(words(PlanLevel::Max, false), ["isolcpus=1", "ksm=1", "thp=1"]);
}

#[test]
fn a_named_check_that_is_good_is_reported() {
    let plan = plan_for(&good(), &intent(), &["cpufreq-governor"]);
    let [one] = plan.left_out.as_slice() else { panic!("{plan:#?}") };
    assert!(one.why.starts_with("nothing to do: "), "{}", one.why);
    assert!(plan.steps.is_empty() && plan.boot.is_empty());
}

#[test]
fn what_the_user_skips_is_left_out_with_the_reason() {
    let mut facts = good();
    facts.memory.thp_enabled = rtproof_host::Reading::known(
        "/sys/kernel/mm/transparent_hugepage/enabled",
        "always".to_owned(),
    );
    let mut intent = intent();
    intent.skip.insert("thp".into(), "the database needs them".into());
    let plan = make(&facts, &checks::judge_all(&facts, &intent), &intent, &Selection::default());
    assert_eq!(shown(&plan), ["not thp: left out: the database needs them"]);
}

#[test]
fn unknown_ids_are_reported() {
    let wanted = Selection {
        ids: ["smt", "power", "application", "app-policy", "isolation", "smtt"]
            .map(str::to_owned)
            .into(),
        ..Selection::default()
    };
    assert_eq!(wanted.unknown().collect::<Vec<_>>(), ["smtt"]);
    assert!(wanted.includes("cpufreq-governor") && wanted.includes("nohz-full"));
    assert!(!wanted.includes("thp") && !wanted.names("nohz-full"));
}

#[test]
fn every_row_that_is_bad_has_something_to_do() {
    for (knob, _, bad) in checks::testing::examples() {
        let check = checks::by_id(knob.id).unwrap();
        let mut facts = good();
        checks::testing::fill_setting(&mut facts, knob, bad);
        let findings = [checks::judge_one(check, &facts, &intent())];
        let all = Selection { risky: true, level: PlanLevel::Max, ..Selection::default() };
        let plan = make(&facts, &findings, &intent(), &all);
        assert_eq!(plan.conflicts, [], "{}", knob.id);
        for finding in findings.iter().filter(|finding| finding.is_open()) {
            let has = |checks: &[String]| checks.contains(&finding.check);
            let is_there = plan.steps.iter().any(|step| has(&step.reason.checks))
                || plan.boot.iter().any(|word| has(&word.reason.checks))
                || plan.instructions.iter().any(|one| has(&one.reason.checks))
                || plan.left_out.iter().any(|one| one.check == finding.check);
            assert!(is_there, "{}: {finding:#?}\n{plan:#?}", knob.id);
        }
    }
}

#[test]
fn the_paths_of_a_remedy_are_those_of_its_knob() {
    let mut findings = checks::judge_all(&good_stock(), &intent());
    for (knob, _, bad) in checks::testing::examples() {
        let mut facts = good();
        checks::testing::fill_setting(&mut facts, knob, bad);
        findings.push(checks::judge_one(checks::by_id(knob.id).unwrap(), &facts, &intent()));
    }
    let mut count = 0;
    for remedy in findings.iter().flat_map(|finding| &finding.remedies) {
        let Remedy::Set { knob, at, .. } = remedy else { continue };
        for path in at {
            assert_eq!(together::knob_at(path).id, knob.unwrap().id, "{remedy}");
            count += 1;
        }
    }
    assert!(count > 30, "{count}");
}
