//! A plan that `tune plan --json` printed, taken to the letter: it is applied as it stands, or not
//! at all when the machine is no longer what it was made for.

use std::{
    io::{self, Read},
    path::Path,
};

use anyhow::Context;
use rtproof_host::{
    trusted,
    tune::{Machine, State},
};
use rtproof_judge::plan::Conflict;
use rtproof_results::tune::plan::{BootPreview, Previewed, SCHEMA};
use serde::Deserialize;

use super::preview;
use crate::usage::{Invalid, usage};

/// Largest plan read: one of a thousand CPUs with every knob is below 8 MiB.
const BYTES_MAX: u64 = 64 << 20;

/// What is taken of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Stored {
    schema: String,
    pub steps: Vec<Previewed>,
    #[serde(default)]
    pub boot: BootPreview,
    #[serde(default)]
    pub conflicts: Vec<Conflict>,
}

/// Reads a plan; `-` is stdin; `accept_owner`: also one that another user owns or can write.
///
/// # Errors
/// Usage: it is none, or it has a step that rtproof never makes. Another user could have written
/// it.
pub fn read(path: &Path, accept_owner: bool) -> anyhow::Result<Stored> {
    let text =
        text(path, accept_owner).with_context(|| format!("{}: cannot be read", path.display()))?;
    from_text(&text).map_err(|why| {
        let how = "give a file that rtproof tune plan --json printed";
        usage(format!("{}: {why}; {how}", path.display()))
    })
}

fn text(path: &Path, accept_owner: bool) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    if path == Path::new("-") {
        if !accept_owner {
            trusted::given(io::stdin())?;
        }
        io::stdin().lock().take(BYTES_MAX).read_to_end(&mut text)?;
    } else {
        let file = trusted::open_if(path, accept_owner)?;
        file.take(BYTES_MAX).read_to_end(&mut text)?;
    }
    Ok(text)
}

/// A plan from its text.
///
/// # Errors
/// It is none, or has a step that rtproof never makes.
pub fn from_text(text: &[u8]) -> Result<Stored, Invalid> {
    let value: serde_json::Value =
        serde_json::from_slice(text).map_err(|error| format!("not JSON: {error}"))?;
    match value.get("schema").and_then(|schema| schema.as_str()) {
        Some(SCHEMA) => {}
        Some(other) => return Err(format!("schema {other}, expected {SCHEMA}").into()),
        None => return Err(format!("no schema, expected {SCHEMA}").into()),
    }
    let stored = Stored::deserialize(value).map_err(|error| format!("not a plan: {error}"))?;
    stored.steps.iter().try_for_each(|it| it.step.change.may_be_made())?;
    Ok(stored)
}

/// The steps that are still to be made. Those that the machine has by now are left out.
///
/// # Errors
/// The first step that finds something else than the plan says.
pub fn still_to_do(machine: &Machine<'_>, steps: Vec<Previewed>) -> anyhow::Result<Vec<Previewed>> {
    let mut left = Vec::new();
    for (at, it) in steps.iter().enumerate() {
        let change = &it.step.change;
        let target = change.target();
        if it.before.is_none() && preview::comes_with(machine, &steps[..at], change) {
            left.push(it.clone());
            continue;
        }
        let found = machine.state(change)?;
        if machine.is_done(change, &found) {
            continue;
        }
        let Some(planned) = &it.before else {
            anyhow::bail!(
                "{target}: the plan was made without knowing what was there; make it anew as root"
            );
        };
        if !preview::is_same(change, planned, &found) {
            let was = |state: &State| change.before(state);
            anyhow::bail!(
                "{target}: holds {}, and held {} when the plan was made; make the plan anew",
                was(&found),
                was(planned)
            );
        }
        left.push(it.clone());
    }
    Ok(left)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_plan_is_told() {
        for (text, word) in [
            ("", "not JSON"),
            ("[]", "no schema"),
            ("{\"schema\": \"rtproof/check/2\"}", "rtproof/check/2"),
            ("{\"schema\": \"rtproof/plan/1\"}", "steps"),
            ("{\"schema\": \"rtproof/plan/1\", \"steps\": [{}]}", "change"),
        ] {
            let error = from_text(text.as_bytes()).unwrap_err();
            assert!(error.contains(word), "{text}: {error}");
        }
        assert!(from_text(b"{\"schema\": \"rtproof/plan/1\", \"steps\": []}").is_ok());
    }
}
