//! `rtproof tune confirm`: what was on trial stays. The boot entry becomes the default once the
//! running boot has every word of it; changes applied with --confirm are no longer undone.

use std::io::Write as _;

use rtproof_host::{
    Facts,
    boot::{self, Standing},
    tune::{
        Machine,
        confirmation::{self, Confirmation},
    },
};
use rtproof_judge::plan::units;
use rtproof_measure::LiveTasks;
use rtproof_results::tune::active::EntryKernel;
use rtproof_run::tune::{boot as entry, rollback};
use schemars::JsonSchema;
use serde::Serialize;

use super::trial::all_or_none;
use crate::{exit, next, print::Text, root::open_root};

const SCHEMA: &str = "rtproof/tune-confirmed/1";

/// Arguments of `tune confirm`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  rtproof tune confirm
  rtproof tune verify && rtproof tune confirm")]
pub struct Args {
    /// Make the entry the default though the running boot lacks words of it, or has another kernel
    #[arg(long)]
    pub force: bool,

    /// Which machine.
    #[command(flatten)]
    pub at: super::request::RootArgs,

    /// Print what was kept as JSON
    #[arg(long)]
    pub json: bool,
}

/// What `tune confirm --json` prints.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Confirmed {
    /// Version of this form: `rtproof/tune-confirmed/1`.
    pub schema: &'static str,
    /// Journals whose changes are kept.
    pub journals: Vec<u32>,
    /// Whether the boot entry was made the default.
    pub boot_entry: bool,
}

/// Runs the command.
///
/// # Errors
/// A machine that cannot be changed; nothing that waits for a confirmation; time that was up; a
/// running boot that is not the trial.
pub fn run(args: &Args) -> anyhow::Result<u8> {
    let root = open_root(args.at.root.as_deref())?;
    let machine = Machine::new(&root, &LiveTasks)?;
    let text = Text::new(args.json);
    let mut journals = Vec::new();
    // One that is damaged does not keep another from being confirmed.
    for number in super::journals::not_closed(&machine)? {
        if confirmation::of(&root, number) == Some(Confirmation::Expired) {
            anyhow::bail!("journal {number}: its time was up; it is being taken back");
        }
        if confirmation::confirm(&machine, number)? {
            rollback::dismiss(&root, number);
            journals.push(number);
            text.print(|to| writeln!(to, "journal {number}: kept"))?;
        }
    }
    let boot_entry = match entry_is_confirmed(args, &machine, text) {
        // What was asked for may be the journals alone: an entry that is not booted yet stays.
        Err(error) if !journals.is_empty() && !args.force => {
            crate::stderr::line(&format!("the boot entry is not confirmed: {error:#}"))?;
            false
        }
        confirmed => confirmed?,
    };
    anyhow::ensure!(
        boot_entry || !journals.is_empty(),
        "nothing waits for a confirmation; rtproof tune status tells what is applied"
    );
    text.print_json(&Confirmed { schema: SCHEMA, journals, boot_entry })?;
    Ok(exit::ACCEPTED)
}

/// Makes the entry the default; `false`: there is none, or it is the default already.
fn entry_is_confirmed(args: &Args, machine: &Machine<'_>, text: Text) -> anyhow::Result<bool> {
    let root = machine.root();
    let loader = boot::detect(root)?;
    if matches!(loader.standing(root)?, Standing::Absent | Standing::Default) {
        return Ok(false);
    }
    let verified = entry::verified(root, &Facts::read(root), &entry::asked(root)?);
    text.print(|to| rtproof_report::text::parameters(to, &verified))?;
    let missing = entry::missing(&verified);
    anyhow::ensure!(
        missing.is_empty() || args.force,
        "this boot is not the trial: its command line lacks {}; boot the entry first (rtproof tune \
         trial --reboot), or give --force",
        missing.join(" ")
    );
    let kernel = entry::kernel(root, &loader)?;
    let other = kernel.as_ref().filter(|it| it.is_running() == Some(false));
    anyhow::ensure!(
        other.is_none() || args.force,
        "this boot is not the trial: the entry's kernel is {}; boot the entry first (rtproof tune \
         trial --kernel ... --reboot), or give --force",
        other.map_or_else(String::new, EntryKernel::text)
    );
    // First of all: whatever fails after it, the watch does not reboot the machine.
    let mut changes = match root.exists(&format!("{}/{}", units::FOLDER, units::TRIAL_TIMER)) {
        true => units::trial_ended(),
        false => Vec::new(),
    };
    changes.extend(loader.confirm(root)?);
    let applied = all_or_none(machine, "tune confirm".into(), changes.iter())?;
    text.print(|to| {
        rtproof_report::text::applied(to, &applied, &next::root(args.at.root.as_deref()))?;
        writeln!(to, "the entry is the default of {} from now on", loader.name)
    })?;
    Ok(true)
}
