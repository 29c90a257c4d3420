//! `rtproof tune persist`: what is applied now is repeated at each boot. Writes /etc/rtproof.toml
//! and rtproof.service under a journal of their own; `rtproof tune undo` takes them away.

use std::io::Write as _;

use rtproof_host::{
    Facts,
    tune::{self, Change, Item, Journal, Machine, Stands},
};
use rtproof_judge::{checks, plan::units};
use rtproof_measure::scheduling::LiveTasks;
use rtproof_run::tune::{
    config::{self, Config, Meant, NotRepeated},
    making, place,
};

use super::{
    request::{RequestArgs, RootArgs},
    trial::all_or_none,
};
use crate::{answers, ask, exit, next, print::Text, root::open_root};

/// Arguments of `tune persist`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  rtproof tune apply --cpus 2-3 && rtproof tune persist --cpus 2-3
  systemctl stop rtproof.service
  rtproof tune undo

Boot parameters and files last by themselves and are not repeated. The file may be edited; a boot
with rtproof.skip on the kernel's command line leaves it out. Exit code 3: something that is applied
cannot be repeated, and is named.")]
pub struct Args {
    /// What the machine is for: written into the file.
    #[command(flatten)]
    pub request: RequestArgs,

    /// Which machine.
    #[command(flatten)]
    pub at: RootArgs,

    /// Do not ask
    #[arg(short, long)]
    pub yes: bool,

    /// Print what was done as JSON
    #[arg(long)]
    pub json: bool,
}

/// Runs the command.
///
/// # Errors
/// A machine that cannot be changed; nothing that could be repeated; a program that a unit cannot
/// name.
pub fn run(args: &Args) -> anyhow::Result<u8> {
    let root = open_root(args.at.root.as_deref())?;
    let machine = Machine::new(&root, &LiveTasks)?;
    let exe = place::of(&root)?;
    let meant = Meant::from(&args.request.intent(&root, &Facts::read(&root))?);
    let applied = in_force(&machine)?;
    let items = applied.iter().map(|it| (&it.change, it.checks.as_slice(), reasons(&it.checks)));
    let (config, left_out) = Config::of(&root, meant, items);
    anyhow::ensure!(
        !config.changes.is_empty(),
        "nothing that a reboot takes away is applied; rtproof tune apply first"
    );
    let mut changes = vec![config.change()];
    changes.extend(units::boot_changes(&exe, config::PATH, &config.units()));
    let text = Text::new(args.json);
    text.print(|to| {
        for change in &changes {
            writeln!(to, "{}: {}", change.target(), change.after())?;
        }
        for NotRepeated { change, why } in &left_out {
            writeln!(to, "not repeated: {}: {why}", change.target())?;
        }
        Ok(())
    })?;
    let question = format!("repeat {} at each boot?", making::count(config.changes.len()));
    anyhow::ensure!(args.yes || ask::consent(&question)?, "nothing was changed");
    let done = all_or_none(&machine, "tune persist".into(), changes.iter())?;
    text.print(|to| {
        rtproof_report::text::applied(to, &done, &next::root(args.at.root.as_deref()))
    })?;
    text.print_json(&answers::tune::written(&done, "boot").with(&done))?;
    Ok(if left_out.is_empty() { exit::ACCEPTED } else { exit::NOT_PROVEN })
}

/// What is in force now of the open journals, in the order in which it was made; of a target the
/// last change.
fn in_force(machine: &Machine<'_>) -> anyhow::Result<Vec<Item>> {
    let mut items: Vec<Item> = Vec::new();
    for number in super::journals::open(machine)? {
        let journal = Journal::open_number(machine, number)?;
        for standing in tune::status(machine, &journal) {
            if standing.stands != Stands::AsApplied {
                continue;
            }
            let target = |change: &Change| change.target();
            items.retain(|item| target(&item.change) != target(&standing.change));
            items.push(Item { change: standing.change, checks: standing.checks });
        }
    }
    Ok(items)
}

/// Why checks ask for something, a line each.
fn reasons(ids: &[String]) -> Vec<String> {
    let reason = |id: &String| checks::by_id(id).map(|check| format!("{id}: {}", check.why));
    ids.iter().filter_map(reason).collect()
}
