//! A queue of sums with the sum of all at hand, without taking anything away: two stacks, of which
//! the older one holds sums of itself and all younger ones in it. Extremes and sums that did not
//! fit stay right, and a value that left leaves nothing behind.

use crate::Moments;

/// What is summed up of a step.
#[derive(Clone, Debug, Default)]
pub(super) struct Entry {
    pub(super) wake: Moments,
    pub(super) missed: u64,
    /// Threads without a sample.
    pub(super) gaps: u64,
}

impl Entry {
    fn add(&mut self, of: &Self) {
        self.wake.merge(&of.wake);
        self.missed = self.missed.saturating_add(of.missed);
        self.gaps = self.gaps.saturating_add(of.gaps);
    }
}

/// Sums of the steps of a window.
#[derive(Default)]
pub(super) struct Sums {
    /// The oldest is the last; each is the sum of itself and of those before it in the list.
    old: Vec<Entry>,
    new: Vec<Entry>,
    new_all: Entry,
}

impl Sums {
    pub(super) fn enter(&mut self, entry: Entry) {
        self.new_all.add(&entry);
        self.new.push(entry);
    }

    /// The oldest step goes.
    pub(super) fn leave(&mut self) {
        if self.old.is_empty() {
            let mut sum = Entry::default();
            for entry in self.new.drain(..).rev() {
                sum.add(&entry);
                self.old.push(sum.clone());
            }
            self.new_all = Entry::default();
        }
        self.old.pop();
    }

    /// The sum of all.
    pub(super) fn all(&self) -> Entry {
        let mut all = self.new_all.clone();
        if let Some(old) = self.old.last() {
            all.add(old);
        }
        all
    }
}
