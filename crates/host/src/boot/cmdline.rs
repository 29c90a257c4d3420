//! Words of a kernel command line, edited one by one: what is not requested stays as it was
//! written, nothing is glued together, and what comes out can be read back.
//!
//! The kernel (lib/cmdline.c, `next_arg`) knows double quotes and no escapes. A boot loader with a
//! language of its own (GRUB) hands its words in as [`Token`]s and says how a new one is written.

use std::mem;

use serde::{Deserialize, Serialize};

use crate::text::{quoted_words, unquoted};
use crate::{CpuList, Root};

/// Parameters whose value is a list of CPUs, with words before it in some (`isolcpus=domain,2-3`).
const CPU_LISTS: &[&str] = &["irqaffinity", "isolcpus", "kthread_cpus", "nohz_full", "rcu_nocbs"];

/// Longest parameter taken, in bytes; far above what any kernel takes.
const PARAMETER_BYTES_MAX: usize = 4096;

/// One edit of the command line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Word {
    /// The parameter without quotes: `isolcpus=managed_irq,domain,2-3`, `nosmt`, `isolcpus=`. To
    /// remove: the name alone.
    pub parameter: String,
    /// What happens to existing words.
    #[serde(rename = "wish")]
    pub edit: Edit,
}

/// What happens to existing words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Edit {
    /// It takes the place of the first word with its name; others with that name go.
    Set,
    /// It comes after them, unless the same word is there already.
    Add,
    /// Every word with this name goes.
    Remove,
}

/// Why a word cannot be on a command line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WordError {
    /// Something in it cannot be written there.
    #[error("kernel parameter \"{parameter}\": {why}")]
    Parameter {
        parameter: String,
        /// What is wrong with it, and what to do.
        why: String,
    },
    /// The kernel would cut the line.
    #[error(
        "the kernel's command line would have {bytes} bytes and this kernel takes {limit}: \
         leave parameters out"
    )]
    TooLong {
        /// Its length, with what the boot loader adds.
        bytes: usize,
        /// What the kernel takes.
        limit: usize,
    },
    /// It was written and is not there.
    #[error("the entry does not say \"{parameter}\" when it is read back: it says \"{found}\"")]
    NotThere {
        parameter: String,
        /// Words with its name that are there.
        found: String,
    },
}

/// A word as it is in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// As written, quotes and all.
    pub raw: String,
    /// The parameter, quotes and escapes undone.
    pub text: String,
}

impl Word {
    /// Takes the place of every word with its name.
    pub fn set(parameter: impl Into<String>) -> Self {
        Self { parameter: parameter.into(), edit: Edit::Set }
    }

    /// Is added to words with its name.
    pub fn add(parameter: impl Into<String>) -> Self {
        Self { parameter: parameter.into(), edit: Edit::Add }
    }

    /// Removes every word with this name.
    pub fn remove(name: impl Into<String>) -> Self {
        Self { parameter: name.into(), edit: Edit::Remove }
    }

    /// Its name, dashes as underscores, as the kernel compares.
    pub fn name(&self) -> String {
        name(&self.parameter)
    }

    /// Checked, with its list of CPUs in the kernel's shortest form.
    fn checked(&self) -> Result<Self, WordError> {
        let wrong = |why: &str| {
            let parameter = self.parameter.chars().take(80).collect();
            Err(WordError::Parameter { parameter, why: why.into() })
        };
        if self.parameter.len() > PARAMETER_BYTES_MAX {
            return wrong("longer than any kernel's command line; shorten it");
        }
        let key = self.parameter.split('=').next().unwrap_or_default();
        if key.is_empty() || key.contains(char::is_whitespace) {
            return wrong("has no name; write it as name or name=value");
        }
        if key.trim_matches('-').is_empty() {
            return wrong("ends the kernel's own parameters; leave it out");
        }
        if self.parameter.contains('"') {
            return wrong("the kernel has no way to take a double quote; leave it out");
        }
        if self.parameter.chars().any(char::is_control) {
            return wrong("holds a control character; leave it out");
        }
        if self.edit == Edit::Remove && self.parameter.contains('=') {
            return wrong("a word is removed by its name; leave out the value");
        }
        Ok(Self { parameter: shortened(&self.parameter), edit: self.edit })
    }
}

