//! What the runner of `tune apply --prove` asks of whoever changes the machine.

use rtproof_host::tune::Change;

/// One change and the checks that ask for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// The change.
    pub change: Change,
    /// Checks.
    pub checks: Vec<String>,
}

/// Changes the machine and takes it back. Whatever is on is written in a journal first: a kill at
/// any moment is undone by `rtproof tune undo`.
pub trait Switch {
    /// Makes changes, in this order, each read back. Called only while nothing is on.
    ///
    /// # Errors
    /// When one cannot be made; those before it are taken back.
    fn on(&mut self, items: &[Item]) -> anyhow::Result<()>;

    /// Takes back what is on, in reverse; nothing to do is no error.
    ///
    /// # Errors
    /// When something could not be taken back: it stays in the journal.
    fn off(&mut self) -> anyhow::Result<()>;

    /// Makes the changes that stay, as [`Switch::on`] does: the last call.
    ///
    /// # Errors
    /// When one cannot be made; those before it are taken back.
    fn keep(&mut self, items: &[Item]) -> anyhow::Result<()>;
}
