//! A plan as text: what is there, what would be there, why, what it costs, how it is undone.

#[cfg(test)]
mod tests;

use std::io::{self, Write};

use rtproof_host::{CpuList, tune::MachinePart};
use rtproof_judge::{
    plan::{Conflict, Instruction, LeftOut, Reason},
    units,
};
use rtproof_results::tune::{BootPreview, PlanDocument, Previewed};

use crate::text::{BAD, BOLD, DIM, GOOD, Terminal, WARN, title_line, wrapped};

pub fn plan(to: &mut Terminal, plan: &PlanDocument, verbose: bool) -> io::Result<()> {
    title_line(to, &plan.machine)?;
    wrapped(to, &format!("{BOLD}For{BOLD:#}      "), "         ", &plan.intent.line())?;
    wrapped(to, &format!("{BOLD}Plan{BOLD:#}     "), "         ", &summary(plan))?;
    conflicts(to, &plan.conflicts)?;
    steps(to, &plan.steps, verbose)?;
    boot(to, &plan.boot, verbose)?;
    instructions(to, &plan.instructions, verbose)?;
    left_out(to, &plan.left_out, verbose)
}

/// Summary in one line.
fn summary(plan: &PlanDocument) -> String {
    let steps = plan.steps.len();
    let words = plan.boot.words.len();
    let by_hand = manual_entries(&plan.instructions);
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

fn conflicts(to: &mut Terminal, conflicts: &[Conflict]) -> io::Result<()> {
    if conflicts.is_empty() {
        return Ok(());
    }
    let head = "Conflicts: nothing is applied while there are any";
    writeln!(to, "\n{BAD}{head}{BAD:#}")?;
    for conflict in conflicts {
        writeln!(to, "  {}", conflict.target)?;
        for (check, wanted) in &conflict.requests {
            wrapped(to, &format!("{INDENT}{check} wants "), INDENT, wanted)?;
        }
    }
    let how = "leave one of them out: --skip ID=REASON, or name the checks that you want";
    wrapped(to, "  ", "  ", how)
}

/// Names of folded changes that are written out without -v.
const NAMES_MAX: usize = 8;

/// Parts of the machine: title, how long a change lasts, and how it is undone.
const PARTS: [(MachinePart, &str, &str); 8] = [
    (MachinePart::Kernel, "Running kernel", "until the next boot; undo writes the old values back"),
    (MachinePart::Irqs, "Interrupts", "until the next boot; undo gives each its CPUs back"),
    (MachinePart::Tasks, "Tasks", "until they end; undo gives the same tasks back what they had"),
    (MachinePart::Units, "Services", "undo gives each the state it had: enabled, running, masked"),
    (
        MachinePart::Files,
        "Files",
        "they stay; undo writes the old bytes back or removes what is new",
    ),
    (
        MachinePart::Accounts,
        "Groups of users",
        "they stay; undo removes who was added and what is new",
    ),
    (
        MachinePart::Packages,
        "Packages",
        "they stay; undo removes those that came and are as they came",
    ),
    (MachinePart::Loader, "Boot loader", "until it is undone"),
];

/// The changes, by what they are about.
pub fn steps(to: &mut Terminal, steps: &[Previewed], verbose: bool) -> io::Result<()> {
    for (part, title, lasts) in PARTS {
        let of: Vec<&Previewed> =
            steps.iter().filter(|it| it.step.change.nature().part == part).collect();
        if of.is_empty() {
            continue;
        }
        let count = units::count(of.len(), "change");
        writeln!(to, "\n{BOLD}{title}{BOLD:#}: {count} {DIM}({lasts}){DIM:#}")?;
        let names_max = if verbose { usize::MAX } else { NAMES_MAX };
        for folded in fold(&of, names_max) {
            one(to, &folded, verbose)?;
        }
    }
    Ok(())
}

fn one(to: &mut Terminal, folded: &Folded<'_>, verbose: bool) -> io::Result<()> {
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
    reason(to, &first.step.reason, verbose)
}

fn instructions(to: &mut Terminal, all: &[Instruction], verbose: bool) -> io::Result<()> {
    if all.is_empty() {
        return Ok(());
    }
    let count = manual_entries(all);
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
pub fn manual_entries(all: &[Instruction]) -> usize {
    (0..all.len()).filter(|&at| !is_other_way(all, at)).count()
}

/// Whether it only gives the options of the build for what the entry before says in words.
fn is_other_way(all: &[Instruction], at: usize) -> bool {
    let before = at.checked_sub(1).map(|before| &all[before]);
    let is_same = before.is_some_and(|it| it.reason.checks == all[at].reason.checks);
    is_same && !all[at].build_options.is_empty()
}

fn left_out(to: &mut Terminal, all: &[LeftOut], verbose: bool) -> io::Result<()> {
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

// Equal changes of many CPUs, interrupts or tasks are one line: `cpu{0-3}`.

/// Kinds of target that are a number with a name in brackets.
const NUMBERED: [&str; 2] = ["IRQ ", "task "];

/// Changes that differ in one name only.
struct Folded<'a> {
    first: &'a Previewed,
    /// What they are about.
    target: String,
    count: usize,
}

/// Folds those with the same old and new value and the same reason, in order of the first.
/// `names_max`: most names that are written out.
fn fold<'a>(steps: &[&'a Previewed], names_max: usize) -> Vec<Folded<'a>> {
    let mut groups: Vec<Vec<&'a Previewed>> = Vec::new();
    for &step in steps {
        match groups.iter_mut().find(|group| is_like(group[0], step)) {
            Some(group) => group.push(step),
            None => groups.push(vec![step]),
        }
    }
    groups.into_iter().flat_map(|group| of_group(group, names_max)).collect()
}

