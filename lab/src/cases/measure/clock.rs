//! A run by the wall clock while it is set: an hour back, and a second later forward again.

use crate::case::Case;
use crate::cases::common;
use crate::machine::Machine;
use crate::plants::Plant;

pub(super) fn case() -> Case {
    Case::new(
        "measure/clock-set/rt-6.1",
        "by CLOCK_REALTIME a step of that clock is noted and is no latency, and the run is as long \
         as it was to be",
        Machine::new("rt-6.1"),
    )
    .plant(Plant::clock_step_ms(-3_600_000))
    .script(
        "prove run --clock realtime --for 3s --budget 500us --load idle --cpus 0
         run cells rtproof measure --clock tai --cpus 0 --for 1s --no-trace -o /tmp/cells --json
         date >/host/date",
    )
    .expect(|seen, expect| {
        let report = seen.report("run")?;
        common::adds_up(expect, "run", &report, 1);
        common::sealed(expect, "run", &report);
        expect.equal("late wake-ups", report.number("/all/late")?, 0);
        expect.equal("clock in the record", report.text("/options/clock"), "realtime");
        let texts: Vec<String> = report
            .list("/notes")
            .iter()
            .filter(|note| note["id"] == "clock-set")
            .map(|note| note["text"].to_string())
            .collect();
        let told = texts.join("\n");
        for part in ["CLOCK_REALTIME was set: once", "back by", "ahead by"] {
            expect.contains(&format!("told: {part}"), &told, part);
        }
        // The thread is roused at once: at most the cycles of a few milliseconds are left out.
        expect.within("wake-ups due", report.number("/all/scheduled")?, 2_950..=3_000);
        expect.equal("by CLOCK_TAI", seen.rc("cells")?, 0);
        expect.equal("plants that worked", seen.truth()?.len(), 1);
        Ok(())
    })
    .unplanted("told: CLOCK_REALTIME was set: once")
}
