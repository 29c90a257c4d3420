//! A check whose texts are data and whose answer is a function: for sections with many of them.

use rtproof_host::{Facts, Knob};

use crate::checks::Check;
use crate::{Finding, Impact, Intent, When};

/// One check.
pub(super) struct Plain {
    pub(super) id: &'static str,
    pub(super) title: &'static str,
    pub(super) why: &'static str,
    pub(super) source: &'static str,
    pub(super) trade_off: Option<&'static str>,
    pub(super) impact: Impact,
    pub(super) when: When,
    pub(super) knobs: &'static [&'static Knob],
    pub(super) judge: fn(&dyn Check, &Facts, &Intent) -> Finding,
}

impl Check for Plain {
    fn id(&self) -> &'static str {
        self.id
    }

    fn title(&self) -> &'static str {
        self.title
    }

    fn why(&self) -> &'static str {
        self.why
    }

    fn source(&self) -> &'static str {
        self.source
    }

    fn trade_off(&self) -> Option<&'static str> {
        self.trade_off
    }

    fn impact(&self) -> Impact {
        self.impact
    }

    fn when(&self) -> When {
        self.when
    }

    fn knobs(&self) -> Vec<&'static Knob> {
        self.knobs.to_vec()
    }

    fn judge(&self, facts: &Facts, intent: &Intent) -> Finding {
        (self.judge)(self, facts, intent)
    }
}