/// Name of a parameter, dashes as underscores.
fn name(parameter: &str) -> String {
    parameter.split('=').next().unwrap_or_default().replace('-', "_")
}

/// A list of CPUs as the kernel prints it: `0,1,2` as `0-2`. What is no plain list (`N`, `all`,
/// strides) stays.
pub fn shortened(parameter: &str) -> String {
    let keep = || parameter.to_owned();
    let Some((key, value)) = parameter.split_once('=') else { return keep() };
    if !CPU_LISTS.contains(&name(key).as_str()) {
        return keep();
    }
    let is_flag = |part: &&str| part.starts_with(|first: char| first.is_ascii_alphabetic());
    let flags: Vec<&str> = value.split(',').take_while(is_flag).collect();
    let list = value.split(',').skip(flags.len()).collect::<Vec<_>>().join(",");
    let is_plain = |c: char| c.is_ascii_digit() || [',', '-'].contains(&c);
    if list.is_empty() || !list.chars().all(is_plain) {
        return keep();
    }
    let Ok(cpus) = CpuList::parse(&list, None) else { return keep() };
    let short = cpus.to_string();
    if short.len() > list.len() {
        return keep();
    }
    let parts: Vec<&str> = flags.into_iter().chain([short.as_str()]).collect();
    format!("{key}={}", parts.join(","))
}

/// The words of a command line as the kernel splits it.
pub fn split(line: &str) -> Vec<Token> {
    quoted_words(line).map(|raw| Token { raw: raw.to_owned(), text: unquoted(raw) }).collect()
}

/// A parameter as the kernel wants it: in quotes where it has white space.
pub fn quoted(parameter: &str) -> String {
    if !parameter.contains(char::is_whitespace) {
        return parameter.to_owned();
    }
    match parameter.split_once('=') {
        Some((key, value)) if !key.contains(char::is_whitespace) => format!("{key}=\"{value}\""),
        _ => format!("\"{parameter}\""),
    }
}

/// Words as one line, each as it is written.
pub fn join(tokens: &[Token]) -> String {
    tokens.iter().map(|token| token.raw.as_str()).collect::<Vec<_>>().join(" ")
}

/// The line as the kernel gets it, from words of any boot loader.
pub fn kernel_line(tokens: &[Token]) -> String {
    tokens.iter().map(|token| quoted(&token.text)).collect::<Vec<_>>().join(" ")
}

/// Edits a line in the kernel's own form.
///
/// # Errors
/// A word that cannot be there.
pub fn edited(line: &str, words: &[Word]) -> Result<String, WordError> {
    Ok(join(&edit(split(line), words, quoted)?))
}

/// Edits words; `write` makes the written form of a new parameter. Words that are not named stay as
/// they are and in order; new ones come last, but before a bare `--`, after which words are those
/// of init.
///
/// # Errors
/// A word that cannot be there.
pub fn edit(
    mut tokens: Vec<Token>,
    words: &[Word],
    write: impl Fn(&str) -> String,
) -> Result<Vec<Token>, WordError> {
    let end = tokens.iter().position(|token| token.text == "--").unwrap_or(tokens.len());
    let of_init = tokens.split_off(end);
    for word in words {
        let word = word.checked()?;
        let key = word.name();
        let is_same = |token: &Token| name(&token.text) == key;
        let new = Token { raw: write(&word.parameter), text: word.parameter };
        match word.edit {
            Edit::Remove => tokens.retain(|token| !is_same(token)),
            Edit::Add if tokens.iter().any(|token| token.text == new.text) => {}
            Edit::Add => {
                let at = tokens.iter().rposition(is_same).map_or(tokens.len(), |at| at + 1);
                tokens.insert(at, new);
            }
            Edit::Set => {
                let mut new = Some(new);
                for token in mem::take(&mut tokens) {
                    match is_same(&token) {
                        false => tokens.push(token),
                        true => tokens.extend(new.take()),
                    }
                }
                tokens.extend(new);
            }
        }
    }
    tokens.extend(of_init);
    Ok(tokens)
}

