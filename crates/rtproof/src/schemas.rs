//! Every JSON form that is printed or kept, by the version that it names: the pages of
//! docs/reference are made from this list, and a test finds what is not on it.

use rtproof_results::{answer::Answered, kernel, measure, tune};
use schemars::{JsonSchema, Schema, schema_for};

use crate::commands;

/// A JSON document that rtproof prints, with its schema.
#[derive(Clone, Copy, Debug)]
pub struct Form {
    /// The version as its documents name it, e.g. `rtproof/report/1`.
    pub id: &'static str,
    /// Name of its page in docs/reference, without `.schema.json`.
    pub page: &'static str,
    pub schema: fn() -> Schema,
}

const fn form(id: &'static str, page: &'static str, schema: fn() -> Schema) -> Form {
    Form { id, page, schema }
}

fn of<T: JsonSchema>() -> Schema {
    schema_for!(T)
}

/// All of them, by page.
pub const FORMS: &[Form] = &[
    form("rtproof/capture/1", "capture", of::<commands::capture::Captured<'static>>),
    form("rtproof/check/2", "check", of::<Answered<'static, commands::check::Audit>>),
    form("rtproof/explain/1", "check-explain", of::<commands::check::explain::Document>),
    form(
        "rtproof/compare/2",
        "compare",
        of::<Answered<'static, rtproof_judge::compare::Comparison>>,
    ),
    form(
        "rtproof/experiment/1",
        "experiment",
        of::<Answered<'static, commands::experiment::Outcome<'static>>>,
    ),
    form(
        "rtproof/experiment-boots/1",
        "experiment-boots",
        of::<Answered<'static, commands::experiment::boots::Outcome<'static>>>,
    ),
    form(
        "rtproof/experiment-state/1",
        "experiment-state",
        of::<rtproof_run::experiment::boots::state::State>,
    ),
    form("rtproof/explain-rules/1", "explain-rules", of::<commands::explain::rules::Document>),
    form("rtproof/import/1", "import", of::<rtproof_report::imported::Document>),
    form("rtproof/kernel-bisect/1", "kernel-bisect", of::<kernel::bisect::KernelBisected>),
    form(
        "rtproof/kernel-bisect-next/1",
        "kernel-bisect-next",
        of::<kernel::bisect::KernelBisectNext>,
    ),
    form("rtproof/kernel-boot/1", "kernel-boot", of::<kernel::boot::Booted>),
    form("rtproof/kernel-compare/1", "kernel-compare", of::<kernel::compare::KernelsCompared>),
    form("rtproof/kernel-build/1", "kernel-build", of::<kernel::build::BuiltKernel>),
    form("rtproof/kernel-build-test/1", "kernel-build-test", of::<kernel::build::BuildTests>),
    form("rtproof/kernel-config/1", "kernel-config", of::<kernel::config::Configured>),
    form("rtproof/kernel-find/1", "kernel-find", of::<kernel::find::Offers>),
    form("rtproof/kernel-rebase/1", "kernel-rebase", of::<kernel::rebase::Rebased>),
    form("rtproof/measure/1", "measure", of::<Answered<'static, measure::index::Index>>),
    form("rtproof/measure-plan/1", "measure-plan", of::<measure::plan::Plan>),
    form("rtproof/new/1", "new", of::<commands::new::Made<'static>>),
    form("rtproof/record/1", "record", of::<rtproof_record::export::Document<'static>>),
    form("rtproof/report/1", "report", of::<Answered<'static, rtproof_judge::Report>>),
    form("rtproof/run/1", "run", of::<rtproof_results::launch::Launched>),
    form("rtproof/run-plan/1", "run-plan", of::<rtproof_results::launch::Plan>),
    form("rtproof/tune-applied/1", "tune-applied", of::<Answered<'static, tune::outcome::Applied>>),
    form("rtproof/tune-confirmed/1", "tune-confirmed", of::<commands::tune::confirm::Confirmed>),
    form("rtproof/tune-drift/1", "tune-drift", of::<rtproof_run::tune::watch::Drift>),
    form(
        "rtproof/effects/1",
        "tune-effects",
        of::<Answered<'static, commands::tune::prove::Outcome<'static>>>,
    ),
    form("rtproof/tune-exported/1", "tune-exported", of::<tune::exported::Written>),
    form("rtproof/plan/1", "tune-plan", of::<Answered<'static, tune::plan::Document>>),
    form("rtproof/tune-repeated/1", "tune-repeated", of::<commands::tune::repeat::Document>),
    form("rtproof/tune-status/1", "tune-status", of::<Answered<'static, tune::active::Status>>),
    form("rtproof/tune-undone/1", "tune-undone", of::<Answered<'static, tune::outcome::Undone>>),
    form("rtproof/verify/1", "tune-verify", of::<Answered<'static, tune::verified::Document>>),
    form("rtproof/watch/1", "watch", of::<rtproof_results::watch::Frame>),
];
