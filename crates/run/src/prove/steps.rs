//! Steps of the clock that a run is measured by, as the threads found them. They are noted when
//! they come, so that a run that is killed has them in its record.

use rtproof_judge::units;
use rtproof_measure::clock::{Clock, Steps};
use rtproof_record::run::Note;

/// Notes of one run, at most. A daemon may set the clock every second, for days.
const NOTES_MAX: u32 = 20;

/// What was noted so far.
#[derive(Debug, Default)]
pub(super) struct StepWatch {
    clock: Clock,
    /// By number of the thread.
    noted: Vec<Steps>,
    notes: u32,
    left_out: u32,
}

impl StepWatch {
    pub(super) fn of(clock: Clock) -> Self {
        Self { clock, ..Self::default() }
    }

    /// What is new, of all threads with their numbers. `cpu` names the CPU of a thread.
    pub(super) fn look(
        &mut self,
        at_ns: u64,
        now: impl Iterator<Item = (u32, Steps)>,
        cpu: impl Fn(u32) -> u32,
    ) -> Option<Note> {
        let mut new: Vec<(u32, Steps)> = Vec::new();
        for (number, steps) in now {
            let at = number as usize;
            self.noted.resize(self.noted.len().max(at + 1), Steps::default());
            let since = steps.since(self.noted[at]);
            self.noted[at] = steps;
            if !since.is_empty() {
                new.push((cpu(number), since));
            }
        }
        if new.is_empty() {
            return None;
        }
        if self.notes >= NOTES_MAX {
            self.left_out += 1;
            return None;
        }
        self.notes += 1;
        Some(note(at_ns, self.clock, &new))
    }

    /// What was not noted, after the last look.
    pub(super) fn rest(&self, at_ns: u64) -> Option<Note> {
        let (first, rest) = self.noted.split_first()?;
        let most = rest.iter().fold(*first, |most, one| Steps {
            steps: most.steps.max(one.steps),
            ahead_ns: most.ahead_ns.max(one.ahead_ns),
            back_ns: most.back_ns.max(one.back_ns),
            unmeasured: most.unmeasured + one.unmeasured,
            bounds: most.bounds + one.bounds,
        });
        let text = format!(
            "{} was set in {} more seconds than are listed. In the whole run: {}; {}.",
            self.clock.name(),
            self.left_out,
            moved(&most),
            left(most.unmeasured, most.bounds)
        );
        (self.left_out > 0).then(|| step_note(at_ns, &most, text))
    }
}

fn note(at_ns: u64, clock: Clock, new: &[(u32, Steps)]) -> Note {
    // The clock is one: threads differ in what they found only where a step came between.
    let most =
        new.iter().map(|(_, steps)| *steps).max_by_key(|steps| steps.ahead_ns + steps.back_ns);
    let most = most.unwrap_or_default();
    let cpus = rtproof_host::CpuList::new(new.iter().map(|(cpu, _)| *cpu));
    let (unmeasured, bounds) = new
        .iter()
        .fold((0, 0), |(cycles, bounds), (_, of)| (cycles + of.unmeasured, bounds + of.bounds));
    let why = match clock {
        Clock::Boottime => ", as a suspend does",
        _ => "",
    };
    // A sample that may hold it is said to.
    let free = if bounds == 0 { "the step is in no latency; " } else { "" };
    let text = format!(
        "{} was set{why}: {}, noticed {} after the start on {}; {free}{}.",
        clock.name(),
        moved(&most),
        units::duration(at_ns),
        units::cpus(&cpus),
        left(unmeasured, bounds)
    );
    step_note(at_ns, &Steps { unmeasured, bounds, ..most }, text)
}

fn step_note(at_ns: u64, steps: &Steps, text: String) -> Note {
    let weakens = steps.unmeasured > 0 || steps.bounds > 0;
    Note { at_ns, id: "clock-set".into(), text, weakens }
}

/// How often and by how much.
fn moved(steps: &Steps) -> String {
    let mut parts = vec![units::times(steps.steps)];
    for (word, ns) in [("ahead", steps.ahead_ns), ("back", steps.back_ns)] {
        if ns > 0 {
            parts.push(format!("{word} by {}", units::ns(ns)));
        }
    }
    parts.join(", ")
}

/// What of the cycles was lost to it.
fn left(unmeasured: u64, bounds: u64) -> String {
    let cycles = match unmeasured {
        0 => "no cycle was left out for it".into(),
        1 => "1 cycle that fell into it is not measured".into(),
        n => format!("{} cycles that fell into it are not measured", units::grouped(n)),
    };
    match bounds {
        0 => cycles,
        n => format!("{cycles}; {} may be wrong by as much as the step", units::count(n, "sample")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: Steps =
        Steps { steps: 1, ahead_ns: 0, back_ns: 3_600_000_000_000, unmeasured: 0, bounds: 0 };

    #[test]
    fn a_step_is_noted_once_with_what_it_cost() {
        let mut watch = StepWatch::of(Clock::Realtime);
        let cpu = |number| number + 2;
        let none = Steps::default();
        assert!(watch.look(1, [(0, none), (1, none)].into_iter(), cpu).is_none());
        let note = watch.look(2_000_000_000, [(0, STEP), (1, STEP)].into_iter(), cpu);
        let note = note.expect("news");
        assert!(!note.weakens);
        for part in ["set: once, back by", "CPUs 2-3", "in no latency", "no cycle was left out"] {
            assert!(note.text.contains(part), "{part}: {}", note.text);
        }
        assert!(watch.look(3, [(0, STEP), (1, STEP)].into_iter(), cpu).is_none(), "noted before");
        let worse = Steps { steps: 2, unmeasured: 7, bounds: 1, ..STEP };
        let note = watch.look(4, [(0, STEP), (1, worse)].into_iter(), cpu).expect("news");
        assert!(note.weakens && note.text.contains("7 cycles"), "{}", note.text);
        // One sample may hold it.
        assert!(!note.text.contains("in no latency"), "{}", note.text);
        assert!(watch.rest(5).is_none(), "all was noted");
    }

    #[test]
    fn what_is_too_much_is_summed_up() {
        let mut watch = StepWatch::of(Clock::Tai);
        let noted = (1..=30_u64).filter_map(|n| {
            let steps = Steps { steps: n, ahead_ns: n * 1000, ..Steps::default() };
            watch.look(n, [(0, steps)].into_iter(), |number| number)
        });
        assert_eq!(noted.count(), 20);
        let text = watch.rest(31).expect("the rest").text;
        assert!(text.contains("10 more seconds") && text.contains("30 times"), "{text}");
        assert!(text.contains("ahead by 30 µs"), "{text}");
    }
}
