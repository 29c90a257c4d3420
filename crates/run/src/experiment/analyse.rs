//! From slices to the report of each knob. Pure.

#[cfg(test)]
mod tests;

use rtproof_host::tune::Switching;
use rtproof_judge::units;
use rtproof_record::effects::{
    Decision, Effect, KnobResult as Reported, Slice, SlicePart, SliceStatistic, TrialMode,
};
use rtproof_results::{percent, signed};
use rtproof_stats::paired::{self, MAIN, Margin, PairedAnswer, Spread, WeightedQuestion};

use super::factors::{Candidate, change_line};

pub const CONFIDENCE: f64 = 0.95;

/// P values below this count, after Holm.
pub const LEVEL: f64 = 0.05;

/// Differences up to this share do not matter.
pub const MARGIN: f64 = 0.05;

/// Statistics that are tested of each knob.
pub const STATISTICS: usize = SliceStatistic::ALL.len();

/// Parameters of the analysis besides the slices.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// Differences up to this do not matter, as a share: 0.05.
    pub margin: f64,
    /// Time that was given.
    pub total_ns: u64,
    /// Whether all knobs were tried at once.
    pub mirrored: bool,
    /// Knobs that were asked about, and all that helps together where that was.
    pub knobs: usize,
}

/// A knob that could not be made, or was not tried, with the reason.
pub type Untried = std::collections::BTreeMap<usize, String>;

/// Reports of all knobs.
pub fn analyse(
    knobs: &[Candidate],
    slices: &[Slice],
    untried: &Untried,
    terms: Terms,
) -> Vec<Reported> {
    with_together(knobs, slices, untried, terms).0
}

/// The same, and what all that seems to help does together where that was measured: each statistic
/// with what is said of it.
pub fn with_together(
    knobs: &[Candidate],
    slices: &[Slice],
    untried: &Untried,
    terms: Terms,
) -> (Vec<Reported>, Vec<(Effect, PairedAnswer)>) {
    let margin = Margin::of_share(terms.margin);
    let mut reported: Vec<Reported> = Vec::new();
    let mut looks: Vec<Option<ComparedStatistic>> = Vec::new();
    for (at, knob) in knobs.iter().enumerate() {
        reported.push(begin(at, knob));
        for statistic in SliceStatistic::ALL {
            let look = (knob.kind == Switching::Toggled && !untried.contains_key(&at))
                .then(|| ComparedStatistic::at(at, statistic, slices, margin))
                .flatten();
            looks.push(look);
        }
    }
    let together = SliceStatistic::ALL.map(|it| ComparedStatistic::together(it, slices, margin));
    looks.extend(together);
    let mut answers = answers(&looks, terms).into_iter();
    let mut judged = looks.chunks(SliceStatistic::ALL.len()).map(|looks| -> Vec<Judged<'_>> {
        let one = |(look, (adjusted, answer))| Judged { comparison: look, adjusted, answer };
        looks.iter().flatten().zip(answers.by_ref()).map(one).collect()
    });
    for (at, (reported, judged)) in reported.iter_mut().zip(judged.by_ref()).enumerate() {
        reported.effects = judged.iter().map(Judged::effect).collect();
        if let Some(why) = untried.get(&at) {
            reported.why.clone_from(why);
        } else if knobs[at].kind == Switching::Once {
            report_once(reported, at, slices);
        } else if knobs[at].kind == Switching::Toggled {
            decide(reported, &judged, terms);
        }
    }
    let together = judged.next().unwrap_or_default();
    let together = together.iter().map(|it| (it.effect(), it.answer)).collect();
    (reported, together)
}

/// What is said of each that was looked at, in order: two statistics of each knob, p99.9 first.
fn answers(
    looks: &[Option<ComparedStatistic>],
    terms: Terms,
) -> Vec<(paired::Adjusted, PairedAnswer)> {
    let question = |(at, look): (usize, &Option<ComparedStatistic>)| {
        let look = look.as_ref()?;
        let weight = weight(look.statistic);
        Some(WeightedQuestion { of: at / STATISTICS, paired: look.paired, weight })
    };
    let questions: Vec<WeightedQuestion> = looks.iter().enumerate().filter_map(question).collect();
    paired::answers(&questions, terms.knobs, LEVEL)
}

