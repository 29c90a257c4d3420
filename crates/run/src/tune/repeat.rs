//! `rtproof tune apply --from FILE` and `undo --from FILE`: what `rtproof.service` does at each
//! boot. A failure does not stop the other changes; the exit code reports it.

use std::{io::Write, path::Path};

use anyhow::Context as _;

use rtproof_host::tune::{self, ApplyOptions, ApplySummary, Item, Journal, Machine};
use rtproof_results::{
    Ended,
    tune::{JournalUndone, Made},
};

use super::config::{AbsentTarget, Config};
use super::making;

/// What is to be done at this boot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreparedRepeat {
    /// Changes, in the order of the file.
    pub items: Vec<Item>,
    /// Targets found under another name than in the file.
    pub notes: Vec<String>,
    /// What the file names and this boot has not.
    pub absent: Vec<AbsentTarget>,
}

/// Result of repeating the changes of a configuration file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepeatOutcome {
    /// How many were made, and what was not.
    pub applied: ApplySummary,
    /// What became of each.
    pub changes: Vec<Made>,
    /// Targets found under another name than in the file.
    pub notes: Vec<String>,
    /// What was not there.
    pub absent: Vec<AbsentTarget>,
    /// Its journal; `None`: nothing was to be done.
    pub journal: Option<String>,
}

/// Title of the journals of a file.
pub fn title(path: &Path) -> String {
    format!("tune apply --from {}", path.display())
}

/// Looks up what the file names. Changes nothing.
pub fn prepare(machine: &Machine<'_>, config: &Config) -> PreparedRepeat {
    let resolved = config.resolve(machine.root());
    let (mut items, mut notes) = (Vec::new(), Vec::new());
    let mut absent = resolved.absent;
    for found in resolved.found {
        let target = found.change.target();
        if let Some(note) = found.note {
            notes.push(format!("line {}: {target}: {note}", found.line));
        }
        match machine.named(found.change) {
            Ok(change) => items.push(Item { change, checks: found.checks }),
            // A task that has ended since it was listed.
            Err(trouble) => {
                absent.push(AbsentTarget { line: found.line, target, why: trouble.to_string() });
            }
        }
    }
    PreparedRepeat { items, notes, absent }
}

/// Sets what the file says, under a journal of its own. Journals that earlier boots left of it are
/// closed: what they changed went with the boot.
///
/// # Errors
/// A place of the journal that cannot be written; another rtproof at work.
pub fn apply(machine: &Machine<'_>, path: &Path, config: &Config) -> anyhow::Result<RepeatOutcome> {
    for summary in own_journals(machine, path)?.into_iter().filter(|summary| summary.earlier_boot) {
        let mut journal = Journal::open_number(machine, summary.number)?;
        tune::undo(machine, &mut journal, &mut |_| {})
            .with_context(|| format!("{}: left by an earlier boot", summary.path))?;
        // One for each boot would fill the folder.
        journal.discard(machine)?;
    }
    let PreparedRepeat { items, notes, absent } = prepare(machine, config);
    if items.is_empty() {
        let (applied, changes) = (ApplySummary::default(), Vec::new());
        return Ok(RepeatOutcome { applied, changes, notes, absent, journal: None });
    }
    let mut journal = Journal::begin(machine, title(path), &items)?;
    let options = ApplyOptions { keep_going: true };
    let applied = tune::apply(machine, &mut journal, &items, options, &mut |_| {})?;
    let planned = items.into_iter().map(|item| Made::of(item.change, item.checks, None)).collect();
    let changes = making::outcomes(planned, journal.entries(), Some(&applied));
    let journal = Some(journal.path().to_owned());
    Ok(RepeatOutcome { applied, changes, notes, absent, journal })
}

/// Undoes what was set from the file, the newest journal first.
///
/// # Errors
/// A journal that cannot be read; another rtproof at work.
pub fn undo(
    machine: &Machine<'_>,
    path: &Path,
    progress: &mut dyn making::ChangeProgress,
) -> anyhow::Result<Vec<JournalUndone>> {
    let mut undone = Vec::new();
    for summary in own_journals(machine, path)?.into_iter().rev() {
        let mut journal = Journal::open_number(machine, summary.number)?;
        making::refuse_older(machine, &journal)?;
        undone.push(making::take_back(machine, &mut journal, progress)?);
    }
    Ok(undone)
}

/// Open journals of a file, oldest first.
fn own_journals(machine: &Machine<'_>, path: &Path) -> anyhow::Result<Vec<tune::JournalSummary>> {
    let mut all = Journal::list(machine)?;
    let title = title(path);
    all.retain(|summary| !summary.closed && summary.problem.is_none() && summary.what == title);
    Ok(all)
}

impl PreparedRepeat {
    /// What would be set, and what is not there.
    pub fn write(&self, to: &mut dyn Write, path: &Path) -> std::io::Result<()> {
        for AbsentTarget { line, target, why } in &self.absent {
            writeln!(to, "{}:{line}: {target}: {why}", path.display())?;
        }
        for note in &self.notes {
            writeln!(to, "{}: {note}", path.display())?;
        }
        for Item { change, .. } in &self.items {
            writeln!(to, "{}: {}", change.target(), change.after())?;
        }
        Ok(())
    }
}

impl RepeatOutcome {
    /// Done: all is set; the machine failed: something could not be set; cannot tell: something was
    /// not there, or cannot be set by anyone.
    pub fn ended(&self) -> Ended {
        match () {
            () if !self.applied.failed.is_empty() => Ended::MachineFailed,
            () if !self.absent.is_empty() || !self.applied.left_out.is_empty() => Ended::CannotTell,
            () => Ended::Done,
        }
    }

