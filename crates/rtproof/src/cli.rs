//! The command line: what can be said, one place for `--help`, man pages and completions.

use clap::CommandFactory;

pub use crate::commands::Cli;

/// The definition, for reference pages, man pages and completions.
pub fn command() -> clap::Command {
    Cli::command()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_definition_is_consistent() {
        super::command().debug_assert();
    }

    /// Lines of a help that are commands of ours, of a command and of all below it.
    fn examples(command: &clap::Command) -> Vec<String> {
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let own = help.lines().map(str::trim).filter(|line| line.starts_with("rtproof "));
        let own = own.map(|line| line.split([';', '|', '>', '#', '&']).next().unwrap_or(line));
        let own: Vec<String> = own.map(|line| line.trim().to_owned()).collect();
        own.into_iter().chain(command.get_subcommands().flat_map(examples)).collect()
    }

    /// As a shell splits a line: at spaces that are not in quotes.
    fn words(line: &str) -> Vec<String> {
        let (mut words, mut is_quoted) = (vec![String::new()], false);
        for letter in line.chars() {
            match (letter, words.last_mut()) {
                ('\'' | '"', _) => is_quoted = !is_quoted,
                (' ', _) if !is_quoted => words.push(String::new()),
                (letter, Some(word)) => word.push(letter),
                (_, None) => {}
            }
        }
        words
    }

    #[test]
    fn no_help_shows_a_link_of_its_source() {
        fn helps(command: &mut clap::Command, all: &mut Vec<String>) {
            all.push(command.render_long_help().to_string());
            command.get_subcommands_mut().for_each(|it| helps(it, all));
        }
        let mut all = Vec::new();
        helps(&mut super::command(), &mut all);
        let with_links: Vec<&String> = all.iter().filter(|help| help.contains("[`")).collect();
        assert!(all.len() > 30 && with_links.is_empty(), "{with_links:#?}");
    }

    #[test]
    fn the_examples_of_every_help_are_understood() {
        let examples = examples(&super::command());
        assert!(examples.len() > 30, "{examples:?}");
        for example in examples {
            if let Err(error) = super::command().try_get_matches_from(words(&example)) {
                panic!("{example}: {error}");
            }
        }
    }
}
