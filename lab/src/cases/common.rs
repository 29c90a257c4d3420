//! Expectations that many cases share.

use crate::expect::Expect;
use crate::seen::Json;

/// scheduled = sampled + missed: for every thread, for all together, and no period lost between the
/// two. `n` is the number of measured CPUs.
pub(super) fn adds_up(expect: &mut Expect, name: &str, report: &Json, cpus: usize) {
    expect.equal(&format!("{name}: measured CPUs"), report.list("/cpus").len(), cpus);
    let mut total = 0;
    for (number, cpu) in report.list("/cpus").iter().enumerate() {
        let value = |path: &str| cpu.pointer(path).and_then(serde_json::Value::as_i64);
        let (sampled, missed) = (value("/measured/sampled"), value("/measured/missed"));
        let sum = sampled.zip(missed).map(|(sampled, missed)| sampled + missed);
        let what = format!("{name}: thread {number}: sampled + missed = scheduled");
        let scheduled = value("/measured/scheduled");
        expect.that(&what, "equal", sum.is_some() && sum == scheduled, (sum, scheduled));
        total += sum.unwrap_or(0);
    }
    expect.that(&format!("{name}: something was measured"), "samples", total > 0, total);
    let all = report.at("/all/scheduled").as_i64();
    expect.equal(&format!("{name}: sum over the threads"), all, Some(total));
}

/// The record is whole: written to its end and sealed.
pub(super) fn sealed(expect: &mut Expect, name: &str, report: &Json) {
    expect.equal(&format!("{name}: record"), report.text("/record/state"), "sealed");
    expect.equal(&format!("{name}: ended"), report.text("/run/ended/how"), "complete");
}