    /// For the log of the boot: what is not as the file says, and a line of counts.
    pub fn write(&self, to: &mut dyn Write, path: &Path) -> std::io::Result<()> {
        let path = path.display();
        for AbsentTarget { line, target, why } in &self.absent {
            writeln!(to, "{path}:{line}: {target}: {why}")?;
        }
        for note in &self.notes {
            writeln!(to, "{path}: {note}")?;
        }
        for (change, why) in &self.applied.failed {
            writeln!(to, "not set: {}: {why}", change.target())?;
        }
        for (change, why) in &self.applied.left_out {
            writeln!(to, "left out: {}: {why}", change.target())?;
        }
        for (change, why) in &self.applied.pending {
            writeln!(to, "not in force yet: {}: {why}", change.target())?;
        }
        let ApplySummary { done, was_so, failed, .. } = &self.applied;
        let (failed, absent) = (failed.len(), self.absent.len());
        write!(to, "{done} set, {was_so} were so, {failed} failed, {absent} not there")?;
        match &self.journal {
            Some(journal) => writeln!(to, "; journal {journal}"),
            None => writeln!(to),
        }
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests make the files that they read")]
mod tests {
    use std::fs;

    use rtproof_host::Root;
    use rtproof_measure::task::LiveTasks;

    use super::*;

    const FILE: &str = "version = 1\n\n\
        [[change]]\nkind = \"value\"\npath = \"/proc/sys/vm/stat_interval\"\nvalue = \"120\"\n\n\
        [[change]]\nkind = \"value\"\npath = \"/proc/sys/vm/swappiness\"\nvalue = \"10\"\n\n\
        [[change]]\nkind = \"value\"\npath = \"/sys/class/net/eth9/threaded\"\nvalue = \"1\"\n";

    fn tree() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (path, content) in [
            ("proc/sys/vm/stat_interval", "1\n"),
            ("proc/sys/vm/swappiness", "10\n"),
            ("proc/sys/kernel/random/boot_id", "aaaa\n"),
            ("etc/machine-id", "0123456789abcdef0123456789abcdef\n"),
            ("var/lib/x", ""),
        ] {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        dir
    }

    #[test]
    fn each_boot_sets_what_is_there_and_a_stop_takes_it_back() {
        let dir = tree();
        let root = Root::dir(dir.path()).unwrap();
        let machine = Machine::new(&root, &LiveTasks).unwrap();
        let path = Path::new("/etc/rtproof.toml");
        let config = Config::parse(FILE, "/etc/rtproof.toml").unwrap();
        let interval = || fs::read_to_string(dir.path().join("proc/sys/vm/stat_interval")).unwrap();
        let open = || own_journals(&machine, path).unwrap().len();

        let repeated = apply(&machine, path, &config).unwrap();
        assert_eq!(repeated.ended(), Ended::CannotTell);
        assert_eq!(interval().trim(), "120");
        let mut said = Vec::new();
        repeated.write(&mut said, path).unwrap();
        let said = String::from_utf8(said).unwrap();
        let lines: Vec<&str> = said.lines().collect();
        let absent = "/etc/rtproof.toml:14: /sys/class/net/eth9/threaded: not there";
        assert_eq!(lines[0], absent);
        let counts = "1 set, 1 were so, 0 failed, 1 not there; journal ";
        assert!(lines[1].starts_with(counts), "{said}");

        // The machine is started anew: the values are the kernel's again.
        fs::write(dir.path().join("proc/sys/vm/stat_interval"), "1\n").unwrap();
        fs::write(dir.path().join("proc/sys/kernel/random/boot_id"), "bbbb\n").unwrap();
        apply(&machine, path, &config).unwrap();
        assert_eq!(interval().trim(), "120");
        assert_eq!(open(), 1, "the journal of the boot before is closed");

        let undone = undo(&machine, path, &mut making::SilentProgress).unwrap();
        assert_eq!(making::undo_ended(&undone), Ended::Done, "{undone:?}");
        assert_eq!(interval(), "1\n");
        assert_eq!(open(), 0);
        assert_eq!(undo(&machine, path, &mut making::SilentProgress).unwrap(), []);
    }

    #[test]
    fn what_somebody_else_has_changed_is_left_to_them() {
        let dir = tree();
        let root = Root::dir(dir.path()).unwrap();
        let machine = Machine::new(&root, &LiveTasks).unwrap();
        let path = Path::new("/etc/rtproof.toml");
        let config = Config::parse(FILE, "/etc/rtproof.toml").unwrap();
        apply(&machine, path, &config).unwrap();
        fs::write(dir.path().join("proc/sys/vm/stat_interval"), "7\n").unwrap();
        assert_eq!(
            making::undo_ended(&undo(&machine, path, &mut making::SilentProgress).unwrap()),
            Ended::MachineFailed
        );
        let there = fs::read_to_string(dir.path().join("proc/sys/vm/stat_interval")).unwrap();
        assert_eq!(there, "7\n");
    }

    #[test]
    fn a_file_without_changes_leaves_no_journal() {
        let dir = tree();
        let root = Root::dir(dir.path()).unwrap();
        let machine = Machine::new(&root, &LiveTasks).unwrap();
        let done = apply(&machine, Path::new("/x"), &Config::default()).unwrap();
        assert_eq!((done.ended(), done.journal), (Ended::Done, None));
        assert!(!dir.path().join("var/lib/rtproof").exists());
    }
}
