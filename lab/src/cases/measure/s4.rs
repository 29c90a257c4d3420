//! S4: a stock and a real-time kernel under the same load, compared. Two guests of one host: the
//! form is shown, and which is later; neither figure is that of a machine.

use anyhow::{Context, Result};

use crate::case::{Case, Tier};
use crate::expect::Expect;
use crate::machine::Machine;
use crate::seen::{Evidence, Json};

/// The same in both guests. Its load runs on both CPUs.
const SCRIPT: &str =
    "run s4 rtproof measure --workload nanosleep-relative --policy fifo --cpus 1 \\
         --load cpu+memory+net --load-cpus 0-1 --for 5s --no-trace -o /tmp/s4 --json
     cp /tmp/s4/*.rtproof /host/s4.rtproof";

pub(super) fn case() -> Case {
    Case::new(
        "measure/s4",
        "two commands on two kernels and one comparison: moments, percentiles, the facts that \
         differ, a picture; one run each decides nothing",
        Machine::new("stock-6.1").cpus(2),
    )
    .tier(Tier::Three)
    .limit_s(600)
    .script(SCRIPT)
    .then_on(Machine::new("rt-6.1").cpus(2))
    .script(SCRIPT)
    .expect(compared)
    .mutation("the same kernel twice", "facts that differ: PREEMPT_RT", |case| {
        case.boots[0].machine.kernel = "rt-6.1";
    })
}

fn compared(seen: &Evidence, expect: &mut Expect) -> Result<()> {
    let records: Vec<_> = seen.boots().iter().map(|boot| boot.share.join("s4.rtproof")).collect();
    let [stock, rt] = &records[..] else { anyhow::bail!("two boots, not {}", records.len()) };
    let page = stock.with_file_name("s4.html");
    let named = format!("stock={}", stock.display());
    let rt = format!("rt={}", rt.display());
    let path = page.display().to_string();
    let words = |last: &[&'static str]| -> Result<String> {
        let arguments = [&["compare", named.as_str()], last].concat();
        seen.rtproof(&arguments, rt.as_ref())
    };
    let comparison = Json::parse("compare", &words(&["--json"])?)?;
    let text = {
        let arguments = ["compare", named.as_str(), "--html", path.as_str()];
        seen.rtproof(&arguments, rt.as_ref())?
    };
    println!("{text}");
    seen.keep("s4.txt", &text)?;
    let html = std::fs::read_to_string(&page).with_context(|| path.clone())?;
    seen.keep("s4.html", &html)?;
    expect.contains("picture", &html, "<svg");
    expect.equal("answer", comparison.text("/result"), "cannot_decide");
    for word in ["mean", "sd", "skew", "kurtosis", "p50", "p99", "p99.9", "max"] {
        expect.contains(&format!("told: {word}"), &text, word);
    }
    expect.contains(
        "facts that differ: PREEMPT_RT",
        &text,
        "kernel.config.PREEMPT_RT: not there | y",
    );
    Ok(())
}
