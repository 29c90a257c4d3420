//! `rtproof check tick`: the list of what to set in the firmware, and who looked at what.

use std::path::PathBuf;

use clap::ValueEnum;
use rtproof_host::{facts::platform::firmware::Found, tune::Machine};
use rtproof_measure::LiveTasks;
use rtproof_run::{
    intent,
    tick::{self, Look},
};

use super::explain;
use crate::root::open_root;

/// Arguments of `check tick`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  rtproof check tick
  rtproof check tick smt turbo
  rtproof check tick c-states --as kept --note 'limited in the system, see cpuidle-states'
  rtproof check tick usb-legacy --as absent
  rtproof check tick smt --remove

The ticks are kept in /etc/rtproof-firmware.conf, with day, user and version of the firmware. They
change nothing else: set the firmware by hand.")]
pub struct Args {
    /// Items, or all; none: show the list
    #[arg(value_name = "ITEM")]
    pub items: Vec<String>,

    /// What the set-up says
    #[arg(long = "as", value_enum, value_name = "FOUND", default_value_t = FoundArg::Set)]
    pub found: FoundArg,

    /// A remark; the reason, where a setting is kept otherwise
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub note: String,

    /// Who looked; default: the user who asks
    #[arg(long, value_name = "NAME")]
    pub by: Option<String>,

    /// Remove the ticks of these items
    #[arg(long, requires = "items", conflicts_with_all = ["found", "note", "by"])]
    pub remove: bool,

    /// Work on the machine in a folder that holds its /proc, /sys and /etc; without items, also a
    /// file of `rtproof capture`
    #[arg(long, value_name = "PATH")]
    pub root: Option<PathBuf>,

    /// Print the list as JSON, as `check explain bios-profile` does
    #[arg(long)]
    pub json: bool,
}

/// [`Found`], on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FoundArg {
    /// As advised
    Set,
    /// Otherwise, on purpose: --note says why
    Kept,
    /// There is no such setting
    Absent,
}

/// Runs the command.
///
/// # Errors
/// Usage: no such item. A machine that cannot be changed, a firmware without a version.
pub(super) fn run(args: &Args) -> anyhow::Result<u8> {
    if !args.items.is_empty() {
        let root = open_root(args.root.as_deref())?;
        let machine = Machine::to_undo(&root, &LiveTasks)?;
        let found = match args.found {
            FoundArg::Set => Found::Set,
            FoundArg::Kept => Found::Kept,
            FoundArg::Absent => Found::Absent,
        };
        let who = || Ok::<_, anyhow::Error>(tick::who(intent::user(&root, None)?.as_ref()));
        let look = Look {
            items: args.items.clone(),
            found: (!args.remove).then_some(found),
            note: args.note.clone(),
            who: args.by.clone().map_or_else(who, Ok)?,
        };
        tick::tick(&machine, &look)?;
    }
    explain::run(&explain::Args {
        ids: vec!["bios-profile".into()],
        root: args.root.clone(),
        json: args.json,
    })
}
