//! After a boot: the effect of each word requested on the kernel's command line.
//!
//! A word can be missing, be refused by the kernel in silence, or have less effect than it says.
//! Where the kernel shows the effect is one table (`places.rs`); what it shows is read by the
//! caller and handed in.

mod effect;
mod places;

use rtproof_host::{Facts, facts::kernel::CommandLine};
use schemars::JsonSchema;
use serde::Serialize;

pub(crate) use self::effect::Observation;
pub use self::effect::{Effect, Shown, WantedWord};
pub use self::places::paths;

/// Whether a boot parameter took effect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Verified {
    pub parameter: String,
    /// Whether it was to be away.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub removes: bool,
    /// Words with its name on the command line of the running kernel; `None`: not readable.
    pub on_command_line: Option<Vec<String>>,
    pub effect: Effect,
    /// Where the kernel shows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// What it shows there, or why that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found: Option<String>,
}

/// What became of each word; `shown` has what [`paths`] asks for.
pub fn words(facts: &Facts, asked: &[WantedWord], shown: &Shown) -> Vec<Verified> {
    asked.iter().map(|asked| word(facts, asked, shown)).collect()
}

fn word(facts: &Facts, asked: &WantedWord, shown: &Shown) -> Verified {
    let parameter = asked.parameter.clone();
    let removes = asked.removes;
    let cmdline = &facts.kernel.cmdline;
    let Some(line) = cmdline.value() else {
        let Observation { effect, path, found } = Observation::blind(cmdline);
        return Verified { parameter, removes, on_command_line: None, effect, path, found };
    };
    let wanted = CommandLine::parse(&parameter);
    let Some(wanted) = wanted.parameters.first() else {
        let found = Some("no parameter".into());
        let effect = Effect::CannotTell;
        let on_command_line = Some(Vec::new());
        return Verified { parameter, removes, on_command_line, effect, path: None, found };
    };
    let given: Vec<Option<&str>> = line.all(&wanted.key).collect();
    let write = |value: &Option<&str>| match value {
        Some(value) => format!("{}={value}", wanted.key),
        None => wanted.key.clone(),
    };
    let on_command_line: Vec<String> = given.iter().map(write).collect();
    let seen = match () {
        () if removes => {
            let effect = if given.is_empty() { Effect::Effective } else { Effect::Missing };
            Observation { effect, path: Some(cmdline.path.clone()), found: None }
        }
        () if !given.contains(&wanted.value.as_deref()) => {
            Observation { effect: Effect::Missing, path: Some(cmdline.path.clone()), found: None }
        }
        () if is_unknown(facts, &wanted.key) => Observation {
            effect: Effect::Ignored,
            path: Some(facts.platform.log.path.clone()),
            found: Some("the kernel says that it does not know it".into()),
        },
        () => places::look(facts, wanted, shown),
    };
    let Observation { effect, path, found } = seen;
    Verified { parameter, removes, on_command_line: Some(on_command_line), effect, path, found }
}

/// Whether the kernel said that it did not take a parameter.
fn is_unknown(facts: &Facts, key: &str) -> bool {
    let log = facts.platform.log.value();
    let names = log.and_then(|log| log.unknown_parameters.as_ref());
    let plain = |name: &str| name.replace('-', "_");
    names.is_some_and(|names| names.iter().any(|name| plain(name) == plain(key)))
}

#[cfg(test)]
mod tests;
