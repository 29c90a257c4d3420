//! Records with hostile rows: whole files with some of their values replaced, read, and some of
//! them judged and shown. A step is twelve bytes: table, column, row, what to put there, and eight
//! bytes of it.
#![no_main]
#![allow(clippy::disallowed_methods, reason = "files of the target's own")]

use std::{fs, path::Path, sync::OnceLock};

use rtproof_judge::{Integrity, Report};
use rtproof_record::{
    import::{self, Hints},
    schema::TABLES,
};
use rusqlite::{Connection, types::Value};

#[path = "../../../crates/record/tests/common/mod.rs"]
mod common;

/// A result of cyclictest, to be a record.
const CYCLICTEST: &[u8] = include_bytes!("../../../fixtures/imports/cyclictest-2.4-h.txt");

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    static RECORDS: OnceLock<[Vec<u8>; 2]> = OnceLock::new();
    let folder = format!("/dev/shm/rtproof-fuzz-record-{}", std::process::id());
    let folder = Path::new(&folder);
    let records = RECORDS.get_or_init(|| records(folder));
    let Some((&which, steps)) = bytes.split_first() else { return };
    let path = folder.join("run.rtproof");
    fs::write(&path, &records[usize::from(which) % 2]).expect("a file in memory");
    {
        let conn = Connection::open(&path).expect("a database");
        steps.chunks_exact(12).take(20).for_each(|step| change(&conn, step));
    }
    let opened = match rtproof_record::read(&path) {
        Ok(opened) => opened,
        Err(error) => {
            assert!(error.to_string().contains("run.rtproof"), "{error}");
            return;
        }
    };
    // To judge and to show takes far longer than to read: one in four, so that reading goes deeper.
    if which & 0x60 != 0 {
        return;
    }
    let standing = Integrity::Altered { why: "a row was changed".into() };
    match &opened.run.imported {
        Some(imported) => drop(rtproof_render::page::imported_html(imported, None)),
        None => {
            let report = Report::new(&opened.run, &standing);
            let extra = rtproof_render::page::Extra::default();
            let page = rtproof_render::page::render(&opened.run, &report, &extra);
            assert!(page.ends_with("</html>"));
        }
    }
});

/// A measured record and an imported one.
fn records(folder: &Path) -> [Vec<u8>; 2] {
    fs::create_dir_all(folder).expect("a folder in memory");
    let (measured, imported) = (folder.join("measured"), folder.join("imported"));
    for path in [&measured, &imported] {
        let _ = fs::remove_file(path);
    }
    common::sealed(&measured, 3);
    let hints = Hints { name: "cyclictest.txt".into(), ..Hints::default() };
    let read = import::read(CYCLICTEST, &hints).expect("a result of cyclictest");
    let finished = import::store(&imported, &read, "0.1.0", &[]).expect("a record");
    finished.seal().expect("sealed");
    [measured, imported].map(|path| fs::read(path).expect("a record"))
}

/// Puts a value where another one is; what the tables forbid stays as it was.
fn change(conn: &Connection, step: &[u8]) {
    let &[table, column, row, kind, ref number @ ..] = step else { return };
    let Ok(number) = <[u8; 8]>::try_from(number).map(i64::from_ne_bytes) else { return };
    let table = &TABLES[usize::from(table) % TABLES.len()];
    let column = table.columns[usize::from(column) % table.columns.len()].name;
    let value = match kind % 8 {
        0 => Value::Integer(number),
        1 => Value::Integer(number % 16),
        2 => Value::Null,
        3 => Value::Text(number.unsigned_abs().to_string()),
        4 => Value::Text(String::from_utf8_lossy(&number.to_ne_bytes()).into_owned()),
        5 => Value::Blob(number.to_ne_bytes().to_vec()),
        6 => Value::Integer(i64::MAX - (number & 3)),
        _ => {
            let sql = format!(
                "DELETE FROM {0} WHERE {column} IS (SELECT {column} FROM {0} LIMIT 1 OFFSET {row})",
                table.name
            );
            let _ = conn.execute(&sql, []);
            return;
        }
    };
    let sql = format!(
        "UPDATE {0} SET {column} = ?1 WHERE {column} IS (SELECT {column} FROM {0} LIMIT 1 OFFSET \
         {row})",
        table.name
    );
    let _ = conn.execute(&sql, [value]);
}
