//! Busy for some time in every period: the rogue daemon, a neighbour of equal priority, a hog.

use crate::args::Args;
use crate::clock::now_ns;
use crate::failure::Failure;
use crate::occurrences::Occurrences;
use crate::policy;
use crate::run::{Frame, Run};
use crate::truth::Truth;

/// Longer between two looks at the clock: something else has run (--gap).
pub(super) const GAP_NS: u64 = 1_000_000;

/// `--busy` in every `--every`.
pub(super) fn burst(frame: Frame, args: &Args) -> Result<(), Failure> {
    let busy_ns = args.needed_ns("busy").map_err(Failure::Usage)?;
    let every_ns = args.needed_ns("every").map_err(Failure::Usage)?;
    if every_ns < busy_ns {
        return Err(Failure::Usage("--every: not shorter than --busy".into()));
    }
    let gap_ns = gap_ns(args)?;
    frame.run("burst", args, |run, truth| {
        bursts(run, truth, busy_ns, every_ns, gap_ns);
        Ok(())
    })
}

/// A hog; the gaps in its own time are the throttling.
pub(super) fn throttle(frame: Frame, args: &Args) -> Result<(), Failure> {
    let gap_ns = gap_ns(args)?;
    frame.run("throttle", args, |run, truth| {
        let whole_ns = run.end_ns - run.begin_ns;
        bursts(run, truth, whole_ns, whole_ns, gap_ns);
        Ok(())
    })
}

fn gap_ns(args: &Args) -> Result<u64, Failure> {
    Ok(args.duration_ns("gap").map_err(Failure::Usage)?.unwrap_or(GAP_NS))
}

fn bursts(run: &Run, truth: &mut Truth, busy_ns: u64, every_ns: u64, gap_ns: u64) {
    let room = (run.end_ns - run.begin_ns).div_ceil(every_ns);
    let mut all = Occurrences::with_room(room);
    let mut gaps = Occurrences::with_room(10_000);
    let mut due_ns = run.begin_ns;
    while due_ns < run.end_ns && !run.is_over() {
        run.sleep_until(due_ns);
        let begin_ns = now_ns();
        let until_ns = (begin_ns + busy_ns).min(run.end_ns);
        let end_ns = spin(run, until_ns, gap_ns, &mut gaps);
        all.add(begin_ns, end_ns);
        // Periods that have passed meanwhile are left out.
        due_ns += every_ns * (end_ns.saturating_sub(due_ns) / every_ns).max(1);
    }
    policy::lower();
    all.tell(truth);
    truth.set("gaps", gaps.list());
}

/// Burns the CPU; books when it was not its own.
pub(super) fn spin(run: &Run, until_ns: u64, gap_ns: u64, gaps: &mut Occurrences) -> u64 {
    let mut last_ns = now_ns();
    while last_ns < until_ns && !run.is_stopped() {
        let now_ns = now_ns();
        if now_ns - last_ns > gap_ns {
            gaps.add(last_ns, now_ns);
        }
        last_ns = now_ns;
    }
    last_ns
}
