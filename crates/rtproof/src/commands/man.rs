//! `rtproof man`: the manual pages, made from the same definitions as the help.

use anyhow::Context;
use clap::CommandFactory;

use crate::{exit, print};

/// Arguments of `man`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  rtproof man | man -l -
  rtproof man tune apply | man -l -
  rtproof man prove >/usr/local/share/man/man1/rtproof-prove.1")]
pub struct Args {
    /// The command whose page is printed, e.g. `tune apply`; default: rtproof itself
    #[arg(value_name = "COMMAND")]
    pub command: Vec<String>,
}

/// Runs the command.
///
/// # Errors
/// Usage: no such command. Else when stdout cannot be written.
pub fn run(args: &Args) -> anyhow::Result<u8> {
    let wanted = args.command.join("-");
    let name = ["rtproof", &wanted].join("-");
    let name = name.trim_end_matches('-');
    let page = pages()?.into_iter().find(|(page, _)| page == name);
    let Some((_, page)) = page else {
        let given = args.command.join(" ");
        return Err(exit::usage(format!("`{given}` is no command; rtproof --help lists them")));
    };
    print::bytes(&page)?;
    Ok(exit::ACCEPTED)
}

/// Every page: its name without the section, and its text.
///
/// # Errors
/// None that is known: pages are written to memory.
pub fn pages() -> anyhow::Result<Vec<(String, Vec<u8>)>> {
    let mut command = super::Cli::command();
    // Names of pages and usage lines of commands below others.
    command.build();
    let mut pages = Vec::new();
    page(&command, "", &mut pages)?;
    Ok(pages)
}

fn page(
    command: &clap::Command,
    above: &str,
    pages: &mut Vec<(String, Vec<u8>)>,
) -> anyhow::Result<()> {
    let name = format!("{above}{}", command.get_name());
    let shown = command.clone().display_name(name.clone());
    let mut text = Vec::new();
    let source = concat!("rtproof ", env!("CARGO_PKG_VERSION"));
    clap_mangen::Man::new(shown)
        .title(&name)
        .source(source)
        .render(&mut text)
        .with_context(|| format!("page {name}"))?;
    pages.push((name.clone(), text));
    let below = command.get_subcommands().filter(|sub| !sub.is_hide_set());
    let mut below = below.filter(|sub| sub.get_name() != "help");
    below.try_for_each(|sub| page(sub, &format!("{name}-"), pages))
}
