//! The answer of `measure`: the largest sample of all cells, its causes, or what two conditions
//! decide; what is not measured yet.

use std::path::Path;

use rtproof_host::{CpuList, facts::tasks::Policy};
use rtproof_judge::{
    compare,
    units::{self, grouped},
};
use rtproof_results::{
    Answer, Tone,
    measure::{Cell, CellResult, CellState, ConditionPair, Index, ThreadResult},
};

use crate::next;

/// The answer. `folder`: where the records are.
pub(crate) fn answer(index: &Index, folder: &Path) -> Answer {
    let (measured, tone) = match index.compared.as_slice() {
        [] => largest(index),
        pairs => compared(pairs),
    };
    let unfinished = index.cells.len() - index.count(CellState::Done);
    let worst = worst(index);
    let next = match unfinished {
        0 => decided(index).or_else(|| proved(index)).or_else(|| {
            let (cell, thread) = worst?;
            explained(folder, cell, thread).or_else(|| judged(index, &cell.cell))
        }),
        _ => Some(format!("rtproof measure --resume {}", next::path(folder))),
    };
    let unloaded = index.unloaded();
    let without = match unloaded {
        0 => String::new(),
        n => format!("; not all of the load worked in {}", units::count(n, "cell")),
    };
    Answer {
        result: match unfinished {
            0 => format!("{measured}{without}"),
            _ => format!("{}; {measured}{without}", states(index)),
        },
        tone: match index.count(CellState::Failed) {
            0 if unfinished + unloaded > 0 => Tone::Doubtful,
            0 => tone,
            _ => Tone::Bad,
        },
        why: worst.and_then(|(cell, _)| match index.cells.len() {
            1 => cell.spikes.clone(),
            _ => Some(format!("cell {}: {}", cell.cell.number, cell.spikes.as_ref()?)),
        }),
        next,
    }
}

/// State of the cells that are not done.
fn states(index: &Index) -> String {
    let states = [
        (CellState::CutShort, "cut short"),
        (CellState::Failed, "failed"),
        (CellState::Missing, "not measured"),
    ];
    let counts = states.into_iter().filter_map(|(state, word)| match index.count(state) {
        0 => None,
        n => Some(format!("{n} {word}")),
    });
    let all = units::count(index.cells.len(), "cell");
    format!("of {all} {}", counts.collect::<Vec<_>>().join(", "))
}

/// The CPU with the largest sample.
fn worst(index: &Index) -> Option<(&CellResult, &ThreadResult)> {
    let measured = index.rows().filter(|(_, thread)| thread.samples.max_ns.is_some());
    measured.max_by_key(|(_, thread)| thread.samples.max_ns)
}

fn largest(index: &Index) -> (String, Tone) {
    let Some((cell, thread)) = worst(index) else {
        return ("nothing was measured".into(), Tone::Doubtful);
    };
    // A duration is no latency: only what is alike is counted together.
    let alike = || index.rows().map(|(_, of)| of).filter(|of| of.quantity == thread.quantity);
    let scheduled: u64 = alike().map(|of| of.scheduled).sum();
    let missed: u64 = alike().map(|of| of.missed).sum();
    let late: Option<u64> = alike().map(|of| of.late).sum();
    let at = match index.cells.len() {
        1 => format!("CPU {}", thread.cpu),
        _ => format!("cell {}, CPU {}", cell.cell.number, thread.cpu),
    };
    let mut text = format!(
        "{} up to {} ({at}) in {} cycles",
        thread.quantity.replace('_', "-"),
        units::ns(thread.samples.max_ns.unwrap_or(0)),
        grouped(scheduled),
    );
    text += &match late {
        Some(late) => format!(", {} later than the budget", grouped(late)),
        None => String::new(),
    };
    text += &format!(", {} missed", grouped(missed));
    if let Some((CellResult { cell, .. }, of)) = unprivileged(index) {
        let named = |policy: &str, priority: u32| match priority {
            0 => policy.to_owned(),
            priority => format!("{policy} {priority}"),
        };
        text += &format!(
            "; measured with {}: {} was refused",
            named(of.policy, of.priority),
            named(rtproof_results::policy_name(cell.policy), cell.priority)
        );
        return (text, Tone::Bad);
    }
    (text, if late.unwrap_or(0) > 0 { Tone::Bad } else { Tone::Plain })
}

