//! Memory while two CPUs are measured: locked and resident, of each tool.

use std::{
    io::Write,
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::Context;

/// Runs each tool on two CPUs for some seconds and prints what it locks and holds.
pub(crate) fn run(out: &mut impl Write, rtproof: &Path) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let own = std::path::absolute(rtproof)?;
    let own = own.to_str().context("path of rtproof is not UTF-8")?;
    let output = folder.path().join("run");
    let output = output.to_str().context("temporary folder is not UTF-8")?;
    let tools: [(&str, Vec<&str>); 3] = [
        (
            "rtproof prove",
            vec![own, "prove", "--cpus", "0-1", "--for", "4s", "--load", "idle", "-o", output],
        ),
        ("cyclictest -S -m", vec!["cyclictest", "-S", "-m", "-q", "-p", "80", "-D", "4"]),
        ("jitterdebugger", vec!["jitterdebugger", "-a", "0x3", "-p", "80", "-D", "4s"]),
    ];
    writeln!(out, "Memory while CPUs 0-1 are measured, KiB\n")?;
    writeln!(out, "| tool | locked (VmLck) | largest resident (VmHWM) |\n|---|---|---|")?;
    for (name, command) in tools {
        let mut child = Command::new(command[0])
            .args(&command[1..])
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("{}: cannot run; is it installed?", command[0]))?;
        std::thread::sleep(Duration::from_secs(3));
        let path = format!("/proc/{}/status", child.id());
        let status = rtproof_host::Root::live().read_text(&path);
        child.wait()?;
        let status = status.value().cloned().unwrap_or_default();
        let field = |key: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(key));
            line.map_or("?", |text| text.trim().trim_end_matches(" kB")).to_owned()
        };
        writeln!(out, "| {name} | {} | {} |", field("VmLck:"), field("VmHWM:"))?;
    }
    writeln!(out)?;
    Ok(())
}