/// Share of the level of a knob that a statistic uses first.
pub fn weight(statistic: SliceStatistic) -> f64 {
    match statistic {
        SliceStatistic::P999 => MAIN,
        SliceStatistic::Max => paired::rest(STATISTICS - 1),
    }
}

/// Report of a knob before it is tried.
pub fn begin(at: usize, knob: &Candidate) -> Reported {
    let why = match knob.kind {
        Switching::Later => {
            "does nothing before the next boot or login, so there is nothing to measure now; apply \
             it by name"
        }
        Switching::Toggled | Switching::Once => "the run ended before anything could be said",
    };
    let changes = knob.now.iter().chain(&knob.later).map(|(_, item)| change_line(&item.change));
    Reported {
        number: u32::try_from(at).unwrap_or(u32::MAX),
        name: knob.name.clone(),
        changes: changes.chain(knob.settings.iter().map(ToString::to_string)).collect(),
        how: TrialMode::NotTried,
        decision: Decision::NotTried,
        kept: false,
        why: why.into(),
        effects: Vec::new(),
    }
}

/// A statistic with and without a knob.
struct ComparedStatistic {
    statistic: SliceStatistic,
    paired: paired::Paired,
    /// Of the pairs' differences; `None`: a single pair.
    spread: Option<Spread>,
    off_ns: u64,
    on_ns: u64,
}

impl ComparedStatistic {
    fn at(
        knob: usize,
        statistic: SliceStatistic,
        slices: &[Slice],
        margin: Margin,
    ) -> Option<Self> {
        let is_on = |slice: &Slice| slice.on.iter().any(|&on| on as usize == knob);
        Self::of(SlicePart::Pair, is_on, statistic, slices, margin)
    }

    /// All that seems to help, and nothing.
    fn together(statistic: SliceStatistic, slices: &[Slice], margin: Margin) -> Option<Self> {
        Self::of(SlicePart::Together, |slice| !slice.on.is_empty(), statistic, slices, margin)
    }

    fn of(
        part: SlicePart,
        is_on: impl Fn(&Slice) -> bool,
        statistic: SliceStatistic,
        slices: &[Slice],
        margin: Margin,
    ) -> Option<Self> {
        let pairs = slices.iter().filter(|slice| slice.part == part);
        let mut open: std::collections::BTreeMap<u32, &Slice> = Default::default();
        let (mut off, mut on) = (Vec::new(), Vec::new());
        for slice in pairs {
            let Some(first) = open.remove(&slice.pair) else {
                open.insert(slice.pair, slice);
                continue;
            };
            let (with, without) = match (is_on(first), is_on(slice)) {
                (true, false) => (first, slice),
                (false, true) => (slice, first),
                _ => continue,
            };
            if let (Some(with), Some(without)) = (value(statistic, with), value(statistic, without))
            {
                on.push(with);
                off.push(without);
            }
        }
        let log = |ns: u64| (ns.max(1) as f64).ln();
        let differences: Vec<f64> =
            on.iter().zip(&off).map(|(&on, &off)| log(on) - log(off)).collect();
        let paired = paired::compare(&differences, CONFIDENCE, margin)?;
        let spread = Spread::of_pairs(&differences);
        Some(Self { statistic, paired, spread, off_ns: median(&mut off), on_ns: median(&mut on) })
    }
}

/// A statistic with its answer.
struct Judged<'a> {
    comparison: &'a ComparedStatistic,
    adjusted: paired::Adjusted,
    answer: PairedAnswer,
}

