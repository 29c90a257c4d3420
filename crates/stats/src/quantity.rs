//! Quantities as text for people: times with units, groups of thousands.

/// A time with three significant figures and its unit: `88.1 µs`, `3.2 ms`, `12 ns`.
pub fn ns(value_ns: u64) -> String {
    const UNITS: [(u64, &str); 4] =
        [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs"), (1, "ns")];
    if value_ns >= 60_000_000_000 {
        return duration(value_ns);
    }
    for (unit_ns, name) in UNITS {
        if value_ns >= unit_ns {
            return format!("{} {name}", trimmed(value_ns as f64 / unit_ns as f64));
        }
    }
    "0 ns".into()
}

/// Three significant figures, no trailing zeros.
fn trimmed(value: f64) -> String {
    let decimals = match value {
        v if v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        _ => 2,
    };
    let text = format!("{value:.decimals$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').into(),
        false => text,
    }
}

/// Microseconds with one decimal below 1000, none above: the columns of a table.
pub fn us_column(value_ns: u64) -> String {
    let us = value_ns as f64 / 1000.0;
    if us < 999.95 { format!("{us:.1}") } else { grouped(us.round() as u64) }
}

/// A duration: `20 s`, `1 min 30 s`, `24 h`, `3 d 2 h`.
pub fn duration(value_ns: u64) -> String {
    // To the nearest, because what is measured ends with the last wake-up: 19.999 s are 20 s.
    let seconds = value_ns.saturating_add(500_000_000) / 1_000_000_000;
    if value_ns < 10_000_000_000 {
        return format!("{} s", trimmed(value_ns as f64 / 1e9));
    }
    if seconds < 60 {
        return format!("{seconds} s");
    }
    let parts = [(86_400, "d"), (3_600, "h"), (60, "min"), (1, "s")];
    let mut rest = seconds;
    let shown: Vec<String> = parts
        .iter()
        .filter_map(|&(size, name)| {
            let n = rest / size;
            rest %= size;
            (n > 0).then(|| format!("{n} {name}"))
        })
        .take(2)
        .collect();
    shown.join(" ")
}

/// Digits in groups of three, separated by narrow no-break spaces: `240 000`.
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3 * 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

/// A probability: percent down to a hundred-thousandth, else powers of ten.
pub fn probability(p: f64) -> String {
    match p {
        p if p >= 0.001 => format!("{} %", trimmed(100.0 * p)),
        p if p >= 0.000_01 => format!("{:.4} %", 100.0 * p).replace("0 %", " %"),
        p if p > 0.0 => format!("{p:.1e}"),
        _ => "0".into(),
    }
}

/// A rate per hour.
pub fn per_hour(rate: f64) -> String {
    match rate {
        r if r >= 1.0 => format!("{}/h", grouped(r.ceil() as u64)),
        r => format!("{}/h", trimmed_small(r)),
    }
}

fn trimmed_small(value: f64) -> String {
    if value >= 0.01 { format!("{value:.3}") } else { format!("{value:.1e}") }
}

/// `1 CPU`, `2 CPUs`.
pub fn count(number: impl TryInto<u64>, noun: &str) -> String {
    // No number of things is larger.
    let number = number.try_into().unwrap_or(u64::MAX);
    if number == 1 { format!("1 {noun}") } else { format!("{} {noun}s", grouped(number)) }
}

/// How often: `once`, `17 times`.
pub fn times(number: u64) -> String {
    if number == 1 { "once".into() } else { format!("{} times", grouped(number)) }
}

/// Confidence as percent: 950 000 ppm is `95 %`.
pub fn confidence(ppm: u32) -> String {
    let percent = f64::from(ppm) / 10_000.0;
    let text = format!("{percent:.4}");
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn once_is_no_plural() {
        assert_eq!([0, 1, 2].map(times), ["0 times", "once", "2 times"]);
        assert_eq!((count(1, "CPU"), count(2, "CPU")), ("1 CPU".into(), "2 CPUs".into()));
    }

    #[test]
    fn times_are_read_at_a_glance() {
        for (value, text) in [
            (0, "0 ns"),
            (12, "12 ns"),
            (88_100, "88.1 µs"),
            (100_000, "100 µs"),
            (279_349, "279 µs"),
            (1_000_000, "1 ms"),
            (3_204_000, "3.2 ms"),
            (999_999, "1000 µs"),
            (59_000_000_000, "59 s"),
            (3_600_000_000_000, "1 h"),
        ] {
            assert_eq!(ns(value), text);
        }
        assert_eq!(duration(90_000_000_000), "1 min 30 s");
        assert_eq!(duration(20_000_000_000), "20 s");
        assert_eq!(duration(1_500_000_000), "1.5 s");
        assert_eq!(duration(86_400_000_000_000), "1 d");
        assert_eq!((us_column(1_900), us_column(12_345_678)), ("1.9".into(), grouped(12_346)));
    }

    #[test]
    fn counts_and_rates() {
        assert_eq!(grouped(240_000).replace('\u{202f}', " "), "240 000");
        assert_eq!((grouped(7).as_str(), grouped(1000).chars().count()), ("7", 5));
        assert_eq!(probability(0.05), "5 %");
        assert_eq!(probability(9.98e-7), "1.0e-6");
        assert_eq!((per_hour(539.3), per_hour(0.125)), ("540/h".into(), "0.125/h".into()));
        assert_eq!((confidence(950_000), confidence(999_900)), ("95 %".into(), "99.99 %".into()));
    }
}
