//! A change of level as it comes: two-sided cumulative sums (Page, Biometrika 41, 1954), with k =
//! 0.5 and h = 5 standard deviations. A shift of one deviation is found after about ten values,
//! noise is mistaken for one about once in 465.

/// Which way the level went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    Down,
    Up,
}

/// The state: constant in size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cusum {
    level: f64,
    sd: f64,
    up: f64,
    down: f64,
}

impl Cusum {
    const SLACK: f64 = 0.5;
    const LIMIT: f64 = 5.0;

    /// About a level, with the standard deviation of the values about it, above 0.
    pub fn new(level: f64, sd: f64) -> Self {
        Self { level, sd: sd.max(f64::MIN_POSITIVE), up: 0.0, down: 0.0 }
    }

    /// Takes a value. When the level has changed it says which way, and starts again at 0: give it
    /// the new level with [`Cusum::new`]. What is no number is passed over.
    pub fn push(&mut self, value: f64) -> Option<Turn> {
        let z = (value - self.level) / self.sd;
        if !z.is_finite() {
            return None;
        }
        self.up = (self.up + z - Self::SLACK).max(0.0);
        self.down = (self.down - z - Self::SLACK).max(0.0);
        let turn = if self.up > Self::LIMIT {
            Turn::Up
        } else if self.down > Self::LIMIT {
            Turn::Down
        } else {
            return None;
        };
        (self.up, self.down) = (0.0, 0.0);
        Some(turn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn false_alarms_are_as_seldom_as_the_tables_say() {
        let mut random = Random::new(1);
        let mut cusum = Cusum::new(3.0, 2.0);
        let alarms =
            (0..465_000).filter(|_| cusum.push(3.0 + 2.0 * random.normal()).is_some()).count();
        assert!((850..1150).contains(&alarms), "{alarms} in 465 000 values");
    }

    #[test]
    fn shifts_are_told_soon_and_which_way() {
        let mut random = Random::new(2);
        for (shift, turn) in [(1.0, Turn::Up), (-1.0, Turn::Down)] {
            let delays = (0..200).map(|_| {
                let mut cusum = Cusum::new(0.0, 1.0);
                let told = (0..500).find_map(|i| Some((i, cusum.push(shift + random.normal())?)));
                let (delay, told) = told.expect("a change");
                assert_eq!(told, turn);
                delay
            });
            let mean = delays.sum::<usize>() as f64 / 200.0;
            assert!((7.5..12.0).contains(&mean), "{mean}");
        }
        assert_eq!(Cusum::new(0.0, 0.0).push(f64::NAN), None);
        assert_eq!(Cusum::new(0.0, 1.0).push(f64::INFINITY), None);
    }
}
