//! What changes of the machine did: a forest plot and a table, what helps first.

use std::io::{self, Write};

use maud::{Markup, html};

use rtproof_judge::units;
use rtproof_record::{
    Effects, Run,
    effects::{
        Decision, Effect, KnobResult, Slice, SlicePart, SliceStatistic, TrialDesign, TrialMode,
        TrialSummary,
    },
};
use rtproof_results::{p_value, percent, ranked, signed};

use crate::html::Figure;
use crate::svg::ranges;
use crate::text::{BAD, BOLD, DIM, GOOD, Terminal, WARN, fitting, wrapped};

/// The section; nothing where no change was tried.
pub(crate) fn section(run: &Run) -> Markup {
    let Some(effects) = &run.effects else { return Markup::default() };
    let knobs = ranked(effects);
    html! {
        section #effects {
            h2 { "Effects of the changes" }
            p { (sentence(effects)) }
            p.quiet { (how(&effects.trial)) }
            @if knobs.iter().any(|knob| !knob.effects.is_empty()) { (figure(effects, &knobs)) }
            (crate::html::scroll("Effects of the changes", &table_html(&knobs)))
            @if let Some(text) = before_after(effects) { p { (text) } }
        }
    }
}

fn sentence(effects: &Effects) -> String {
    let count = |decision| effects.knobs.iter().filter(|knob| knob.decision == decision).count();
    let counted = [
        (Decision::Helps, "helps", "help"),
        (Decision::Hurts, "hurts", "hurt"),
        (Decision::NoDifference, "makes no difference", "make no difference"),
        (Decision::CannotDecide, "cannot be decided", "cannot be decided"),
        (Decision::NotTried, "was not tried", "were not tried"),
    ];
    let parts: Vec<String> = counted
        .into_iter()
        .filter_map(|(decision, one, many)| match count(decision) {
            0 => None,
            1 => Some(format!("1 {one}")),
            n => Some(format!("{n} {many}")),
        })
        .collect();
    let kept = effects.knobs.iter().filter(|knob| knob.kept).count();
    format!(
        "Of {}: {}. {} in force; all else was undone.",
        units::count(effects.knobs.len(), "knob"),
        parts.join(", "),
        match kept {
            0 => "None was left".into(),
            n => units::count(n, "knob") + if n == 1 { " was left" } else { " were left" },
        }
    )
}

fn how(trial: &TrialSummary) -> String {
    let each = match trial.design {
        TrialDesign::Single => "each knob by itself, on and off",
        TrialDesign::Mirrored => "all at once, some on in one slice and the others in the other",
        TrialDesign::Screened => {
            "all at once first, some on in one slice and the others in the other, then each that \
             stood out with and without it, beside the others that help"
        }
        TrialDesign::Boots => "each slice a boot of its own, with and without",
    };
    let seen = trial.detectable_ppm.map_or(String::new(), |ppm| {
        format!(
            " From the slices before: a change of p99.9 by {} is found four times in five.",
            percent(ppm as f64 / 1e6)
        )
    });
    format!(
        "{} pairs of slices of {}, {each}, in random order (seed {}). Differences up to {} do not \
         matter: a change helps or hurts where it is shown to be larger. P values of the exact \
         sign-flip test below {} count, after Holm over all knobs. \"change of pairs\" is the median \
         of the ratios of pairs (Hodges-Lehmann), not the ratio of the medians; \"off\" and \"on\" are medians of the slices. p99.9 is \
         that of all wake-ups that were due, missed ones among them.{seen}",
        trial.pairs,
        units::duration(trial.slice_ns),
        trial.seed,
        percent(trial.margin_ppm as f64 / 1e6),
        trial.level_ppb as f64 / 1e9,
    )
}

fn figure(effects: &Effects, knobs: &[&KnobResult]) -> Markup {
    let title = "Latency with each change to without it";
    let best = knobs.iter().find_map(|knob| Some((knob, Effects::of(knob, SliceStatistic::P999)?)));
    let text = best.map_or(String::new(), |(knob, effect)| {
        format!(
            "{}: p99.9 {}{}. Points left of the line are lower latency.",
            knob.name,
            signed(effect.ratio_ppm),
            interval(effect).map_or(String::new(), |text| format!(", 95 % interval {text}"))
        )
    });
    let picture = ranges::draw_forest(effects, knobs, (title, &text));
    let legend = html! {
        ul.legend {
            li { span.swatch.point {} "p99.9 with its 95 % interval" }
            li { span.swatch.ring {} "latest wake-up" }
            li { span.swatch.band {} "too small to matter" }
        }
    };
    crate::html::figure(&Figure { title, text: &text, picture, legend, table: None })
}

