//! Three-way comparison: what was before, what we made of it, what is there now.

use super::state::State;

/// Whose value is there now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// As before the change.
    Before,
    /// As the change left it, or half way there.
    Ours,
    /// Somebody else's.
    Theirs,
}

/// The three states.
#[derive(Clone, Copy, Debug)]
pub(super) struct Three<'s> {
    /// Before the change.
    pub(super) before: &'s State,
    /// After it; unknown where the process was killed before it was read.
    pub(super) after: Option<&'s State>,
    /// Now.
    pub(super) current: &'s State,
    /// Whether an undo was begun and, as far as is known, not ended.
    pub(super) undoing: bool,
}

impl Three<'_> {
    /// Whether a change or its undo may have been cut short: then what is half way is ours.
    pub(super) const fn may_be_halfway(&self) -> bool {
        self.after.is_none() || self.undoing
    }
}
