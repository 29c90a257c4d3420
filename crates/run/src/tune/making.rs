//! Changes while they are made and undone, and what the journal says of each at the end.

use std::{
    fs,
    io::{BufRead, BufReader},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use anyhow::Context;

use rtproof_host::{
    Root,
    child::{self, Reach},
    door::Invalid,
    trusted,
    tune::{
        self, ApplyError, ApplyOptions, ApplySummary, Change, Gone, Item, Journal, JournalEntry,
        JournalSummary, Machine, Outcome, Stage, UndoError, UndoneChange, may_change_groups,
        staging,
    },
};
use rtproof_judge::units;
use rtproof_results::{
    Ended,
    tune::{JournalUndone, Made, MadeOutcome, TakenBack, TakenBackOutcome},
};

/// Changes while they are made or undone.
pub trait ChangeProgress {
    /// So many changes follow.
    fn begin(&mut self, changes: usize);

    fn change(&mut self, change: &Change);

    /// All are made or undone.
    fn end(&mut self);
}

/// Progress of changes that shows nothing.
#[derive(Clone, Copy, Debug)]
pub struct SilentProgress;

impl ChangeProgress for SilentProgress {
    fn begin(&mut self, _: usize) {}

    fn change(&mut self, _: &Change) {}

    fn end(&mut self) {}
}

/// Applies items and reports progress.
///
/// # Errors
/// Those of `tune::apply`.
pub fn apply(
    machine: &Machine<'_>,
    journal: &mut Journal,
    items: &[Item],
    options: ApplyOptions,
    progress: &mut dyn ChangeProgress,
) -> Result<ApplySummary, ApplyError> {
    progress.begin(items.len());
    let made = tune::apply(machine, journal, items, options, &mut |step| match step {
        tune::ApplyEvent::WasSo { change, .. } | tune::ApplyEvent::Begin { change, .. } => {
            progress.change(change);
        }
        tune::ApplyEvent::Done { .. }
        | tune::ApplyEvent::Failed { .. }
        | tune::ApplyEvent::Undone(_) => {}
    });
    progress.end();
    made
}

/// `3 changes`.
pub fn count(changes: usize) -> String {
    units::count(changes, "change")
}

/// Number of a journal of this machine: that of its file. A copy somewhere else has none, whatever
/// it is called: what waits for the confirmation of another journal is not its to end.
pub fn number(journal: &Journal) -> u32 {
    let name = journal.path().strip_prefix(tune::FOLDER).and_then(|rest| rest.strip_prefix('/'));
    name.and_then(|name| name.split('.').next()?.parse().ok()).unwrap_or(0)
}

/// What the journal says of each change that was planned, and of those that failed which the engine
/// tolerated.
pub fn outcomes(
    planned: Vec<Made>,
    entries: &[JournalEntry],
    applied: Option<&ApplySummary>,
) -> Vec<Made> {
    let left_out = applied.map_or(&[][..], |applied| &applied.left_out);
    let mut all = planned;
    for (made, entry) in all.iter_mut().zip(entries) {
        if let Some(found) = &entry.before {
            made.old = entry.item.change.before(found);
        }
        made.why.clone_from(&entry.note);
        made.outcome = match (&entry.stage, &entry.undone) {
            (Stage::WasSo, _) => MadeOutcome::AsWanted,
            (Stage::Failed(why) | Stage::Refused(why), _) => {
                made.why = Some(why.clone());
                match left_out.iter().any(|(change, _)| *change == entry.item.change) {
                    true => MadeOutcome::LeftOut,
                    false => MadeOutcome::Failed,
                }
            }
            (Stage::Begun | Stage::Done, None) => MadeOutcome::Applied,
            (Stage::Begun | Stage::Done, Some(outcome)) => {
                made.why = why(outcome, &entry.item.change);
                MadeOutcome::RolledBack
            }
        };
    }
    all
}

/// How an apply ended that was not rolled back. What was left out is reported, and is no failure.
pub fn ended(applied: &ApplySummary) -> Ended {
    if applied.failed.is_empty() { Ended::Done } else { Ended::MachineFailed }
}

fn why(outcome: &Outcome, change: &Change) -> Option<String> {
    match outcome {
        Outcome::Failed { why } => Some(why.clone()),
        Outcome::LeftAlone { found } => Some(format!("left alone: found {}", change.before(found))),
        Outcome::Restored | Outcome::WasBefore | Outcome::Gone { .. } => None,
    }
}

/// The outcome of undoing one change.
pub fn taken_back(entries: &[JournalEntry], undone: &UndoneChange) -> TakenBack {
    let change = undone.change.clone();
    let entry = entries.iter().find(|entry| entry.item.change == change);
    let ours = change.after();
    let old = entry.and_then(|entry| entry.before.as_ref());
    let old = old.map_or_else(|| "?".into(), |state| change.before(state));
    let (outcome, now, why) = match &undone.outcome {
        Outcome::Restored => (TakenBackOutcome::Restored, old, None),
        Outcome::WasBefore => (TakenBackOutcome::WasBefore, old, None),
        Outcome::Gone { why } => {
            (TakenBackOutcome::Gone, String::new(), Some(gone_because(*why).to_owned()))
        }
        Outcome::LeftAlone { found } => (TakenBackOutcome::LeftAlone, change.before(found), None),
        Outcome::Failed { why } => (TakenBackOutcome::Failed, String::new(), Some(why.clone())),
    };
    TakenBack { change, ours, now, outcome, why }
}

/// Refuses to take a journal back before a newer one that has changed the same: it would find
/// another value and leave it, and the newer one would then put this one's back for good.
///
/// # Errors
/// The newer journal, and what both have changed; the journals cannot be listed.
pub fn refuse_older(machine: &Machine<'_>, journal: &Journal) -> anyhow::Result<()> {
    let number = number(journal);
    if number == 0 || journal.is_closed() {
        return Ok(());
    }
    let targets = |journal: &Journal| -> Vec<String> {
        let open = journal.entries().iter().filter(|entry| !entry.is_settled());
        open.map(|entry| entry.item.change.target()).collect()
    };
    let ours = targets(journal);
    for newer in Journal::list(machine)? {
        if newer.number <= number || newer.closed || newer.problem.is_some() {
            continue;
        }
        let theirs = targets(&Journal::open_number(machine, newer.number)?);
        if let Some(target) = ours.iter().find(|target| theirs.contains(target)) {
            let newer = newer.number;
            anyhow::bail!(
                "journal {newer} has changed {target} after journal {number}; nothing was written; \
                 take the newer one back first: rtproof tune undo --journal {newer}, or --all"
            );
        }
    }
    Ok(())
}

/// Takes a journal back: everything that is still as it was applied, newest first.
///
/// # Errors
/// Nothing could be begun, or the journal not be written to its end.
pub fn take_back(
    machine: &Machine<'_>,
    journal: &mut Journal,
    progress: &mut dyn ChangeProgress,
) -> anyhow::Result<JournalUndone> {
    progress.begin(journal.entries().len());
    let undone = tune::undo(machine, journal, &mut |it| progress.change(&it.change));
    progress.end();
    let (undone, unrecorded) = match undone {
        Err(UndoError::Unrecorded { undone, source, .. }) => (undone, Some(source.to_string())),
        undone => (undone?, None),
    };
    let entries = journal.entries();
    let number = number(journal);
    let mut changes: Vec<TakenBack> = undone.iter().map(|it| taken_back(entries, it)).collect();
    changes.extend(journal.planned_only(machine).into_iter().map(not_in_journal));
    if journal.is_closed() && number > 0 {
        staging::clear(machine, number)?;
        dismiss(machine.root(), number);
    }
    Ok(JournalUndone {
        journal: number,
        path: journal.path().to_owned(),
        title: journal.header().what.clone(),
        changes,
        unrecorded,
    })
}

/// Removes what marks a closed journal as applied or as that of a program: power that fails, or a
/// kill of run and guard, between two steps of an undo leaves the marks.
///
/// # Errors
/// The journals cannot be listed, or a mark cannot be removed.
pub fn sweep_marks(machine: &Machine<'_>) -> anyhow::Result<()> {
    let root = machine.root();
    for JournalSummary { number, .. } in Journal::list(machine)?.into_iter().filter(|it| it.closed)
    {
        Journal::open_number(machine, number)?.unmark(machine)?;
        if staging::is_of_program(root, number) && !staging::is_guarded(root, number) {
            staging::clear(machine, number)
                .with_context(|| format!("the mark of journal {number}"))?;
        }
    }
    Ok(())
}

/// A change that is not in the journal.
fn not_in_journal(change: Change) -> TakenBack {
    let (ours, why) = (change.after(), Some(tune::UNNOTED.to_owned()));
    TakenBack { change, now: ours.clone(), ours, outcome: TakenBackOutcome::Unnoted, why }
}

/// How an undo ended: 1: something could not be put back; 2: something else has changed
/// something since, and it was left alone.
pub fn undo_ended(undone: &[JournalUndone]) -> Ended {
    let any = |outcome| {
        let all = undone.iter().flat_map(|journal| &journal.changes);
        all.into_iter().any(|it| it.outcome == outcome)
    };
    match () {
        () if any(TakenBackOutcome::Failed) => Ended::ToolFailed,
        () if any(TakenBackOutcome::LeftAlone) || any(TakenBackOutcome::Unnoted) => {
            Ended::MachineFailed
        }
        () => Ended::Done,
    }
}

/// What an undo left, as a phrase: how it ended.
pub fn undo_phrase(undone: &[TakenBack]) -> String {
    let is_left = |it: &&TakenBack| {
        use rtproof_results::tune::TakenBackOutcome::{Failed, LeftAlone, Unnoted};
        matches!(it.outcome, Failed | LeftAlone | Unnoted)
    };
    let left: Vec<String> = undone.iter().filter(is_left).map(|it| it.change.target()).collect();
    match left.is_empty() {
        true => "everything was taken back".into(),
        false => {
            format!("taken back, except for {}; rtproof tune status tells more", left.join(", "))
        }
    }
}

const fn gone_because(why: Gone) -> &'static str {
    match why {
        Gone::Reboot => "with the reboot",
        Gone::Ended => "what it was about has ended",
        Gone::Removed => "the kernel has no such file any more",
    }
}

