//! A trial under way: knobs are switched as its schedule says, slices are measured, everything is
//! undone.
//!
//! Runs on the housekeeping thread, between the emptying of slots. At most one set of knobs is on
//! at a time, in a journal of its own; whatever ends the run, what is on is undone first.

#[cfg(test)]
mod tests;

use rtproof_host::tune::Item;
use rtproof_measure::{Slot, StartedThread};
use rtproof_record::{
    EffectTick,
    effects::{Decision, KnobResult as Reported, Slice, SlicePart, TrialMode, TrialSummary},
    run::Note,
};

use super::analyse::Untried;
use super::factors::{Candidate, SliceGather};
use super::{MeasureSetting, PlannedSlice, Switch, TrialSchedule, analyse};
use crate::prove::Switcher;

/// Length of a slot: slices are made of whole ones.
pub const SLOT_NS: u64 = 100_000_000;

/// Time at the start that is not measured: loads begin.
pub const LEAD_NS: u64 = 1_000_000_000;

/// How long after the end of a slice its slots are asked for.
const AFTER_NS: u64 = 20_000_000;

/// A thread that has not handed over for so long is given up.
const PATIENCE_NS: u64 = 3_000_000_000;

/// Where the trial is.
#[derive(Debug)]
enum State {
    /// The next slice is to be begun.
    Next,
    /// A slice is being measured.
    Gathering(PlannedSlice, Box<SliceGather>),
    /// Nothing is left to do.
    Over,
}

/// What becomes of the machine.
#[derive(Debug, Default)]
pub struct End {
    /// Why changes could not be undone or kept.
    pub trouble: Option<anyhow::Error>,
}

/// A trial under way.
pub struct Conduct<'a> {
    switch: &'a mut dyn Switch,
    on_line: &'a mut dyn FnMut(String),
    knobs: Vec<Candidate>,
    reported: Vec<Reported>,
    untried: Untried,
    schedule: Box<dyn TrialSchedule + 'a>,
    state: State,
    /// Knobs that are on.
    on: Vec<usize>,
    decided: bool,
    /// Measured threads; `false`: given up.
    threads: Vec<bool>,
    slices: Vec<Slice>,
    trial: TrialSummary,
    /// What the record has not got yet.
    pending: EffectTick,
    notes: Vec<Note>,
    end: End,
}

impl<'a> Conduct<'a> {
    /// A trial of `knobs` on so many threads. `untried`: those for which the schedule has no time.
    pub fn new(
        switch: &'a mut dyn Switch,
        on_line: &'a mut dyn FnMut(String),
        knobs: Vec<Candidate>,
        schedule: Box<dyn TrialSchedule + 'a>,
        trial: TrialSummary,
        untried: Untried,
        threads: usize,
    ) -> Self {
        let reported: Vec<Reported> =
            knobs.iter().enumerate().map(|(at, knob)| analyse::begin(at, knob)).collect();
        let pending =
            EffectTick { trial: Some(trial.clone()), knobs: reported.clone(), slices: Vec::new() };
        Self {
            switch,
            on_line,
            knobs,
            reported,
            untried,
            schedule,
            state: State::Next,
            on: Vec::new(),
            decided: false,
            threads: vec![true; threads],
            slices: Vec::new(),
            trial,
            pending,
            notes: vec![note_of_trial()],
            end: End::default(),
        }
    }

    /// What was measured so far.
    pub fn slices(&self) -> &[Slice] {
        &self.slices
    }

    /// State of the machine after the run.
    pub fn end(mut self) -> End {
        std::mem::take(&mut self.end)
    }

    /// Begins the next slice; returns when to come again.
    fn next(&mut self, now: &dyn Fn() -> u64) -> u64 {
        if now() < LEAD_NS {
            return LEAD_NS;
        }
        let before = self.trial.clone();
        if let Some(line) = self.schedule.evaluate(&self.slices, &mut self.trial) {
            (self.on_line)(line);
        }
        if self.trial != before {
            self.pending.trial = Some(self.trial.clone());
        }
        let Some(task) = self.schedule.task(&self.slices, &mut self.untried, now()) else {
            return self.decide(now);
        };
        if let Err(error) = self.set(&task.on, now()) {
            return self.give_up(error, now());
        }
        // Knobs that could not be made are out, and a slice without its knobs is no evidence.
        let on: Vec<usize> =
            task.on.iter().copied().filter(|at| !self.untried.contains_key(at)).collect();
        if task.part == SlicePart::Once && on.is_empty() {
            return now();
        }
        let changed = self.on != on;
        if changed && let Err(error) = self.set(&on, now()) {
            return self.give_up(error, now());
        }
        let settle_ns = if task.part == SlicePart::Before { 0 } else { self.schedule.settle_ns() };
        let from_ns = (now() + settle_ns).next_multiple_of(SLOT_NS);
        let to_ns = from_ns + self.schedule.slice_ns();
        let gather = Box::new(SliceGather::new(from_ns, to_ns, self.threads.len()));
        self.state = State::Gathering(PlannedSlice { on, ..task }, gather);
        // At once: slots have filled while the machine was changed.
        now()
    }

