//! The outcome of changes: applied, undone, active, and what the boot did with its parameters.

use std::io::{self, Write};

use rtproof_host::tune::Change;
use rtproof_judge::{
    units,
    verify::{Verified, WordEffect},
};
use rtproof_results::tune::{
    self, Applied, BootStanding, EntryStanding, JournalStanding, JournalUndone, Made, MadeOutcome,
    StandingChange, StandingNow, TakenBack, TakenBackOutcome, TrialKernel, TuneStatus, Undone,
    Unusable,
};

use crate::text::{BAD, BOLD, DIM, GOOD, Terminal, TextStyle, WARN, title_line, wrapped};

/// Width of the column of outcomes.
const WIDTH: usize = 18;

/// One line of a table: outcome, target, what was and is.
fn line(to: &mut Terminal, word: &str, style: TextStyle, text: &str) -> io::Result<()> {
    let first = format!("  {style}{word:<WIDTH$}{style:#}");
    wrapped(to, &first, &" ".repeat(WIDTH + 4), text)
}

fn target(change: &Change) -> String {
    change.title()
}

/// What `apply` or `trial` did. `at`: the option `--root`, a blank before it, where the machine
/// is not the running one.
pub fn applied(to: &mut Terminal, applied: &Applied, at: &str) -> io::Result<()> {
    if applied.changes.is_empty() {
        return match applied.boot_parameters.is_empty() {
            true => writeln!(to, "Nothing to do: the machine is as the plan wants it."),
            false => writeln!(to, "Nothing to change at once."),
        };
    }
    let count = |outcome| applied.changes.iter().filter(|it| it.outcome == outcome).count();
    let head = match applied.rolled_back {
        true => {
            "Nothing is applied: one change could not be made, the others were taken back".into()
        }
        false => format!("Applied {}", units::count(count(MadeOutcome::Applied), "change")),
    };
    writeln!(to, "\n{BOLD}{head}{BOLD:#}")?;
    applied.changes.iter().try_for_each(|it| made(to, it))?;
    if let Some(path) = &applied.path {
        writeln!(to, "  {DIM}journal {path}{DIM:#}")?;
    }
    if !applied.rolled_back && count(MadeOutcome::Applied) > 0 {
        writeln!(to, "  {DIM}undo with: rtproof tune undo{at}{DIM:#}")?;
    }
    Ok(())
}

/// A kernel on trial, and what is put in place.
pub fn trial_kernel(to: &mut Terminal, kernel: &TrialKernel) -> io::Result<()> {
    let head = format!("{BOLD}Kernel{BOLD:#} {}, from ", kernel.release);
    wrapped(to, &head, "  ", &kernel.from)?;
    let width = kernel.files.iter().map(|(path, _)| path.len()).max().unwrap_or(0);
    for (path, what) in &kernel.files {
        writeln!(to, "  + {path:width$}  {what}")?;
    }
    kernel.notes.iter().try_for_each(|note| wrapped(to, "  ", "  ", note))
}

fn made(to: &mut Terminal, it: &Made) -> io::Result<()> {
    let style = match it.outcome {
        MadeOutcome::Applied | MadeOutcome::AsWanted => GOOD,
        MadeOutcome::Failed => BAD,
        MadeOutcome::LeftOut => WARN,
        MadeOutcome::RolledBack | MadeOutcome::NotReached => DIM,
    };
    let target = target(&it.change);
    let why = with_reason(&target, it.why.as_deref());
    let text = match it.outcome {
        MadeOutcome::Failed | MadeOutcome::LeftOut => format!("{target}{why}"),
        _ => format!("{target}: {} → {}{why}", it.old, it.new),
    };
    line(to, it.outcome.text(), style, &text)
}

