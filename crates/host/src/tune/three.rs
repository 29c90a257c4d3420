//! Three-way comparison: what was before, what we made of it, what is there now.

use super::state::State;

/// Whose value is there now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// As before the change.
    Before,
    /// As the change left it, or half way there.
    Ours,
    Theirs,
}

impl Side {
    /// Ours, or that of another program.
    pub(super) const fn ours_if(is_ours: bool) -> Self {
        if is_ours { Self::Ours } else { Self::Theirs }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Three<'s> {
    pub(super) before: &'s State,
    /// After it; unknown where the process was killed before it was read.
    pub(super) after: Option<&'s State>,
    pub(super) current: &'s State,
    /// Whether an undo was begun and, as far as is known, not ended.
    pub(super) undoing: bool,
}

impl Three<'_> {
    /// Whose state it is, where a state is one value.
    pub(super) fn side(self, is_done: impl Fn(&State) -> bool) -> Side {
        if self.before == self.current {
            return Side::Before;
        }
        let is_ours = match self.after {
            Some(after) => after == self.current,
            None => is_done(self.current),
        };
        Side::ours_if(is_ours)
    }

    /// Whether a change or its undo may have been cut short: then what is half way is ours.
    pub(super) const fn may_be_halfway(&self) -> bool {
        self.after.is_none() || self.undoing
    }
}
