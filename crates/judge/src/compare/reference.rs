//! Rank of a run among reference runs of other machines.
//!
//! Only like is ranked with like, each machine once, and quantiles alone: a maximum grows with the
//! number of wake-ups. What a file does not record cannot be checked, and is reported.

use std::collections::BTreeMap;

use rtproof_stats::quantile::Q;

use super::side::{QuantileValue, RunMachine, Side, View};
use crate::quantity::{count, duration, ns};
use crate::weakness::{QuantileRank, Reference, UnusedFile};

/// Other machines below which nothing is ranked.
const MACHINES_MIN: usize = 5;

/// Quantiles that are ranked.
const RANKED: [Q; 3] = [Q::P50, Q::P99_9, Q { above: 1, of: 10_000 }];

impl Reference {
    /// Places a run among others. `unread` are files that could not be read.
    pub fn of(run: &Side, others: &[Side], unread: &[UnusedFile]) -> Self {
        let mut left_out = unread.to_vec();
        let mut machines: BTreeMap<String, &Side> = BTreeMap::new();
        for other in others {
            match differs(run, other) {
                Some(why) => left_out.push(UnusedFile { file: other.source.clone(), why }),
                None => {
                    // Of each machine the latest run; of a file without a machine, the file.
                    let key = identity(other).unwrap_or_else(|| format!("file {}", other.source));
                    let kept = machines.entry(key).or_insert(other);
                    let (old, new) = match kept.started_ns > other.started_ns {
                        true => (other, *kept),
                        false => (*kept, other),
                    };
                    if old.source != new.source {
                        left_out.push(UnusedFile {
                            file: old.source.clone(),
                            why: format!("{} is a later run of the same machine", new.source),
                        });
                    }
                    *kept = new;
                }
            }
        }
        let like: Vec<&Side> = machines.into_values().collect();
        let sides = || like.iter().copied().chain([run]);
        let view = match sides().all(Side::knows_missed) {
            true => View::Deadline,
            false => View::Wake,
        };
        let alike_by = group(run);
        let alike: Vec<&Side> =
            like.iter().copied().filter(|o| alike_by.is_some() && group(o) == alike_by).collect();
        let mut found = Self {
            run: run.label.clone(),
            all: ranks(run, &like, view),
            alike: ranks(run, &alike, view),
            alike_by,
            left_out,
            lines: Vec::new(),
        };
        found.lines = found.sentences(run, &like, &alike);
        if view == View::Wake && !like.is_empty() && sides().any(Side::knows_missed) {
            found.lines.push(
                "Missed wake-ups are left out of all, because some files do not hold them.".into(),
            );
        }
        found
    }

    fn sentences(&self, run: &Side, like: &[&Side], alike: &[&Side]) -> Vec<String> {
        let mut lines = vec![sentence(&run.label, "of reference", &self.all, like.len())];
        match &self.alike_by {
            None => lines.push(format!("Board and CPU of {} are not known.", run.label)),
            Some(by) => {
                let of = format!("of reference with the same {by}");
                lines.push(sentence(&run.label, &of, &self.alike, alike.len()));
            }
        }
        if like.is_empty() {
            return lines;
        }
        let time = |side: &Side| side.duration_ns.map_or_else(|| "unknown".into(), duration);
        let known: Vec<u64> = like.iter().filter_map(|side| side.duration_ns).collect();
        let theirs = match (known.iter().min(), known.iter().max()) {
            (Some(&least), Some(&most)) if least == most => duration(least),
            (Some(&least), Some(&most)) => format!("{} to {}", duration(least), duration(most)),
            _ => "unknown".into(),
        };
        lines.push(format!(
            "Length of this run: {}, of theirs: {theirs}. Maxima grow with it and are not ranked.",
            time(run)
        ));
        let unchecked = |what: &str, known: &dyn Fn(&Side) -> bool| {
            let missing = match known(run) {
                true => like.iter().filter(|side| !known(side)).count(),
                false => like.len(),
            };
            (missing > 0).then(|| format!("{what} ({missing} of {})", like.len()))
        };
        let unchecked: Vec<String> = [
            unchecked("period", &|side| side.period_ns.is_some()),
            unchecked("priority", &|side| side.policy.is_some()),
            unchecked("loads", &|side| side.loads.is_some()),
            unchecked("machine", &|side| identity(side).is_some()),
        ]
        .into_iter()
        .flatten()
        .collect();
        if !unchecked.is_empty() {
            lines.push(format!(
                "Not recorded, so not checked to be like: {}. A file without a machine counts as \
                 one machine.",
                unchecked.join(", ")
            ));
        }
        lines
    }
}

/// Key that identifies the machine; `None`: the file names none.
fn identity(side: &Side) -> Option<String> {
    let place = side.machine.as_ref()?;
    let name = || place.hostname.as_ref().map(|name| format!("host {name}"));
    place.machine_id.as_ref().map(|id| format!("id {id}")).or_else(name)
}