/// Whether a line, as it was read back, says what was requested.
///
/// # Errors
/// The first word that is not as requested.
pub fn check(line: &str, words: &[Word]) -> Result<(), WordError> {
    let tokens = split(line);
    let ours = tokens.iter().take_while(|token| token.text != "--");
    let there: Vec<(String, &str)> =
        ours.map(|token| (name(&token.text), token.text.as_str())).collect();
    for (at, word) in words.iter().enumerate() {
        let word = word.checked()?;
        let key = word.name();
        // A later word for the same parameter has the last say.
        if word.edit != Edit::Add && words[at + 1..].iter().any(|later| later.name() == key) {
            continue;
        }
        let same: Vec<&str> = there.iter().filter(|(k, _)| *k == key).map(|(_, t)| *t).collect();
        let is_there = match word.edit {
            Edit::Set => same == [word.parameter.as_str()],
            Edit::Add => same.contains(&word.parameter.as_str()),
            Edit::Remove => same.is_empty(),
        };
        if !is_there {
            let found = same.join(" ");
            return Err(WordError::NotThere { parameter: word.parameter, found });
        }
    }
    Ok(())
}

/// Whether a line has a parameter of this name.
pub fn has(line: &str, parameter: &str) -> bool {
    split(line)
        .iter()
        .take_while(|token| token.text != "--")
        .any(|token| name(&token.text) == name(parameter))
}

/// Whether the kernel resets after a panic: `panic=` is there and is not 0.
pub(super) fn resets_on_panic(line: &str) -> bool {
    let tokens = split(line);
    let ours = tokens.iter().take_while(|token| token.text != "--");
    let last = ours.filter_map(|token| token.text.strip_prefix("panic=")).last();
    last.is_some_and(|seconds| seconds.parse::<i32>().is_ok_and(|seconds| seconds != 0))
}

/// Bytes of a command line that the kernel of this machine takes, without the final NUL
/// (`COMMAND_LINE_SIZE` of arch/*/include/uapi/asm/setup.h; the smallest where it changed).
pub(super) fn limit(root: &Root) -> usize {
    let arch = root.trimmed("/proc/sys/kernel/arch");
    let size = match arch.value().map(String::as_str) {
        Some(arch) if arch.starts_with("arm") => 1024,
        Some(arch) if arch.starts_with("riscv") => 1024,
        _ => 2048,
    };
    size - 1
}

