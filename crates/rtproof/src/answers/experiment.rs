//! The answer of `experiment` and `tune apply --prove`: what helps, what does not, what is open.

use rtproof_record::{
    Effects,
    effects::{Decision, KnobResult, Statistic},
};
use rtproof_results::{
    answer::{Answer, Tone},
    effects::{ranked, signed},
};

/// Knobs that are named of each kind.
const NAMED_MAX: usize = 4;

/// The answer; `next`: what to do with the knobs that help, by name.
pub(crate) fn answer(
    effects: &Effects,
    cut_short: Option<&str>,
    next: impl FnOnce(&[&str]) -> Option<String>,
) -> Answer {
    let knobs = ranked(effects);
    let of = |decision| knobs.iter().filter(move |knob| knob.decision == decision).copied();
    let kinds = [
        (Decision::Helps, "helps", "help"),
        (Decision::Hurts, "hurts", "hurt"),
        (Decision::NoDifference, "makes no difference", "make no difference"),
        (Decision::CannotDecide, "cannot be decided", "cannot be decided"),
        (Decision::NotTried, "was not tried", "were not tried"),
    ];
    let parts = kinds.into_iter().filter_map(|(decision, one, many)| {
        let names: Vec<String> = of(decision).map(named).collect();
        let verb = if names.len() == 1 { one } else { many };
        (!names.is_empty()).then(|| format!("{} {verb}", listed(&names)))
    });
    let mut parts: Vec<String> = parts.collect();
    if parts.is_empty() {
        parts.push("no knob was tried".into());
    }
    parts.extend(cut_short.map(|why| format!("cut short: {why}")));
    let is_open =
        |knob: &&KnobResult| matches!(knob.decision, Decision::CannotDecide | Decision::NotTried);
    let open: Vec<&KnobResult> = knobs.iter().copied().filter(is_open).collect();
    let helping: Vec<&str> = of(Decision::Helps).map(|knob| knob.name.as_str()).collect();
    let tone = match (open.is_empty() && cut_short.is_none(), helping.is_empty()) {
        (false, _) => Tone::Doubtful,
        (true, false) => Tone::Good,
        (true, true) => Tone::Plain,
    };
    let why = open.first().map(|knob| format!("{}: {}", knob.name, knob.why));
    let next = next(&helping);
    Answer { result: parts.join("; "), tone, why, next }
}

/// A knob with its effect, where that is decided.
fn named(knob: &KnobResult) -> String {
    let effect = Effects::of(knob, Statistic::P999)
        .filter(|_| matches!(knob.decision, Decision::Helps | Decision::Hurts));
    match effect {
        Some(effect) => format!("{} (p99.9 {})", knob.name, signed(effect.ratio_ppm)),
        None => knob.name.clone(),
    }
}

fn listed(names: &[String]) -> String {
    let more = names.len().saturating_sub(NAMED_MAX);
    let mut shown: Vec<String> = names.iter().take(NAMED_MAX).cloned().collect();
    shown.extend((more > 0).then(|| format!("{more} more")));
    shown.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use rtproof_record::effects::{Design, Effect, How, Trial};

    fn effects(decisions: &[Decision]) -> Effects {
        let trial = Trial {
            seed: 1,
            design: Design::Single,
            pairs: 12,
            slice_ns: 1_000_000_000,
            margin_ppm: 50_000,
            level_ppb: 50_000_000,
            detectable_ppm: None,
        };
        let knob = |(number, decision): (usize, &Decision)| KnobResult {
            number: number as u32,
            name: format!("knob-{number}"),
            decision: *decision,
            why: "too few pairs".into(),
            effects: vec![Effect {
                statistic: Statistic::P999,
                pairs: 12,
                off_ns: 10,
                on_ns: 8,
                ratio_ppm: 800_000,
                low_ppm: None,
                high_ppm: None,
                p_ppb: None,
                adjusted_ppb: None,
            }],
            changes: Vec::new(),
            how: How::Toggled,
            kept: false,
        };
        Effects { trial, knobs: decisions.iter().enumerate().map(knob).collect(), slices: vec![] }
    }

    fn of(decisions: &[Decision], cut_short: Option<&str>) -> Answer {
        answer(&effects(decisions), cut_short, |names| (!names.is_empty()).then(|| names.join(" ")))
    }

    #[test]
    fn what_helps_is_named_and_what_is_open_is_not_good() {
        let both = of(&[Decision::CannotDecide, Decision::Helps], None);
        assert_eq!(both.result, "knob-1 (p99.9 −20 %) helps; knob-0 cannot be decided");
        assert_eq!((both.tone, both.next.as_deref()), (Tone::Doubtful, Some("knob-1")));
        assert_eq!(both.why.as_deref(), Some("knob-0: too few pairs"));
        let good = of(&[Decision::Helps, Decision::NoDifference], None);
        assert_eq!((good.tone, good.why), (Tone::Good, None));
        let none = of(&[Decision::NoDifference; 6], None);
        assert!(none.result.ends_with("2 more make no difference"), "{}", none.result);
        assert_eq!((none.tone, none.next), (Tone::Plain, None));
        let cut = of(&[], Some("SIGINT came"));
        assert_eq!(cut.result, "no knob was tried; cut short: SIGINT came");
        assert_eq!(cut.tone, Tone::Doubtful);
    }
}
