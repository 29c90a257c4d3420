//! A row a second while something is measured, and the sums at the end: `--rows`.

use std::{
    io::Write,
    sync::mpsc::{self, Sender},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use rtproof_judge::{
    LatencySpread,
    units::{self, grouped},
};
use rtproof_record::run::{Mark, MarkKind, Second, ThreadInfo};
use rtproof_run::{
    measure::cells::{NominalScale, quantity},
    prove::Observer,
};
use rtproof_stats::Moments;

/// Longest wait for the last rows to be written.
const END_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(crate) struct RowPrinter {
    printer: Printer,
    threads: Vec<Sums>,
}

/// A thread so far.
#[derive(Clone, Debug)]
struct Sums {
    info: ThreadInfo,
    samples: Moments,
    intervals: Moments,
    missed: u64,
}

/// Lines to stdout by a thread of their own: a paused terminal must not stop the collector.
#[derive(Debug)]
struct Printer {
    to: Option<Sender<String>>,
    join: Option<JoinHandle<()>>,
}

impl RowPrinter {
    /// For the rows of one cell.
    pub(crate) fn new() -> Self {
        let (to, lines) = mpsc::channel::<String>();
        let print = move || {
            for line in lines {
                let mut stdout = anstream::stdout().lock();
                // A reader that went away is no reason to stop measuring.
                let _ = writeln!(stdout, "{}", rtproof_host::text::harmless_text(&line))
                    .and_then(|()| stdout.flush());
            }
        };
        let join = std::thread::Builder::new().name("rtproof/rows".into()).spawn(print).ok();
        Self { printer: Printer { to: Some(to), join }, threads: Vec::new() }
    }

    /// The sums of all seconds; waits until all is written.
    pub(crate) fn end(mut self) {
        self.printer.line(head());
        for sums in &self.threads {
            self.printer.line(row(&sums.info, "all", &sums.samples, &sums.intervals, sums.missed));
        }
        self.printer.end();
    }
}

impl Observer for RowPrinter {
    /// The head of the table, and how to change the threads.
    fn started(&mut self, threads: &[ThreadInfo]) {
        for info in threads {
            self.printer.line(format!(
                "CPU {}: thread {} is {}, {}{}",
                info.cpu,
                info.tid,
                info.workload,
                rtproof_results::policy_name(info.policy),
                if info.priority > 0 { format!(" {}", info.priority) } else { String::new() },
            ));
        }
        self.printer.line(head());
        let sums = |info: &ThreadInfo| Sums {
            info: info.clone(),
            samples: Moments::default(),
            intervals: Moments::default(),
            missed: 0,
        };
        self.threads = threads.iter().map(sums).collect();
    }

    /// A second of a thread.
    fn second(&mut self, info: &ThreadInfo, second: &Second) {
        let totals = &second.totals;
        if let Some(sums) = self.threads.iter_mut().find(|sums| sums.info.number == info.number) {
            sums.samples.merge(&totals.wake);
            sums.intervals.merge(&second.intervals);
            sums.missed += totals.missed;
        }
        let time = units::duration(second.to_ns / 1_000_000 * 1_000_000);
        self.printer.line(row(info, &time, &totals.wake, &second.intervals, totals.missed));
    }

    /// A change from outside.
    fn mark(&mut self, info: &ThreadInfo, mark: &Mark) {
        self.printer.line(marked(info, mark));
    }
}

impl Printer {
    fn line(&self, line: String) {
        if let Some(to) = &self.to {
            let _ = to.send(line);
        }
    }

    fn end(&mut self) {
        self.to = None;
        let start = Instant::now();
        if let Some(join) = self.join.take() {
            while !join.is_finished() && start.elapsed() < END_TIMEOUT {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }
}

/// Content of a row: a second of a thread, or of all.
struct Row<'a> {
    info: &'a ThreadInfo,
    time: &'a str,
    missed: u64,
    scale: NominalScale,
    spread: LatencySpread,
}

impl Row<'_> {
    fn percent(&self, deviation_ns: Option<f64>) -> String {
        percent(deviation_ns.and_then(|ns| self.scale.percent(ns, &self.spread)))
    }

    fn off(&self, value_ns: Option<u64>) -> String {
        percent(value_ns.and_then(|ns| self.scale.off(ns, &self.spread)))
    }
}

/// A column of the rows: title, width, value.
type Column = (&'static str, usize, fn(&Row<'_>) -> String);

