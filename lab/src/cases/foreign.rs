//! Traces that others recorded: the kernel's own tracers watch what rtproof measures while a cause
//! is planted; `explain` reads them in every form, with fewer and fewer events, and cut.

use std::{
    fmt::Write,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};
use serde_json::Value;

use super::planted::{
    DAEMON, DELIVERY, HARD_IRQ, INTERRUPT, IRQS_OFF, LEAST_NS, LOCK, NEIGHBOUR, PREEMPT_OFF,
    Planted, SOFT_IRQ,
};
use crate::blame::Stretches;
use crate::case::{Case, Tier};
use crate::expect::Expect;
use crate::machine::Machine;
use crate::seen::Evidence;

/// What an instance of tracefs records, in a boot of its own: its name, its tracer, its events.
const RECORDED: &[(&str, &str, &str)] = &[
    ("everything", "nop", "sched irq irq_vectors timer workqueue power signal nmi ipi"),
    ("functions", "function", "sched/sched_switch sched/sched_waking irq irq_vectors timer"),
    ("wakeup_rt", "wakeup_rt", ""),
    ("timerlat", "timerlat", "osnoise"),
];

/// How the text is printed: the options that are set for it.
const PRINTED: &[(&str, &str)] = &[
    ("plain", ""),
    ("latency", "latency-format"),
    ("verbose", "latency-format verbose"),
    ("bare", "noirq-info"),
];

/// How trace-cmd prints its file.
const REPORTED: &[&[&str]] = &[&[], &["-t"], &["-l"], &["-R"], &["--ts-diff"], &["-t", "-l"]];

/// Events that are left in a text; those that begin so, without those that end so.
struct Left {
    name: &'static str,
    begins: &'static [&'static str],
    without: &'static str,
    /// Whether the kernel says of interrupts and softirqs when they begin and end.
    interrupts: bool,
    /// Lines that are gone though the others of their kind are there, by their number.
    gone: fn(usize, &str) -> bool,
    /// Whether the cause shows nevertheless.
    shows: bool,
}

/// As some kernels do: without the switches from the idle task.
fn leaves_idle(_: usize, line: &str) -> bool {
    line.contains("sched_switch") && line.contains("prev_pid=0 ")
}

/// As people do: lines here and there, and nothing marks them.
fn is_thinned_out(at: usize, line: &str) -> bool {
    at.is_multiple_of(29) || line.contains("entries-in-buffer")
}

const SCHEDULER: &[&str] = &["sched_switch", "sched_waking"];
const INTERRUPTS: &[&str] = &[
    "sched_switch",
    "sched_waking",
    "irq_handler",
    "softirq_e",
    "local_timer",
    "irq_work",
    "reschedule",
    "call_function",
];
const TIMERS: &[&str] = &[
    "sched_switch",
    "sched_waking",
    "irq_handler",
    "softirq_e",
    "local_timer",
    "irq_work",
    "reschedule",
    "call_function",
    "hrtimer_",
    "timer_expire",
];
const ALL: Left = Left {
    name: "all",
    begins: &[""],
    without: "\0",
    interrupts: true,
    gone: |_, _| false,
    shows: true,
};
const LEFT: &[Left] = &[
    ALL,
    Left { name: "timers", begins: TIMERS, ..ALL },
    Left { name: "interrupts", begins: INTERRUPTS, ..ALL },
    Left { name: "no-ends", begins: TIMERS, without: "_exit", interrupts: false, ..ALL },
    Left { name: "scheduler", begins: SCHEDULER, interrupts: false, ..ALL },
    Left { name: "switches", begins: &["sched_switch"], interrupts: false, ..ALL },
    Left { name: "idle-out", gone: leaves_idle, ..ALL },
    Left { name: "thinned", gone: is_thinned_out, shows: false, ..ALL },
];
/// Parts of a text, in hundredths of its lines: whole, and cut at either end.
const PARTS: &[(usize, usize)] = &[(0, 100), (0, 37), (0, 74), (19, 100), (53, 100), (31, 69)];

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for planted in [DAEMON, NEIGHBOUR, LOCK, IRQS_OFF, PREEMPT_OFF, HARD_IRQ, INTERRUPT] {
        cases.push(case(planted, "rt-6.1"));
    }
    for planted in [DAEMON, IRQS_OFF, PREEMPT_OFF, HARD_IRQ, SOFT_IRQ, DELIVERY] {
        cases.push(case(planted, "stock-6.1"));
    }
    for planted in [DAEMON, IRQS_OFF, HARD_IRQ, SOFT_IRQ] {
        cases.push(case(planted, "stock-7.2"));
    }
    cases
}

