//! Whether what a thread waits for is a lock: by the arguments of futex(2), by how the word is
//! used, by what stands beside it.

use schemars::JsonSchema;
use serde::Serialize;

/// What a lock is, and how that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LockKind {
    /// A mutex of glibc without priority inheritance: its owner was read, and released it; or the
    /// thread waited in glibc's `pthread_mutex_lock`.
    Pthread,
    /// A lock whose word is the number of its holder, who released it: robust ones of glibc, those
    /// of musl.
    Named,
    /// A lock of Rust's library, in which the thread waited.
    Rust,
    /// Used as a lock is: likely one.
    Used,
    /// It looks like one; what it is was not seen.
    NotSure,
}

/// A call of futex(2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Call {
    /// Waits as for a lock; the holder where the word names it.
    Locks {
        holder: Option<u32>,
    },
    /// Waits for anything else.
    Waits,
    Wakes {
        count: u32,
    },
    /// Waits for a lock with priority inheritance.
    Inherits,
    /// Moves waiters from one word to another, or changes another word.
    Moves,
    /// None of these.
    Else,
}

impl Call {
    /// By its arguments; `is_sibling`: whether a number is that of a thread of the same process.
    pub(super) fn of(args: &[u64; 6], is_sibling: impl Fn(u32) -> bool) -> Self {
        /// Locked, with waiters: glibc's low-level lock, Rust's, Go's.
        const CONTENDED: u32 = 2;
        const WAITERS: u32 = 0x8000_0000;
        const TID: u32 = 0x3fff_ffff;
        let value = args[2] as u32;
        // FUTEX_CMD_MASK leaves private and clock out.
        match args[1] & 0x7f {
            0 | 9 if value == CONTENDED => Self::Locks { holder: None },
            0 | 9 if value & WAITERS != 0 && is_sibling(value & TID) => {
                Self::Locks { holder: Some(value & TID) }
            }
            0 | 9 | 11 => Self::Waits,
            1 | 10 => Self::Wakes { count: value },
            3 | 4 | 5 | 12 => Self::Moves,
            6 | 13 => Self::Inherits,
            _ => Self::Else,
        }
    }

    pub(super) const fn is_lock(self) -> bool {
        matches!(self, Self::Locks { .. })
    }
}

/// How a word is used.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Word {
    /// A thread waited for another value, or woke more than one: no lock does.
    is_other: bool,
    /// Times that a thread which had waited for it has released it.
    pub(super) releases: u32,
    /// The word named the thread that released it.
    pub(super) is_named: bool,
    /// Its memory named the thread that released it.
    pub(super) is_owned: bool,
}

/// So often a word was used as a lock is before it is taken for one.
const RELEASES_MIN: u32 = 2;

impl Word {
    pub(super) const fn see(&mut self, call: Call) {
        if matches!(call, Call::Waits | Call::Moves) {
            self.is_other = true;
        } else if let Call::Wakes { count } = call {
            self.is_other |= count != 1;
        }
    }

    pub(super) const fn kind(&self) -> LockKind {
        match self {
            Self { is_named: true, .. } => LockKind::Named,
            Self { is_other: true, .. } => LockKind::NotSure,
            Self { is_owned: true, .. } => LockKind::Pthread,
            Self { releases: RELEASES_MIN.., .. } => LockKind::Used,
            _ => LockKind::NotSure,
        }
    }
}

/// The owner of a mutex of glibc that has waiters and no priority inheritance, by its first five
/// words: lock, count, owner, users, kind (sysdeps/nptl/bits/struct_mutex.h).
pub(super) fn owner(words: &[u32; 5]) -> Option<u32> {
    /// Shared between processes; lock elision allowed, forbidden.
    const FLAGS: u32 = 128 | 256 | 512;
    let [lock, _, owner, users, kind] = *words;
    let is_plain = matches!(kind & !FLAGS, 0..=3);
    (lock == 2 && is_plain && users > 0).then_some(owner)
}
