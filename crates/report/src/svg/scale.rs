//! Scales: from a value to a place between 0 and 1, and the ticks that a reader expects there.

use rtproof_judge::units;

/// A scale of an axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Scale {
    /// Equal distances for equal differences.
    Linear {
        /// Value at 0.
        low: f64,
        /// Value at 1.
        high: f64,
    },
    /// Equal distances for equal ratios; ends are positive.
    Log {
        /// Value at 0.
        low: f64,
        /// Value at 1.
        high: f64,
    },
}

/// A tick: a value, and a text where it has one.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tick {
    /// Value on the scale.
    pub(crate) value: f64,
    /// Text; minor ticks have none.
    pub(crate) text: Option<String>,
}

impl Scale {
    /// A linear scale from zero.
    pub(crate) fn from_zero(high: f64) -> Self {
        Self::Linear { low: 0.0, high: if high > 0.0 { high } else { 1.0 } }
    }

    /// Place of a value, 0 to 1; values outside are put on the edge.
    pub(crate) fn at(self, value: f64) -> f64 {
        let place = match self {
            Self::Linear { low, high } => (value - low) / (high - low),
            Self::Log { low, high } => (value.max(low) / low).ln() / (high / low).ln(),
        };
        if place.is_finite() { place.clamp(0.0, 1.0) } else { 0.0 }
    }

    /// Whether a value lies on the scale.
    pub(crate) fn holds(self, value: f64) -> bool {
        let (low, high) = self.ends();
        (low..=high).contains(&value)
    }

    pub(crate) fn ends(self) -> (f64, f64) {
        match self {
            Self::Linear { low, high } | Self::Log { low, high } => (low, high),
        }
    }

    /// Ticks of a logarithmic latency axis with room for `room` texts: decades have one, on short
    /// axes also their parts.
    pub(crate) fn latency_ticks(self, room: f64) -> Vec<Tick> {
        self.decade_ticks(latency_text, room)
    }

    /// Ticks of a logarithmic axis of counts.
    pub(crate) fn count_ticks(self, room: f64) -> Vec<Tick> {
        let mut ticks = self.decade_ticks(count_text, room);
        ticks.retain(|tick| tick.value >= 1.0);
        ticks
    }

    /// Ticks of a logarithmic axis of numbers, those below one too.
    pub(crate) fn number_ticks(self, room: f64) -> Vec<Tick> {
        self.decade_ticks(number_text, room)
    }

    fn decade_ticks(self, text: fn(f64) -> String, room: f64) -> Vec<Tick> {
        let (low, high) = self.ends();
        let decades = (high / low).log10();
        let is_named = |digit: u32, exponent: i32| match digit {
            1 => decades <= room || exponent % 3 == 0,
            2 | 5 => decades * 3.3 <= room,
            3 | 4 | 7 => decades * 10.0 <= room,
            _ => false,
        };
        let mut ticks = Vec::new();
        for exponent in low.log10().floor() as i32..=high.log10().ceil() as i32 {
            for digit in 1..10_u32 {
                let value = f64::from(digit) * 10_f64.powi(exponent);
                let minor = decades <= 6.5 || digit == 1;
                if self.holds(value) && minor {
                    let text = is_named(digit, exponent).then(|| text(value));
                    ticks.push(Tick { value, text });
                }
            }
        }
        ticks
    }

    /// Ticks of a time axis from zero, in nanoseconds: at most about `most` of them.
    pub(crate) fn time_ticks(self, most: usize) -> Vec<Tick> {
        const STEPS_S: [u64; 21] = [
            1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200,
            86_400, 172_800, 604_800, 2_592_000,
        ];
        let high_ns = self.ends().1;
        let fits = |step: &u64| high_ns / (*step as f64 * 1e9) <= most as f64;
        let step_s = STEPS_S.into_iter().find(fits).unwrap_or(31_536_000);
        (0..)
            .map(|i: u64| i * step_s)
            .take_while(|&at_s| at_s as f64 * 1e9 <= high_ns && at_s / step_s <= 2 * most as u64)
            .map(|at_s| {
                let text =
                    if at_s == 0 { "0".into() } else { units::duration(at_s * 1_000_000_000) };
                Tick { value: at_s as f64 * 1e9, text: Some(text) }
            })
            .collect()
    }

    /// Ticks of a linear latency axis with room for about `room` texts.
    pub(crate) fn latency_steps_of(self, room: f64) -> Vec<Tick> {
        let text = |value| if value > 0.0 { latency_text(value) } else { "0".into() };
        let named = |tick: Tick| Tick { text: Some(text(tick.value)), ..tick };
        self.ticks_of(room).into_iter().map(named).collect()
    }

