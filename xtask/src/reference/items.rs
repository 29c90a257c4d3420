//! docs/reference/workloads.md and loads.md: every item by name, with what it says of itself.

use std::fmt::Write;

use super::markdown::{head, sentence};

/// A page of items.
pub(crate) struct Kind {
    title: &'static str,
    about: &'static str,
}

/// What a measured thread does.
pub(crate) const WORKLOADS: Kind =
    Kind { title: "Workloads", about: "What a measured thread does each cycle." };

pub(crate) const LOADS: Kind =
    Kind { title: "Loads", about: "What disturbs the machine while it is measured." };

/// What a workload says of itself: what it measures, what its samples are, what it takes.
pub(crate) fn workload(workload: &dyn rtproof_measure::workloads::Workload) -> String {
    let mut text = sentence(workload.describe().about).to_string();
    write!(text, "\n\nSamples: {}.", workload.quantity().words()).expect("a string");
    if let Some(parameter) = workload.describe().parameter {
        write!(text, "\nAfter a colon: {parameter}.").expect("a string");
    }
    text
}

/// The page, from names and descriptions.
pub(crate) fn page<'a>(kind: &Kind, items: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let mut page = head(kind.title, kind.about);
    for (name, about) in items {
        write!(page, "\n## {name}\n\n{}\n", sentence(about)).expect("a string takes everything");
    }
    page
}

/// Lists of loads by name, as a table.
pub(crate) fn named(named: &[rtproof_measure::loads::NamedLoad]) -> String {
    let mut text = String::from(
        "\n## s0 to s4\n\nThe loads that the sources (docs/coverage.md) measured beside, as lists \
         of those above. A\nrecord holds the list.\n\n| name | loads | source |\n|---|---|---|\n",
    );
    for named in named {
        let (name, loads, about) = (named.name, named.loads, named.about);
        writeln!(text, "| `{name}` | `{loads}` | {about} |").expect("a string takes everything");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_is_a_section() {
        let page = page(&LOADS, [("fork", "Forks.")].into_iter());
        assert!(page.contains("# Loads\n"));
        assert!(page.ends_with("\n## fork\n\nForks.\n"));
    }
}
