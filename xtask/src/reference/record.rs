//! docs/reference/record.md: the tables of a record, for whoever opens one with SQLite.

use std::fmt::Write;

use rtproof_record::{
    rows_max,
    schema::{APPLICATION_ID, Table, VERSION},
};

use super::markdown::{cell, head};

const ABOUT: &str = "One run is one SQLite file. Any program that reads SQLite can open it.";

pub(crate) fn page(tables: &[Table]) -> String {
    let mut page = head("The record", ABOUT);
    let mut put = |text: String| page.write_str(&text).expect("a string takes everything");
    put(format!("\n`application_id` is {APPLICATION_ID:#x}, `user_version` is {VERSION}.\n"));
    for Table { name, about, columns, .. } in tables {
        let rows = rows_max(name).map_or(String::new(), |most| format!(" {most} rows at most."));
        put(format!("\n## {name}\n\n{about}{rows}\n\n| column | SQL | meaning |\n|---|---|---|\n"));
        for column in *columns {
            let (sql, about) = (cell(column.sql), cell(column.about));
            put(format!("| `{}` | `{sql}` | {about} |\n", column.name));
        }
    }
    page
}

#[cfg(test)]
mod tests {
    use rtproof_record::schema::TABLES;

    use super::*;

    #[test]
    fn every_table_and_column_is_there() {
        let page = page(TABLES);
        for table in TABLES {
            assert!(page.contains(&format!("\n## {}\n", table.name)));
            for column in table.columns {
                assert!(page.contains(&format!("\n| `{}` | ", column.name)));
            }
        }
    }
}
