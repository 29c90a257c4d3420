//! Changes the machine while it is measured: `tune apply --prove`, `experiment`.

use rtproof_measure::{Slot, Started, cycle::SLOT_NS};
use rtproof_record::{EffectTick, run::Note};

/// Changes the machine at moments of its choice, and cuts what was measured into slices. Called by
/// the housekeeping thread only.
pub trait Switcher {
    /// Length of the slots that slices are made of. A second is a multiple of it.
    fn slot_ns(&self) -> u64;

    /// The measured threads run.
    fn started(&mut self, threads: &[Started]) {
        let _ = threads;
    }

    /// Whether nothing is left to be measured: the run need not go on to its end.
    fn is_over(&self) -> bool {
        false
    }

    /// What a thread measured in a slot. `origin_ns`: first wake-up of the run, on its clock.
    fn take(&mut self, thread: u32, slot: &Slot, origin_ns: u64);

    /// Does what is due. `now_ns` tells the time after the first wake-up, before and after things
    /// that take long. Returns when to come again; the slots until then are handed over before.
    fn due(&mut self, now_ns: &dyn Fn() -> u64) -> u64;

    /// What is to be in the record since the last call.
    fn tick(&mut self) -> (EffectTick, Vec<Note>);

    /// Why the run must end now.
    fn trouble(&self) -> Option<String>;

    /// The run ends: what is not to stay is undone, now.
    fn finish(&mut self, now_ns: u64);
}

/// A switcher for runs that are no experiment: it changes nothing.
#[derive(Debug)]
pub struct NoSwitcher;

impl Switcher for NoSwitcher {
    fn slot_ns(&self) -> u64 {
        SLOT_NS
    }

    fn take(&mut self, _: u32, _: &Slot, _: u64) {}

    fn due(&mut self, _: &dyn Fn() -> u64) -> u64 {
        u64::MAX
    }

    fn tick(&mut self) -> (EffectTick, Vec<Note>) {
        Default::default()
    }

    fn trouble(&self) -> Option<String> {
        None
    }

    fn finish(&mut self, _: u64) {}
}
