//! `rtproof kernel`: find, configure and build a real-time kernel; one file for each of its
//! commands. To add one: its file, its `mod` and a row of [`Command`].

pub mod build;
pub mod config;
pub mod find;
mod progress;
pub mod rebase;
mod user;

/// Arguments of `kernel`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
A session, on Debian:
  rtproof kernel find
  rtproof kernel config --source linux-6.12 --profile periodic out
  rtproof kernel build --source linux-6.12 out

Nothing is installed. Everything that is made lies in the folder given.")]
pub struct Args {
    /// What to do
    #[command(subcommand)]
    pub command: Command,
}

commands! {
    /// Show the real-time kernels that the distribution offers, with the command to install each
    Find(find),
    /// Configure a kernel for real-time work; show which options survive and why others do not
    Config(config),
    /// Build a kernel out of tree: image and modules, or Debian packages
    Build(build),
    /// Carry local commits of a kernel's git tree over to a newer version
    Rebase(rebase),
}

/// Runs the command.
///
/// # Errors
/// Those of the command.
pub fn run(args: &Args) -> anyhow::Result<u8> {
    args.command.run()
}
