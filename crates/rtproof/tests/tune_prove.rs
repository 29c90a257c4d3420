//! The truth test of `tune apply --prove`: a knob that really takes latency away is found and kept,
//! one that does nothing is not, and the machine is as it was.
//!
//! The knobs are two files of a folder. A thread above the measured ones burns CPU 0 for some
//! milliseconds, twenty times a second, while the first file does not hold 1; nobody looks at the
//! second one. Bounded: the thread ends with the test, and at the latest after two minutes.

use std::{fs, path::Path};

use crate::support::{alone, folder, plant::Plant};
use rtproof_host::{
    Facts, Root,
    tune::{Change, Compare, Journal, Machine, undo},
};
use rtproof_judge::{
    Impact,
    plan::{Plan, Reason, Step},
};
use rtproof_measure::LiveTasks;
use rtproof_record::{
    Effects, SealState,
    effects::{Decision, KnobResult, SlicePart, SliceStatistic},
};
use rtproof_render::page;
use rtproof_results::Ended;
use rtproof_run::{
    experiment::{ExperimentEvents, Journaled, plan as prove},
    prove::{Observer, Request},
};

fn step(path: &str, check: &str) -> Step {
    let change = Change::Value {
        path: path.into(),
        value: "1".into(),
        compare: Compare::Text,
        couples: Vec::new(),
    };
    let reason = Reason {
        checks: vec![check.into()],
        why: "test".into(),
        impact: Impact::Milliseconds,
        trade_off: None,
        risk: None,
    };
    Step { change, reason }
}

fn request(output: &Path, ns: u64) -> Request {
    Request {
        load: Some("idle".parse().expect("a load")),
        trace: false,
        ..Request::new(ns, output)
    }
}

/// Shows nothing.
struct Silent;

impl ExperimentEvents for Silent {
    fn setup(&mut self, _: &str) -> std::io::Result<()> {
        Ok(())
    }

    fn line(&mut self, _: &str) -> std::io::Result<()> {
        Ok(())
    }

    fn observer(&self, _: u64) -> Box<dyn Observer> {
        Box::new(rtproof_run::prove::SilentObserver)
    }
}

/// Runs a trial and returns what its record holds.
fn trial(tree: &Path, plan: &Plan) -> Effects {
    let out = folder();
    let root = Root::dir(tree).expect("a folder");
    let machine = Machine::new(&root, &LiveTasks).expect("a machine");
    let mut switch = Journaled::new(&machine, "tune apply --prove 40s");
    let live = Root::live();
    let facts = Facts::read(&live);
    let stem = out.path().join("run");
    let request = request(&stem, 40_000_000_000);
    let (results, _) =
        prove::run(&live, facts, plan, &request, &mut switch, &mut Silent).expect("a trial");
    assert!([Ended::Done, Ended::CannotTell].contains(&results.ended().expect("effects")));
    let html = page::render(&results.sealed.run, &results.report, &page::Extra::default());
    fs::write(out.path().join("run.html"), &html).expect("a report");
    assert!(html.contains("Effects of the changes"));
    let opened = rtproof_record::read(&out.path().join("run.rtproof")).expect("a record");
    assert!(matches!(opened.state, SealState::Sealed { .. }));
    let covers = |s: &rtproof_record::run::Second| s.to_ns - s.from_ns <= 1_500_000_000;
    assert!(opened.run.threads.iter().all(|thread| thread.seconds.iter().all(covers)));
    if let Some(keep) = std::env::var_os("RTPROOF_KEEP") {
        for name in ["run.html", "run.rtproof"] {
            fs::copy(out.path().join(name), Path::new(&keep).join(name)).expect("a copy");
        }
    }
    opened.run.effects.expect("effects")
}

fn knob<'a>(effects: &'a Effects, name: &str) -> &'a KnobResult {
    effects.knobs.iter().find(|knob| knob.name == name).expect("the knob")
}

