//! What happened each time: begin and end of every burst, for truths that are exact.

use std::fmt::Write;

use crate::truth::Truth;

/// How many are listed one by one.
const LISTED: usize = 10_000;

/// A series of occurrences.
#[derive(Debug, Default)]
pub(crate) struct Occurrences {
    listed: Vec<(u64, u64)>,
    count: u64,
    sum_ns: u64,
    worst_ns: u64,
}

impl Occurrences {
    /// With room for so many, so that nothing is allocated between them.
    pub(crate) fn with_room(count: u64) -> Self {
        let room = usize::try_from(count).unwrap_or(LISTED).min(LISTED);
        Self { listed: Vec::with_capacity(room), ..Self::default() }
    }

    pub(crate) fn add(&mut self, begin_ns: u64, end_ns: u64) {
        let ns = end_ns.saturating_sub(begin_ns);
        self.count += 1;
        self.sum_ns += ns;
        self.worst_ns = self.worst_ns.max(ns);
        if self.listed.len() < LISTED {
            self.listed.push((begin_ns, end_ns));
        }
    }

    /// How many there were.
    pub(crate) const fn count(&self) -> u64 {
        self.count
    }

    /// `count`, `sum_ns`, `worst_ns`, and `occurrences` as [begin, end] pairs.
    pub(crate) fn tell(&self, truth: &mut Truth) {
        truth.set("count", self.count);
        truth.set("sum_ns", self.sum_ns);
        truth.set("worst_ns", self.worst_ns);
        truth.set("occurrences", self.list());
    }

    /// The pairs as JSON.
    pub(crate) fn list(&self) -> String {
        let mut list = String::from("[");
        for (n, (begin_ns, end_ns)) in self.listed.iter().enumerate() {
            let comma = if n > 0 { "," } else { "" };
            // Writing to a string does not fail.
            let _ = write!(list, "{comma}[{begin_ns},{end_ns}]");
        }
        list + "]"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_go_on_where_the_list_ends() {
        let mut all = Occurrences::with_room(2);
        all.add(10, 15);
        all.add(20, 23);
        assert_eq!(all.list(), "[[10,15],[20,23]]");
        for _ in 0..LISTED {
            all.add(1, 2);
        }
        assert_eq!((all.count(), all.sum_ns, all.worst_ns), (10_002, 10_008, 5));
        assert_eq!(all.listed.len(), LISTED);
    }
}
