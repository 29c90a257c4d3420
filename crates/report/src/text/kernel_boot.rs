//! A kernel that was booted under QEMU: what it is, what ran inside and how it ended.

use std::io::{self, Write};

use rtproof_host::harmless;
use rtproof_results::kernel::boot::{Booted, GuestStep};

use super::{BAD, BOLD, DIM, GOOD, Sheet, WARN, wrapped};

/// What came of the boot; then each step with its output.
pub fn booted(to: &mut Sheet, of: &Booted) -> io::Result<()> {
    let release = harmless::line(&of.release);
    writeln!(
        to,
        "{BOLD}Linux {release}{BOLD:#}: booted; init after {:.1} s, end after {:.1} s",
        of.init_s, of.seconds
    )?;
    writeln!(to, "  image    {} ({})", of.image, of.arch)?;
    match (&of.config, &of.preempt_rt) {
        (Some(config), Some(value)) => writeln!(to, "  config   {config}: PREEMPT_RT={value}")?,
        _ => writeln!(to, "  config   unknown")?,
    }
    let guest = &of.guest;
    let cpus = if guest.cpus == 1 { "1 CPU".to_owned() } else { format!("{} CPUs", guest.cpus) };
    let clock = guest.clock.name();
    writeln!(to, "  guest    QEMU {}, {clock}, {cpus}, {} MiB", guest.qemu, guest.memory_mib)?;
    writeln!(to, "  files    {} in {}", of.files.len(), of.folder)?;
    for note in &of.notes {
        wrapped(to, &format!("{WARN}note{WARN:#}: "), "  ", &harmless::line(note))?;
    }
    // The machine's form of a step that is shown already.
    let shown = of.steps.iter().filter(|step| !step.name.ends_with("-json"));
    for of in shown {
        writeln!(to)?;
        step(to, of)?;
    }
    let records: Vec<&str> =
        of.files.iter().filter(|name| name.starts_with("prove.")).map(String::as_str).collect();
    if !records.is_empty() {
        writeln!(to)?;
        let text = format!("The guest's /out is in {} now: {}", of.folder, records.join(", "));
        wrapped(to, "", "", &harmless::line(&text))?;
    }
    let has = |name: &str| of.steps.iter().any(|step| step.name == name);
    if has("check") {
        let text = "What the checks say of processors, power, devices and firmware is of the \
                    guest's machine, not of one that will run this kernel.";
        writeln!(to)?;
        wrapped(to, "", "", text)?;
    }
    if has("prove") || has("command") {
        writeln!(to)?;
        wrapped(to, "", "", guest.clock.says())?;
    }
    Ok(())
}

fn step(to: &mut Sheet, of: &GuestStep) -> io::Result<()> {
    let command = harmless::line(&of.command.join(" "));
    let (style, ended) = match (of.exit, &of.why) {
        (Some(0), _) => (GOOD, "exit code 0".to_owned()),
        (Some(code), _) => (WARN, format!("exit code {code}")),
        (None, why) => (BAD, harmless::line(why.as_deref().unwrap_or("no exit code"))),
    };
    writeln!(
        to,
        "{BOLD}{command}{BOLD:#}: {style}{ended}{style:#} {DIM}({:.1} s of the guest){DIM:#}",
        of.seconds
    )?;
    // On standard error rtproof shows its progress, and why it failed.
    let is_shown = of.name == "command" || of.output.is_empty();
    let errors = of.errors.lines().filter(|_| is_shown);
    for line in of.output.lines().chain(errors) {
        writeln!(to, "  {}", harmless::line(line))?;
    }
    Ok(())
}
