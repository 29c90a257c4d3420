//! What changes of the machine did: a table, what matters first.

use std::io::{self, Write};

use rtproof_judge::units;
use rtproof_record::{
    Effects,
    effects::{Decision, Effect, KnobResult, Statistic},
};
use rtproof_results::effects::{p_value, ranked, signed};

use crate::text::sheet::{BAD, BOLD, DIM, GOOD, Sheet, WARN, fitting, wrapped};

/// What is going to happen.
pub fn before(to: &mut Sheet, sentence: &str) -> io::Result<()> {
    wrapped(to, &format!("{BOLD}Prove{BOLD:#}    "), "         ", sentence)
}

/// What an experiment is going to do.
pub fn experiment(to: &mut Sheet, sentence: &str) -> io::Result<()> {
    wrapped(to, &format!("{BOLD}Try{BOLD:#}      "), "         ", sentence)
}

/// A line while it happens.
pub fn line(to: &mut Sheet, line: &str) -> io::Result<()> {
    wrapped(to, "         ", "         ", line)
}

const HEADS: [&str; 7] = ["", "p99.9 off", "on", "of pairs", "95 % interval", "p (Holm)", "max"];

/// All knobs with their effects and what was decided.
pub fn table(to: &mut Sheet, effects: &Effects) -> io::Result<()> {
    let knobs = ranked(effects);
    let mut rows = vec![HEADS.map(String::from)];
    rows.extend(knobs.iter().map(|knob| row(knob)));
    let wide =
        |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..HEADS.len()).map(wide).collect();
    let shown = fitting(&rows[0], &widths, &["max"], to.page.columns.saturating_sub(9));
    writeln!(to, "{BOLD}Effects{BOLD:#}  of the changes on latency, with them to without them")?;
    let note = "off and on: medians of the slices. of pairs: median of the ratios of pairs, which \
                is not the ratio of these medians.";
    wrapped(to, &format!("         {DIM}"), "         ", &format!("{note}{DIM:#}"))?;
    for (at, row) in rows.iter().enumerate() {
        let mut line = String::from("         ");
        for &column in &shown {
            let cell = &row[column];
            let pad = " ".repeat(widths[column] - cell.chars().count());
            line += &if column == 0 { format!("{cell}{pad}") } else { format!("  {pad}{cell}") };
        }
        match at.checked_sub(1).map(|at| knobs[at]) {
            None => writeln!(to, "{DIM}{}{DIM:#}", line.trim_end())?,
            Some(knob) => {
                writeln!(to, "{}", line.trim_end())?;
                let style = match knob.decision {
                    Decision::Helps => GOOD,
                    Decision::Hurts => BAD,
                    Decision::CannotDecide => WARN,
                    Decision::NoDifference | Decision::NotTried => DIM,
                };
                let head = format!("           {style}{}{style:#}", knob.decision.text());
                let kept = if knob.kept { ", kept: " } else { ", undone: " };
                let kept = if knob.decision == Decision::NotTried { ": " } else { kept };
                wrapped(to, &head, "             ", &format!("{kept}{}", knob.why))?;
            }
        }
    }
    Ok(())
}

fn row(knob: &KnobResult) -> [String; 7] {
    let main = Effects::of(knob, Statistic::P999);
    let of = |text: fn(&Effect) -> String| main.map(text).unwrap_or_default();
    [
        knob.name.clone(),
        of(|effect| units::ns(effect.off_ns)),
        of(|effect| units::ns(effect.on_ns)),
        of(|effect| signed(effect.ratio_ppm)),
        of(|effect| match (effect.low_ppm, effect.high_ppm) {
            (Some(low), Some(high)) => format!("{} to {}", signed(low), signed(high)),
            _ => "none".into(),
        }),
        of(|effect| p_value(effect.adjusted_ppb)),
        Effects::of(knob, Statistic::Max)
            .map(|effect| signed(effect.ratio_ppm))
            .unwrap_or_default(),
    ]
}
