//! What the runner of a trial asks of whoever changes the machine.

use anyhow::Context;
use rtproof_host::tune::{
    ApplyError, Item, Journal, Machine, Options, Outcome, Undone, apply, undo,
};
use rtproof_measure::loads::Settings;

use super::setting::{Held, Setting};

/// Changes the machine and takes it back. Whatever is on is written in a journal first: a kill at
/// any moment is undone by `rtproof tune undo`.
pub trait Switch {
    /// Makes changes, in this order, each read back. Called only while nothing is on.
    ///
    /// # Errors
    /// When one cannot be made; those before it are undone.
    fn on(&mut self, items: &[Item]) -> anyhow::Result<()>;

    /// Undoes what is on, in reverse; nothing to do is no error.
    ///
    /// # Errors
    /// When something could not be undone: it stays in the journal.
    fn off(&mut self) -> anyhow::Result<()>;

    /// Makes these options of measuring be set, and no others.
    ///
    /// # Errors
    /// When one cannot be set.
    fn set(&mut self, settings: &[Setting]) -> anyhow::Result<()> {
        match settings.first() {
            None => Ok(()),
            Some(setting) => anyhow::bail!("{setting}: no option that can be switched here"),
        }
    }

    /// The measured threads run now, and these are their thread ids.
    fn threads(&mut self, tids: &[u32]) {
        let _ = tids;
    }

    /// Makes the changes that stay, as [`Switch::on`] does: the last call.
    ///
    /// # Errors
    /// When one cannot be made; those before it are undone.
    fn keep(&mut self, items: &[Item]) -> anyhow::Result<()>;
}

/// The switch of a machine: everything goes through the journal of `tune apply`. Journals of what
/// was only tried are removed once they are closed; that of what is kept stays, for `tune undo`.
pub struct Journaled<'a> {
    machine: &'a Machine<'a>,
    what: String,
    journal: Option<Journal>,
    held: Held<'a>,
}

impl<'a> Journaled<'a> {
    /// `what`: what the user asked for, the title of the journals.
    pub fn new(machine: &'a Machine<'a>, what: &str) -> Self {
        let held = Held::new(machine.root(), None);
        Self { machine, what: what.into(), journal: None, held }
    }

    /// The same with a place for loads.
    #[must_use]
    pub fn with_loads(mut self, loads_at: Settings) -> Self {
        self.held = Held::new(self.machine.root(), Some(loads_at));
        self
    }

    fn apply(&mut self, items: &[Item], what: String) -> anyhow::Result<Journal> {
        let mut journal = Journal::begin(self.machine, what, items)?;
        let options = Options { keep_going: false };
        match apply(self.machine, &mut journal, items, options, &mut |_| {}) {
            Ok(_) => Ok(journal),
            Err(error) => {
                let is_left = matches!(
                    &error,
                    ApplyError::Failed { undone, .. } | ApplyError::Journal { undone, .. }
                        if left(undone).is_some()
                );
                if is_left {
                    // The next `off` tries again and says what is left.
                    self.journal = Some(journal);
                } else {
                    journal.discard(self.machine)?;
                }
                Err(error.into())
            }
        }
    }
}

impl Switch for Journaled<'_> {
    fn on(&mut self, items: &[Item]) -> anyhow::Result<()> {
        let journal = self.apply(items, format!("{} (trying)", self.what))?;
        self.journal = Some(journal);
        Ok(())
    }

    fn off(&mut self) -> anyhow::Result<()> {
        let Some(journal) = &mut self.journal else { return Ok(()) };
        let path = journal.path().to_owned();
        let undone = undo(self.machine, journal, &mut |_| {})?;
        if let Some(left) = left(&undone) {
            anyhow::bail!("{path}: {left}");
        }
        let journal = self.journal.take();
        let discarded = journal.map(|journal| journal.discard(self.machine)).transpose();
        discarded.context("what was tried is undone, but its journal stays").map(drop)
    }

    fn set(&mut self, settings: &[Setting]) -> anyhow::Result<()> {
        self.held.set(settings)
    }

    fn threads(&mut self, tids: &[u32]) {
        self.held.threads(tids);
    }

    fn keep(&mut self, items: &[Item]) -> anyhow::Result<()> {
        self.apply(items, self.what.clone()).map(drop)
    }
}