fn case(planted: Planted, kernel: &'static str) -> Case {
    let plant = || (planted.plant)().cpu(0).lasting_ms(1_500).times(12);
    let case = Case::new(
        format!("foreign/{}/{kernel}", planted.name),
        "traces of others are explained right, and nothing is certain that they cannot show",
        Machine::new(kernel),
    )
    .tier(Tier::Two)
    .limit_s(300)
    .program("trace-cmd");
    let boots = RECORDED.iter().enumerate().fold(case, |case, (at, recorded)| {
        let case = if at == 0 { case } else { case.then_again() };
        case.plant(plant()).script(script(*recorded))
    });
    boots.expect(move |seen, expect| judged(seen, expect, &planted)).mutation(
        "another cause is planted",
        "false certainties",
        move |case| {
            for boot in &mut case.boots {
                boot.plants = vec![(planted.other)().cpu(0).lasting_ms(1_500).times(12)];
            }
        },
    )
}

fn script((name, tracer, events): (&str, &str, &str)) -> String {
    let mut script = String::from(
        "T=/sys/kernel/tracing
         record() {
             d=$T/instances/$1
             mkdir $d
             echo 0 >$d/tracing_on
             echo mono >$d/trace_clock
             echo 16384 >$d/buffer_size_kb
             for event in $3; do echo 1 >$d/events/$event/enable; done 2>/dev/null
             for function in '*rtproof_plant*' hrtimer_interrupt net_rx_action; do
                 [ $2 != function ] || echo $function >>$d/set_ftrace_filter
             done 2>/dev/null
             echo $2 >$d/current_tracer || rmdir $d
         } 2>/dev/null
         print_as() {
             for d in $T/instances/?*; do
                 [ -e $d/trace ] || continue
                 for option in $2; do echo $option >$d/trace_options; done
                 cat $d/trace >/host/${d##*/}.$1.txt
                 echo nolatency-format >$d/trace_options
                 echo noverbose >$d/trace_options
                 echo irq-info >$d/trace_options
             done
         }
         [ ! -e /host/module.ko ] || insmod /host/module.ko 2>/dev/null
         echo 0 >$T/tracing_max_latency\n",
    );
    let _ = writeln!(script, "record {name} {tracer} '{events}'");
    script.push_str(
        "switch() {
             for d in $T/instances/?*; do [ ! -e $d/trace ] || echo $1 >$d/tracing_on; done
         }
         switch 1
         prove run --for 2s --period 1ms --budget 200us --load idle --cpus 0
         switch 0\n",
    );
    for (name, options) in PRINTED {
        let _ = writeln!(script, "print_as {name} '{options}'");
    }
    script.push_str(
        "[ ! -e $T/instances/everything ] || {
             trace-cmd extract -B everything -o /tmp/everything.dat
             cp /tmp/everything.dat /host/
         } >/host/extract.txt 2>&1",
    );
    script
}

/// What came of all traces of a case.
#[derive(Debug, Default)]
struct Counted {
    traces: usize,
    /// Spikes of the measured thread, or of timerlat's, in which the plant acted.
    planted: usize,
    /// Of those, where the trace holds what shows the plant.
    shown: usize,
    /// Of those, with the planted cause and culprit first.
    right: usize,
    wrong: Vec<String>,
    /// Shares of planted spikes that are certain and are not the plant's.
    false_certain: Vec<String>,
}

