//! docs/reference/checks.md: every check, why it matters, how it is changed, and where that is
//! known from.

use std::fmt::Write;

use rtproof_host::{Knob, knob::Place};
use rtproof_judge::{
    application,
    checks::{self, Check},
};

use super::markdown::{head, sentence};

const ABOUT: &str = "What `rtproof check` looks at. Each check answers good, bad, doubtful, \
                     unknown or not applicable; unknown is never good. `rtproof check explain ID` \
                     says the same, what each profile wants, and what it is on this machine.";

pub(crate) fn page() -> String {
    let mut page = head("Checks", ABOUT);
    for section in checks::sections() {
        put(&mut page, &format!("\n## {}: {}\n", section.name, section.title));
        section.checks.iter().for_each(|check| put(&mut page, &text(check)));
    }
    put(&mut page, "\n## application: one application (`--pid`, `--unit`)\n");
    application::all().for_each(|check| put(&mut page, &text(check)));
    page
}

/// What a check says of itself.
fn text(check: &Check) -> String {
    let (id, title, why) = (check.id, sentence(check.title), sentence(check.why));
    let (impact, when) = (check.impact.text(), check.when.title().to_lowercase());
    let knobs: String = check.knobs.iter().map(|one| knob(one)).collect();
    let but = check.trade_off.map_or_else(String::new, |text| format!("- But: {text}\n"));
    let source = check.source;
    format!(
        "\n### {id}\n\n{title} {why}\n\n- Costs: {impact}; changes: {when}\n{knobs}{but}- \
         Source: {source}\n"
    )
}

/// Where a knob is and how it is undone, in a line.
fn knob(knob: &Knob) -> String {
    let place = match knob.place {
        Place::File(path) | Place::Choice(path) => path.replace(" | ", "`, `"),
        Place::Parameter(name) => format!("{name}="),
        Place::BuildOption(name) => format!("CONFIG_{name}"),
        Place::Units(units) => units.join("`, `"),
        Place::Key(what) | Place::Other(what) => what.to_owned(),
    };
    let boot = knob.boot.map_or_else(String::new, |boot| format!(", or boot with `{boot}`"));
    let undo =
        if knob.is_counter { String::new() } else { format!("; undo: {}", knob.undo.text()) };
    let since = knob.since.map_or_else(String::new, |(a, b)| format!("; since Linux {a}.{b}"));
    format!("- Where: `{place}`{boot}{undo}{since}\n")
}

fn put(page: &mut String, text: &str) {
    page.write_str(text).expect("a string takes everything");
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_check_is_documented_once() {
        let all = checks::all().chain(application::all());
        let all: Vec<&str> = all.map(|check| check.id).collect();
        let ids: BTreeSet<&str> = all.iter().copied().collect();
        assert_eq!(ids.len(), all.len());
        let page = page();
        for id in all {
            assert_eq!(page.matches(&format!("\n### {id}\n")).count(), 1, "{id}");
        }
    }
}
