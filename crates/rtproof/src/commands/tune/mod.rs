//! `rtproof tune`: what would be changed, changed, taken back, tried at the next boot; one file for
//! each of its commands.

pub mod apply;
pub mod confirm;
pub mod export;
pub mod guard;
pub mod hold;
pub mod persist;
pub mod plan;
pub(crate) mod prove;
pub mod repeat;
pub(crate) mod request;
pub mod status;
pub mod trial;
pub mod undo;
pub mod verify;

use std::path::PathBuf;

use clap::Subcommand;
use rtproof_host::tune::{Journal, Machine};

pub use request::RequestArgs;

/// Arguments of `tune`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
A session:
  rtproof tune plan --cpus 2-3
  rtproof tune apply --cpus 2-3 --confirm 60s
  rtproof tune confirm
  rtproof tune trial --cpus 2-3 --reboot
  rtproof tune verify && rtproof tune confirm
  rtproof tune status
  rtproof tune undo --all

Nothing is changed but by apply, undo, trial and confirm. What was there is written to a journal in
/var/lib/rtproof/tune before anything new is, so that undo works after a kill or a power cut, too.")]
pub struct Args {
    /// What to do
    #[command(subcommand)]
    pub command: Command,
}

/// The commands of `tune`.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Show what would be changed, and why; changes nothing
    Plan(Box<plan::Args>),
    /// Make the changes of the plan that take effect at once
    Apply(Box<apply::Args>),
    /// Take back what was applied
    Undo(undo::Args),
    /// What is applied, what has changed since, which journals are open
    Status(status::Args),
    /// Make a boot entry with the plan's kernel parameters and boot it once
    Trial(Box<trial::Args>),
    /// After a boot: what became of each parameter and of each change
    Verify(verify::Args),
    /// Keep what is on trial: the boot entry, and changes applied with --confirm
    Confirm(confirm::Args),
    /// Repeat at each boot what is applied now: /etc/rtproof.toml and rtproof.service
    Persist(persist::Args),
    /// Write the plan for those who manage machines otherwise: tuned, Ansible, systemd, kernel
    /// configuration, Yocto, Buildroot
    Export(Box<export::Args>),
    /// Hold a limit on the exit latency of the idle states until told to stop
    Hold(hold::Args),
    /// Not for users: takes changes back that nobody confirmed
    #[command(hide = true)]
    Guard(guard::Args),
}

/// Which machine.
#[derive(Clone, Debug, Default, clap::Args)]
#[group(skip)]
pub struct RootArgs {
    /// Work on the machine in a folder that holds its /proc, /sys, /etc, /boot and /var
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,
}

/// Runs the command.
///
/// # Errors
/// Those of the command.
pub fn run(args: &Args) -> anyhow::Result<u8> {
    match &args.command {
        Command::Plan(args) => plan::run(args),
        Command::Apply(args) => apply::run(args),
        Command::Undo(args) => undo::run(args),
        Command::Status(args) => status::run(args),
        Command::Trial(args) => trial::run(args),
        Command::Verify(args) => verify::run(args),
        Command::Confirm(args) => confirm::run(args),
        Command::Persist(args) => persist::run(args),
        Command::Export(args) => export::run(args),
        Command::Hold(args) => hold::run(args),
        Command::Guard(args) => guard::run(args),
    }
}

/// Numbers of the journals that are open as far as they can be read, ascending; a damaged one may
/// be.
///
/// # Errors
/// They cannot be listed.
fn not_closed(machine: &Machine<'_>) -> anyhow::Result<Vec<u32>> {
    let list = Journal::list(machine)?;
    Ok(list.iter().filter(|journal| !journal.closed).map(|journal| journal.number).collect())
}

/// Numbers of the journals that have something to undo, ascending.
///
/// # Errors
/// They cannot be read, or one of them is damaged.
pub(crate) fn open_journals(machine: &Machine<'_>) -> anyhow::Result<Vec<u32>> {
    let mut open = Vec::new();
    for journal in Journal::list(machine)? {
        match journal.problem {
            Some(problem) => anyhow::bail!(problem),
            None if !journal.closed => open.push(journal.number),
            None => {}
        }
    }
    Ok(open)
}
