//! docs/reference/causes.md: every cause that a late wake-up can have, how it is recognised, and
//! what removes it.

use std::collections::BTreeSet;
use std::fmt::Write;

use rtproof_judge::{
    application,
    causes::{self, CAUSES, Cause},
    proof,
};

use super::markdown::{head, sentence};

const ABOUT: &str = "What a late wake-up can be explained by. The time from due to run is cut into \
                     moments; each is offered to these causes in this order, and the first that \
                     claims it has it. Shares are disjoint and sum to the latency. A share with \
                     \"or\" may as well be the other cause. `rtproof explain` shows them.";

pub(crate) fn page() -> String {
    let of_application: BTreeSet<&str> = application::all().map(|check| check.id).collect();
    let mut page = head("Causes", ABOUT);
    for cause in CAUSES {
        put(&mut page, &text(cause, &of_application));
    }
    page
}

/// What a cause says of itself.
fn text(cause: &Cause, of_application: &BTreeSet<&str>) -> String {
    let (id, source) = (cause.id, cause.source);
    // One sentence: what a cause says of itself often begins with the name of an event.
    let what = sentence(&format!("{}: {}", cause.title, cause.about));
    let checks: Vec<String> =
        cause.checks.iter().map(|check| link(check, of_application)).collect();
    let checks = match checks.as_slice() {
        [] => String::new(),
        checks => format!("- Checks: {}\n", checks.join(", ")),
    };
    let classes: Vec<&str> = causes::contradictions(id).iter().map(|class| class.text()).collect();
    let certain = match (proof::PROVABLE.contains(&id), classes.as_slice()) {
        _ if id == "unexplained" => String::new(),
        (true, []) => "- Certain where its begin and end were recorded on that CPU\n".into(),
        (true, classes) => format!(
            "- Certain where its begin and end were recorded on that CPU, and these classes of \
             events: {}\n",
            classes.join(", ")
        ),
        (false, []) => "- Likely at most\n".into(),
        (false, classes) => {
            format!("- Likely at most; more may fit without: {}\n", classes.join(", "))
        }
    };
    format!("\n## {id}\n\n{what}\n\n{certain}{checks}- Source: {source}\n")
}

/// A check where the page of checks has it.
fn link(check: &str, of_application: &BTreeSet<&str>) -> String {
    let of = if of_application.contains(check) { " (of an application)" } else { "" };
    format!("[{check}](checks.md#{check}){of}")
}

fn put(page: &mut String, text: &str) {
    page.write_str(text).expect("a string takes everything");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cause_is_documented_once_and_in_order() {
        let page = page();
        let mut from = 0;
        for cause in CAUSES {
            let heading = format!("\n## {}\n", cause.id);
            assert_eq!(page.matches(&heading).count(), 1, "{}", cause.id);
            let at = page.find(&heading).unwrap();
            assert!(at > from, "{} is out of order", cause.id);
            from = at;
        }
    }

    #[test]
    fn links_lead_to_checks() {
        let checks = crate::reference::checks::page();
        for check in CAUSES.iter().flat_map(|cause| cause.checks) {
            assert!(checks.contains(&format!("\n### {check}\n")), "{check}");
        }
        let of_application = BTreeSet::from(["app-a"]);
        assert_eq!(link("app-a", &of_application), "[app-a](checks.md#app-a) (of an application)");
        assert_eq!(link("smt", &of_application), "[smt](checks.md#smt)");
    }
}
