//! `--only`: which checks are shown and counted.

use std::collections::BTreeSet;

use rtproof_judge::{Finding, checks};

use crate::exit;

/// The checks asked for; `None`: all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Selection(Option<BTreeSet<&'static str>>);

impl Selection {
    /// Ids and names of sections.
    pub(super) fn of(only: &[String]) -> anyhow::Result<Self> {
        let mut ids = BTreeSet::new();
        for word in only.iter().map(|word| word.trim()).filter(|word| !word.is_empty()) {
            let section = checks::sections().iter().find(|section| section.name == word);
            match (section, checks::by_id(word)) {
                (Some(section), _) => ids.extend(section.checks.iter().map(|check| check.id)),
                (None, Some(check)) => {
                    ids.insert(check.id);
                }
                (None, None) => {
                    let why = rtproof_run::intent::known(word).err().unwrap_or_default();
                    return Err(exit::usage(format!("--only {word}: {why}")));
                }
            }
        }
        if ids.is_empty() && !only.is_empty() {
            return Err(exit::usage("--only: no check is named; write e.g. --only thp,power"));
        }
        Ok(Self((!only.is_empty()).then_some(ids)))
    }

    /// The findings of these checks.
    pub(super) fn of_findings(&self, mut findings: Vec<Finding>) -> Vec<Finding> {
        if let Some(ids) = &self.0 {
            findings.retain(|finding| ids.contains(finding.check.as_str()));
        }
        findings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(only: &str) -> Result<usize, String> {
        let words: Vec<String> = only.split(',').map(str::to_owned).collect();
        let selection = Selection::of(&words).map_err(|error| error.to_string())?;
        Ok(selection.0.map_or(0, |ids| ids.len()))
    }

    #[test]
    fn ids_and_sections() {
        assert_eq!(of("thp,swap,thp"), Ok(2));
        assert!(of("memory").unwrap() > 2);
        assert_eq!(Selection::of(&[]).unwrap(), Selection(None));
        assert!(of("tph").unwrap_err().contains("no such check"));
        assert!(of(" ,").unwrap_err().contains("no check is named"));
    }
}
