//! The boot command line, taken apart as the kernel does it (lib/cmdline.c, `next_arg`).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::text::{quoted_words, unquoted};

/// Boot command line. Keys are kept as written; a key may occur more than once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CommandLine {
    pub text: String,
    /// Parameters up to `--`, in order.
    pub parameters: Vec<Parameter>,
}

/// One parameter of the command line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Parameter {
    /// Name, e.g. `isolcpus`.
    pub key: String,
    /// Value after `=`, quotes removed; `None` for a bare word.
    pub value: Option<String>,
}

impl CommandLine {
    /// The last value given for a key: the one most kernel parameters use. `Some(None)` is a bare
    /// word. `-` and `_` are the same in parameter names (kernel/params.c, `parameqn`).
    pub fn last(&self, key: &str) -> Option<Option<&str>> {
        self.all(key).last()
    }

    /// Every value given for a key, in order.
    pub fn all<'a>(&'a self, key: &str) -> impl Iterator<Item = Option<&'a str>> + use<'a> {
        let wanted = key.replace('-', "_");
        self.parameters
            .iter()
            .filter(move |p| p.key.replace('-', "_") == wanted)
            .map(|p| p.value.as_deref())
    }

    /// Takes a command line apart. Quotes keep spaces together, whether they stand round the value
    /// or the whole parameter; what follows a bare `--` is for init and no kernel parameter.
    pub fn parse(text: &str) -> Self {
        let text = text.trim();
        let words = quoted_words(text).take_while(|word| *word != "--");
        Self { text: text.to_owned(), parameters: words.map(parameter).collect() }
    }
}

fn parameter(word: &str) -> Parameter {
    // "key=a b" and key="a b" are the same parameter.
    let word = unquoted(word);
    match word.split_once('=') {
        Some((key, value)) => Parameter { key: key.to_owned(), value: Some(value.to_owned()) },
        None => Parameter { key: word, value: None },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_bare_words_and_the_end() {
        let line = CommandLine::parse(
            "BOOT_IMAGE=/vmlinuz ro quiet dyndbg=\"file a.c +p\" \"x=1 2\" isolcpus=  a=b=c -- -s nosmt\n",
        );
        let all: Vec<_> =
            line.parameters.iter().map(|p| (p.key.as_str(), p.value.as_deref())).collect();
        assert_eq!(
            all,
            [
                ("BOOT_IMAGE", Some("/vmlinuz")),
                ("ro", None),
                ("quiet", None),
                ("dyndbg", Some("file a.c +p")),
                ("x", Some("1 2")),
                ("isolcpus", Some("")),
                ("a", Some("b=c")),
            ]
        );
        assert_eq!(line.last("nosmt"), None);
        assert!(line.text.ends_with("nosmt"));
    }

    #[test]
    fn the_last_of_several_and_dashes_as_underscores() {
        let line = CommandLine::parse("tsc=a rcu-nocbs=1 tsc=b \"unclosed");
        assert_eq!(line.last("tsc"), Some(Some("b")));
        assert_eq!(line.all("tsc").count(), 2);
        assert_eq!(line.last("rcu_nocbs"), Some(Some("1")));
        assert_eq!(line.last("unclosed"), Some(None));
        assert!(CommandLine::parse("").parameters.is_empty());
    }
}