fn of_group<'a>(group: Vec<&'a Previewed>, names_max: usize) -> Vec<Folded<'a>> {
    if group.len() > 1 {
        let targets: Vec<String> = group.iter().map(|it| it.step.change.title()).collect();
        if let Some(target) = spread(&targets, names_max) {
            return vec![Folded { first: group[0], target, count: group.len() }];
        }
    }
    let one = |it: &'a Previewed| Folded { first: it, target: it.step.change.title(), count: 1 };
    group.into_iter().map(one).collect()
}

fn is_like(one: &Previewed, other: &Previewed) -> bool {
    let shape = |it: &Previewed| std::mem::discriminant(&it.step.change);
    let shown = |it: &Previewed| it.step.change.lines(it.before.as_ref());
    shape(one) == shape(other)
        && one.step.reason == other.step.reason
        && one.unknown.is_some() == other.unknown.is_some()
        && shown(one) == shown(other)
}

/// Targets as one, where they differ in one name; names that differ in a number as a list.
fn spread(targets: &[String], names_max: usize) -> Option<String> {
    let is_of = |kind: &&&str| targets.iter().all(|target| target.starts_with(**kind));
    if let Some(kind) = NUMBERED.iter().find(is_of) {
        return Some(numbered(kind, targets, names_max));
    }
    let separators = ['/', ' '];
    let parts: Vec<Vec<&str>> = targets.iter().map(|it| it.split(separators).collect()).collect();
    let first = parts.first()?;
    if parts.iter().any(|part| part.len() != first.len()) {
        return None;
    }
    let differs = |&at: &usize| parts.iter().any(|part| part[at] != first[at]);
    let places: Vec<usize> = (0..first.len()).filter(differs).collect();
    let &[place] = places.as_slice() else { return None };
    let names: Vec<&str> = parts.iter().map(|part| part[place]).collect();
    let start = first[..place].iter().map(|part| part.len() + 1).sum::<usize>();
    let (before, rest) = targets[0].split_at(start);
    Some(format!("{before}{}{}", joined(&names, names_max), &rest[first[place].len()..]))
}

/// Names as one: `cpu{0-3}`, or `{a,b,…}`.
fn joined(names: &[&str], names_max: usize) -> String {
    let digits = |name: &str| name.find(|c: char| c.is_ascii_digit());
    let number = |name: &str| -> Option<(String, u32, String)> {
        let start = digits(name)?;
        let end = name[start..].find(|c: char| !c.is_ascii_digit());
        let end = end.map_or(name.len(), |end| start + end);
        Some((name[..start].into(), name[start..end].parse().ok()?, name[end..].into()))
    };
    let numbers: Option<Vec<_>> = names.iter().map(|name| number(name)).collect();
    if let Some(numbers) = numbers {
        let (before, _, after) = &numbers[0];
        if numbers.iter().all(|(b, _, a)| b == before && a == after) {
            let list = CpuList::new(numbers.iter().map(|(_, number, _)| *number));
            return format!("{before}{{{list}}}{after}");
        }
    }
    few(names, names_max)
}

fn few(names: &[&str], names_max: usize) -> String {
    let shown = names.iter().take(names_max).copied().collect::<Vec<_>>().join(",");
    match names.len().checked_sub(names_max) {
        Some(more) if more > 0 => format!("{{{shown},… {more} more}}"),
        _ => format!("{{{shown}}}"),
    }
}

/// `IRQ {24-27} (nvme0q1, nvme0q2, …)`.
fn numbered(kind: &str, targets: &[String], names_max: usize) -> String {
    let mut numbers = Vec::new();
    let mut names = Vec::new();
    for target in targets {
        let rest = target.strip_prefix(kind).unwrap_or(target);
        let (number, name) = rest.split_once(' ').unwrap_or((rest, ""));
        numbers.extend(number.parse::<u32>());
        names.push(name.strip_prefix('(').and_then(|it| it.strip_suffix(')')).unwrap_or(name));
    }
    let list = CpuList::new(numbers);
    let more = names.len().saturating_sub(names_max);
    let mut shown: Vec<String> = names.iter().take(names_max).map(|&it| it.to_owned()).collect();
    shown.extend((more > 0).then(|| format!("… {more} more")));
    format!("{kind}{{{list}}} ({})", shown.join(", "))
}

