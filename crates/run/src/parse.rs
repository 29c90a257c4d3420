//! Values of the command line: durations and latencies with units, rates, percentages.

use rtproof_host::door::Invalid;
use rtproof_measure::clock::Clock;

/// Units and their length in nanoseconds. `m` is minutes, as in `sleep 10m`; milliseconds are `ms`.
const UNITS: &[(&str, u64)] = &[
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
];

/// Parses a time with its unit, e.g. `250us`, `1.5ms`, `10m`, to integer nanoseconds.
pub fn time(text: &str) -> Result<u64, Invalid> {
    const HOW: &str = "write a number and its unit, e.g. 250us, 1.5ms, 20s, 10m, 24h";
    let text = text.trim();
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = (&text[..split], text[split..].trim());
    if text.starts_with('-') {
        return Err(format!("a time cannot be negative; {HOW}").into());
    }
    if number.is_empty() {
        return Err(format!("no number; {HOW}").into());
    }
    if unit.is_empty() {
        return Err(format!("no unit; {HOW}").into());
    }
    let factor = UNITS.iter().find(|(name, _)| *name == unit).map(|&(_, ns)| ns);
    let factor = factor.ok_or_else(|| format!("no such unit \"{unit}\"; {HOW}"))?;
    let ns = decimal(number, factor).ok_or_else(|| format!("not a number or too large; {HOW}"))?;
    if ns == 0 { Err(format!("zero (or less than a nanosecond); {HOW}").into()) } else { Ok(ns) }
}

/// `number` times `factor`, exact for decimal fractions; fractions of a nanosecond are cut off.
fn decimal(number: &str, factor: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.len() > 18 {
        return None;
    }
    let digits = |text: &str| if text.is_empty() { Some(0) } else { text.parse::<u128>().ok() };
    let scale = 10_u128.pow(u32::try_from(fraction.len()).ok()?);
    let value = digits(whole)?.checked_mul(scale)?.checked_add(digits(fraction)?)?;
    u64::try_from(value.checked_mul(u128::from(factor))? / scale).ok()
}

/// A time within bounds.
fn bounded(text: &str, min_ns: u64, max_ns: u64, what: &str) -> Result<u64, Invalid> {
    let ns = time(text)?;
    if ns < min_ns || ns > max_ns {
        let show = rtproof_judge::units::ns;
        return Err(format!("{what} must be from {} to {}", show(min_ns), show(max_ns)).into());
    }
    Ok(ns)
}

const RUN_MIN_NS: u64 = 100_000_000;

/// Longest run: a year.
const YEAR_NS: u64 = 366 * 86_400_000_000_000;

/// A duration of a run.
///
/// # Errors
/// See [`time`]; outside 100 ms to a year.
pub fn run_duration(text: &str) -> Result<u64, Invalid> {
    bounded(text, RUN_MIN_NS, YEAR_NS, "a run")
}

/// A number of wake-ups that ends a run.
///
/// # Errors
/// What is no whole number above zero.
pub fn samples(text: &str) -> Result<u64, Invalid> {
    match text.trim().parse() {
        Ok(0) => Err("0 wake-ups: nothing would be measured; expected 1 or more".into()),
        Ok(samples) => Ok(samples),
        Err(_) => Err(format!("\"{text}\" is no number of wake-ups; expected e.g. 5000").into()),
    }
}

/// Duration of a run that ends after so many wake-ups of each thread, or after `for_ns`, whichever
/// comes first. Without both, `default_ns`.
///
/// # Errors
/// A time outside the limits of [`run_duration`].
pub fn until(
    samples: Option<u64>,
    period_ns: u64,
    for_ns: Option<u64>,
    default_ns: u64,
) -> Result<u64, Invalid> {
    let Some(samples) = samples else { return Ok(for_ns.unwrap_or(default_ns)) };
    let needed_ns = samples.saturating_mul(period_ns);
    let show = rtproof_judge::units::duration;
    if let Some(for_ns) = for_ns.filter(|&for_ns| for_ns <= needed_ns) {
        return Ok(for_ns);
    }
    if !(RUN_MIN_NS..=YEAR_NS).contains(&needed_ns) {
        return Err(format!(
            "--samples {samples} with a period of {}: a run must last from {} to {}",
            rtproof_judge::units::ns(period_ns),
            show(RUN_MIN_NS),
            show(YEAR_NS)
        )
        .into());
    }
    Ok(needed_ns)
}

