//! S2: six kinds of work on each core alone and three at once, baseline and tuned. Which is better
//! is not judged here: the guest's clock is its host's.

use anyhow::Result;

use crate::case::{Case, Tier};
use crate::expect::Expect;
use crate::machine::Machine;
use crate::seen::{Evidence, Json};

/// Six workloads on three CPUs, two cells of three at once; idle and loaded; baseline and tuned.
const CELLS: usize = (6 * 3 + 2) * 2 * 2;

/// The example of the docs, shorter.
pub(super) fn case() -> Case {
    const MATRIX: &str = include_str!("../../../../examples/measure/s2.toml");
    let matrix = MATRIX.replace("for = \"10s\"", "for = \"1s\"\ntrace = false");
    Case::new(
        "measure/s2",
        "six workloads alone and at once, baseline and tuned, are one command and 80 sealed \
         records",
        Machine::new("rt-6.1").cpus(4).multi_threaded().memory_mib(1024),
    )
    .tier(Tier::Three)
    .limit_s(1500)
    .script(format!(
        "cat >/tmp/s2.toml <<'END'
{matrix}
END
         run s2 rtproof measure --matrix /tmp/s2.toml -o /tmp/s2
         cp /tmp/s2/index.json /host/
         run status rtproof tune status --json
         ls /tmp/s2/*.rtproof | wc -l >/host/records"
    ))
    .expect(whole)
    .other_word("for = \"1s\"", "for = \"1s\"\nrepeat = 2", "cells")
}

fn whole(seen: &Evidence, expect: &mut Expect) -> Result<()> {
    expect.equal("exit code", seen.rc("s2")?, 0);
    let index = Json::parse("index.json", &seen.text("index.json")?)?;
    seen.keep("s2.txt", &seen.out("s2")?)?;
    let cells = index.list("/cells");
    expect.equal("cells", cells.len(), CELLS);
    let done = cells.iter().filter(|cell| cell["state"] == "done").count();
    expect.equal("cells done", done, CELLS);
    expect.equal("records", seen.text("records")?.trim(), CELLS.to_string().as_str());
    let tuned = cells.iter().filter(|cell| cell["cell"]["condition"] == "tuned").count();
    expect.equal("tuned cells", tuned, CELLS / 2);
    let at_once =
        |cell: &&serde_json::Value| cell["threads"].as_array().is_some_and(|t| t.len() == 3);
    expect.equal("cells with three at once", cells.iter().filter(at_once).count(), 8);
    let threads = || cells.iter().filter_map(|cell| cell["threads"].as_array()).flatten();
    let counted = |thread: &&serde_json::Value| {
        let missed = thread["missed"].as_u64().unwrap_or(0);
        thread["samples"]["n"].as_u64().unwrap_or(0) + missed > 0
    };
    expect.equal("threads that counted nothing", threads().filter(|t| !counted(t)).count(), 0);
    Ok(())
}
