//! `rtproof kernel`: find, configure, build, boot, compare and bisect real-time kernels; one file
//! for each of its commands. To add one: its file, its `mod` and a row of [`Command`].

pub mod bisect;
pub mod boot;
pub mod build;
pub mod compare;
pub mod config;
pub mod find;
mod guest;
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
  rtproof kernel boot out --check

Nothing is installed. Everything that is made lies in the folder given.")]
pub struct Args {
    /// What to do
    #[command(subcommand)]
    pub command: Command,
}

/// How make is run; `config` and `build` take these.
#[derive(Clone, Debug, clap::Args)]
pub struct MakeArgs {
    /// Pass a variable to make, e.g. ARCH=arm64, CROSS_COMPILE=aarch64-linux-gnu-, CC=gcc-12
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = variable)]
    pub variables: Vec<String>,

    /// Do all of it as this user, where rtproof runs as root
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,

    /// Print JSON instead of text
    #[arg(long)]
    pub json: bool,
}

/// A variable of make.
fn variable(text: &str) -> Result<String, String> {
    let is_name = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    match text.split_once('=') {
        // The folder of the objects is ours.
        Some(("O" | "KBUILD_OUTPUT" | "MAKEFLAGS", _)) => Err("is set by rtproof".into()),
        Some((name, _)) if is_name(name) => Ok(text.to_owned()),
        _ => Err("not NAME=VALUE".into()),
    }
}

commands! {
    /// Show the real-time kernels that the distribution offers, with the command to install each
    Find(find),
    /// Configure a kernel for real-time work; show which options survive and why others do not
    Config(config),
    /// Build a kernel out of tree: image and modules, or Debian packages
    Build(build),
    /// Boot a kernel under QEMU, run rtproof or a command inside, bring out what they made
    Boot(boot),
    /// Compare two kernels in the same guest: length of the wake-up path, causes, checks, options
    Compare(compare),
    /// Find the commit or the options with which a latency begins: build, boot and test in turns
    Bisect(bisect),
    /// Carry local commits of a kernel's git tree over to a newer version
    Rebase(rebase),
}

pub fn run(args: &Args) -> anyhow::Result<u8> {
    args.command.run()
}