// Where this program is, and whether a unit may name it: root starts it at each boot, so that it
// has to be there then, and to be root's alone.

/// Folders of programs that stay. The last two are where /usr/local and /opt lead on systems whose
/// /usr is an image.
const LASTING: [&str; 5] = ["/usr", "/opt", "/bin", "/var/usrlocal", "/var/opt"];

/// Where the program is expected on a machine that is not this one.
pub const USUAL: &str = "/usr/local/bin/rtproof";

/// Path of the program for a unit of a machine: of this one, where it is.
///
/// # Errors
/// It is not in a place that lasts, or others could replace it; with where to copy it.
pub fn program_path(root: &Root) -> anyhow::Result<String> {
    if !root.is_live() {
        return Ok(USUAL.into());
    }
    let exe = running()?;
    lasting(&exe).map_err(|why| anyhow::anyhow!(why))
}

/// Path of the running program, which has to be there to be started again.
///
/// # Errors
/// It was moved, replaced or removed since it was started.
pub fn running() -> anyhow::Result<PathBuf> {
    without_deleted(std::env::current_exe().context("the program's own path")?)
}

/// The kernel adds ` (deleted)` to a path that is no longer the program's.
fn without_deleted(exe: PathBuf) -> anyhow::Result<PathBuf> {
    let gone = exe.to_str().and_then(|path| path.strip_suffix(" (deleted)"));
    if let (Some(was), false) = (gone, exe.exists()) {
        anyhow::bail!(
            "{was}: the program that runs is no longer there: it was moved, replaced or removed \
             since it was started; start rtproof again"
        );
    }
    Ok(exe)
}

