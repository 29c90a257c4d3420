//! What stands behind `explain`: late wake-ups with their windows, wherever they come from.

mod export;
mod file;
pub(crate) mod gaps;
mod gather;
pub(crate) mod live;
mod locks;
mod record;
mod rtla;
mod text;
mod trace_dat;

use rtproof_judge::Report;
use rtproof_judge::causes::{Spike, Spikes};
use rtproof_results::locks::LocksFound;
use rtproof_trace::Window;

pub use export::export;
pub use file::{Kind, TextFile};
pub use gather::Gather;
pub use live::{Whom, live};
pub(crate) use live::{name, observe};
pub use record::of_record;
pub use text::of_text;
pub(crate) use text::{longest, of_trace};
pub use trace_dat::of_trace_dat;

/// Late wake-ups with their causes, and what was missing to explain them.
#[derive(Debug)]
pub struct Explained {
    /// What was looked at, in a line: file, thread, how many wake-ups.
    pub about: String,
    /// The table and the worst.
    pub spikes: Spikes,
    /// Windows of the worst, by number.
    pub windows: Vec<(u32, Window)>,
    /// What the user must know of how it was found.
    pub notes: Vec<String>,
    /// Whether there was no wake-up at all to look at: nothing is known then.
    pub saw_none: bool,
    /// What leaves open whether more wake-ups were late than were found: clauses.
    pub gaps: Vec<String>,
    /// Why how late a wake-up was may be wrong: clauses.
    pub doubts: Vec<String>,
    /// The locks that a running application waits for; `None`: they were not observed.
    pub locks: Option<LocksFound>,
    /// The run that it is of, judged; `None`: a trace, or a running application.
    pub report: Option<Box<Report>>,
}

impl Explained {
    /// Whether more wake-ups may have been late than were found.
    pub const fn is_open(&self) -> bool {
        !self.gaps.is_empty() || !self.doubts.is_empty()
    }

    /// The window of a spike.
    pub fn window(&self, number: u32) -> Option<&Window> {
        self.windows.iter().find(|(of, _)| *of == number).map(|(_, window)| window)
    }

    /// The spike with a number.
    pub fn spike(&self, number: u32) -> Option<&Spike> {
        self.spikes.worst.iter().find(|spike| spike.number == number)
    }
}
