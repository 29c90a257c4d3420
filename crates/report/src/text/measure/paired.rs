//! Two states of the machine compared: how many pairs there are, and what they decide.

use std::io;

use rtproof_results::measure::{index::Index, plan::Plan};
use rtproof_stats::paired::{PAIRS, PAIRS_MIN};

use crate::text::sheet::{BOLD, DIM, Sheet, wrapped};

/// Combinations that are named, at most.
const SHOWN: usize = 20;
/// Columns before the text.
const MARGIN: &str = "         ";

/// Whether so many repetitions can decide between two conditions; before anything is measured.
pub(super) fn before(to: &mut Sheet, plan: &Plan) -> io::Result<()> {
    let [first, second] = plan.conditions.as_slice() else { return Ok(()) };
    let pairs = plan.cells.iter().map(|cell| cell.repetition).max().unwrap_or(0) as usize;
    let text = match pairs {
        0..PAIRS_MIN => format!(
            "{pairs} of {} and {}: shown, not decided; --repeat {PAIRS_MIN} decides on large \
             changes, --repeat {PAIRS} on smaller ones",
            first.name, second.name
        ),
        _ => format!(
            "{pairs} of {} and {}: enough to decide ({PAIRS_MIN} are needed; {PAIRS} find smaller \
             changes)",
            first.name, second.name
        ),
    };
    wrapped(to, &format!("{BOLD}Pairs{BOLD:#}    "), MARGIN, &text)
}

/// What the pairs decide, a line a combination.
pub(super) fn compared(to: &mut Sheet, index: &Index) -> io::Result<()> {
    for (at, pair) in index.compared.iter().take(SHOWN).enumerate() {
        let head = if at == 0 { format!("{BOLD}Compare{BOLD:#}  ") } else { MARGIN.into() };
        let text = format!("{}: {}", pair.what, pair.sentence);
        wrapped(to, &head, "           ", &text)?;
        let least = match pair.detectable_ratio {
            Some(ratio) => format!(
                "{} pairs find a change of p99.9 by a factor of {ratio:.2} four times in five",
                pair.pairs
            ),
            None if pair.pairs < pair.pairs_min => format!(
                "pairs: {}, needed: {}; more: --repeat {}",
                pair.pairs,
                pair.pairs_min,
                pair.pairs_min.max(PAIRS)
            ),
            None => format!("pairs: {}; the smallest change they find is unknown", pair.pairs),
        };
        wrapped(to, &format!("           {DIM}"), "           ", &format!("{least}{DIM:#}"))?;
    }
    let more = match index.compared.len() {
        0 | 1 => return Ok(()),
        n if n > SHOWN => format!("{} more are in index.json. ", n - SHOWN),
        _ => String::new(),
    };
    let text = format!(
        "{more}Each comparison has its own confidence of 95 %: of twenty without a difference, one \
         may still decide."
    );
    wrapped(to, MARGIN, MARGIN, &text)
}
