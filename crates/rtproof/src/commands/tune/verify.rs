//! `rtproof tune verify`: after a boot, what became of each parameter that was asked for, and
//! whether each change of the running kernel is as it was applied.

use std::path::PathBuf;

use rtproof_host::{Facts, tune::Machine};
use rtproof_judge::{report, verify::Effect};
use rtproof_measure::LiveTasks;
use rtproof_results::tune::active::{EntryKernel, Stands};
use rtproof_results::tune::verified::{Document, SCHEMA};
use rtproof_run::tune::{active, boot};

use crate::{answers, exit, print::Text, root::open_root};

/// Arguments of `tune verify`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  rtproof tune verify
  rtproof tune verify isolcpus=2-3 nohz_full=2-3
  rtproof tune verify --json

Exit codes: 0 everything is as requested, 2 something is not, 3 something is unknown. A parameter
whose effect the kernel does not show counts as requested: it is on the command line, and the kernel
did not reject it.")]
pub struct Args {
    /// Parameters to look for; default: those of the boot entry that rtproof made
    #[arg(value_name = "WORD")]
    pub words: Vec<String>,

    /// Look at a captured machine: a folder that holds its /proc, /sys, /etc, /boot and /var, or a
    /// file of `rtproof capture`, which holds no journals and needs WORDs
    #[arg(long, value_name = "PATH")]
    pub root: Option<PathBuf>,

    /// Print the answer as JSON
    #[arg(long)]
    pub json: bool,
}

/// Runs the command.
///
/// # Errors
/// A root that is no machine; journals that cannot be read. Usage: a capture, and no words.
pub fn run(args: &Args) -> anyhow::Result<u8> {
    let root = open_root(args.root.as_deref())?;
    let machine = Machine::for_reading(&root, &LiveTasks);
    let facts = Facts::read(&root);
    let asked = match args.words.as_slice() {
        [] if root.is_capture() => {
            return Err(exit::usage(
                "a capture holds neither journals nor the boot entry of rtproof: name the \
                 parameters to look for, e.g. isolcpus=2-3",
            ));
        }
        [] => boot::asked(&root)?,
        words => words.iter().map(|word| boot::word(word)).collect::<Result<_, _>>()?,
    };
    let kernel = match args.words.is_empty() {
        true => boot::kernel(&root, &rtproof_host::boot::detect(&root)?)?,
        false => None,
    };
    let document = Document {
        schema: SCHEMA,
        machine: report::Machine::of(&facts),
        kernel,
        parameters: boot::verified(&root, &facts, &asked),
        changes: if root.is_capture() { Vec::new() } else { active::of_open(&machine)? },
    };
    let text = Text::new(args.json);
    let boot = match args.words.is_empty() {
        true => active::status(&machine)?.boot,
        false => None,
    };
    let answer = answers::tune::verified(&document, boot.as_ref(), args.root.as_deref());
    text.print(|to| {
        rtproof_report::text::answer(to, &answer)?;
        rtproof_report::text::verified(to, &document)?;
        rtproof_report::text::answer_again(to, &answer)
    })?;
    text.print_json(&answer.with(&document))?;
    Ok(code(&document))
}

fn code(document: &Document) -> u8 {
    let effects = || document.parameters.iter().map(|it| it.effect);
    let runs = document.kernel.as_ref().map(EntryKernel::is_running);
    if runs == Some(Some(false))
        || effects().any(Effect::is_bad)
        || document.changes.iter().any(Stands::is_bad)
    {
        exit::REFUSED
    } else if runs == Some(None)
        || effects().any(|it| it == Effect::CannotTell)
        || document.changes.iter().any(Stands::is_unknown)
    {
        exit::NOT_PROVEN
    } else {
        exit::ACCEPTED
    }
}
