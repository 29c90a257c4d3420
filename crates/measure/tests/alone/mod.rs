//! Real-time threads of two tests at once would measure each other.

mod recorder;
mod session;
mod workloads;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Waits for the other tests of this folder, which plain `cargo test` starts at once.
fn alone() -> MutexGuard<'static, ()> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    // A test that failed while it held the lock has nothing to protect.
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}