/// Board of a machine, else its CPU.
fn group(side: &Side) -> Option<String> {
    let RunMachine { board, cpu_model, .. } = side.machine.as_ref()?;
    let board = board.as_ref().map(|board| format!("board, {board}"));
    board.or_else(|| cpu_model.as_ref().map(|cpu| format!("CPU, {cpu} (board not known)")))
}

/// Why a run is not like another; `None`: nothing known differs.
fn differs(run: &Side, other: &Side) -> Option<String> {
    if !run.id.is_empty() && run.id == other.id {
        return Some("it is the run itself".into());
    }
    if identity(run).is_some() && identity(run) == identity(other) {
        return Some("it is of the same machine".into());
    }
    let value = |what: &str, a: Option<String>, b: Option<String>| {
        let (a, b) = a.zip(b)?;
        (a != b).then(|| format!("other {what}: {b}, not {a}"))
    };
    let text = |side: &Side, of: fn(&Side) -> &Option<String>| of(side).clone();
    value("workload", Some(run.kind().into()), Some(other.kind().into()))
        .or_else(|| value("period", run.period_ns.map(ns), other.period_ns.map(ns)))
        .or_else(|| value("priority", text(run, |s| &s.policy), text(other, |s| &s.policy)))
        .or_else(|| value("loads", text(run, |s| &s.loads), text(other, |s| &s.loads)))
}

fn ranks(run: &Side, others: &[&Side], view: View) -> Vec<QuantileRank> {
    RANKED.into_iter().filter_map(|q| rank(run, others, view, q)).collect()
}

fn rank(run: &Side, others: &[&Side], view: View, q: Q) -> Option<QuantileRank> {
    let value = |side: &Side| {
        let value = side.quantile(&side.all(view), q).filter(|value| !value.at_least)?;
        // A tool that rounds down names a cell as wide as its unit.
        let high_ns = value.high_ns.max(value.low_ns.saturating_add(side.resolution_ns - 1));
        Some(QuantileValue { high_ns, ..value })
    };
    let own = value(run)?;
    let mut theirs: Vec<QuantileValue> = others.iter().filter_map(|side| value(side)).collect();
    theirs.sort_by_key(|value| value.ns);
    let enough = theirs.len() >= MACHINES_MIN;
    let among = |is: &dyn Fn(&QuantileValue) -> bool| {
        enough.then(|| theirs.iter().filter(|value| is(value)).count() as u64)
    };
    let is_lower = |other: &QuantileValue| other.high_ns < own.low_ns;
    let is_higher = |other: &QuantileValue| other.low_ns > own.high_ns;
    Some(QuantileRank {
        statistic: q.name(),
        value_ns: own.ns,
        machines: theirs.len() as u64,
        lower: among(&is_lower),
        same: among(&|other| !is_lower(other) && !is_higher(other)),
        higher: among(&is_higher),
        least_ns: theirs.first()?.ns,
        middle_ns: theirs.get((theirs.len() - 1) / 2)?.ns,
        most_ns: theirs.last()?.ns,
    })
}

/// One group of machines in a sentence.
fn sentence(run: &str, of: &str, ranks: &[QuantileRank], machines: usize) -> String {
    if machines == 0 {
        return format!("No machine {of} has a run like {run}.");
    }
    let range = |rank: &QuantileRank| match rank.least_ns == rank.most_ns {
        true => ns(rank.least_ns),
        false => format!("{} to {}", ns(rank.least_ns), ns(rank.most_ns)),
    };
    let own = |rank: &QuantileRank| format!("{} {}", rank.statistic, ns(rank.value_ns));
    let texts: Vec<String> = ranks
        .iter()
        .map(|rank| match (rank.lower, rank.same, rank.higher) {
            (Some(lower), Some(same), Some(higher)) => format!(
                "{}: {lower} lower, {same} the same, {higher} higher ({}, middle {})",
                own(rank),
                range(rank),
                ns(rank.middle_ns)
            ),
            _ => format!("{}, theirs {}", own(rank), range(rank)),
        })
        .collect();
    let few = if machines < MACHINES_MIN {
        format!(", too few to rank among ({MACHINES_MIN} at least)")
    } else {
        String::new()
    };
    let values = match texts.is_empty() {
        true => "no quantile is known of both".into(),
        false => texts.join("; "),
    };
    format!("{run} beside {} {of}{few}: {values}.", count(machines, "machine"))
}

#[cfg(test)]
mod tests {
    use rtproof_record::BudgetClass;

    use super::*;

