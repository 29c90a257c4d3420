//! A boot entry for the next boot alone, under a journal whose title tells whose it is. Experiments
//! and bisections boot a machine with one after the other.

use rtproof_host::{
    Root,
    boot::{Standing, Word},
    tune::{self, Change, Item, Journal, Machine, Options, Summary},
};

use super::kernel::{self, InitrdChoice, Source};

/// What boots once: another kernel, further parameters, or both.
#[derive(Clone, Copy, Debug)]
pub struct Once<'a> {
    /// Title of the journal.
    pub title: &'a str,
    /// Another kernel than the running one, with its initial RAM disk.
    pub kernel: Option<(&'a Source, &'a InitrdChoice)>,
    pub words: &'a [Word],
}

impl Once<'_> {
    /// Makes the entry and chooses it for the next boot. Returns the argument of reboot(2).
    ///
    /// # Errors
    /// A boot loader that cannot boot an entry once, a kernel that it cannot have, a change that
    /// could not be made (all are undone then).
    pub fn arm(&self, machine: &Machine<'_>) -> anyhow::Result<Option<String>> {
        let root = machine.root();
        let mut loader = match self.kernel {
            Some((source, _)) => kernel::loader(root, source)?,
            None => rtproof_host::boot::detect(root)?,
        };
        if let Some(why) = loader.no_entry.as_ref().or(loader.no_trial.as_ref()) {
            anyhow::bail!("{why}; nothing was changed");
        }
        anyhow::ensure!(
            loader.standing(root)? != Standing::Default,
            "the entry of rtproof is the default of {}, so that another one would have no way \
             back; nothing was changed; take it back first: rtproof tune undo --all",
            loader.name
        );
        let prepared = match self.kernel {
            Some((source, initrd)) => Some(kernel::prepare(machine, &mut loader, source, initrd)?),
            None => None,
        };
        let changes = loader.real_time(root, self.words)?;
        let item = |change: &Change| Item { change: change.clone(), checks: Vec::new() };
        let kernel = prepared.iter().flat_map(|prepared| &prepared.changes);
        let items: Vec<Item> =
            kernel.chain(&changes.entry).chain(&changes.trial).map(item).collect();
        let mut journal = Journal::begin(machine, self.title.to_owned(), &items)?;
        tune::apply(machine, &mut journal, &items, Options { keep_going: false }, &mut |_| {})?;
        Ok(changes.reboot)
    }
}

/// Titles of what is in force, of those that begin so.
pub fn standing(machine: &Machine<'_>, beginning: &str) -> anyhow::Result<Vec<String>> {
    let all = Journal::list(machine)?.into_iter().filter(|it| is_open(it, beginning));
    Ok(all.map(|summary| summary.what).collect())
}

fn is_open(summary: &Summary, beginning: &str) -> bool {
    !summary.closed && summary.problem.is_none() && summary.what.starts_with(beginning)
}

/// Undoes what was made under titles that begin so.
///
/// # Errors
/// Something could not be undone: it stays in the journal.
pub fn undo(machine: &Machine<'_>, beginning: &str) -> anyhow::Result<()> {
    for summary in Journal::list(machine)?.into_iter().rev() {
        if !is_open(&summary, beginning) {
            continue;
        }
        let mut journal = Journal::open_number(machine, summary.number)?;
        tune::undo(machine, &mut journal, &mut |_| {})?;
        anyhow::ensure!(
            journal.is_closed(),
            "{}: not all of it could be undone; run rtproof tune undo",
            summary.path
        );
        journal.discard(machine)?;
    }
    Ok(())
}

/// Identity of the running boot.
///
/// # Errors
/// The kernel does not say.
pub fn boot_id(root: &Root) -> anyhow::Result<String> {
    let path = "/proc/sys/kernel/random/boot_id";
    let read = root.trimmed(path);
    match read.value() {
        Some(id) => Ok(id.clone()),
        None => anyhow::bail!("{path}: {}", read.why_unknown().unwrap_or_default()),
    }
}
