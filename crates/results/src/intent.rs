//! What an audit was made for, as it is shown.

use rtproof_host::CpuList;
use rtproof_judge::{Intent, profile::Choices, units};
use schemars::JsonSchema;
use serde::Serialize;

/// What an audit was made for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct IntentShown {
    pub profile: String,
    /// Choices of the profile.
    pub choices: Choices,
    pub rt_cpus: CpuList,
    pub housekeeping: CpuList,
    /// Priority of the application.
    pub priority: u32,
    /// Period of its loop.
    pub period_ns: u64,
    pub budget_ns: Option<u64>,
}

impl IntentShown {
    /// As it is shown.
    pub fn of(intent: &Intent) -> Self {
        Self {
            profile: intent.profile.name.clone(),
            choices: intent.profile.choices,
            rt_cpus: intent.rt_cpus.clone(),
            housekeeping: intent.housekeeping.clone(),
            priority: intent.priority,
            period_ns: intent.period_ns,
            budget_ns: intent.budget_ns,
        }
    }

    pub fn line(&self) -> String {
        let cpus = match self.rt_cpus.is_empty() {
            true => "no real-time CPUs".into(),
            false => format!("real-time {}", units::cpus(&self.rt_cpus)),
        };
        let (priority, period) = (self.priority, units::ns(self.period_ns));
        let budget =
            self.budget_ns.map_or("no budget".into(), |ns| format!("budget {}", units::ns(ns)));
        format!("{}, {cpus}, SCHED_FIFO {priority}, period {period}, {budget}", self.profile)
    }
}
