//! Clock sources.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Reading, Root};

/// The clock behind CLOCK_MONOTONIC.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Clock {
    /// Clock source in use.
    pub source: Reading<String>,
    /// Clock sources to choose from.
    pub available: Reading<Vec<String>>,
}

const FOLDER: &str = "/sys/devices/system/clocksource/clocksource0";

impl Clock {
    /// Reads the clock sources.
    pub fn read(root: &Root) -> Self {
        let words = |text: String| text.split_whitespace().map(str::to_owned).collect();
        Self {
            source: root.trimmed(&format!("{FOLDER}/current_clocksource")),
            available: root.read_text(&format!("{FOLDER}/available_clocksource")).map(words),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    #[test]
    fn current_and_available() {
        let tree = Tree::new(&[
            ("sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n"),
            ("sys/devices/system/clocksource/clocksource0/available_clocksource", "tsc hpet \n"),
        ]);
        let clock = Clock::read(&tree.root());
        assert_eq!(clock.source.value().unwrap(), "tsc");
        assert_eq!(clock.available.value().unwrap(), &["tsc", "hpet"]);
        assert!(Clock::read(&Tree::new(&[]).root()).source.is_absent());
    }
}
