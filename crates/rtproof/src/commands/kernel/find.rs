//! `rtproof kernel find`: what the distribution offers. Changes nothing.

use rtproof_report::text::kernel as text_of;
use rtproof_run::kernel::find::{self, FindError};

use crate::{exit, print::Text, stderr};

/// Arguments of `kernel find`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  rtproof kernel find
  rtproof kernel find --all --json

The package manager is asked as it stands: apt-get update, or its like, is yours to run before. Exit \
code 2 where it offers none, 3 where no package manager is known.")]
pub struct Args {
    /// Show packages of a single version, too
    #[arg(long)]
    pub all: bool,

    /// Print JSON instead of text
    #[arg(long)]
    pub json: bool,
}

/// Runs the command.
///
/// # Errors
/// The package manager fails.
pub fn run(args: &Args) -> anyhow::Result<u8> {
    let offers = match find::find() {
        Err(error @ FindError::NoManager(_)) => {
            stderr::line(&error.to_string())?;
            return Ok(exit::NOT_PROVEN);
        }
        found => found?,
    };
    let text = Text::new(args.json);
    text.print(|to| text_of::offers(to, &offers, args.all))?;
    text.print_json(&offers)?;
    Ok(if offers.packages.is_empty() { exit::REFUSED } else { exit::ACCEPTED })
}
