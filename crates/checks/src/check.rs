//! One check: texts, what it needs, and how it judges.

use rtproof_host::{CpuList, Facts, Knob, facts::app::App};

use crate::case::Case;
use crate::draft::FindingBuilder;
use crate::value::{Absent, Applies, Build, KnobValue, Want};
use crate::{Finding, Impact, Intent, Status, When, machine};

/// One check. `..Check::NEW` fills in what it does not say.
pub struct Check {
    /// Identifier: short, kebab-case, for ever.
    pub id: &'static str,
    /// What it looks at, in one line.
    pub title: &'static str,
    /// Why a bad answer adds latency.
    pub why: &'static str,
    /// Where that is known from: documents, kernel files, measurements.
    pub source: &'static str,
    /// What the wanted value costs, or where the sources disagree.
    pub trade_off: Option<&'static str>,
    /// How much latency a bad answer usually costs.
    pub impact: Impact,
    /// When a change takes effect.
    pub when: When,
    /// What can be set about it.
    pub knobs: &'static [&'static Knob],
    /// What it needs before it can judge.
    pub needs: Needs,
    /// What is wanted, in words.
    pub wanted: Wanted,
    /// How it judges. Never `Good` when what it needs is unknown.
    pub judge: Judge,
}

/// How a check judges.
pub enum Judge {
    /// By the value of its first knob.
    Value(KnobValue),
    /// By options of the kernel's build.
    Build(Build),
    /// By a function of the machine.
    Ask(fn(FindingBuilder, &Facts, &Intent) -> Finding),
    /// By a function of one application.
    App(fn(FindingBuilder, &Case<'_>) -> CheckAnswer),
    /// By what a trial observed; see `trials`.
    Trial,
}

/// A finding. `Err` is a finding, too: one where a check ends early, with `?`.
pub type CheckAnswer = Result<Finding, Box<Finding>>;

/// What a check needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Nothing but online CPUs among the real-time ones, where it judges any.
    Nothing,
    /// Real-time CPUs that the machine has.
    RealTimeCpus,
    /// These, and other CPUs to which work can be moved.
    OtherCpus,
    /// Nothing, and it also judges real-time CPUs that are offline.
    OfflineCpus,
}

/// What is wanted, in words.
#[derive(Clone, Copy)]
pub enum Wanted {
    /// The same text for every intent.
    Text(&'static str),
    /// It depends on the intent.
    Of(fn(&Intent) -> String),
}

impl Judge {
    /// By the value of a knob.
    pub(crate) const fn value(want: fn(&Intent) -> Want, absent: Absent) -> Self {
        Self::Value(KnobValue { want, absent, applies: None })
    }

    /// By the value of a knob, on the machines where it applies.
    pub(crate) const fn value_where(
        want: fn(&Intent) -> Want,
        absent: Absent,
        applies: fn(&Facts, &Intent) -> Applies,
    ) -> Self {
        Self::Value(KnobValue { want, absent, applies: Some(applies) })
    }
}

impl Check {
    /// What most checks have in common.
    pub const NEW: Self = Self {
        id: "",
        title: "",
        why: "",
        source: "",
        trade_off: None,
        impact: Impact::Tens,
        when: When::Now,
        knobs: &[],
        needs: Needs::Nothing,
        wanted: Wanted::Text(""),
        judge: Judge::Trial,
    };

    /// A check of one knob: it has the knob's id and takes effect as the knob does.
    pub(crate) const fn of(knobs: &'static [&'static Knob]) -> Self {
        Self { id: knobs[0].id, when: When::of(knobs[0].effect), knobs, ..Self::NEW }
    }

    /// A finding of it, without status, summary and evidence.
    pub(crate) fn draft(&self) -> FindingBuilder {
        FindingBuilder::of(Finding {
            check: self.id.into(),
            status: Status::Unknown,
            summary: String::new(),
            wanted: match self.wanted {
                Wanted::Text(text) => text.into(),
                Wanted::Of(_) => String::new(),
            },
            cpus: None,
            evidence: Vec::new(),
            why: self.why.into(),
            source: self.source.into(),
            remedies: Vec::new(),
            when: self.when,
            impact: self.impact,
            trade_off: self.trade_off.map(Into::into),
            skipped: None,
        })
    }

    pub fn judge(&self, facts: &Facts, intent: &Intent) -> Finding {
        let draft = match self.wanted {
            Wanted::Of(text) => self.draft().wanted(text(intent)),
            Wanted::Text(_) => self.draft(),
        };
        match &self.judge {
            Judge::Value(value) => value.judge(draft, self.knobs[0], facts, intent),
            Judge::Build(build) => build.judge(draft, facts, intent),
            Judge::Ask(judge) => match self.needs {
                Needs::Nothing | Needs::OfflineCpus => judge(draft, facts, intent),
                Needs::RealTimeCpus | Needs::OtherCpus => match self.has_cpus(draft, facts, intent)
                {
                    Ok(draft) => judge(draft, facts, intent),
                    Err(finding) => *finding,
                },
            },
            Judge::App(_) | Judge::Trial => draft.unknown("it judges no machine"),
        }
    }

    pub fn judge_app(&self, facts: &Facts, app: &App, intent: &Intent) -> Finding {
        match self.judge {
            Judge::App(judge) => {
                judge(self.draft(), &Case { facts, app, intent }).unwrap_or_else(|finding| *finding)
            }
            _ => self.judge(facts, intent),
        }
    }

    /// The draft where the machine has the CPUs that it needs.
    fn has_cpus(
        &self,
        draft: FindingBuilder,
        facts: &Facts,
        intent: &Intent,
    ) -> Result<FindingBuilder, Box<Finding>> {
        let draft = draft.cpus(&intent.rt_cpus);
        if intent.rt_cpus.is_empty() {
            return Err(Box::new(draft.no_rt_cpus(facts)));
        }
        let missing = machine::rt_cpus(facts, intent).1;
        if !missing.is_empty() {
            return Err(Box::new(draft.missing_cpus(facts, &missing)));
        }
        if self.needs == Needs::OtherCpus && machine::is_all_rt(facts, intent) {
            let draft = draft.read(&facts.cpus.online, CpuList::to_string);
            let why = "every CPU is a real-time CPU: there is no other to move work to";
            return Err(Box::new(draft.not_applicable(why)));
        }
        Ok(draft)
    }
}
