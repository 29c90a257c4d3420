//! Result of a screening, and the final report of every knob.

use schemars::JsonSchema;
use serde::Serialize;

use rtproof_record::effects::{
    Decision, Effect, KnobResult as Reported, Slice, SlicePart, SliceStatistic, TrialMode,
};
use rtproof_results::signed;
use rtproof_stats::{
    paired::{Adjusted, Margin, PairedAnswer, WeightedQuestion, answers},
    screening::{self, Design, Lenth},
};

use super::analyse::{self, CONFIDENCE, LEVEL, MARGIN, Terms, Untried, ppm, value};
use super::factors::Candidate;

/// What a screening found.
#[derive(Clone, Debug)]
pub struct Screening {
    /// Knobs worth pairs of their own, what lowers p99.9 most first.
    pub selected: Vec<usize>,
    /// Those of them that seem to lower it.
    pub lowering: Vec<usize>,
    /// Each knob's effects in the order of [`SliceStatistic::ALL`]; none where pairs were lost.
    effects: [Vec<screening::MainEffect>; 2],
    /// Lenth's margins of noise.
    margins: [Option<Lenth>; 2],
    interactions: Vec<screening::Interaction>,
}

/// A screening as it is reported.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ShownScreening {
    /// Every knob and statistic.
    effects: Vec<ShownEffect>,
    /// What two knobs do to p99.9 together beyond what each does: only where every combination was
    /// measured. Pair is compared with pair: drift is not excluded.
    interactions: Vec<ShownInteraction>,
}

/// The main effect of a knob.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
struct ShownEffect {
    /// Number of the knob.
    knob: usize,
    /// Statistic of the wake-ups.
    statistic: SliceStatistic,
    /// With to without it, parts per million: the contrast of the design.
    ratio_ppm: u64,
    /// P value of the exact sign-flip test, parts per billion, not adjusted.
    p_ppb: u64,
    /// Lenth's margin of error as a ratio; null: too few contrasts.
    margin_ppm: Option<u64>,
    /// Whether it got pairs of its own.
    #[serde(rename = "stands_out")]
    selected: bool,
}

/// What two knobs do together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
struct ShownInteraction {
    /// Numbers of the knobs.
    knobs: [usize; 2],
    /// Ratio, parts per million: 1000000 is nothing.
    ratio_ppm: u64,
}

/// What the slices of a screening say.
pub fn screened(design: &Design, slices: &[Slice]) -> Screening {
    let [p999, max] = SliceStatistic::ALL.map(|statistic| responses(design, statistic, slices));
    let interactions = screening::interactions(design, &p999);
    let margin = Margin::of_share(MARGIN);
    let [(p999, noise), (max, noise_max)] =
        [p999, max].map(|pairs| screening::effects(design, &pairs, CONFIDENCE, margin));
    let is_selected = |at: &usize| {
        [&p999, &max].into_iter().any(|of| of.get(*at).is_some_and(screening::MainEffect::is_large))
    };
    let mut selected: Vec<usize> = (0..design.factors).filter(is_selected).collect();
    let contrast = |at: usize| p999.get(at).map_or(0.0, |effect| effect.contrast);
    selected.sort_by(|&a, &b| contrast(a).total_cmp(&contrast(b)));
    let lowering = selected.iter().copied().filter(|&at| contrast(at) < 0.0).collect();
    Screening {
        selected,
        lowering,
        effects: [p999, max],
        margins: [noise, noise_max],
        interactions,
    }
}

/// Logarithms of a statistic in both slices of each pair; `None`: the pair was lost.
fn responses(
    design: &Design,
    statistic: SliceStatistic,
    slices: &[Slice],
) -> Vec<Option<[f64; 2]>> {
    let log = |slice: &Slice| value(statistic, slice).map(|ns| (ns.max(1) as f64).ln());
    let pair = |pair: usize| {
        let mut of =
            slices.iter().filter(|it| it.part == SlicePart::Screen && it.pair as usize == pair);
        let (first, second) = (of.next()?, of.next()?);
        // Knobs that could not be made are missing on one side: what the pair says of the others
        // still holds.
        Some([log(first)?, log(second)?])
    };
    (0..design.rows.len()).map(pair).collect()
}

impl Screening {
    /// As it is reported.
    pub fn shown(&self) -> ShownScreening {
        let of = |at: usize| {
            let margin = self.margins[at].map(|noise| ppm(noise.margin.exp()));
            self.effects[at].iter().enumerate().map(move |(knob, effect)| ShownEffect {
                knob,
                statistic: SliceStatistic::ALL[at],
                ratio_ppm: ppm(effect.contrast.exp()),
                p_ppb: (effect.paired.p * 1e9).round() as u64,
                margin_ppm: margin,
                selected: effect.is_large(),
            })
        };
        let interactions = self
            .interactions
            .iter()
            .map(|two| ShownInteraction { knobs: two.factors, ratio_ppm: ppm(two.contrast.exp()) });
        ShownScreening {
            effects: of(0).chain(of(1)).collect(),
            interactions: interactions.collect(),
        }
    }