/// What `undo` did.
pub fn undone(to: &mut Terminal, undone: &Undone) -> io::Result<()> {
    unusable(to, &undone.unusable)?;
    undone.journals.iter().try_for_each(|journal| journal_undone(to, journal))?;
    if !undone.still_open.is_empty() {
        let numbers: Vec<String> = undone.still_open.iter().map(u32::to_string).collect();
        let text = format!("Still open: journal {}", numbers.join(", "));
        writeln!(to, "{DIM}{text}{DIM:#}")?;
    }
    Ok(())
}

fn journal_undone(to: &mut Terminal, journal: &JournalUndone) -> io::Result<()> {
    let (number, title) = (journal.journal, &journal.title);
    wrapped(to, &format!("{BOLD}Journal {number}{BOLD:#}  "), "  ", title)?;
    writeln!(to, "  {DIM}{}{DIM:#}", journal.path)?;
    if journal.changes.is_empty() {
        writeln!(to, "  nothing was changed")?;
    }
    taken_back(to, &journal.changes)?;
    match &journal.unrecorded {
        Some(why) => wrapped(
            to,
            &format!("  {WARN}not written down{WARN:#}  "),
            "  ",
            &format!("{why}; the journal stays open, and the next undo finds everything as before"),
        ),
        None => Ok(()),
    }
}

/// Journals that cannot be used, each with its reason.
fn unusable(to: &mut Terminal, all: &[Unusable]) -> io::Result<()> {
    all.iter().try_for_each(|it| {
        let head = format!("{BAD}Journal {} cannot be used{BAD:#}  ", it.journal);
        wrapped(to, &head, "  ", &it.why)
    })
}

/// A reason after its target, which an error may begin with.
fn with_reason(target: &str, why: Option<&str>) -> String {
    let Some(why) = why else { return String::new() };
    let own = why.strip_prefix(target).and_then(|rest| rest.strip_prefix(": "));
    format!(": {}", own.unwrap_or(why))
}

/// Changes that were undone.
pub fn taken_back(to: &mut Terminal, changes: &[TakenBack]) -> io::Result<()> {
    for it in changes {
        let style = match it.outcome {
            TakenBackOutcome::Restored | TakenBackOutcome::WasBefore => GOOD,
            TakenBackOutcome::Gone => DIM,
            TakenBackOutcome::LeftAlone | TakenBackOutcome::Unnoted => WARN,
            TakenBackOutcome::Failed => BAD,
        };
        line(to, it.outcome.text(), style, &back(it))?;
    }
    Ok(())
}

fn back(it: &TakenBack) -> String {
    let target = target(&it.change);
    let why = with_reason(&target, it.why.as_deref());
    match it.outcome {
        TakenBackOutcome::Restored => format!("{target}: {} → {}{why}", it.ours, it.now),
        TakenBackOutcome::LeftAlone => {
            format!("{target}: found {}, not our {}{why}", it.now, it.ours)
        }
        _ => format!("{target}{why}"),
    }
}

/// What is applied now.
pub fn status(to: &mut Terminal, status: &TuneStatus) -> io::Result<()> {
    unusable(to, &status.unusable)?;
    for journal in &status.journals {
        journal_head(to, journal)?;
        journal.changes.iter().try_for_each(|it| change_line(to, it))?;
    }
    if let Some(boot) = &status.boot {
        boot_status_line(to, boot)?;
    }
    Ok(())
}

