//! Progress of changes: one line that is rewritten on a terminal, nothing elsewhere.

use std::io::{IsTerminal, Write};

use rtproof_host::tune::Change;
use rtproof_run::tune::making::Progress;

/// Progress on stderr.
#[derive(Debug)]
pub(crate) struct Making {
    of: usize,
    made: usize,
    is_shown: bool,
}

impl Making {
    pub(crate) fn new() -> Self {
        Self { of: 0, made: 0, is_shown: std::io::stderr().is_terminal() }
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
            let target: String = change.title().chars().take(60).collect();
            // Progress that nobody sees is no loss.
            let _ = write!(std::io::stderr(), "\r\x1b[K{made}/{of} {target}");
        }
    }

    fn end(&mut self) {
        if self.is_shown {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}