/// A time within which changes have to be confirmed.
///
/// # Errors
/// See [`time`]; outside a second to an hour.
pub fn confirm_within(text: &str) -> Result<u64, Invalid> {
    bounded(text, 1_000_000_000, 3_600_000_000_000, "the time to confirm")
}

/// A duration of a trial.
///
/// # Errors
/// See [`time`]; outside 100 ms to 10 minutes.
pub fn trial_duration(text: &str) -> Result<u64, Invalid> {
    bounded(text, 100_000_000, 600_000_000_000, "a trial")
}

/// A size of memory, e.g. `64MiB`, `1G`, to bytes. Units are powers of 1024, as in `/proc`.
///
/// # Errors
/// What is wrong and an example; zero, or above 1 TiB.
pub fn size(text: &str) -> Result<u64, Invalid> {
    const HOW: &str = "write a number and its unit, e.g. 512K, 64MiB, 1G";
    let text = text.trim();
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = (&text[..split], text[split..].trim());
    let shift = match unit.trim_end_matches("iB") {
        "K" | "k" => 10,
        "M" => 20,
        "G" => 30,
        _ => return Err(HOW.into()),
    };
    let number: u64 = number.parse().map_err(|_| HOW.to_owned())?;
    match number.checked_mul(1 << shift) {
        Some(bytes @ 1..=0x100_0000_0000) => Ok(bytes),
        _ => Err(format!("a size is more than 0 and at most 1024G; {HOW}").into()),
    }
}

/// A period of wake-ups.
///
/// # Errors
/// See [`time`]; outside what the measuring threads take.
pub fn period(text: &str) -> Result<u64, Invalid> {
    use rtproof_measure::session::{PERIOD_MAX_NS, PERIOD_MIN_NS};
    bounded(text, PERIOD_MIN_NS, PERIOD_MAX_NS, "a period")
}

/// Parses a latency budget into nanoseconds.
///
/// # Errors
/// See [`time`]; outside 100 ns to an hour.
pub fn budget(text: &str) -> Result<u64, Invalid> {
    bounded(text, 100, 3_600_000_000_000, "a budget")
}

/// A clock by its word.
///
/// # Errors
/// What is wrong and the words.
pub fn clock(text: &str) -> Result<Clock, Invalid> {
    let found = Clock::ALL.into_iter().find(|clock| clock.word() == text.trim());
    found.ok_or_else(|| {
        let words = Clock::ALL.map(Clock::word).join(", ");
        format!("\"{text}\" is no clock; expected one of {words}").into()
    })
}

/// A threshold of spikes.
///
/// # Errors
/// See [`time`]; outside 100 ns to an hour.
pub fn spike(text: &str) -> Result<u64, Invalid> {
    bounded(text, 100, 3_600_000_000_000, "a spike")
}

/// A confidence in percent, e.g. `95`, `99.9%`, to parts per million.
pub fn confidence(text: &str) -> Result<u32, Invalid> {
    let number = text.trim().trim_end_matches('%').trim();
    let ppm = decimal(number, 10_000).and_then(|ppm| u32::try_from(ppm).ok());
    match ppm {
        Some(ppm) if (500_000..1_000_000).contains(&ppm) => Ok(ppm),
        _ => Err("write a percentage from 50 to 99.9999, e.g. 95 or 99.9".into()),
    }
}

/// A stretch of late wake-ups.
///
/// # Errors
/// See [`time`]; outside 1 ms to a day.
pub fn episode(text: &str) -> Result<u64, Invalid> {
    bounded(text, 1_000_000, 86_400_000_000_000, "a stretch of late wake-ups")
}

/// A rate, e.g. `12/h`, `1/day`, to events per 1000 hours.
pub fn rate(text: &str) -> Result<u64, Invalid> {
    const HOW: &str = "write a count per time, e.g. 12/h, 1/day, 1/week, 1/year";
    let (count, per) = text.trim().split_once('/').ok_or(HOW)?;
    // Hours in 1000 of the unit would lose digits the other way round: count x 1000 h / unit.
    let hours_per_unit = match per.trim() {
        "h" | "hour" => 1,
        "d" | "day" => 24,
        "w" | "week" => 7 * 24,
        "y" | "year" => 8766,
        _ => return Err(HOW.into()),
    };
    let per_1000h = decimal(count.trim(), 1000).ok_or(HOW)?.div_ceil(hours_per_unit);
    match per_1000h {
        0 => Err(format!("zero cannot be shown by measuring; {HOW}").into()),
        rate if rate > 1_000_000_000_000 => Err(format!("too large; {HOW}").into()),
        rate => Ok(rate),
    }
}