impl Judged<'_> {
    fn effect(&self) -> Effect {
        let ComparedStatistic { statistic, paired, off_ns, on_ns, .. } = *self.comparison;
        let ends = paired.interval;
        Effect {
            statistic,
            pairs: u32::try_from(paired.n).unwrap_or(u32::MAX),
            off_ns,
            on_ns,
            ratio_ppm: ppm(paired.estimate.exp()),
            low_ppm: ends.map(|(low, _)| ppm(low.exp())),
            high_ppm: ends.map(|(_, high)| ppm(high.exp())),
            p_ppb: Some(share(paired.p, 1e9)),
            adjusted_ppb: Some(share(self.adjusted.p, 1e9)),
        }
    }
}

/// The statistic of a slice.
pub fn value(statistic: SliceStatistic, slice: &Slice) -> Option<u64> {
    match statistic {
        SliceStatistic::P999 => slice.p999_ns,
        SliceStatistic::Max => slice.max_ns,
    }
}

/// A ratio in parts per million, rounded.
pub fn ppm(ratio: f64) -> u64 {
    share(ratio, 1e6)
}

fn share(value: f64, of: f64) -> u64 {
    // Below 2^53, and saturating where it is no number.
    (value * of).round().clamp(0.0, 9e15) as u64
}

fn median(values: &mut [u64]) -> u64 {
    values.sort_unstable();
    values.get(values.len().saturating_sub(1) / 2).copied().unwrap_or(0)
}

/// Median of a statistic over slices.
pub fn median_of<'a>(
    statistic: SliceStatistic,
    slices: impl Iterator<Item = &'a Slice>,
) -> Option<u64> {
    let mut values: Vec<u64> = slices.filter_map(|slice| value(statistic, slice)).collect();
    (!values.is_empty()).then(|| median(&mut values))
}

/// Spread of the logarithm of p99.9 from one slice to the next.
pub fn spread<'a>(slices: impl Iterator<Item = &'a Slice>) -> Option<f64> {
    let values = slices.filter_map(|slice| slice.p999_ns).map(|ns| (ns.max(1) as f64).ln());
    paired::successive_sd(&values.collect::<Vec<_>>())
}

