//! Progress of changes: one line that is rewritten on a terminal, nothing elsewhere.

use std::io::IsTerminal;

use rtproof_host::tune::Change;
use rtproof_run::tune::making::Progress;

#[derive(Debug)]
pub(crate) struct Making {
    of: usize,
    made: usize,
    is_shown: bool,
}

impl Making {
    pub(crate) fn new() -> Self {
        Self {
            of: 0,
            made: 0,
            is_shown: std::io::stderr().is_terminal() && !crate::manners::is_quiet(),
        }
    }
}

impl Progress for Making {
    fn begin(&mut self, changes: usize) {
        (self.of, self.made) = (changes, 0);
    }

    fn change(&mut self, change: &Change) {
        self.made += 1;
        if self.is_shown {
            let (made, of) = (self.made, self.of);
            let target: String =
                rtproof_host::harmless::line(&change.title()).chars().take(60).collect();
            // Progress that nobody sees is no loss.
            let _ = crate::stderr::rewrite("\r\x1b[K", &format!("{made}/{of} {target}"));
        }
    }

    fn end(&mut self) {
        if self.is_shown {
            let _ = crate::stderr::rewrite("\r\x1b[K", "");
        }
    }
}

/// Shows a line of a package manager at work.
pub(crate) fn manager_line(line: &str) {
    if crate::manners::is_quiet() {
        return;
    }
    let clear = if std::io::stderr().is_terminal() { "\r\x1b[K" } else { "" };
    let line = rtproof_host::harmless::line(line);
    // Progress that nobody sees is no loss.
    let _ = crate::stderr::rewrite(clear, &format!("  {line}\n"));
}
