//! Where a program runs: a partition of cgroup v2 where one can be made, affinity otherwise, and
//! why it is the one or the other.

use std::{
    io::Write as _,
    path::Path,
    process::{Child, ChildStdin},
    thread,
    time::{Duration, Instant},
};

use anyhow::Context as _;

use rtproof_host::{
    CpuList, Facts, Root,
    child::{self, Reach},
    door::usage,
    facts::isolation::Hierarchy,
    knobs::cpu::{GROUP_CONTROLLERS, GROUP_CPUS, GROUP_PARTITION},
    task,
    tune::{self, ApplyOptions as HowApplied, Change, Item, Journal, Machine, staging},
};
use rtproof_judge::{
    Impact,
    plan::{Reason, Step},
};
use rtproof_results::{
    launch::Cannot,
    tune::{JournalUndone, Previewed, TakenBackOutcome},
};

use super::{Confinement, LaunchPolicy, Options};
use crate::online_cpus;
use crate::tune::making::{self, SilentProgress};

/// Where the control groups are.
const GROUPS: &str = "/sys/fs/cgroup";

/// Why CPUs that are isolated at boot need no partition.
const ISOLATED: &str = "the CPUs are isolated since boot: no other task runs there by itself";

/// Where a program runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PlacedProgram {
    /// CPUs of its own; `None`: it runs where this process may.
    pub(super) cpus: Option<CpuList>,
    /// The group of the partition.
    pub(super) group: Option<String>,
    /// How it is kept there, and why so.
    pub(super) how: String,
}

/// Decides on which CPUs the program runs, and how.
///
/// # Errors
/// Usage: CPUs that are not there, or all; CPUs of another partition; no partition where one
/// was asked for.
pub(super) fn placed(
    facts: &Facts,
    options: &Options,
    policy: LaunchPolicy,
    is_root: bool,
) -> anyhow::Result<PlacedProgram> {
    let Some(list) = &options.cpus else {
        if options.place == Confinement::Partition {
            return Err(usage("--place partition needs --cpus"));
        }
        let how = "affinity of this process: no --cpus, so the machine is left as it is".into();
        return Ok(PlacedProgram { cpus: None, group: None, how });
    };
    let cpus = online_cpus(list, "--cpus", facts)?;
    let online = facts.cpus.online.value().cloned().unwrap_or_default();
    if online.difference(&cpus).is_empty() {
        return Err(usage(format!(
            "--cpus {list}: that is every CPU of this machine: none is left for the rest, which \
             the program would starve; name fewer, or leave --cpus out"
        )));
    }
    taken(facts, &cpus)?;
    let cannot = why_no_partition(facts, &cpus, is_root);
    let group = format!("{GROUPS}/rtproof-run-{}", std::process::id());
    match (options.place, cannot) {
        (Confinement::Partition, Some(why)) => {
            anyhow::bail!("--place partition: {why}; --place affinity needs none")
        }
        (Confinement::Affinity, _) => {
            let how = "affinity, as requested; other tasks may run there, too".into();
            Ok(PlacedProgram { cpus: Some(cpus), group: None, how })
        }
        (Confinement::Auto, Some(why)) => {
            let others = if why == ISOLATED { "" } else { "; other tasks may run there, too" };
            let how = format!("affinity: {why}{others}");
            Ok(PlacedProgram { cpus: Some(cpus), group: None, how })
        }
        (Confinement::Auto | Confinement::Partition, None) => {
            let kind = kind(policy);
            let how = format!("partition ({kind}) {group}: no other task runs there");
            Ok(PlacedProgram { cpus: Some(cpus), group: Some(group), how })
        }
    }
}

/// A deadline is admitted to CPUs that share one root domain, which those of an isolated partition
/// do not (kernel/cgroup/cpuset.c).
const fn kind(policy: LaunchPolicy) -> &'static str {
    match policy {
        LaunchPolicy::Deadline => "root",
        LaunchPolicy::Fifo | LaunchPolicy::Rr | LaunchPolicy::Other => "isolated",
    }
}

