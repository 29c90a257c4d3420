//! Auditing: `rtproof check` beside rtcqs and `tuned-adm verify`, in turn. What each of them looks
//! at differs by an order of magnitude, so the number of checks stands beside the times.

use std::{
    io::Write,
    path::Path,
    process::{Command, Stdio},
};

use anyhow::Context;

use crate::numbers::spread;

struct Tool {
    name: &'static str,
    checks: String,
    command: Vec<String>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Ran {
    pub(crate) wall_ms: f64,
    pub(crate) cpu_ms: f64,
}

/// Runs the rounds and prints the table.
pub(crate) fn run(out: &mut impl Write, rtproof: &Path, rounds: u32) -> anyhow::Result<()> {
    let tools = tools(rtproof)?;
    let mut runs: Vec<Vec<Ran>> = vec![Vec::new(); tools.len()];
    // The first of each fills the caches.
    for tool in &tools {
        time(&tool.command)?;
    }
    for round in 0..rounds as usize {
        for place in 0..tools.len() {
            let which = (place + round) % tools.len();
            runs[which].push(time(&tools[which].command)?);
        }
    }
    writeln!(out, "Auditing this machine, {rounds} rounds; median (quartiles; range)\n")?;
    writeln!(out, "| tool | checks | wall, ms | CPU, ms | ratio of CPU | largest resident, KiB |")?;
    writeln!(out, "|---|---|---|---|---|---|")?;
    for (at, tool) in tools.iter().enumerate() {
        let column = |of: &dyn Fn(usize) -> f64, decimals: usize| {
            let values = (0..runs[at].len()).map(of).collect();
            spread(values).map_or("-".into(), |spread| spread.text(decimals))
        };
        let wall = column(&|round| runs[at][round].wall_ms, 1);
        let cpu = column(&|round| runs[at][round].cpu_ms, 1);
        let ratio = column(&|round| runs[at][round].cpu_ms / runs[0][round].cpu_ms, 2);
        let memory = resident(&tool.command).unwrap_or_else(|| "?".into());
        let (name, checks) = (tool.name, &tool.checks);
        writeln!(out, "| {name} | {checks} | {wall} | {cpu} | {ratio} | {memory} |")?;
    }
    let client = "The row of tuned-adm is the client alone: its daemon works and stays besides.";
    writeln!(out, "\n{client}\n")?;
    Ok(())
}

/// The tools that are there.
fn tools(rtproof: &Path) -> anyhow::Result<Vec<Tool>> {
    let own = std::path::absolute(rtproof)?;
    let own = own.to_str().context("path of rtproof is not UTF-8")?;
    let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
    let list = Command::new(own).args(["check", "explain", "--json"]).output()?;
    let list: Vec<serde_json::Value> = serde_json::from_slice(&list.stdout)?;
    let mut tools = vec![Tool {
        name: "rtproof check",
        checks: list.iter().filter(|check| is_of_machine(check)).count().to_string(),
        command: words(&[own, "check"]),
    }];
    if let Some(path) = there("RTPROOF_BENCH_RTCQS", "") {
        tools.push(Tool { name: "rtcqs", checks: "14".into(), command: words(&[&path]) });
    }
    if let Some(root) = there("RTPROOF_BENCH_TUNED", "usr/sbin/tuned-adm") {
        let command = words(&["chroot", &root, "tuned-adm", "verify"]);
        let checks = "9 settings".into();
        tools.push(Tool { name: "tuned-adm verify (latency-performance)", checks, command });
    }
    Ok(tools)
}

/// Checks of one application are left out here.
fn is_of_machine(check: &serde_json::Value) -> bool {
    !check[0].as_str().is_some_and(|id| id.starts_with("app-"))
}

/// The path in an environment variable, where it is there.
fn there(variable: &str, below: &str) -> Option<String> {
    let path = std::env::var(variable).ok()?;
    let file = if below.is_empty() { path.clone() } else { format!("{path}/{below}") };
    Path::new(&file).exists().then_some(path)
}

/// Whether a command runs and ends well.
pub(crate) fn runs(command: &[&str]) -> bool {
    let quiet = || Command::new(command[0]).args(&command[1..]).output();
    quiet().is_ok_and(|output| output.status.success())
}

/// Runs a command; its output goes nowhere.
pub(crate) fn time(command: &[String]) -> anyhow::Result<Ran> {
    let script = "TIMEFORMAT='%R %U %S'; time \"$@\" >/dev/null 2>&1";
    let output = Command::new("bash")
        .args(["-c", script, "bash"])
        .args(command)
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("{}: cannot run", command.join(" ")))?;
    let times = String::from_utf8_lossy(&output.stderr);
    let words: Vec<f64> = times.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let [wall, user, system] = words[..] else {
        anyhow::bail!("{}: no times in \"{times}\"", command.join(" "));
    };
    Ok(Ran { wall_ms: wall * 1e3, cpu_ms: (user + system) * 1e3 })
}

/// Largest resident set in KiB, as GNU time tells it; `None` where that is not installed.
pub(crate) fn resident(command: &[String]) -> Option<String> {
    let output = Command::new("/usr/bin/time")
        .args(["-q", "-f", "KIB %M"])
        .args(command)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    Some(text.lines().rev().find_map(|line| line.strip_prefix("KIB "))?.to_owned())
}
