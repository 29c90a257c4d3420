//! docs/reference/checks.md: every check, why it matters and where that is known from.

use std::fmt::Write;

use rtproof_judge::checks::Check;

use super::{head, sentence};

const ABOUT: &str = "What `rtproof check` looks at. Each check answers good, bad, doubtful, \
                     unknown or not applicable; unknown is never good.";

/// The page.
pub(crate) fn page(checks: &[&dyn Check]) -> String {
    let mut page = head("Checks", ABOUT);
    for check in checks {
        let (title, why) = (sentence(check.title()), sentence(check.why()));
        let (id, source) = (check.id(), check.source());
        write!(page, "\n## {id}\n\n{title} {why}\n\nSource: {source}\n")
            .expect("a string takes everything");
    }
    page
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_check_is_documented_once() {
        let checks: Vec<_> = rtproof_judge::checks::all().collect();
        let ids: BTreeSet<_> = checks.iter().map(|check| check.id()).collect();
        assert_eq!(ids.len(), checks.len());
        let page = page(&checks);
        for check in checks {
            assert!(page.contains(&format!("\n## {}\n", check.id())));
            for text in [check.title(), check.why(), check.source()] {
                assert!(!text.trim().is_empty(), "{}", check.id());
            }
        }
    }
}