/// Refuses CPUs that another partition has.
fn taken(facts: &Facts, cpus: &CpuList) -> anyhow::Result<()> {
    let Some(sets) = facts.isolation.cpusets.value() else { return Ok(()) };
    let has = |name: &str, kind: &Option<String>, effective: &Option<CpuList>| {
        let is_valid = kind.as_ref().is_some_and(|kind| !kind.contains("invalid"));
        let effective = effective.clone().unwrap_or_default();
        (is_valid && !effective.intersection(cpus).is_empty())
            .then(|| (name.to_owned(), effective.intersection(cpus)))
    };
    let other = sets.groups.iter().find_map(|of| has(&of.name, &of.partition, &of.effective));
    match other {
        Some((name, shared)) => anyhow::bail!(
            "--cpus {cpus}: {} belongs to the partition {GROUPS}{name} already; choose other CPUs, \
             or end what runs there",
            rtproof_judge::units::cpus(&shared)
        ),
        None => Ok(()),
    }
}

/// Why no partition can be made; `None`: it can be tried.
fn why_no_partition(facts: &Facts, cpus: &CpuList, is_root: bool) -> Option<String> {
    let isolated = facts.cpus.isolated.value();
    if isolated.is_some_and(|isolated| cpus.difference(isolated).is_empty()) {
        return Some(ISOLATED.into());
    }
    let sets = &facts.isolation.cpusets;
    Some(match sets.value().map(|sets| sets.hierarchy) {
        None => sets.why_unknown().unwrap_or_default(),
        Some(Hierarchy::V1) => {
            "the cpuset controller is in cgroup v1, which has no partitions".into()
        }
        Some(Hierarchy::None) => "no cpuset controller of cgroup v2 is mounted".into(),
        Some(Hierarchy::V2) if !is_root => "a partition needs root".into(),
        Some(Hierarchy::V2) => return None,
    })
}

/// The changes that make the partition, in their order.
pub(super) fn steps(placed: &PlacedProgram, policy: LaunchPolicy) -> Vec<Step> {
    let (Some(group), Some(cpus)) = (&placed.group, &placed.cpus) else { return Vec::new() };
    let value = |path: String, value: &str, compare| Change::Value {
        path,
        value: value.into(),
        compare,
        couples: Vec::new(),
    };
    let of = |knob: &rtproof_host::Knob| knob.compare.unwrap_or_default();
    let changes = [
        value(format!("{GROUPS}/cgroup.subtree_control"), "+cpuset", of(&GROUP_CONTROLLERS)),
        Change::Folder { path: group.clone() },
        value(format!("{group}/cpuset.cpus"), &cpus.to_string(), of(&GROUP_CPUS)),
        value(format!("{group}/cpuset.cpus.partition"), kind(policy), of(&GROUP_PARTITION)),
    ];
    let reason = Reason {
        checks: vec!["cpuset-partition".into()],
        why: "a partition gives the program CPUs on which the scheduler puts no other task".into(),
        impact: Impact::Milliseconds,
        trade_off: Some("the rest of the machine has so many CPUs fewer".into()),
        risk: None,
    };
    changes.into_iter().map(|change| Step { change, reason: reason.clone() }).collect()
}

// What is changed of the machine while a program runs: under a journal, with a guard that undoes
// it when this process is killed.

/// How long another rtproof may keep the journals locked.
const LOCKED_MAX: Duration = Duration::from_secs(10);

/// Time between two tries.
const AGAIN: Duration = Duration::from_millis(50);

/// Changes that are in force.
#[derive(Debug)]
pub(super) struct AppliedChanges {
    number: u32,
    guard: Guard,
    /// The line that names the program.
    program: String,
    /// How many were made.
    pub(super) count: usize,
    /// What became of them.
    undone: Option<anyhow::Result<JournalUndone>>,
}

