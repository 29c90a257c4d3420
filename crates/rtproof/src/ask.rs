//! Questions to whoever sits at the terminal. What is asked goes to stderr: stdout is the answer.

use std::{
    io::{self, IsTerminal},
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::{Duration, Instant},
};

use crate::exit;

/// How often it is looked whether to stop.
const LOOK: Duration = Duration::from_millis(100);

/// Whether a question can be answered here.
pub(crate) fn is_terminal() -> bool {
    io::stdin().is_terminal()
}

/// Asks for consent; anything but yes is no.
///
/// # Errors
/// Usage: nobody sits there.
pub(crate) fn consent(question: &str) -> anyhow::Result<bool> {
    if !is_terminal() {
        let why = "nobody can be asked here (stdin is not a terminal)";
        return Err(exit::usage(format!("{question} {why}: give --yes")));
    }
    crate::print::end()?;
    crate::stderr::write(&format!("{question} [y/N] "))?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

/// Waits for ENTER; `false`: time is up, there is no more input, or `stop` says so.
pub(crate) fn enter_within(time: Duration, stop: impl Fn() -> bool) -> bool {
    let (told, came) = mpsc::channel();
    // Ends with the process: a read from a terminal cannot be called off.
    thread::spawn(move || {
        let mut line = String::new();
        let is_read = io::stdin().read_line(&mut line).is_ok_and(|bytes| bytes > 0);
        let _ = told.send(is_read);
    });
    let until = Instant::now() + time;
    while !stop() {
        let left = until.saturating_duration_since(Instant::now());
        match came.recv_timeout(left.min(LOOK)) {
            Ok(is_read) => return is_read,
            Err(RecvTimeoutError::Timeout) if left > LOOK => {}
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return false,
        }
    }
    false
}
