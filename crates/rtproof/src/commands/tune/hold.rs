//! `rtproof tune hold`: keeps a limit on the exit latency of the idle states in force until it is
//! stopped. It is the program of `rtproof-latency.service`.

use rtproof_run::tune::hold::{limit_us, until_ended};

use crate::exit;

/// Arguments of `tune hold`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  rtproof tune hold --latency 0us
  rtproof tune hold --latency 20us

The limit is in force until Ctrl-C or SIGTERM. rtproof-latency.service runs this.")]
pub struct Args {
    /// Longest exit from idle that is allowed to any CPU, in whole microseconds; 0us: the CPUs poll
    /// or halt and sleep no deeper
    #[arg(long = "latency", value_name = "TIME", value_parser = limit_us)]
    pub limit_us: u32,
}

/// Runs the command.
///
/// # Errors
/// The limit cannot be held, or is not in force; the service manager cannot be reached.
pub fn run(args: &Args) -> anyhow::Result<u8> {
    until_ended(args.limit_us, crate::stderr::line)?;
    Ok(exit::ACCEPTED)
}
