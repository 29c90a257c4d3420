//! Policies and conditions: a deadline among them, and everything twice, as the machine is and
//! tuned.

use anyhow::Result;

use crate::case::{Case, Tier};
use crate::cases::tune::tracking::{as_before, script};
use crate::expect::Expect;
use crate::machine::Machine;
use crate::seen::Evidence;

const POLICIES: [&str; 3] = ["SCHED_OTHER", "SCHED_FIFO", "SCHED_DEADLINE"];
/// Pairs of each: baseline and tuned, in turns.
const PAIRS: usize = 2;

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
             --tuned --repeat 2 -o /tmp/cells --json
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
    expect.equal("cells", cells.len(), POLICIES.len() * PAIRS * 2);
    let text = |cell: &serde_json::Value, at: &str| {
        cell.pointer(at).and_then(serde_json::Value::as_str).unwrap_or_default().to_owned()
    };
    for policy in POLICIES {
        for condition in ["baseline", "tuned"] {
            let of = cells.iter().filter(|cell| {
                text(cell, "/threads/0/policy") == policy
                    && text(cell, "/cell/condition") == condition
            });
            expect.equal(&format!("{policy}, {condition}: cells"), of.count(), PAIRS);
        }
    }
    let mut before = "baseline".to_owned();
    for (number, cell) in cells.iter().enumerate() {
        let condition = text(cell, "/cell/condition");
        let name = format!("cell {}, {condition}", number + 1);
        expect.equal(&format!("{name}: state"), cell["state"].as_str(), Some("done"));
        let missed = cell["threads"][0]["missed"].as_i64().unwrap_or(0);
        let n = cell["threads"][0]["samples"]["n"].as_i64().unwrap_or(0);
        expect.within(&format!("{name}: n + missed in 2 s"), n + missed, 1990..=2000);
        let is_same = cell["same_machine"].as_bool();
        if number > 0 {
            let wanted = Some(condition == before);
            expect.equal(&format!("{name}: facts as of the one before"), is_same, wanted);
        }
        before = condition;
    }
    expect.that(
        "comparison",
        "there",
        index.at("/compared").as_array().is_some_and(|all| !all.is_empty()),
        index.at("/compared"),
    );
    as_before(seen, expect, ["first", "tracked.before", "tracked.after"])
}
