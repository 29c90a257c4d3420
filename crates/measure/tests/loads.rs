//! Loads for real: each works, keeps its bounds, and is gone afterwards whatever happened. This
//! test has its own `main` because a load is run by the binary that starts it: called with
//! `load-worker` this is the worker, with `parent` it is the program that gets killed.

use std::io::Write;
use std::process::ExitCode;
use std::time::Instant;

#[path = "loads/bounds.rs"]
mod bounds;
#[path = "loads/ends.rs"]
mod ends;
#[path = "loads/others.rs"]
mod others;
#[path = "loads/real.rs"]
mod real;
#[path = "loads/tools.rs"]
mod tools;
#[path = "loads/works.rs"]
mod works;

/// `Ok`: what was seen, printed beside the name.
type Case = fn() -> Result<String, String>;

/// Module of the tests that nothing runs beside.
const ALONE: &str = "alone::";

const CASES: &[&[(&str, Case)]] =
    &[works::CASES, bounds::CASES, ends::CASES, others::CASES, real::CASES];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let result = match args.first().map(String::as_str) {
        Some("load-worker") => {
            rtproof_measure::worker_main(&args[1..]).map_err(|error| error.to_string())
        }
        Some("parent") => ends::parent(&args[1..]),
        Some("start") => others::start(&args[1..]),
        _ => return run(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the cases whose names hold the first argument that is no option; `--list` and `--exact` are
/// as in libtest, so that `cargo xtask test` can run them one by one. It lists them in a module
/// `alone`: a load takes what it can get.
fn run(args: &[String]) -> ExitCode {
    let has = |option: &str| args.iter().any(|arg| arg == option);
    let filter = args.iter().find(|arg| !arg.starts_with('-')).filter(|_| !has("--list"));
    let filter = filter.map(|name| name.strip_prefix(ALONE).unwrap_or(name));
    let is_wanted = |name: &str| match filter {
        Some(filter) if has("--exact") => name == filter,
        Some(filter) => name.contains(filter),
        None => !has("--ignored"),
    };
    let mut out = std::io::stdout();
    let (mut passed, mut failed) = (0, 0);
    for (name, case) in CASES.iter().copied().flatten().filter(|(name, _)| is_wanted(name)) {
        if has("--list") {
            let _ = writeln!(out, "{ALONE}{name}: test");
            continue;
        }
        let start = Instant::now();
        let result = case().and_then(|seen| tools::nothing_is_left().map(|()| seen));
        let seconds = start.elapsed().as_secs_f64();
        let (word, text) = match result {
            Ok(text) => ("ok    ", text),
            Err(text) => ("FAILED", text),
        };
        let count = if word == "ok    " { &mut passed } else { &mut failed };
        *count += 1;
        let _ = writeln!(out, "{word} {name} ({seconds:.1} s) {text}");
    }
    if !has("--list") {
        let _ = writeln!(out, "{passed} passed, {failed} failed");
    }
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