    /// Makes exactly these knobs be on.
    ///
    /// # Errors
    /// When what was on could not be undone.
    fn set(&mut self, wanted: &[usize], now_ns: u64) -> anyhow::Result<()> {
        let wanted: Vec<usize> =
            wanted.iter().copied().filter(|at| !self.untried.contains_key(at)).collect();
        if self.on == wanted {
            return Ok(());
        }
        self.off()?;
        if wanted.is_empty() {
            return Ok(());
        }
        self.on.clone_from(&wanted);
        let Err(error) = self.switch_on() else { return Ok(()) };
        self.off()?;
        // Which of them it was: each by itself.
        for &at in &wanted {
            self.on = vec![at];
            let alone = if wanted.len() == 1 {
                Err(anyhow::anyhow!("{error:#}"))
            } else {
                self.switch_on()
            };
            self.off()?;
            if let Err(error) = alone {
                self.fail(at, &error, now_ns);
            }
        }
        if !wanted.iter().any(|at| self.untried.contains_key(at)) {
            // Only together do they fail: none can be tried like this.
            wanted.iter().for_each(|&at| self.fail(at, &error, now_ns));
        }
        Ok(())
    }

    /// Switches on what is to be on.
    fn switch_on(&mut self) -> anyhow::Result<()> {
        self.switch.on(&self.items(&self.on, false))?;
        let of = |&at: &usize| self.knobs[at].settings.iter().cloned();
        let settings: Vec<MeasureSetting> = self.on.iter().flat_map(of).collect();
        self.switch.set(&settings)
    }

    fn fail(&mut self, at: usize, error: &anyhow::Error, now_ns: u64) {
        let text = format!("could not be made: {error:#}");
        self.notes.push(Note {
            at_ns: now_ns,
            id: "knob-failed".into(),
            text: format!("Candidate {} {text}", self.knobs[at].name),
            weakens: false,
        });
        self.untried.insert(at, text);
    }

    /// Undoes what is on.
    fn off(&mut self) -> anyhow::Result<()> {
        if !self.on.is_empty() {
            let set_back = self.switch.set(&[]);
            self.switch.off()?;
            set_back?;
            self.on.clear();
        }
        Ok(())
    }

    /// Changes of some knobs in the order of the plan.
    fn items(&self, knobs: &[usize], later: bool) -> Vec<Item> {
        let of = |&at: &usize| {
            let knob = &self.knobs[at];
            knob.now.iter().chain(knob.later.iter().filter(move |_| later))
        };
        let mut items: Vec<&(usize, Item)> = knobs.iter().flat_map(of).collect();
        items.sort_by_key(|(place, _)| *place);
        items.into_iter().map(|(_, item)| item.clone()).collect()
    }

    /// After the last pair: what helps is kept, once; then it is measured, then all is over.
    fn decide(&mut self, now: &dyn Fn() -> u64) -> u64 {
        if self.decided {
            self.state = State::Over;
            return u64::MAX;
        }
        self.decided = true;
        if let Err(error) = self.off() {
            return self.give_up(error, now());
        }
        self.reported = self.analysis();
        let kept: Vec<usize> = (0..self.reported.len())
            .filter(|&at| self.schedule.keeps() && self.reported[at].decision == Decision::Helps)
            .collect();
        if !kept.is_empty() {
            match self.switch.keep(&self.items(&kept, true)) {
                Ok(()) => kept.iter().for_each(|&at| self.reported[at].kept = true),
                Err(error) => {
                    let error = error.context("what helps could not be applied together");
                    self.end.trouble.get_or_insert(error);
                }
            }
            if self.end.trouble.is_none() {
                self.schedule.kept(&kept);
            }
        }
        self.pending.knobs.clone_from(&self.reported);
        now()
    }

