//! `watch` on a terminal: keys, drawing, and rows for logs.

use std::{
    io::{self, BufWriter, Stdout, Write, stdout},
    mem::ManuallyDrop,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::Context;
use crossterm::{
    cursor::{Hide, Show},
    event::{self, DisableMouseCapture, EnableMouseCapture, Event},
    execute,
    terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode},
};
use ratatui_core::{layout::Rect, terminal::Terminal};
use ratatui_crossterm::CrosstermBackend;
use signal_hook::consts::{SIGCONT, SIGTSTP};

use rtproof_host::text;
use rtproof_judge::units;
use rtproof_record::run::ThreadInfo;
use rtproof_render::screen::{self, ScreenStyle, ScreenView};
use rtproof_results::watch::{ThreadLatency, WatchCpu, WatchFrame, WatchSourceKind};
use rtproof_run::{
    prove::{Observer, Signals},
    watch::{Watch, WatchRow},
};

use super::KeyAction;
use crate::show::rows::RowPrinter;

// A line a second for logs: of threads that measure the table of S3, else one for each CPU; or
// the whole frame as JSON.

/// Lines of CPUs after which the head is printed anew.
const HEAD_EVERY: usize = 24;

/// Prints until the end, a signal, or a reader that went away.
pub(super) fn run_rows(
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
        let is_over = signals.received().is_some() || end.is_some_and(|end| Instant::now() >= end);
        let frame = watch.frame();
        let rows = watch.rows();
        let written = match (json, frame.source.kind) {
            (true, _) => print_json(&frame),
            (false, WatchSourceKind::Measuring | WatchSourceKind::Record) => {
                threads.show(rows);
                Ok(())
            }
            (false, WatchSourceKind::Passive | WatchSourceKind::Application) => {
                print_lines(&frame, &mut lines)
            }
        };
        if written.is_err() || is_over || watch.is_over() {
            break written;
        }
    };
    threads.end();
    if let Some(why) = watch.frame().source.ended.filter(|_| !json) {
        crate::stderr_line(&why)?;
    }
    match written {
        // A reader that has enough ends it.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => Ok(written?),
    }
}

