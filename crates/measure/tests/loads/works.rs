//! Each load does what it says, and says what it did.

use std::time::{Duration, Instant};

use rtproof_measure::loads::LOADS;

use super::Case;
use super::tools::{check, run, settings, start, stop, temporary};

pub(crate) const CASES: &[(&str, Case)] = &[
    ("every_load_does_real_work", every_load_does_real_work),
    ("loads_run_together", loads_run_together),
    ("idle_is_no_process_and_no_error", idle_is_no_process_and_no_error),
    ("polling_is_cheap_and_follows_the_work", polling_is_cheap_and_follows_the_work),
];

/// Least work of one second that is no accident, far below what the slowest board does.
fn least(name: &str) -> u64 {
    match name {
        "cpu" => 1_000_000,
        "memory" | "net" => 10_000_000,
        "disk" => 1_000_000,
        "fork" => 10,
        "ping" | "files" => 1000,
        "messages" => 10_000,
        _ => 1,
    }
}

fn every_load_does_real_work() -> Result<String, String> {
    let dir = temporary();
    let mut seen = String::new();
    let is_alone = |load: &&&rtproof_measure::loads::Load| {
        load.name != "idle" && !load.parameter.is_some_and(|parameter| parameter.is_needed)
    };
    for load in LOADS.iter().filter(is_alone) {
        let time = Duration::from_secs(1);
        let outcome = run(load.name, &settings(dir.path()), time)?;
        let complaint = || format!("{outcome:?}");
        check(outcome.error.is_none() && outcome.name == load.name, complaint)?;
        check(outcome.work >= least(load.name), complaint)?;
        check(!outcome.detail.is_empty() && outcome.unit == load.unit, complaint)?;
        seen += &format!(
            "\n         {:8} {:>13} {} in {time:?}: {}",
            outcome.name, outcome.work, outcome.unit, outcome.detail
        );
    }
    Ok(seen)
}

fn loads_run_together() -> Result<String, String> {
    let dir = temporary();
    let settings = settings(dir.path());
    let names = ["cpu", "memory", "net", "ping", "disk", "files", "fork", "messages", "compile"];
    let mut running = Vec::new();
    let begin = Instant::now();
    for name in names {
        running.push(start(name, &settings)?);
    }
    let started = begin.elapsed();
    std::thread::sleep(Duration::from_secs(2));
    let begin = Instant::now();
    let outcomes = rtproof_measure::loads::Runner::stop_all(running);
    let took = begin.elapsed();
    check(took < Duration::from_secs(3), || format!("stop took {took:?}"))?;
    for outcome in outcomes {
        let complaint = || format!("{outcome:?}");
        check(outcome.error.is_none() && outcome.work > 0, complaint)?;
    }
    Ok(format!("9 started in {started:.1?}, stopped in {took:.1?}"))
}

fn idle_is_no_process_and_no_error() -> Result<String, String> {
    let mut running = start("idle", &settings("/nowhere".as_ref()))?;
    check(running.pid().is_none() && running.poll().is_none(), || "something runs".into())?;
    let outcome = stop(running)?;
    check(outcome.error.is_none() && outcome.work == 0, || format!("{outcome:?}"))?;
    Ok(String::new())
}

fn polling_is_cheap_and_follows_the_work() -> Result<String, String> {
    const POLLS: u32 = 10_000;
    let mut running = start("cpu", &settings("/tmp".as_ref()))?;
    std::thread::sleep(Duration::from_millis(2500));
    check(running.poll().is_none(), || "failed".into())?;
    let (early, _) = running.work();
    check(running.detail().contains("spinning"), || running.detail().into())?;
    check(early > 0, || "no work was reported within 2.5 s".into())?;
    let begin = Instant::now();
    for _ in 0..POLLS {
        check(running.poll().is_none(), || "failed".into())?;
    }
    let each = begin.elapsed() / POLLS;
    let outcome = stop(running)?;
    check(outcome.work > early, || format!("{early} after 2.5 s, then {outcome:?}"))?;
    Ok(format!("a poll takes {each:?}"))
}
