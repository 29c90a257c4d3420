//! `rtproof tune`: plan changes, apply and undo them, try them at the next boot; one file for each
//! of its commands. To add one: its file, its `mod` and a row of [`Command`].

pub mod apply;
pub mod confirm;
pub mod export;
pub mod guard;
pub mod hold;
mod journals;
pub mod persist;
pub mod plan;
pub(crate) mod prove;
pub mod repeat;
pub(crate) mod request;
pub mod status;
pub mod trial;
pub mod undo;
pub mod verify;

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

commands! {
    /// Show what would be changed, and why; changes nothing
    Plan(plan),
    /// Make the changes of the plan that take effect at once
    Apply(apply),
    /// Undo what was applied
    Undo(undo),
    /// Show what is applied, what has changed since, which journals are open
    Status(status),
    /// Make a boot entry with the plan's kernel parameters, or another kernel, and boot it once
    Trial(trial),
    /// After a boot: show what became of each parameter and of each change
    Verify(verify),
    /// Keep what is on trial: the boot entry, and changes applied with --confirm
    Confirm(confirm),
    /// Repeat at each boot what is applied now: /etc/rtproof.toml and rtproof.service
    Persist(persist),
    /// Write the plan for those who manage machines otherwise: tuned, Ansible, systemd, kernel
    /// configuration, Yocto, Buildroot
    Export(export),
    /// Hold a limit on the exit latency of the idle states until stopped
    Hold(hold),
    /// Not for users: undo changes that were not confirmed in time
    #[command(hide = true)]
    Guard(guard),
}

pub fn run(args: &Args) -> anyhow::Result<u8> {
    args.command.run()
}