/// Sleeps; a signal ends it.
fn wait(until: Instant, signals: &Signals) {
    while signals.received().is_none() {
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
    rows: Option<RowPrinter>,
    infos: Vec<ThreadInfo>,
}

impl Threads {
    fn show(&mut self, rows: Vec<WatchRow>) {
        for row in rows {
            match row {
                WatchRow::Started(infos) => {
                    self.infos.extend(infos);
                    let infos = self.infos.clone();
                    self.rows.get_or_insert_with(RowPrinter::new).started(&infos);
                }
                WatchRow::Second(thread, second) => {
                    let info = self.infos.iter().find(|info| info.number == thread);
                    if let (Some(info), Some(rows)) = (info, &mut self.rows) {
                        rows.second(info, &second);
                    }
                }
                WatchRow::Mark(mark) => {
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

fn print_json(frame: &WatchFrame) -> io::Result<()> {
    line(&text::json(&serde_json::to_string(frame)?))
}

/// The rows of a frame, and the head from time to time.
fn print_lines(frame: &WatchFrame, lines: &mut usize) -> io::Result<()> {
    let is_application = frame.source.kind == WatchSourceKind::Application;
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

fn of_cpu(time: &str, cpu: &WatchCpu) -> String {
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

fn of_thread(time: &str, latency: &ThreadLatency) -> String {
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
    let mut stdout = stdout().lock();
    writeln!(stdout, "{}", text::harmless_line(text))?;
    stdout.flush()
}

// The screen: a frame a second and after each key, only what changed. However it ends, the
// terminal is as it was: on quitting, on signals, on a panic, while suspended.

/// Time between two frames.
pub(super) const SECOND: Duration = Duration::from_secs(1);

/// How long a signal may wait to be noticed.
const PATIENCE: Duration = Duration::from_millis(250);

/// What crossterm is given to read what has come: within no time it reads nothing.
const BRIEF: Duration = Duration::from_millis(1);

/// Whether the terminal is ours: what has to be put back.
static IS_OURS: AtomicBool = AtomicBool::new(false);

/// Draws until the user, the time, or a signal ends it. `measures`: this process must not stop.
pub(super) fn run_terminal(
    watch: &mut Watch,
    signals: &Signals,
    end: Option<Instant>,
    look: ScreenStyle,
    measures: bool,
) -> anyhow::Result<()> {
    put_back_on_panic();
    let stops = Stops::catch().context("cannot catch signals")?;
    let mut screen = Screen::enter().context("the terminal cannot be taken over")?;
    let (mut view, mut frame) = (ScreenView::default(), watch.frame());
    let mut next = Instant::now() + SECOND;
    screen.draw(&frame, &view, look)?;
    loop {
        let left = next.saturating_duration_since(Instant::now());
        let mut is_new = false;
        if terminal_closed(left.min(PATIENCE)).context("the terminal cannot be waited for")? {
            return Ok(());
        }
        if event::poll(BRIEF).context("keys cannot be read")? {
            match handle(&mut screen, watch, &frame, &mut view, look)? {
                KeyAction::Quit => return Ok(()),
                KeyAction::Suspend => stops.suspend(&mut screen, &mut view, measures)?,
                KeyAction::Redraw => screen.clear()?,
                KeyAction::Nothing => {}
            }
            is_new = true;
        }
        if signals.received().is_some() || end.is_some_and(|end| Instant::now() >= end) {
            return Ok(());
        }
        if measures && watch.is_over() {
            return Ok(());
        }
        is_new |= stops.poll(&mut screen, &mut view, measures)?;
        if Instant::now() >= next {
            // Sampled also while the picture is frozen, so that no backlog builds up.
            let new = watch.frame();
            if !view.frozen {
                frame = new;
            }
            // After a stop the seconds that were lost are not made up for.
            next = (next + SECOND).max(Instant::now());
            is_new = true;
        }
        if is_new {
            screen.draw(&frame, &view, look)?;
        }
    }
}

/// Waits for a key, and says whether the terminal has gone: crossterm reads its end for ever.
fn terminal_closed(longest: Duration) -> io::Result<bool> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let stdin = io::stdin();
    let mut keys = [PollFd::new(&stdin, PollFlags::IN)];
    let longest = Timespec::try_from(longest).map_err(io::Error::other)?;
    match poll(&mut keys, Some(&longest)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(errno) => return Err(errno.into()),
    }
    Ok(keys[0].revents().intersects(PollFlags::HUP | PollFlags::ERR))
}

/// Reads what the user did; several keys at once make one picture.
fn handle(
    screen: &mut Screen,
    watch: &mut Watch,
    frame: &WatchFrame,
    view: &mut ScreenView,
    look: ScreenStyle,
) -> anyhow::Result<KeyAction> {
    loop {
        let area = screen.terminal.size()?;
        let area = (area.width, area.height);
        let next = match event::read().context("keys cannot be read")? {
            Event::Key(key) => super::key(key, watch, frame, view, look, area),
            Event::Mouse(mouse) => super::mouse(mouse, frame, view, area),
            Event::Resize(..) => KeyAction::Redraw,
            _ => KeyAction::Nothing,
        };
        if next != KeyAction::Nothing || !event::poll(BRIEF)? {
            return Ok(next);
        }
    }
}

/// A terminal that is ours.
struct Screen {
    /// Not dropped: that would show the cursor, which [`put_back`] does, and panics where the
    /// terminal has gone and its complaint cannot be printed.
    terminal: ManuallyDrop<Terminal<CrosstermBackend<BufWriter<Stdout>>>>,
}

impl Screen {
    fn enter() -> io::Result<Self> {
        take_over()?;
        // One write a frame: a slow link sees whole pictures.
        let out = BufWriter::with_capacity(64 << 10, stdout());
        match Terminal::new(CrosstermBackend::new(out)) {
            Ok(terminal) => Ok(Self { terminal: ManuallyDrop::new(terminal) }),
            Err(error) => {
                put_back();
                Err(error)
            }
        }
    }

    /// Draws all with the next picture. `Terminal::clear` would ask the terminal for its cursor
    /// and wait seconds for an answer that a slow link may not give.
    fn clear(&mut self) -> io::Result<()> {
        let size = self.terminal.size()?;
        self.terminal.resize(Rect::new(0, 0, size.width, size.height))
    }

    fn draw(
        &mut self,
        frame: &WatchFrame,
        view: &ScreenView,
        look: ScreenStyle,
    ) -> anyhow::Result<()> {
        self.terminal
            .draw(|to| screen::draw(frame, view, look, to.buffer_mut()))
            .context("the terminal cannot be written")?;
        Ok(())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        put_back();
    }
}

fn take_over() -> io::Result<()> {
    enable_raw_mode()?;
    IS_OURS.store(true, Ordering::SeqCst);
    let taken = execute!(stdout(), EnterAlternateScreen, EnableMouseCapture, Hide);
    if taken.is_err() {
        put_back();
    }
    taken
}

/// Gives the terminal back, once. A terminal that is gone cannot be put back.
fn put_back() {
    if IS_OURS.swap(false, Ordering::SeqCst) {
        let _ = execute!(stdout(), DisableMouseCapture, Show, LeaveAlternateScreen);
        let _ = disable_raw_mode();
    }
}

/// A panic of this thread is printed on a terminal that shows it. One of a measuring thread is
/// reported when its run ends.
fn put_back_on_panic() {
    let main = std::thread::current().id();
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if std::thread::current().id() == main {
            put_back();
        }
        if !IS_OURS.load(Ordering::SeqCst) {
            before(panic);
        }
    }));
}

/// Being stopped and going on.
struct Stops {
    stop: Arc<AtomicBool>,
    go_on: Arc<AtomicBool>,
}

impl Stops {
    fn catch() -> io::Result<Self> {
        let stops = Self { stop: Arc::default(), go_on: Arc::default() };
        signal_hook::flag::register(SIGTSTP, Arc::clone(&stops.stop))?;
        signal_hook::flag::register(SIGCONT, Arc::clone(&stops.go_on))?;
        Ok(stops)
    }

    /// Whether one of the signals came, and was obeyed.
    fn poll(
        &self,
        screen: &mut Screen,
        view: &mut ScreenView,
        measures: bool,
    ) -> anyhow::Result<bool> {
        if self.stop.swap(false, Ordering::SeqCst) {
            self.suspend(screen, view, measures)?;
            return Ok(true);
        }
        if self.go_on.swap(false, Ordering::SeqCst) {
            // Stopped from outside: a shell has used the terminal since.
            put_back();
            take_over()?;
            screen.clear()?;
            return Ok(true);
        }
        Ok(false)
    }

    /// Gives the terminal to the shell and stops until it says to go on.
    fn suspend(
        &self,
        screen: &mut Screen,
        view: &mut ScreenView,
        measures: bool,
    ) -> anyhow::Result<()> {
        if measures {
            let why = "Not suspended: that would stop the threads that measure. q ends the run.";
            view.message = Some(why.into());
            return Ok(());
        }
        put_back();
        let stop = rustix::process::Signal::STOP;
        rustix::process::kill_process(rustix::process::getpid(), stop)
            .context("cannot stop this process")?;
        take_over()?;
        self.go_on.store(false, Ordering::SeqCst);
        screen.clear()?;
        Ok(())
    }
}
