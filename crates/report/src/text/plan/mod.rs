//! A plan as text: what is there, what would be there, why, what it costs, how it is undone.

mod fold;
mod words;

use std::io::{self, Write};

use rtproof_host::tune::Part;
use rtproof_judge::{
    plan::{Conflict, Instruction, LeftOut},
    units,
};
use rtproof_results::tune::plan::{Document, Previewed};

use self::{fold::Folded, words::INDENT};
use crate::text::sheet::{BAD, BOLD, DIM, GOOD, Sheet, title, wrapped};

pub use self::words::{place, tokens};

pub fn plan(to: &mut Sheet, plan: &Document, verbose: bool) -> io::Result<()> {
    title(to, &plan.machine)?;
    wrapped(to, &format!("{BOLD}For{BOLD:#}      "), "         ", &plan.intent.line())?;
    wrapped(to, &format!("{BOLD}Plan{BOLD:#}     "), "         ", &summary(plan))?;
    conflicts(to, &plan.conflicts)?;
    steps(to, &plan.steps, verbose)?;
    words::boot(to, &plan.boot, verbose)?;
    instructions(to, &plan.instructions, verbose)?;
    left_out(to, &plan.left_out, verbose)
}

/// What it comes to, in one line.
fn summary(plan: &Document) -> String {
    let steps = plan.steps.len();
    let words = plan.boot.words.len();
    let by_hand = entries_by_hand(&plan.instructions);
    let risky = plan.steps.iter().filter(|it| it.step.reason.risk.is_some()).count()
        + plan.boot.words.iter().filter(|word| word.reason.risk.is_some()).count();
    let nothing = usize::from(steps + words + by_hand == 0);
    let parts = [
        (plan.conflicts.len(), units::count(plan.conflicts.len(), "conflict")),
        (steps, format!("{} now", units::count(steps, "change"))),
        (words, format!("{} for the next boot", units::count(words, "parameter"))),
        (by_hand, format!("{by_hand} by hand")),
        (risky, format!("{risky} of them risky")),
        (nothing, "nothing to do".into()),
        (plan.done, format!("{} done already", plan.done)),
        (plan.left_out.len(), format!("{} left out", plan.left_out.len())),
    ];
    let parts = parts.into_iter().filter(|(n, _)| *n > 0);
    parts.map(|(_, text)| text).collect::<Vec<_>>().join(", ")
}

fn conflicts(to: &mut Sheet, conflicts: &[Conflict]) -> io::Result<()> {
    if conflicts.is_empty() {
        return Ok(());
    }
    let head = "Conflicts: nothing is applied while there are any";
    writeln!(to, "\n{BAD}{head}{BAD:#}")?;
    for conflict in conflicts {
        writeln!(to, "  {}", conflict.target)?;
        for (check, wish) in &conflict.requests {
            wrapped(to, &format!("{INDENT}{check} wants "), INDENT, wish)?;
        }
    }
    let how = "leave one of them out: --skip ID=REASON, or name the checks that you want";
    wrapped(to, "  ", "  ", how)
}

/// Names of folded changes that are written out without -v.
const NAMES_MAX: usize = 8;

/// Parts of the machine: title, how long a change lasts, and how it is undone.
const PARTS: [(Part, &str, &str); 8] = [
    (Part::Kernel, "Running kernel", "until the next boot; undo writes the old values back"),
    (Part::Irqs, "Interrupts", "until the next boot; undo gives each its CPUs back"),
    (Part::Tasks, "Tasks", "until they end; undo gives the same tasks back what they had"),
    (Part::Units, "Services", "undo gives each the state it had: enabled, running, masked"),
    (Part::Files, "Files", "they stay; undo writes the old bytes back or removes what is new"),
    (Part::Accounts, "Groups of users", "they stay; undo removes who was added and what is new"),
    (Part::Packages, "Packages", "they stay; undo removes those that came and are as they came"),
    (Part::Loader, "Boot loader", "until it is undone"),
];

/// The changes, by what they are about.
pub fn steps(to: &mut Sheet, steps: &[Previewed], verbose: bool) -> io::Result<()> {
    for (part, title, lasts) in PARTS {
        let of: Vec<&Previewed> =
            steps.iter().filter(|it| it.step.change.nature().part == part).collect();
        if of.is_empty() {
            continue;
        }
        let count = units::count(of.len(), "change");
        writeln!(to, "\n{BOLD}{title}{BOLD:#}: {count} {DIM}({lasts}){DIM:#}")?;
        let names_max = if verbose { usize::MAX } else { NAMES_MAX };
        for folded in fold::fold(&of, names_max) {
            one(to, &folded, verbose)?;
        }
    }
    Ok(())
}

fn one(to: &mut Sheet, folded: &Folded<'_>, verbose: bool) -> io::Result<()> {
    let first = folded.first;
    let many = match folded.count {
        1 => String::new(),
        n => format!("  {DIM}({n} times){DIM:#}"),
    };
    wrapped(to, "  ", "      ", &format!("{}{many}", folded.target))?;
    let (old, new) = first.step.change.lines(first.before.as_ref());
    match &first.unknown {
        Some(why) => wrapped(to, "    ? ", "      ", &format!("not known: {why}"))?,
        None => old.iter().try_for_each(|line| writeln!(to, "    {BAD}- {line}{BAD:#}"))?,
    }
    new.iter().try_for_each(|line| writeln!(to, "    {GOOD}+ {line}{GOOD:#}"))?;
    words::reason(to, &first.step.reason, verbose)
}

fn instructions(to: &mut Sheet, all: &[Instruction], verbose: bool) -> io::Result<()> {
    if all.is_empty() {
        return Ok(());
    }
    let count = entries_by_hand(all);
    writeln!(to, "\n{BOLD}By hand{BOLD:#}: {count} {DIM}(no program can do it){DIM:#}")?;
    for (at, it) in all.iter().enumerate() {
        let is_own = !is_other_way(all, at);
        if is_own {
            wrapped(to, "  ", "    ", &it.text)?;
        }
        if verbose && !it.build_options.is_empty() {
            let options: Vec<String> =
                it.build_options.iter().map(|option| format!("CONFIG_{option}")).collect();
            wrapped(to, INDENT, INDENT, &options.join(" "))?;
        }
        if is_own {
            let checks = it.reason.checks.join(", ");
            let next = format!("{INDENT}     ");
            let why = format!("{} ({checks})", it.reason.why);
            wrapped(to, &format!("{INDENT}{DIM}why{DIM:#}  "), &next, &why)?;
        }
    }
    Ok(())
}

/// How many entries the list by hand has.
pub fn entries_by_hand(all: &[Instruction]) -> usize {
    (0..all.len()).filter(|&at| !is_other_way(all, at)).count()
}

/// Whether it only gives the options of the build for what the entry before says in words.
fn is_other_way(all: &[Instruction], at: usize) -> bool {
    let before = at.checked_sub(1).map(|before| &all[before]);
    let is_same = before.is_some_and(|it| it.reason.checks == all[at].reason.checks);
    is_same && !all[at].build_options.is_empty()
}

fn left_out(to: &mut Sheet, all: &[LeftOut], verbose: bool) -> io::Result<()> {
    if all.is_empty() {
        return Ok(());
    }
    if !verbose {
        let text = format!("Left out: {}; why: -v", all.len());
        return writeln!(to, "\n{DIM}{text}{DIM:#}");
    }
    writeln!(to, "\n{BOLD}Left out{BOLD:#}: {}", all.len())?;
    for it in all {
        wrapped(to, &format!("  {}  ", it.check), INDENT, &it.why)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
