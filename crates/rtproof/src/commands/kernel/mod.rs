//! `rtproof kernel`: find, configure and build a real-time kernel; one file for each of its
//! commands. To add one: its file, its `mod` and a row of [`Command`].

pub mod find;

/// Arguments of `kernel`.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// What to do
    #[command(subcommand)]
    pub command: Command,
}

commands! {
    /// Show the real-time kernels that the distribution offers, with the command to install each
    Find(find),
}

/// Runs the command.
///
/// # Errors
/// Those of the command.
pub fn run(args: &Args) -> anyhow::Result<u8> {
    args.command.run()
}
