//! The rows of a cyclictest histogram alone, as gnuplot scripts of the field cut them out
//! (`grep -v '^#'`): a value and a count for each thread. What was beyond the rows went with the
//! lines behind them, so the largest value is only the least that it was.

use super::super::{
    Hints, ImportError, Imported, Importer, Kind, THREADS_MAX,
    draft::{draft, series},
    text::{Cells, Text, head, scaled},
};

pub(crate) const ROWS: Importer = Importer {
    id: "cyclictest-rows",
    title: "The rows of cyclictest -h alone, without the lines round them.",
    detect,
    read,
};

fn detect(bytes: &[u8]) -> bool {
    let head = head(bytes);
    let mut lines = head.lines();
    let mut is_row = |begin: &str| {
        let mut words = lines.next().unwrap_or("").split_whitespace();
        let digits = |word: &str| word.bytes().all(|b| b.is_ascii_digit());
        words.next() == Some(begin) && words.clone().next().is_some() && words.all(digits)
    };
    is_row("000000") && is_row("000001")
}

fn read(bytes: &[u8], hints: &Hints) -> Result<Imported, ImportError> {
    let text = Text::new(bytes, hints)?;
    let unit_ns = hints.unit_ns.unwrap_or(1000);
    let mut cells: Vec<Cells> = Vec::new();
    let mut rows = 0_u64;
    for line in text.lines() {
        let numbers = line.numbers(line.text)?;
        let (value, counts) = match numbers.split_first() {
            Some((&value, counts)) if !counts.is_empty() => (value, counts),
            _ => return Err(line.at("no row, expected a value and its counts")),
        };
        if rows == 0 && counts.len() <= THREADS_MAX {
            cells.resize_with(counts.len(), Cells::default);
        }
        if value != rows || counts.len() != cells.len() {
            let what = format!(
                "row {value} of {} columns, expected row {rows} of {}",
                counts.len(),
                cells.len()
            );
            return Err(line.at(what));
        }
        let low_ns = line.ns(value, unit_ns)?;
        for (cells, &n) in cells.iter_mut().zip(counts) {
            cells.push(low_ns, unit_ns, n).map_err(|what| line.at(what))?;
        }
        rows += 1;
    }
    let mut imported = draft("cyclictest", unit_ns, hints);
    for (i, cells) in cells.into_iter().enumerate() {
        let mut thread = series(format!("thread {i}"), Kind::Latency);
        thread.n = cells.total();
        (thread.min_ns, thread.max_ns) = cells.edges().unzip();
        thread.max_is_at_least = thread.n > 0;
        thread.bins = cells.finish(0, 0, None).map_err(|what| text.at(rows, what))?;
        imported.threads.push(thread);
    }
    imported.censored_above_ns = scaled(rows, unit_ns);
    imported.doubt(
        "overflow-unknown",
        "only the rows are in the file: how many samples were beyond them, and how late, is \
         not known. The largest value is the least that it was; with -H the last column is a \
         sum",
    );
    imported.not_ended();
    imported.no_cpus();
    super::conclude(&mut imported, Some(0));
    Ok(imported)
}
