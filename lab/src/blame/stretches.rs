//! Stretches of time in which a plant acted.

use serde_json::Value;

/// Which of a plant's books say when it acted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// `occurrences`, without what took the CPU from the plant meanwhile (`gaps`).
    Occurrences,
    /// `occurrences` that take about as long as most: work that is always the same took longer
    /// where something else took the CPU in its midst, which kernel code cannot book.
    Alike,
    /// `gaps` of at least so many nanoseconds: the plant suffers the cause as well.
    Gaps(u64),
    /// `transitions` of a CPU that goes or comes.
    Transitions,
}

/// Stretches, CLOCK_MONOTONIC nanoseconds: in order, disjoint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stretches(Vec<(u64, u64)>);

impl Stretches {
    /// Of pairs of begin and end, in any order.
    pub fn of(mut pairs: Vec<(u64, u64)>) -> Self {
        pairs.retain(|(begin, end)| begin < end);
        pairs.sort_unstable();
        let mut all: Vec<(u64, u64)> = Vec::with_capacity(pairs.len());
        for (begin, end) in pairs {
            match all.last_mut() {
                Some(last) if begin <= last.1 => last.1 = last.1.max(end),
                _ => all.push((begin, end)),
            }
        }
        Self(all)
    }

    /// Of a line that a plant wrote into its truth.
    pub fn of_truth(line: &Value, told: Counted) -> Self {
        match told {
            Counted::Occurrences => pairs(line, "occurrences").without(&pairs(line, "gaps")),
            Counted::Alike => pairs(line, "occurrences").alike(),
            Counted::Transitions => pairs(line, "transitions"),
            Counted::Gaps(least_ns) => {
                let mut gaps = pairs(line, "gaps");
                gaps.0.retain(|(begin, end)| end - begin >= least_ns);
                gaps
            }
        }
    }

    /// Those that are not longer than five quarters of their median.
    fn alike(mut self) -> Self {
        let mut lengths: Vec<u64> = self.0.iter().map(|(begin, end)| end - begin).collect();
        lengths.sort_unstable();
        let longest = lengths.get(lengths.len() / 2).map_or(0, |median| median * 5 / 4);
        self.0.retain(|(begin, end)| end - begin <= longest);
        self
    }

    #[must_use]
    pub fn with(mut self, others: Self) -> Self {
        self.0.extend(others.0);
        Self::of(self.0)
    }

    /// These where those are not.
    pub fn without(&self, others: &Self) -> Self {
        let mut left = Vec::with_capacity(self.0.len());
        let mut others = others.0.iter().peekable();
        for &(mut begin, end) in &self.0 {
            while others.next_if(|other| other.1 <= begin).is_some() {}
            for other in others.clone().take_while(|other| other.0 < end) {
                left.push((begin, other.0));
                begin = other.1;
            }
            left.push((begin, end));
        }
        Self::of(left)
    }

    /// How much of a time lies in them.
    pub fn overlap_ns(&self, from_ns: u64, to_ns: u64) -> u64 {
        let first = self.0.partition_point(|(_, end)| *end <= from_ns);
        let inside = self.0[first..].iter().take_while(|(begin, _)| *begin < to_ns);
        inside.map(|(begin, end)| to_ns.min(*end) - from_ns.max(*begin)).sum()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn pairs(line: &Value, key: &str) -> Stretches {
    let pair = |pair: &Value| Some((pair.get(0)?.as_u64()?, pair.get(1)?.as_u64()?));
    let list = line[key].as_array().map_or(&[][..], Vec::as_slice);
    Stretches::of(list.iter().filter_map(pair).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn stretches_are_put_in_order_and_joined() {
        let all = Stretches::of(vec![(50, 60), (10, 20), (15, 30), (30, 35), (70, 70)]);
        assert_eq!(all.0, [(10, 35), (50, 60)]);
        assert_eq!(all.with(Stretches::of(vec![(35, 50)])).0, [(10, 60)]);
    }

    #[test]
    fn gaps_are_cut_out() {
        let all = Stretches::of(vec![(0, 100), (200, 300), (400, 500)]);
        let gaps = Stretches::of(vec![(10, 20), (90, 210), (250, 260), (300, 400), (490, 900)]);
        let left = all.without(&gaps);
        assert_eq!(left.0, [(0, 10), (20, 90), (210, 250), (260, 300), (400, 490)]);
        assert_eq!(all.without(&Stretches::default()), all);
        assert!(all.without(&Stretches::of(vec![(0, 1000)])).is_empty());
    }

    #[test]
    fn overlaps_are_exact() {
        let all = Stretches::of(vec![(10, 20), (30, 40)]);
        assert_eq!(all.overlap_ns(0, 100), 20);
        assert_eq!(all.overlap_ns(15, 32), 7);
        assert_eq!(all.overlap_ns(20, 30), 0);
        assert_eq!(all.overlap_ns(12, 13), 1);
        assert_eq!(all.overlap_ns(40, 50), 0);
    }

    #[test]
    fn a_plants_books_are_read() {
        let line = json!({
            "occurrences": [[100, 200], [300, 400]],
            "gaps": [[150, 160], [350, 390]],
            "transitions": [[1, 2]],
        });
        let told = |told| Stretches::of_truth(&line, told).0;
        assert_eq!(told(Counted::Occurrences), [(100, 150), (160, 200), (300, 350), (390, 400)]);
        assert_eq!(told(Counted::Gaps(20)), [(350, 390)]);
        assert_eq!(told(Counted::Transitions), [(1, 2)]);
        assert_eq!(told(Counted::Alike), [(100, 200), (300, 400)]);
        let line =
            json!({"occurrences": [[0, 100], [200, 324], [400, 526], [600, 700], [800, 890]]});
        let alike = Stretches::of_truth(&line, Counted::Alike).0;
        assert_eq!(alike, [(0, 100), (200, 324), (600, 700), (800, 890)]);
        assert!(Stretches::of_truth(&json!({"plant": "x"}), Counted::Occurrences).is_empty());
    }
}