fn journal_head(to: &mut Terminal, journal: &JournalStanding) -> io::Result<()> {
    let (number, title, begun) = (journal.journal, &journal.title, &journal.begun);
    wrapped(to, &format!("{BOLD}Journal {number}{BOLD:#}  "), "  ", &format!("{title}, {begun}"))?;
    writeln!(to, "  {DIM}{}{DIM:#}", journal.path)?;
    if !journal.is_of_this_boot {
        let text = "an earlier boot made it: what is not on disk is gone";
        writeln!(to, "  {DIM}{text}{DIM:#}")?;
    }
    if journal.of_program {
        let text = match (journal.is_of_this_boot, journal.guarded) {
            (true, true) => "undone when the program ends",
            (true, false) => {
                "the process that undoes this is gone (killed) or stopped: rtproof tune undo"
            }
            (false, _) => "the program went with the reboot: rtproof tune undo closes the journal",
        };
        writeln!(to, "  {WARN}{text}{WARN:#}")?;
    }
    if journal.unconfirmed {
        let is_back = !journal.changes.is_empty() && journal.changes.iter().all(|it| it.is_old);
        let text = match (journal.is_of_this_boot, journal.guarded) {
            (true, false) if is_back => {
                "not confirmed, and all is as it was before: rtproof tune undo closes the journal"
            }
            (true, true) => "not confirmed yet: rtproof tune confirm, or it is taken back",
            (true, false) => {
                "not confirmed, and nobody is left to take it back (killed or stopped, or its \
                 timer is gone): rtproof tune confirm or undo"
            }
            (false, _) => {
                "not confirmed, and who waited went with the reboot: rtproof tune confirm or undo"
            }
        };
        writeln!(to, "  {WARN}{text}{WARN:#}")?;
    }
    Ok(())
}

fn change_line(to: &mut Terminal, it: &StandingChange) -> io::Result<()> {
    let style = match it.standing {
        StandingNow::AsApplied => GOOD,
        StandingNow::Changed => BAD,
        StandingNow::Superseded
        | StandingNow::UsedUp
        | StandingNow::Gone
        | StandingNow::NotMade => DIM,
        StandingNow::Unreadable => WARN,
    };
    let target = target(&it.change);
    let mut text = match it.standing {
        StandingNow::AsApplied => format!("{target}: {}", it.ours),
        // Of a file that is its number of lines.
        StandingNow::Changed if it.now == it.ours => {
            format!("{target}: other text, permissions or owner than ours")
        }
        StandingNow::Changed if it.is_old => {
            format!("{target}: {} as before, not our {}", it.now, it.ours)
        }
        StandingNow::Changed => format!("{target}: {}, not our {}", it.now, it.ours),
        StandingNow::Superseded => format!("{target}: {}", it.now),
        StandingNow::UsedUp => format!("{target}: {}", it.ours),
        StandingNow::Gone => target,
        StandingNow::NotMade | StandingNow::Unreadable => {
            format!("{target}: {}", it.why.as_deref().unwrap_or("?"))
        }
    };
    if !it.by.is_empty() {
        let who: Vec<&str> = it.by.iter().map(|suspect| suspect.name.as_str()).collect();
        text += &format!(" (perhaps by {})", who.join(", "));
    }
    line(to, it.standing.text(), style, &text)?;
    let next = " ".repeat(WIDTH + 4);
    it.by.iter().try_for_each(|suspect| {
        wrapped(to, &format!("{next}{DIM}{}{DIM:#}: ", suspect.name), &next, &suspect.why)
    })
}

fn boot_status_line(to: &mut Terminal, boot: &BootStanding) -> io::Result<()> {
    let state = match (boot.standing, boot.is_running) {
        (EntryStanding::Absent, _) => "none",
        (EntryStanding::Default, true) => "the default, and running",
        (EntryStanding::Default, false) => "the default from the next boot on",
        (EntryStanding::Armed, _) => "on trial: the next boot is it, once",
        (EntryStanding::Written, true) => {
            "on trial: this boot is it; keep it with: rtproof tune confirm"
        }
        (EntryStanding::Written, false) => "not running; try it with: rtproof tune trial",
    };
    writeln!(to, "{BOLD}Boot entry{BOLD:#} of {}: {state}", boot.loader)?;
    if let Some(kernel) = &boot.kernel {
        wrapped(to, "  kernel ", "  ", &kernel.text())?;
    }
    wrapped(to, "  ", "  ", &boot.words.join(" "))
}

