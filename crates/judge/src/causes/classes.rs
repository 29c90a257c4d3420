//! Causes by class: what happened, with those who did it beneath.

use super::{CauseRow, Spikes, title};

/// All rows of one cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class<'a> {
    /// Id of the cause.
    pub cause: &'a str,
    /// In words, without what distinguishes its rows.
    pub title: &'a str,
    /// Sum of the shares of all rows, nanoseconds.
    pub sum_ns: u64,
    /// Of that: may have been something else.
    pub ambiguous_ns: u64,
    pub worst_ns: u64,
    /// Its rows, the largest sum first.
    pub rows: Vec<&'a CauseRow>,
}

impl Class<'_> {
    /// What has no other possible cause.
    pub const fn certain_ns(&self) -> u64 {
        self.sum_ns.saturating_sub(self.ambiguous_ns)
    }
}

/// The classes of a run's causes, the largest sum first.
pub fn classes(spikes: &Spikes) -> Vec<Class<'_>> {
    let mut classes: Vec<Class<'_>> = Vec::new();
    for row in &spikes.causes {
        let at = classes.iter().position(|class| class.cause == row.cause);
        let at = at.unwrap_or_else(|| {
            let title = title(&row.cause).split(':').next().unwrap_or_default();
            let (sum_ns, ambiguous_ns, worst_ns) = (0, 0, 0);
            let cause = &row.cause;
            classes.push(Class { cause, title, sum_ns, ambiguous_ns, worst_ns, rows: Vec::new() });
            classes.len() - 1
        });
        let class = &mut classes[at];
        class.sum_ns = class.sum_ns.saturating_add(row.sum_ns);
        class.ambiguous_ns = class.ambiguous_ns.saturating_add(row.ambiguous_ns);
        class.worst_ns = class.worst_ns.max(row.worst_ns);
        class.rows.push(row);
    }
    for class in &mut classes {
        class.rows.sort_by_key(|row| std::cmp::Reverse(row.sum_ns));
    }
    classes.sort_by_key(|class| std::cmp::Reverse(class.sum_ns));
    classes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(cause: &str, culprit: &str, sum_ns: u64, ambiguous_ns: u64) -> CauseRow {
        let (cause, culprit) = (cause.to_owned(), culprit.to_owned());
        let worst_ns = sum_ns / 2;
        CauseRow { cause, culprit, sum_ns, ambiguous_ns, worst_ns, ..CauseRow::default() }
    }

    #[test]
    fn rows_of_one_cause_are_one_class() {
        let causes = vec![
            row("stall", "firmware", 50, 0),
            row("softirq", "NET_RX", 40, 10),
            row("softirq", "TIMER", 30, 0),
            row("of a newer rtproof", "x", 5, 5),
        ];
        let spikes = Spikes { causes, ..Spikes::default() };
        let found = classes(&spikes);
        let told: Vec<_> =
            found.iter().map(|c| (c.cause, c.sum_ns, c.certain_ns(), c.rows.len())).collect();
        let expected =
            [("softirq", 70, 60, 2), ("stall", 50, 50, 1), ("of a newer rtproof", 5, 0, 1)];
        assert_eq!(told, expected);
        assert_eq!((found[0].worst_ns, found[2].title), (20, "of a newer rtproof"));
        assert_eq!(classes(&Spikes::default()), []);
    }
}
