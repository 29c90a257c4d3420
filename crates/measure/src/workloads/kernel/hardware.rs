//! hwlat for a while, as part of a trial: short windows, so that no CPU waits long for the one
//! whose interrupts are off.

use std::{io::Read as _, time::Duration};

use rtproof_host::{
    Root,
    tracefs::{TracefsError, Tracer, TracerRequest},
};
use rtproof_model::trial::HwlatLook;

use super::lines::{Event, Lines};

/// Interrupts are off for so long of each window, microseconds. The kernel's own are 0.5 s of 1 s.
const WIDTH_US: u64 = 20_000;
const WINDOW_US: u64 = 100_000;
/// How much of the text is read at a time.
const PIECE: usize = 16 << 10;

/// hwlat while it runs; dropping it ends it and puts everything back.
pub(crate) struct Hardware {
    tracer: Tracer,
    cpu: u32,
    threshold_ns: u64,
}

impl Hardware {
    /// Starts it on a CPU.
    ///
    /// # Errors
    /// The kernel has no such tracer, another program uses it, or a setting is refused.
    pub(crate) fn start(root: &Root, cpu: u32, threshold_ns: u64) -> Result<Self, TracefsError> {
        // The width first: it has to be less than the window, and the usual one is.
        let shared = vec![
            ("tracing_thresh", (threshold_ns / 1_000).to_string()),
            ("hwlat_detector/width", WIDTH_US.to_string()),
            ("hwlat_detector/window", WINDOW_US.to_string()),
        ];
        let tracer = Tracer::start(root, &TracerRequest::on_one_cpu("hwlat", cpu, shared))?;
        Ok(Self { tracer, cpu, threshold_ns })
    }

    /// Ends it; what it saw in the time that it ran.
    ///
    /// # Errors
    /// Its lines cannot be read.
    pub(crate) fn end(self, ran: Duration) -> Result<HwlatLook, TracefsError> {
        let mut pipe = self.tracer.lines()?;
        let ran_ns = u64::try_from(ran.as_nanos()).unwrap_or(u64::MAX);
        let mut look = HwlatLook {
            cpu: self.cpu,
            // Whole windows alone.
            duration_ns: ran_ns / (WINDOW_US * 1_000) * WIDTH_US * 1_000,
            threshold_ns: self.threshold_ns,
            gaps: rtproof_model::trial::Gaps::default(),
            with_nmi: 0,
        };
        let mut lines = Lines::default();
        let mut piece = vec![0; PIECE];
        // It never waits: an error is the end of what there is.
        while let Ok(length @ 1..) = pipe.read(&mut piece) {
            lines.feed(&piece[..length], |line| match line.event {
                Event::Hardware { nmis: 1.., .. } => look.with_nmi += 1,
                event @ Event::Hardware { .. } => look.gaps.add(event.value_ns()),
                _ => {}
            });
        }
        drop(pipe);
        let _ = self.tracer.end();
        Ok(look)
    }
}