/// Boot parameters that `apply` does not apply; `command`: what tries them.
pub fn boot_left(to: &mut Terminal, parameters: &[String], command: &str) -> io::Result<()> {
    if parameters.is_empty() {
        return Ok(());
    }
    let count = units::count(parameters.len(), "boot parameter");
    let (are, need) = if parameters.len() == 1 { ("is", "s") } else { ("are", "") };
    let head = format!("{DIM}{count} {are} left and need{need} a boot: ");
    wrapped(to, &head, "  ", &format!("{command}{DIM:#}"))
}

/// Effects of the boot's words, and status of changes.
pub fn verified(to: &mut Terminal, found: &tune::VerifiedDocument) -> io::Result<()> {
    title_line(to, &found.machine)?;
    if let Some(kernel) = &found.kernel {
        wrapped(to, &format!("{BOLD}Kernel{BOLD:#} of the boot entry: "), "  ", &kernel.text())?;
    }
    if found.kernel.is_none() && found.parameters.is_empty() && found.changes.is_empty() {
        let text = "Nothing to verify: rtproof has made no boot entry, and no journal is open. \
                    Name parameters: rtproof tune verify isolcpus=2-3";
        return wrapped(to, "", "", text);
    }
    parameters(to, &found.parameters)?;
    if !found.changes.is_empty() {
        let good = found.changes.iter().filter(|it| it.standing == StandingNow::AsApplied).count();
        let all = found.changes.len();
        writeln!(to, "\n{BOLD}Changes{BOLD:#}: {good} of {all} as applied")?;
        found.changes.iter().try_for_each(|it| change_line(to, it))?;
    }
    Ok(())
}

/// Effects of the words of a command line.
pub fn parameters(to: &mut Terminal, all: &[Verified]) -> io::Result<()> {
    if all.is_empty() {
        return Ok(());
    }
    let good = all.iter().filter(|it| it.effect == WordEffect::Effective).count();
    writeln!(to, "\n{BOLD}Parameters{BOLD:#}: {good} of {} effective", all.len())?;
    for it in all {
        let (word, style) = match it.effect {
            WordEffect::Effective => ("effective", GOOD),
            WordEffect::Ignored => ("IGNORED", BAD),
            WordEffect::NotEffective => ("NOT EFFECTIVE", BAD),
            WordEffect::Missing => ("NOT THERE", BAD),
            WordEffect::NotShown => ("not shown", DIM),
            WordEffect::CannotTell => ("CANNOT TELL", WARN),
        };
        line(to, word, style, &parameter(it))?;
    }
    Ok(())
}

fn parameter(it: &Verified) -> String {
    let without = if it.removes { "without " } else { "" };
    let mut text = format!("{without}{}", it.parameter);
    if it.effect == WordEffect::Missing {
        let line = it.on_command_line.as_deref().unwrap_or_default();
        let line = if line.is_empty() { "not there".into() } else { line.join(" ") };
        text += &format!(": on the command line: {line}");
    } else if it.effect == WordEffect::NotShown {
        text += ": on the command line; the kernel shows its effect nowhere";
    } else if let Some(path) = &it.path {
        let found = it.found.as_deref().map_or_else(String::new, |found| {
            if found.is_empty() { " is empty".into() } else { format!(": {found}") }
        });
        text += &format!(" ({path}{found})");
    }
    text
}

/// What an export wrote, and what it could not say.
pub fn exported(to: &mut Terminal, written: &tune::ExportedDocument) -> io::Result<()> {
    writeln!(
        to,
        "{BOLD}{}{BOLD:#}: {}",
        written.folder,
        units::count(written.files.len(), "file")
    )?;
    written.files.iter().try_for_each(|file| writeln!(to, "  {file}"))?;
    if !written.missed.is_empty() {
        writeln!(to, "{WARN}Not in them{WARN:#} (NOTES.md says what to do):")?;
    }
    for (what, why) in &written.missed {
        wrapped(to, "  ", "    ", &format!("{what}: {why}"))?;
    }
    Ok(())
}