/// Refuses changes that would have a unit start this program where it cannot, and those of groups
/// in a folder.
///
/// # Errors
/// As [`may_change_groups`].
pub fn allows<'a>(
    root: &Root,
    changes: impl IntoIterator<Item = &'a Change> + Clone,
) -> anyhow::Result<()> {
    may_change_groups(root, changes.clone())?;
    let starts_us = |change: &Change| match change {
        Change::File { path, content: Some(content), .. } => {
            path.starts_with(rtproof_judge::plan::units::FOLDER)
                && content.text().contains("/rtproof tune ")
        }
        _ => false,
    };
    match changes.into_iter().any(starts_us) {
        true => program_path(root).map(drop),
        false => Ok(()),
    }
}

/// The path, if a unit may name it.
///
/// # Errors
/// What is against it, and where to copy the program.
pub fn lasting(exe: &Path) -> Result<String, Invalid> {
    let refuse = |why: String| {
        let exe = exe.display();
        Err(format!(
            "{exe}: a unit cannot start this program at boot: {why}; copy it with \
             `install -m 755 {exe} /usr/local/bin/rtproof` and run that one"
        )
        .into())
    };
    if !LASTING.iter().any(|top| exe.starts_with(top)) {
        return refuse(format!("it is not below {}", LASTING[..2].join(" or ")));
    }
    let Some(path) = exe.to_str() else {
        return refuse("its path is not UTF-8".into());
    };
    if let Err(why) = of_root(exe) {
        return refuse(why);
    }
    match PathBuf::from(path).is_file() {
        true => Ok(path.to_owned()),
        false => refuse("it is no file".into()),
    }
}