/// What is not as it was before.
fn left(undone: &[Undone]) -> Option<String> {
    let of = |undone: &Undone| match &undone.outcome {
        Outcome::Failed { why } => Some(format!("{}: {why}", undone.change.target())),
        Outcome::LeftAlone { .. } => {
            Some(format!("{}: something else has changed it meanwhile", undone.change.target()))
        }
        Outcome::Restored | Outcome::WasBefore | Outcome::Gone { .. } => None,
    };
    let left: Vec<String> = undone.iter().filter_map(of).collect();
    (!left.is_empty()).then(|| left.join("; "))
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use rtproof_host::{
        Root,
        tune::{Change, Compare},
    };
    use rtproof_measure::LiveTasks;

    use super::*;

    fn value(path: &str) -> Item {
        let (path, value) = (path.into(), "1".into());
        let change = Change::Value { path, value, compare: Compare::Text, couples: Vec::new() };
        Item { change, checks: vec!["check".into()] }
    }

    #[expect(clippy::disallowed_methods, reason = "the test's own files")]
    fn read(folder: &Path, path: &str) -> String {
        fs::read_to_string(folder.join(path)).unwrap()
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the test's own files")]
    fn on_and_off_leave_nothing_and_what_is_kept_has_a_journal() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        fs::create_dir_all(folder.join("proc/sys/vm")).unwrap();
        fs::write(folder.join("proc/sys/vm/a"), "7\n").unwrap();
        fs::write(folder.join("proc/sys/vm/b"), "odd\n").unwrap();
        let root = Root::dir(folder).unwrap();
        let machine = Machine::new(&root, &LiveTasks).unwrap();
        let mut switch = Journaled::new(&machine, "tune apply --prove 60s");
        switch.off().unwrap();
        for _ in 0..3 {
            switch.on(&[value("/proc/sys/vm/a"), value("/proc/sys/vm/b")]).unwrap();
            let held = ["a", "b"].map(|file| read(folder, &format!("proc/sys/vm/{file}")));
            assert_eq!(held.map(|text| text.trim().to_owned()), ["1", "1"]);
            assert_eq!(Journal::list(&machine).unwrap().len(), 1, "a kill now is undone");
            switch.off().unwrap();
            assert_eq!(read(folder, "proc/sys/vm/a"), "7\n");
            assert_eq!(read(folder, "proc/sys/vm/b"), "odd\n");
            assert!(Journal::list(&machine).unwrap().is_empty());
        }
        let error = switch.on(&[value("/proc/sys/vm/a"), value("/proc/sys/vm/none")]);
        assert!(format!("{:#}", error.unwrap_err()).contains("/proc/sys/vm/none"));
        assert_eq!(read(folder, "proc/sys/vm/a"), "7\n");
        switch.off().unwrap();
        switch.keep(&[value("/proc/sys/vm/b")]).unwrap();
        drop(switch);
        let mut journal = Journal::open(&machine, None).unwrap();
        assert_eq!(journal.header().what, "tune apply --prove 60s");
        undo(&machine, &mut journal, &mut |_| {}).unwrap();
        assert_eq!(read(folder, "proc/sys/vm/b"), "odd\n");
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the test's own files")]
    fn what_somebody_else_changed_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        fs::create_dir_all(folder.join("proc/sys/vm")).unwrap();
        fs::write(folder.join("proc/sys/vm/a"), "7\n").unwrap();
        let root = Root::dir(folder).unwrap();
        let machine = Machine::new(&root, &LiveTasks).unwrap();
        let mut switch = Journaled::new(&machine, "x");
        switch.on(&[value("/proc/sys/vm/a")]).unwrap();
        fs::write(folder.join("proc/sys/vm/a"), "3\n").unwrap();
        let error = switch.off().unwrap_err().to_string();
        assert!(error.contains("/proc/sys/vm/a: something else"), "{error}");
        assert_eq!(read(folder, "proc/sys/vm/a"), "3\n", "theirs stays");
    }
}
