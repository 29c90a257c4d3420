//! The confusion matrix: planted cause beside the cause that was reported.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
};

use super::matching::Judged;

/// What stands in front of a cause that is right but for its culprit.
const WRONG_CULPRIT: &str = "wrong culprit: ";

#[derive(Clone, Debug, Default)]
pub struct Matrix {
    /// Plants in the order in which they came.
    plants: Vec<String>,
    cells: BTreeMap<(String, String), u64>,
    right: BTreeMap<String, u64>,
    incomplete: BTreeMap<String, u64>,
}

impl Matrix {
    /// A plant has its row even if it hit nothing.
    pub fn plant(&mut self, name: &str) {
        if !self.plants.iter().any(|plant| plant == name) {
            self.plants.push(name.to_owned());
        }
    }

    /// Counts a spike. Where rtproof says that it does not know, as events are missing, it is
    /// neither right nor wrong; a cause that it names then is judged as any other.
    pub fn add(&mut self, judged: &Judged) {
        self.plant(&judged.plant);
        let count =
            |map: &mut BTreeMap<String, u64>| *map.entry(judged.plant.clone()).or_default() += 1;
        if judged.incomplete {
            return count(&mut self.incomplete);
        }
        if judged.right {
            count(&mut self.right);
        }
        let is_culprit_wrong = judged.cause_right && !judged.right;
        let prefix = if is_culprit_wrong { WRONG_CULPRIT } else { "" };
        let cause = format!("{prefix}{}", judged.cause);
        *self.cells.entry((judged.plant.clone(), cause)).or_default() += 1;
    }

    /// Right ones and all of a plant, without the incomplete ones.
    pub fn of(&self, plant: &str) -> (u64, u64) {
        let all = self.cells.iter().filter(|((of, _), _)| of == plant).map(|(_, n)| n).sum();
        (self.right.get(plant).copied().unwrap_or(0), all)
    }

    /// Right ones and all, without the incomplete ones.
    pub fn total(&self) -> (u64, u64) {
        (self.right.values().sum(), self.cells.values().sum())
    }

    /// As a table of Markdown, which reads as text, too.
    pub fn table(&self) -> String {
        let causes: BTreeSet<&str> = self.cells.keys().map(|(_, cause)| cause.as_str()).collect();
        let mut table = String::from("| planted |");
        // Writing to a string does not fail.
        for cause in &causes {
            let _ = write!(table, " {cause} |");
        }
        table.push_str(" incomplete | right |\n|---|");
        table.push_str(&"---|".repeat(causes.len() + 2));
        table.push('\n');
        for plant in &self.plants {
            let _ = write!(table, "| {plant} |");
            for cause in &causes {
                let key = (plant.clone(), (*cause).to_owned());
                let count = self.cells.get(&key).map_or(String::new(), u64::to_string);
                let _ = write!(table, " {count} |");
            }
            let incomplete = self.incomplete.get(plant).copied().unwrap_or(0);
            let _ = writeln!(table, " {incomplete} | {} |", percent(self.of(plant)));
        }
        let (right, all) = self.total();
        let _ = writeln!(
            table,
            "\n{right} of {all} planted spikes have the planted cause and culprit: {}.",
            percent((right, all))
        );
        table
    }
}

/// `99.2 %`, never rounded up to 100.
fn percent((right, all): (u64, u64)) -> String {
    if all == 0 {
        return "-".into();
    }
    let tenths = right * 1_000 / all;
    format!("{}.{} %", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(plant: &str, cause: &str, right: bool, incomplete: bool) -> Judged {
        let cause_right = cause == "preempted";
        Judged {
            plant: plant.into(),
            due_ns: 0,
            latency_ns: 1,
            cause: cause.into(),
            culprit: String::new(),
            incomplete,
            cause_right,
            right,
        }
    }

    #[test]
    fn every_spike_has_its_cell() {
        let mut matrix = Matrix::default();
        matrix.plant("stop");
        for _ in 0..999 {
            matrix.add(&judged("rr99", "preempted", true, false));
        }
        matrix.add(&judged("rr99", "stall", false, false));
        matrix.add(&judged("rr99", "preempted", false, false));
        matrix.add(&judged("rr99", "unexplained", false, true));
        assert_eq!(matrix.of("rr99"), (999, 1_001));
        assert_eq!(matrix.total(), (999, 1_001));
        let table = "\
| planted | preempted | stall | wrong culprit: preempted | incomplete | right |
|---|---|---|---|---|---|
| stop |  |  |  | 0 | - |
| rr99 | 999 | 1 | 1 | 1 | 99.8 % |

999 of 1001 planted spikes have the planted cause and culprit: 99.8 %.
";
        assert_eq!(matrix.table(), table);
    }

    #[test]
    fn one_of_a_million_is_not_rounded_away() {
        assert_eq!(percent((999_999, 1_000_000)), "99.9 %");
        assert_eq!(percent((10, 10)), "100.0 %");
    }
}