fn judged(seen: &Evidence, expect: &mut Expect, planted: &Planted) -> Result<()> {
    let mut counted = Counted::default();
    for boot in seen.boots() {
        let truth = boot.truth()?;
        let books = truth.iter().map(|line| Stretches::of_truth(line.at(""), planted.told));
        let acted = books.fold(Stretches::default(), Stretches::with);
        let mut files: Vec<PathBuf> =
            fs::read_dir(&boot.share)?.flatten().map(|entry| entry.path()).collect();
        files.sort();
        for file in files {
            let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let is_text = PRINTED.iter().any(|(form, _)| name.ends_with(&format!("{form}.txt")));
            if name.ends_with(".dat") {
                let of = Trace { file: &file, name, acted: &acted, before_ns: 0, shows: true };
                of.judge(seen, planted, &mut counted)?;
                for options in REPORTED {
                    let report = file.with_file_name("part");
                    fs::write(&report, reported(&file, options)?)?;
                    let name = format!("trace-cmd report {}", options.join(" "));
                    let of = Trace { file: &report, name, ..of };
                    of.judge(seen, planted, &mut counted)?;
                }
            } else if is_text {
                text(&file, &acted, seen, planted, &mut counted)
                    .with_context(|| file.display().to_string())?;
            }
        }
    }
    let Counted { traces, planted: spikes, shown, right, wrong, false_certain } = counted;
    println!("{traces} traces, {spikes} planted spikes, {right} right of {shown} that it shows");
    expect.that("traces", "40 at least", traces >= 40, traces);
    expect.that("planted spikes", "200 at least", spikes >= 200, spikes);
    let few = |list: &[String]| list.iter().take(5).cloned().collect::<Vec<_>>();
    expect.that("false certainties", "none", false_certain.is_empty(), few(&false_certain));
    let is_right = right * 100 >= shown * 98;
    expect.that("the planted cause first", "98 %", is_right, (right, shown, few(&wrong)));
    Ok(())
}

/// What trace-cmd prints of its file.
fn reported(file: &Path, options: &[&str]) -> Result<Vec<u8>> {
    let mut command = Command::new("trace-cmd");
    command.arg("report").arg("-i").arg(file).args(options);
    Ok(command.output().context("run trace-cmd: run `make deps`")?.stdout)
}

/// A text in all that can be left of it.
fn text(
    file: &Path,
    acted: &Stretches,
    seen: &Evidence,
    planted: &Planted,
    counted: &mut Counted,
) -> Result<()> {
    let whole = fs::read_to_string(file)?;
    let form = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let (of, printed) = form.split_once('.').context("NAME.FORM.txt")?;
    let plain = fs::read_to_string(file.with_file_name(format!("{of}.plain.txt")))?;
    let before_ns = first_ns(&plain).zip(first_ns(&whole)).map_or(0, |(a, b)| a.saturating_sub(b));
    let of_events = of == "everything";
    for left in LEFT.iter().filter(|left| of_events || left.name == "all") {
        for &(from, to) in PARTS {
            // Every set of events once, and every form once.
            let is_whole = (from, to) == (0, 100);
            if !is_whole && printed != "plain" || left.name != "all" && printed == "bare" {
                continue;
            }
            let part = left.of(&whole, from, to);
            let name = format!("{form}.{}.{from}-{to}", left.name);
            let path = file.with_file_name("part");
            fs::write(&path, part)?;
            let by_scheduler = ["preempted", "queued", "priority-inheritance"];
            let is_task = planted.causes.iter().any(|cause| by_scheduler.contains(cause));
            // wakeup_rt records the one switch at its end, and timerlat no function of a timer.
            let is_raised = planted.causes == ["priority-inheritance"];
            let has = if is_raised {
                of_events && left.name == "all"
            } else {
                left.interrupts || is_task
            };
            // Whether preemption was off the flags alone tell: timerlat's text has no priorities.
            let is_held = planted.causes == ["preempt-off"] && form == "timerlat.bare";
            let shows = is_whole && of != "wakeup_rt" && has && !is_held && left.shows;
            let trace = Trace { file: &path, name, acted, before_ns, shows };
            trace.judge(seen, planted, counted)?;
        }
    }
    Ok(())
}

impl Left {
    /// The lines that are left of a part of a text.
    fn of(&self, text: &str, from: usize, to: usize) -> String {
        let count = text.lines().count();
        let (from, to) = (count * from / 100, count * to / 100);
        let lines = text.lines().enumerate().filter(|(at, line)| {
            let is_header = from == 0 && line.starts_with('#');
            (is_header || (from..to).contains(at) && self.has(line)) && !(self.gone)(*at, line)
        });
        lines.fold(String::new(), |text, (_, line)| text + line + "\n")
    }

    fn has(&self, line: &str) -> bool {
        let words = || line.split(": ").skip(1).filter(|word| !word.contains([' ', '=']));
        let begins = |word: &str| self.begins.iter().any(|name| word.starts_with(name));
        self.begins == ALL.begins
            || words().any(|word| begins(word) && !word.ends_with(self.without))
    }
}