fn interval(effect: &Effect) -> Option<String> {
    let (low, high) = effect.low_ppm.zip(effect.high_ppm)?;
    Some(format!("{} to {}", signed(low), signed(high)))
}

fn table_html(knobs: &[&KnobResult]) -> Markup {
    let cell = |knob: &KnobResult, text: fn(&Effect) -> String| {
        Effects::of(knob, SliceStatistic::P999).map_or_else(|| "–".into(), text)
    };
    let worst = |knob: &KnobResult| {
        let worst = Effects::of(knob, SliceStatistic::Max);
        worst.map_or_else(|| "–".into(), |effect| signed(effect.ratio_ppm))
    };
    crate::html::table(
        knobs,
        &[
            ("~knob", &|knob| {
                html! { (knob.name)
                small { @for change in &knob.changes { br; code { (change) } } } }
            }),
            ("", &|knob| html! { (decision(knob)) }),
            ("#p99.9 off", &|knob| html! { (cell(knob, |effect| units::ns(effect.off_ns))) }),
            ("#on", &|knob| html! { (cell(knob, |effect| units::ns(effect.on_ns))) }),
            ("#change of pairs", &|knob| html! { (cell(knob, |effect| signed(effect.ratio_ppm))) }),
            ("95 % interval", &|knob| {
                html! { (cell(knob, |effect| interval(effect).unwrap_or_else(|| "none".into()))) }
            }),
            ("#p (Holm)", &|knob| html! { (cell(knob, |effect| p_value(effect.adjusted_ppb))) }),
            ("#max", &|knob| html! { (worst(knob)) }),
            ("~why", &|knob| html! { (knob.why) }),
        ],
    )
}

fn decision(knob: &KnobResult) -> Markup {
    let (class, icon) = match knob.decision {
        Decision::Helps => ("good", "check"),
        Decision::Hurts => ("bad", "cross"),
        Decision::NoDifference => ("idle", "dash"),
        Decision::CannotDecide => ("doubtful", "question"),
        Decision::NotTried => ("idle", "dash"),
    };
    let kept = match (knob.kept, knob.how) {
        (true, _) => "kept",
        (false, TrialMode::NotTried) => "left out",
        (false, TrialMode::Toggled | TrialMode::Once) => "undone",
    };
    html! {
        span.status.(class) { (crate::html::icon(icon)) (knob.decision.text()) }
        br;
        small { (kept) }
    }
}

/// The machine before, and with what was kept.
fn before_after(effects: &Effects) -> Option<String> {
    let of = |part, statistic: fn(&Slice) -> Option<u64>| {
        let slices = effects.slices.iter().filter(|slice| slice.part == part);
        let mut values: Vec<u64> = slices.filter_map(statistic).collect();
        values.sort_unstable();
        values.get(values.len().saturating_sub(1) / 2).copied()
    };
    let both = |statistic| of(SlicePart::Before, statistic).zip(of(SlicePart::After, statistic));
    let (before, after) = both(|slice| slice.p999_ns)?;
    let (worst_before, worst_after) = both(|slice| slice.max_ns)?;
    Some(format!(
        "Before and after, with what was kept: p99.9 {} and {}, latest wake-up of a slice {} and \
         {} (medians of slices; one after the other, so that drift is not excluded).",
        units::ns(before),
        units::ns(after),
        units::ns(worst_before),
        units::ns(worst_after)
    ))
}

// What changes of the machine did: a table, what matters first.

/// What is going to happen.
pub fn before(to: &mut Terminal, sentence: &str) -> io::Result<()> {
    wrapped(to, &format!("{BOLD}Prove{BOLD:#}    "), "         ", sentence)
}

/// What an experiment is going to do.
pub fn experiment(to: &mut Terminal, sentence: &str) -> io::Result<()> {
    wrapped(to, &format!("{BOLD}Try{BOLD:#}      "), "         ", sentence)
}

/// A line while it happens.
pub fn line(to: &mut Terminal, line: &str) -> io::Result<()> {
    wrapped(to, "         ", "         ", line)
}

const HEADS: [&str; 7] = ["", "p99.9 off", "on", "of pairs", "95 % interval", "p (Holm)", "max"];

