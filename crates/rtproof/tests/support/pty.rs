//! A terminal without anybody in front of it: what the program writes is kept, keys are written.

use std::{
    fs::{File, OpenOptions},
    io::{Read, Write},
    num::NonZero,
    os::fd::{AsFd, OwnedFd},
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{Termios, Winsize, tcgetattr, tcsetwinsize},
};

/// Longest wait for something to be drawn.
const PATIENCE: Duration = Duration::from_secs(40);

/// Starts a command on a terminal that goes away once something was drawn. It is in no session of
/// the terminal, so that no signal announces it.
pub(crate) fn start_and_hang_up(command: &mut Command) -> Child {
    let (mut master, name) = master();
    let open = || OpenOptions::new().read(true).write(true).open(&name).expect("its end");
    let command = command.stdin(open()).stdout(open()).stderr(Stdio::from(open()));
    let child = command.env("TERM", "xterm-256color").spawn().expect("the binary starts");
    // The command keeps what it was given open.
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // Until it has drawn and waits for keys.
    let mut buffer = [0; 4096];
    let _ = master.read(&mut buffer).expect("something is drawn");
    let quiet = Timespec { tv_sec: 0, tv_nsec: 300_000_000 };
    let has_more = |master: &File| {
        let mut fds = [PollFd::new(master, PollFlags::IN)];
        poll(&mut fds, Some(&quiet)).is_ok_and(|ready| ready > 0)
    };
    while has_more(&master) {
        let _ = master.read(&mut buffer).expect("it draws");
    }
    child
}

/// The end of a new terminal that is ours, and the name of the other.
fn master() -> (File, String) {
    let master =
        openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("a terminal");
    grantpt(&master).expect("it is ours");
    unlockpt(&master).expect("it is open");
    let name = ptsname(&master, Vec::new()).expect("its name");
    (File::from(master), name.into_string().expect("UTF-8"))
}

/// A program on a terminal of its own.
pub(crate) struct Pty {
    pub(crate) child: Child,
    keys: File,
    terminal: OwnedFd,
    before: Termios,
    seen: Arc<Mutex<Vec<u8>>>,
    screen: Arc<Mutex<vt100::Parser>>,
}

impl Pty {
    /// Starts a command on a terminal of this size.
    pub(crate) fn start(command: &mut Command, columns: u16, lines: u16) -> Self {
        let (mut keys, name) = master();
        let open = || OpenOptions::new().read(true).write(true).open(&name).expect("its end");
        let terminal = OwnedFd::from(open());
        let before = tcgetattr(terminal.as_fd()).expect("its settings");
        let mut reader = keys.try_clone().expect("a second handle");
        let seen = Arc::<Mutex<Vec<u8>>>::default();
        let screen = Arc::new(Mutex::new(vt100::Parser::new(some(lines), some(columns), 0)));
        let (to, shown) = (Arc::clone(&seen), Arc::clone(&screen));
        let mut buffer = vec![0; 1 << 16];
        std::thread::spawn(move || {
            while let Ok(n @ 1..) = reader.read(&mut buffer) {
                to.lock().expect("no panic").extend(&buffer[..n]);
                shown.lock().expect("no panic").process(&buffer[..n]);
            }
        });
        let command = command.stdin(open()).stdout(open()).stderr(Stdio::from(open()));
        command.env("TERM", "xterm-256color").env("LC_ALL", "C.UTF-8");
        let child = command.spawn().expect("the binary starts");
        keys.flush().expect("a terminal");
        let pty = Self { child, keys, terminal, before, seen, screen };
        pty.resize(columns, lines);
        pty
    }

    /// Changes its size, and signals that to the program.
    pub(crate) fn resize(&self, columns: u16, lines: u16) {
        let size = Winsize { ws_row: lines, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        self.screen.lock().expect("no panic").screen_mut().set_size(some(lines), some(columns));
        tcsetwinsize(self.terminal.as_fd(), size).expect("a size");
        let pid = rustix::process::Pid::from_child(&self.child);
        // Without a session the kernel sends no signal.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::WINCH);
    }

    /// Presses keys.
    pub(crate) fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).expect("a terminal");
    }

    /// What a user sees.
    pub(crate) fn shown(&self) -> String {
        self.screen.lock().expect("no panic").screen().contents()
    }

    /// What was written so far, with its sequences.
    pub(crate) fn seen(&self) -> String {
        String::from_utf8_lossy(&self.seen.lock().expect("no panic")).into_owned()
    }

    /// Waits until something is shown.
    #[track_caller]
    pub(crate) fn wait_for(&mut self, text: &str) {
        let start = Instant::now();
        while !self.shown().contains(text) {
            let ended = self.child.try_wait().expect("a child");
            let waits = start.elapsed() < PATIENCE && ended.is_none();
            assert!(waits, "\"{text}\" is not shown, {ended:?}:\n{}", self.shown());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits for the end; returns the exit code.
    #[track_caller]
    pub(crate) fn end(&mut self) -> Option<i32> {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("a child") {
                return status.code();
            }
            if start.elapsed() > PATIENCE {
                let _ = self.child.kill();
                panic!("it does not end: {}", self.seen());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Whether keys are echoed and lines edited as before the start.
    #[track_caller]
    pub(crate) fn assert_as_before(&self) {
        let now = tcgetattr(self.terminal.as_fd()).expect("its settings");
        assert_eq!(now.local_modes, self.before.local_modes);
        assert_eq!(now.input_modes, self.before.input_modes);
        assert_eq!(now.output_modes, self.before.output_modes);
        let on_and_off = [("[?1049h", "[?1049l"), ("[?1000h", "[?1000l"), ("[?25l", "[?25h")];
        let is_off = |seen: &str, (on, off): (&str, &str)| {
            let last = |what: &str| seen.rfind(&format!("\u{1b}{what}"));
            last(on).is_some() && last(on) < last(off)
        };
        // The reader may still have the last bytes before it.
        let start = Instant::now();
        while !on_and_off.iter().all(|&pair| is_off(&self.seen(), pair)) {
            assert!(start.elapsed() < PATIENCE, "something is left on: {:?}", self.seen());
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

fn some(n: u16) -> NonZero<u16> {
    NonZero::new(n).expect("a size")
}

impl Drop for Pty {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
