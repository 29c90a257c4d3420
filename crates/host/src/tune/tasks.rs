//! How tasks are scheduled: calls that are passed in, because they are unsafe code, which belongs
//! to another crate.

use std::io;

use crate::change::Scheduling;

/// Scheduling of tasks; `rtproof_measure::scheduling::LiveTasks` asks the kernel.
pub trait Tasks {
    /// All of how a task is scheduled.
    ///
    /// # Errors
    /// ESRCH once it has ended, EPERM.
    fn scheduling(&self, tid: u32) -> io::Result<Scheduling>;

    /// Sets what is not `None`; the rest stays.
    ///
    /// # Errors
    /// ESRCH once it has ended, EPERM, EINVAL for what the kernel does not take.
    fn set(&self, tid: u32, to: &Scheduling) -> io::Result<()>;
}
