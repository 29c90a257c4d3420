//! Every captured machine's plan in every format: each says everything once, and the words, the
//! patterns and the lines are fit for what reads them.

use std::{collections::BTreeMap, collections::BTreeSet, fs, path::Path, process::Command};

use rtproof_host::{Capture, CpuList, Facts, Root};
use rtproof_judge::{
    Intent, Profile, checks,
    plan::{self, PlanLevel, Selection},
};
use rtproof_run::tune::export::{self, ExportSource, FORMATS};

use super::tools::{self, ok, written};

fn machines() -> Vec<(String, Facts)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/machines");
    let mut found = Vec::new();
    for entry in fs::read_dir(&folder).expect("fixtures/machines") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !name.ends_with(".txt") || name.ends_with(".check.txt") || name == "README.md" {
            continue;
        }
        let text = fs::read(&path).expect("a capture");
        let capture = Capture::read(text.as_slice()).expect("a capture").expect("a capture");
        found.push((name, Facts::read(&Root::captured(capture))));
    }
    assert!(found.len() >= 12, "{}", folder.display());
    found
}

#[test]
fn every_machine_s_plan_is_an_export_in_every_format() {
    for (name, facts) in machines() {
        let online = facts.cpus.online.value().cloned().unwrap_or_default();
        let realtime = CpuList::new(online.iter().skip(online.len().div_ceil(2)));
        let intent = Intent {
            housekeeping: online.difference(&realtime),
            rt_cpus: realtime,
            proposed: None,
            priority: 80,
            period_ns: 1_000_000,
            budget_ns: None,
            profile: Profile::default(),
            skip: BTreeMap::new(),
            user: None,
        };
        let findings = checks::judge_all(&facts, &intent);
        let all =
            Selection { level: PlanLevel::Max, risky: true, durable: true, ..Selection::default() };
        let plan = plan::make(&facts, &findings, &intent, &all);
        assert!(plan.steps.len() > 3, "{name}");
        let build = plan::build_options(&facts, &intent, &all);
        let before = BTreeMap::new();
        let source = ExportSource {
            plan: &plan,
            machine: &name,
            realtime: &intent.rt_cpus,
            housekeeping: &intent.housekeeping,
            build: build.as_deref(),
            before: &before,
        };
        for format in FORMATS {
            let exported = export::export(format, &source).expect("an export");
            let mut paths = BTreeSet::new();
            for file in &exported.files {
                let at = format!("{name}, {}: {}", format.id, file.path);
                assert!(paths.insert(&file.path), "{at} twice");
                assert!(!file.content.contains('\u{1b}'), "{at}");
                assert!(file.path.split('/').all(|part| !part.is_empty() && part != ".."), "{at}");
            }
            let folder = written(&exported);
            for (path, text) in tools::tree(folder.path()) {
                if text.starts_with("#!/bin/sh") || path.starts_with("root/etc/default/grub.d") {
                    ok(Command::new("sh").arg("-n").arg(folder.path().join(path)));
                }
            }
        }
    }
}
