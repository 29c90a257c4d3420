//! A line a second for logs: of threads that measure the table of S3, else one for each CPU; or
//! the whole frame as JSON.

use std::{
    io::{self, Write},
    time::Instant,
};

use rtproof_host::harmless;
use rtproof_judge::units;
use rtproof_record::run::ThreadInfo;
use rtproof_report::screen;
use rtproof_results::watch::{Cpu, Frame, Kind, Latency};
use rtproof_run::{
    prove::{Observer, signals::Signals},
    watch::{Row, Watch},
};

use super::terminal::SECOND;
use crate::show::rows::Rows;

/// Lines of CPUs after which the head is printed anew.
const HEAD_EVERY: usize = 24;

/// Prints until the end, a signal, or a reader that went away.
pub(super) fn run(
    watch: &mut Watch,
    signals: &Signals,
    end: Option<Instant>,
    json: bool,
) -> anyhow::Result<()> {
    let mut threads = Threads::default();
    let mut lines = HEAD_EVERY;
    let mut next = Instant::now() + SECOND;
    let written = loop {
        wait(next, signals);
        next += SECOND;
        let is_over = signals.came().is_some() || end.is_some_and(|end| Instant::now() >= end);
        let frame = watch.frame();
        let rows = watch.rows();
        let written = match (json, frame.source.kind) {
            (true, _) => print_json(&frame),
            (false, Kind::Measuring | Kind::Record) => {
                threads.show(rows);
                Ok(())
            }
            (false, Kind::Passive | Kind::Application) => print_lines(&frame, &mut lines),
        };
        if written.is_err() || is_over || watch.is_over() {
            break written;
        }
    };
    threads.end();
    if let Some(why) = watch.frame().source.ended.filter(|_| !json) {
        crate::stderr::line(&why)?;
    }
    match written {
        // A reader that has enough ends it.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => Ok(written?),
    }
}

/// Sleeps; a signal ends it.
fn wait(until: Instant, signals: &Signals) {
    while signals.came().is_none() {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        std::thread::sleep(left.min(SECOND / 5));
    }
}

/// Rows of threads that measure.
#[derive(Default)]
struct Threads {
    rows: Option<Rows>,
    infos: Vec<ThreadInfo>,
}

impl Threads {
    fn show(&mut self, rows: Vec<Row>) {
        for row in rows {
            match row {
                Row::Started(infos) => {
                    self.infos.extend(infos);
                    let infos = self.infos.clone();
                    self.rows.get_or_insert_with(Rows::new).started(&infos);
                }
                Row::Second(thread, second) => {
                    let info = self.infos.iter().find(|info| info.number == thread);
                    if let (Some(info), Some(rows)) = (info, &mut self.rows) {
                        rows.second(info, &second);
                    }
                }
                Row::Mark(mark) => {
                    let info = self.infos.iter().find(|info| info.number == mark.thread);
                    if let (Some(info), Some(rows)) = (info, &mut self.rows) {
                        rows.mark(info, &mark);
                    }
                }
            }
        }
    }

    fn end(self) {
        if let Some(rows) = self.rows {
            rows.end();
        }
    }
}

fn print_json(frame: &Frame) -> io::Result<()> {
    line(&harmless::json(&serde_json::to_string(frame)?))
}

/// The rows of a frame, and the head from time to time.
fn print_lines(frame: &Frame, lines: &mut usize) -> io::Result<()> {
    let is_application = frame.source.kind == Kind::Application;
    if *lines >= HEAD_EVERY {
        *lines = 0;
        line(if is_application { HEAD_OF_THREADS } else { HEAD_OF_CPUS })?;
    }
    let time = screen::time(frame.at_realtime_ns);
    if is_application {
        *lines += frame.latencies.len();
        return frame.latencies.iter().try_for_each(|latency| line(&of_thread(&time, latency)));
    }
    *lines += frame.cpus.len();
    frame.cpus.iter().try_for_each(|cpu| line(&of_cpu(&time, cpu)))
}

const HEAD_OF_CPUS: &str = "    time  CPU  busy %  steal %           deepest    MHz  hot      \
                            irq/s     soft/s   switch/s  most frequent";
const HEAD_OF_THREADS: &str = "    time       tid  thread             wake-ups      late        \
                               now        1 s      worst";

fn of_cpu(time: &str, cpu: &Cpu) -> String {
    let percent = |permille: Option<u32>| {
        permille.map_or("-".into(), |permille| format!("{}.{}", permille / 10, permille % 10))
    };
    let number = |n: Option<u64>| n.map_or("-".into(), |n| n.to_string());
    let deepest = cpu
        .idle
        .last()
        .map_or("-".into(), |state| format!("{} {} %", state.name, percent(Some(state.permille))));
    let top = cpu.interrupts.as_ref().and_then(|rate| rate.top.first());
    format!(
        "{time}  {:>3}  {:>6}  {:>7}  {deepest:>16}  {:>5}  {:>3}  {:>9}  {:>9}  {:>9}  {}",
        cpu.cpu,
        percent(cpu.busy_permille),
        percent(cpu.steal_permille),
        number(cpu.freq_hz.map(|hz| (hz + 500_000) / 1_000_000)),
        number(cpu.throttled),
        number(cpu.interrupts.as_ref().map(|rate| rate.per_s)),
        number(cpu.softirqs.as_ref().map(|rate| rate.per_s)),
        number(cpu.switches_per_s),
        top.map_or("-".into(), |(name, n)| format!("{name} {n}"))
    )
}

fn of_thread(time: &str, latency: &Latency) -> String {
    let ns = |ns: Option<u64>| ns.map_or("-".into(), units::ns);
    format!(
        "{time}  {:>8}  {:<16} {:>10}  {:>8}  {:>9}  {:>9}  {:>9}",
        latency.tid,
        latency.what,
        latency.n,
        latency.late.map_or("-".into(), |n| n.to_string()),
        ns(latency.now_ns),
        ns(latency.second_ns),
        ns(latency.max_ns)
    )
}

/// Written at once: a log is read while it grows.
fn line(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{}", harmless::line(text))?;
    stdout.flush()
}
