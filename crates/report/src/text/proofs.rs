//! Findings of trials as text: every one, because each was asked for by name.

use std::io::{self, Write};

use rtproof_judge::Finding;

use super::{Detail, findings::word};
use crate::text::sheet::{BOLD, DIM, Sheet, wrapped};

/// The group of the trials; where all or more is asked for, the evidence, too.
pub fn proofs(to: &mut Sheet, findings: &[&Finding], detail: Detail) -> io::Result<()> {
    if findings.is_empty() {
        return Ok(());
    }
    writeln!(to, "{BOLD}Proof{BOLD:#}    {} tried on this machine", findings.len())?;
    let width = findings.iter().map(|finding| finding.check.len()).max().unwrap_or(0);
    let next = " ".repeat(11 + width + 2);
    let labelled = |to: &mut Sheet, label: &str, text: &str| {
        wrapped(to, &format!("{next}{DIM}{label}{DIM:#} "), &format!("{next}     "), text)
    };
    for finding in findings {
        let (status, style) = word(finding.status);
        let name = &finding.check;
        let first = format!("  {style}{status:<8}{style:#} {name:<width$}  ");
        wrapped(to, &first, &next, &finding.summary)?;
        for seen in finding.evidence.iter().filter(|_| detail.all || detail.verbose) {
            labelled(to, "saw:", &format!("{}: {}", seen.path, seen.value))?;
        }
        for remedy in &finding.remedies {
            labelled(to, "fix:", &remedy.to_string())?;
        }
    }
    Ok(())
}
