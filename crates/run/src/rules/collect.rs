//! The breaches by thread and place, and what can be said of each rule.

use std::collections::{BTreeMap, BTreeSet};

use rtproof_judge::{
    rules::{Compliance, Rule, RuleBreach, Tracker},
    units,
};
use rtproof_measure::program::{EventSource, ProgramWatch};
use rtproof_model::run::Monitor;
use rtproof_results::launch::{Breach, MonitorReport, RuleKept, RuleThread, Rules};

use super::symbols::{ProgramSymbols, own};

/// Most breaches that are kept apart.
const BREACHES_MAX: usize = 256;

/// Most stacks whose place is remembered.
const STACKS_MAX: usize = 4_096;

/// Rule, thread, call and stack.
type Exact = (Rule, u32, String, Vec<u64>);

/// The same with the program's own frame in place of the stack, where it has one: function, file
/// and line.
type Place = (Rule, u32, String, Result<(String, String, u32), Vec<u64>>);

#[derive(Default)]
pub(super) struct CollectedBreaches {
    breaches: BTreeMap<Place, Breach>,
    places: BTreeMap<Exact, Place>,
    more: u64,
    pub(super) from_ns: Option<u64>,
    end_ns: u64,
    pub(super) unknown: BTreeSet<String>,
    /// Why the events of a rule are missing.
    missing: BTreeMap<Rule, String>,
    threads: Vec<RuleThread>,
    /// Whether nothing could be observed: when it was ready is not known either.
    is_unreadable: bool,
    /// Real-time threads that were not seen to do anything.
    idle: usize,
    ordinary: BTreeSet<String>,
    pub(super) monitors: MonitorReport,
}

impl CollectedBreaches {
    /// Adds a breach to those of the same place.
    pub(super) fn file(
        &mut self,
        found: RuleBreach,
        tracker: &Tracker,
        symbols: &mut ProgramSymbols,
    ) {
        let unwound = found.stack.as_ref().map(|stack| symbols.unwind(found.pid, stack));
        let (addresses, is_cut) = unwound.unwrap_or_default();
        let call = found.what.split(' ').next().unwrap_or_default().to_owned();
        let exact = (found.rule, found.tid, call, addresses);
        let mut stack = Vec::new();
        let place = self.places.get(&exact).cloned().unwrap_or_else(|| {
            let frames = exact.3.iter().flat_map(|address| symbols.frames(found.pid, *address));
            stack = frames.collect();
            let at = own(&stack).map(|at| {
                let text = |of: &Option<String>| of.clone().unwrap_or_default();
                (text(&at.function), text(&at.file), at.line.unwrap_or(0))
            });
            (exact.0, exact.1, exact.2.clone(), at.ok_or_else(|| exact.3.clone()))
        });
        if self.places.len() < STACKS_MAX {
            self.places.entry(exact).or_insert_with(|| place.clone());
        }
        if let Some(breach) = self.breaches.get_mut(&place) {
            breach.count += 1;
            breach.monitor = breach.monitor.or(found.monitor.map(Monitor::name));
            breach.monitor_count += u64::from(found.monitor.is_some());
            breach.worst_ns = breach.worst_ns.max(found.lasted_ns);
            return;
        }
        if self.breaches.len() >= BREACHES_MAX {
            self.more += 1;
            return;
        }
        let breach = Breach {
            rule: found.rule,
            pid: found.pid,
            tid: found.tid,
            thread: tracker
                .threads()
                .get(&found.tid)
                .map_or_else(String::new, |it| it.name.clone()),
            what: found.what,
            count: 1,
            worst_ns: found.lasted_ns,
            first_ns: found.time_ns.saturating_sub(self.from_ns.unwrap_or(0)),
            at: own(&stack).cloned(),
            stack,
            is_cut,
            why: found.why,
            advice: found.rule.advice(),
            monitor: found.monitor.map(Monitor::name),
            monitor_count: u64::from(found.monitor.is_some()),
        };
        self.breaches.insert(place, breach);
    }

    /// The program has ended.
    pub(super) fn finish(&mut self, tracker: &Tracker, watch: &ProgramWatch, end_ns: u64) {
        self.end_ns = end_ns;
        self.unknown.extend(tracker.unobserved().iter().cloned());
        for rule in Rule::ALL {
            let missing = needs(rule).iter().find_map(|source| watch.missing(*source));
            if let Some(why) = missing {
                self.missing.insert(rule, why.to_owned());
            }
        }
        for (&tid, thread) in tracker.threads() {
            if thread.was_real_time {
                self.idle += usize::from(!thread.has_acted());
                let (name, switches) = (thread.name.clone(), thread.switches);
                self.threads.push(RuleThread { pid: thread.pid, tid, name, switches });
            } else if thread.is_real_time == Some(false) {
                self.ordinary.insert(thread.name.clone());
            }
        }
    }

