//! `tune apply --prove`: measures what each change of a plan does, keeps what helps, undoes the
//! rest.

mod switch;

use rtproof_host::{Facts, Root};
use rtproof_judge::plan::Plan;

use crate::commands::prove;

pub use switch::{Item, Switch};

/// Proves a plan: measures, switches its changes on and off in pairs of slices, keeps what helps.
/// Prints what it does, writes record and report where `args` says, and returns the exit code.
///
/// `args` are those of `prove`: `duration_ns` is the TIME of `--prove TIME`, `load` the load of the
/// whole time. `root` is the machine that is measured; `switch` changes it (or a folder, in tests).
///
/// # Errors
/// Wrong arguments, an output that cannot be written, threads that cannot run, a machine that could
/// not be put back.
pub fn run(
    root: &Root,
    facts: Facts,
    plan: &Plan,
    args: &prove::Args,
    switch: &mut dyn Switch,
) -> anyhow::Result<u8> {
    let _ = (root, facts, plan, args, switch);
    anyhow::bail!("--prove: not built yet")
}
