//! The kinds of events of a program.

/// A group of events that the rules rest on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// Threads that come and go, their names, and the files that they map.
    Threads,
    Switches,
    /// Threads that run for the first time.
    Births,
    Wakes,
    /// System calls begin.
    Enters,
    /// System calls return.
    Exits,
    Faults,
    Migrations,
    Signals,
    /// Switches of all threads of the machine.
    MachineSwitches,
    /// Wake-ups of all threads of the machine.
    MachineWakes,
    /// Moves of all threads of the machine to another CPU.
    MachineMoves,
    /// Reports of the kernel's monitor of page faults, of all threads of the machine.
    MonitorFaults,
    /// Reports of the kernel's monitor of sleeps, of all threads of the machine.
    MonitorSleeps,
}

impl Source {
    /// Whether a monitor of the kernel reports.
    pub(super) const fn is_of_monitor(self) -> bool {
        matches!(self, Self::MonitorFaults | Self::MonitorSleeps)
    }
}
