//! The tools that are compared: how each is run, and how many wake-ups it counted.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::Context;
use serde_json::Value;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tool {
    /// The loop of `bare.rs`.
    Bare,
    /// `rtproof prove`, recording kernel events.
    Rtproof,
    Cyclictest,
    Jitterdebugger,
    /// `rtproof prove --no-trace`.
    Untraced,
}

impl Tool {
    /// All, each at the place of its number.
    pub(crate) const ALL: [Self; 5] =
        [Self::Bare, Self::Rtproof, Self::Cyclictest, Self::Jitterdebugger, Self::Untraced];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Bare => "bare loop",
            Self::Rtproof => "rtproof prove",
            Self::Cyclictest => "cyclictest -q -h 1000",
            Self::Jitterdebugger => "jitterdebugger",
            Self::Untraced => "rtproof prove --no-trace",
        }
    }
}

/// How a tool is to run.
#[derive(Clone, Debug)]
pub(crate) struct Order<'a> {
    pub(crate) rtproof: &'a Path,
    pub(crate) cpu: u32,
    pub(crate) period_us: u64,
    pub(crate) seconds: u64,
}

/// What a run gave.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ran {
    /// User and system time of the whole process, nanoseconds.
    pub(crate) cpu_ns: f64,
    /// Wake-ups it counted.
    pub(crate) n: f64,
    /// CPU time of the measuring thread alone, where the tool tells it.
    pub(crate) thread_cpu_ns: Option<f64>,
    /// Median latency in microseconds, where the tool tells it.
    pub(crate) p50_us: Option<f64>,
}

/// Runs a tool to its end.
pub(crate) fn run(tool: Tool, order: &Order<'_>) -> anyhow::Result<Ran> {
    let folder = tempfile::tempdir()?;
    let (program, args) = command(tool, order, folder.path())?;
    // bash's `time` gives the CPU time of the process that it waited for, and of no other.
    let script = "TIMEFORMAT='%U %S'; exec 3>&1; time \"$@\" >&3 2>/dev/null";
    let output = Command::new("bash")
        .args(["-c", script, "bash"])
        .arg(&program)
        .args(&args)
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("{}: cannot run; is it installed?", program.display()))?;
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    let times = String::from_utf8_lossy(&output.stderr);
    let cpu_s: f64 = times.split_whitespace().filter_map(|text| text.parse::<f64>().ok()).sum();
    anyhow::ensure!(cpu_s > 0.0, "{}: no CPU time in \"{times}\"\n{stdout}", tool.name());
    let ran = result(tool, &stdout, folder.path())
        .with_context(|| format!("{}: output not understood:\n{stdout}", tool.name()))?;
    Ok(Ran { cpu_ns: cpu_s * 1e9, ..ran })
}

fn command(tool: Tool, order: &Order<'_>, folder: &Path) -> anyhow::Result<(PathBuf, Vec<String>)> {
    let Order { cpu, period_us, seconds, .. } = order;
    let words = |text: String| text.split_whitespace().map(String::from).collect();
    Ok(match tool {
        Tool::Bare => {
            let own = std::env::current_exe()?;
            let own = own.display();
            let args = format!("-f 80 taskset -c {cpu} {own} bare {period_us} {seconds}");
            ("chrt".into(), words(args))
        }
        Tool::Rtproof | Tool::Untraced => {
            let trace = if tool == Tool::Untraced { " --no-trace" } else { "" };
            let args = format!(
                "prove --cpus {cpu} --period {period_us}us --for {seconds}s --load idle \
                 -o {}/run{trace}",
                folder.display()
            );
            (std::path::absolute(order.rtproof)?, words(args))
        }
        Tool::Cyclictest => {
            let args = format!(
                "-a {cpu} -t 1 -p 80 -m -q -h 1000 -i {period_us} -D {seconds} --json=result.json"
            );
            ("cyclictest".into(), words(args))
        }
        Tool::Jitterdebugger => {
            let mask = 1_u64 << cpu;
            let args = format!("-a {mask:#x} -p 80 -i {period_us} -D {seconds}s -o result");
            ("jitterdebugger".into(), words(args))
        }
    })
}

fn result(tool: Tool, stdout: &str, folder: &Path) -> anyhow::Result<Ran> {
    match tool {
        Tool::Bare => Ok(Ran { n: stdout.trim().parse()?, ..Ran::default() }),
        Tool::Rtproof | Tool::Untraced => {
            let opened = rtproof_record::read(&folder.join("run.rtproof"))?;
            let thread = opened.run.threads.first().context("no thread")?;
            let p50 = thread.wake.value_at_rank(thread.wake.total().div_ceil(2));
            Ok(Ran {
                n: thread.totals.wake.count() as f64,
                thread_cpu_ns: thread.end.as_ref().map(|end| end.cpu_time_ns as f64),
                p50_us: p50.map(|ns| ns as f64 / 1000.0),
                ..Ran::default()
            })
        }
        Tool::Cyclictest => from_histogram(&folder.join("result.json"), "thread", "cycles"),
        Tool::Jitterdebugger => from_histogram(&folder.join("result/results.json"), "cpu", "count"),
    }
}

/// Count and median from the histogram of whole microseconds that both peers write. Their values
/// are cut off, so half a microsecond is added.
fn from_histogram(path: &Path, threads: &str, count: &str) -> anyhow::Result<Ran> {
    #[expect(clippy::disallowed_methods, reason = "a file that the peer just wrote for us")]
    let text = std::fs::read_to_string(path)?;
    let json: Value = serde_json::from_str(&text)?;
    let thread = &json[threads]["0"];
    let histogram = thread["histogram"].as_object().context("no histogram")?;
    let mut buckets: Vec<(u64, u64)> =
        histogram.iter().filter_map(|(us, n)| Some((us.parse().ok()?, n.as_u64()?))).collect();
    buckets.sort_unstable();
    let n = thread[count].as_u64().context("no count")?;
    let mut seen = 0;
    let p50 = buckets.iter().find(|(_, n_here)| {
        seen += n_here;
        seen >= n.div_ceil(2)
    });
    Ok(Ran { n: n as f64, p50_us: p50.map(|&(us, _)| us as f64 + 0.5), ..Ran::default() })
}
