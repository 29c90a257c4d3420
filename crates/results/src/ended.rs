//! How work ended, as an exit code reports it.

/// How work ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Done, or accepted.
    Done,
    /// The tool failed.
    ToolFailed,
    /// The machine failed: something is not as requested.
    MachineFailed,
    /// It cannot be decided, or something is unknown.
    CannotTell,
}