/// Whether a path and all folders above it are root's.
///
/// # Errors
/// Which is not, and why.
fn of_root(path: &Path) -> Result<(), String> {
    for part in path.ancestors() {
        let metadata =
            fs::metadata(part).map_err(|error| format!("{}: {error}", part.display()))?;
        if metadata.uid() != 0 {
            return Err(format!("{} does not belong to root", part.display()));
        }
        // A group of administrators may: /usr/local of Debian belongs to the group staff.
        if metadata.mode() & 0o002 != 0 {
            return Err(format!("anybody may write {}", part.display()));
        }
    }
    Ok(())
}

// The dead man's switch of `tune apply --confirm`: another process undoes the changes when nobody
// confirms them in time, also when this process, its terminal or its session is gone by then.
//
// With systemd that is a transient timer, which outlives the session. Elsewhere it is this program
// once more, in a session of its own. Either one is armed before the first write, and asks the
// mark beside the journal, under the lock, whether it is still wanted.

/// What the rollback process prints once it waits.
pub const ARMED: &str = "armed";

/// Seconds that it has for that.
const ARMED_MAX: i64 = 5;

/// Whoever takes the changes back.
#[derive(Debug)]
pub enum RollbackTimer {
    /// A transient timer of systemd, by its name without ending.
    Timer(String),
    Process(Child),
}

impl RollbackTimer {
    pub fn text(&self) -> String {
        match self {
            Self::Timer(unit) => format!("{unit}.timer"),
            Self::Process(child) => format!("process {}", child.id()),
        }
    }
}

