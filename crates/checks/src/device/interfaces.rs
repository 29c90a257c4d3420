//! One question to every network interface that stands for hardware.
//!
//! Which of them serves the real-time application only the user knows, so that nothing here is
//! worse than doubtful, and every interface is named.

use rtproof_host::facts::net::Interface;
use rtproof_host::{Facts, Reading};

use crate::draft::Draft;
use crate::{Evidence, Finding, Remedy};
use crate::{machine, text};

/// Most interfaces named in a summary.
const NAMED_MAX: usize = 3;

/// What is so on one interface.
pub(super) enum Judged {
    Fine(String),
    /// It may cost latency, and what would change that.
    Wrong(String, Remedy),
    /// It takes another reading to tell, and that has no value.
    Unclear(Reading<String>),
}

/// A question: which reading, how it is shown, what its value means.
pub(super) struct Question<T> {
    pub(super) of: fn(&Interface) -> &Reading<Option<T>>,
    pub(super) show: fn(&T) -> String,
    /// How it is shown of an interface that does not have it.
    pub(super) none: &'static str,
    /// Why it does not concern the machine, where no interface has the thing.
    pub(super) lacking: &'static str,
    /// The value of an interface that does not have it; `None`: it is left out.
    pub(super) otherwise: Option<T>,
}

pub(super) fn judge<T>(
    mut draft: Draft,
    facts: &Facts,
    question: &Question<T>,
    look: impl Fn(&Interface, &T) -> Judged,
) -> Finding {
    let reading = &facts.net.interfaces;
    let Some(interfaces) = reading.value() else {
        return draft.blind(reading);
    };
    if interfaces.is_empty() {
        draft = draft.read(reading, |_| "no interface with a device behind it".into());
        if let Some(name) = machine::container(facts) {
            return draft
                .read(&facts.virt.container, |_| name.into())
                .unknown(format!("inside a {name} container the host's interfaces are not seen"));
        }
        return draft.not_applicable("no network interface with a device behind it");
    }
    let (mut fine, mut wrong, mut remedies, mut blind) = (vec![], vec![], vec![], None);
    for interface in interfaces {
        let asked = (question.of)(interface);
        draft = draft.read(asked, |value| match value {
            Some(value) => (question.show)(value),
            None => question.none.into(),
        });
        let Some(value) = asked.value() else {
            blind = blind.or_else(|| Some(asked.as_ref().map(|_| String::new())));
            continue;
        };
        if let Some(value) = value.as_ref().or(question.otherwise.as_ref()) {
            match look(interface, value) {
                Judged::Fine(text) => fine.push(format!("{}: {text}", interface.name)),
                Judged::Wrong(text, remedy) => {
                    wrong.push(format!("{}: {text}", interface.name));
                    remedies.push(remedy);
                }
                Judged::Unclear(reading) => blind = blind.or(Some(reading)),
            }
        }
    }
    if !wrong.is_empty() {
        return draft.remedies(remedies).doubtful(text::first_few(&wrong, NAMED_MAX));
    }
    match blind {
        Some(reading) => draft.blind(&reading),
        None if fine.is_empty() => draft.not_applicable(question.lacking),
        None => draft.good(text::first_few(&fine, NAMED_MAX)),
    }
}

/// A driver as evidence.
pub(super) fn driver(interface: &Interface) -> Evidence {
    Evidence::of(&interface.driver, String::clone)
}

/// A command for one interface.
pub(super) fn command(command: String) -> Remedy {
    Remedy::Command { command }
}

pub(super) const fn on(is_on: bool) -> &'static str {
    if is_on { "on" } else { "off" }
}
