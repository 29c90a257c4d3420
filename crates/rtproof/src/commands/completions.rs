//! `rtproof completions`: completions of the command line, for a shell.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::{exit, print};

/// Arguments of `completions`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  rtproof completions bash >/etc/bash_completion.d/rtproof
  rtproof completions zsh >/usr/local/share/zsh/site-functions/_rtproof
  rtproof completions fish >~/.config/fish/completions/rtproof.fish")]
pub struct Args {
    /// The shell
    pub shell: Shell,
}

pub fn run(args: &Args) -> anyhow::Result<u8> {
    print::bytes(&script(args.shell))?;
    Ok(exit::ACCEPTED)
}

/// The script of a shell.
pub fn script(shell: Shell) -> Vec<u8> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut super::Cli::command(), "rtproof", &mut script);
    script
}
