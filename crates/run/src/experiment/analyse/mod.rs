//! From slices to what is said of each knob. Pure.

use rtproof_host::tune::Pace;
use rtproof_judge::units;
use rtproof_record::effects::{
    Decision, Effect, How, KnobResult as Reported, Part, Slice, Statistic,
};
use rtproof_results::effects::{percent, signed};
use rtproof_stats::{
    holm,
    paired::{self, Answer, PAIRS_MIN},
};

use super::knobs::{Candidate, line};

/// Confidence of intervals.
pub const CONFIDENCE: f64 = 0.95;
/// P values below this count, after Holm.
pub const LEVEL: f64 = 0.05;
/// Differences up to this share do not matter.
pub const MARGIN: f64 = 0.05;
/// Statistics that are tested of each knob.
pub const STATISTICS: usize = Statistic::ALL.len();
/// Probability with which a difference that is said to be seen is seen.
pub const POWER: f64 = 0.8;

/// What the analysis needs to know beside the slices.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// Differences up to this do not matter, as a share: 0.05.
    pub margin: f64,
    /// Time that was given.
    pub total_ns: u64,
    /// Whether all knobs were tried at once.
    pub mirrored: bool,
    /// Questions that were asked: knobs times statistics.
    pub comparisons: usize,
}

/// A knob that could not be made, or was not tried, with the reason.
pub type Untried = std::collections::BTreeMap<usize, String>;

/// Everything that is said of the knobs.
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
) -> (Vec<Reported>, Vec<(Effect, Answer)>) {
    let mut told: Vec<Reported> = Vec::new();
    let mut looks: Vec<Option<Looked>> = Vec::new();
    for (at, knob) in knobs.iter().enumerate() {
        told.push(begin(at, knob));
        for statistic in Statistic::ALL {
            let look = (knob.kind == Pace::Toggled && !untried.contains_key(&at))
                .then(|| Looked::at(at, statistic, slices))
                .flatten();
            looks.push(look);
        }
    }
    let together: Vec<Looked> =
        Statistic::ALL.into_iter().filter_map(|it| Looked::together(it, slices)).collect();
    // Holm over all questions that were asked.
    let all = looks.iter().flatten().chain(&together);
    let p: Vec<f64> = all.map(|look| look.paired.p).collect();
    let mut adjusted = holm::adjust(&p).into_iter();
    for (at, (told, looks)) in told.iter_mut().zip(looks.chunks(Statistic::ALL.len())).enumerate() {
        let looks: Vec<(&Looked, f64)> =
            looks.iter().flatten().map(|look| (look, adjusted.next().unwrap_or(1.0))).collect();
        told.effects = looks.iter().map(|(look, adjusted)| look.effect(*adjusted)).collect();
        if let Some(why) = untried.get(&at) {
            told.why.clone_from(why);
        } else if knobs[at].kind == Pace::Once {
            once(told, at, slices);
        } else if knobs[at].kind == Pace::Toggled {
            decide(told, &looks, terms);
        }
    }
    let margin = terms.margin.ln_1p();
    let together = together.iter().map(|look| {
        let adjusted = adjusted.next().unwrap_or(1.0);
        (look.effect(adjusted), look.paired.answer(adjusted, LEVEL, margin))
    });
    let together = together.collect();
    (told, together)
}

/// What is said of a knob before it is tried.
pub fn begin(at: usize, knob: &Candidate) -> Reported {
    let why = match knob.kind {
        Pace::Later => {
            "does nothing before the next boot or login, so there is nothing to measure now; apply \
             it by name"
        }
        Pace::Toggled | Pace::Once => "the run ended before anything could be said",
    };
    let changes = knob.now.iter().chain(&knob.later).map(|(_, item)| line(&item.change));
    Reported {
        number: u32::try_from(at).unwrap_or(u32::MAX),
        name: knob.name.clone(),
        changes: changes.chain(knob.settings.iter().map(ToString::to_string)).collect(),
        how: How::NotTried,
        decision: Decision::NotTried,
        kept: false,
        why: why.into(),
        effects: Vec::new(),
    }
}

/// A statistic with and without a knob.
struct Looked {
    statistic: Statistic,
    paired: paired::Paired,
    /// Spread of the pairs' differences.
    sd: f64,
    off_ns: u64,
    on_ns: u64,
}

impl Looked {
    fn at(knob: usize, statistic: Statistic, slices: &[Slice]) -> Option<Self> {
        let is_on = |slice: &Slice| slice.on.iter().any(|&on| on as usize == knob);
        Self::of(Part::Pair, is_on, statistic, slices)
    }

    /// All that seems to help, and nothing.
    fn together(statistic: Statistic, slices: &[Slice]) -> Option<Self> {
        Self::of(Part::Together, |slice| !slice.on.is_empty(), statistic, slices)
    }

    fn of(
        part: Part,
        is_on: impl Fn(&Slice) -> bool,
        statistic: Statistic,
        slices: &[Slice],
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
        let paired = paired::compare(&differences, CONFIDENCE)?;
        let mean = differences.iter().sum::<f64>() / differences.len() as f64;
        let squares: f64 = differences.iter().map(|d| (d - mean).powi(2)).sum();
        let sd = (squares / (differences.len() as f64 - 1.0).max(1.0)).sqrt();
        Some(Self { statistic, paired, sd, off_ns: median(&mut off), on_ns: median(&mut on) })
    }

