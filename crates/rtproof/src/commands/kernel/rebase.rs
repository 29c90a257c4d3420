//! `rtproof kernel rebase`: local commits of a git tree onto a newer version.

use std::path::PathBuf;

use rtproof_report::text::kernel as text_of;
use rtproof_run::kernel::{
    KernelError,
    rebase::{self, Action},
};

use crate::{exit, print::Text, stderr};

/// Arguments of `kernel rebase`.
#[derive(Clone, Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("action").required(true))]
#[command(after_help = "\
Examples:
  rtproof kernel rebase linux --onto v6.12.8-rt2
  rtproof kernel rebase linux --onto v6.12.8-rt2 --from v6.12.1-rt1
  rtproof kernel rebase linux --continue

git does the work, in the tree itself, and stops at a conflict: exit code 2. Resolve it, `git add`, \
--continue; or --abort, after which all is as before.")]
pub struct Args {
    /// The git tree, with the branch of the local commits checked out
    #[arg(value_name = "TREE")]
    pub tree: PathBuf,

    /// Version to carry them to: a tag, branch or commit
    #[arg(long, value_name = "REV", group = "action")]
    pub onto: Option<String>,

    /// Version that the local commits begin after; default: what both have in common
    #[arg(long, value_name = "REV", requires = "onto")]
    pub from: Option<String>,

    /// Go on after a conflict was resolved
    #[arg(long = "continue", group = "action")]
    pub go_on: bool,

    /// Give up: everything as before
    #[arg(long, group = "action")]
    pub abort: bool,

    /// Print JSON instead of text
    #[arg(long)]
    pub json: bool,
}

/// Runs the command. 2: it stopped at a conflict.
///
/// # Errors
/// No git tree, no such version, changes that are not committed.
pub fn run(args: &Args) -> anyhow::Result<u8> {
    let action = match (&args.onto, args.abort) {
        (Some(onto), _) => Action::Onto { onto: onto.clone(), from: args.from.clone() },
        (None, true) => Action::Abort,
        (None, false) => Action::Continue,
    };
    match rebase::rebase(&args.tree, &action) {
        Ok(rebased) => {
            let text = Text::new(args.json);
            text.print(|to| text_of::rebased(to, &rebased))?;
            text.print_json(&rebased)?;
            Ok(exit::ACCEPTED)
        }
        Err(error @ KernelError::Conflict { .. }) => {
            stderr::line(&error.to_string())?;
            Ok(exit::REFUSED)
        }
        Err(error) => Err(error.into()),
    }
}
