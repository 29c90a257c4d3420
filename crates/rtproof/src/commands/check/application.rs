//! The application of `--pid` and `--unit`: whether it is really real-time.

use std::io;

use rtproof_host::{
    Facts, Root,
    facts::app::{App, Target},
};
use rtproof_judge::{Finding, Intent, application, units};
use rtproof_report::text::{Detail, Sheet};
use schemars::JsonSchema;
use serde::Serialize;

use crate::exit;

/// What is said of an application; its JSON form, too.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Application {
    /// Id of the main process.
    pid: u32,
    /// Service or scope, where it runs in one.
    unit: Option<String>,
    /// Name of the main process.
    name: String,
    /// Number of processes that were looked at.
    processes: usize,
    /// Number of their threads.
    threads: usize,
    pub(super) findings: Vec<Finding>,
}

/// The application asked for, if there is one.
///
/// # Errors
/// Usage: no such process or unit, one that does not run or may not be looked at.
pub(super) fn read(
    root: &Root,
    pid: Option<u32>,
    unit: Option<&str>,
) -> anyhow::Result<Option<App>> {
    let target = match (pid, unit) {
        (Some(pid), _) => Target::Pid(pid),
        (None, Some(unit)) => Target::Unit(unit.into()),
        (None, None) => return Ok(None),
    };
    App::read(root, &target).map(Some).map_err(|error| exit::usage(error.to_string()))
}

/// Takes from the application what is open: its highest priority, and its CPUs if they are
/// real-time CPUs. An application beside the isolated CPUs is for `app-affinity` to find.
pub(super) fn refine(
    intent: &mut Intent,
    (is_priority_open, are_cpus_open): (bool, bool),
    facts: &Facts,
    app: &App,
) {
    if is_priority_open {
        intent.priority = application::priority(app).unwrap_or(intent.priority);
    }
    let own = application::cpus(app);
    let within = own.filter(|own| own.difference(&intent.rt_cpus).is_empty());
    if let Some(own) = within.filter(|_| are_cpus_open) {
        let online = facts.cpus.online.value().cloned().unwrap_or_default();
        let isolated = facts.cpus.isolated.value().cloned().unwrap_or_default();
        intent.housekeeping = online.difference(&own).difference(&isolated);
        intent.rt_cpus = own;
    }
}

impl Application {
    /// Answers every question about an application.
    pub(super) fn judge(facts: &Facts, app: &App, intent: &Intent) -> Self {
        Self {
            pid: app.pid,
            unit: app.unit.value().cloned().flatten(),
            name: app.name.clone(),
            processes: app.processes.len(),
            threads: app.thread_count(),
            findings: application::judge_all(facts, app, intent),
        }
    }

    /// Prints it as text.
    pub(super) fn print(&self, to: &mut Sheet, detail: Detail) -> io::Result<()> {
        let unit = self.unit.as_ref().map_or_else(String::new, |unit| format!(", {unit}"));
        let others = match self.processes {
            0 | 1 => String::new(),
            more => format!(" of {more} processes"),
        };
        let threads = units::count(self.threads, "thread");
        let head = format!("{} (pid {}{unit}, {threads}{others})", self.name, self.pid);
        rtproof_report::text::application(to, &head, &self.findings, detail)
    }
}
