//! Loads as the user names them: `cpu+memory`, `idle`, `stress-ng:--vm 2`, `cpu,cmd:make -j4`.
//! What is parsed here is also what the record holds and what a worker is started with, so parsing
//! is literal and undoes printing; only [`LoadSet::from_command_line`] takes quotes away.

/// Both are strings in files.
macro_rules! string_form {
    ($type:ty) => {
        impl TryFrom<String> for $type {
            type Error = SpecError;

            fn try_from(text: String) -> Result<Self, SpecError> {
                text.parse()
            }
        }

        impl From<$type> for String {
            fn from(value: $type) -> Self {
                value.to_string()
            }
        }
    };
}

#[cfg(test)]
mod tests;

use std::{
    fmt::{Display, Formatter},
    path::PathBuf,
    str::FromStr,
};

use serde::{Deserialize, Serialize};

use rtproof_host::{CpuList, trusted};

use super::net::{NAMED, loads_of};
use super::{LOADS, Load, cpu, find_load};

const STRESS_NG: &str = "stress-ng:";

const COMMAND: &str = "cmd:";

/// One load, written `cpu`, `ping:4`, `stress-ng:ARGS` or `cmd:COMMAND`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct LoadSpec(LoadKind);

/// What a load is made of.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum LoadKind {
    /// Name of one of [`LOADS`], and what followed its colon.
    BuiltIn(&'static str, Option<String>),
    /// Arguments of stress-ng, as written.
    StressNg(String),
    /// A command for `sh -c`.
    Command(String),
}

/// Loads that run together, written `cpu+memory`; never empty, no load twice.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct LoadSet(Vec<LoadSpec>);

/// What is wrong with the text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    #[error("\"{name}\" is not a load{}; known are {}", hint(name), known())]
    Unknown { name: String },
    /// Invalid parameter after the name of a load.
    #[error("{load}{}: expected {expected}", written(parameter.as_deref()))]
    Parameter {
        load: &'static str,
        /// What followed the colon; `None`: there was none.
        parameter: Option<String>,
        expected: &'static str,
    },
    /// A name is missing, e.g. between two commas.
    #[error("\"{text}\" lacks the name of a load; known are {}", known())]
    Empty { text: String },
    /// `stress-ng:` or `cmd:` with nothing behind it.
    #[error("\"{prefix}\" lacks what to run, e.g. {example}")]
    NothingToRun {
        prefix: &'static str,
        /// How it is written.
        example: &'static str,
    },
    /// The arguments of stress-ng cannot be split.
    #[error("a {quote} quote is not closed in the arguments \"{args}\"")]
    Quote { quote: char, args: String },
    /// A character that no argument can hold.
    #[error("\"{text}\" holds a zero byte, which no argument can: remove it")]
    ZeroByte { text: String },
    /// `idle` together with another load.
    #[error("\"{text}\": idle means no load, so it stands alone; remove it or the others")]
    IdleNotAlone { text: String },
    /// The same load twice.
    #[error("\"{text}\": {name} is named twice; a load already uses every load CPU")]
    Twice { text: String, name: String },
}

impl LoadSpec {
    /// Whether it means no load.
    pub fn is_idle(&self) -> bool {
        matches!(self.0, LoadKind::BuiltIn(cpu::NAME, _))
    }

    /// Name of its kind: `cpu`, `stress-ng`, `cmd`.
    pub fn name(&self) -> &'static str {
        match self.0 {
            LoadKind::BuiltIn(name, _) => name,
            LoadKind::StressNg(_) => STRESS_NG.trim_end_matches(':'),
            LoadKind::Command(_) => COMMAND.trim_end_matches(':'),
        }
    }

    pub(super) fn kind(&self) -> &LoadKind {
        &self.0
    }

    /// The load of ours that it names.
    pub(super) fn built_in(&self) -> Option<&'static Load> {
        match self.0 {
            LoadKind::BuiltIn(name, _) => find_load(name),
            LoadKind::StressNg(_) | LoadKind::Command(_) => None,
        }
    }

    /// What followed its colon.
    pub(super) fn parameter(&self) -> Option<&str> {
        match &self.0 {
            LoadKind::BuiltIn(_, parameter) => parameter.as_deref(),
            LoadKind::StressNg(_) | LoadKind::Command(_) => None,
        }
    }
}

