//! What every check promises, tried on all of them, those of tomorrow included.
//!
//! A good finding rests on readings. Taken away one by one, no check may stay good on a reading it
//! no longer has; with only the cited readings left, it must stay good. So evidence is neither
//! decoration nor incomplete, and a file that cannot be read is never a pass.

use std::collections::BTreeSet;

use rtproof_host::Facts;

use crate::blanks::{blanked, cites, readings};
use crate::testing::{cpus, good, good_stock, intent};
use crate::{_template, Check, Finding, Intent, Remedy, Status, judge_all};

/// The checks, and the template that new ones are copied from.
fn all() -> impl Iterator<Item = &'static Check> {
    crate::all().chain([&_template::CHECK])
}

/// Machines on which a check may be good.
fn machines() -> [Facts; 2] {
    [good(), good_stock()]
}

#[test]
fn ids_are_unique_kebab_case_and_every_text_is_there() {
    let mut seen = BTreeSet::new();
    for check in all() {
        let id = check.id;
        assert!(seen.insert(id), "{id} occurs twice");
        let is_word = |word: &str| {
            !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
        };
        assert!(id.split('-').all(is_word), "{id} is not kebab-case");
        for text in [check.title, check.why, check.source] {
            assert!(text.len() > 8, "{id}: \"{text}\"");
            assert_eq!(text.trim(), text, "{id}");
            assert!(!text.contains('\n') && !text.contains("  "), "{id}: \"{text}\"");
        }
    }
}

#[test]
fn every_finding_is_complete() {
    let mut unreadable = Vec::new();
    readings(&serde_json::to_value(good()).unwrap(), "", &mut unreadable);
    let machines =
        [good(), good_stock(), blanked(&good(), &unreadable, 0), blanked(&good(), &unreadable, 1)];
    for facts in machines {
        for check in all() {
            let finding = check.judge(&facts, &intent());
            let id = check.id;
            assert_eq!(finding.check, id);
            assert_eq!((finding.why.as_str(), finding.source.as_str()), (check.why, check.source));
            assert!(
                !finding.wanted.is_empty() && !finding.evidence.is_empty(),
                "{id}: {finding:?}"
            );
            assert!(!finding.summary.is_empty() && !finding.summary.contains('\n'), "{id}");
            assert!(
                finding.evidence.iter().all(|e| !e.path.is_empty() && !e.value.is_empty()),
                "{id}: {finding:?}"
            );
            let is_settled = matches!(finding.status, Status::Good | Status::NotApplicable);
            assert!(!is_settled || finding.remedies.is_empty(), "{id}: {finding:?}");
            for remedy in &finding.remedies {
                let has_paths =
                    !matches!(remedy, Remedy::Set { at: paths, .. } if paths.is_empty());
                assert!(has_paths, "{id}: {finding:?}");
            }
        }
    }
}

#[test]
fn every_check_is_good_on_some_good_machine() {
    for check in all() {
        let findings = machines().map(|facts| check.judge(&facts, &intent()));
        assert!(findings.iter().any(|f| f.status == Status::Good), "{findings:#?}");
    }
    let findings = judge_all(&good(), &intent());
    let settled = |f: &&Finding| !matches!(f.status, Status::Good | Status::NotApplicable);
    assert_eq!(findings.iter().find(settled), None);
}

/// Paths that no check cites two of: they can be taken away together, and each check still misses
/// one alone.
fn batches<'a>(paths: &BTreeSet<&'a str>, findings: &[Finding]) -> Vec<Vec<&'a str>> {
    let citing = |path: &str| -> BTreeSet<usize> {
        (0..findings.len()).filter(|&at| cites(&findings[at], path)).collect()
    };
    let mut batches: Vec<(BTreeSet<usize>, Vec<&str>)> = Vec::new();
    for path in paths {
        let by = citing(path);
        match batches.iter_mut().find(|(taken, _)| !by.is_empty() && taken.is_disjoint(&by)) {
            Some((taken, batch)) => {
                taken.extend(by);
                batch.push(path);
            }
            None if by.is_empty() => {}
            None => batches.push((by, vec![path])),
        }
    }
    batches.into_iter().map(|(_, batch)| batch).collect()
}

