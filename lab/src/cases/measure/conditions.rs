//! Policies and conditions: a deadline among them, and everything twice, as the machine is and
//! tuned.

use anyhow::Result;

use crate::{
    case::{Case, Tier},
    cases::tune::tracking::{as_before, script},
    expect::Expect,
    machine::Machine,
    seen::Evidence,
};

/// Three policies, two conditions.
const CELLS: usize = 3 * 2;

pub(super) fn case() -> Case {
    Case::new(
        "measure/tuned",
        "other, fifo and deadline, as the machine is and tuned, are one command; afterwards every \
         value is as before",
        Machine::new("rt-6.1").cpus(2).multi_threaded(),
    )
    .tier(Tier::Two)
    .limit_s(300)
    .script(script(
        "odd; track first; track tracked.before
         run cells rtproof measure --policy other,fifo,deadline --cpus 1 --for 2s --no-trace \\
             --tuned -o /tmp/cells --json
         run status rtproof tune status --json
         for record in /tmp/cells/*.rtproof; do
             run report-$(basename $record | cut -c 1-3) rtproof report $record --json
         done
         track tracked.after",
    ))
    .expect(measured_in_both)
    .mutation("it stays tuned", "values that differ", |case| {
        let script = &mut case.boots[0].script;
        *script = script.replace("run status", "rtproof tune apply --cpus 1 --yes\nrun status");
    })
}

fn measured_in_both(seen: &Evidence, expect: &mut Expect) -> Result<()> {
    expect.equal("exit code", seen.rc("cells")?, 0);
    let index = seen.json("cells")?;
    let cells = index.list("/cells");
    expect.equal("cells", cells.len(), CELLS);
    let wanted = ["SCHED_OTHER", "SCHED_FIFO", "SCHED_DEADLINE"];
    for (number, cell) in cells.iter().enumerate() {
        let condition = if number < CELLS / 2 { "baseline" } else { "tuned" };
        let name = format!("cell {}, {condition}", number + 1);
        expect.equal(&format!("{name}: state"), cell["state"].as_str(), Some("done"));
        expect.equal(
            &format!("{name}: condition"),
            cell["cell"]["condition"].as_str(),
            Some(condition),
        );
        let thread = &cell["threads"][0];
        let policy = wanted[number % wanted.len()];
        expect.equal(&format!("{name}: policy"), thread["policy"].as_str(), Some(policy));
        let missed = thread["missed"].as_i64().unwrap_or(0);
        let n = thread["samples"]["n"].as_i64().unwrap_or(0);
        expect.within(&format!("{name}: n + missed in 2 s"), n + missed, 1990..=2000);
    }
    let same = |at: usize| cells.get(at).and_then(|cell| cell["same_machine"].as_bool());
    expect.equal("cell 3: facts as before it", same(2), Some(true));
    expect.equal("cell 4, the first that is tuned: facts", same(3), Some(false));
    as_before(seen, expect, ["first", "tracked.before", "tracked.after"])
}
