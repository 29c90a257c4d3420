//! Death on demand, for tests: after so many single writes the process is as if killed.

use std::{
    cell::{Cell, RefCell},
    fs, io,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    path::Path,
};

/// Counts single writes, and ends the run before one of them.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    steps: Cell<u32>,
    dies_at: Cell<Option<u32>>,
    /// From this line of the journal on the disk is full.
    full_at: Cell<Option<u32>>,
    lines: Cell<u32>,
    /// Whether a control group has its files with its folder, as the kernel's have.
    plays_groups: Cell<bool>,
    /// A value that the kernel does not take.
    refused: RefCell<Option<String>>,
}

/// The panic's payload: nothing in the engine catches it.
struct Killed;

impl Faults {
    /// Lets `n` single writes happen, and no more.
    pub(crate) fn dies_after(&self, n: u32) {
        self.steps.set(0);
        self.dies_at.set(Some(n));
    }

    /// Lets `n` lines of the journal be written, and no more.
    pub(crate) fn full_after(&self, n: u32) {
        self.lines.set(0);
        self.full_at.set(Some(n));
    }

    /// Refuses every write of this value, as the kernel does with a managed interrupt.
    pub(crate) fn refuses(&self, path: &str) {
        self.refused.replace(Some(path.to_owned()));
    }

    /// Lets control groups have their files with their folder.
    pub(crate) fn plays_groups(&self) {
        self.plays_groups.set(true);
    }

    /// What a file holds once this is written.
    pub(super) fn shown(&self, path: &str, bytes: &[u8]) -> Vec<u8> {
        match bytes.strip_prefix(b"+") {
            Some(rest) if self.plays_groups.get() && path.ends_with("subtree_control") => {
                rest.to_vec()
            }
            _ => bytes.to_vec(),
        }
    }

    /// A control group was made, or is to be removed.
    pub(super) fn group(&self, real: &Path, is_made: bool) -> io::Result<()> {
        let is_group = self.plays_groups.get() && real.to_string_lossy().contains("/cgroup/");
        for (file, text) in [("cpuset.cpus", "\n"), ("cpuset.cpus.partition", "member\n")] {
            match is_made {
                _ if !is_group => {}
                true => fs::write(real.join(file), text)?,
                false => fs::remove_file(real.join(file))?,
            }
        }
        Ok(())
    }

    /// Whether a line of the journal that it dies over is half written.
    pub(crate) fn tears(&self) -> bool {
        self.steps.get() % 2 == 1
    }

    pub(crate) fn steps(&self) -> u32 {
        self.steps.get()
    }

    /// Whether the next single write is the one before which it dies.
    pub(crate) fn is_last(&self) -> bool {
        self.dies_at.get() == Some(self.steps.get())
    }

    pub(super) fn step(&self) -> io::Result<()> {
        if self.is_last() {
            resume_unwind(Box::new(Killed));
        }
        self.steps.set(self.steps.get() + 1);
        Ok(())
    }

    pub(super) fn value(&self, path: &str) -> io::Result<()> {
        match self.refused.borrow().as_deref() == Some(path) {
            true => Err(rustix::io::Errno::IO.into()),
            false => Ok(()),
        }
    }

    pub(super) fn line(&self) -> io::Result<()> {
        if self.full_at.get() == Some(self.lines.get()) {
            return Err(rustix::io::Errno::NOSPC.into());
        }
        self.lines.set(self.lines.get() + 1);
        Ok(())
    }
}

/// Runs something that may be killed: `None` when it was.
pub(crate) fn may_die<T>(run: impl FnOnce() -> T) -> Option<T> {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(value) => Some(value),
        Err(payload) if payload.is::<Killed>() => None,
        Err(payload) => resume_unwind(payload),
    }
}
