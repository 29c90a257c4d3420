//! The course of a trial: slices before, pairs with knobs on and off, slices with what is made
//! once, the decision, slices with what is kept.
//!
//! Runs on the housekeeping thread, between the emptying of slots. At most one set of knobs is on
//! at a time, in a journal of its own; whatever ends the run, what is on is taken back first.

use std::collections::VecDeque;

use rtproof_host::tune::Item;
use rtproof_measure::Slot;
use rtproof_record::{
    EffectTick,
    effects::{Design, How, Knob as Told, Part, Slice, Statistic, Trial},
    run::Note,
};
use rtproof_stats::paired;

use super::{
    Switch,
    analyse::{self, POWER, Terms, Untried, ppm},
    gather::Gather,
    knobs::{Kind, Knob},
    schedule::{BEFORE, LEAD_NS, LEVEL, ONCE, SETTLE_NS, SLOT_NS, Shares},
};
use crate::{prove::Conductor, render::effects::percent};

/// How long after the end of a slice its slots are asked for.
const AFTER_NS: u64 = 20_000_000;
/// A thread that has not handed over for so long is given up.
const PATIENCE_NS: u64 = 3_000_000_000;
/// Differences up to this share do not matter.
pub(super) const MARGIN: f64 = 0.05;

/// A slice to be measured.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Task {
    part: Part,
    pair: u32,
    on: Vec<usize>,
}

/// Where the trial is.
#[derive(Debug)]
enum State {
    /// The next slice is to be begun.
    Next,
    /// A slice is being measured.
    Gathering(Task, Box<Gather>),
    /// Nothing is left to do.
    Over,
}

/// What becomes of the machine.
#[derive(Debug, Default)]
pub(super) struct End {
    /// Why changes could not be taken back or kept.
    pub(super) trouble: Option<anyhow::Error>,
}

/// A trial under way.
pub(super) struct Conduct<'a> {
    switch: &'a mut dyn Switch,
    tell: &'a mut dyn FnMut(String),
    knobs: Vec<Knob>,
    told: Vec<Told>,
    untried: Untried,
    shares: Shares,
    total_ns: u64,
    tasks: VecDeque<Task>,
    state: State,
    /// Knobs that are on.
    on: Vec<usize>,
    decided: bool,
    /// Measured threads; `false`: given up.
    threads: Vec<bool>,
    slices: Vec<Slice>,
    trial: Trial,
    /// What the record has not got yet.
    pending: EffectTick,
    notes: Vec<Note>,
    end: End,
}

