//! An experiment whose unit is the boot: the machine is booted with and without parameters of the
//! kernel, in an order that cancels drift; one slice of time is measured in each boot. Slices of
//! one boot are no replicates: what a boot lays out in memory stays until the next.

pub mod state;

use rtproof_host::{
    Root,
    boot::{self, Word},
    tune::{Machine, Pace},
};
use rtproof_judge::units;
use rtproof_record::{
    Effects,
    effects::{Design, Part, Trial},
};
use rtproof_results::effects::percent;
use rtproof_stats::paired::{self, Margin, Spread};

use self::state::{Boot, State};
use super::{
    analyse::{self, LEVEL, MARGIN, Terms, Untried, ppm},
    knobs::Candidate,
};
use crate::tune::{
    boot as words,
    once::{self, Once},
};

/// Title of the journals of the boot entry.
pub const TITLE: &str = "experiment boots";
/// Spread of p99.9 from boot to boot where nobody knows better.
pub const SPREAD: f64 = 0.1;

/// Whether each boot is one with the parameters: blocks of four, with-without-without-with or the
/// other way round by a coin, so that what drifts evenly is in both arms alike.
pub fn order(seed: u64, per_arm: usize) -> Vec<bool> {
    let blocks = paired::order(seed, per_arm.div_ceil(2));
    let block = |first: bool| [first, !first, !first, first];
    let mut all: Vec<bool> = blocks.into_iter().flat_map(block).collect();
    // An odd number of pairs: the last block is half of one.
    all.truncate(2 * per_arm);
    all
}

/// What is going to happen, and what can be seen.
pub fn sentence(state: &State, spread: f64) -> String {
    let (boots, pairs) = (state.order.len(), state.order.len() / 2);
    let margin = Margin::of_share(MARGIN).mirrored();
    let assumed = Spread::assumed(spread.ln_1p());
    let least = paired::detectable(assumed, pairs, 1, LEVEL, margin);
    let seen = least.map_or_else(
        || {
            format!(
                "{pairs} pairs decide nothing at 5 %: only their estimates are reported; --boots \
                 {} decides",
                paired::PAIRS_MIN
            )
        },
        |least| {
            format!(
                "assumed, not measured: p99.9 moves by {} from boot to boot; then a change by −{} \
                 is found four times in five, a larger one more often",
                percent(spread),
                percent(-f64::exp_m1(-least))
            )
        },
    );
    format!(
        "{boots} boots, {} with and {} without {}, one slice of {} in each: {} and the time that \
         {boots} boots take. {seen}.",
        boots / 2,
        boots / 2,
        state.words.join(" "),
        units::duration(state.slice_ns),
        units::duration(boots as u64 * (state.slice_ns + state.settle_ns)),
    )
}

/// Whether the running kernel has the parameters.
pub fn has_words(root: &Root, asked: &[String]) -> bool {
    let line = root.trimmed("/proc/cmdline");
    let running = line.value().map(|line| boot::cmdline::split(line)).unwrap_or_default();
    asked.iter().all(|word| running.iter().any(|token| token.text == *word))
}

/// Chooses the next boot: the entry with the parameters once, or the one that boots anyhow. What
/// was chosen before is undone first. Returns the argument of reboot(2).
///
/// # Errors
/// A boot loader that cannot be set; a change that could not be made or undone.
pub fn choose(
    machine: &Machine<'_>,
    asked: &[String],
    with: bool,
) -> anyhow::Result<Option<String>> {
    take_back(machine)?;
    if !with {
        return Ok(None);
    }
    let words: Vec<Word> = asked.iter().map(Word::set).collect();
    let title = format!("{TITLE} {}", asked.join(" "));
    Once { title: &title, kernel: None, words: &words }.arm(machine)
}

/// Undoes the boot entry of the experiment.
///
/// # Errors
/// Something could not be put back: it stays in the journal.
pub fn take_back(machine: &Machine<'_>) -> anyhow::Result<()> {
    once::undo(machine, TITLE)
}

/// Words as the boot loader's entry takes them.
///
/// # Errors
/// Usage: one is none.
pub fn asked(texts: &[String]) -> anyhow::Result<Vec<String>> {
    texts.iter().map(|text| Ok(words::word(text)?.parameter)).collect()
}

