//! The kernel's own monitors of real-time applications beside the rules: on while a program is
//! observed, and what of their reports was seen.

use rtproof_host::{Root, tracefs};
use rtproof_judge::{rules::Tracker, units};
use rtproof_measure::program::{Source, Watch};
use rtproof_results::rules::Monitors;

/// The monitors that are on, or why there are none.
#[derive(Debug)]
pub(crate) struct Monitored(Result<tracefs::Monitors, String>);

impl Monitored {
    /// Switches them on, where the kernel has them.
    pub(crate) fn begin(root: &Root) -> Self {
        Self(tracefs::Monitors::switch_on(root))
    }

    /// Opens their reports; where that is refused, they go off again.
    pub(super) fn open(&mut self, watch: &mut Watch) {
        let Ok(monitors) = &self.0 else { return };
        if let Err(why) = watch.add_monitors(&Root::live(), monitors.names()) {
            self.0 = Err(why);
        }
    }

    /// Switches off what was switched on; `from_birth`: they followed the program's threads from
    /// their births.
    pub(super) fn end(self, watch: &Watch, tracker: &Tracker, from_birth: bool) -> Monitors {
        let monitors = match self.0 {
            Ok(monitors) => monitors,
            Err(why) => {
                let text = format!("the kernel's own monitors were not used: {why}");
                return Monitors { taken: Vec::new(), text };
            }
        };
        let names = monitors.names().to_vec();
        let sources = [Source::MonitorFaults, Source::MonitorSleeps];
        let missing = sources.into_iter().find_map(|source| watch.missing(source));
        let (taken, mut text) = match (monitors.are_on(), missing) {
            (_, Some(why)) => (Vec::new(), format!("their reports were not taken: {why}")),
            (false, _) => (Vec::new(), "somebody switched them off meanwhile".to_owned()),
            (true, None) if !from_birth => {
                (Vec::new(), "they may not report threads that ran before".to_owned())
            }
            (true, None) => (names.clone(), "their reports were taken".to_owned()),
        };
        let unhandled = tracker.faults_unhandled();
        if unhandled > 0 {
            let reports = units::count(unhandled as usize, "report");
            text += &format!("; {reports} of a page fault that the kernel had not to handle");
        }
        for left in monitors.end() {
            text += &format!("; {left}");
        }
        Monitors { taken, text: format!("the kernel's monitors {}: {text}", names.join(", ")) }
    }
}