/// Time for a guard to see that nothing is left.
const GUARD_MAX: Duration = Duration::from_secs(1);

/// The process that undoes them when this one is killed. Its stdin ends with this process.
#[derive(Debug)]
struct Guard {
    process: Child,
    stdin: Option<ChildStdin>,
}

/// What a guard is started with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Guarding<'a> {
    pub(super) folder: Option<&'a Path>,
    pub(super) latency_us: Option<u32>,
}

impl Guard {
    fn start(number: u32, of: Guarding<'_>) -> anyhow::Result<Self> {
        let mut process = making::arm_for_program(of.folder, number, of.latency_us)?;
        let stdin = process.stdin.take();
        Ok(Self { process, stdin })
    }
}

/// Makes the changes; all of them or, with `keep_going`, those that can be made.
///
/// # Errors
/// One could not be made; everything is as it was then.
pub(super) fn make_changes(
    machine: &Machine<'_>,
    title: &str,
    steps: &[Previewed],
    keep_going: bool,
    guarding: Guarding<'_>,
) -> anyhow::Result<(AppliedChanges, Vec<Cannot>)> {
    let item = |it: &Previewed| Item {
        change: it.step.change.clone(),
        checks: it.step.reason.checks.clone(),
    };
    let items: Vec<Item> = steps.iter().map(item).collect();
    let mut journal = within(|| Ok(Journal::begin(machine, title.to_owned(), &items)?))?;
    let number = making::number(&journal);
    let armed = staging::set_running(machine, number)
        .with_context(|| format!("the mark of {}", journal.path()))
        .and_then(|()| Guard::start(number, guarding));
    // Nothing was changed yet: an empty journal and its mark go again.
    let guard = armed.inspect_err(|_| drop_journal(machine, &mut journal, number))?;
    let how = HowApplied { keep_going };
    let applied = match making::apply(machine, &mut journal, &items, how, &mut SilentProgress) {
        Ok(applied) => applied,
        Err(error) => {
            drop_journal(machine, &mut journal, number);
            return Err(error.into());
        }
    };
    let cannot = applied.failed.iter().chain(&applied.left_out);
    let cannot = cannot.map(|(change, why)| Cannot { what: change.title(), why: why.clone() });
    let cannot = cannot.collect();
    let count = applied.done;
    let program = String::new();
    Ok((AppliedChanges { number, guard, program, count, undone: None }, cannot))
}

fn drop_journal(machine: &Machine<'_>, journal: &mut Journal, number: u32) {
    let _ = tune::undo(machine, journal, &mut |_| {});
    if journal.is_closed() {
        let _ = staging::clear(machine, number);
    }
}

impl AppliedChanges {
    /// Tells the guard which program it has to wait for when this process is killed.
    pub(super) fn name_program(&mut self, root: &Root, pid: u32, group: Option<&str>) {
        let Some(ticks) = task::start_ticks(root, pid) else { return };
        self.program = format!("{pid} {ticks} {}\n", group.unwrap_or_default());
        self.send_program();
    }

    fn send_program(&mut self) {
        if let Some(stdin) = &mut self.guard.stdin {
            // A guard that has died is seen by `mend`.
            let _ = stdin.write_all(self.program.as_bytes());
        }
    }

    /// The guard's process id.
    pub(super) fn guard(&self) -> u32 {
        self.guard.process.id()
    }

    /// Restarts the guard if it has died or is stopped; returns whether it had.
    pub(super) fn restart_guard(&mut self, guarding: Guarding<'_>) -> anyhow::Result<bool> {
        let process = &mut self.guard.process;
        let is_there = process.try_wait()?.is_none();
        if self.undone.is_some() || is_there && !task::is_stopped(&Root::live(), process.id()) {
            return Ok(false);
        }
        // One that goes on later has its lock no more.
        let _ = process.kill();
        child::end(process, Reach::Child, None, Duration::ZERO);
        self.guard = Guard::start(self.number, guarding)?;
        self.send_program();
        Ok(true)
    }

