//! The kernel's own tracers as workloads: what they measure, and that settings which the whole
//! machine shares are as they were, after an ordinary end and after a kill.

use anyhow::{Context, Result};
use serde_json::Value;

use crate::case::{Case, Tier};
use crate::expect::Expect;
use crate::machine::Machine;
use crate::seen::Evidence;

/// Functions of the script, and settings as only another tool leaves them.
const BEGIN: &str = "T=/sys/kernel/tracing
     guards() { grep -l 'rtproof[-]guard' /proc/[0-9]*/cmdline 2>/dev/null | cut -d / -f 3; }
     now() {
         {
             for file in current_tracer tracing_on tracing_thresh osnoise/cpus osnoise/options \\
                 osnoise/period_us osnoise/runtime_us osnoise/stop_tracing_us \\
                 osnoise/stop_tracing_total_us osnoise/timerlat_period_us osnoise/print_stack \\
                 hwlat_detector/mode hwlat_detector/width hwlat_detector/window; do
                 [ ! -e $T/$file ] || echo \"$file $(tr '\\n' ' ' <$T/$file)\"
             done
             echo \"instances $(ls $T/instances)\"
             echo \"old values $(ls /run | grep '[.]tracer$')\"
             echo \"threads $(grep -l -e ^timerlat/ -e ^osnoise/ -e ^hwlatd /proc/[0-9]*/comm | wc -l)\"
         } >/host/$1
     }
     under_way() {
         rtproof measure --workload $1 --cpus 1 --for 60s --no-trace -o /tmp/$2 >/dev/null 2>&1 &
         pid=$!
         until grep -qs ^$1 $T/instances/*/current_tracer; do sleep 0.1; done
         sleep 2
     }
     killed_with_guard() {
         kill -KILL $(guards)
         kill -KILL $pid
         wait $pid
     }
     cp $T/available_tracers /host/
     echo 0 >$T/osnoise/cpus
     echo 1777 >$T/osnoise/timerlat_period_us
     echo 900000 >$T/osnoise/stop_tracing_us
     echo 20 >$T/tracing_thresh
     [ ! -e $T/osnoise/options ] || echo NO_OSNOISE_WORKLOAD >$T/osnoise/options
     now before";

/// Its parts: an ordinary end; a kill; a kill of what waits for that as well, and the next start.
const PARTS: &str =
    "run ordinary rtproof measure --workload timerlat:irq,timerlat:thread,osnoise,hwlat \\
         --cpus 1 --for 3s --no-trace -o /tmp/ordinary --json
     now after.ordinary
     under_way timerlat one
     now during
     kill -KILL $pid
     wait $pid
     for round in 1 2 3 4 5 6 7 8 9 10; do [ -z \"$(guards)\" ] || sleep 0.5; done
     now after.guard
     run torn rtproof report /tmp/one/*.rtproof --json
     under_way timerlat two
     killed_with_guard
     now left.timerlat
     run next rtproof measure --workload timerlat --cpus 1 --for 1s --no-trace -o /tmp/next --json
     now after.next
     under_way hwlat three
     killed_with_guard
     now left.hwlat
     run last rtproof measure --workload hwlat --cpus 1 --for 2s --no-trace -o /tmp/last --json
     now after.last";

pub(super) fn cases() -> Vec<Case> {
    ["rt-6.1", "rt-7.2"].map(case).into()
}

fn case(kernel: &'static str) -> Case {
    Case::new(
        format!("measure/timerlat/{kernel}"),
        "timerlat, osnoise and hwlat measure; what they share with the machine is put back at the \
         end, by the guard after a kill, and by the next start where the guard was killed too",
        Machine::new(kernel).cpus(2),
    )
    .tier(Tier::Two)
    .limit_s(240)
    .script(format!("{BEGIN}\n{PARTS}"))
    .expect(measured_and_put_back)
    .other_word("run next rtproof", "run next echo", "after.next: as before")
    .mutation("the guard is killed, too", "after.guard: as before", |case| {
        let script = &mut case.boots[0].script;
        *script = script.replace("kill -KILL $pid\n     wait", "killed_with_guard\n     wait");
    })
}

fn measured_and_put_back(seen: &Evidence, expect: &mut Expect) -> Result<()> {
    for tracer in ["timerlat", "osnoise", "hwlat"] {
        expect.contains(
            &format!("the kernel has {tracer}"),
            &seen.text("available_tracers")?,
            tracer,
        );
    }
    ordinary(seen, expect)?;
    let before = seen.text("before")?;
    for name in ["after.ordinary", "after.guard", "after.next", "after.last"] {
        expect.equal(&format!("{name}: as before"), seen.text(name)?, before.clone());
    }
    let has = |name: &str, line: &str| -> Result<bool> {
        Ok(seen.text(name)?.lines().any(|l| l.trim_end() == line))
    };
    for (name, is_left) in [("during", "osnoise/cpus 1"), ("left.timerlat", "osnoise/cpus 1")] {
        expect.that(&format!("{name}: set for it"), is_left, has(name, is_left)?, seen.text(name));
    }
    let thresh = "tracing_thresh 1";
    expect.that(
        "left.hwlat: set for it",
        thresh,
        has("left.hwlat", thresh)?,
        seen.text("left.hwlat"),
    );
    let torn = seen.json("torn")?;
    expect.equal("killed: record", torn.text("/record/state"), "torn");
    expect.that(
        "killed: samples",
        "some",
        torn.number("/all/sampled")? > 0,
        torn.at("/all/sampled"),
    );
    Ok(())
}

/// What the four measured.
fn ordinary(seen: &Evidence, expect: &mut Expect) -> Result<()> {
    expect.equal("exit code", seen.rc("ordinary")?, 0);
    let index = seen.json("ordinary")?;
    expect.equal("cells", index.list("/cells").len(), 4);
    for cell in index.list("/cells") {
        let thread = &cell["threads"][0];
        let name = thread["workload"].as_str().unwrap_or_default();
        expect.equal(&format!("{name}: state"), cell["state"].as_str(), Some("done"));
        // Under virtual time osnoise's own loop takes 3 µs: each round is a gap above 1 µs, more
        // than can be read, which it says; and hwlat on 7.2 says at times that one of its windows
        // is lost.
        if name.starts_with("timerlat") {
            expect.equal(&format!("{name}: what could not be read"), notes_of_loss(cell), vec![]);
        }
        let n = thread["samples"]["n"].as_i64().unwrap_or(0);
        let missed = thread["missed"].as_i64().unwrap_or(0);
        let (min, max) = (&thread["samples"]["min_ns"], &thread["samples"]["max_ns"]);
        let extremes = (min.as_i64().unwrap_or(0), max.as_i64().unwrap_or(0));
        let plausible = extremes.0 > 0 && extremes.0 <= extremes.1 && extremes.1 < 1_000_000_000;
        expect.that(&format!("{name}: extremes"), "0 < min <= max < 1 s", plausible, extremes);
        match name.starts_with("timerlat") {
            // The run begins when the tracer is asked for: that it stands takes some 12 ms.
            true => expect.within(&format!("{name}: n + missed in 3 s"), n + missed, 2900..=3000),
            false => expect.that(&format!("{name}: n"), "some", n > 0, n),
        }
    }
    let mean = |at: usize| -> Result<f64> {
        let mean = index.at(&format!("/cells/{at}/threads/0/samples/mean_ns")).as_f64();
        mean.with_context(|| format!("cell {at} has no mean"))
    };
    let (irq, thread) = (mean(0)?, mean(1)?);
    expect.that(
        "the interrupt comes before its thread",
        "irq < thread",
        irq < thread,
        (irq, thread),
    );
    Ok(())
}

/// Notes of a cell that tell of samples which were not read.
fn notes_of_loss(cell: &Value) -> Vec<String> {
    let notes = cell["notes"].as_array().into_iter().flatten().filter_map(Value::as_str);
    notes.filter(|note| note.contains("could not be read")).map(str::to_owned).collect()
}
