//! `rtproof tune status`: what is applied now, and whether it is still as it was applied.

use std::path::PathBuf;

use rtproof_host::{Root, tune::Machine};
use rtproof_measure::LiveTasks;
use rtproof_results::tune::active::Stands;
use rtproof_run::tune::{
    active,
    watch::{self, Event},
};

use crate::{answers, exit, print::Text, root::open_root};

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
        return watch(&root, args.every_ns.unwrap_or(watch::EVERY_NS), args.json);
    }
    let machine = Machine::for_reading(&root, &LiveTasks);
    let status = active::status(&machine)?;
    let text = Text::new(args.json);
    let answer = answers::tune::status(&status, args.root.as_deref());
    text.print(|to| {
        rtproof_report::text::answer(to, &answer)?;
        rtproof_report::text::status(to, &status)?;
        rtproof_report::text::answer_again(to, &answer)
    })?;
    text.print_json(&answer.with(&status))?;
    let changes = || status.journals.iter().flat_map(|journal| &journal.changes);
    // What went with the reboot is no surprise: the journal of an earlier boot says so.
    Ok(match () {
        () if changes().any(Stands::is_changed) => exit::REFUSED,
        () if changes().any(Stands::is_unknown) || !status.unusable.is_empty() => exit::NOT_PROVEN,
        () => exit::ACCEPTED,
    })
}

/// A line each, at once.
fn watch(root: &Root, every_ns: u64, json: bool) -> anyhow::Result<u8> {
    let mut report = |event: &Event<'_>| match event {
        Event::Drifts(drifts) => watch::write(&mut anstream::stdout().lock(), drifts, json),
        Event::Begun(watched, off) => {
            let seconds = every_ns / 1_000_000_000;
            crate::stderr::line(&format!(
                "{watched} changes watched, {off} not as applied; looking every {seconds} s and \
                 when devices come or go; Ctrl-C ends"
            ))
        }
    };
    Ok(exit::of(watch::run(root, every_ns, &mut report)?))
}
