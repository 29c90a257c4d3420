//! The kinds of events of a program.

/// A group of events that the rules rest on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// Threads that come and go, their names, and the files that they map.
    Threads,
    /// Switches.
    Switches,
    /// Threads that run for the first time.
    Births,
    /// Wake-ups.
    Wakes,
    /// System calls begin.
    Enters,
    /// System calls return.
    Exits,
    /// Page faults.
    Faults,
    /// Migrations.
    Migrations,
    /// Signals.
    Signals,
    /// Switches of all threads of the machine.
    MachineSwitches,
    /// Wake-ups of all threads of the machine.
    MachineWakes,
    /// Moves of all threads of the machine to another CPU.
    MachineMoves,
}