    /// Ticks of a linear axis: two to five round values.
    pub(crate) fn round_ticks(self) -> Vec<Tick> {
        self.ticks_of(3.5)
    }

    /// Ticks of a linear axis at round values, `room` of them or a few less.
    fn ticks_of(self, room: f64) -> Vec<Tick> {
        let (low, high) = self.ends();
        let raw = (high - low) / room;
        let exponent = raw.log10().floor();
        let power = 10_f64.powf(exponent);
        let times = [1.0, 2.0, 5.0, 10.0].into_iter().find(|m| m * power >= raw).unwrap_or(10.0);
        let step = times * power;
        let decimals = if step < 1.0 { (-exponent).clamp(0.0, 6.0) as usize } else { 0 };
        let text = |value: f64| match value {
            v if v >= 1000.0 => count_text(v),
            v => format!("{v:.decimals$}"),
        };
        let first = (low / step).ceil() as i64;
        (first..first + 3 + room as i64)
            .map(|i| i as f64 * step)
            .filter(|&value| self.holds(value))
            .map(|value| Tick { value, text: Some(text(value)) })
            .collect()
    }
}

/// A latency on an axis: `100 ns`, `1 ms`, `100 s`.
fn latency_text(value_ns: f64) -> String {
    if value_ns >= 60e9 {
        return format!("{} s", units::grouped((value_ns / 1e9).round() as u64));
    }
    units::ns(value_ns.round() as u64)
}

/// A number on an axis: `0.01`, `10 k`.
fn number_text(value: f64) -> String {
    if value >= 0.95 { count_text(value) } else { format!("{}", (value * 1e9).round() / 1e9) }
}

/// A count on an axis: `1`, `100`, `10 k`, `1 M`.
pub(crate) fn count_text(value: f64) -> String {
    const UNITS: [(f64, &str); 4] = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    for (size, name) in UNITS {
        if value >= size * 0.9999 {
            let text = format!("{:.1}", value / size);
            return format!("{}\u{202f}{name}", text.trim_end_matches('0').trim_end_matches('.'));
        }
    }
    let text = format!("{value:.1}");
    text.trim_end_matches('0').trim_end_matches('.').into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(ticks: Vec<Tick>) -> Vec<String> {
        ticks.into_iter().filter_map(|tick| tick.text).collect()
    }

    #[test]
    fn places_are_between_the_ends() {
        let log = Scale::Log { low: 1e3, high: 1e6 };
        assert!((log.at(1e3), log.at(1e6)) == (0.0, 1.0) && (log.at(31_622.8) - 0.5).abs() < 1e-6);
        assert_eq!((log.at(0.0), log.at(1e12)), (0.0, 1.0));
        let point = Scale::Linear { low: 4.0, high: 4.0 };
        assert_eq!((point.at(4.0), point.at(5.0)), (0.0, 0.0));
    }

    #[test]
    fn ticks_are_what_a_reader_expects() {
        let wide = Scale::Log { low: 500.0, high: 2e6 };
        assert_eq!(named(wide.latency_ticks(9.0)), ["1 µs", "10 µs", "100 µs", "1 ms"]);
        let narrow = Scale::Log { low: 1_000.0, high: 20_000.0 };
        assert_eq!(named(narrow.latency_ticks(9.0)), ["1 µs", "2 µs", "5 µs", "10 µs", "20 µs"]);
        let hour = Scale::Log { low: 1e9, high: 4e12 };
        assert_eq!(
            named(hour.latency_ticks(9.0)).last().unwrap().replace('\u{202f}', " "),
            "1 000 s"
        );
        let minute = Scale::from_zero(60e9);
        assert_eq!(
            named(minute.time_ticks(8)),
            ["0", "10 s", "20 s", "30 s", "40 s", "50 s", "1 min"]
        );
        assert_eq!(named(Scale::from_zero(86_400e9).time_ticks(8)).last().unwrap(), "1 d");
        assert_eq!(count_text(10_000.0).replace('\u{202f}', " "), "10 k");
        let round = Scale::from_zero(930.0).round_ticks();
        assert_eq!(named(round), ["0", "500"]);
        let latency = Scale::from_zero(26_000.0).latency_steps_of(3.5);
        assert_eq!(named(latency), ["0", "10 µs", "20 µs"]);
    }
}