    fn effect(&self, adjusted: f64) -> Effect {
        let ends = self.paired.interval;
        Effect {
            statistic: self.statistic,
            pairs: u32::try_from(self.paired.n).unwrap_or(u32::MAX),
            off_ns: self.off_ns,
            on_ns: self.on_ns,
            ratio_ppm: ppm(self.paired.estimate.exp()),
            low_ppm: ends.map(|(low, _)| ppm(low.exp())),
            high_ppm: ends.map(|(_, high)| ppm(high.exp())),
            p_ppb: Some(share(self.paired.p, 1e9)),
            adjusted_ppb: Some(share(adjusted, 1e9)),
        }
    }
}

/// The statistic of a slice.
#[must_use]
pub fn value(statistic: Statistic, slice: &Slice) -> Option<u64> {
    match statistic {
        Statistic::P999 => slice.p999_ns,
        Statistic::Max => slice.max_ns,
    }
}

/// Parts per million.
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
pub fn median_of<'a>(statistic: Statistic, slices: impl Iterator<Item = &'a Slice>) -> Option<u64> {
    let mut values: Vec<u64> = slices.filter_map(|slice| value(statistic, slice)).collect();
    (!values.is_empty()).then(|| median(&mut values))
}

/// Spread of the logarithm of p99.9 from one slice to the next.
pub fn spread<'a>(slices: impl Iterator<Item = &'a Slice>) -> Option<f64> {
    let values = slices.filter_map(|slice| slice.p999_ns).map(|ns| (ns.max(1) as f64).ln());
    paired::successive_sd(&values.collect::<Vec<_>>())
}

/// Decides a knob that was switched on and off.
fn decide(told: &mut Reported, looks: &[(&Looked, f64)], terms: Terms) {
    told.how = How::Toggled;
    let of = |statistic| looks.iter().find(|(look, _)| look.statistic == statistic);
    let Some((main, _)) = of(Statistic::P999) else {
        told.decision = Decision::CannotDecide;
        told.why = "no pair of slices was measured to the end; give it more time".into();
        return;
    };
    let margin = terms.margin.ln_1p();
    let answers: Vec<(Statistic, Answer)> = looks
        .iter()
        .map(|(look, adjusted)| (look.statistic, look.paired.answer(*adjusted, LEVEL, margin)))
        .collect();
    let said = |answer| answers.iter().filter(move |(_, a)| *a == answer).map(|(s, _)| *s);
    let (lower, higher): (Vec<_>, Vec<_>) =
        (said(Answer::Lower).collect(), said(Answer::Higher).collect());
    let changes = |those: &[Statistic]| {
        let texts = told.effects.iter().filter(|effect| those.contains(&effect.statistic));
        texts.map(change).collect::<Vec<_>>().join("; ")
    };
    (told.decision, told.why) = match (lower.is_empty(), higher.is_empty()) {
        (false, true) => (Decision::Helps, changes(&lower)),
        (true, false) => (Decision::Hurts, changes(&higher)),
        (false, false) => (
            Decision::CannotDecide,
            format!("{}, but {}: a choice for you", changes(&lower), changes(&higher)),
        ),
        (true, true) if answers.contains(&(Statistic::P999, Answer::Equivalent)) => (
            Decision::NoDifference,
            format!("no difference of p99.9 larger than {}", percent(terms.margin)),
        ),
        (true, true) => (Decision::CannotDecide, undecided(main, terms)),
    };
}

/// Why nothing can be said, and what it would take.
fn undecided(look: &Looked, terms: Terms) -> String {
    let n = look.paired.n;
    let questions = terms.comparisons.max(1);
    if n < PAIRS_MIN || paired::smallest_p(n) * questions as f64 >= LEVEL {
        return format!(
            "{n} pairs were measured, too few to answer {}; give it more time",
            units::count(questions, "question")
        );
    }
    let level = LEVEL / questions as f64;
    let margin = terms.margin.ln_1p();
    let wanted = look.paired.estimate.abs().max(margin);
    let seen = paired::detectable(look.sd, n, level, POWER).map_or(f64::INFINITY, f64::exp_m1);
    let times = paired::pairs_for(look.sd, n, wanted, level, POWER).unwrap_or(f64::INFINITY);
    let more = (times * terms.total_ns as f64 - terms.total_ns as f64).max(0.0);
    let more = match more {
        more if more < 1e9 => "a second try may tell".into(),
        more if more < 864e11 => {
            format!("about {} more would tell", units::duration(more.ceil() as u64))
        }
        _ => "more than a day would be needed".into(),
    };
    let others = if terms.mirrored {
        "; what the other knobs do is part of the noise: try again with what helps in force"
    } else {
        ""
    };
    if seen.is_finite() && seen < 9.0 {
        format!("slices differ too much: below {} nothing is seen; {more}{others}", percent(seen))
    } else {
        format!("slices differ too much for anything to be seen; {more}{others}")
    }
}

/// Tells before and after of a knob that was made once.
fn once(told: &mut Reported, at: usize, slices: &[Slice]) {
    let with =
        |slice: &&Slice| slice.part == Part::Once && slice.on.iter().any(|&on| on as usize == at);
    for statistic in Statistic::ALL {
        let before = slices.iter().filter(|slice| slice.part == Part::Before);
        let off = median_of(statistic, before);
        let on = median_of(statistic, slices.iter().filter(with));
        if let Some((off_ns, on_ns)) = off.zip(on) {
            told.effects.push(Effect {
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
    if !told.effects.is_empty() {
        told.how = How::Once;
        told.decision = Decision::CannotDecide;
        told.why = "measured once before and once after: drift is not excluded; judge by the \
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
        "{} from {} to {} ({}{interval})",
        effect.statistic.name(),
        units::ns(effect.off_ns),
        units::ns(effect.on_ns),
        signed(effect.ratio_ppm)
    )
}

#[cfg(test)]
mod tests;
