//! What a tick does to the writer's memory, and whether it may be written at all.
//!
//! A record that contradicts itself is worth less than none, so each tick is checked before a byte
//! is written: same counts in sums and histograms, seconds in order, threads known.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use rtproof_stats::Sample;

use crate::{
    error::{Contradiction, WriteError},
    run::{Second, ThreadEnd},
    schema::BLOCK,
    seal,
    tick::{Head, TOP_MAX, ThreadTick, Tick},
};

/// What the writer remembers of a thread.
#[derive(Clone, Debug, Default)]
pub(super) struct ThreadState {
    /// Number of its next second.
    next_second: i64,
    /// Where its last second ended.
    to_ns: u64,
    /// Its largest samples, largest first.
    top: Vec<Sample>,
    /// What the present block holds so far.
    block: Option<Second>,
}

/// What one [`ThreadTick`] writes beside itself.
#[derive(Debug)]
pub(super) struct Step {
    /// Number of the second.
    pub(super) second: i64,
    /// Samples that are now among the largest.
    pub(super) top_in: Vec<Sample>,
    /// Samples that no longer are.
    pub(super) top_out: Vec<Sample>,
    /// The block that the second completes, with its number.
    pub(super) block: Option<(i64, Second)>,
}

/// A tick that may be written.
#[derive(Debug)]
pub(super) struct Planned {
    /// One for each of the tick's threads.
    pub(super) steps: Vec<Step>,
    /// State of the threads that changed, once the tick is on disk.
    pub(super) threads: BTreeMap<u32, ThreadState>,
}

/// Checks a tick against the threads' state and works out what it changes.
pub(super) fn plan(
    path: &Path,
    threads: &BTreeMap<u32, ThreadState>,
    tick: &Tick,
) -> Result<Planned, WriteError> {
    let bad = |thread: u32, what: Contradiction| {
        WriteError::inconsistent(path, &format!("thread {thread}"), what)
    };
    let mut changed = BTreeMap::new();
    for info in &tick.started {
        let twice = changed.insert(info.number, ThreadState::default()).is_some();
        if twice || threads.contains_key(&info.number) {
            return Err(bad(info.number, "started twice, expected once".into()));
        }
    }
    let mut steps = Vec::with_capacity(tick.threads.len());
    for thread in &tick.threads {
        thread.check().map_err(|what| bad(thread.number, what))?;
        if let Some(state) = threads.get(&thread.number) {
            changed.entry(thread.number).or_insert_with(|| state.clone());
        }
        let state = changed
            .get_mut(&thread.number)
            .ok_or_else(|| bad(thread.number, "not started, expected to be".into()))?;
        steps.push(state.step(thread).map_err(|what| bad(thread.number, what))?);
    }
    let known = |number: &u32| threads.contains_key(number) || changed.contains_key(number);
    if let Some((number, _)) = tick.ended.iter().find(|(number, _)| !known(number)) {
        return Err(bad(*number, "ended, but never started".into()));
    }
    Ok(Planned { steps, threads: changed })
}

/// Whether all threads that ended had started.
pub(super) fn check_ends(
    path: &Path,
    threads: &BTreeMap<u32, ThreadState>,
    ends: &[(u32, ThreadEnd)],
) -> Result<(), WriteError> {
    let tick = Tick { ended: ends.to_vec(), ..Tick::default() };
    plan(path, threads, &tick).map(drop)
}

/// Whether the head can be read back.
pub(super) fn check_head(path: &Path, head: &Head) -> Result<(), WriteError> {
    let id = &head.meta.run_id;
    if !seal::is_run_id(id) {
        let what = format!("\"{id}\", expected 32 lower-case hex digits");
        return Err(WriteError::inconsistent(path, "run id", what));
    }
    Ok(())
}

impl ThreadState {
    fn step(&mut self, tick: &ThreadTick) -> Result<Step, Contradiction> {
        if tick.second.from_ns < self.to_ns {
            return Err(format!(
                "second from {} ns, but the one before it ends at {} ns",
                tick.second.from_ns, self.to_ns
            )
            .into());
        }
        let second = self.next_second;
        self.next_second += 1;
        self.to_ns = tick.second.to_ns;
        let before: BTreeSet<u64> = self.top.iter().map(|sample| sample.due_ns).collect();
        let (top_in, top_out) = self.offer(&before, &tick.top)?;
        match &mut self.block {
            Some(block) => block.merge(&tick.second),
            none => *none = Some(tick.second.clone()),
        }
        const SECONDS: i64 = BLOCK.cast_signed();
        let is_last = self.next_second % SECONDS == 0;
        let block = self.block.take_if(|_| is_last).map(|block| (second / SECONDS, block));
        Ok(Step { second, top_in, top_out, block })
    }

    /// Merges the largest samples of a second; returns (new ones, displaced ones).
    fn offer(
        &mut self,
        before: &BTreeSet<u64>,
        samples: &[Sample],
    ) -> Result<(Vec<Sample>, Vec<Sample>), Contradiction> {
        let mut seen = before.clone();
        if let Some(twice) = samples.iter().find(|sample| !seen.insert(sample.due_ns)) {
            return Err(format!("two largest samples were due at {} ns", twice.due_ns).into());
        }
        let mut all = std::mem::take(&mut self.top);
        all.extend_from_slice(samples);
        all.sort_unstable_by_key(|sample| (std::cmp::Reverse(sample.latency_ns), sample.due_ns));
        let rest = all.split_off(all.len().min(TOP_MAX));
        let is_old = |sample: &&Sample| before.contains(&sample.due_ns);
        let top_in = all.iter().filter(|sample| !is_old(sample)).copied().collect();
        let top_out = rest.iter().filter(is_old).copied().collect();
        self.top = all;
        Ok((top_in, top_out))
    }
}
