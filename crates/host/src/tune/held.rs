//! Journals that this process is writing, and their undo by another thread of it: whatever the
//! thread that applies waits for, the changes go back. It stops before its next single write then,
//! for good, as if it had been killed there.

use std::{
    cell::Cell,
    fs::File,
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use rustix::fs::FlockOperation;

use crate::Root;

/// A journal that is being written.
struct Held {
    number: u32,
    root: Root,
    /// What keeps a second rtproof out, as long as its owner has it.
    lock: Weak<File>,
}

static HELD: Mutex<Vec<Held>> = Mutex::new(Vec::new());

/// Whether another thread has the changes of this process.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// Programs that may not be left before their work is done.
static BUSY: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static TAKES: Cell<bool> = const { Cell::new(false) };
}

/// Time for a single write that has begun.
const SETTLE: Duration = Duration::from_millis(20);

pub(super) fn add(number: u32, root: &Root, lock: &Arc<File>) {
    let held = Held { number, root: root.clone(), lock: Arc::downgrade(lock) };
    HELD.lock().unwrap_or_else(PoisonError::into_inner).push(held);
}

/// Its changes stay, or were undone.
pub(super) fn remove(lock: &Arc<File>) {
    let is_it = |held: &Held| held.lock.as_ptr() == Arc::as_ptr(lock);
    HELD.lock().unwrap_or_else(PoisonError::into_inner).retain(|held| !is_it(held));
}

/// As long as it is there, such a program works.
pub(super) struct Busy;

impl Busy {
    pub(super) fn begin() -> Self {
        BUSY.fetch_add(1, Ordering::Relaxed);
        Self
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        BUSY.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Whether this process has changes that go with it, and may go now.
pub fn is_any() -> bool {
    BUSY.load(Ordering::Relaxed) == 0
        && !HELD.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
}

/// Before each single write: waits for ever where another thread undoes.
#[inline]
pub(super) fn may_go_on() {
    if TAKEN.load(Ordering::Relaxed) {
        while !TAKES.get() {
            thread::park();
        }
    }
}

/// Takes over what other threads of this process are applying, the newest first: number and machine
/// of each journal, whose lock is free from now on. The caller undoes and ends the process.
pub fn take() -> Vec<(u32, Root)> {
    if TAKEN.swap(true, Ordering::Relaxed) {
        may_go_on();
        return Vec::new();
    }
    TAKES.set(true);
    thread::sleep(SETTLE);
    let held = std::mem::take(&mut *HELD.lock().unwrap_or_else(PoisonError::into_inner));
    let free = |held: Held| {
        if let Some(lock) = held.lock.upgrade() {
            let _ = rustix::fs::flock(&*lock, FlockOperation::Unlock);
        }
        (held.number, held.root)
    };
    held.into_iter().rev().map(free).collect()
}