    /// Undoes the changes that the journal lists; what could not be undone before, once more.
    /// Whether there was anything to do.
    pub(super) fn undo_now(&mut self, machine: &Machine<'_>) -> bool {
        let number = self.number;
        let is_closed = || Journal::open_number(machine, number).is_ok_and(|of| of.is_closed());
        if self.undone.is_some() && is_closed() {
            return false;
        }
        let undone = within(|| {
            let mut journal = Journal::open_number(machine, number)?;
            making::refuse_older(machine, &journal)?;
            making::take_back(machine, &mut journal, &mut SilentProgress)
        });
        self.undone = Some(match (self.undone.take(), undone) {
            (Some(Ok(mut before)), Ok(undone)) => {
                before.changes.retain(|it| it.outcome != TakenBackOutcome::Failed);
                before.changes.extend(undone.changes);
                Ok(before)
            }
            (_, undone) => undone,
        });
        true
    }

    /// The same, where it was not done before.
    pub(super) fn undo_once(&mut self, machine: &Machine<'_>) -> bool {
        self.undone.is_none() && self.undo_now(machine)
    }

    /// The same at the end, and what became of it.
    ///
    /// # Errors
    /// The journal cannot be read or locked: the guard outlives this process and goes on trying.
    pub(super) fn undo(mut self, machine: &Machine<'_>) -> anyhow::Result<JournalUndone> {
        self.undo_now(machine);
        // The guard looks at the journal, and ends where nothing is left.
        drop(self.guard.stdin.take());
        if Journal::open_number(machine, self.number).is_ok_and(|of| of.is_closed()) {
            child::end(&mut self.guard.process, Reach::Child, None, GUARD_MAX);
        }
        self.undone.take().context("nothing was undone")?
    }
}

/// Undoes what a run left behind that was killed together with its guard. Returns the numbers of
/// such journals.
pub(super) fn recover(machine: &Machine<'_>) -> anyhow::Result<Vec<u32>> {
    making::sweep_marks(machine)?;
    let root = machine.root();
    let is_left =
        |number: u32| staging::is_of_program(root, number) && !staging::is_guarded(root, number);
    let mut recovered = Vec::new();
    for summary in Journal::list(machine)?.into_iter().rev() {
        if summary.closed || summary.problem.is_some() || !is_left(summary.number) {
            continue;
        }
        let mut journal = Journal::open_number(machine, summary.number)?;
        making::refuse_older(machine, &journal)?;
        making::take_back(machine, &mut journal, &mut SilentProgress)?;
        recovered.push(summary.number);
    }
    Ok(recovered)
}

/// Refuses a second run that counts on the machine being set: whichever ends first would put back
/// what the other needs.
///
/// # Errors
/// The journal of the other run.
pub(super) fn refuse_second(machine: &Machine<'_>) -> anyhow::Result<()> {
    for summary in Journal::list(machine)? {
        let number = summary.number;
        if summary.closed || !staging::is_of_program(machine.root(), number) {
            continue;
        }
        anyhow::bail!(
            "another run has set the machine, and puts that back at its end (journal {number}, \
             {}). Wait for that, or start this one with --tune none --place affinity. Nothing was \
             changed or started",
            summary.what
        );
    }
    Ok(())
}

/// Tries again while another rtproof has the journals.
fn within<T>(mut work: impl FnMut() -> anyhow::Result<T>) -> anyhow::Result<T> {
    let end = Instant::now() + LOCKED_MAX;
    loop {
        match work() {
            Err(error) if is_locked(&error) && Instant::now() < end => thread::sleep(AGAIN),
            done => return done,
        }
    }
}

fn is_locked(error: &anyhow::Error) -> bool {
    let of_journal = |error: &(dyn std::error::Error + 'static)| {
        matches!(error.downcast_ref(), Some(tune::JournalError::Locked { .. }))
    };
    error.chain().any(of_journal)
}