    /// P values of every knob in turn, p99.9 first, adjusted over all of the screening.
    fn answers(&self) -> Vec<(Adjusted, PairedAnswer)> {
        let [p999, max] = &self.effects;
        let question = |statistic, of, effect: &screening::MainEffect| WeightedQuestion {
            of,
            paired: effect.paired,
            weight: analyse::weight(statistic),
        };
        let both = |(of, (p999, max))| {
            [question(SliceStatistic::P999, of, p999), question(SliceStatistic::Max, of, max)]
        };
        let questions: Vec<WeightedQuestion> =
            p999.iter().zip(max).enumerate().flat_map(both).collect();
        answers(&questions, p999.len(), LEVEL)
    }

    /// The effects of a knob as the screening has them, and whether p99.9 is within the margin.
    fn of(&self, knob: usize, slices: &[Slice]) -> (Vec<Effect>, bool) {
        let answers = self.answers();
        let mut reported = Vec::new();
        for (place, (statistic, effects)) in
            SliceStatistic::ALL.into_iter().zip(&self.effects).enumerate()
        {
            let is_on = |slice: &&Slice| slice.on.iter().any(|&on| on as usize == knob);
            let screen = || slices.iter().filter(|slice| slice.part == SlicePart::Screen);
            let median = |with: bool| {
                analyse::median_of(statistic, screen().filter(|slice| is_on(slice) == with))
            };
            if let (Some(effect), Some(on_ns), Some(off_ns)) =
                (effects.get(knob), median(true), median(false))
            {
                let ends = effect.paired.interval;
                let adjusted = answers.get(2 * knob + place).map(|(adjusted, _)| adjusted.p);
                reported.push(Effect {
                    statistic,
                    pairs: u32::try_from(effect.paired.n).unwrap_or(u32::MAX),
                    off_ns,
                    on_ns,
                    ratio_ppm: ppm(effect.paired.estimate.exp()),
                    low_ppm: ends.map(|(low, _)| ppm(low.exp())),
                    high_ppm: ends.map(|(_, high)| ppm(high.exp())),
                    p_ppb: Some((effect.paired.p * 1e9).round() as u64),
                    adjusted_ppb: adjusted.map(|p| (p * 1e9).round() as u64),
                });
            }
        }
        let is_small = answers.get(2 * knob).is_some_and(|(_, it)| *it == PairedAnswer::Equivalent);
        (reported, is_small)
    }
}

/// What is said of every knob. With a screening, what did not stand out has the numbers of
/// the screening.
pub fn report_knobs(
    knobs: &[Candidate],
    slices: &[Slice],
    untried: &Untried,
    terms: Terms,
    screening: Option<&Screening>,
) -> Vec<Reported> {
    let (mut reported, together) = analyse::with_together(knobs, slices, untried, terms);
    let Some(found) = screening else { return reported };
    for (at, reported) in reported.iter_mut().enumerate() {
        let is_confirmed = reported.effects.iter().any(|effect| effect.pairs > 0);
        if is_confirmed || untried.contains_key(&at) {
            continue;
        }
        let (effects, is_small) = found.of(at, slices);
        reported.effects = effects;
        if reported.effects.is_empty() || found.selected.contains(&at) {
            continue;
        }
        reported.how = TrialMode::Toggled;
        (reported.decision, reported.why) = match is_small {
            true => (
                Decision::NoDifference,
                "no difference of p99.9 larger than the margin, all tried at once".into(),
            ),
            false => (
                Decision::CannotDecide,
                "did not stand out among all tried at once; name it alone to see smaller effects"
                    .into(),
            ),
        };
    }
    if let Some((effect, PairedAnswer::Lower)) = together.first() {
        let text = format!(
            "; all that stood out as helping together: p99.9 {} (median of the ratios of pairs)",
            signed(effect.ratio_ppm)
        );
        for &at in &found.lowering {
            if reported[at].decision != Decision::Helps && reported[at].how == TrialMode::Toggled {
                reported[at].why += "; beside the others it adds nothing that can be seen";
            }
            reported[at].why += &text;
        }
    }
    reported
}

/// Knobs of a profile: those that help; where none does by itself beside the others and all of them
/// together do, all of them.
pub fn profile(
    reported: &[Reported],
    slices: &[Slice],
    knobs: &[Candidate],
    terms: Terms,
) -> Vec<usize> {
    let helps: Vec<usize> =
        (0..reported.len()).filter(|&at| reported[at].decision == Decision::Helps).collect();
    if !helps.is_empty() {
        return helps;
    }
    let (_, together) = analyse::with_together(knobs, slices, &Untried::new(), terms);
    let lower = together.iter().any(|(_, answer)| *answer == PairedAnswer::Lower);
    let higher = together
        .iter()
        .any(|(_, answer)| matches!(answer, PairedAnswer::Higher | PairedAnswer::SomeHigher));
    let on = slices.iter().find(|slice| slice.part == SlicePart::Together && !slice.on.is_empty());
    match on {
        Some(slice) if lower && !higher => slice.on.iter().map(|&at| at as usize).collect(),
        _ => Vec::new(),
    }
}