impl LoadSpec {
    /// `clean`: what is made of the text behind a prefix.
    fn parse(text: &str, clean: fn(&str) -> &str) -> Result<Self, SpecError> {
        let text = text.trim_start();
        if text.contains('\0') {
            return Err(SpecError::ZeroByte { text: text.replace('\0', "\\0") });
        }
        if let Some(args) = text.strip_prefix(STRESS_NG) {
            let args = clean(args);
            let example = "stress-ng:--cpu 2 --vm 1";
            let split = split_words(args);
            if split.map_err(|quote| SpecError::Quote { quote, args: args.into() })?.is_empty() {
                return Err(SpecError::NothingToRun { prefix: STRESS_NG, example });
            }
            return Ok(Self(LoadKind::StressNg(args.into())));
        }
        if let Some(command) = text.strip_prefix(COMMAND) {
            let command = clean(command);
            let example = "cmd:make -j4";
            if command.trim().is_empty() {
                return Err(SpecError::NothingToRun { prefix: COMMAND, example });
            }
            return Ok(Self(LoadKind::Command(command.into())));
        }
        match text.trim_end() {
            "" => Err(SpecError::Empty { text: text.into() }),
            "none" => Ok(Self(LoadKind::BuiltIn(cpu::NAME, None))),
            text => Self::built_in_of(text),
        }
    }

    /// A load of ours, with what follows its colon.
    fn built_in_of(text: &str) -> Result<Self, SpecError> {
        let (name, parameter) = match text.split_once(':') {
            Some((name, parameter)) => (name, Some(parameter.to_owned())),
            None => (text, None),
        };
        let load = find_load(name).ok_or_else(|| SpecError::Unknown { name: name.into() })?;
        let expected = match (&load.parameter, &parameter) {
            (None, None) => None,
            (Some(takes), None) => takes.is_needed.then_some(takes.expected),
            (Some(takes), Some(text)) => (!(takes.check)(text)).then_some(takes.expected),
            (None, Some(_)) => Some("nothing after its name"),
        };
        match expected {
            None => Ok(Self(LoadKind::BuiltIn(load.name, parameter))),
            Some(expected) => Err(SpecError::Parameter { load: load.name, parameter, expected }),
        }
    }
}

impl FromStr for LoadSpec {
    type Err = SpecError;

    /// Takes what `Display` prints, to the letter.
    fn from_str(text: &str) -> Result<Self, SpecError> {
        Self::parse(text, |text| text)
    }
}

impl Display for LoadSpec {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match &self.0 {
            LoadKind::BuiltIn(name, None) => f.write_str(name),
            LoadKind::BuiltIn(name, Some(parameter)) => write!(f, "{name}:{parameter}"),
            LoadKind::StressNg(args) => write!(f, "{STRESS_NG}{args}"),
            LoadKind::Command(command) => write!(f, "{COMMAND}{command}"),
        }
    }
}

impl LoadSet {
    /// The loads, in the order named.
    pub fn as_slice(&self) -> &[LoadSpec] {
        &self.0
    }

    /// Takes what a user typed: arguments and commands may stand in one more pair of quotes, as in
    /// `cmd:"make -j4"`. Not for what `Display` printed: there every quote belongs to the command.
    ///
    /// # Errors
    /// What is wrong with the text.
    pub fn from_command_line(text: &str) -> Result<Self, SpecError> {
        Self::parse(text, unquoted)
    }

    pub fn is_idle(&self) -> bool {
        self.0.iter().all(LoadSpec::is_idle)
    }

    fn parse(text: &str, clean: fn(&str) -> &str) -> Result<Self, SpecError> {
        let mut specs: Vec<LoadSpec> = Vec::new();
        let mut rest = Some(text.trim_start());
        while let Some(part) = rest {
            let takes_all = [STRESS_NG, COMMAND].iter().any(|prefix| part.starts_with(prefix));
            let split = if takes_all { None } else { part.split_once([',', '+']) };
            let (name, more) = split.map_or((part, None), |(name, more)| (name, Some(more)));
            if let Some(loads) = loads_of(name.trim()) {
                // The loads it stands for are read instead.
                let added = Self::parse(loads, clean)?;
                for spec in added.0 {
                    add(&mut specs, spec, text)?;
                }
                rest = more.map(str::trim_start);
                continue;
            }
            let spec = LoadSpec::parse(name, clean).map_err(|error| match error {
                SpecError::Empty { .. } => SpecError::Empty { text: text.into() },
                error => error,
            })?;
            add(&mut specs, spec, text)?;
            rest = more.map(str::trim_start);
        }
        if specs.len() > 1 && specs.iter().any(LoadSpec::is_idle) {
            return Err(SpecError::IdleNotAlone { text: text.into() });
        }
        Ok(Self(specs))
    }
}

impl FromStr for LoadSet {
    type Err = SpecError;

    /// Takes what `Display` prints, to the letter.
    fn from_str(text: &str) -> Result<Self, SpecError> {
        Self::parse(text, |text| text)
    }
}