/// What the boots say.
pub fn effects(state: &State) -> Effects {
    let slices = state.boots.iter().enumerate().map(|(number, boot)| boot.slice(number));
    let slices: Vec<_> = slices.collect();
    let pairs = state.order.len() / 2;
    let knob = Candidate {
        name: state.words.join(" "),
        impact: rtproof_judge::Impact::default(),
        kind: Pace::Toggled,
        now: Vec::new(),
        later: Vec::new(),
        settings: Vec::new(),
    };
    let boots_ns = state.order.len() as u64 * (state.slice_ns + state.settle_ns);
    let terms = Terms { margin: MARGIN, total_ns: boots_ns, mirrored: false, knobs: 1 };
    let knobs = analyse::analyse(&[knob], &slices, &Untried::new(), terms);
    let trial = Trial {
        seed: state.seed,
        design: Design::Boots,
        pairs: u32::try_from(pairs).unwrap_or(u32::MAX),
        slice_ns: state.slice_ns,
        margin_ppm: ppm(MARGIN),
        level_ppb: (LEVEL * 1e9) as u64,
        detectable_ppm: None,
    };
    Effects { trial, knobs, slices }
}

impl Boot {
    /// As a slice of a pair of boots.
    fn slice(&self, number: usize) -> rtproof_record::effects::Slice {
        let number = u32::try_from(number).unwrap_or(u32::MAX);
        rtproof_record::effects::Slice {
            number,
            part: Part::Pair,
            pair: number / 2,
            on: if self.with { vec![0] } else { Vec::new() },
            from_ns: 0,
            to_ns: self.to_ns,
            scheduled: self.scheduled,
            p999_ns: self.p999_ns,
            max_ns: self.max_ns,
            missed: self.missed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(per_arm: usize, with_ns: u64) -> State {
        let order = order(7, per_arm);
        let boots = order.iter().enumerate().map(|(at, &with)| Boot {
            boot_id: at.to_string(),
            with,
            record: String::new(),
            to_ns: 1,
            scheduled: 100_000,
            // Drifts upwards from boot to boot.
            p999_ns: Some(if with { with_ns } else { 100_000 } + 500 * at as u64),
            max_ns: Some(200_000 + 997 * (at as u64 * 7 % 5)),
            missed: 0,
        });
        let boots = boots.collect();
        let words = vec!["nohz_full=2-3".into()];
        let mut state = State::new(7, words, order, 60_000_000_000, Vec::new());
        state.boots = boots;
        state
    }

    #[test]
    fn both_arms_alike_and_drift_in_both() {
        for per_arm in [6, 7, 8, 12] {
            let order = order(3, per_arm);
            assert_eq!(order.len(), 2 * per_arm);
            assert_eq!(order.iter().filter(|&&with| with).count(), per_arm);
            for pair in order.chunks(2) {
                assert_ne!(pair[0], pair[1], "a pair has one of each");
            }
            for block in order.chunks_exact(4) {
                assert!(block[0] == block[3] && block[1] == block[2], "ABBA or BAAB: {block:?}");
            }
        }
        assert!((0..20).map(|seed| order(seed, 6)).collect::<Vec<_>>().iter().any(|o| o[0]));
    }

    #[test]
    fn what_the_boots_say() {
        use rtproof_record::effects::Decision;
        let helps = effects(&state(8, 60_000));
        assert_eq!(helps.knobs[0].decision, Decision::Helps, "{:?}", helps.knobs[0]);
        assert_eq!((helps.trial.design, helps.knobs[0].effects[0].pairs), (Design::Boots, 8));
        let same = effects(&state(8, 100_000));
        assert_ne!(same.knobs[0].decision, Decision::Helps);
        let text = sentence(&state(6, 1), SPREAD);
        assert!(text.contains("12 boots, 6 with and 6 without nohz_full=2-3"), "{text}");
        let text_of = |per_arm| sentence(&state(per_arm, 1), SPREAD);
        assert!(text.contains("four times in five"), "six decide: {text}");
        assert!(text_of(5).contains("5 pairs decide nothing at 5 %"), "{}", text_of(5));
        let text = sentence(&state(8, 1), SPREAD);
        assert!(text.contains("assumed, not measured: p99.9 moves by 10 %"), "{text}");
    }
}
