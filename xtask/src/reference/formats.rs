//! docs/reference/formats.md: results of other tools that are read, and forms that are written.

use std::fmt::Write;

use rtproof_record::{export, import};

use super::markdown::{cell, head};

const ABOUT: &str = "`rtproof import` reads the results of other tools; `rtproof export` writes \
                     records in forms that other tools open.";

/// The page, from both lists.
pub(crate) fn page(importers: &[import::Importer], exporters: &[export::Exporter]) -> String {
    let mut page = head("Formats", ABOUT);
    page.push_str("\n## Imports\n\n| format | what it is |\n|---|---|\n");
    for format in importers {
        row(&mut page, &[&format!("`{}`", format.id), format.title]);
    }
    page.push_str("\n## Exports\n\n| format | content | tables |\n|---|---|---|\n");
    for format in exporters {
        row(&mut page, &[&format!("`{}`", format.id), format.title, &format.tables.join(", ")]);
    }
    page
}

fn row(page: &mut String, cells: &[&str]) {
    let cells: Vec<String> = cells.iter().map(|text| cell(text)).collect();
    writeln!(page, "| {} |", cells.join(" | ")).expect("a string takes everything");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_is_a_row() {
        let page = page(import::FORMATS, export::FORMATS);
        assert_eq!(page.matches("\n| `").count(), import::FORMATS.len() + export::FORMATS.len());
        assert!(page.contains("\n| `rtla-timerlat-hist` | rtla timerlat hist. |\n"));
    }
}