/// What pairs decide: a sentence of one combination, the counts of several.
fn compared(pairs: &[ConditionPair]) -> (String, Tone) {
    let of = |answer| pairs.iter().filter(|pair| pair.answer == answer).count();
    let words = [
        (compare::CompareAnswer::Better, "better"),
        (compare::CompareAnswer::Worse, "worse"),
        (compare::CompareAnswer::NoDifference, "without a difference"),
        (compare::CompareAnswer::CannotDecide, "not decided"),
    ];
    let tone = match () {
        () if of(compare::CompareAnswer::Worse) > 0 => Tone::Bad,
        () if of(compare::CompareAnswer::CannotDecide) > 0 => Tone::Doubtful,
        () if of(compare::CompareAnswer::Better) > 0 => Tone::Good,
        () => Tone::Plain,
    };
    let text = match pairs {
        [one] => one.sentence.clone(),
        _ => {
            let counts = words.into_iter().filter_map(|(answer, word)| match of(answer) {
                0 => None,
                n => Some(format!("{n} {word}")),
            });
            let of = units::count(pairs.len(), "combination");
            let (from, to) = (&pairs[0].from, &pairs[0].to);
            format!("of {of}, {to} against {from}: {}", counts.collect::<Vec<_>>().join(", "))
        }
    };
    (text, tone)
}

/// The changes of `--tuned`, where all that is decided says that they help.
fn decided(index: &Index) -> Option<String> {
    let better = |pair: &ConditionPair| pair.answer == compare::CompareAnswer::Better;
    let not_worse = |pair: &ConditionPair| pair.answer != compare::CompareAnswer::Worse;
    let helps = index.compared.iter().any(better) && index.compared.iter().all(not_worse);
    let [_, tuned] = index.conditions.as_slice() else { return None };
    let apply = tuned.before.as_deref()?.strip_suffix(" --yes")?;
    (helps && apply.starts_with("rtproof tune apply ")).then(|| format!("{apply} --confirm 60s"))
}

/// The first thread that got less than the real-time policy and priority of its cell.
fn unprivileged(index: &Index) -> Option<(&CellResult, &ThreadResult)> {
    let wants = |cell: &Cell| matches!(cell.policy, Policy::Fifo | Policy::Rr | Policy::Deadline);
    index.rows().find(|(CellResult { cell, .. }, of)| {
        wants(cell)
            && (of.policy != rtproof_results::policy_name(cell.policy)
                || of.priority < cell.priority)
    })
}

/// Text that names what refused it.
fn proved(index: &Index) -> Option<String> {
    let (cell, _) = unprivileged(index)?;
    let priority = cell.cell.priority;
    (priority > 0).then(|| format!("rtproof check --prove priority --priority {priority}"))
}

fn explained(folder: &Path, cell: &CellResult, thread: &ThreadResult) -> Option<String> {
    let record = folder.join(format!("{}.rtproof", cell.cell.name));
    (!thread.spikes.is_empty())
        .then(|| format!("rtproof explain {} --worst 1", next::path(&record)))
}

/// The run that judges what a cell measured; `None`: `prove` does something else.
fn judged(index: &Index, cell: &Cell) -> Option<String> {
    let is_as_it_is = cell.condition.is_empty() && cell.workloads == ["timer-wakeup"];
    let policy = match cell.policy {
        Policy::Fifo => format!("--priority {}", cell.priority),
        Policy::Other => "--policy other".to_owned(),
        _ => return None,
    };
    let budget =
        index.budget_ns.map_or_else(String::new, |ns| format!(" --budget {}", next::time(ns)));
    is_as_it_is.then(|| {
        format!(
            "rtproof prove --cpus {} {policy} --period {}{budget} --load {}{}",
            CpuList::new(cell.cpus.clone()),
            next::time(cell.period_ns),
            next::quoted(&cell.load),
            next::clock(index.clock),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    fn pair(answer: compare::CompareAnswer) -> ConditionPair {
        ConditionPair {
            what: "timer".into(),
            from: "baseline".into(),
            to: "tuned".into(),
            pairs: 6,
            pairs_min: 6,
            detectable_ratio: None,
            answer,
            sentence: "Better.".into(),
        }
    }

    #[test]
    fn the_counts_of_several_combinations_are_the_result() {
        use rtproof_judge::compare::CompareAnswer::{Better, CannotDecide, Worse};
        let of = |answers: &[compare::CompareAnswer]| {
            compared(&answers.iter().copied().map(pair).collect::<Vec<_>>())
        };
        assert_eq!(of(&[Better]), ("Better.".into(), Tone::Good));
        let (text, tone) = of(&[Better, Worse, Worse]);
        assert_eq!(text, "of 3 combinations, tuned against baseline: 1 better, 2 worse");
        assert_eq!(tone, Tone::Bad);
        assert_eq!(of(&[Better, CannotDecide]).1, Tone::Doubtful);
    }
}
