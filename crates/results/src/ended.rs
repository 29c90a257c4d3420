//! How work ended, as an exit code reports it.

/// How a command ended; its exit code follows from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    Done,
    ToolFailed,
    /// The machine failed: something is not as requested.
    MachineFailed,
    /// It cannot be decided, or something is unknown.
    CannotTell,
}
