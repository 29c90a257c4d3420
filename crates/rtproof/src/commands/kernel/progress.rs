//! Progress of long work on a terminal's stderr: what is done, objects so far, time. How many
//! objects there will be is not known, so no part of a whole is shown.

use std::{io::IsTerminal, ops::ControlFlow};

use rtproof_run::kernel::tool::Progress;

use crate::stderr;

/// Shows progress; elsewhere than on a terminal a line each minute.
pub(super) fn shown() -> impl FnMut(&Progress) -> ControlFlow<()> {
    let is_terminal = std::io::stderr().is_terminal();
    let mut minute = 0;
    move |progress| {
        let seconds = progress.elapsed.as_secs();
        let objects = match progress.objects {
            0 => String::new(),
            objects => format!(", {objects} objects"),
        };
        let text = format!("{}: {}:{:02}{objects}", progress.step, seconds / 60, seconds % 60);
        // A stderr that cannot be written is no reason to stop.
        if is_terminal {
            let _ = stderr::rewrite("\r\x1b[K", &text);
        } else if seconds / 60 != minute {
            minute = seconds / 60;
            let _ = stderr::line(&text);
        }
        ControlFlow::Continue(())
    }
}

pub(super) fn end() {
    if std::io::stderr().is_terminal() {
        // As above.
        let _ = stderr::rewrite("\r\x1b[K", "");
    }
}