/// Arms the rollback of a journal.
///
/// # Errors
/// When none can be started: then nothing may be changed.
pub fn arm(
    root: &Root,
    folder: Option<&Path>,
    journal: u32,
    after: Duration,
) -> anyhow::Result<RollbackTimer> {
    // A timer of systemd is set whether its program is there or not.
    let program = running()?;
    // Root would start it later: until then no other user may have replaced it.
    let is_ours = of_root(&program).is_ok();
    let mut args = vec!["tune".to_owned(), "guard".into(), "--journal".into()];
    args.push(journal.to_string());
    if is_ours && has_systemd(root) {
        let unit = timer(journal);
        if start_timer(&unit, &program, &args, after) {
            return Ok(RollbackTimer::Timer(unit));
        }
    }
    // The file that runs, whatever is at its path.
    let mut command = Command::new("/proc/self/exe");
    command.args(args).arg("--after-ms").arg(after.as_millis().to_string());
    if let Some(folder) = folder {
        command.arg("--root").arg(folder);
    }
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let child = child.context("the guardian of --confirm cannot be started")?;
    let child = armed(child).context("the guardian of --confirm")?;
    Ok(RollbackTimer::Process(child))
}

/// Starts the process that undoes a journal when this process and the program that it started are
/// gone. Its stdin says so: it is a pipe from this process, which first names the program.
///
/// # Errors
/// It cannot be started: then nothing may be changed.
pub fn arm_for_program(
    folder: Option<&Path>,
    journal: u32,
    latency_us: Option<u32>,
) -> anyhow::Result<Child> {
    // The file that runs, whatever is at its path.
    let mut command = Command::new("/proc/self/exe");
    command.args(["tune", "guard", "--program", "--journal"]).arg(journal.to_string());
    if let Some(us) = latency_us {
        command.arg("--dma-latency-us").arg(us.to_string());
    }
    if let Some(folder) = folder {
        command.arg("--root").arg(folder);
    }
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let child = child.context("the process that undoes everything cannot be started")?;
    armed(child).context("the process that undoes everything")
}

/// Waits until a process says that it is armed.
fn armed(mut child: Child) -> anyhow::Result<Child> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let (mut said, mut is_late) = (String::new(), false);
    if let Some(stdout) = child.stdout.take() {
        // It opens nothing before that takes time; one that is stopped says nothing.
        let mut fds = [PollFd::new(&stdout, PollFlags::IN)];
        is_late = poll(&mut fds, Some(&Timespec { tv_sec: ARMED_MAX, tv_nsec: 0 }))? == 0;
        if !is_late {
            BufReader::new(stdout).read_line(&mut said)?;
        }
    }
    if said.trim() == ARMED {
        return Ok(child);
    }
    let _ = child.kill();
    child::end(&mut child, Reach::Child, None, Duration::ZERO);
    match is_late {
        true => anyhow::bail!("did not start within {ARMED_MAX} s"),
        false => anyhow::bail!("did not start"),
    }
}

/// Whether the rollback of a journal waits, or works now. A process that is stopped does neither.
pub fn is_armed(root: &Root, journal: u32) -> bool {
    let unit = timer(journal);
    staging::is_guarded(root, journal) && !staging::is_guard_stopped(root, journal)
        || has_systemd(root) && is_active(&format!("{unit}.timer"))
}

fn has_systemd(root: &Root) -> bool {
    root.is_live() && root.list_dir("/run/systemd/system").value().is_some()
}