// The boot part of a plan: a diff of the kernel's command line, word by word.

/// Prefix of what belongs to a change.
const INDENT: &str = "      ";

/// The words, and the line that they would make.
fn boot(to: &mut Terminal, boot: &BootPreview, verbose: bool) -> io::Result<()> {
    if boot.words.is_empty() {
        return Ok(());
    }
    let count = units::count(boot.words.len(), "parameter");
    let lasts = "tune trial boots it once, tune confirm keeps it; undo removes the entry";
    writeln!(to)?;
    let text = format!("{count} {DIM}({lasts}){DIM:#}");
    wrapped(to, &format!("{BOLD}Next boot{BOLD:#}: "), "           ", &text)?;
    entry_place(to, boot)?;
    for word in &boot.words {
        let has_value = word.parameter.contains('=');
        // A word that replaces others, or removes them.
        let now = boot.now.as_deref().filter(|_| word.removes).unwrap_or_default();
        for old in same_name(now, &word.parameter)
            .iter()
            .filter(|old| **old != word.parameter || !has_value)
        {
            writeln!(to, "    {BAD}- {old}{BAD:#}")?;
        }
        if word.removes && !has_value {
            if now.is_empty() {
                writeln!(to, "    {BAD}- {}{BAD:#}", word.parameter)?;
            }
        } else {
            writeln!(to, "    {GOOD}+ {}{GOOD:#}", word.parameter)?;
        }
        reason(to, &word.reason, verbose)?;
    }
    tokens(to, boot)
}

/// Loader and entry, or why there can be none.
pub fn entry_place(to: &mut Terminal, boot: &BootPreview) -> io::Result<()> {
    if let (Some(loader), Some(entry)) = (&boot.loader, &boot.entry) {
        wrapped(to, "  ", "    ", &format!("entry \"{entry}\" of {loader}, beside the default"))?;
    }
    if let Some(why) = &boot.refused {
        wrapped(to, &format!("  {WARN}!{WARN:#} "), "    ", why)?;
    }
    for line in boot.printed.iter().flat_map(|text| text.lines()) {
        writeln!(to, "    {line}")?;
    }
    Ok(())
}

/// The whole line, before and after.
pub fn tokens(to: &mut Terminal, boot: &BootPreview) -> io::Result<()> {
    let (Some(now), Some(then)) = (&boot.now, &boot.then) else { return Ok(()) };
    writeln!(to, "  {DIM}command line{DIM:#}")?;
    writeln!(to, "    {BAD}- {}{BAD:#}", marked(now, then))?;
    writeln!(to, "    {GOOD}+ {}{GOOD:#}", marked(then, now))
}

/// A line, the words that the other one does not have in bold.
fn marked(line: &str, other: &str) -> String {
    let others: Vec<&str> = split(other);
    let mark = |word: &str| match others.contains(&word) {
        true => word.to_owned(),
        false => format!("{BOLD}{word}{BOLD:#}"),
    };
    split(line).into_iter().map(mark).collect::<Vec<_>>().join(" ")
}

/// The words of a line with the name of a parameter.
pub(crate) fn same_name<'a>(line: &'a str, parameter: &str) -> Vec<&'a str> {
    let name = |word: &str| word.split('=').next().unwrap_or_default().replace('-', "_");
    split(line).into_iter().filter(|word| name(word) == name(parameter)).collect()
}

/// Splits at white space outside quotes, as the kernel does.
pub(crate) fn split(line: &str) -> Vec<&str> {
    let mut quoted = false;
    let cut = |c: char| {
        quoted ^= c == '"';
        c.is_whitespace() && !quoted
    };
    line.split(cut).filter(|word| !word.is_empty()).collect()
}

/// Why, what it costs, what can go wrong.
fn reason(to: &mut Terminal, reason: &Reason, verbose: bool) -> io::Result<()> {
    let next = format!("{INDENT}     ");
    let checks = reason.checks.join(", ");
    let impact = reason.impact.text();
    let why = format!("{} ({checks}; costs {impact})", reason.why);
    wrapped(to, &format!("{INDENT}{DIM}why{DIM:#}  "), &next, &why)?;
    if let Some(but) = &reason.trade_off {
        wrapped(to, &format!("{INDENT}{DIM}but{DIM:#}  "), &next, but)?;
    }
    if let Some(risk) = &reason.risk {
        wrapped(to, &format!("{INDENT}{WARN}RISK{WARN:#} "), &next, risk)?;
    }
    if verbose {
        let explain = reason.checks.iter().map(|id| format!("rtproof check explain {id}"));
        let explain: Vec<String> = explain.collect();
        wrapped(to, &format!("{INDENT}{DIM}more{DIM:#} "), &next, &explain.join(", "))?;
    }
    Ok(())
}
