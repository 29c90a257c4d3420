//! What holds for every format: nothing is dropped, invented or repeated.

#[path = "../../../../rtproof/tests/export/sample.rs"]
mod sample;

use std::collections::BTreeSet;

use sample::Sample;

use rtproof_host::tune::Change;
use rtproof_judge::plan::Conflict;

use super::*;

/// What a change leaves in the files that express it.
fn mark(change: &Change) -> String {
    match change {
        Change::Value { path, .. } if path.starts_with("/proc/sys/") => {
            path["/proc/sys/".len()..].rsplit(['/', '.']).next().unwrap_or(path).to_owned()
        }
        Change::Value { path, .. } | Change::Folder { path } | Change::Hotplug { path, .. } => {
            path.rsplit('/').next().unwrap_or(path).to_owned()
        }
        Change::Irq { irq, .. } => irq.actions.clone(),
        // The number of an interrupt is not in the name that its thread is looked for by.
        Change::Task { task, .. } => task.comm.replace("irq/45-", "-"),
        Change::File { path, .. } => path.rsplit('/').next().unwrap_or(path).to_owned(),
        Change::GrubEnv { key, .. } => key.clone(),
        Change::Unit { unit, .. } => unit.trim_end_matches(".service").to_owned(),
        Change::Property { property, .. } => property.clone(),
        _ => change.target(),
    }
}

#[test]
fn nothing_is_dropped_silently() {
    let sample = Sample::rich();
    for format in FORMATS.iter().filter(|format| format.id != "kconfig") {
        let exported = export(format, &sample.source()).unwrap();
        let mut said: String =
            exported.files.iter().map(|file| format!("{} {}\n", file.path, file.content)).collect();
        said +=
            &exported.missed.iter().map(|missed| format!("{}\n", missed.what)).collect::<String>();
        // Held by a unit of rtproof, which is translated into one without.
        let is_held = |change: &Change| change.target().contains("rtproof-latency");
        for step in sample.plan.steps.iter().filter(|step| !is_held(&step.change)) {
            let mark = mark(&step.change);
            assert!(said.contains(&mark), "{}: {mark} is nowhere", format.id);
        }
        assert!(said.contains("latency"), "{}", format.id);
        for word in &sample.plan.boot {
            assert!(said.contains(&word.parameter), "{}: {}", format.id, word.parameter);
        }
        for instruction in &sample.plan.instructions {
            assert!(said.contains(&instruction.text), "{}: {}", format.id, instruction.text);
        }
    }
}

#[test]
fn every_file_names_its_maker_and_machine() {
    let sample = Sample::rich();
    for format in FORMATS {
        let exported = export(format, &sample.source()).unwrap();
        let mut paths = BTreeSet::new();
        for file in &exported.files {
            assert!(paths.insert(&file.path), "{}: {} twice", format.id, file.path);
            assert!(!file.path.starts_with('/') && !file.path.contains(".."), "{}", file.path);
            // The plan's own files are as the plan has them.
            let is_plans = file.path.ends_with("limits.d/99-realtime.conf");
            let is_ours = file.content.contains("Made by rtproof")
                && file.content.contains("real-time CPUs 2-3; housekeeping CPUs 0-1");
            assert!(is_ours || is_plans, "{}: {}", format.id, file.path);
            assert!(!file.content.contains('\u{1b}'), "{}", file.path);
            // Every sentence has its full stop.
            for part in [" Costs: ", " RISK: "] {
                let all = file.content.matches(part).count();
                assert_eq!(all, file.content.matches(&format!(".{part}")).count(), "{}", file.path);
            }
            let comments = file.content.lines().filter(|line| line.trim_start().starts_with('#'));
            for reason in comments.filter(|line| line.contains(". Costs: ")) {
                assert!(reason.ends_with('.'), "{}: {reason}", file.path);
            }
        }
        assert!(paths.iter().any(|path| *path == "NOTES.md"));
    }
}

#[test]
fn what_is_missed_is_missed_by_with_the_reason() {
    let sample = Sample::rich();
    let missed_by = |format: &str| {
        let exported = export(super::format(format).unwrap(), &sample.source()).unwrap();
        let notes = exported.files.iter().find(|file| file.path == "NOTES.md").unwrap();
        for missed in &exported.missed {
            assert!(notes.content.contains(&missed.what), "{format}: {}", missed.what);
            assert!(!missed.why.is_empty());
        }
        exported.missed.iter().map(|missed| missed.what.clone()).collect::<Vec<_>>().join("\n")
    };
    let systemd = missed_by("systemd");
    for what in
        ["cpu3/online", "task 4711 (robot)", "next_entry", "LoaderEntryOneShot", "interrupt 9 "]
    {
        assert!(systemd.contains(what), "{what}: {systemd}");
    }
    // Words that a boot loader would read as its own.
    assert!(systemd.contains("boot word memmap=64K$0x1000"), "{systemd}");
    // A kernel thread, a value with another value's order, an interrupt by name: a script says it.
    for what in ["ksoftirqd/2", "scaling_max_freq", "eth0-rx-0"] {
        assert!(!systemd.contains(what), "{what}: {systemd}");
    }
    assert!(missed_by("tuned").contains("99-realtime.conf"));
    assert!(missed_by("buildroot").contains("AllowedCPUs"));
    assert!(missed_by("kconfig").contains("changes and"));
}

#[test]
fn a_plan_that_contradicts_itself_is_not_exported() {
    let mut sample = Sample::rich();
    sample.plan.conflicts.push(Conflict { target: "timer_migration".into(), requests: Vec::new() });
    for format in FORMATS {
        let error = export(format, &sample.source()).unwrap_err();
        assert!(error.to_string().starts_with("timer_migration: "), "{error}");
    }
    let error = format("chef").err().unwrap().to_string();
    assert_eq!(error, "--format chef: there is tuned, ansible, systemd, kconfig, yocto, buildroot");
}

#[test]
fn an_empty_plan_is_an_export_that_does_nothing() {
    let sample = Sample::empty();
    for format in FORMATS {
        let exported = export(format, &sample.source()).unwrap();
        assert_eq!(exported.missed, [], "{}", format.id);
        assert!(exported.files.len() >= 2, "{}", format.id);
    }
}
