//! `tune apply --prove`: measures a plan and keeps what helps.

use rtproof_host::tune::Machine;
use rtproof_record::Effects;
use rtproof_run::{
    experiment::{Journaled, plan as prove},
    prove::Request,
};
use schemars::JsonSchema;
use serde::Serialize;

use super::{plan, request::RequestArgs};
use crate::{
    answers,
    print::Text,
    show::trying::{self, Trying},
};

const SCHEMA: &str = "rtproof/effects/1";

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Outcome<'a> {
    schema: &'static str,
    record: String,
    report: String,
    effects: &'a Effects,
}

/// Measures a plan and keeps what helps.
pub(super) fn run(
    request: &RequestArgs,
    ids: &[String],
    json: bool,
    machine: &Machine<'_>,
    ns: u64,
) -> anyhow::Result<u8> {
    let root = machine.root();
    let (facts, _, plan) = plan::plan_of(root, request, ids)?;
    let title = request.title("tune apply --prove", ids);
    let mut switch = Journaled::new(machine, &title);
    let (run, text) = (measured(request, ns), Text::new(json));
    let mut trying = Trying::of_plan(text);
    let (results, output) = prove::run(root, facts, &plan, &run, &mut switch, &mut trying)?;
    let cut_short = results.cut_short();
    // What helps is kept: what is left is the proof.
    let prove = |names: &[&str]| (!names.is_empty()).then(|| request.given().prove());
    let answer = answers::experiment::answer(results.effects()?, cut_short.as_deref(), prove);
    let html = trying::show(&results, &answer, text, &output)?;
    text.print_json(&answer.with(&Outcome {
        schema: SCHEMA,
        record: output.record.display().to_string(),
        report: output.html.display().to_string(),
        effects: results.effects()?,
    }))?;
    trying::code(results, html)
}

/// The run that is requested.
pub(crate) fn measured(wish: &RequestArgs, ns: u64) -> Request {
    Request {
        cpus: wish.cpus.clone(),
        intent: wish.intent.requested(),
        priority: wish.priority,
        period_ns: wish.period_ns,
        budget_ns: wish.budget_ns,
        ..Request::new(ns, ".")
    }
}