impl Display for LoadSet {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        for (index, spec) in self.0.iter().enumerate() {
            let plus = if index > 0 { "+" } else { "" };
            write!(f, "{plus}{spec}")?;
        }
        Ok(())
    }
}

fn add(specs: &mut Vec<LoadSpec>, spec: LoadSpec, text: &str) -> Result<(), SpecError> {
    if specs.contains(&spec) {
        return Err(SpecError::Twice { text: text.into(), name: spec.to_string() });
    }
    specs.push(spec);
    Ok(())
}

string_form!(LoadSpec);

string_form!(LoadSet);

fn known() -> String {
    let names: Vec<_> = LOADS.iter().map(|load| load.name).collect();
    let named: Vec<_> = NAMED.iter().map(|named| named.name).collect();
    let (names, named) = (names.join(", "), named.join(", "));
    format!("{names}, stress-ng:\"ARGS\", cmd:\"COMMAND\", and lists of them: {named}")
}

fn written(parameter: Option<&str>) -> String {
    parameter.map_or(String::new(), |text| format!(":{text}"))
}

/// ` (did you mean X?)` where a known name is close.
fn hint(name: &str) -> String {
    let lower = name.to_lowercase();
    let prefixes = [STRESS_NG, COMMAND];
    let close = |known: &&str| {
        let (known, lower) = (known.trim_end_matches(':'), lower.trim_end_matches(':'));
        let is_cut = lower.len() >= 2 && known.starts_with(lower);
        is_cut || lower.starts_with(known) || distance(known, lower) <= known.len().min(6) / 3
    };
    let mut names = LOADS.iter().map(|load| load.name).chain(prefixes);
    names.find(close).map(|known| format!(" (did you mean {known}?)")).unwrap_or_default()
}

/// Where loads run and what they may use.
#[derive(Clone, Debug)]
pub struct LoadSettings {
    /// CPUs to disturb; all must be online.
    pub cpus: CpuList,
    /// Directory for the files of loads, UTF-8; empty is the current one.
    pub dir: PathBuf,
    /// Memory that is available (`MemAvailable`, or what a cgroup leaves of it), in bytes.
    pub memory_available: u64,
    /// Size of the last-level cache in bytes; 0 when it is not known.
    pub llc_bytes: u64,
    /// How a worker is started: this binary (`/proc/self/exe`) and the hidden subcommand that calls
    /// [`worker_main`](crate::worker_main), e.g. `["load-worker"]`.
    pub worker_command: (PathBuf, Vec<String>),
}

// stress-ng as a load: the system's own, run as the user says, its own account of its work read.

/// Unit of the work that stress-ng reports.
pub(super) const UNIT: &str = "bogo operations";

pub(super) const NAME: &str = "stress-ng";

/// Prints the work of each stressor at the end.
const METRICS: &str = "--metrics-brief";

/// Program and arguments. Nothing is added but that it shall say how much it did.
pub(super) fn program(args: Vec<String>) -> std::io::Result<Vec<String>> {
    let path = trusted::find_program(NAME)?.to_string_lossy().into_owned();
    Ok(std::iter::once(path).chain(with_metrics(args)).collect())
}

fn with_metrics(mut args: Vec<String>) -> Vec<String> {
    if !args.iter().any(|arg| arg == "--metrics" || arg == METRICS) {
        args.push(METRICS.into());
    }
    args
}

/// Sum over all stressors; `None` where it reported none.
///
/// The line is `stress-ng: metrc: [PID] NAME OPS REAL USER SYSTEM RATE RATE` since 0.15 and the
/// same with `info:` before; later versions may add columns at the end.
pub(super) fn bogo_ops(output: &str) -> Option<u64> {
    let of_line = |line: &str| -> Option<u64> {
        let (_, rest) = line.split_once("] ")?;
        let mut fields = rest.split_ascii_whitespace().skip(1);
        let operations = fields.next()?.parse().ok()?;
        let numbers = fields.map(|field| field.parse::<f64>().ok()).collect::<Option<Vec<_>>>()?;
        (numbers.len() >= 5).then_some(operations)
    };
    output.lines().filter_map(of_line).reduce(u64::saturating_add)
}

// Texts that users type: quotes and words as a shell takes them, and how far a typing error is
// from what was meant.

/// Without the one pair of quotes round the whole that is left where a shell did not take it. Only
/// for what was typed: done twice, it takes quotes that belong to the command.
fn unquoted(text: &str) -> &str {
    let whole = text.trim();
    for quote in ['"', '\''] {
        let inner = whole.strip_prefix(quote).and_then(|text| text.strip_suffix(quote));
        if let Some(inner) = inner.filter(|inner| !inner.contains(quote)) {
            return inner;
        }
    }
    text.trim_start() // white space at the end may be escaped
}

