//! `rtproof tune status`: what is applied now, and whether it is still as it was applied.

use std::path::PathBuf;

use rtproof_host::tune::Machine;
use rtproof_measure::LiveTasks;

use crate::{
    commands::check::open_root,
    exit,
    render::{self, text::Text},
    tune::{
        standing::{self, Stands},
        watch,
    },
};

/// Arguments of `tune status`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  rtproof tune status
  rtproof tune status --json
  rtproof tune status --watch 60s

Exit codes: 0 everything applied is as it was applied, or nothing is; 2 something has changed since;
3 something cannot be read.")]
pub struct Args {
    /// Look at the machine in a folder that holds its /proc, /sys, /etc, /boot and /var
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,

    /// Look again each so often, and print a line for each change that stands otherwise than before
    #[arg(
        long = "watch",
        value_name = "TIME",
        num_args = 0..=1,
        default_missing_value = "10s",
        value_parser = watch::every
    )]
    pub every_ns: Option<u64>,

    /// Print the answer as JSON
    #[arg(long)]
    pub json: bool,
}

/// Runs the command.
///
/// # Errors
/// A root that is no machine; journals that cannot be read.
pub fn run(args: &Args) -> anyhow::Result<u8> {
    let root = open_root(args.root.as_deref())?;
    if let Some(every_ns) = args.every_ns {
        return watch::run(&root, every_ns, args.json);
    }
    let machine = Machine::for_reading(&root, &LiveTasks);
    let status = standing::status(&machine)?;
    let text = Text::new(args.json);
    text.print(|to| render::text::status(to, &status))?;
    text.print_json(&status)?;
    let changes = || status.journals.iter().flat_map(|journal| &journal.changes);
    // What went with the reboot is no surprise: the journal of an earlier boot says so.
    Ok(match () {
        () if changes().any(Stands::is_changed) => exit::REFUSED,
        () if changes().any(Stands::is_unknown) => exit::NOT_PROVEN,
        () => exit::ACCEPTED,
    })
}
