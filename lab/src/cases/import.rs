//! Results of other tools, made in a guest and read by `rtproof import`. What `--keep` leaves of
//! these cases are the fixtures `rtla-*.txt` of fixtures/imports.

use anyhow::{Context, Result};

use crate::case::{Case, Tier};
use crate::expect::Expect;
use crate::machine::Machine;
use crate::seen::{Evidence, Json};

/// Name of the output, what is run, what it is imported as, series.
const RUNS: &[(&str, &str, &str, usize)] = &[
    ("timerlat-hist", "rtla timerlat hist -c 0-1 -d 3s", "rtla-timerlat-hist", 4),
    ("timerlat-top", "rtla timerlat top -q -c 0-1 -d 3s", "rtla-timerlat-top", 4),
    ("osnoise-hist", "rtla osnoise hist -c 1 -d 3s -b 10 -E 1000", "rtla-osnoise-hist", 1),
    ("osnoise-top", "rtla osnoise top -q -c 0-1 -d 3s", "rtla-osnoise-top", 4),
];

pub(super) fn cases() -> Vec<Case> {
    let runs = RUNS.iter().map(|(name, command, ..)| format!("run {name} {command}\n"));
    let case = Case::new(
        "import/rtla/rt-6.1",
        "what Debian's rtla prints is imported with the counts that rtla itself tells",
        Machine::new("rt-6.1").cpus(2),
    )
    .tier(Tier::Two)
    .limit_s(240)
    .program("rtla")
    .script(runs.collect::<String>())
    .expect(imported)
    .other_word("timerlat hist -c 0-1", "timerlat hist -c 1", "timerlat-hist: series");
    vec![case]
}

fn imported(seen: &Evidence, expect: &mut Expect) -> Result<()> {
    for (name, _, format, series) in RUNS {
        expect.equal(&format!("{name}: exit code of rtla"), seen.rc(name)?, 0);
        let path = seen.path(&format!("{name}.out"))?;
        let all = Json::parse(name, &seen.rtproof(&["import", "--show", "--json"], &path)?)?;
        expect.equal(&format!("{name}: format"), all.text("/0/format"), format);
        let threads = all.list("/0/series");
        expect.equal(&format!("{name}: series"), threads.len(), *series);
        let counts: Vec<i64> = threads.iter().filter_map(|thread| thread["n"].as_i64()).collect();
        let text = seen.out(name)?;
        let told = told(&text).with_context(|| format!("{name}: no counts in {text:?}"))?;
        expect.that(&format!("{name}: something was measured"), "samples", told[0] > 0, &told);
        // A row of top has a count for all of its series.
        let each = counts.len() / told.len().max(1);
        let told: Vec<i64> = told.iter().flat_map(|&n| std::iter::repeat_n(n, each)).collect();
        expect.equal(&format!("{name}: counts"), counts, told);
    }
    Ok(())
}

/// Counts as rtla tells them: the line `count:` of hist, `#N` in the rows of top.
fn told(text: &str) -> Option<Vec<i64>> {
    if let Some(line) = text.lines().find_map(|line| line.strip_prefix("count:")) {
        return line.split_whitespace().map(|word| word.parse().ok()).collect();
    }
    let row = |line: &str| {
        let mut words = line.split_whitespace();
        words.next()?.parse::<u32>().ok()?;
        words.next()?.strip_prefix('#')?.parse().ok()
    };
    let counts: Vec<i64> = text.lines().filter_map(row).collect();
    (!counts.is_empty()).then_some(counts)
}