#[test]
fn nothing_is_good_without_what_it_cites() {
    let mut tried = 0;
    for facts in machines() {
        let mut places = Vec::new();
        readings(&serde_json::to_value(&facts).unwrap(), "", &mut places);
        let paths: BTreeSet<&str> = places.iter().map(|(_, path)| path.as_str()).collect();
        let findings: Vec<Finding> = all().map(|check| check.judge(&facts, &intent())).collect();
        for batch in batches(&paths, &findings) {
            // Readings of one file fail together.
            let of_batch: Vec<_> =
                places.iter().filter(|(_, p)| batch.contains(&p.as_str())).cloned().collect();
            for which in 0..3 {
                let unreadable = blanked(&facts, &of_batch, which);
                for check in all() {
                    let finding = check.judge(&unreadable, &intent());
                    let is_pass = finding.status == Status::Good;
                    let missed = batch.iter().find(|path| is_pass && cites(&finding, path));
                    assert_eq!(missed, None, "{}: {finding:#?}", check.id);
                    tried += 1;
                }
            }
        }
    }
    assert!(tried > 5_000, "only {tried} cases: were the readings found?");
}

#[test]
fn what_a_good_finding_cites_is_enough() {
    for facts in machines() {
        let mut places = Vec::new();
        readings(&serde_json::to_value(&facts).unwrap(), "", &mut places);
        for check in all() {
            let finding = check.judge(&facts, &intent());
            if finding.status != Status::Good {
                continue;
            }
            let value = serde_json::to_value(&facts).unwrap();
            // A reading that is cited keeps the ones round it: blank only those that hold none.
            let others: Vec<_> = places
                .iter()
                .filter(|(at, path)| {
                    let mut inner = Vec::new();
                    readings(value.pointer(at).unwrap(), "", &mut inner);
                    !cites(&finding, path) && !inner.iter().any(|(_, path)| cites(&finding, path))
                })
                .cloned()
                .collect();
            for which in 0..3 {
                let rest = check.judge(&blanked(&facts, &others, which), &intent());
                assert_eq!(rest.status, Status::Good, "{rest:#?}\nwas {finding:#?}");
            }
        }
    }
}

#[test]
fn an_unreadable_machine_passes_nothing() {
    let mut places = Vec::new();
    readings(&serde_json::to_value(good()).unwrap(), "", &mut places);
    for which in 0..3 {
        let mut unreadable = blanked(&good(), &places, which);
        for _ in 0..2 {
            for check in all() {
                let finding = check.judge(&unreadable, &intent());
                assert_ne!(finding.status, Status::Good, "{finding:#?}");
                assert_ne!(finding.status, Status::NotApplicable, "{finding:#?}");
            }
            unreadable.cpus.cpus.clear();
        }
    }
}

#[test]
fn no_cpus_and_cpus_that_are_not_there_pass_nothing() {
    for rt_cpus in [cpus(&[]), cpus(&[7]), cpus(&[3, 7])] {
        let intent = Intent { rt_cpus, ..intent() };
        for check in all() {
            let finding = check.judge(&good(), &intent);
            let is_pass = finding.status == Status::Good && finding.cpus.is_some();
            // What is asked of interrupts and daemons can be answered for a CPU that is offline.
            let is_elsewhere = ["irq-affinity", "irqbalance", "rogue-rt-tasks"].contains(&check.id);
            assert!(!is_pass || (is_elsewhere && !intent.rt_cpus.is_empty()), "{finding:#?}");
        }
    }
}

#[test]
fn odd_intents_are_answered() {
    let odd = [
        Intent { priority: 0, period_ns: 0, budget_ns: Some(0), ..intent() },
        Intent { priority: 99, budget_ns: Some(u64::MAX), ..intent() },
        Intent { rt_cpus: cpus(&[0, 1, 2, 3]), housekeeping: cpus(&[]), ..intent() },
        Intent { rt_cpus: cpus(&[]), housekeeping: cpus(&[]), budget_ns: None, ..intent() },
    ];
    for intent in odd {
        for finding in judge_all(&good(), &intent) {
            assert!(!finding.summary.is_empty(), "{finding:#?}");
        }
    }
}

#[test]
fn unknown_online_cpus_still_have_evidence() {
    let path = good().cpus.online.path;
    let place = [("/cpus/online".to_owned(), path)];
    for machine in machines() {
        for which in 0..3 {
            let mut facts = blanked(&machine, &place, which);
            for rt_cpus in [cpus(&[2, 3]), cpus(&[3, 7]), cpus(&[])] {
                let intent = Intent { rt_cpus, ..intent() };
                for _ in 0..2 {
                    for finding in judge_all(&facts, &intent) {
                        assert!(!finding.evidence.is_empty(), "{finding:#?}");
                    }
                    facts.cpus.cpus.clear();
                }
            }
        }
    }
}