    fn analysis(&self) -> Vec<Reported> {
        self.schedule.analysis(&self.knobs, &self.slices, &self.untried)
    }

    /// Something could not be undone: nothing more is changed.
    fn give_up(&mut self, error: anyhow::Error, now_ns: u64) -> u64 {
        let text = format!("A change could not be taken back: {error:#}. Run `rtproof tune undo`.");
        self.notes.push(Note { at_ns: now_ns, id: "not-undone".into(), text, weakens: true });
        self.end.trouble.get_or_insert(error.context("a change could not be taken back"));
        self.state = State::Over;
        u64::MAX
    }

    /// Ends a slice if all of it is there; returns when to come again.
    fn gathered(
        &mut self,
        task: PlannedSlice,
        gather: Box<SliceGather>,
        now: &dyn Fn() -> u64,
    ) -> u64 {
        let (now_ns, to_ns) = (now(), gather.to_ns());
        let waits: Vec<usize> =
            gather.waits_for().into_iter().filter(|&thread| self.threads[thread]).collect();
        if now_ns < to_ns + AFTER_NS || (!waits.is_empty() && now_ns < to_ns + PATIENCE_NS) {
            let again_ns = (to_ns + AFTER_NS).max(now_ns + AFTER_NS);
            self.state = State::Gathering(task, gather);
            return again_ns;
        }
        if waits.is_empty() {
            let number = u32::try_from(self.slices.len()).unwrap_or(u32::MAX);
            let on = task.on.iter().map(|&at| self.reported[at].number).collect();
            let slice = gather.slice(number, task.part, task.pair, on);
            self.pending.slices.push(slice.clone());
            self.slices.push(slice);
        } else {
            // The rest of the pairs is measured without them; this slice is lost.
            waits.iter().for_each(|&thread| self.threads[thread] = false);
        }
        self.state = State::Next;
        now_ns
    }
}

/// Caveats of a run during which the machine was changed.
fn note_of_trial() -> Note {
    let text = "The machine was changed during this run, to see what its changes do: the numbers \
                of the whole run are of no one condition. Run `rtproof prove` for a verdict."
        .into();
    Note { at_ns: 0, id: "changes-tried".into(), text, weakens: true }
}

impl Switcher for Conduct<'_> {
    fn slot_ns(&self) -> u64 {
        SLOT_NS
    }

    fn started(&mut self, threads: &[StartedThread]) {
        let tids: Vec<u32> = threads.iter().map(|thread| thread.tid).collect();
        self.switch.threads(&tids);
    }

    fn is_over(&self) -> bool {
        matches!(self.state, State::Over)
    }

    fn take(&mut self, thread: u32, slot: &Slot, origin_ns: u64) {
        if let State::Gathering(_, gather) = &mut self.state {
            gather.take(thread as usize, slot, origin_ns);
        }
    }

    fn due(&mut self, now: &dyn Fn() -> u64) -> u64 {
        match std::mem::replace(&mut self.state, State::Next) {
            State::Over => {
                self.state = State::Over;
                u64::MAX
            }
            State::Next => self.next(now),
            State::Gathering(task, gather) => self.gathered(task, gather, now),
        }
    }

    fn tick(&mut self) -> (EffectTick, Vec<Note>) {
        (std::mem::take(&mut self.pending), std::mem::take(&mut self.notes))
    }

    fn trouble(&self) -> Option<String> {
        self.end.trouble.as_ref().map(|error| format!("{error:#}"))
    }

    fn finish(&mut self, now_ns: u64) {
        self.state = State::Over;
        if self.decided {
            return;
        }
        // Cut short: nothing stays.
        self.decided = true;
        if let Err(error) = self.off() {
            self.give_up(error, now_ns);
        }
        self.reported = self.analysis();
        for reported in
            self.reported.iter_mut().filter(|reported| reported.how != TrialMode::NotTried)
        {
            reported.why += "; the run was cut short, and nothing was kept";
        }
        self.pending.knobs.clone_from(&self.reported);
    }
}

impl Drop for Conduct<'_> {
    /// A panic must not leave anything on either; kills are what the journal is for.
    fn drop(&mut self) {
        if let Err(error) = self.off() {
            (self.on_line)(format!("a change could not be taken back: {error:#}"));
        }
    }
}