/// Time of the first entry: seconds, or microseconds or milliseconds since the trace began.
fn first_ns(text: &str) -> Option<u64> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let mut words = lines.flat_map(str::split_whitespace);
    words.find_map(|word| {
        let number =
            |word: &str, unit: f64| Some((word.parse::<f64>().ok()? * unit).round() as u64);
        let is_us = word.find("us").filter(|at| word.len() - at <= 4);
        match (is_us, word.strip_suffix("ms"), word.strip_suffix(':')) {
            (Some(at), ..) => number(&word[..at], 1e3),
            (_, Some(ms), _) => number(ms, 1e6),
            (_, _, Some(seconds)) if seconds.contains('.') => number(seconds, 1e9),
            _ => None,
        }
    })
}

/// One trace to be explained.
struct Trace<'a> {
    file: &'a Path,
    name: String,
    acted: &'a Stretches,
    /// From the clock of the plants to that of the trace.
    before_ns: u64,
    /// Whether it holds what shows the plant.
    shows: bool,
}

impl Trace<'_> {
    fn judge(&self, seen: &Evidence, planted: &Planted, counted: &mut Counted) -> Result<()> {
        counted.traces += 1;
        let arguments = ["explain", "--json", "--over", "300us", "--worst", "1000"];
        let of_thread = ["--task", "rtproof/0"];
        let is_own = ["timerlat", "wakeup_rt"].iter().any(|name| self.name.starts_with(name));
        let arguments = arguments.iter().chain(of_thread.iter().filter(|_| !is_own));
        let arguments: Vec<&str> = arguments.copied().collect();
        let Ok(told) = seen.rtproof(&arguments, self.file) else {
            // Nothing is left of it: refused.
            return Ok(());
        };
        let told: Value = serde_json::from_str(&told).with_context(|| self.name.clone())?;
        for spike in told["spikes"]["worst"].as_array().into_iter().flatten() {
            self.spike(&spike["explanation"], planted, counted);
        }
        Ok(())
    }

    fn spike(&self, told: &Value, planted: &Planted, counted: &mut Counted) {
        let ns = |name: &str| told["wake"][name].as_u64().unwrap_or(0) + self.before_ns;
        let (due_ns, ran_ns) = (ns("due_ns"), ns("ran_ns"));
        let latency_ns = ran_ns.saturating_sub(due_ns);
        let task = told["task"].as_str().unwrap_or("");
        let is_subject = task.starts_with("rtproof/0") || task.starts_with("timerlat");
        let acted_ns = self.acted.overlap_ns(due_ns, ran_ns);
        if !is_subject || latency_ns < LEAST_NS || acted_ns * 100 < latency_ns * 60 {
            return;
        }
        counted.planted += 1;
        let text = |share: &Value, key: &str| share[key].as_str().unwrap_or("").to_owned();
        let is_cause = |share: &Value| planted.causes.contains(&text(share, "cause").as_str());
        // Names may be cut to eight characters, and ranks are not recorded.
        let is_culprit = |share: &Value| {
            let culprit = text(share, "culprit").replace('_', " ").to_lowercase();
            let has = |name: &&&str| {
                let name = name.replace('_', " ").to_lowercase();
                culprit.contains(&name[..name.len().min(8)])
            };
            culprit.is_empty()
                || culprit.contains("not recorded")
                // Raw reports have addresses.
                || culprit.starts_with("0x")
                || planted.culprit.first().as_ref().is_none_or(has)
        };
        let shares = told["shares"].as_array().map_or(&[][..], Vec::as_slice);
        let place = || {
            format!(
                "{}: {} µs: {}",
                self.name,
                latency_ns / 1000,
                shares.first().map_or(String::new(), |share| format!(
                    "{} {}",
                    text(share, "cause"),
                    text(share, "culprit")
                ),)
            )
        };
        let is_false = |share: &&Value| {
            share["certainty"] == "certain"
                && !is_cause(share)
                // The rest of the spike may have another cause.
                && share["ns"].as_u64().unwrap_or(0) > latency_ns * 2 / 5
        };
        if shares.iter().any(|share| is_false(&share)) {
            counted.false_certain.push(place());
        }
        if self.shows {
            counted.shown += 1;
            match shares.first().filter(|share| is_cause(share) && is_culprit(share)) {
                Some(_) => counted.right += 1,
                None => counted.wrong.push(place()),
            }
        }
    }
}
