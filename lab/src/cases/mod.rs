//! All cases, family by family. A new case is a function call in a file of its family; a new family
//! is a file and one line here.

use crate::case::Case;

mod article;
mod capture;
mod causes;
mod common;
mod container;
mod disk;
mod disk_unit;
mod ends;
mod faults;
mod foreign;
mod hostile;
mod import;
mod kernels;
mod launch;
mod measure;
mod noise;
mod planted;
mod power;
mod proofs;
mod rogue;
mod spikes;
mod stalls;
mod topology;
mod trace;
pub(crate) mod tune;
mod watch;

pub use capture::captures;

pub fn all() -> Vec<Case> {
    [
        kernels::cases(),
        stalls::cases(),
        rogue::cases(),
        causes::cases(),
        spikes::cases(),
        topology::cases(),
        measure::cases(),
        import::cases(),
        tune::cases(),
        power::cases(),
        proofs::cases(),
        faults::cases(),
        foreign::cases(),
        ends::cases(),
        hostile::cases(),
        container::cases(),
        launch::cases(),
        capture::cases(),
        article::cases(),
        disk::cases(),
        noise::cases(),
        trace::cases(),
        watch::cases(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn names_are_unique_and_every_case_has_a_mutation() {
        let cases = all();
        let mut names = HashSet::new();
        for case in &cases {
            assert!(names.insert(case.name.clone()), "{} twice", case.name);
            assert!(!case.mutations.is_empty(), "{} has no mutation", case.name);
            for mutation in &case.mutations {
                let is_plain =
                    mutation.fails != "reading the results" && !mutation.fails.is_empty();
                assert!(is_plain, "{}: any fault at all makes {:?} fail", case.name, mutation.says);
            }
            let runs_nothing = case.boots.iter().any(|boot| boot.script.is_empty());
            assert!(!runs_nothing, "{} runs nothing", case.name);
        }
    }

    #[test]
    fn the_cases_that_the_page_of_coverage_names_exist() {
        let lines = include_str!("../../../docs/coverage.tsv").lines();
        let named = lines.filter_map(|line| Some(line.rsplit_once('\t')?.1));
        let named = named.flat_map(|tests| tests.split(" ; "));
        let named: HashSet<&str> = named.filter_map(|test| test.strip_prefix("lab ")).collect();
        let cases = all();
        let known: HashSet<&str> = cases.iter().map(|case| case.name.as_str()).collect();
        let missing: Vec<_> = named.difference(&known).collect();
        assert!(
            named.len() > 30 && missing.is_empty(),
            "{} named; no case: {missing:?}",
            named.len()
        );
    }
}
