//! Where a run stands among machines of reference, as text.

use std::io;

use rtproof_judge::{compare::Reference, units};

use super::sheet::{BOLD, DIM, Sheet, WARN, wrapped};

/// Files that are named.
const SHOWN: usize = 8;
const MARGIN: &str = "         ";

/// A line for each sentence; the files that were not used below.
pub fn reference(to: &mut Sheet, all: &[Reference]) -> io::Result<()> {
    let mut head = format!("{BOLD}Beside{BOLD:#}   ");
    for one in all {
        for line in &one.lines {
            wrapped(to, &head, MARGIN, line)?;
            head = MARGIN.into();
        }
        for out in one.left_out.iter().take(SHOWN) {
            let text = format!("{} is not used: {}", out.file, out.why);
            wrapped(to, &format!("{MARGIN}{WARN}!{WARN:#} "), "           ", &text)?;
        }
        let more = one.left_out.len().saturating_sub(SHOWN);
        if more > 0 {
            let text = format!("and {} more not used: --json", units::count(more, "file"));
            wrapped(to, MARGIN, MARGIN, &format!("{DIM}{text}{DIM:#}"))?;
        }
    }
    Ok(())
}