impl<'a> Conduct<'a> {
    /// A trial of `knobs` in `total_ns`. `seed`: below 2^63.
    pub(super) fn new(
        switch: &'a mut dyn Switch,
        tell: &'a mut dyn FnMut(String),
        knobs: Vec<Knob>,
        shares: Shares,
        total_ns: u64,
        threads: usize,
        seed: u64,
    ) -> Self {
        let mut untried = Untried::new();
        let tasks = tasks(&knobs, &shares, seed, &mut untried);
        let trial = Trial {
            seed,
            design: if shares.mirrored { Design::Mirrored } else { Design::Single },
            pairs: u32::try_from(shares.pairs).unwrap_or(u32::MAX),
            slice_ns: shares.slice_ns,
            margin_ppm: ppm(MARGIN),
            level_ppb: (LEVEL * 1e9) as u64,
            detectable_ppm: None,
        };
        let told: Vec<Told> =
            knobs.iter().enumerate().map(|(at, knob)| analyse::begin(at, knob)).collect();
        let pending =
            EffectTick { trial: Some(trial.clone()), knobs: told.clone(), slices: Vec::new() };
        Self {
            switch,
            tell,
            knobs,
            told,
            untried,
            shares,
            total_ns,
            tasks,
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

    /// What became of the machine, after the run.
    pub(super) fn end(mut self) -> End {
        std::mem::take(&mut self.end)
    }

    /// Begins the next slice; returns when to come again.
    fn next(&mut self, now: &dyn Fn() -> u64) -> u64 {
        if now() < LEAD_NS {
            return LEAD_NS;
        }
        if self.slices.len() == BEFORE as usize && self.trial.detectable_ppm.is_none() {
            self.say_what_can_be_seen();
        }
        let Some(task) = self.take_task(now()) else {
            return self.decide(now);
        };
        if let Err(error) = self.set(&task.on, now()) {
            return self.give_up(error, now());
        }
        // Knobs that could not be made are out, and a slice without its knobs says nothing.
        let on: Vec<usize> =
            task.on.iter().copied().filter(|at| !self.untried.contains_key(at)).collect();
        if task.part == Part::Once && on.is_empty() {
            return now();
        }
        let changed = self.on != on;
        if changed && let Err(error) = self.set(&on, now()) {
            return self.give_up(error, now());
        }
        let settle_ns = if task.part == Part::Before { 0 } else { SETTLE_NS };
        let from_ns = (now() + settle_ns).next_multiple_of(SLOT_NS);
        let to_ns = from_ns + self.shares.slice_ns;
        let gather = Box::new(Gather::new(from_ns, to_ns, self.threads.len()));
        self.state = State::Gathering(Task { on, ..task }, gather);
        // At once: slots have filled while the machine was changed.
        now()
    }

    /// The next slice for which there is time; pairs are not begun that cannot be ended.
    fn take_task(&mut self, now_ns: u64) -> Option<Task> {
        let slice_ns = self.shares.slice_ns + SETTLE_NS + SLOT_NS;
        loop {
            let task = self.tasks.front()?;
            let is_first = self.tasks.get(1).is_some_and(|next| {
                next.part == Part::Pair && task.part == Part::Pair && next.pair == task.pair
            });
            let left = if self.decided { 0 } else { u64::from(ONCE) };
            let slices = 1 + u64::from(is_first) + if task.part == Part::Pair { left } else { 0 };
            if now_ns + slices * slice_ns <= self.total_ns || task.part == Part::Before {
                return self.tasks.pop_front();
            }
            let dropped = self.tasks.pop_front()?;
            if is_first {
                self.tasks.pop_front();
            }
            if dropped.part == Part::Once {
                for at in dropped.on {
                    self.untried.entry(at).or_insert_with(|| "there was no time left".into());
                }
            }
        }
    }

    /// Makes exactly these knobs be on.
    ///
    /// # Errors
    /// When what was on could not be taken back.
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
        let items = self.items(&wanted, false);
        self.on.clone_from(&wanted);
        let Err(error) = self.switch.on(&items) else { return Ok(()) };
        self.off()?;
        // Which of them it was: each by itself.
        for &at in &wanted {
            self.on = vec![at];
            let items = self.items(&self.on, false);
            let alone = if wanted.len() == 1 {
                Err(anyhow::anyhow!("{error:#}"))
            } else {
                self.switch.on(&items)
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

    fn fail(&mut self, at: usize, error: &anyhow::Error, now_ns: u64) {
        let text = format!("could not be made: {error:#}");
        self.notes.push(Note {
            at_ns: now_ns,
            id: "knob-failed".into(),
            text: format!("Knob {} {text}", self.knobs[at].name),
            weakens: false,
        });
        self.untried.insert(at, text);
    }

    /// Takes back what is on.
    fn off(&mut self) -> anyhow::Result<()> {
        if !self.on.is_empty() {
            self.switch.off()?;
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

    fn say_what_can_be_seen(&mut self) {
        let level = LEVEL / self.shares.comparisons().max(1) as f64;
        let values: Vec<f64> = self
            .slices
            .iter()
            .filter_map(|slice| slice.p999_ns)
            .map(|ns| (ns.max(1) as f64).ln())
            .collect();
        let least = paired::successive_sd(&values)
            .and_then(|sd| paired::detectable(sd, self.shares.pairs, level, POWER));
        let median = analyse::median_of(Statistic::P999, self.slices.iter());
        let Some((least, median)) = least.zip(median).filter(|_| self.shares.toggled > 0) else {
            return;
        };
        // Downwards: what helps.
        self.trial.detectable_ppm = Some(ppm(-f64::exp_m1(-least)).max(1));
        self.pending.trial = Some(self.trial.clone());
        (self.tell)(format!(
            "before: p99.9 {} (median of {BEFORE} slices). To be seen is a knob that takes {} of \
             it away, or more.",
            rtproof_judge::units::ns(median),
            percent(-f64::exp_m1(-least)),
        ));
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
        self.told = self.analysis();
        let kept: Vec<usize> = (0..self.told.len())
            .filter(|&at| self.told[at].decision == rtproof_record::effects::Decision::Helps)
            .collect();
        if !kept.is_empty() {
            match self.switch.keep(&self.items(&kept, true)) {
                Ok(()) => kept.iter().for_each(|&at| self.told[at].kept = true),
                Err(error) => {
                    let error = error.context("what helps could not be applied together");
                    self.end.trouble.get_or_insert(error);
                }
            }
            let after = Task { part: Part::After, pair: 0, on: kept };
            if self.end.trouble.is_none() {
                self.tasks.extend(std::iter::repeat_n(after, ONCE as usize));
            }
        }
        self.pending.knobs.clone_from(&self.told);
        now()
    }

    fn analysis(&self) -> Vec<Told> {
        let terms = Terms {
            margin: MARGIN,
            total_ns: self.total_ns,
            mirrored: self.shares.mirrored,
            comparisons: self.shares.comparisons(),
        };
        analyse::analyse(&self.knobs, &self.slices, &self.untried, terms)
    }

    /// Something could not be taken back: nothing more is changed.
    fn give_up(&mut self, error: anyhow::Error, now_ns: u64) -> u64 {
        let text = format!("A change could not be taken back: {error:#}. Run `rtproof tune undo`.");
        self.notes.push(Note { at_ns: now_ns, id: "not-undone".into(), text, weakens: true });
        self.end.trouble.get_or_insert(error.context("a change could not be taken back"));
        self.state = State::Over;
        u64::MAX
    }

    /// Ends a slice if all of it is there; returns when to come again.
    fn gathered(&mut self, task: Task, gather: Box<Gather>, now: &dyn Fn() -> u64) -> u64 {
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
            let on = task.on.iter().map(|&at| self.told[at].number).collect();
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

/// What must be known of a run during which the machine was changed.
fn note_of_trial() -> Note {
    let text = "The machine was changed during this run, to see what its changes do: the numbers \
                of the whole run are of no one condition. Run `rtproof prove` for a verdict."
        .into();
    Note { at_ns: 0, id: "changes-tried".into(), text, weakens: true }
}

/// The slices, in order: pairs of all knobs in turns, so that what drifts is spread over them.
fn tasks(knobs: &[Knob], shares: &Shares, seed: u64, untried: &mut Untried) -> VecDeque<Task> {
    let task = |part, pair, on: Vec<usize>| Task { part, pair, on };
    let mut tasks: VecDeque<Task> =
        (0..BEFORE).map(|_| task(Part::Before, 0, Vec::new())).collect();
    let mut of_kind = |kind, most: usize| {
        let mut those: Vec<usize> = (0..knobs.len()).filter(|&at| knobs[at].kind == kind).collect();
        for at in those.split_off(those.len().min(most)) {
            untried.insert(at, "there was no time for it; give it more, or name it alone".into());
        }
        those
    };
    let (toggled, once) =
        (of_kind(Kind::Toggled, shares.toggled), of_kind(Kind::Once, shares.once));
    let mut pairs: Vec<[Vec<usize>; 2]> = Vec::new();
    if shares.mirrored {
        for row in paired::mirrored(seed, toggled.len()).unwrap_or_default() {
            let (on, off): (Vec<_>, Vec<_>) = toggled.iter().zip(row).partition(|(_, on)| *on);
            let of = |those: Vec<(&usize, bool)>| those.into_iter().map(|(&at, _)| at).collect();
            pairs.push([of(on), of(off)]);
        }
    } else if !toggled.is_empty() {
        let first_on = paired::order(seed, shares.pairs * toggled.len());
        for (at, first_on) in toggled.iter().cycle().zip(first_on) {
            let (on, off) = (vec![*at], Vec::new());
            pairs.push(if first_on { [on, off] } else { [off, on] });
        }
    }
    for (pair, slices) in (0..).zip(pairs) {
        tasks.extend(slices.into_iter().map(|on| task(Part::Pair, pair, on)));
    }
    for at in once {
        tasks.extend(std::iter::repeat_n(task(Part::Once, 0, vec![at]), ONCE as usize));
    }
    tasks
}

impl Conductor for Conduct<'_> {
    fn slot_ns(&self) -> u64 {
        SLOT_NS
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
        self.told = self.analysis();
        for told in self.told.iter_mut().filter(|told| told.how != How::NotTried) {
            told.why += "; the run was cut short, and nothing was kept";
        }
        self.pending.knobs.clone_from(&self.told);
    }
}

impl Drop for Conduct<'_> {
    /// A panic must not leave anything on either; kills are what the journal is for.
    fn drop(&mut self) {
        if let Err(error) = self.off() {
            (self.tell)(format!("a change could not be taken back: {error:#}"));
        }
    }
}

#[cfg(test)]
mod tests;