fn is_active(unit: &str) -> bool {
    let Ok(mut ask) = trusted::command("systemctl") else { return false };
    ask.args(["is-active", "--quiet", unit]).stdin(Stdio::null()).stdout(Stdio::null());
    ask.stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// Name of the timer for a journal.
fn timer(journal: u32) -> String {
    format!("rtproof-guard-{journal:04}")
}

fn start_timer(unit: &str, program: &Path, args: &[String], after: Duration) -> bool {
    let Ok(mut run) = trusted::command("systemd-run") else { return false };
    run.args(["--quiet", "--collect", "--timer-property=AccuracySec=100ms"])
        .arg(format!("--unit={unit}"))
        .arg(format!("--on-active={}ms", after.as_millis()))
        .arg("--description=Takes back what rtproof tune apply --confirm changed")
        .arg(program)
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    run.status().is_ok_and(|status| status.success()) && is_active(&format!("{unit}.timer"))
}

/// Stops the timer of a journal, where there is one. That it runs on does no harm: it finds no
/// mark.
pub fn dismiss(root: &Root, journal: u32) {
    if has_systemd(root) {
        let unit = format!("{}.timer", timer(journal));
        let quiet = || Stdio::null();
        let Ok(mut stop) = trusted::command("systemctl") else { return };
        stop.args(["stop", &unit]).stdin(quiet()).stdout(quiet()).stderr(quiet());
        // A timer that ran out is gone by itself.
        let _ = stop.status();
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests make the files that they read")]
mod tests {
    use std::fs;

    use rtproof_host::{
        CpuList, Root,
        tune::{ApplyOptions, Compare, IrqName, Item, Machine, apply},
    };
    use rtproof_measure::LiveTasks;

    use super::*;

    fn value(path: &str) -> Change {
        let (path, value) = (path.into(), "2".into());
        Change::Value { path, value, compare: Compare::Text, couples: Vec::new() }
    }

    #[test]
    fn what_is_left_out_is_no_failure() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("proc/sys")).unwrap();
        fs::create_dir_all(dir.path().join("var/lib")).unwrap();
        fs::write(dir.path().join("proc/sys/x"), "1\n").unwrap();
        let root = Root::dir(dir.path()).unwrap();
        let machine = Machine::new(&root, &LiveTasks).unwrap();
        let (hwirq, chip) = (String::new(), String::new());
        let irq = IrqName { number: 9, actions: "eth9".into(), hwirq, chip };
        let gone = Change::Irq { irq, cpus: CpuList::new([0]) };
        let run = |changes: &[Change]| {
            let item = |change: &Change| Item { change: change.clone(), checks: Vec::new() };
            let items: Vec<Item> = changes.iter().map(item).collect();
            let planned =
                changes.iter().map(|change| Made::of(change.clone(), Vec::new(), None)).collect();
            let mut journal = Journal::begin(&machine, String::new(), &[]).unwrap();
            let options = ApplyOptions { keep_going: true };
            let applied = apply(&machine, &mut journal, &items, options, &mut |_| {}).unwrap();
            let made = outcomes(planned, journal.entries(), Some(&applied));
            (made.iter().map(|it| it.outcome).collect::<Vec<_>>(), ended(&applied))
        };
        assert_eq!(
            run(&[gone.clone(), value("/proc/sys/x")]),
            (vec![MadeOutcome::LeftOut, MadeOutcome::Applied], Ended::Done)
        );
        // A thread that only has such a name is no kernel thread.
        assert_eq!(
            run(&[gone, value("/proc/sys/x: gone")]),
            (vec![MadeOutcome::LeftOut, MadeOutcome::Failed], Ended::MachineFailed)
        );
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests make the files that they read")]
mod place_tests {
    use super::*;

    #[test]
    fn a_program_of_the_system_may_be_named() {
        assert_eq!(lasting(Path::new("/usr/bin/env")).as_deref(), Ok("/usr/bin/env"));
    }

    #[test]
    fn a_deleted_program_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let exe = dir.path().join("rtproof (deleted)");
        let why = without_deleted(exe.clone()).unwrap_err().to_string();
        assert!(why.contains("rtproof: the program that runs is no longer there"), "{why}");
        // A program may have this name.
        fs::copy("/usr/bin/env", &exe).unwrap();
        assert_eq!(without_deleted(exe.clone()).unwrap(), exe);
    }

    #[test]
    fn a_program_that_may_be_gone_is_refused_with_what_to_do() {
        let dir = tempfile::tempdir().unwrap();
        let exe = dir.path().join("rtproof");
        fs::copy("/usr/bin/env", &exe).unwrap();
        for exe in [exe.as_path(), Path::new("/usr/bin/no-such"), Path::new("/usr/bin")] {
            let why = lasting(exe).unwrap_err();
            assert!(why.contains("/usr/local/bin/rtproof"), "{why}");
        }
    }
}
