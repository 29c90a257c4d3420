//! S3: a row a second of a periodic task under load, switched to SCHED_FIFO in mid-run by chrt.

use anyhow::{Context, Result};

use crate::case::{Case, Tier};
use crate::expect::Expect;
use crate::machine::Machine;
use crate::seen::Evidence;

/// The table, with the change in it. With nice 0 a thread that sleeps preempts the load as soon as
/// it is woken and may miss nothing; with 19 it waits for the load's slice.
pub(super) fn case() -> Case {
    Case::new(
        "measure/s3",
        "chrt -f in mid-run is marked within two seconds, and before and after are told apart",
        Machine::new("rt-6.1").cpus(2),
    )
    .tier(Tier::Two)
    .program("chrt")
    .script(
        "run rows rtproof measure --workload setitimer --policy other --cpus 1 --load cpu \
             --load-cpus 1 --for 12s --no-trace --rows -o /tmp/s3 &
         lab-plant wait-for --after 1s
         tid=$(sed -n 's/.*: thread \\([0-9]*\\) is .*/\\1/p' /tmp/o/rows.out)
         busybox renice -n 19 -p $tid
         lab-plant wait-for --after 5s
         /tmp/bin/chrt -f -p 1 $tid
         wait
         run report rtproof report /tmp/s3/*.rtproof --json",
    )
    .expect(marked)
    .other_word("/tmp/bin/chrt -f -p 1 $tid", "true", "marks")
}

/// To another CPU: allowed on both it would be wherever it is woken, and be ended as well.
pub(super) fn moved() -> Case {
    Case::new(
        "measure/s3-taskset",
        "taskset in mid-run is marked; a thread that was moved away is ended, and what it measured \
         before stays",
        Machine::new("rt-6.1").cpus(2),
    )
    .tier(Tier::Two)
    .program("taskset")
    .script(
        "run rows rtproof measure --workload setitimer --cpus 1 --for 20s --no-trace --rows \
             -o /tmp/s3 &
         lab-plant wait-for --after 4s
         tid=$(sed -n 's/.*: thread \\([0-9]*\\) is .*/\\1/p' /tmp/o/rows.out)
         /tmp/bin/taskset -p -c 0 $tid
         wait
         run report rtproof report /tmp/s3/*.rtproof --json",
    )
    .expect(followed)
    .other_word("taskset -p -c 0 $tid", "taskset -p -c 1 $tid", "marks")
}

fn followed(seen: &Evidence, expect: &mut Expect) -> Result<()> {
    let report = seen.json("report")?;
    let marks = report.list("/beside/marks");
    expect.equal("marks", marks.len(), 1);
    let mark = marks.first().context("no mark")?;
    expect.equal("mark: kind", mark["kind"].as_str(), Some("affinity"));
    expect.equal("mark: before", mark["before"].as_str(), Some("CPU 1"));
    expect.equal("mark: after", mark["after"].as_str(), Some("CPU 0"));
    expect.contains("row", &seen.out("rows")?, "changed from outside: may run on CPU 0");
    let notes = report.list("/notes").iter();
    let lost = notes.filter(|note| note["id"] == "cpu-lost").count();
    expect.equal("notes of a thread that was moved away", lost, 1);
    // 4 s with its CPU, at most one more until that is seen; of 20 s.
    let sum = report.number("/all/sampled")? + report.number("/all/missed")?;
    expect.within("what it measured before stays", sum, 3_500..=7_000);
    Ok(())
}

fn marked(seen: &Evidence, expect: &mut Expect) -> Result<()> {
    seen.keep("s3.txt", &seen.out("rows")?)?;
    expect.equal("exit code", seen.rc("rows")?, 0);
    let report = seen.json("report")?;
    let marks = report.list("/beside/marks");
    expect.equal("marks: renice, chrt", marks.len(), 2);
    let mark = marks.get(1).context("no second mark")?;
    expect.equal("mark before", mark["before"].as_str(), Some("SCHED_OTHER nice 19"));
    expect.equal("mark after", mark["after"].as_str(), Some("SCHED_FIFO 1"));
    let width = mark["at_ns"].as_i64().unwrap_or(0) - mark["since_ns"].as_i64().unwrap_or(0);
    expect.within("noticed within, ns", width, 1..=2_000_000_000);
    expect.contains("row", &seen.out("rows")?, "changed from outside: SCHED_FIFO 1");
    let segments = report.list("/beside/segments");
    expect.equal("segments", segments.len(), 3);
    let missed = |at: usize| segments.get(at).and_then(|s| s["missed"].as_i64());
    let (before, after) = (missed(1).context("before")?, missed(2).context("after")?);
    expect.that("missed: fewer as SCHED_FIFO", "before > after", before > after, (before, after));
    Ok(())
}
