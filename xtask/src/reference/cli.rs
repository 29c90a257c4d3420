//! docs/reference/cli.md: every command with its options, from the parser itself.

use std::fmt::Write;

use clap::{Arg, Command};

use super::markdown::{cell, head, sentence};

const ABOUT: &str = "What `--help` says, on one page.";

pub(crate) fn page(mut command: Command) -> String {
    command.build();
    let mut page = head("Command line", ABOUT);
    section(&mut page, &mut command, &[]);
    page
}

fn section(page: &mut String, command: &mut Command, parents: &[&str]) {
    let name = command.get_name().to_owned();
    let path: Vec<_> = parents.iter().copied().chain([name.as_str()]).collect();
    let usage = command.render_usage().to_string();
    let usage = usage.strip_prefix("Usage: ").unwrap_or(&usage);
    let about = command.get_long_about().or_else(|| command.get_about());
    let about = about.map(|text| sentence(&text.to_string())).unwrap_or_default();
    put(page, &format!("\n## {}\n\n{about}\n\n```text\n{usage}\n```\n", path.join(" ")));
    arguments(page, command);
    let after = command.get_after_long_help().or_else(|| command.get_after_help());
    if let Some(after) = after.map(ToString::to_string) {
        put(page, &format!("\n```text\n{}\n```\n", after.trim()));
    }
    for sub in command.get_subcommands_mut() {
        if !sub.is_hide_set() && sub.get_name() != "help" {
            section(page, sub, &path);
        }
    }
}

fn arguments(page: &mut String, command: &Command) {
    let is_shown =
        |arg: &&Arg| !arg.is_hide_set() && !matches!(arg.get_id().as_str(), "help" | "version");
    let shown: Vec<_> = command.get_arguments().filter(is_shown).collect();
    if shown.is_empty() {
        return;
    }
    put(page, "\n| argument | meaning |\n|---|---|\n");
    for arg in shown {
        let help = arg.get_long_help().or_else(|| arg.get_help());
        let mut help = help.map(|text| sentence(&text.to_string())).unwrap_or_default();
        let values = arg.get_possible_values();
        let values: Vec<_> = values.iter().filter(|value| !value.is_hide_set()).collect();
        if takes_value(arg) && !values.is_empty() {
            let names: Vec<_> =
                values.iter().map(|value| format!("`{}`", value.get_name())).collect();
            help += &format!(" One of {}.", names.join(", "));
        }
        let defaults = arg.get_default_values();
        if takes_value(arg) && !defaults.is_empty() && !arg.is_hide_default_value_set() {
            let names: Vec<_> = defaults.iter().map(|value| value.to_string_lossy()).collect();
            help += &format!(" Default: `{}`.", names.join(" "));
        }
        put(page, &format!("| {} | {} |\n", name(arg), cell(&help)));
    }
}

/// How an argument is written: `-b`, `--budget <LATENCY>`, `<RECORD>`.
fn name(arg: &Arg) -> String {
    let values = match arg.get_value_names() {
        Some(names) => names.iter().map(ToString::to_string).collect(),
        None => vec![arg.get_id().to_string()],
    };
    let values: Vec<_> = values.iter().map(|value| format!("<{value}>")).collect();
    let values = values.join(" ");
    let short = arg.get_short().map(|short| format!("`-{short}`"));
    let long = match arg.get_long() {
        Some(long) if takes_value(arg) => Some(format!("`--{long} {values}`")),
        Some(long) => Some(format!("`--{long}`")),
        None if arg.is_positional() => Some(format!("`{values}`")),
        None => None,
    };
    cell(&short.into_iter().chain(long).collect::<Vec<_>>().join(", "))
}

fn takes_value(arg: &Arg) -> bool {
    arg.is_positional() || arg.get_action().takes_values()
}

fn put(page: &mut String, text: &str) {
    page.write_str(text).expect("a string takes everything");
}

#[cfg(test)]
mod tests {
    use clap::ArgAction;

    use super::*;

    #[test]
    fn commands_are_sections_and_arguments_rows() {
        let budget = Arg::new("budget")
            .short('b')
            .long("budget")
            .value_name("LATENCY")
            .default_value("100us")
            .help("Largest latency\nthat passes.");
        let quiet = Arg::new("quiet").long("quiet").action(ArgAction::SetTrue).help("Say less.");
        let file = Arg::new("file").required(true).help("A record.");
        let hidden = Command::new("secret").hide(true);
        let prove = Command::new("prove")
            .about("Proves.")
            .args([budget, quiet, file])
            .after_help("Example:\n  rtproof prove");
        let page = page(Command::new("rtproof").subcommands([prove, hidden]));
        assert!(page.contains("\n## rtproof prove\n\nProves.\n\n```text\nrtproof prove "));
        let row = "| `-b`, `--budget <LATENCY>` | Largest latency that passes. Default: `100us`. |";
        assert!(page.contains(row), "{page}");
        assert!(page.contains("| `--quiet` | Say less. |"), "{page}");
        assert!(page.contains("| `<file>` | A record. |"), "{page}");
        assert!(page.contains("```text\nExample:\n  rtproof prove\n```"));
        assert!(!page.contains("secret"));
    }
}
