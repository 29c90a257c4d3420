//! What every question promises, as the checks of the machine do: never good without what it
//! cites, good with only what it cites, evidence always there.

use std::collections::BTreeSet;

use rtproof_host::CpuList;

use super::testing::{Scene, sched_of};
use super::{all, by_id, judge_all, priority, real_time_cpus, without_own};
use crate::blanks::{blanked, cites, readings};
use crate::check::Check;
use crate::testing::{good_stock, intent, task};
use crate::{Finding, Intent, Remedy, Status};

fn scenes() -> [Scene; 2] {
    [Scene::good(), Scene { facts: good_stock(), ..Scene::good() }]
}

fn places(scene: &Scene) -> Vec<(String, String)> {
    let mut found = Vec::new();
    readings(&serde_json::to_value(scene).unwrap(), "", &mut found);
    found
}

fn settled(finding: &Finding) -> bool {
    matches!(finding.status, Status::Good | Status::NotApplicable)
}

#[test]
fn ids_are_unique_kebab_case_and_every_text_is_there() {
    let mut seen = BTreeSet::new();
    for check in all() {
        let id = check.id;
        assert!(seen.insert(id) && id.starts_with("app-"), "{id}");
        assert!(id.chars().all(|c| c.is_ascii_lowercase() || c == '-'), "{id}");
        assert!(by_id(id).is_some_and(|found| found.title == check.title));
        assert!(crate::by_id(id).is_none(), "{id} is a check of the machine, too");
        for text in [check.title, check.why, check.source] {
            assert!(text.len() > 8 && text.trim() == text, "{id}: \"{text}\"");
            assert!(!text.contains('\n') && !text.contains("  "), "{id}: \"{text}\"");
            assert!(!text.ends_with('.'), "{id}: \"{text}\"");
        }
    }
    assert!(seen.len() >= 14);
}

#[test]
fn every_finding_is_complete() {
    let mut ordinary = Scene::good();
    sched_of(&mut ordinary, 101).policy = rtproof_host::facts::tasks::Policy::Other;
    let places = places(&Scene::good());
    let mut scenes: Vec<Scene> = scenes().into();
    scenes.extend((0..3).map(|which| blanked(&Scene::good(), &places, which)));
    scenes.push(ordinary);
    for scene in scenes {
        for (finding, check) in judge_all(&scene.facts, &scene.app, &intent()).iter().zip(all()) {
            assert_eq!(finding.check, check.id);
            assert!(!finding.wanted.is_empty() && !finding.evidence.is_empty(), "{finding:#?}");
            assert!(!finding.summary.is_empty() && !finding.summary.contains('\n'), "{finding:#?}");
            let is_whole =
                finding.evidence.iter().all(|e| !e.path.is_empty() && !e.value.is_empty());
            assert!(is_whole, "{finding:#?}");
            assert!(!settled(finding) || finding.remedies.is_empty(), "{finding:#?}");
            for remedy in &finding.remedies {
                let has_paths =
                    !matches!(remedy, Remedy::Set { at: paths, .. } if paths.is_empty());
                assert!(has_paths, "{finding:#?}");
            }
        }
    }
}

#[test]
fn every_question_is_content_with_the_good_application() {
    for scene in scenes() {
        for finding in judge_all(&scene.facts, &scene.app, &intent()) {
            assert_eq!(finding.status, Status::Good, "{finding:#?}");
        }
    }
}

#[test]
fn nothing_is_good_without_what_it_cites() {
    let mut tried = 0;
    for scene in scenes() {
        let places = places(&scene);
        let cited: BTreeSet<&str> = places.iter().map(|(_, path)| path.as_str()).collect();
        let findings = judge_all(&scene.facts, &scene.app, &intent());
        for path in cited {
            if !findings.iter().any(|finding| cites(finding, path)) {
                continue;
            }
            let of_file: Vec<_> = places.iter().filter(|(_, p)| p == path).cloned().collect();
            for which in 0..3 {
                let blank_scene = blanked(&scene, &of_file, which);
                for finding in judge_all(&blank_scene.facts, &blank_scene.app, &intent()) {
                    let is_pass = settled(&finding) && cites(&finding, path);
                    assert!(!is_pass, "without {path}: {finding:#?}");
                    tried += 1;
                }
            }
        }
    }
    assert!(tried > 1_000, "only {tried} cases: were the readings found?");
}

#[test]
fn what_a_good_finding_cites_is_enough() {
    for scene in scenes() {
        let places = places(&scene);
        let value = serde_json::to_value(&scene).unwrap();
        for check in all() {
            let finding = scene.judge(check);
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
                let rest = blanked(&scene, &others, which).judge(check);
                assert_eq!(rest.status, Status::Good, "{rest:#?}\nwas {finding:#?}");
            }
        }
    }
}

#[test]
fn an_unreadable_machine_passes_nothing() {
    let places = places(&Scene::good());
    for which in 0..3 {
        let blank_scene = blanked(&Scene::good(), &places, which);
        for finding in judge_all(&blank_scene.facts, &blank_scene.app, &intent()) {
            assert!(!settled(&finding), "{finding:#?}");
        }
    }
}

#[test]
fn no_real_time_cpus_pass_nothing_about_them() {
    let intent = Intent { rt_cpus: CpuList::default(), ..intent() };
    let scene = Scene::good();
    let judge = |check: &Check| check.judge_app(&scene.facts, &scene.app, &intent);
    for finding in all().map(judge) {
        assert!(finding.status != Status::Good || finding.cpus.is_none(), "{finding:#?}");
    }
}

#[test]
fn what_the_application_shows() {
    let mut scene = Scene::good();
    assert_eq!(priority(&scene.app), Some(80));
    assert_eq!(real_time_cpus(&scene.app).unwrap().as_slice(), [2]);
    let own = task(100, "loop", 80, &[2], false);
    super::testing::add_task(&mut scene, own);
    let strangers = without_own(&scene.facts, &scene.app);
    assert!(strangers.rt_tasks.value().unwrap().iter().all(|task| task.pid != 100));
    sched_of(&mut scene, 101).policy = rtproof_host::facts::tasks::Policy::Other;
    assert_eq!((priority(&scene.app), real_time_cpus(&scene.app)), (None, None));
}
