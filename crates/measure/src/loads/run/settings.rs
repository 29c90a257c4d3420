//! Where loads run and what they may use.

use std::path::PathBuf;

use rtproof_host::CpuList;

/// Where loads run and what they may use.
#[derive(Clone, Debug)]
pub struct Settings {
    /// CPUs to disturb; all must be online.
    pub cpus: CpuList,
    /// Directory for the files of loads, UTF-8; empty is the current one.
    pub dir: PathBuf,
    /// Memory that is available (`MemAvailable`, or what a cgroup leaves of it), in bytes.
    pub memory_available: u64,
    /// Size of the last-level cache in bytes; 0 when it is not known.
    pub llc_bytes: u64,
    /// How a worker is started: this binary (`/proc/self/exe`) and the hidden subcommand that calls
    /// [`worker_main`](crate::worker_main), e.g. `["load-worker"]`.
    pub worker_command: (PathBuf, Vec<String>),
}
