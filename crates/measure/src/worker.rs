//! The process that rtproof starts of itself: a load, or a trial's child.

use crate::{
    loads::{Failure, run::worker},
    trials::memlock,
};

/// Runs the hidden subcommand: `args` are the arguments behind the subcommand
/// itself, as [`Runner::start`](crate::loads::Runner::start) gives them. Returns when the load has
/// ended; results go to stdout. Call it first thing in `main`, before arguments are parsed: the
/// `fork` load measures how fast this binary starts and ends.
///
/// # Errors
/// What kept the load from working. The caller may print it to stderr and must exit non-zero; the
/// parent has it already.
pub fn worker_main(args: &[String]) -> Result<(), Failure> {
    match args {
        [what, bytes] if what == memlock::CHILD => memlock::child(bytes),
        load => worker::main(load),
    }
}