const COLUMNS: &[Column] = &[
    ("CPU", 4, |row| row.info.cpu.to_string()),
    ("until", 9, |row| row.time.into()),
    ("n", 8, |row| grouped(row.spread.n)),
    ("missed", 7, |row| grouped(row.missed)),
    ("mean", 11, |row| us(row.spread.mean_ns)),
    ("sd", 10, |row| us(row.spread.sd_ns)),
    ("%", 7, |row| row.percent(row.spread.sd_ns)),
    ("rms", 10, |row| us(row.spread.rms_ns)),
    ("%", 7, |row| row.percent(row.spread.rms_ns)),
    ("min", 10, |row| us(row.spread.min_ns.map(|ns| ns as f64))),
    ("%", 7, |row| row.off(row.spread.min_ns)),
    ("max", 10, |row| us(row.spread.max_ns.map(|ns| ns as f64))),
    ("%", 7, |row| row.off(row.spread.max_ns)),
];

fn us(ns: Option<f64>) -> String {
    ns.map_or("-".into(), |ns| format!("{:.3}", ns / 1000.0))
}

fn percent(percent: Option<f64>) -> String {
    percent.map_or("-".into(), |percent| format!("{percent:.1}"))
}

fn cells(text: impl Fn(&Column) -> String) -> String {
    let cells = COLUMNS.iter().map(|column| format!("{:>width$}", text(column), width = column.1));
    cells.collect::<Vec<_>>().join(" ")
}

fn head() -> String {
    cells(|column| column.0.into()) + "  µs"
}

/// A row: of the intervals where the workload keeps them, else of the samples.
fn row(
    info: &ThreadInfo,
    time: &str,
    samples: &Moments,
    intervals: &Moments,
    missed: u64,
) -> String {
    let (moments, scale) = match intervals.count() {
        0 => (samples, NominalScale::of(quantity(&info.workload), info.period_ns)),
        _ => (intervals, NominalScale::of_intervals(info.period_ns)),
    };
    let row = Row { info, time, missed, scale, spread: scale.spread(moments) };
    cells(|column| (column.2)(&row))
}

fn marked(info: &ThreadInfo, mark: &Mark) -> String {
    let what = match mark.kind {
        MarkKind::Policy => "",
        MarkKind::Affinity => "may run on ",
    };
    format!(
        "{:>4} {:>9} -- changed from outside: {what}{} (was {}), after {} and before {} s",
        info.cpu,
        "",
        mark.after,
        mark.before,
        seconds(mark.since_ns),
        seconds(mark.at_ns)
    )
}

fn seconds(ns: u64) -> String {
    format!("{:.2}", ns as f64 / 1e9)
}

#[cfg(test)]
mod tests {
    use rtproof_host::facts::tasks::Policy;

    use super::*;

    fn info() -> ThreadInfo {
        ThreadInfo {
            number: 0,
            cpu: 1,
            tid: 3368,
            workload: "timer-wakeup".into(),
            policy: Policy::Other,
            priority: 0,
            locked: true,
            period_ns: 1_000_000,
            first_due_ns: 0,
        }
    }

    fn moments(values: &[u64]) -> Moments {
        let mut moments = Moments::default();
        values.iter().for_each(|&value| {
            moments.push(value);
        });
        moments
    }

    #[test]
    fn intervals_are_shown_as_s3_shows_them() {
        let line = row(&info(), "1 s", &moments(&[35_000]), &moments(&[1_035_000]), 2);
        let words: Vec<&str> = line.split_whitespace().collect();
        let expected = "1 1 s 1 2 1035.000 - - 35.000 3.5 1035.000 3.5 1035.000 3.5";
        assert_eq!(words.join(" "), expected);
        assert_eq!(head().split_whitespace().count(), 14);
    }

    #[test]
    fn latencies_are_shown_as_shares_of_the_period() {
        let line = row(&info(), "all", &moments(&[5_000, 15_000]), &Moments::default(), 0);
        let words: Vec<&str> = line.split_whitespace().collect();
        let expected = "1 all 2 0 10.000 7.071 0.7 11.180 1.1 5.000 0.5 15.000 1.5";
        assert_eq!(words.join(" "), expected);
        let none = row(&info(), "1 s", &Moments::default(), &Moments::default(), 1000);
        assert_eq!(none.matches(" -").count(), 9, "{none}");
    }

    #[test]
    fn a_change_is_shown_with_both_states() {
        let mark = Mark {
            thread: 0,
            since_ns: 11_050_000_000,
            at_ns: 12_050_000_000,
            kind: MarkKind::Policy,
            before: "SCHED_OTHER".into(),
            after: "SCHED_FIFO 1".into(),
        };
        let line = marked(&info(), &mark);
        assert!(line.ends_with("SCHED_FIFO 1 (was SCHED_OTHER), after 11.05 and before 12.05 s"));
    }
}
