//! `rtproof explain --pid PID --rules`: the rules of a real-time program that already runs.

use std::path::Path;

use anyhow::Context as _;
use rtproof_judge::rules::Kept;
use rtproof_results::{
    answer::{Answer, Tone},
    rules::Rules,
};
use rtproof_run::rules::{Attached, observe};
use schemars::JsonSchema;
use serde::Serialize;

use crate::{exit, print::Text};

/// Version of the JSON that `--json` prints.
pub const SCHEMA: &str = "rtproof/explain-rules/1";

/// What `--json` prints.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Document {
    answer: Answer,
    schema: &'static str,
    pid: u32,
    name: String,
    rules: Rules,
}

/// Runs the command. 0: all rules kept; 2: one is broken; 3: not known.
///
/// # Errors
/// No such process; a file that cannot be written.
pub(super) fn run(pid: u32, for_ns: u64, junit: Option<&Path>, json: bool) -> anyhow::Result<u8> {
    let title = |path: &Path| path.display().to_string();
    if let Some(path) = junit.filter(|path| !path.starts_with("/dev")) {
        // Before the time is spent: what was found would be lost.
        rtproof_run::file::try_new(path).with_context(|| title(path))?;
    }
    let Attached { pid, name, rules } = observe(pid, for_ns)?;
    if let Some(path) = junit {
        let program = format!("{name} ({pid})");
        let xml = rtproof_report::junit::rules("rtproof explain --rules", &program, &rules);
        let written = rtproof_run::file::write_whole(path, |to| Ok(to.write_all(xml.as_bytes())?));
        written.with_context(|| title(path))?;
    }
    let (tone, code) = match rules.answer {
        Kept::Kept => (Tone::Good, exit::ACCEPTED),
        Kept::Broken => (Tone::Bad, exit::REFUSED),
        Kept::NotKnown => (Tone::Doubtful, exit::NOT_PROVEN),
    };
    let result = format!("{name} (process {pid}): rules {}", rules.text);
    let answer = Answer { result, tone, ..Answer::default() };
    let text = Text::new(json);
    text.print(|to| {
        rtproof_report::text::answer(to, &answer)?;
        rtproof_report::text::rules(to, &rules, false)
    })?;
    text.print_json(&Document { answer, schema: SCHEMA, pid, name, rules })?;
    Ok(code)
}
