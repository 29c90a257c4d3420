//! The screen: a frame a second and after each key, only what changed. However it ends, the
//! terminal is as it was: on quitting, on signals, on a panic, while suspended.

use std::{
    io::{self, BufWriter, Stdout, stdout},
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
use rtproof_report::screen::{self, Look, View};
use rtproof_results::watch::Frame;
use rtproof_run::{prove::signals::Signals, watch::Watch};
use signal_hook::consts::{SIGCONT, SIGTSTP};

use super::keys::{self, Next};

/// Time between two frames.
pub(super) const SECOND: Duration = Duration::from_secs(1);
/// How long a signal may wait to be noticed.
const PATIENCE: Duration = Duration::from_millis(250);

/// What crossterm is given to read what has come: within no time it reads nothing.
const BRIEF: Duration = Duration::from_millis(1);

/// Whether the terminal is ours: what has to be put back.
static IS_OURS: AtomicBool = AtomicBool::new(false);

/// Draws until the user, the time, or a signal ends it. `measures`: this process must not stop.
pub(super) fn run(
    watch: &mut Watch,
    signals: &Signals,
    end: Option<Instant>,
    look: Look,
    measures: bool,
) -> anyhow::Result<()> {
    put_back_on_panic();
    let stops = Stops::catch().context("cannot catch signals")?;
    let mut screen = Screen::enter().context("the terminal cannot be taken over")?;
    let (mut view, mut frame) = (View::default(), watch.frame());
    let mut next = Instant::now() + SECOND;
    screen.draw(&frame, &view, look)?;
    loop {
        let left = next.saturating_duration_since(Instant::now());
        let mut is_new = false;
        if is_gone(left.min(PATIENCE)).context("the terminal cannot be waited for")? {
            return Ok(());
        }
        if event::poll(BRIEF).context("keys cannot be read")? {
            match handle(&mut screen, watch, &frame, &mut view, look)? {
                Next::Quit => return Ok(()),
                Next::Suspend => stops.suspend(&mut screen, &mut view, measures)?,
                Next::Redraw => screen.anew()?,
                Next::Nothing => {}
            }
            is_new = true;
        }
        if signals.came().is_some() || end.is_some_and(|end| Instant::now() >= end) {
            return Ok(());
        }
        if measures && watch.is_over() {
            return Ok(());
        }
        is_new |= stops.look(&mut screen, &mut view, measures)?;
        if Instant::now() >= next {
            // Sampled also while the picture stands still: nothing piles up behind it.
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
fn is_gone(longest: Duration) -> io::Result<bool> {
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
    frame: &Frame,
    view: &mut View,
    look: Look,
) -> anyhow::Result<Next> {
    loop {
        let area = screen.terminal.size()?;
        let area = (area.width, area.height);
        let next = match event::read().context("keys cannot be read")? {
            Event::Key(key) => keys::key(key, watch, frame, view, look, area),
            Event::Mouse(mouse) => keys::mouse(mouse, frame, view, area),
            Event::Resize(..) => Next::Redraw,
            _ => Next::Nothing,
        };
        if next != Next::Nothing || !event::poll(BRIEF)? {
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
    fn anew(&mut self) -> io::Result<()> {
        let size = self.terminal.size()?;
        self.terminal.resize(Rect::new(0, 0, size.width, size.height))
    }

    fn draw(&mut self, frame: &Frame, view: &View, look: Look) -> anyhow::Result<()> {
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
    fn look(&self, screen: &mut Screen, view: &mut View, measures: bool) -> anyhow::Result<bool> {
        if self.stop.swap(false, Ordering::SeqCst) {
            self.suspend(screen, view, measures)?;
            return Ok(true);
        }
        if self.go_on.swap(false, Ordering::SeqCst) {
            // Stopped from outside: a shell has used the terminal since.
            put_back();
            take_over()?;
            screen.anew()?;
            return Ok(true);
        }
        Ok(false)
    }

    /// Gives the terminal to the shell and stops until it says to go on.
    fn suspend(&self, screen: &mut Screen, view: &mut View, measures: bool) -> anyhow::Result<()> {
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
        screen.anew()?;
        Ok(())
    }
}
