//! One run as one file: what was asked, what the machine was, what was measured, what was judged.
//!
//! Floor 2. A record is an SQLite file that is written once a second and sealed at the end. All
//! that is shown of a run is computed from [`run::Run`], so a report made next year says the same.

pub mod options;
pub mod run;

pub use options::{Class, Options, Requirement, Start};
pub use run::Run;