#[test]
fn too_little_time_and_nothing_to_try_are_usage_errors() {
    let tree = folder();
    let root = Root::dir(tree.path()).expect("a folder");
    fs::create_dir(tree.path().join("sys")).expect("a folder");
    let machine = Machine::new(&root, &LiveTasks).expect("a machine");
    let mut switch = Journaled::new(&machine, "tune apply --prove 5s");
    let (live, out) = (Root::live(), folder());
    let facts = Facts::read(&live);
    let mut refused = |plan: &Plan| {
        let request = request(out.path(), 5_000_000_000);
        let refused = prove::run(&live, facts.clone(), plan, &request, &mut switch, &mut Silent);
        refused.expect_err("refused").to_string()
    };
    let steps = vec![step("/sys/plant", "plant")];
    let short = refused(&Plan { steps, ..Plan::default() });
    assert!(short.contains("--prove 5 s: too short; one knob takes "), "{short}");
    let empty = refused(&Plan::default());
    assert!(empty.contains("nothing that can be measured now"), "{empty}");
    assert_eq!(fs::read_dir(out.path()).expect("a folder").count(), 0, "no record is begun");
}

/// Measures live.
mod live {
    use super::*;

    #[test]
    fn a_knob_that_takes_latency_away_is_found_and_a_placebo_is_not() {
        let _alone = alone();
        let tree = folder();
        let path = |name: &str| tree.path().join("sys").join(name);
        fs::create_dir(tree.path().join("sys")).expect("a folder");
        let reset =
            || ["plant", "placebo"].map(|name| fs::write(path(name), "0\n").expect("a file"));
        reset();
        let Some(_plant) = Plant::start(path("plant"), "1") else {
            eprintln!("skipped: needs the right to SCHED_FIFO 90");
            return;
        };
        let steps = vec![step("/sys/placebo", "placebo"), step("/sys/plant", "plant")];
        let plan = Plan { steps, ..Plan::default() };
        let mut effects = trial(tree.path(), &plan);
        let is_named = |effects: &Effects| {
            [Decision::Helps, Decision::Hurts].contains(&knob(effects, "placebo").decision)
        };
        // A placebo is named in one run of twenty, by construction: not again and again. A machine
        // with stalls longer than the planted ones cannot decide.
        for _ in 0..2 {
            let is_told = knob(&effects, "plant").decision != Decision::CannotDecide;
            if is_told && !is_named(&effects) {
                break;
            }
            let root = Root::dir(tree.path()).expect("a folder");
            let machine = Machine::new(&root, &LiveTasks).expect("a machine");
            if effects.knobs.iter().any(|knob| knob.kept) {
                let mut journal = Journal::open(&machine, None).expect("what was kept");
                undo(&machine, &mut journal, &mut |_| {}).expect("an undo");
            }
            effects = trial(tree.path(), &plan);
        }
        let plant = knob(&effects, "plant");
        assert_eq!((plant.decision, plant.kept), (Decision::Helps, true), "{effects:#?}");
        let p999 = Effects::of(plant, SliceStatistic::P999).expect("an effect");
        assert!(p999.off_ns > 4_000_000 && p999.on_ns < p999.off_ns, "{p999:?}");
        assert!(!is_named(&effects), "{:#?}", knob(&effects, "placebo"));
        let parts = |part| effects.slices.iter().filter(|slice| slice.part == part).count();
        assert_eq!((parts(SlicePart::Before), parts(SlicePart::After)), (8, 4));
        assert!(parts(SlicePart::Pair) >= 2 * 2 * 8, "{}", parts(SlicePart::Pair));

        // What helped is in force with a journal, and the undo brings every byte back.
        assert_eq!(fs::read_to_string(path("plant")).expect("a file").trim(), "1");
        assert_eq!(fs::read_to_string(path("placebo")).expect("a file"), "0\n");
        let root = Root::dir(tree.path()).expect("a folder");
        let machine = Machine::new(&root, &LiveTasks).expect("a machine");
        let in_force = |summary: &rtproof_host::tune::JournalSummary| !summary.closed;
        assert_eq!(
            Journal::list(&machine).expect("journals").iter().filter(|s| in_force(s)).count(),
            1
        );
        let mut journal = Journal::open(&machine, None).expect("a journal");
        undo(&machine, &mut journal, &mut |_| {}).expect("an undo");
        assert_eq!(fs::read_to_string(path("plant")).expect("a file"), "0\n");
    }
}
