//! A long run shown: a day of 64 CPUs, second by second in its record, and what a user waits for
//! and how much memory that takes; beside it Python's sqlite3, which adds up the same rows.

mod make;

use std::{io::Write, path::PathBuf, time::Instant};

use anyhow::{Context, ensure};

use crate::audit;
use crate::numbers::spread;

/// Rounds: each command once a round.
const ROUNDS: usize = 5;

/// Arguments.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Hours of the run
    #[arg(long, default_value_t = 24.0)]
    hours: f64,
    /// CPUs of the run
    #[arg(long, default_value_t = 64)]
    cpus: u32,
    /// Folder that has room for the record twice
    #[arg(long, default_value = "/tmp")]
    folder: PathBuf,
}

/// Adds up the same rows: what every report needs of them at least.
const PYTHON: &str = "import sqlite3, sys\n\
    c = sqlite3.connect('file:' + sys.argv[1] + '?immutable=1', uri=True)\n\
    q = 'SELECT thread, sum(n), min(min_ns), max(max_ns), sum(missed) FROM stat GROUP BY thread'\n\
    print(len(c.execute(q).fetchall()))";
/// The same, row by row: what a report that keeps to seconds needs.
const PYTHON_ROWS: &str = "import sqlite3, sys\n\
    c = sqlite3.connect('file:' + sys.argv[1] + '?immutable=1', uri=True)\n\
    s = {}\n\
    for t, n, m, x in c.execute('SELECT thread, n, max_ns, sum_ns FROM stat'):\n\
    \x20   a, b, d = s.get(t, (0, 0, 0)); s[t] = (a + n, max(b, m), d + int(x))\n\
    print(len(s))";

/// Makes the record, times what is run on it, and prints a table.
pub(crate) fn run(
    out: &mut impl Write,
    rtproof: &std::path::Path,
    options: &Options,
) -> anyhow::Result<()> {
    ensure!(options.cpus > 0 && options.hours > 0.0, "a run of no time or no CPU");
    let folder = tempfile::tempdir_in(&options.folder)?;
    let record = folder.path().join("long.rtproof");
    let seconds = (options.hours * 3600.0) as u64;
    let start = Instant::now();
    let made = make::record(&record, seconds.max(1), options.cpus, 0)?;
    let took_s = start.elapsed().as_secs_f64();
    let bytes = std::fs::metadata(&record)?.len();
    check(rtproof, &record, made.rows * 1000)?;
    let other = folder.path().join("other.rtproof");
    make::record(&other, seconds.max(1), options.cpus, 1)?;
    writeln!(
        out,
        "A run of {} h and {} CPUs shown: {} rows of a second and {} spikes in {} MB, which took \
         {took_s:.0} s to make; {ROUNDS} rounds, median (quartiles; range)\n",
        options.hours,
        options.cpus,
        made.rows,
        made.spikes,
        bytes / 1_000_000
    )?;
    writeln!(out, "| what | wall, s | CPU, s | largest resident, MB |\n|---|---|---|---|")?;
    let html = folder.path().join("report.html");
    let text = |path: &std::path::Path| path.display().to_string();
    let (own, record, html) = (text(rtproof), text(&record), text(&html));
    let other = text(&other);
    let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
    let commands: [(&str, Vec<String>); 5] = [
        ("rtproof report --json", words(&[&own, "report", &record, "--json"])),
        ("rtproof report --html", words(&[&own, "report", &record, "--html", &html])),
        ("rtproof compare with another such run", words(&[&own, "compare", &record, &other])),
        ("python sqlite3: five sums of each CPU", words(&["python3", "-c", PYTHON, &record])),
        (
            "python sqlite3: three of them row by row",
            words(&["python3", "-c", PYTHON_ROWS, &record]),
        ),
    ];
    for (what, command) in commands {
        if command[0] == "python3" && !audit::runs(&["python3", "-c", "import sqlite3"]) {
            writeln!(out, "| {what} | skipped: no python3 with sqlite3 here | | |")?;
            continue;
        }
        let ran: Result<Vec<_>, _> = (0..ROUNDS).map(|_| audit::time(&command)).collect();
        let ran = ran?;
        let column = |of: fn(&audit::Ran) -> f64| {
            let values = ran.iter().map(|ran| of(ran) / 1000.0).collect();
            spread(values).map_or("-".into(), |spread| spread.text(2))
        };
        let resident = audit::resident(&command).and_then(|kib| kib.parse::<f64>().ok());
        let resident = resident.map_or("-".into(), |kib| format!("{:.0}", kib * 1.024e-3));
        let (wall, cpu) = (column(|ran| ran.wall_ms), column(|ran| ran.cpu_ms));
        writeln!(out, "| {what} | {wall} | {cpu} | {resident} |")?;
    }
    Ok(writeln!(out)?)
}

/// The report tells all that was written.
fn check(rtproof: &std::path::Path, record: &std::path::Path, expected: u64) -> anyhow::Result<()> {
    let mut command = std::process::Command::new(rtproof);
    let output = command.arg("report").arg(record).arg("--json").output()?;
    let report: serde_json::Value = serde_json::from_slice(&output.stdout)
        .with_context(|| format!("rtproof report: {}", String::from_utf8_lossy(&output.stderr)))?;
    let told = report.pointer("/all/sampled").and_then(serde_json::Value::as_u64);
    ensure!(told == Some(expected), "the report tells {told:?} wake-ups, written: {expected}");
    Ok(())
}

#[cfg(test)]
mod tests {

    /// Just more than is read second by second.
    const SECONDS: u64 = 2100;
    const CPUS: u32 = 64;

    #[test]
    fn a_long_run_is_read_by_minutes_and_to_the_last_wake_up() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("long.rtproof");
        let made = crate::long::make::record(&path, SECONDS, CPUS, 0).expect("a record");
        assert_eq!(made.rows, SECONDS * u64::from(CPUS));
        let run = rtproof_record::read_shown(&path).expect("readable").run;
        let sampled = |thread: &rtproof_record::run::Thread| thread.totals.wake.count();
        assert!(run.threads.iter().all(|thread| sampled(thread) == SECONDS * 1000));
        assert!(run.threads.iter().all(|thread| thread.wake.total() == SECONDS * 1000));
        // 35 minutes; the load changes within the fourth and the eighteenth.
        let pieces: Vec<usize> = run.threads.iter().map(|thread| thread.seconds.len()).collect();
        assert_eq!(pieces, [33 + 2 * 60; CPUS as usize]);
        let spikes = run.spikes.expect("spikes");
        assert_eq!((spikes.list.len() as u64, spikes.summary.seen), (made.spikes, made.spikes));
        assert!(made.spikes > 4000, "{}", made.spikes);
        let late = run.threads.iter().flat_map(|thread| &thread.top);
        assert!(late.filter(|sample| sample.latency_ns > 45_000).count() > 1000);
        assert_eq!(run.host.len() as u64, SECONDS);
    }
}
