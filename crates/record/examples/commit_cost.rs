//! What a second costs the writer: time of a commit and bytes on disk, for 2 and 64 threads.
//!
//! `cargo run --release -p rtproof-record --example commit_cost [FOLDER [SECONDS]]`. The figures in
//! docs/adr/0003-per-second-histograms-as-blobs.md come from here.

#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a program that prints its measurements"
)]

#[path = "../tests/common/mod.rs"]
mod common;

use std::{fs, path::PathBuf, time::Instant};

use common::{Maker, head, tail};
use rtproof_record::{Writer, read};

fn main() {
    let mut args = std::env::args().skip(1);
    let folder = PathBuf::from(args.next().unwrap_or_else(|| "/tmp".into()));
    let seconds = args.next().map_or(120, |text| text.parse().expect("a number of seconds"));
    for (threads, per_second) in [(2, 1_000), (2, 20_000), (64, 1_000), (64, 20_000)] {
        measure(&folder, threads, per_second, seconds);
    }
}

fn measure(folder: &std::path::Path, threads: u32, per_second: u64, seconds: u64) {
    let path = folder.join(format!("commit-cost-{}.rtproof", std::process::id()));
    let mut writer = Writer::create(&path, &head()).expect("create");
    let mut maker = Maker::new(5, threads, per_second);
    let mut times = Vec::new();
    let created = fs::metadata(&path).expect("metadata").len();
    let io_before = written();
    for at in 0..seconds {
        let tick = maker.tick(at);
        let start = Instant::now();
        writer.append(&tick).expect("append");
        times.push(start.elapsed());
    }
    let io = written() - io_before;
    let open = fs::metadata(&path).expect("metadata").len() - created;
    let tail = tail(&mut maker.threads);
    let start = Instant::now();
    let finished = writer.finish(&tail).expect("finish");
    finished.seal().expect("seal");
    let sealing = start.elapsed();
    let sealed = fs::metadata(&path).expect("metadata").len();
    let start = Instant::now();
    read(&path).expect("read");
    let reading = start.elapsed();
    times.sort_unstable();
    println!(
        "{threads} threads, {per_second} samples/s each, {seconds} s: commit median {:?}, max \
         {:?}; \
         file {} B/s while open, {} B sealed ({} B/s); written {} B/s; seal {sealing:?}; \
         read {reading:?}",
        times[times.len() / 2],
        times[times.len() - 1],
        open / seconds,
        sealed,
        sealed / seconds,
        io / seconds,
    );
    println!("{}", rows(&path));
    fs::remove_file(&path).expect("remove");
}

/// Bytes this process has handed to write(2).
fn written() -> u64 {
    let io = fs::read_to_string("/proc/self/io").unwrap_or_default();
    let line = io.lines().find_map(|line| line.strip_prefix("wchar: "));
    line.and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// The per-second histograms as blobs against the same as rows, in pages of a compact file.
fn rows(path: &std::path::Path) -> String {
    let conn = rusqlite::Connection::open_in_memory().expect("memory");
    conn.execute("ATTACH ?1 AS record", [path.to_str().expect("UTF-8")]).expect("attach");
    conn.execute_batch(
        "CREATE TABLE blobs (second INTEGER, thread INTEGER, view TEXT, data BLOB,
             PRIMARY KEY (second, thread, view)) STRICT, WITHOUT ROWID;
         INSERT INTO blobs SELECT * FROM record.hist_second;
         CREATE TABLE long (second INTEGER, thread INTEGER, view TEXT, bucket INTEGER, n INTEGER,
             PRIMARY KEY (second, thread, view, bucket)) STRICT, WITHOUT ROWID;",
    )
    .expect("tables");
    let run = read(path).expect("read").run;
    let tx = conn.unchecked_transaction().expect("transaction");
    for thread in &run.threads {
        for (at, second) in thread.seconds.iter().enumerate() {
            for (view, pairs) in [("wake", &second.wake), ("missed", &second.missed)] {
                for (bucket, n) in pairs {
                    tx.prepare_cached("INSERT INTO long VALUES (?1, ?2, ?3, ?4, ?5)")
                        .and_then(|mut insert| {
                            let n = i64::try_from(*n).expect("a count");
                            let row = (at as u32, thread.info.number, view, *bucket, n);
                            insert.execute(row)
                        })
                        .expect("insert");
                }
            }
        }
    }
    tx.commit().expect("commit");
    let count = |sql: &str| conn.query_row(sql, [], |row| row.get::<_, i64>(0)).expect("count");
    let (blobs, long) = (count("SELECT count(*) FROM blobs"), count("SELECT count(*) FROM long"));
    let data = count("SELECT sum(length(data)) FROM blobs");
    let size = |table: &str| {
        conn.execute_batch("VACUUM").expect("vacuum");
        let before = count("SELECT page_count FROM pragma_page_count('main')");
        conn.execute_batch(&format!("DROP TABLE {table}; VACUUM")).expect("drop");
        (before - count("SELECT page_count FROM pragma_page_count('main')")) * 4_096
    };
    let (blob_bytes, long_bytes) = (size("blobs"), size("long"));
    format!(
        "  per-second histograms: {blobs} blobs, {data} B of data, {blob_bytes} B of pages \
         ({} B a histogram); as rows: {long} rows, {long_bytes} B of pages ({} B a histogram)",
        blob_bytes / blobs,
        long_bytes / blobs
    )
}
