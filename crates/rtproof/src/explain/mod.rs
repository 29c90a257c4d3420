//! What stands behind `explain`: late wake-ups with their windows, wherever they come from.

mod export;
mod file;
mod gather;
mod live;
mod record;
mod text;
mod trace_dat;

use rtproof_judge::causes::{Spike, Spikes};
use rtproof_trace::Window;

pub(crate) use export::export;
pub(crate) use file::Kind;
pub(crate) use gather::Gather;
pub(crate) use live::{Whom, live};
pub(crate) use record::of_record;
pub(crate) use text::of_text;
pub(crate) use trace_dat::of_trace_dat;

/// Late wake-ups, explained.
#[derive(Debug)]
pub(crate) struct Told {
    /// What was looked at, in a line: file, thread, how many wake-ups.
    pub(crate) about: String,
    /// The table and the worst.
    pub(crate) spikes: Spikes,
    /// Windows of the worst, by number.
    pub(crate) windows: Vec<(u32, Window)>,
    /// What the user must know of how it was found.
    pub(crate) notes: Vec<String>,
}

impl Told {
    /// The window of a spike.
    pub(crate) fn window(&self, number: u32) -> Option<&Window> {
        self.windows.iter().find(|(of, _)| *of == number).map(|(_, window)| window)
    }

    /// The spike with a number.
    pub(crate) fn spike(&self, number: u32) -> Option<&Spike> {
        self.spikes.worst.iter().find(|spike| spike.number == number)
    }
}