/// A SCHED_FIFO priority.
///
/// # Errors
/// Outside 1 to 99.
pub fn priority(text: &str) -> Result<u32, Invalid> {
    match text.trim().parse() {
        Ok(priority @ 1..=99) => Ok(priority),
        _ => Err("a real-time priority is 1 to 99 (99 also stops the kernel's own threads)".into()),
    }
}

/// A spread in percent, as a share.
pub fn spread(text: &str) -> Result<f64, Invalid> {
    match text.trim_end_matches('%').trim().parse::<f64>() {
        Ok(percent) if percent > 0.0 && percent <= 1000.0 => Ok(percent / 100.0),
        _ => Err("a percentage above 0, up to 1000, e.g. 10".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        for (text, ns) in [
            ("250us", 250_000),
            ("1.5ms", 1_500_000),
            ("1ns", 1),
            ("100 µs", 100_000),
            (".5s", 500_000_000),
            ("10m", 600_000_000_000),
            ("2h", 7_200_000_000_000),
            ("0.000000001s", 1),
        ] {
            assert_eq!(time(text), Ok(ns), "{text}");
        }
        for text in [
            "",
            "5",
            "-5s",
            "s",
            "0us",
            "0.0001ns",
            "1e3us",
            "5 fortnights",
            "1..5s",
            ".s",
            "9999999999h",
            "99999999999999999999s",
            "NaNs",
            "1,5ms",
            "١s",
        ] {
            assert!(time(text).is_err(), "{text}");
        }
        assert!(time("5").is_err_and(|e| e.contains("no unit")));
        assert!(time("-5s").is_err_and(|e| e.contains("negative")));
    }

    #[test]
    fn bounds() {
        assert_eq!((period("5us"), period("10s")), (Ok(5000), Ok(10_000_000_000)));
        assert!(period("4.9us").is_err_and(|e| e.contains("5 µs to 10 s")));
        assert!(run_duration("99ms").is_err() && run_duration("400d").is_err());
        assert!(budget("99ns").is_err() && budget("2h").is_err());
        assert!(priority("0").is_err() && priority("100").is_err() && priority("-1").is_err());
    }

    #[test]
    fn sizes() {
        assert_eq!((size("64MiB"), size("1G"), size("8k")), (Ok(64 << 20), Ok(1 << 30), Ok(8192)));
        for text in ["", "64", "0M", "64B", "-1M", "1.5G", "1025G", "99999999999999999999G"] {
            assert!(size(text).is_err(), "{text}");
        }
        for text in ["0", "-1", "1.5", "", "5k", "99999999999999999999"] {
            assert!(samples(text).is_err(), "{text}");
        }
        assert_eq!(samples("5000").unwrap(), 5000);
        let (ms, second) = (1_000_000, 1_000_000_000);
        let of = |samples, for_ns| until(samples, ms, for_ns, 60 * second).ok();
        assert_eq!(of(None, None), Some(60 * second));
        assert_eq!(of(Some(5000), None), Some(5 * second));
        assert_eq!(of(Some(5000), Some(2 * second)), Some(2 * second));
        assert_eq!(of(Some(5000), Some(9 * second)), Some(5 * second));
        assert_eq!([of(Some(99), None), of(Some(u64::MAX), None)], [None; 2]);
        assert!(trial_duration("99ms").is_err() && trial_duration("11m").is_err());
    }

    #[test]
    fn rates_and_confidences() {
        assert_eq!((rate("1/h"), rate("12/h"), rate("3/day")), (Ok(1000), Ok(12_000), Ok(125)));
        assert_eq!(rate("0.125/h"), Ok(125));
        assert!(rate("0/h").is_err() && rate("1").is_err() && rate("1/eon").is_err());
        assert_eq!((confidence("95"), confidence("99.9%")), (Ok(950_000), Ok(999_000)));
        assert!(confidence("100").is_err() && confidence("0").is_err() && confidence("x").is_err());
    }
}
