//! A lock without priority inheritance that a real-time thread waits for, beside one that has it,
//! on real PREEMPT_RT kernels: by `rtproof explain --pid` and `rtproof run --rules`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::case::Case;
use crate::expect::Expect;
use crate::machine::Machine;
use crate::programs::compiled;
use crate::seen::{Evidence, Json};

const SOURCE: &str = include_str!("locks.c");

/// Of both: from when the thread left the CPU to when it was woken. The program counts until it
/// runs again.
const TOLERANCE_PERCENT: u64 = 5;

pub(super) fn case(kernel: &'static str) -> Case {
    Case::new(
        format!("launch/locks/{kernel}"),
        "the lock without priority inheritance is named with its holder and how long it was \
         waited for; the one beside it that has it is not accused",
        Machine::new(kernel).cpus(2),
    )
    .limit_s(300)
    .made("locks", program)
    .script(
        "locks plain >/host/explained & pid=$!
         run explain rtproof explain --pid $pid --for 12s --over 900ms --json
         wait $pid
         run rules rtproof run --dma-latency off --no-trace --policy other --cpus 1 \
             --place affinity --tune none --rules --json /tmp/o/rules.json -- locks plain",
    )
    .expect(named)
    .other_word("locks plain >", "locks both >", "explain: locks")
    .other_word("-- locks plain", "-- locks both", "rules: locks")
    .other_word("locks plain", "locks none", "explain: locks")
}

fn program(_: &Path, folder: &Path) -> Result<PathBuf> {
    let compiler = ["cc", "-O0", "-g", "-pthread", "-o", "locks", "locks.c"];
    compiled(folder, "locks.c", SOURCE, &compiler)
}

/// What the program wrote down of a lock.
#[derive(Debug)]
struct Own {
    address: u64,
    waiter: u64,
    holder: u64,
    count: u64,
    sum_ns: u64,
    worst_ns: u64,
}

/// Of the lock without priority inheritance, and of the one that has it.
fn own(text: &str) -> Result<[Own; 2]> {
    let numbers: Vec<u64> = text.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
    ensure!(numbers.len() == 12, "the program wrote {text:?}");
    let of = |n: &[u64]| {
        let [address, waiter, holder, count, sum_ns, worst_ns] = n.try_into().ok()?;
        Some(Own { address, waiter, holder, count, sum_ns, worst_ns })
    };
    let both = of(&numbers[..6]).zip(of(&numbers[6..])).context("twelve numbers")?;
    Ok([both.0, both.1])
}

fn near(came: &Value, own_ns: u64) -> bool {
    came.as_u64().is_some_and(|ns| ns.abs_diff(own_ns) * 100 <= own_ns * TOLERANCE_PERCENT)
}

fn is_its_line(at: &Value) -> bool {
    let line = at["line"].as_u64().unwrap_or(0) as usize;
    SOURCE.lines().nth(line.saturating_sub(1)).unwrap_or_default().contains("/* taken */")
}

fn named(seen: &Evidence, expect: &mut Expect) -> Result<()> {
    let explained = explain(seen, expect)?;
    let ruled = rules(seen, expect)?;
    println!("locks: {}: ms, rtproof and the program: {explained}; {ruled}", seen.release());
    Ok(())
}

