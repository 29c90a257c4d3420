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
  rtproof tune status --watch --every 30s

Exit codes: 0 everything applied is as it was applied, or nothing is; 2 something has changed since;
3 something cannot be read.")]
pub struct Args {
    /// Look at the machine in a folder that holds its /proc, /sys, /etc, /boot and /var
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,

    /// Go on looking, and print a line when something is no longer as it was applied, with who may
    /// have changed it; with --json a line of JSON
    #[arg(long)]
    pub watch: bool,

    /// Time between two looks at values, which do not tell when they change; default: 10s
    #[arg(long = "every", value_name = "TIME", value_parser = watch::every, requires = "watch")]
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
    if args.watch {
        return watch::run(&root, args.every_ns.unwrap_or(watch::EVERY_NS), args.json);
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