/// Splits arguments at white space, as a shell does with quotes and backslashes and nothing else:
/// no variables, no globs, no second command. The error is the quote that is not closed.
pub(super) fn split_words(args: &str) -> Result<Vec<String>, char> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    let mut chars = args.chars();
    while let Some(c) = chars.next() {
        match (c, quote) {
            (c, Some(open)) if c == open => quote = None,
            ('"' | '\'', None) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            ('\\', None | Some('"')) => word.get_or_insert_default().extend(chars.next()),
            (c, None) if c.is_whitespace() => words.extend(word.take()),
            (c, _) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    match quote {
        Some(quote) => Err(quote),
        None => Ok(words),
    }
}

/// Least number of characters to add, drop, change or swap with the next to get from one to the
/// other (optimal string alignment).
fn distance(from: &str, to: &str) -> usize {
    let (from, to): (Vec<char>, Vec<char>) = (from.chars().collect(), to.chars().collect());
    let mut table = vec![vec![0; to.len() + 1]; from.len() + 1];
    for i in 0..=from.len() {
        for j in 0..=to.len() {
            table[i][j] = if i == 0 || j == 0 {
                i + j
            } else {
                let change = table[i - 1][j - 1] + usize::from(from[i - 1] != to[j - 1]);
                let mut least = change.min(table[i - 1][j] + 1).min(table[i][j - 1] + 1);
                if i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1] {
                    least = least.min(table[i - 2][j - 2] + 1);
                }
                least
            };
        }
    }
    table[from.len()][to.len()]
}

#[cfg(test)]
mod stress_ng_tests {
    use super::*;

    #[test]
    fn operations_are_summed_over_stressors() {
        let output = "\
stress-ng: info:  [11190] setting to a 1 second run per stressor
stress-ng: info:  [11190] dispatching hogs: 1 cpu
stress-ng: metrc: [11190] stressor       bogo ops real time  usr time  sys time   bogo ops/s     bogo ops/s
stress-ng: metrc: [11190]                           (secs)    (secs)    (secs)   (real time) (usr+sys time)
stress-ng: metrc: [11190] cpu                1528      1.00      1.00      0.00      1525.56        1525.48
stress-ng: metrc: [11190] vm                   20      1.00      1.00      0.00        20.00          20.00
stress-ng: info:  [11190] successful run completed in 1.00s
";
        assert_eq!(bogo_ops(output), Some(1548));
        assert_eq!(bogo_ops(&output.replace("metrc:", "info: ")), Some(1548));
        assert_eq!(bogo_ops("stress-ng: info:  [1] successful run completed in 1.00s\n"), None);
    }

    #[test]
    fn metrics_are_asked_for_once() {
        let with = |args: &[&str]| with_metrics(args.iter().map(ToString::to_string).collect());
        assert_eq!(with(&["--cpu", "1"]), ["--cpu", "1", "--metrics-brief"]);
        assert_eq!(with(&["--metrics"]), ["--metrics"]);
    }
}

#[cfg(test)]
mod text_tests {
    use super::*;

    #[test]
    fn one_pair_of_quotes_is_taken() {
        for (text, expected) in [
            (" 'a b' ", "a b"),
            ("\"a 'b'\"", "a 'b'"),
            ("\"''\"", "''"),
            ("'a' 'b'", "'a' 'b'"),
            ("\"a\\\"b\"", "\"a\\\"b\""),
            ("'", "'"),
            (" a\\ ", "a\\ "),
        ] {
            assert_eq!(unquoted(text), expected, "{text}");
        }
    }

    #[test]
    fn words_are_split_as_a_shell_does() {
        let split = |text| split_words(text).unwrap();
        assert_eq!(split("--cpu 2  --vm\t1"), ["--cpu", "2", "--vm", "1"]);
        assert_eq!(split("--job 'a b' \"c 'd\"e \\'"), ["--job", "a b", "c 'de", "'"]);
        assert_eq!(split("'' \"\\\"\""), ["", "\""]);
        assert_eq!(split(" \n"), Vec::<String>::new());
        assert_eq!(split("$HOME;ls"), ["$HOME;ls"]);
    }

    #[test]
    fn distances_are_right() {
        for (from, to, expected) in [
            ("", "", 0),
            ("cpu", "cpu", 0),
            ("disk", "dsik", 1),
            ("net", "", 3),
            ("fork", "frok!", 2),
        ] {
            assert_eq!(distance(from, to), expected, "{from} {to}");
            assert_eq!(distance(to, from), expected, "{to} {from}");
        }
    }

    #[test]
    fn an_open_quote_is_named() {
        assert_eq!(split_words("--job 'a"), Err('\''));
        assert_eq!(split_words("a\\"), Ok(vec!["a".into()]));
    }
}
