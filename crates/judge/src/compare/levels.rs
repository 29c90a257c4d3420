//! Where the level of each run of a comparison changes, and whether that was looked for.

use rtproof_model::Structure;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{groups::Group, side::Side};
use crate::{quantity, structure};

/// CPUs of a run whose changes its sentence names.
const NAMED: usize = 2;

/// Where the level of a run changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunLevels {
    /// Name of the run.
    pub run: String,
    /// In a sentence; also why nothing is known.
    pub text: String,
    /// Whether it was looked for; else `changes` says nothing.
    pub looked: bool,
    /// Changes of the level, one finding for each CPU that has any.
    pub changes: Vec<Structure>,
}

/// The least likely by chance; of the others how many CPUs.
fn in_short(changes: &[Structure]) -> String {
    let first: Vec<&str> = changes.iter().take(NAMED).map(|of| of.text.as_str()).collect();
    let more = match changes.len().saturating_sub(NAMED) {
        0 => String::new(),
        n => format!("; and that of {} more", quantity::count(n, "CPU")),
    };
    first.join("; ") + &more
}

/// Where the level of each run changes.
pub(super) fn of(groups: &[Group]) -> Vec<RunLevels> {
    let sides = groups.iter().flat_map(|group| &group.sides);
    let one = |side: &Side| {
        let over = side.over.as_ref();
        let looked = over.is_some_and(|over| over.has_seconds);
        let changes = over.map_or_else(Vec::new, |over| over.levels.clone());
        let text = match over {
            None if side.has_facts => "no second is in its record".into(),
            None => "its file holds no times".into(),
            Some(_) if !changes.is_empty() => in_short(&changes),
            Some(over) if looked => {
                format!("no change of the median found in {}", quantity::duration(over.end_ns))
            }
            Some(_) => format!(
                "changes of the median are not looked for below {} s a CPU",
                structure::SECONDS_MIN
            ),
        };
        RunLevels { run: side.label.clone(), text, looked, changes }
    };
    sides.map(one).collect()
}

#[cfg(test)]
mod tests {
    use rtproof_record::Run;

    use super::*;
    use crate::testing::slower_from as run;

    #[test]
    fn what_was_not_looked_for_is_not_said_to_be_nothing() {
        let text = |run: &Run| of(&[Group::single(Side::of_run(run, "a", "a"))])[0].clone();
        let quiet = text(&run(40, 1000));
        assert!(quiet.looked && quiet.text.starts_with("no change of the median found in 40"));
        let short = text(&run(10, 5));
        assert!(!short.looked && short.text.contains("not looked for below 30 s"), "{short:?}");
        let mut empty = run(10, 5);
        empty.threads.iter_mut().for_each(|thread| thread.seconds.clear());
        assert_eq!(text(&empty).text, "no second is in its record");
    }

    #[test]
    fn a_change_is_in_the_sentence_of_its_run() {
        let run = run(400, 250);
        let found = of(&[Group::single(Side::of_run(&run, "a", "a"))]);
        assert!(found[0].looked && found[0].text.contains("CPU 1 changed once at 250 s"));
    }
}
