//! What a sample of a workload is: the same nanoseconds mean different things on an axis.

use serde::{Deserialize, Serialize};

/// What a sample is, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// From the moment the thread should have run to the moment it did.
    Latency,
    /// From one wake-up to the next, less the period.
    Interval,
    /// How long a piece of work took.
    Duration,
    /// How long the CPU was away from a loop that never sleeps.
    Gap,
    /// From one thread's signal to the other thread's first instruction.
    HandOff,
    /// From one thread's signal over another thread and back.
    RoundTrip,
    /// How late a cycle was as the measured program itself says.
    Lateness,
}

impl Quantity {
    pub const ALL: [Self; 7] = [
        Self::Latency,
        Self::Interval,
        Self::Duration,
        Self::Gap,
        Self::HandOff,
        Self::RoundTrip,
        Self::Lateness,
    ];

    /// For axes and heads of columns.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Latency => "latency",
            Self::Interval => "interval minus period",
            Self::Duration => "duration",
            Self::Gap => "gap",
            Self::HandOff => "hand-off time",
            Self::RoundTrip => "round trip",
            Self::Lateness => "lateness",
        }
    }

    /// Name in records and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Latency => "latency",
            Self::Interval => "interval",
            Self::Duration => "duration",
            Self::Gap => "gap",
            Self::HandOff => "hand_off",
            Self::RoundTrip => "round_trip",
            Self::Lateness => "lateness",
        }
    }

    /// The quantity of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|quantity| quantity.name() == name)
    }

    /// Whether a sample of a period or more means that wake-ups were missed: the sample is counted
    /// from the moment at which the cycle was due. For the others the deadline view shows nothing
    /// beyond the number of missed cycles.
    pub const fn is_lateness(self) -> bool {
        matches!(self, Self::Latency | Self::Interval | Self::Lateness)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_and_are_those_of_serde() {
        for quantity in Quantity::ALL {
            assert_eq!(Quantity::from_name(quantity.name()), Some(quantity));
            assert!(!quantity.words().is_empty());
        }
        assert_eq!(Quantity::from_name("speed"), None);
    }
}