/// Decides a knob that was switched on and off: it helps or hurts where one statistic is shown to
/// differ by more than the margin, and the other one is not shown to differ the other way.
fn decide(reported: &mut Reported, judged: &[Judged<'_>], terms: Terms) {
    use rtproof_stats::paired::PairedAnswer::{
        Equivalent, Higher, Lower, SomeHigher, SomeLower, Undecided,
    };
    reported.how = TrialMode::Toggled;
    let Some(main) = judged.iter().find(|it| it.comparison.statistic == SliceStatistic::P999)
    else {
        reported.decision = Decision::CannotDecide;
        reported.why = "no pair of slices was measured to the end; give it more time".into();
        return;
    };
    let changes = |those: &[PairedAnswer]| {
        let those = judged.iter().filter(|it| those.contains(&it.answer));
        those.map(|it| change(&it.effect())).collect::<Vec<_>>().join("; ")
    };
    let has = |answer| judged.iter().any(|it| it.answer == answer);
    let margin = percent(terms.margin);
    let more = |word: &str, answer| format!("{word} by more than {margin}: {}", changes(&[answer]));
    let some = |word: &str, answers: &[PairedAnswer]| {
        let what = changes(answers);
        format!("{word}, but that it is {word} by more than {margin} is not shown: {what}")
    };
    let is_down = has(Lower) || has(SomeLower);
    let is_up = has(Higher) || has(SomeHigher);
    (reported.decision, reported.why) = match main.answer {
        _ if is_down && is_up && (has(Lower) || has(Higher)) => (
            Decision::CannotDecide,
            format!(
                "{}, but {}: a choice for you",
                changes(&[Lower, SomeLower]),
                changes(&[Higher, SomeHigher])
            ),
        ),
        _ if has(Lower) => (Decision::Helps, more("lower", Lower)),
        _ if has(Higher) => (Decision::Hurts, more("higher", Higher)),
        Equivalent => {
            (Decision::NoDifference, format!("no difference of p99.9 larger than {margin}"))
        }
        _ if is_down && !is_up => (Decision::CannotDecide, some("lower", &[SomeLower])),
        _ if is_up && !is_down => (Decision::CannotDecide, some("higher", &[SomeHigher])),
        Lower | Higher | SomeLower | SomeHigher | Undecided => {
            (Decision::CannotDecide, undecided(main.comparison, terms))
        }
    };
}

/// Why nothing can be said, and what it would take.
fn undecided(look: &ComparedStatistic, terms: Terms) -> String {
    let n = look.paired.n;
    let least = paired::pairs_least(terms.knobs, LEVEL);
    let Some(spread) = look.spread.filter(|_| n >= least) else {
        return format!(
            "{n} pairs were measured, and fewer than {least} decide nothing of {}; give it more \
             time",
            units::count(terms.knobs.max(1), "knob")
        );
    };
    let margin = Margin::of_share(terms.margin);
    let estimate = look.paired.estimate;
    // To show that it is beyond the margin, or within it.
    let gap = (estimate - margin.low).abs().min((estimate - margin.high).abs());
    let seen = paired::detectable(spread, n, terms.knobs, LEVEL, margin);
    let seen = seen.map_or(f64::INFINITY, f64::exp_m1);
    let level = MAIN * LEVEL / terms.knobs.max(1) as f64;
    let times = paired::pairs_for(spread.sd, n, gap, level).unwrap_or(f64::INFINITY);
    let more = (times * terms.total_ns as f64 - terms.total_ns as f64).max(0.0);
    let more = match more {
        more if more < 1e9 => "a second try may show it".into(),
        more if more < 864e11 => {
            format!("about {} more would show it", units::duration(more.ceil() as u64))
        }
        _ => "more than a day would be needed".into(),
    };
    let others = if terms.mirrored {
        "; what the other knobs do is part of the noise: try again with what helps in force"
    } else {
        ""
    };
    if seen.is_finite() && seen < 9.0 {
        format!(
            "slices differ too much: a change of p99.9 by {} is found four times in five, smaller \
             ones less often; {more}{others}",
            percent(seen)
        )
    } else {
        format!("slices differ too much for any change to be found; {more}{others}")
    }
}

/// Tells before and after of a knob that was made once.
fn report_once(reported: &mut Reported, at: usize, slices: &[Slice]) {
    let with = |slice: &&Slice| {
        slice.part == SlicePart::Once && slice.on.iter().any(|&on| on as usize == at)
    };
    for statistic in SliceStatistic::ALL {
        let before = slices.iter().filter(|slice| slice.part == SlicePart::Before);
        let off = median_of(statistic, before);
        let on = median_of(statistic, slices.iter().filter(with));
        if let Some((off_ns, on_ns)) = off.zip(on) {
            reported.effects.push(Effect {
                statistic,
                pairs: 0,
                off_ns,
                on_ns,
                ratio_ppm: ppm(on_ns as f64 / off_ns.max(1) as f64),
                low_ppm: None,
                high_ppm: None,
                p_ppb: None,
                adjusted_ppb: None,
            });
        }
    }
    if !reported.effects.is_empty() {
        reported.how = TrialMode::Once;
        reported.decision = Decision::CannotDecide;
        reported.why = "measured once before and once after: drift is not excluded; judge by the \
                    numbers and apply it by name"
            .into();
    }
}

/// An effect in words.
fn change(effect: &Effect) -> String {
    let interval = match (effect.low_ppm, effect.high_ppm) {
        (Some(low), Some(high)) => format!(", 95 % interval {} to {}", signed(low), signed(high)),
        _ => String::new(),
    };
    format!(
        "{} {} (median of the ratios of pairs{interval}; medians of the slices {} and {})",
        effect.statistic.name(),
        signed(effect.ratio_ppm),
        units::ns(effect.off_ns),
        units::ns(effect.on_ns),
    )
}