fn explain(seen: &Evidence, expect: &mut Expect) -> Result<String> {
    let [plain, inheriting] = own(&seen.text("explained")?)?;
    let got = seen.json("explain")?;
    let locks = Json::parse("locks", &got.at("/locks").to_string())?;
    expect.equal("explain: exit code", seen.rc("explain")?, 0);
    expect.equal("explain: not known", locks.at("/unknown").to_string(), "[]".into());
    let addresses: Vec<_> = locks.list("/waits").iter().map(|of| of["address"].as_u64()).collect();
    expect.equal("explain: locks", addresses, vec![Some(plain.address)]);
    let of = |path: &str| locks.at(&format!("/waits/0/{path}")).clone();
    let parties = [of("waiter/tid"), of("waiter/name"), of("holder/tid"), of("holder/name")];
    let right = [plain.waiter.into(), "high".into(), plain.holder.into(), "low".into()];
    expect.equal("explain: waiter and holder", parties, right);
    let kind = [of("kind"), of("is_certain")];
    expect.equal("explain: kind", kind, ["pthread".into(), true.into()]);
    expect.equal("explain: waits", of("count").as_u64(), Some(plain.count));
    let worst = (of("worst_ns"), plain.worst_ns);
    expect.that("explain: longest wait", "the program's", near(&worst.0, worst.1), &worst);
    let sum = (of("sum_ns"), plain.sum_ns);
    expect.that("explain: all waits", "the program's", near(&sum.0, sum.1), &sum);
    // It works for 10 ms of its own time.
    let inversion_ns = of("inversion_ns").as_u64().unwrap_or(0);
    expect.within("explain: inversion, ms", inversion_ns as f64 / 1e6, 9.9..=11.0);
    let middle = of("meanwhile/instead/0/name");
    expect.equal("explain: who ran in its place", middle, "middle".into());
    expect.that("explain: its line", "/* taken */", is_its_line(&of("at")), of("at"));
    let result = got.text("/answer/result");
    expect.contains("explain: answer", result, "priority inversion of ");
    // The waits for the other lock are counted, and nobody is accused of them.
    let counted = locks.at("/others/inheriting").as_u64();
    expect.equal("explain: waits with inheritance", counted, Some(inheriting.count));
    let other = (locks.at("/others/inheriting_worst_ns").clone(), inheriting.worst_ns);
    expect.that("explain: the longest of these", "the program's", near(&other.0, other.1), &other);
    let ms = |ns: &Value| ns.as_f64().unwrap_or(0.0) / 1e6;
    Ok(format!(
        "explain {:.3} {:.3}, inversion {:.3}, with inheritance {:.3} {:.3}",
        ms(&worst.0),
        worst.1 as f64 / 1e6,
        inversion_ns as f64 / 1e6,
        ms(&other.0),
        other.1 as f64 / 1e6,
    ))
}

fn rules(seen: &Evidence, expect: &mut Expect) -> Result<String> {
    let [plain, _] = own(&seen.out("rules")?)?;
    let got = Json::parse("rules", &seen.text("rules.json")?)?;
    expect.equal("rules: exit code", seen.rc("rules")?, 2);
    expect.equal("rules: not known", got.at("/rules/unknown").to_string(), "[]".into());
    let threads = got.list("/rules/threads");
    let inheriting = threads.iter().any(|of| of["name"] == "pi-high");
    expect.that("rules: pi-high is judged", "one of the threads", inheriting, threads);
    let breaches = got.list("/rules/breaches");
    let text = |of: &Value, key: &str| of[key].as_str().unwrap_or_default().to_owned();
    let all: Vec<_> = breaches.iter().map(|of| (text(of, "rule"), text(of, "thread"))).collect();
    expect.equal("rules: locks", all, vec![("lock".to_owned(), "high".to_owned())]);
    let breach = breaches.first().unwrap_or(&Value::Null);
    expect.equal("rules: waiter", breach["tid"].as_u64(), Some(plain.waiter));
    let holder = format!("low:{}", plain.holder);
    expect.contains("rules: holder", &text(breach, "what"), &holder);
    expect.equal("rules: waits", breach["count"].as_u64(), Some(plain.count));
    let worst = &breach["worst_ns"];
    let holds = near(worst, plain.worst_ns);
    expect.that("rules: longest wait", "the program's", holds, (worst, plain.worst_ns));
    expect.that("rules: its line", "/* taken */", is_its_line(&breach["at"]), &breach["at"]);
    let ms = worst.as_f64().unwrap_or(0.0) / 1e6;
    Ok(format!("rules {ms:.3} {:.3}", plain.worst_ns as f64 / 1e6))
}
