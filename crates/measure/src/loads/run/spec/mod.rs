//! Loads as the user names them: `cpu+memory`, `idle`, `stress-ng:--vm 2`, `cpu,cmd:make -j4`.
//! What is parsed here is also what the record holds and what a worker is started with, so parsing
//! is literal and undoes printing; only [`LoadSet::from_command_line`] takes quotes away.

use std::fmt::{Display, Formatter};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::super::built_in::{
    LOADS, find, idle,
    named::{NAMED, loads_of},
};
use super::super::load::Load;
use super::text::{distance, unquoted, words};

const STRESS_NG: &str = "stress-ng:";
const COMMAND: &str = "cmd:";

/// One load, written `cpu`, `ping:4`, `stress-ng:ARGS` or `cmd:COMMAND`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct LoadSpec(Kind);

/// What a load is made of.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Kind {
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
    /// What follows the name of a load is not what it takes.
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
    /// Whether it is the absence of a load.
    pub fn is_idle(&self) -> bool {
        matches!(self.0, Kind::BuiltIn(idle::NAME, _))
    }

    /// Name of its kind: `cpu`, `stress-ng`, `cmd`.
    pub fn name(&self) -> &'static str {
        match self.0 {
            Kind::BuiltIn(name, _) => name,
            Kind::StressNg(_) => STRESS_NG.trim_end_matches(':'),
            Kind::Command(_) => COMMAND.trim_end_matches(':'),
        }
    }

    pub(super) fn kind(&self) -> &Kind {
        &self.0
    }

    /// The load of ours that it names.
    pub(super) fn built_in(&self) -> Option<&'static Load> {
        match self.0 {
            Kind::BuiltIn(name, _) => find(name),
            Kind::StressNg(_) | Kind::Command(_) => None,
        }
    }

    /// What followed its colon.
    pub(super) fn parameter(&self) -> Option<&str> {
        match &self.0 {
            Kind::BuiltIn(_, parameter) => parameter.as_deref(),
            Kind::StressNg(_) | Kind::Command(_) => None,
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
            let split = words(args);
            if split.map_err(|quote| SpecError::Quote { quote, args: args.into() })?.is_empty() {
                return Err(SpecError::NothingToRun { prefix: STRESS_NG, example });
            }
            return Ok(Self(Kind::StressNg(args.into())));
        }
        if let Some(command) = text.strip_prefix(COMMAND) {
            let command = clean(command);
            let example = "cmd:make -j4";
            if command.trim().is_empty() {
                return Err(SpecError::NothingToRun { prefix: COMMAND, example });
            }
            return Ok(Self(Kind::Command(command.into())));
        }
        match text.trim_end() {
            "" => Err(SpecError::Empty { text: text.into() }),
            "none" => Ok(Self(Kind::BuiltIn(idle::NAME, None))),
            text => Self::built_in_of(text),
        }
    }

    /// A load of ours, with what follows its colon.
    fn built_in_of(text: &str) -> Result<Self, SpecError> {
        let (name, parameter) = match text.split_once(':') {
            Some((name, parameter)) => (name, Some(parameter.to_owned())),
            None => (text, None),
        };
        let load = find(name).ok_or_else(|| SpecError::Unknown { name: name.into() })?;
        let expected = match (&load.parameter, &parameter) {
            (None, None) => None,
            (Some(takes), None) => takes.is_needed.then_some(takes.expected),
            (Some(takes), Some(text)) => (!(takes.check)(text)).then_some(takes.expected),
            (None, Some(_)) => Some("nothing after its name"),
        };
        match expected {
            None => Ok(Self(Kind::BuiltIn(load.name, parameter))),
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
            Kind::BuiltIn(name, None) => f.write_str(name),
            Kind::BuiltIn(name, Some(parameter)) => write!(f, "{name}:{parameter}"),
            Kind::StressNg(args) => write!(f, "{STRESS_NG}{args}"),
            Kind::Command(command) => write!(f, "{COMMAND}{command}"),
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
                // What it stands for is read in its place.
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

#[cfg(test)]
mod tests;
