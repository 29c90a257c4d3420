//! What a recorder did.

/// What a recorder did so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Events that the kernel wrote.
    pub events: u64,
    /// Of those lost before they were read: the kernel's own count. In freeze mode what is
    /// overwritten before a request is not counted.
    pub lost_events: u64,
    /// Sub-buffers that were read.
    pub pages: u64,
    /// Bytes of events in them.
    pub bytes: u64,
    /// Wake-ups that were answered.
    pub answered: u64,
    /// Wake-ups that wait for their answer.
    pub waiting: u64,
    /// Wake-ups that were not taken: too many at once.
    pub refused: u64,
    /// Wake-ups that were to be kept and were not: nobody took them.
    pub kept_lost: u64,
    /// Time without recording, nanoseconds, because reading stops it in freeze mode.
    pub blind_ns: u64,
    /// CPU time of the recorder's thread, nanoseconds.
    pub cpu_time_ns: u64,
    /// Whether stacks are taken at the timer interrupt.
    pub stacks: bool,
    /// Why addresses of the kernel have no names; `None`: they have, or are being read.
    pub no_symbols: Option<String>,
    /// Why a sub-buffer could not be read; `None`: all could.
    pub error: Option<String>,
}