/// All knobs with their effects and what was decided.
pub fn table_text(to: &mut Terminal, effects: &Effects) -> io::Result<()> {
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
    let main = Effects::of(knob, SliceStatistic::P999);
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
        Effects::of(knob, SliceStatistic::Max)
            .map(|effect| signed(effect.ratio_ppm))
            .unwrap_or_default(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::sample;

    fn knob(number: u32, decision: Decision, ratio_ppm: u64) -> KnobResult {
        let effect = |statistic, ratio_ppm| Effect {
            statistic,
            pairs: 12,
            off_ns: 100_000,
            on_ns: ratio_ppm / 10,
            ratio_ppm,
            low_ppm: Some(ratio_ppm * 9 / 10),
            high_ppm: Some(ratio_ppm * 11 / 10),
            p_ppb: Some(488_281),
            adjusted_ppb: Some(2_929_688),
        };
        KnobResult {
            number,
            name: format!("check-{number}<b>"),
            changes: vec!["/sys/x = 1".into()],
            how: TrialMode::Toggled,
            decision,
            kept: decision == Decision::Helps,
            why: "because & so".into(),
            effects: vec![
                effect(SliceStatistic::P999, ratio_ppm),
                effect(SliceStatistic::Max, 1_000_000),
            ],
        }
    }

    fn effects() -> Effects {
        let slice = |number, part, p999_ns| Slice {
            number,
            part,
            pair: 0,
            on: Vec::new(),
            from_ns: 0,
            to_ns: 1,
            scheduled: 1000,
            p999_ns: Some(p999_ns),
            max_ns: Some(2 * p999_ns),
            missed: 0,
        };
        Effects {
            trial: TrialSummary {
                seed: 7,
                design: TrialDesign::Single,
                pairs: 12,
                slice_ns: 500_000_000,
                margin_ppm: 50_000,
                level_ppb: 50_000_000,
                detectable_ppm: Some(80_000),
            },
            knobs: vec![
                KnobResult { effects: vec![], ..knob(0, Decision::NotTried, 1) },
                knob(1, Decision::Hurts, 1_500_000),
                knob(2, Decision::Helps, 600_000),
                knob(3, Decision::CannotDecide, 980_000),
            ],
            slices: vec![slice(0, SlicePart::Before, 90_000), slice(1, SlicePart::After, 50_000)],
        }
    }

    #[test]
    fn what_helps_comes_first_and_every_knob_is_listed() {
        let mut run = sample::run(&sample::Shape::default());
        assert_eq!(section(&run).into_string(), "");
        run.effects = Some(effects());
        let html = section(&run).into_string();
        let at = |text: &str| html.find(text).unwrap_or_else(|| panic!("{text} in {html}"));
        assert!(at("check-2&lt;b&gt;") < at("check-1&lt;b&gt;"));
        for part in [
            "Of 4 knobs: 1 helps, 1 hurts, 1 cannot be decided, 1 was not tried.",
            "1 knob was left in force",
            "seed 7",
            "because &amp; so",
            "−40 %",
            "+50 %",
            "−46 % to −34 %",
            "0.0029",
            "chart-effects",
            "p99.9 90 µs and 50 µs",
            "by 8 % is found four times in five",
        ] {
            at(part);
        }
        assert!(!html.contains("NaN") && !html.contains("<b>"));
    }

    #[test]
    fn medians_and_the_median_of_ratios_are_two_kinds_of_number() {
        let mut run = sample::run(&sample::Shape::default());
        run.effects = Some(effects());
        let html = section(&run).into_string();
        assert!(html.contains("change of pairs") && html.contains("not the ratio of the medians"));
        let glyphs = crate::page::Glyphs::BLOCKS;
        let mut sheet = Terminal::new(100, glyphs);
        table_text(&mut sheet, &effects()).unwrap();
        let text = sheet.shown().split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains("of pairs: median of the ratios of pairs"), "{text}");
        assert!(text.contains("off and on: medians of the slices"), "{text}");
    }

    #[test]
    fn the_page_of_an_experiment_is_headed_by_its_name() {
        let mut run = sample::run(&sample::Shape::default());
        let mut report = sample::report(&run);
        report.verdict.answer = rtproof_judge::VerdictAnswer::NotJudged;
        let head = |run: &Run| {
            let section = crate::sections::summary::verdict_section(run, &report, None);
            section.into_string().contains("NOT JUDGED")
        };
        assert!(head(&run));
        run.effects = Some(effects());
        assert!(!head(&run));
    }
}