/// Whether the kernel takes a line, with what the boot loader puts before it.
pub(super) fn fits(line: &str, added: usize, limit: usize) -> Result<(), WordError> {
    let bytes = line.len() + added;
    if bytes > limit {
        return Err(WordError::TooLong { bytes, limit });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn edit_line(line: &str, words: &[Word]) -> String {
        let line = edited(line, words).unwrap();
        check(&line, words).unwrap();
        line
    }

    #[test]
    fn words_are_replaced_in_place_and_duplicates_go() {
        let line = "BOOT_IMAGE=/vmlinuz ro isolcpus=1 quiet isolcpus=2 dyndbg=\"file a.c +p\"";
        assert_eq!(
            edit_line(line, &[Word::set("isolcpus=managed_irq,domain,2,3"), Word::set("nosmt")]),
            "BOOT_IMAGE=/vmlinuz ro isolcpus=managed_irq,domain,2-3 quiet dyndbg=\"file a.c +p\" nosmt"
        );
        assert_eq!(
            edit_line(line, &[Word::remove("isolcpus"), Word::remove("dyndbg")]),
            "BOOT_IMAGE=/vmlinuz ro quiet"
        );
        let consoles = "console=tty0 ro";
        let add = [Word::add("console=ttyS0,115200n8"), Word::add("console=tty0")];
        assert_eq!(edit_line(consoles, &add), "console=tty0 console=ttyS0,115200n8 ro");
    }

    #[test]
    fn nothing_is_glued_and_what_is_for_init_stays_last() {
        // tuned#268: `console=ttyS0,115200n8spectre_v2=off`.
        let line = "console=ttyS0,115200n8 -- splash=1";
        assert_eq!(
            edit_line(line, &[Word::set("spectre_v2=off"), Word::set("splash=")]),
            "console=ttyS0,115200n8 spectre_v2=off splash= -- splash=1"
        );
        assert_eq!(edit_line("", &[Word::set("a=")]), "a=");
        assert_eq!(edit_line("a", &[Word::set("x=b c"), Word::set("d e=f")][..1]), "a x=\"b c\"");
        assert_eq!(edit_line("rcu-nocbs=1 x", &[Word::set("rcu_nocbs=2")]), "rcu_nocbs=2 x");
        // A quote that is not closed runs to the end, as in the kernel.
        assert_eq!(edit_line("ro \"unclosed one", &[Word::remove("ro")]), "\"unclosed one");
    }

    #[test]
    fn lists_are_short_and_the_rest_is_as_given() {
        for (given, short) in [
            ("isolcpus=managed_irq,domain,2,3,4,5,8", "isolcpus=managed_irq,domain,2-5,8"),
            ("nohz_full=1,2,3", "nohz_full=1-3"),
            ("rcu_nocbs=1-N", "rcu_nocbs=1-N"),
            ("rcu_nocbs=all", "rcu_nocbs=all"),
            ("isolcpus=nohz,domain", "isolcpus=nohz,domain"),
            ("irqaffinity=0", "irqaffinity=0"),
            ("irqaffinity=3-1", "irqaffinity=3-1"),
            ("hugepages=1,2,3", "hugepages=1,2,3"),
            ("isolcpus", "isolcpus"),
            ("isolcpus=0-15:1/2", "isolcpus=0-15:1/2"),
        ] {
            assert_eq!(shortened(given), short);
        }
        let cpus: Vec<String> = (1..512).map(|cpu| cpu.to_string()).collect();
        assert_eq!(shortened(&format!("nohz_full={}", cpus.join(","))), "nohz_full=1-511");
    }

    #[test]
    fn what_cannot_be_a_word_is_refused() {
        for (parameter, why) in [
            ("", "no name"),
            ("=x", "no name"),
            ("a b=c", "no name"),
            ("--", "kernel's own"),
            ("x=\"a\"", "double quote"),
            ("x=a\nb", "control"),
        ] {
            let error = edited("ro", &[Word::set(parameter)]).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
        assert!(
            edited("", &[Word::remove("a=b")]).unwrap_err().to_string().contains("by its name")
        );
        assert!(edited("", &[Word::set("x".repeat(5000))]).is_err());
        let too_long = fits(&"x".repeat(2000), 48, 2047).unwrap_err().to_string();
        assert!(too_long.contains("2048 bytes") && too_long.contains("takes 2047"), "{too_long}");
        assert!(fits(&"x".repeat(2000), 47, 2047).is_ok());
    }

    #[test]
    fn reading_back_finds_what_is_missing() {
        let missing = |line: &str, word: Word| check(line, &[word]).unwrap_err().to_string();
        assert!(missing("nohz_full=2-3n", Word::set("nohz_full=2-3")).contains("2-3n"));
        assert!(missing("a=1 a=2", Word::set("a=2")).contains("a=1 a=2"));
        assert!(missing("a=1 b", Word::remove("a")).contains("a=1"));
        assert!(missing("ro -- nosmt", Word::set("nosmt")).contains("nosmt"));
        assert!(has("quiet panic=0", "panic") && !has("quiet -- panic=0", "panic"));
    }

    proptest! {
        #[test]
        fn an_edit_reads_back_and_leaves_the_rest(
            line in "[a-z=\" -]{0,60}",
            name in "[a-z]{1,3}",
            value in "[a-z0-9 ,-]{0,8}",
        ) {
            let word = Word::set(format!("{name}={value}"));
            let before = split(&line);
            // An open quote swallows what is put after it: the last word is then another one.
            prop_assume!(line.matches('"').count() % 2 == 0);
            let after = edited(&line, std::slice::from_ref(&word)).unwrap();
            check(&after, &[word]).unwrap();
            let rest = |tokens: Vec<Token>| -> Vec<Token> {
                tokens.into_iter().filter(|token| super::name(&token.text) != name).collect()
            };
            let of_init = |tokens: &[Token]| tokens.iter().position(|token| token.text == "--");
            if of_init(&before).is_none() {
                prop_assert_eq!(rest(split(&after)), rest(before));
            }
        }

        #[test]
        fn any_line_is_split_and_joined(line in "\\PC{0,80}") {
            let tokens = split(&line);
            prop_assert_eq!(split(&join(&tokens)), tokens);
        }
    }
}
