//! The answer of a bisection: the culprit first, the evidence of both sides, every step.

use std::io::{self, Write};

use rtproof_host::harmless;
use rtproof_judge::units::count;
use rtproof_results::kernel::{
    bisect::{BisectedIn, KernelBisectNext, KernelBisected, StepOutcome, Suspect},
    boot::GuestClock,
};

use super::{BAD, BOLD, DIM, GOOD, Sheet, WARN, kernel_compare, wrapped};
use crate::bisected::{DIGITS, sentence, short, tally, test, unit};

/// Suspects that are shown in full.
const SUSPECTS_MAX: usize = 10;

pub fn kernel_bisected(to: &mut Sheet, of: &KernelBisected, page: &str) -> io::Result<()> {
    wrapped(to, &BOLD.to_string(), "", &format!("{}{BOLD:#}", harmless::line(&sentence(of))))?;
    writeln!(to, "  bad is    {}", harmless::line(&test(of)))?;
    writeln!(to, "  {}", tally(of))?;
    writeln!(to, "  page      {page}")?;
    for note in &of.notes {
        wrapped(to, &format!("{WARN}note{WARN:#}: "), "  ", &harmless::line(note))?;
    }
    for suspect in of.suspects.iter().take(SUSPECTS_MAX) {
        self::suspect(to, suspect)?;
    }
    if of.suspects.len() > SUSPECTS_MAX {
        writeln!(to, "  {DIM}{} more: --json{DIM:#}", of.suspects.len() - SUSPECTS_MAX)?;
    }
    if !of.changed.is_empty() {
        let changed = of.changed.iter().map(|it| {
            let [good, bad] = it.values.each_ref().map(|value| harmless::line(value));
            format!("{} {good} -> {bad}", harmless::line(&it.name))
        });
        let changed = changed.collect::<Vec<_>>().join(", ");
        writeln!(to)?;
        wrapped(to, "kconfig changed along with it: ", "  ", &changed)?;
    }
    evidence(to, of)?;
    steps(to, of)?;
    match of.booted_in {
        BisectedIn::Guest => {
            writeln!(to)?;
            wrapped(to, "", "", GuestClock::Instructions.says())
        }
        BisectedIn::Machine => Ok(()),
    }
}

/// What comes next, where the machine has to boot first.
pub fn next(to: &mut Sheet, of: &KernelBisectNext, reboots: bool) -> io::Result<()> {
    if let Some(step) = of.steps.last() {
        let why = harmless::line(&step.why);
        writeln!(to, "step {}  {}: {why}", step.number, step.outcome.name())?;
    }
    let done = count(of.steps.len() as u64, "step");
    wrapped(to, "", "  ", &format!("{done} done. Next: {}.", harmless::line(&of.then)))?;
    let argument = of.reboot.as_ref().map(|it| format!(" '{it}'")).unwrap_or_default();
    match reboots {
        true => writeln!(to, "  Rebooting; rtproof-bisect.service goes on after it."),
        false => writeln!(to, "  Now: reboot{argument}, and give the same command again after it."),
    }
}

fn suspect(to: &mut Sheet, of: &Suspect) -> io::Result<()> {
    writeln!(to)?;
    match of {
        Suspect::Commit { commit, subject, author, date, stat, outcome } => {
            writeln!(to, "{BOLD}{}{BOLD:#}  {}", short(commit), harmless::line(subject))?;
            let outcome = outcome.map_or("not tested", StepOutcome::name);
            writeln!(to, "  {}, {}, {outcome}", harmless::line(author), harmless::line(date))?;
            stat.iter().try_for_each(|line| writeln!(to, "    {}", harmless::line(line)))
        }
        Suspect::Option { option, prompt, help, is_needed } => {
            let [good, bad] = option.values.each_ref().map(|value| harmless::line(value));
            let prompt = prompt.as_deref().unwrap_or("no prompt");
            let name = harmless::line(&option.name);
            writeln!(to, "{BOLD}{name}{BOLD:#}: {good} -> {bad}  {}", harmless::line(prompt))?;
            for line in help {
                writeln!(to, "    {DIM}{}{DIM:#}", harmless::line(line))?;
            }
            if is_needed.is_none() {
                writeln!(to, "  whether it is needed is unknown: no test without it")?;
            }
            Ok(())
        }
    }
}

/// Both sides, as `kernel compare` shows two kernels.
fn evidence(to: &mut Sheet, of: &KernelBisected) -> io::Result<()> {
    let sides = [("good", of.evidence[0]), ("bad", of.evidence[1])];
    writeln!(to, "\n{BOLD}Evidence{BOLD:#}")?;
    let mut measured = Vec::new();
    for (name, number) in sides {
        let Some(step) = of.steps.iter().find(|step| step.number == number) else { continue };
        let why = harmless::line(&step.why);
        writeln!(to, "  {name:<4}  step {number}, {}: {why}", short(&step.id))?;
        measured.extend(step.measured.as_ref().map(|side| (name, side)));
    }
    match &of.prove {
        Some(prove) if !measured.is_empty() => {
            kernel_compare::measured(to, prove, unit(of), &measured)
        }
        _ => Ok(()),
    }
}

fn steps(to: &mut Sheet, of: &KernelBisected) -> io::Result<()> {
    writeln!(to, "\n{BOLD}Steps{BOLD:#}")?;
    let last = match of.booted_in {
        BisectedIn::Guest => "guest s",
        BisectedIn::Machine => " test s",
    };
    let (head, rest) = ("kernel", format!("  build s  objects  {last}"));
    let of = &of.steps;
    writeln!(to, "  {DIM}     {head:<DIGITS$}  outcome{rest}{DIM:#}")?;
    for step in of {
        let style = match step.outcome {
            StepOutcome::Good => GOOD,
            StepOutcome::Bad => BAD,
            StepOutcome::Skipped => WARN,
        };
        writeln!(
            to,
            "  {:>3}  {:<DIGITS$}  {style}{:<7}{style:#}  {:>7}  {:>7}  {:>7.1}  {}",
            step.number,
            short(&step.id),
            step.outcome.name(),
            step.build_s,
            step.objects,
            step.boot_s,
            harmless::line(&step.title)
        )?;
    }
    for step in of.iter().filter(|step| step.outcome == StepOutcome::Skipped) {
        let text = format!("{}; logs: {}", harmless::line(&step.why), step.folder);
        wrapped(to, &format!("  {} skipped: ", step.number), "    ", &text)?;
    }
    Ok(())
}