    /// A run of two seconds of a machine, all at about this latency.
    fn side(machine: u32, latency_ns: u64) -> Side {
        let run = crate::testing::run_of(BudgetClass::Hundred, 1, 2, |_, ms| latency_ns + ms % 7);
        let mut side = Side::of_run(&run, &format!("m{machine}"), &format!("m{machine}.rtproof"));
        side.id = format!("run {machine}");
        side.machine = Some(RunMachine {
            machine_id: Some(format!("machine {machine}")),
            board: Some(if machine < 10 { "Pi 4".into() } else { "Pi 5".into() }),
            ..RunMachine::default()
        });
        side
    }

    fn many() -> Vec<Side> {
        (1..=6).map(|n| side(n, 10_000 * u64::from(n))).chain([side(11, 5000)]).collect()
    }

    #[test]
    fn a_run_is_ranked_among_its_board_and_among_all() {
        let found = Reference::of(&side(0, 35_000), &many(), &[]);
        let rank = &found.all[1];
        assert_eq!((rank.statistic.as_str(), rank.machines), ("p99.9", 7));
        assert_eq!((rank.lower, rank.same, rank.higher), (Some(4), Some(0), Some(3)));
        assert_eq!(found.alike_by.as_deref(), Some("board, Pi 4"));
        assert_eq!((found.alike[1].lower, found.alike[1].higher), (Some(3), Some(3)));
        assert!(found.lines[0].contains("4 lower, 0 the same, 3 higher"), "{:?}", found.lines);
        assert!(
            found.lines[1].starts_with("m0 beside 6 machines of reference with the same board")
        );
        assert!(found.left_out.is_empty() && found.all.len() == 2, "p99.99 of 2000 is not carried");
        // Within one bucket there is no order.
        let same = Reference::of(&side(0, 20_010), &many(), &[]);
        assert_eq!((same.all[1].lower, same.all[1].same), (Some(2), Some(1)));
    }

    #[test]
    fn few_are_not_ranked() {
        let found = Reference::of(&side(0, 35_000), &many()[..3], &[]);
        assert_eq!((found.all[0].machines, found.all[0].lower), (3, None));
        assert!(found.lines[0].contains("too few to rank among (5 at least)"), "{:?}", found.lines);
        let none = Reference::of(&side(0, 35_000), &[], &[]);
        assert_eq!(none.lines[0], "No machine of reference has a run like m0.");
        assert!(none.all.is_empty() && none.lines.len() == 2);
    }

    #[test]
    fn what_is_not_alike_is_left_out_by_name() {
        let run = side(0, 35_000);
        let with = |change: &dyn Fn(&mut Side)| {
            let mut other = side(1, 10_000);
            change(&mut other);
            let found = Reference::of(&run, &[other], &[]);
            found.left_out.first().map(|out| out.why.clone()).unwrap_or_default()
        };
        assert_eq!(with(&|_| ()), "");
        assert!(with(&|other| other.period_ns = Some(250_000)).starts_with("other period: 250"));
        assert!(with(&|other| other.policy = Some("fifo 10".into())).contains("priority"));
        assert!(with(&|other| other.loads = Some("idle".into())).starts_with("other loads: idle"));
        assert!(with(&|other| other.workload = "busy-loop".into()).contains("workload"));
        assert_eq!(with(&|other| other.machine = run.machine.clone()), "it is of the same machine");
        assert_eq!(with(&|other| other.id = run.id.clone()), "it is the run itself");
    }

    #[test]
    fn a_machine_counts_once_by_its_latest_run() {
        let mut later = side(1, 90_000);
        later.source = "later.rtproof".into();
        later.started_ns = later.started_ns.map(|ns| ns + 1);
        let early = side(1, 10_000);
        for order in [[early.clone(), later.clone()], [later, early]] {
            let found = Reference::of(&side(0, 35_000), &order, &[]);
            assert_eq!(found.all[0].machines, 1);
            assert!(found.all[0].least_ns > 80_000);
            assert_eq!(found.left_out[0].file, "m1.rtproof");
        }
    }

    #[test]
    fn missing_data_is_reported() {
        let mut others = many();
        for other in &mut others {
            (other.policy, other.loads, other.machine) = (None, None, None);
        }
        others[0].threads[0].missed = None;
        let found = Reference::of(&side(0, 35_000), &others, &[]);
        assert_eq!((found.all[1].machines, found.alike.len()), (7, 0));
        assert!(found.lines.iter().any(|line| line.starts_with("Missed wake-ups are left out")));
        let line = found.lines.join(" ");
        for part in ["priority (7 of 7)", "loads (7 of 7)", "machine (7 of 7)"] {
            assert!(line.contains(part), "{line}");
        }
        let mut unknown = side(0, 35_000);
        unknown.machine = None;
        let found = Reference::of(&unknown, &many(), &[]);
        assert_eq!(found.lines[1], "Board and CPU of m0 are not known.");
    }
}