    /// What can be said.
    pub(super) fn rules(self, ready: String, began_ns: u64) -> Rules {
        let watched_ns = self.from_ns.map_or(0, |from| self.end_ns.saturating_sub(from));
        let mut unknown = self.unknown.clone();
        let switches: u64 = self.threads.iter().map(|it| it.switches).sum();
        let nothing = match self.from_ns {
            None if self.is_unreadable => None,
            None => Some("it ended before it was ready"),
            Some(_) if self.threads.is_empty() => Some("no real-time thread was there to judge"),
            Some(_) if switches == 0 => Some(
                "no real-time thread left the CPU while it was observed: none was seen at work, \
                 and one that only polls looks the same",
            ),
            Some(_) => None,
        };
        unknown.extend(nothing.map(ToOwned::to_owned));
        let is_broken = |rule| self.breaches.keys().any(|place| place.0 == rule);
        // A kernel without monitors has no such rule.
        let of_monitors = Some(Rule::KernelMonitor)
            .filter(|rule| !self.monitors.taken.is_empty() || is_broken(*rule));
        let rules: Vec<RuleKept> = Rule::ALL
            .into_iter()
            .chain(of_monitors)
            .map(|rule| {
                let is_broken = is_broken(rule);
                let why = self.missing.get(&rule).or(unknown.first()).cloned();
                let answer = match (&why, is_broken) {
                    (_, true) => Compliance::Broken,
                    (Some(_), false) => Compliance::NotKnown,
                    // A rule may be among those that are not kept apart.
                    (None, false) if self.more > 0 => Compliance::NotKnown,
                    (None, false) => Compliance::Kept,
                };
                let why = match answer {
                    Compliance::NotKnown => Some(why.unwrap_or_else(|| {
                        format!("{} breaches are beyond those kept apart", self.more)
                    })),
                    _ => None,
                };
                RuleKept { rule, title: rule.title(), answer, why }
            })
            .collect();
        let mut breaches: Vec<Breach> = self.breaches.into_values().collect();
        breaches.sort_by_key(|it| (it.rule, std::cmp::Reverse(it.count)));
        let is = |answer| rules.iter().filter(move |it| it.answer == answer).count();
        let idle = match self.idle {
            0 => String::new(),
            count => format!(" ({count} of them did nothing that could be judged)"),
        };
        let seen = format!(
            "{}, observed for {}, {switches} times off the CPU{idle}",
            units::count(self.threads.len(), "real-time thread"),
            units::duration(watched_ns)
        );
        let (answer, text) = match (is(Compliance::Broken), is(Compliance::NotKnown)) {
            (0, 0) => (
                Compliance::Kept,
                format!("kept: no breach of {}; {seen}", units::count(rules.len(), "rule")),
            ),
            (0, unknown) => {
                let why = rules.iter().find_map(|it| it.why.as_deref()).unwrap_or_default();
                (
                    Compliance::NotKnown,
                    format!("not known, {}: {why}; {seen}", units::count(unknown, "rule")),
                )
            }
            (broken, _) => {
                (Compliance::Broken, format!("broken: {}; {seen}", units::count(broken, "rule")))
            }
        };
        Rules {
            ready,
            ready_after_ns: self.from_ns.map(|from| from.saturating_sub(began_ns)),
            watched_ns,
            answer,
            text,
            rules,
            breaches,
            breaches_more: self.more,
            threads: self.threads,
            ordinary: self.ordinary.into_iter().collect(),
            unknown: unknown.into_iter().collect(),
            monitors: self.monitors,
        }
    }
}

pub(super) fn unknown(ready: String, why: String) -> Rules {
    let monitors = MonitorReport { taken: Vec::new(), text: "nothing was observed".into() };
    let (unknown, is_unreadable) = (BTreeSet::from([why]), true);
    CollectedBreaches { unknown, is_unreadable, monitors, ..CollectedBreaches::default() }
        .rules(ready, 0)
}

/// The events that a rule rests on; being real-time rests on the first three.
const fn needs(rule: Rule) -> &'static [EventSource] {
    use rtproof_measure::program::EventSource::{
        Births, Enters, Exits, Faults, Migrations, Signals, Switches, Threads, Wakes,
    };
    match rule {
        Rule::PageFault | Rule::StackFault => &[Threads, Switches, Births, Faults],
        Rule::Migration => &[Threads, Switches, Births, Migrations],
        Rule::Signal => &[Threads, Switches, Births, Signals],
        Rule::Lock => &[Threads, Switches, Births, Enters, Exits, Wakes],
        _ => &[Threads, Switches, Births, Enters, Exits],
    }
}
