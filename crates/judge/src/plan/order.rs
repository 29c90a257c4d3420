//! In which order changes are made.
//!
//! A value that is written too early is refused by the kernel, or overwritten by a driver or a
//! daemon. A knob says at which rank it is set; [`Rank`] gives the reasons. Undo goes
//! through it backwards, so the reasons must also hold backwards.

use rtproof_host::tune::Change;
use rtproof_host::{Facts, Knob, knob::Rank, knobs::power};

/// By what a change is sorted: its rank, within limits of frequency which is first, then names with
/// numbers as numbers.
pub(super) type Key = (Rank, u8, Vec<Part>);

/// A part of a name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    Number(u64),
    Text(String),
}

/// The position of a change in the order: the rank of its knob, else that of its kind.
pub(super) fn key(facts: &Facts, change: &Change, knob: Option<&Knob>) -> Key {
    (
        knob.and_then(|knob| knob.rank).unwrap_or_else(|| change.nature().rank),
        limits_first(facts, change, knob),
        parts(&change.target()),
    )
}

/// Of the limits of a frequency: raising, the maximum is first; where the maximum goes below the
/// minimum of now, the minimum is.
fn limits_first(facts: &Facts, change: &Change, knob: Option<&Knob>) -> u8 {
    let (Change::Value { path, value, .. }, Some(knob)) = (change, knob) else { return 0 };
    let least_khz = || {
        let number = knob.cpu_of(path)?;
        let cpu = facts.cpus.cpus.iter().find(|cpu| cpu.id == number)?;
        cpu.freq.min_hz.value().map(|hz| hz / 1_000)
    };
    let is_below =
        || value.parse::<u64>().ok().zip(least_khz()).is_some_and(|(khz, least)| khz < least);
    match () {
        () if [power::MIN_FREQ, power::UNCORE_MIN_FREQ].contains(knob) => 1,
        () if *knob == power::MAX_FREQ && is_below() => 2,
        () => 0,
    }
}

/// A name in parts, so that `cpu10` comes after `cpu2`.
fn parts(name: &str) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    for char in name.chars() {
        match (parts.last_mut(), char.to_digit(10)) {
            (Some(Part::Number(number)), Some(digit)) => {
                *number = number.saturating_mul(10).saturating_add(digit.into());
            }
            (_, Some(digit)) => parts.push(Part::Number(digit.into())),
            (Some(Part::Text(text)), None) => text.push(char),
            (_, None) => parts.push(Part::Text(char.into())),
        }
    }
    parts
}
