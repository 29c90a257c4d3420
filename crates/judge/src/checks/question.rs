//! Checks whose texts are data: what the real-time CPUs are asked about is answered here for all of
//! them, the rest is one function.

use rtproof_host::{CpuList, Facts, Knob};

use super::{Check, draft::Draft, machine};
use crate::{Finding, Impact, Intent, When};

/// One check. `..question::BLANK` fills in what it does not say.
pub(super) struct Question {
    /// As in [`Check`].
    pub id: &'static str,
    /// As in [`Check`].
    pub title: &'static str,
    /// As in [`Check`].
    pub why: &'static str,
    /// As in [`Check`].
    pub source: &'static str,
    /// As in [`Check`].
    pub trade_off: Option<&'static str>,
    /// As in [`Check`].
    pub impact: Impact,
    /// As in [`Check`].
    pub when: When,
    /// As in [`Check`].
    pub knobs: &'static [&'static Knob],
    /// What it needs to be asked.
    pub needs: Needs,
    /// What is wanted.
    pub wanted: fn(&Intent) -> String,
    /// The answer.
    pub judge: fn(Draft, &Facts, &Intent) -> Finding,
}

/// What a question needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Needs {
    /// Nothing: it is about the machine.
    Nothing,
    /// Real-time CPUs that are there.
    RealTimeCpus,
    /// These, and other CPUs that work can be moved to.
    OtherCpus,
}

/// What most of them have in common.
pub(super) const BLANK: Question = Question {
    id: "",
    title: "",
    why: "",
    source: "",
    trade_off: None,
    impact: Impact::Tens,
    when: When::Now,
    knobs: &[],
    needs: Needs::OtherCpus,
    wanted: |_| String::new(),
    judge: |draft, _, _| draft.unknown("not asked"),
};

impl Check for Question {
    super::texts_are_fields!(
        id: &'static str,
        title: &'static str,
        why: &'static str,
        source: &'static str,
        trade_off: Option<&'static str>,
        impact: Impact,
        when: When
    );

    fn knobs(&self) -> Vec<&'static Knob> {
        self.knobs.to_vec()
    }

    fn judge(&self, facts: &Facts, intent: &Intent) -> Finding {
        let draft = Draft::of(self, (self.wanted)(intent));
        if self.needs == Needs::Nothing {
            return (self.judge)(draft, facts, intent);
        }
        let draft = draft.cpus(&intent.rt_cpus);
        if intent.rt_cpus.is_empty() {
            return draft.no_rt_cpus(facts);
        }
        let missing = machine::rt_cpus(facts, intent).1;
        if !missing.is_empty() {
            return draft.gone(facts, &missing);
        }
        if self.needs == Needs::OtherCpus && machine::is_all_rt(facts, intent) {
            return draft
                .read(&facts.cpus.online, CpuList::to_string)
                .not_applicable("every CPU is a real-time CPU: there is no other to move work to");
        }
        (self.judge)(draft, facts, intent)
    }
}
