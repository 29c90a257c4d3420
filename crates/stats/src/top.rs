//! The largest samples, exactly: a bounded min-heap that never allocates after construction.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One sample with its time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Sample {
    /// When the wake-up was due, nanoseconds after the origin of the run.
    pub due_ns: u64,
    pub latency_ns: u64,
}

/// The `K` largest samples pushed since the last [`TopSamples::clear`].
///
/// The top K of a run is exactly the top K of the union of the top K of its seconds.
#[derive(Clone, Debug)]
pub struct TopSamples {
    heap: Box<[Sample]>,
    len: usize,
}

impl TopSamples {
    /// Keeps the `k` largest.
    pub fn new(k: usize) -> Self {
        Self { heap: vec![Sample::default(); k].into_boxed_slice(), len: 0 }
    }

    #[inline(always)]
    pub fn push(&mut self, sample: Sample) {
        if self.len == self.heap.len() {
            if self.len > 0 && sample.latency_ns > self.heap[0].latency_ns {
                self.replace_smallest(sample);
            }
        } else {
            self.append(sample);
        }
    }

    #[inline(never)]
    pub(crate) fn append(&mut self, sample: Sample) {
        let mut at = self.len;
        self.len += 1;
        self.heap[at] = sample;
        while at > 0 {
            let parent = (at - 1) / 2;
            if self.heap[parent].latency_ns <= self.heap[at].latency_ns {
                break;
            }
            self.heap.swap(parent, at);
            at = parent;
        }
    }

    #[inline(never)]
    pub(crate) fn replace_smallest(&mut self, sample: Sample) {
        let mut at = 0;
        self.heap[0] = sample;
        loop {
            let left = 2 * at + 1;
            if left >= self.len {
                break;
            }
            let right = left + 1;
            let smaller =
                right < self.len && self.heap[right].latency_ns < self.heap[left].latency_ns;
            let child = if smaller { right } else { left };
            if self.heap[at].latency_ns <= self.heap[child].latency_ns {
                break;
            }
            self.heap.swap(at, child);
            at = child;
        }
    }

    /// The samples kept, in no order.
    pub fn as_slice(&self) -> &[Sample] {
        &self.heap[..self.len]
    }

    /// The samples kept, largest first; ties by time.
    pub fn sorted(&self) -> Vec<Sample> {
        let mut sorted = self.as_slice().to_vec();
        sorted.sort_unstable_by_key(|sample| (std::cmp::Reverse(sample.latency_ns), sample.due_ns));
        sorted
    }

    /// Address and size in bytes of the memory that holds the samples, for locking it into RAM.
    pub fn memory(&self) -> (usize, usize) {
        (self.heap.as_ptr() as usize, size_of_val(&*self.heap))
    }

    /// Forgets all; the memory stays.
    pub fn clear(&mut self) {
        self.len = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_exactly_the_largest() {
        let mut top = TopSamples::new(7);
        let values: Vec<u64> = (0..1000).map(|i| i * 7919 % 1009).collect();
        for (i, &latency_ns) in values.iter().enumerate() {
            top.push(Sample { due_ns: i as u64, latency_ns });
        }
        let mut expected = values;
        expected.sort_unstable_by(|a, b| b.cmp(a));
        let got: Vec<u64> = top.sorted().iter().map(|sample| sample.latency_ns).collect();
        assert_eq!(got, expected[..7]);
    }

    #[test]
    fn none_is_kept_when_none_is_asked_for() {
        let mut top = TopSamples::new(0);
        top.push(Sample { due_ns: 1, latency_ns: 1 });
        assert!(top.as_slice().is_empty());
    }
}
